"""Read a press of a button, check who pressed, and answer the request."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, Field, ValidationError

from tool_approval.core.decision import ApprovalDecision
from tool_approval.inbox import (
    AlreadySettled,
    AnswerRefused,
    Approver,
    ApproverRule,
    Inbox,
    InboxEntry,
    InboxUnavailable,
    InvalidAnswer,
    NotAnApprover,
    OtherContent,
)
from tool_approval.inbox.approvers import LONGEST_NAME

from .blocks import (
    LONGEST_NOTE,
    NOTE_BLOCK,
    NOTE_INPUT,
    ButtonTarget,
    full_view,
    is_session_offered,
    note_form,
    refusal_of,
)
from .channel import SlackChannel, SlackRefused, SlackUnavailable
from .sync import MessageSync

_Model = TypeVar('_Model', bound=BaseModel)


@dataclass(frozen=True, kw_only=True)
class Press:
    """Who has pressed, where, and what it was about."""

    user_id: str
    """Slack's id of the person."""
    user_name: str | None
    """What Slack calls the person. Hostile text: people choose it."""
    target: ButtonTarget
    """What the button was about."""
    trigger_id: str = ''
    """Opens a view for the person, within three seconds."""
    timestamp: str | None = None
    """Of the message that the button is in; `None` in a view."""
    view_id: str | None = None
    """Of the view that the button is in; `None` in a message."""


class _User(BaseModel):
    id: str = Field(min_length=1, max_length=LONGEST_NAME)
    name: str | None = None
    username: str | None = None


class _Action(BaseModel):
    value: str = Field(max_length=2000)


class _Container(BaseModel):
    message_ts: str | None = None
    view_id: str | None = None


class _Press(BaseModel):
    user: _User
    actions: list[_Action] = Field(min_length=1, max_length=1)
    trigger_id: str = ''
    container: _Container = _Container()


class _Input(BaseModel):
    value: str | None = Field(default=None, max_length=LONGEST_NOTE)


class _FormState(BaseModel):
    values: dict[str, dict[str, _Input]]


class _View(BaseModel):
    private_metadata: str = Field(max_length=3000)
    state: _FormState


class _Form(BaseModel):
    user: _User
    view: _View


def read_press(body: Mapping[str, Any]) -> Press:
    """What a press says.

    Raises:
        ValueError: It is not one of a button of ours.
    """
    read = _read(_Press, body)
    return Press(
        user_id=read.user.id,
        user_name=_name(read.user),
        target=ButtonTarget.read(read.actions[0].value),
        trigger_id=read.trigger_id,
        timestamp=read.container.message_ts,
        view_id=read.container.view_id,
    )


def read_note(body: Mapping[str, Any]) -> tuple[Press, str | None]:
    """What a form with a note says, and the note; `None` if nothing was written.

    Raises:
        ValueError: It is not our form.
    """
    read = _read(_Form, body)
    written = read.view.state.values.get(NOTE_BLOCK, {}).get(NOTE_INPUT, _Input()).value
    press = Press(
        user_id=read.user.id, user_name=_name(read.user), target=ButtonTarget.read(read.view.private_metadata)
    )
    return press, (written or '').strip() or None


def _read(kind: type[_Model], body: Mapping[str, Any]) -> _Model:
    try:
        return kind.model_validate(body)
    except ValidationError:
        # Not pydantic's own, whose text quotes what was sent; it is logged.
        raise ValueError('this is no press of a button of an approval') from None


def _name(user: _User) -> str | None:
    return (user.name or user.username or '')[:LONGEST_NAME] or None


REMEMBERED_S = 60.0
"""Chosen: seconds for which it is remembered who is in a user group. Who leaves one can answer for so long."""

_GROUP = re.compile(r'S[A-Z0-9]{2,40}')
"""Ids of Slack's user groups."""

_NOT_LISTED = 'you are not listed for this channel'


class People:
    """Knows the persons behind Slack's user ids."""

    def __init__(
        self,
        channel: SlackChannel,
        rule: ApproverRule,
        ids: Mapping[str, str] | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Let in whom a rule lists.

        Args:
            channel: Where to ask who is in a user group.
            rule: Slack's ids of users and of user groups.
            ids: By Slack's user id, the id that the person has elsewhere. Who is not in it is let in by nothing.
            clock: Seconds that never go back.
        """
        self._channel = channel
        self._rule = rule
        self._ids = ids
        self._clock = clock
        self._members: dict[str, tuple[float, frozenset[str]]] = {}

    async def approver(self, user_id: str, name: str | None, entry: InboxEntry) -> Approver:
        """The person, if they may answer a request.

        Args:
            user_id: Slack's id, from a request that Slack has signed.
            name: What Slack calls the person.
            entry: The request.

        Raises:
            NotAnApprover: They may not; it says why.
            SlackUnavailable: Slack does not say who is in a group.
        """
        tool_name = entry.request.tool_name
        person_id = user_id if self._ids is None else self._ids.get(user_id)
        if person_id is None:
            raise NotAnApprover(user_id, tool_name, _NOT_LISTED)
        # Slack is asked only where the person is not listed by name.
        wanted = frozenset[str]() if user_id in self._rule.users else self._rule.groups
        wanted = wanted.union(*(rule.groups for rule in entry.content.approvers or () if person_id not in rule.users))
        groups = frozenset([group for group in sorted(wanted) if await self._has(group, user_id)])
        if not self._rule.lists(Approver(id=user_id, groups=groups)):
            raise NotAnApprover(user_id, tool_name, _NOT_LISTED)
        approver = Approver(id=person_id, name=name, groups=groups)
        entry.check_approver(approver)
        return approver

    async def _has(self, group: str, user_id: str) -> bool:
        if _GROUP.fullmatch(group) is None:
            return False  # a group of another channel, which Slack knows nothing of
        known = self._members.get(group)
        if known is None or self._clock() - known[0] >= REMEMBERED_S:
            known = (self._clock(), await self._channel.members(group))
            self._members[group] = known
        return user_id in known[1]


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


class ButtonActions:
    """Answers requests for those who may, and tells the others privately. Slack's library calls it."""

    def __init__(self, inbox: Inbox, channel: SlackChannel, board: MessageSync, people: People) -> None:
        """Put the parts together."""
        self._inbox = inbox
        self._channel = channel
        self._board = board
        self._people = people

    async def approve(self, ack: Acknowledge, body: Body) -> None:
        """Approve."""
        await ack()
        await self._answer(_understood(read_press, body), ApprovalDecision(approved=True))

    async def approve_session(self, ack: Acknowledge, body: Body) -> None:
        """Approve this and the same for the session."""
        await ack()
        await self._answer(_understood(read_press, body), ApprovalDecision(approved=True, remember='session'))

    async def deny(self, ack: Acknowledge, body: Body) -> None:
        """Deny."""
        await ack()
        await self._answer(_understood(read_press, body), ApprovalDecision(approved=False))

    async def take_note(self, ack: Acknowledge, body: Body) -> None:
        """Deny, with what was written into the form."""
        await ack()
        press, note = _understood(read_note, body) or (None, None)
        await self._answer(press, ApprovalDecision(approved=False, note=note))

    async def ask_note(self, ack: Acknowledge, body: Body) -> None:
        """Open the form for a note."""
        await ack()

        async def act(press: Press, entry: InboxEntry, by: Approver) -> None:
            await self._channel.open_view(press.trigger_id, note_form(entry))

        await self._act(_understood(read_press, body), act)

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

        await self._act(_understood(read_press, body), act)

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


def _understood(read: Callable[[Body], Read], body: Body) -> Read | None:
    try:
        return read(body)
    except ValueError as error:
        # Ours, which does not quote what was sent.
        _log.warning('%s', error)
        return None


def _too_late(entry: InboxEntry) -> AlreadySettled:
    assert entry.state != 'pending', 'asked only about what is settled'
    return AlreadySettled(entry.state, by=None if entry.answer is None else entry.answer.by.id, at=entry.settled_at)
