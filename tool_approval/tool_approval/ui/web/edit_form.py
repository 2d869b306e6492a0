"""Render the form to edit arguments, and the changed call before it is approved."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tool_approval.answering import UnreadableArguments, draft_of
from tool_approval.core.request import ApprovalRequest
from tool_approval.display import display, escape_line, name_of, warnings_of
from tool_approval.forms import LONGEST_TEXT, FormField, form_of, read_form
from tool_approval.inbox import InboxEntry

from .cards import PageContext, content_of, hidden
from .html import Html, element

_HINT = 'A JSON object. Nothing is approved yet; you will see the changed call before you approve it.'
_FORM_HINT = 'Nothing is approved yet; you will see the changed call before you approve it.'

_FIELD, _NULL = 'field-', 'null-'
"""Begin the names of a form's fields. A number follows, because the names of arguments may be anything."""


def edit_form(
    entry: InboxEntry,
    context: PageContext,
    *,
    args: Mapping[str, Any] | None = None,
    text: str | None = None,
    entered: Mapping[int, str | None] | None = None,
    problem: str | None = None,
    as_json: bool = False,
) -> Html:
    """Render the form to edit arguments: a field for each argument if they are flat, or else a JSON text.

    Args:
        entry: The request.
        context: The page and its visitor.
        args: Arguments to show; the request's own, or those of an edit that was not accepted, if `None`.
        text: JSON text that was submitted before; the form is then a JSON text.
        entered: Texts that were submitted in a form before, by number of the field.
        problem: Why what was submitted cannot be used, escaped.
        as_json: Whether to show the arguments as JSON although they are flat.
    """
    request, rejected = entry.request, entry.request.rejected_edit
    shown = draft_of(request) if args is None else args
    # The fields have numbers, so a form always has the fields of the draft.
    has_form = not as_json and text is None and list(shown) == list(draft_of(request))
    fields = form_of(request, shown) if has_form else None
    if problem is None and args is None and rejected is not None:
        problem = escape_line(f'Your edit was not accepted: {rejected.problem}')
    address = f'{context.base}/requests/{entry.id}/edit'
    parts = _text_area(request, shown, text, problem) if fields is None else _fields(fields, entered or {})
    switch = None
    if fields is not None:
        switch = element('a', 'Edit as JSON', class_='button', href=f'{address}?as=json')
    return element(
        'form',
        None if problem is None else element('p', problem, class_='notice', role='alert', id='problem'),
        *hidden(context),
        *parts,
        element(
            'div',
            element('button', 'Show the changed call', type='submit', class_='approve'),
            switch,
            _back(context),
            class_='buttons',
        ),
        method='post',
        action=address,
        class_='card edit',
    )


def _text_area(request: ApprovalRequest, args: Mapping[str, Any], text: str | None, problem: str | None) -> list[Html]:
    written = json.dumps(args, indent=2, ensure_ascii=True) if text is None else text
    return [
        element('label', f'Arguments of {name_of(request.tool_name)}', for_='args'),
        element('p', _HINT, id='hint'),
        element(
            'textarea',
            # Browsers drop the first line end of a text area.
            f'\n{written}',
            id='args',
            name='args',
            rows=str(min(30, max(8, written.count('\n') + 2))),
            spellcheck='false',
            autocomplete='off',
            aria_describedby='hint' if problem is None else 'problem hint',
        ),
    ]


def _fields(fields: Sequence[FormField], entered: Mapping[int, str | None]) -> list[Html]:
    rows = [element('p', _FORM_HINT, id='hint')]
    for number, field in enumerate(fields):
        name = f'{_FIELD}{number}'
        text = entered.get(number, None if field.value is None else field.text)
        rows.append(element('p', element('label', field.label, for_=name), _control(field, name, text), class_='field'))
        if field.can_be_null and field.kind == 'text':
            box = element('input', type='checkbox', name=f'{_NULL}{number}', value='1', checked=text is None)
            rows.append(element('p', element('label', box, f' no value for {field.label}'), class_='field'))
    return rows


def _control(field: FormField, name: str, text: str | None) -> Html:
    if field.kind == 'choice':
        options = [
            (field.text_of(each), escape_line(each if isinstance(each, str) else field.text_of(each)))
            for each in field.choices
        ]
        if field.can_be_null:
            options.insert(0, ('', 'no value'))
        shown = [element('option', label, value=value, selected=value == (text or '')) for value, label in options]
        return element('select', *shown, id=name, name=name)
    if field.kind == 'text' and ('\n' in (text or '') or len(text or '') > 80):
        return element('textarea', f'\n{text}', id=name, name=name, rows='6', maxlength=str(LONGEST_TEXT))
    mode = None if field.kind == 'text' else 'numeric' if field.kind == 'integer' else 'decimal'
    return element(
        'input',
        type='text',
        id=name,
        name=name,
        value=text or '',
        inputmode=mode,
        maxlength=str(LONGEST_TEXT),
        spellcheck='false',
        autocomplete='off',
    )


def entered_in(fields: Sequence[tuple[str, str]]) -> dict[int, str | None]:
    """Return the texts that were entered in a form, by number of the field. `None` is null."""
    found: dict[int, str | None] = {}
    for name, text in fields:
        number = name.removeprefix(_FIELD)
        if name.startswith(_FIELD) and number.isascii() and number.isdecimal() and len(number) < 4:
            found[int(number)] = text.replace('\r\n', '\n')
    for name, _ in fields:
        number = name.removeprefix(_NULL)
        if name.startswith(_NULL) and number.isascii() and number.isdecimal() and len(number) < 4:
            found[int(number)] = None
    return found


def read_entered(entry: InboxEntry, entered: Mapping[int, str | None]) -> dict[str, Any]:
    """Return the arguments that were entered in the form of a request.

    Raises:
        UnreadableArguments: A text is not a value of its field, or the request has no form.
    """
    fields = form_of(entry.request, draft_of(entry.request))
    if fields is None:
        raise UnreadableArguments('the arguments are missing')
    return read_form(fields, {each.name: entered.get(number) for number, each in enumerate(fields)})


def preview_of(entry: InboxEntry, asked: ApprovalRequest, context: PageContext) -> Html:
    """Render the whole changed call and the form to approve it."""
    name = name_of(asked.tool_name)
    request = f'{context.base}/requests/{entry.id}'
    approve = element(
        'button', 'Approve the changed call', type='submit', name='answer', value='approve', class_='approve'
    )
    again = element('button', 'Edit again', type='submit', formaction=f'{request}/edit?again=1')
    return element(
        'article',
        element('h2', name),
        element('p', 'You have changed the call. Nothing is approved yet.', class_='notice'),
        content_of(display(asked, whole=True).lines, f'Content of {name} after the change'),
        *(element('p', f'Warning: {each}', class_='warning') for each in warnings_of(asked)),
        element(
            'form',
            # One line of ASCII, which browsers do not change.
            *hidden(context, digest=entry.digest, args=json.dumps(asked.payload, ensure_ascii=True)),
            element('div', approve, again, _back(context), class_='buttons'),
            method='post',
            action=f'{request}/answer',
            class_='actions',
        ),
        class_='card',
    )


def _back(context: PageContext) -> Html:
    return element('a', 'Back', class_='button', href=f'{context.base}/')
