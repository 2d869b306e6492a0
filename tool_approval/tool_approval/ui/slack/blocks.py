"""Build Slack's blocks for messages and views of a request."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from tool_approval.answering import LABELS, answer_options, bounded_options, draft_of, outcome_words, place_in_response
from tool_approval.core.offers import MOST_OPTIONS
from tool_approval.core.request import ApprovalRequest
from tool_approval.display import display, facts, remember_choices, warnings_of
from tool_approval.display.fenced import drawn
from tool_approval.inbox import Approver, InboxEntry

from .mrkdwn import code, cut, plain, sections

Block = dict[str, Any]
"""A block of a message or a view, as in Slack's reference."""

View = Mapping[str, Any]
"""A modal view, which Slack shows to one person."""

APPROVE, SESSION, DENY, NOTE, FULL = 'approve', 'approve_session', 'deny', 'deny_note', 'view_full'
EDIT, RESPOND, DENY_SESSION = 'edit', 'respond', 'deny_session'
BOUNDED = tuple(f'approve_bounded_{number}' for number in range(MOST_OPTIONS))
PREVIOUS, NEXT = 'previous_page', 'next_page'
"""Ids of the buttons in messages and in the full view."""

NOTE_FORM, RESPONSE_FORM, NOTE_BLOCK, NOTE_INPUT = 'deny_with_note', 'respond_with', 'note', 'text'
"""Ids of the forms for a note and for a response, and of their block and input field."""

LONGEST_NOTE = 3000
"""Maximum number of characters in a plain text input. Source: Slack's reference."""

_LONGEST_CONFIRMATION = 300
"""Maximum number of characters in the text of a confirmation dialog. Source: Slack's reference."""

_LONGEST_BUTTON = 75
"""Maximum number of characters in the text of a button. Source: Slack's reference."""

_MOST_CONTENT = 4
"""Maximum number of content sections in a message. Four sections fill about two screens. Slack's limit is 50 blocks."""
_MOST_OF_A_FACT = 2

_PER_PAGE = 12
"""Maximum number of sections on a page of the full view. Slack's limits for a view are 100 blocks and 250 kB, and
an escaped character may take 12 bytes."""


@dataclass(frozen=True, kw_only=True)
class Message:
    """The Slack message of a request."""

    text: str
    """Text for notifications and screen readers."""
    blocks: Sequence[Block]
    """Blocks of the message."""


def message_of(entry: InboxEntry, *, others: int = 0) -> Message:
    """Build the message of a request: the content, followed by buttons if the request is open, or by the outcome.

    Args:
        entry: The request.
        others: How many of `entry.others_at` have passed.
    """
    request = entry.request
    name, position = code(request.tool_name), _position(request)
    body, is_whole = _body(request)
    if entry.state == 'pending':
        ends = entry.content.expires_at
        until = [] if ends is None else [_small(f'Expires at {_time_of(ends)}; the call is then denied.')]
        heading = section(f'*Approve this call of* {name}*?*{position}')
        actions = _actions(_buttons(entry, is_whole=is_whole))
        rules = [rule for rule in entry.content.approvers or () if others and rule.escalate is not None]
        who = [_small(f'Others may answer now, too: {code(rule.text)}') for rule in rules]
        return Message(text=f'Approval needed: {name}', blocks=[heading, *body, *who, *until, actions])
    outcome = _outcome_of(entry)
    noted = [section(f'*{label}*\n{sections([(False, text)])[0]}') for label, text in entry.written]
    heading = section(f'*Call of* {name}{position}')
    return Message(text=f'{name}: {outcome}', blocks=[heading, *body, section(outcome), *noted])


def is_body_whole(request: ApprovalRequest) -> bool:
    """Return whether the message shows the whole request."""
    return _body(request)[1]


def is_whole_in_message(request: ApprovalRequest) -> bool:
    """Return whether the message shows the whole request, and the dialog all that an answer for the session covers."""
    return is_body_whole(request) and _is_dialog_whole(request)


def full_view(entry: InboxEntry, page: int) -> View:
    """Build a view with one page of the whole request, or with the last page if the page number is too high."""
    texts = sections(drawn(display(entry.request, whole=True).lines))
    pages = [texts[start : start + _PER_PAGE] for start in range(0, len(texts), _PER_PAGE)]
    page = min(page, len(pages) - 1)
    blocks = [call_of(entry), *map(section, pages[page])]
    turning = [
        _button(entry, name, label, page=other)
        for name, label, other in ((PREVIOUS, 'Previous page', page - 1), (NEXT, 'Next page', page + 1))
        if 0 <= other < len(pages)
    ]
    if turning:
        blocks += [section(f'Page {page + 1:,} of {len(pages):,}'), _actions(turning)]
    return {'type': 'modal', 'title': _label('Whole request'), 'close': _label('Close'), 'blocks': blocks}


def note_form(entry: InboxEntry) -> View:
    """Build the form for a note. Slack returns the form's target and the note in a signed payload."""
    return _text_form(entry, NOTE_FORM, 'Note to the model', labels(LABELS['note'], LABELS['deny']))


def response_form(entry: InboxEntry) -> View:
    """Build the form for a response in the tool's place."""
    label = 'Result, which the model reads; the tool does not run'
    return _text_form(entry, RESPONSE_FORM, label, labels(LABELS['respond'], 'Send'))


def _text_form(entry: InboxEntry, name: str, label: str, titles: Sequence[Block]) -> View:
    field: Block = {
        'type': 'input',
        'block_id': NOTE_BLOCK,
        'label': _label(label),
        'element': {
            'type': 'plain_text_input',
            'action_id': NOTE_INPUT,
            'multiline': True,
            'max_length': LONGEST_NOTE,
        },
    }
    return modal(entry, name, titles, [call_of(entry), field])


def modal(entry: InboxEntry, name: str, titles: Sequence[Block], blocks: Sequence[Block]) -> View:
    """Build a form about a request.

    Args:
        entry: The request.
        name: Id of the form.
        titles: Title of the form, and label of its button.
        blocks: Content of the form.
    """
    title, submit = titles
    return {
        'type': 'modal',
        'callback_id': name,
        'private_metadata': target_of(entry),
        'title': title,
        'submit': submit,
        'close': _label('Back'),
        'blocks': [*blocks],
    }


def labels(*texts: str) -> Sequence[Block]:
    """Return plain texts, in which nothing is markup."""
    return [_label(text) for text in texts]


def _body(request: ApprovalRequest) -> tuple[list[Block], bool]:
    """Return the blocks that show the request, and whether they show the whole request."""
    shown = display(request)
    is_whole = shown.is_whole
    blocks: list[Block] = []
    for label, text in facts(request):
        texts, is_all = cut(sections([(False, text)]), _MOST_OF_A_FACT)
        blocks += _labelled(label, texts)
        is_whole = is_whole and is_all
    # Warnings are few and short, so all are shown.
    blocks += _labelled('Warning', sections((False, f'! {text}') for text in warnings_of(request)))
    texts, is_all = cut(sections(drawn(shown.lines)), _MOST_CONTENT)
    return [*blocks, *map(section, texts)], is_whole and is_all


def _buttons(entry: InboxEntry, *, is_whole: bool) -> list[Block]:
    request = entry.request
    options = answer_options(request, is_whole=is_whole and _is_dialog_whole(request))
    can_approve = 'approve' in options.answers
    buttons = [_button(entry, APPROVE, LABELS['approve'], style='primary')] if can_approve else []
    if 'respond' in options.answers:
        buttons.append(_button(entry, RESPOND, LABELS['respond']))
    if 'session' in options.spans:
        confirm = _confirmation(remember_choices(request)[0][1])
        buttons.append(_button(entry, SESSION, LABELS['session'], confirm=confirm))
    buttons += _bounded_buttons(entry, is_whole=is_whole)
    buttons.append(_button(entry, DENY, LABELS['deny'], style='danger'))
    if options.denial_covers is not None:
        confirm = _confirmation(options.denial_covers, 'deny_session')
        buttons.append(_button(entry, DENY_SESSION, LABELS['deny_session'], confirm=confirm))
    buttons.append(_button(entry, NOTE, LABELS['note']))
    if is_editable(request):
        buttons.append(_button(entry, EDIT, LABELS['edit']))
    return buttons if is_whole else [*buttons, _button(entry, FULL, 'View full request')]


def _bounded_buttons(entry: InboxEntry, *, is_whole: bool) -> list[Block]:
    options = answer_options(entry.request, is_whole=is_whole)
    if 'session' not in options.spans:
        return []
    buttons: list[Block] = []
    for name, (_, text, covers) in bounded_buttons(entry.request).items():
        short = text if len(text) <= _LONGEST_BUTTON else 'Approve within bounds'
        buttons.append(_button(entry, name, short, confirm=_confirmation(covers)))
    return buttons


def _confirmation(label: str, kind: Literal['session', 'deny_session'] = 'session') -> Block:
    return {
        'title': _label(f'{LABELS[kind]}?'),
        'text': {'type': 'mrkdwn', 'text': _covered(label), 'verbatim': True},
        'confirm': _label(LABELS['approve' if kind == 'session' else 'deny']),
        'deny': _label('Back'),
    }


def bounded_buttons(request: ApprovalRequest) -> dict[str, tuple[str, str, str]]:
    """Return the bounded approvals that a message offers, as `bounded_options` does, by the id of their button. Each of
    them is shown whole in the dialog of its button.
    """
    offered = zip(BOUNDED, bounded_options(request), strict=False)
    return {name: option for name, option in offered if _fits_dialog(option[2])}


def _covered(label: str) -> str:
    """Return a text that describes what an approval or a denial for the session covers."""
    return '\n'.join(['Approvers are not asked again for:', *sections([(False, label)])])


def _fits_dialog(label: str) -> bool:
    return len(_covered(label)) <= _LONGEST_CONFIRMATION


def _is_dialog_whole(request: ApprovalRequest) -> bool:
    return _fits_dialog(remember_choices(request)[0][1])


def _outcome_of(entry: InboxEntry) -> str:
    """Return the outcome of a settled request in Slack's markup."""
    when = '' if entry.settled_at is None else f' at {_time_of(entry.settled_at)}'
    if entry.answer is None:
        word, why = outcome_words(entry.state, None)
        return f'*{word}*{when}{why}'
    word, how = outcome_words(entry.state, entry.answer.decision)
    return f'*{word}*{how}; answered by {_person(entry.answer.by)}{entry.vote}{when}'


def _person(by: Approver) -> str:
    """Return the approver's name and id as inline code, because a mention would notify people."""
    return code(by.id) if by.name is None else f'{code(by.name)} ({code(by.id)})'


def _position(request: ApprovalRequest) -> str:
    place = place_in_response(request)
    return '' if place is None else plain(f' ({place[0]:,} of {place[1]:,})')


def _time_of(moment: datetime) -> str:
    return f'{moment:%H:%M:%S} UTC'


def is_editable(request: ApprovalRequest) -> bool:
    """Return whether an approver may edit the arguments, and Slack's field can hold them."""
    written = json.dumps(draft_of(request), indent=2, ensure_ascii=True)
    return bool(request.args) and request.allows('edit') and len(written) <= LONGEST_NOTE


def target_of(entry: InboxEntry, page: int = 0) -> str:
    """Return the value of a button; see `Press.target`."""
    return f'{entry.id}.{entry.digest}.{page}'


def call_of(entry: InboxEntry) -> Block:
    """Build the line that names the tool of a request."""
    return section(f'*Call of* {code(entry.request.tool_name)}')


def _labelled(label: str, texts: Sequence[str]) -> list[Block]:
    return [section(text if number else f'*{label}*\n{text}') for number, text in enumerate(texts)]


def section(text: str) -> Block:
    """Build a section of text in Slack's markup. `verbatim` keeps Slack from turning names and addresses into links."""
    return {'type': 'section', 'text': {'type': 'mrkdwn', 'text': text, 'verbatim': True}}


def _small(text: str) -> Block:
    return {'type': 'context', 'elements': [{'type': 'mrkdwn', 'text': text, 'verbatim': True}]}


def _actions(buttons: list[Block]) -> Block:
    return {'type': 'actions', 'elements': buttons}


def _button(entry: InboxEntry, name: str, label: str, *, page: int = 0, **more: Any) -> Block:
    return {'type': 'button', 'action_id': name, 'text': _label(label), 'value': target_of(entry, page), **more}


def _label(text: str) -> Block:
    return {'type': 'plain_text', 'text': text, 'emoji': False}
