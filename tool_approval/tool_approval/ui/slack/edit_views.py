"""Build the views in which an approver edits arguments, and read what was submitted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tool_approval.answering import (
    NotOffered,
    draft_of,
    is_changed,
    parse_arguments,
    with_arguments,
)
from tool_approval.core.request import ApprovalRequest
from tool_approval.display import display, warnings_of
from tool_approval.display.fenced import drawn
from tool_approval.forms import LONGEST_TEXT, FormField, form_of, read_form
from tool_approval.inbox import InboxEntry

from .blocks import Block, View, call_of, labels, modal, section, target_of
from .mrkdwn import sections

EDIT_FORM, CHANGED_FORM = 'edit_arguments', 'approve_changed'
"""Ids of the form to edit arguments, and of the view that shows the changed call."""

_FIELD, _JSON, _INPUT = 'field_', 'json', 'value'
"""Ids of the input blocks: `field_` with the number of the field, or `json` for all arguments; and of their elements.
"""

_LONGEST_OPTION = 75
"""Maximum number of characters in the text of an option. Source: Slack's reference."""

_LONGEST_METADATA = 2800
"""Maximum number of characters of the edited arguments. They travel in `private_metadata`, which takes 3000 with the
target. Source: Slack's reference."""

_MOST_SECTIONS = 12
"""Maximum number of sections of a changed call, as on a page of the full view."""


def edit_view(entry: InboxEntry) -> View:
    """Build the form to edit arguments: a field for each argument if they are flat, or else a JSON text."""
    request = entry.request
    fields = _fields(request)
    if fields is None:
        element = _text_input(_as_json(request), is_long=True)
        blocks = [_input(_JSON, 'Arguments, as a JSON object', element)]
    else:
        blocks = [_field(number, each) for number, each in enumerate(fields)]
    note = section('Nothing is approved yet; you will see the changed call before you approve it.')
    return modal(entry, EDIT_FORM, labels('Edit arguments', 'Show the change'), [call_of(entry), *blocks, note])


def changed_view(entry: InboxEntry, edited: Mapping[str, Any]) -> View:
    """Build the view of the whole changed call, whose button approves it.

    Raises:
        NotOffered: The call cannot be shown whole in Slack, or an argument cannot be changed.
    """
    asked = with_arguments(entry.request, edited)
    texts = sections(drawn(display(asked, whole=True).lines))
    written = json.dumps(edited, ensure_ascii=True, separators=(',', ':'))
    if len(texts) > _MOST_SECTIONS or len(written) > _LONGEST_METADATA:
        raise NotOffered('the changed call is too long to be shown in Slack; use the web page')
    warnings = [section(each) for each in sections((False, f'! {text}') for text in warnings_of(asked))]
    note = section('You have changed the call. Nothing is approved yet.')
    blocks = [call_of(entry), note, *map(section, texts), *warnings]
    view = modal(entry, CHANGED_FORM, labels('Changed call', 'Approve the change'), blocks)
    return {**view, 'private_metadata': f'{target_of(entry)}\n{written}'}


def read_edit(entry: InboxEntry, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that were submitted in the form.

    Args:
        entry: The request.
        values: The state of the view: by id of the block, and then by id of the element.

    Raises:
        NotOffered: The arguments are invalid, or unchanged.
    """
    fields = _fields(entry.request)
    if fields is None:
        text = _value(values, _JSON)
        if text is None:
            raise NotOffered('the arguments are missing')
        edited = parse_arguments(text)
    else:
        # Slack sends an empty text as null.
        entered = {each.name: _value(values, f'{_FIELD}{number}') for number, each in enumerate(fields)}
        empty = {each.name: '' for each in fields if each.kind == 'text' and not each.can_be_null}
        edited = read_form(fields, {name: empty.get(name) if text is None else text for name, text in entered.items()})
    if not is_changed(entry.request, edited):
        raise NotOffered('the arguments are unchanged')
    with_arguments(entry.request, edited)  # raises for an argument that is not shown
    return edited


def error_block(values: Mapping[str, Any]) -> str:
    """Return the id of the block at which Slack shows an error of the form."""
    return next((name for name in values if name.startswith(_FIELD)), _JSON)


def _fields(request: ApprovalRequest) -> tuple[FormField, ...] | None:
    fields = form_of(request, draft_of(request))
    if fields is None or not all(map(_fits, fields)):
        return None
    return fields


def _fits(field: FormField) -> bool:
    return all(len(field.text_of(each)) <= _LONGEST_OPTION for each in field.choices)


def _field(number: int, field: FormField) -> Block:
    if field.kind == 'choice':
        choices = [*([None] if field.can_be_null else []), *field.choices]
        options = {field.text_of(each): _option(field, each) for each in choices}
        chosen = options[field.text_of(field.value)]
        element: Block = {'type': 'static_select', 'action_id': _INPUT, 'options': [*options.values()]}
        return _input(f'{_FIELD}{number}', field.label, {**element, 'initial_option': chosen})
    element = _text_input(field.text, is_long=field.kind == 'text')
    return _input(f'{_FIELD}{number}', field.label, element, is_optional=field.can_be_null or field.kind == 'text')


def _option(field: FormField, value: Any) -> Block:
    text = 'no value' if value is None else value if isinstance(value, str) else field.text_of(value)
    # Slack refuses an empty text.
    return {'text': labels(text or '(empty)')[0], 'value': field.text_of(value)}


def _text_input(text: str, *, is_long: bool) -> Block:
    element: Block = {'type': 'plain_text_input', 'action_id': _INPUT, 'multiline': is_long, 'max_length': LONGEST_TEXT}
    return {**element, 'initial_value': text} if text else element


def _input(block_id: str, label: str, element: Block, *, is_optional: bool = False) -> Block:
    return {
        'type': 'input',
        'block_id': block_id,
        'label': labels(label[:2000] or '(empty)')[0],
        'element': element,
        'optional': is_optional,
    }


def _value(values: Mapping[str, Any], block_id: str) -> str | None:
    """Return the text of an input, or the value of the chosen option."""
    match values.get(block_id):
        case {'value': {'value': str(text)}}:
            return text
        case {'value': {'selected_option': {'value': str(text)}}}:
            return text
        case _:
            return None


def _as_json(request: ApprovalRequest) -> str:
    return json.dumps(draft_of(request), indent=2, ensure_ascii=True)
