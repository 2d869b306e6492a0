"""What a message and a view show of a request: Slack's blocks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from tool_approval.core.request import ApprovalRequest
from tool_approval.display import display, escape_line, facts, offered_keys, remember_choices, warnings_of
from tool_approval.inbox import (
    AlreadySettled,
    AnswerRefused,
    Approver,
    InboxEntry,
    InboxUnavailable,
    NotAnApprover,
    OtherContent,
    UnknownRequest,
)

from .mrkdwn import code, cut, drawn, plain, sections

_TARGET = re.compile(r'([A-Za-z0-9_-]{43})\.([0-9a-f]{64})\.(\d{1,6})')


@dataclass(frozen=True, kw_only=True)
class ButtonTarget:
    """A request, and what of it was shown."""

    request_id: str
    """Of the request."""
    digest: str
    """Of what was shown. An answer with another digest is refused by the inbox."""
    page: int = 0
    """Of the full view, from 0."""

    def __str__(self) -> str:
        """As the value of a button."""
        return f'{self.request_id}.{self.digest}.{self.page}'

    @classmethod
    def read(cls, value: str) -> Self:
        """What the value of a button says.

        Raises:
            ValueError: It is none of ours.
        """
        found = _TARGET.fullmatch(value)
        if found is None:
            raise ValueError('not the value of a button of an approval')
        return cls(request_id=found[1], digest=found[2], page=int(found[3]))


_SPANS = {'none': '', 'session': ' for this session', 'always': ', always'}


def outcome_of(entry: InboxEntry) -> str:
    """What became of a settled request, in Slack's markup."""
    when = '' if entry.settled_at is None else f' at {time_of(entry.settled_at)}'
    if entry.answer is None:
        why = 'nobody answered in time' if entry.state == 'expired' else 'its run does not wait any more'
        return f'*{entry.state.capitalize()}*{when}: {why}'
    decision = entry.answer.decision
    changed = '' if decision.override_args is None else ' with changed arguments'
    span = _SPANS[decision.remember]
    return f'*{entry.state.capitalize()}*{changed}{span}; answered by {person(entry.answer.by)}{when}'


def person(by: Approver) -> str:
    """Who it is. Never as a mention, which would call them, and which anybody may have written into a name."""
    return code(by.id) if by.name is None else f'{code(by.name)} ({code(by.id)})'


def time_of(moment: datetime) -> str:
    """The time of day, as the records have it."""
    return f'{moment:%H:%M:%S} UTC'


def refusal_of(error: AnswerRefused | InboxUnavailable) -> str:
    """Why an answer was not taken, for the person who gave it."""
    match error:
        case AlreadySettled():
            by = '' if error.by is None else f' by {code(error.by)}'
            when = '' if error.at is None else f' at {time_of(error.at)}'
            return f'Your answer came too late: the request was {error.state}{by}{when}.'
        case NotAnApprover():
            return f'You may not answer this request: {plain(error.problem)}. Nothing was changed.'
        case OtherContent():
            return 'The request shows something else by now. Nothing was changed; look at it again.'
        case UnknownRequest():
            return 'There is no such request in the inbox any more. Nothing was changed.'
        case InboxUnavailable():
            return 'The inbox cannot be reached, so your answer may not have been taken. Look again in a moment.'
        case _:
            return 'The request does not offer this answer. Nothing was changed.'


Block = dict[str, Any]
"""One block of a message or a view, as Slack's reference describes it."""

_MOST_CONTENT = 4
"""Chosen: sections of content in a message, about as much as two screens. Slack takes 50 blocks, and what it takes in
all it does not say."""
_MOST_OF_A_FACT = 2

APPROVE, SESSION, DENY, NOTE, FULL = 'approve', 'approve_session', 'deny', 'deny_note', 'view_full'
"""What the buttons are called."""

_SHOWN_NOTE = 300
"""Chosen, in characters: of a longer note the beginning is shown. The inbox has the whole."""

_LONGEST_CONFIRMATION = 300
"""Source: Slack's reference of the confirmation dialog. Characters of its text."""


@dataclass(frozen=True, kw_only=True)
class Message:
    """A request as it is posted."""

    text: str
    """For notifications, and for people who hear the message."""
    blocks: Sequence[Block]
    """What is drawn."""


@dataclass(frozen=True, kw_only=True)
class _Body:
    blocks: list[Block]
    is_whole: bool


def message_of(entry: InboxEntry) -> Message:
    """A request: who asks for what and why, then buttons while it is open, and what became of it when it is not."""
    request = entry.request
    name = code(request.tool_name)
    body = _body(request)
    if entry.state != 'pending':
        outcome = outcome_of(entry)
        note = None if entry.answer is None else entry.answer.decision.note
        noted = [section(f'*Note*\n{_note(note)}')] if note else []
        return Message(
            text=f'{name}: {outcome}',
            blocks=[section(f'*Call of* {name}{_position(request)}'), *body.blocks, section(outcome), *noted],
        )
    heading = section(f'*Approve this call of* {name}*?*{_position(request)}')
    ends = entry.content.expires_at
    until = [] if ends is None else [context(f'Expires at {time_of(ends)}, and is denied then.')]
    actions: Block = {'type': 'actions', 'elements': _buttons(entry, is_whole=body.is_whole)}
    return Message(text=f'Approval needed: {name}', blocks=[heading, *body.blocks, *until, actions])


def is_session_offered(request: ApprovalRequest) -> bool:
    """Whether an approval may hold for the session: only if the message shows all that it would cover."""
    return _offers_session(request, is_whole=_body(request).is_whole)


def _offers_session(request: ApprovalRequest, *, is_whole: bool) -> bool:
    return 's' in offered_keys(request, is_whole=is_whole) and len(_covered(request)) <= _LONGEST_CONFIRMATION


def section(text: str) -> Block:
    """A text in Slack's markup. Without `verbatim`, Slack would make links of whatever looks like one."""
    return {'type': 'section', 'text': {'type': 'mrkdwn', 'text': text, 'verbatim': True}}


def context(text: str) -> Block:
    """A text of ours in small print."""
    return {'type': 'context', 'elements': [{'type': 'mrkdwn', 'text': text, 'verbatim': True}]}


def button(name: str, label: str, target: ButtonTarget, **more: Any) -> Block:
    """A button that says what it is about."""
    text = {'type': 'plain_text', 'text': label, 'emoji': False}
    return {'type': 'button', 'action_id': name, 'text': text, 'value': str(target), **more}


def _body(request: ApprovalRequest) -> _Body:
    """What a person looks at before deciding."""
    shown = display(request)
    is_whole = shown.is_whole
    blocks: list[Block] = []
    for label, text in facts(request):
        texts, is_all = cut(sections([(False, text)]), _MOST_OF_A_FACT)
        blocks += [section(f'*{label}*\n{texts[0]}'), *map(section, texts[1:])]
        is_whole = is_whole and is_all
    # They are few, and short, so all of them are shown.
    warnings = sections((False, f'! {text}') for text in warnings_of(request))
    if warnings:
        blocks += [section(f'*Warning*\n{warnings[0]}'), *map(section, warnings[1:])]
    texts, is_all = cut(sections(drawn(shown.lines)), _MOST_CONTENT)
    return _Body(blocks=[*blocks, *map(section, texts)], is_whole=is_whole and is_all)


def _buttons(entry: InboxEntry, *, is_whole: bool) -> list[Block]:
    target = ButtonTarget(request_id=entry.id, digest=entry.digest)
    buttons = [button(APPROVE, 'Approve', target, style='primary')]
    if _offers_session(entry.request, is_whole=is_whole):
        buttons.append(button(SESSION, 'Approve for this session', target, confirm=_confirmation(entry.request)))
    buttons += [button(DENY, 'Deny', target, style='danger'), button(NOTE, 'Deny with a note', target)]
    if not is_whole:
        buttons.append(button(FULL, 'View full', target))
    return buttons


def _confirmation(request: ApprovalRequest) -> Block:
    return {
        'title': {'type': 'plain_text', 'text': 'Approve for this session?', 'emoji': False},
        'text': {'type': 'mrkdwn', 'text': _covered(request), 'verbatim': True},
        'confirm': {'type': 'plain_text', 'text': 'Approve', 'emoji': False},
        'deny': {'type': 'plain_text', 'text': 'Back', 'emoji': False},
    }


def _covered(request: ApprovalRequest) -> str:
    """What a remembered approval covers: the very same payload."""
    return '\n'.join(['Nobody is asked again for:', *sections([(False, remember_choices(request)[0][1])])])


def _note(note: str) -> str:
    told = note if len(note) <= _SHOWN_NOTE else f'{note[:_SHOWN_NOTE]}...'
    return sections([(False, escape_line(told))])[0]


def _position(request: ApprovalRequest) -> str:
    index, count = request.metadata.get('position'), request.metadata.get('batch_size')
    is_one_of_many = isinstance(index, int) and isinstance(count, int) and count > 1
    return plain(f' ({index:,} of {count:,})') if is_one_of_many else ''


NOTE_FORM = 'deny_with_note'
"""What the form is called."""

NOTE_BLOCK, NOTE_INPUT = 'note', 'text'
"""Where in the form the note stands."""

PREVIOUS, NEXT = 'previous_page', 'next_page'
"""What the buttons of the full view are called."""

_PER_PAGE = 12
"""Chosen: sections. Slack takes 100 blocks in a view, but at most 250 kB, and an escaped character may take 12 bytes."""

LONGEST_NOTE = 3000
"""Source: Slack's reference of the plain text input. Characters."""

View = Mapping[str, Any]


def full_view(entry: InboxEntry, page: int) -> View:
    """A page of everything there is to see of a request; the last one, if there are not so many."""
    texts = sections(drawn(display(entry.request, whole=True).lines))
    pages = [texts[start : start + _PER_PAGE] for start in range(0, len(texts), _PER_PAGE)]
    page = min(page, len(pages) - 1)
    blocks = [section(f'*Call of* {code(entry.request.tool_name)}'), *map(section, pages[page])]
    turning = [
        button(name, label, ButtonTarget(request_id=entry.id, digest=entry.digest, page=other))
        for name, label, other in ((PREVIOUS, 'Previous page', page - 1), (NEXT, 'Next page', page + 1))
        if 0 <= other < len(pages)
    ]
    if turning:
        blocks += [section(f'Page {page + 1:,} of {len(pages):,}'), {'type': 'actions', 'elements': turning}]
    return {'type': 'modal', 'title': _label('The whole request'), 'close': _label('Close'), 'blocks': blocks}


def note_form(entry: InboxEntry) -> View:
    """Asks for a note. What it is about comes back with it, signed by Slack as everything."""
    field: Block = {
        'type': 'input',
        'block_id': NOTE_BLOCK,
        'label': _label('What shall the model be told?'),
        'element': {
            'type': 'plain_text_input',
            'action_id': NOTE_INPUT,
            'multiline': True,
            'max_length': LONGEST_NOTE,
        },
    }
    return {
        'type': 'modal',
        'callback_id': NOTE_FORM,
        'private_metadata': str(ButtonTarget(request_id=entry.id, digest=entry.digest)),
        'title': _label('Deny with a note'),
        'submit': _label('Deny'),
        'close': _label('Back'),
        'blocks': [section(f'*Call of* {code(entry.request.tool_name)}'), field],
    }


def _label(text: str) -> Block:
    return {'type': 'plain_text', 'text': text, 'emoji': False}
