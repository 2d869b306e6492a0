"""What a press of a button does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeVar

from tool_approval.core.decision import ApprovalDecision
from tool_approval.inbox import (
    AlreadySettled,
    AnswerRefused,
    Approver,
    Inbox,
    InboxEntry,
    InboxUnavailable,
    InvalidAnswer,
    OtherContent,
)

from .blocks import is_session_offered
from .board import Board
from .channel import SlackChannel
from .errors import SlackRefused, SlackUnavailable
from .people import People
from .press import Press, read_note, read_press
from .views import full_view, note_form
from .wording import refusal_of

Body = Mapping[str, Any]
"""What Slack sends."""

Act = Callable[[Press, InboxEntry, Approver], Awaitable[None]]
"""What is done for somebody who may answer an open request."""

Read = TypeVar('Read')

_UNTOLD = 'Slack did not answer in time. Nothing was changed; press again.'

_log = logging.getLogger('tool_approval')


class Acknowledge(Protocol):
    """Tells Slack that a press has arrived, which it wants to hear within three seconds."""

    def __call__(self) -> Awaitable[object]:
        """Say so."""
        ...  # pragma: no cover - a protocol has no body


class Presses:
    """Answers requests for those who may, and tells the others privately. Slack's library calls it."""

    def __init__(self, inbox: Inbox, channel: SlackChannel, board: Board, people: People) -> None:
        """Put the parts together."""
        self._inbox = inbox
        self._channel = channel
        self._board = board
        self._people = people

    async def approve(self, ack: Acknowledge, body: Body) -> None:
        """Approve."""
        await ack()
        await self._answer(_read(read_press, body), ApprovalDecision(approved=True))

    async def approve_session(self, ack: Acknowledge, body: Body) -> None:
        """Approve this and the same for the session."""
        await ack()
        await self._answer(_read(read_press, body), ApprovalDecision(approved=True, remember='session'))

    async def deny(self, ack: Acknowledge, body: Body) -> None:
        """Deny."""
        await ack()
        await self._answer(_read(read_press, body), ApprovalDecision(approved=False))

    async def take_note(self, ack: Acknowledge, body: Body) -> None:
        """Deny, with what was written into the form."""
        await ack()
        press, note = _read(read_note, body) or (None, None)
        await self._answer(press, ApprovalDecision(approved=False, note=note))

    async def ask_note(self, ack: Acknowledge, body: Body) -> None:
        """Open the form for a note."""
        await ack()

        async def act(press: Press, entry: InboxEntry, by: Approver) -> None:
            await self._channel.open_view(press.trigger_id, note_form(entry))

        await self._act(_read(read_press, body), act)

    async def view_full(self, ack: Acknowledge, body: Body) -> None:
        """Show the whole of a request to the person, or another page of it."""
        await ack()

        async def act(press: Press, entry: InboxEntry, by: Approver) -> None:
            # In a thread: a request may have megabytes.
            view = await asyncio.to_thread(full_view, entry, press.target.page)
            if press.view_id is None:
                await self._channel.open_view(press.trigger_id, view)
            else:
                await self._channel.update_view(press.view_id, view)

        await self._act(_read(read_press, body), act)

    async def _answer(self, press: Press | None, decision: ApprovalDecision) -> None:
        async def act(press: Press, entry: InboxEntry, by: Approver) -> None:
            if decision.remember != 'none' and not await asyncio.to_thread(is_session_offered, entry.request):
                raise InvalidAnswer('it cannot be remembered')
            # The message is updated by the board, which hears of it from the inbox as of answers given elsewhere.
            await self._inbox.decide(entry.id, decision, by=by, digest=press.target.digest)

        await self._act(press, act)

    async def _act(self, press: Press | None, act: Act) -> None:
        if press is None:
            return
        try:
            entry = await self._inbox.get(press.target.request_id)
            if entry.state != 'pending':
                raise _too_late(entry)
            if entry.digest != press.target.digest:
                raise OtherContent
            await act(press, entry, await self._people.approver(press.user_id, press.user_name, entry))
        except AlreadySettled as error:
            await self._tell(press, refusal_of(error))
            await self._refresh(press)
        except (AnswerRefused, InboxUnavailable) as error:
            await self._tell(press, refusal_of(error))
        except (SlackUnavailable, SlackRefused) as error:
            _log.error('%s', error)
            await self._tell(press, _UNTOLD)

    async def _tell(self, press: Press, text: str) -> None:
        try:
            await self._channel.whisper(press.user_id, text)
        except (SlackUnavailable, SlackRefused) as error:
            _log.warning('%s; somebody was not told why their answer did not count', error)

    async def _refresh(self, press: Press) -> None:
        """A message whose buttons still work although its request is settled: a second one, or an old one."""
        try:
            await self._board.settled(await self._inbox.get(press.target.request_id), press.timestamp)
        except (SlackUnavailable, AnswerRefused, InboxUnavailable) as error:
            _log.warning('%s; a message still shows a request as open', error)


def _read(read: Callable[[Body], Read], body: Body) -> Read | None:
    try:
        return read(body)
    except ValueError as error:
        # Ours, which does not quote what was sent.
        _log.warning('%s', error)
        return None


def _too_late(entry: InboxEntry) -> AlreadySettled:
    assert entry.state != 'pending', 'asked only about what is settled'
    return AlreadySettled(entry.state, by=None if entry.answer is None else entry.answer.by.id, at=entry.settled_at)
