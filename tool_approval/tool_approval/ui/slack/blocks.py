"""A request as a message: Slack's blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tool_approval.core.request import ApprovalRequest
from tool_approval.display import display, escape_line, facts, offered_keys, remember_choices, warnings_of
from tool_approval.inbox import InboxEntry

from .mrkdwn import code, cut, drawn, plain, sections
from .target import Target
from .wording import outcome_of, time_of

Block = dict[str, Any]
"""One block of a message or a view, as Slack's reference describes it."""

_MOST_CONTENT = 4
"""Chosen: sections of content in a message, about as much as two screens. Slack takes 50 blocks, and what it takes in
all it does not say."""
_MOST_OF_A_FACT = 2

APPROVE, SESSION, DENY, NOTE, FULL = 'approve', 'approve_session', 'deny', 'deny_note', 'view_full'
"""What the buttons are called."""

_LONGEST_NOTE = 300
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


def button(name: str, label: str, target: Target, **more: Any) -> Block:
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
    target = Target(request_id=entry.id, digest=entry.digest)
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
    told = note if len(note) <= _LONGEST_NOTE else f'{note[:_LONGEST_NOTE]}...'
    return sections([(False, escape_line(told))])[0]


def _position(request: ApprovalRequest) -> str:
    index, count = request.metadata.get('position'), request.metadata.get('batch_size')
    is_one_of_many = isinstance(index, int) and isinstance(count, int) and count > 1
    return plain(f' ({index:,} of {count:,})') if is_one_of_many else ''
