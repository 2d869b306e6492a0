"""Read a press of a button, check who pressed, and answer the request."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pydantic import AliasChoices, AliasPath, BaseModel, Field, ValidationError

from tool_approval.answering import NotOffered, decision_on
from tool_approval.core.decision import ApprovalDecision
from tool_approval.core.request import ApprovalRequest
from tool_approval.inbox import (
    AlreadySettled,
    AnswerRefused,
    Approver,
    ApproverRule,
    Inbox,
    InboxEntry,
    InboxUnavailable,
    NotAnApprover,
    refusal_text,
)
from tool_approval.inbox.approvers import LONGEST_NAME

from .blocks import (
    APPROVE,
    DENY,
    LONGEST_NOTE,
    NOTE,
    NOTE_BLOCK,
    NOTE_FORM,
    NOTE_INPUT,
    SESSION,
    full_view,
    is_whole_in_message,
    note_form,
)
from .channel import SlackChannel, SlackRefused, SlackUnavailable
from .mrkdwn import code, plain
from .sync import MessageSync

REMEMBERED_S = 60.0
"""Chosen: seconds for which it is remembered who is in a user group. Who leaves one can answer for so long."""

_GROUP = re.compile(r'S[A-Z0-9]{2,40}')
"""Ids of Slack's user groups."""

_NO_ANSWER = 'Slack did not answer in time. Nothing was changed; press again.'

_log = logging.getLogger('tool_approval')


class Press(BaseModel):
    """A press of a button, or of the form for a note, as Slack sends it."""

    actions: list[object] = Field(default=[], max_length=1)
    action: str = Field(
        validation_alias=AliasChoices(AliasPath('actions', 0, 'action_id'), AliasPath('view', 'callback_id'))
    )
    """What the button or the form is called."""
    target: str = Field(
        validation_alias=AliasChoices(AliasPath('actions', 0, 'value'), AliasPath('view', 'private_metadata')),
        pattern=r'^[A-Za-z0-9_-]{43}\.[0-9a-f]{64}\.[0-9]{1,6}$',
    )
    """A request, the digest of what was shown of it, and a page of the full view."""
    user_id: str = Field(validation_alias=AliasPath('user', 'id'), min_length=1, max_length=LONGEST_NAME)
    user_name: str | None = Field(
        default=None, validation_alias=AliasChoices(AliasPath('user', 'name'), AliasPath('user', 'username'))
    )
    """What Slack calls the person. Hostile text: people choose it."""
    note: str | None = Field(
        default=None,
        validation_alias=AliasPath('view', 'state', 'values', NOTE_BLOCK, NOTE_INPUT, 'value'),
        max_length=LONGEST_NOTE,
    )
    """What was written into the form."""
    trigger_id: str = ''
    """Opens a view for the person, within three seconds."""
    timestamp: str | None = Field(default=None, validation_alias=AliasPath('container', 'message_ts'))
    """Of the message that the button is in; `None` in a view."""
    view_id: str | None = Field(default=None, validation_alias=AliasPath('container', 'view_id'))
    """Of the view that the button is in; `None` in a message."""

    @property
    def request_id(self) -> str:
        """What was asked about."""
        return self.target.partition('.')[0]


def decision_of(press: Press, request: ApprovalRequest) -> ApprovalDecision:
    """What a press decides.

    Raises:
        NotOffered: The message does not offer it.
    """
    if press.action == SESSION:
        return decision_on(request, approved=True, remember='session', is_whole=is_whole_in_message(request))
    return decision_on(request, approved=press.action == APPROVE, note=(press.note or '').strip())


class People:
    """Knows the persons behind Slack's user ids, and who of them may answer."""

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
            ids: See `SlackBot`.
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
        person_id = user_id if self._ids is None else self._ids.get(user_id)
        # Slack is asked only where the person is not listed by name.
        wanted = frozenset[str]() if user_id in self._rule.users else self._rule.groups
        wanted = wanted.union(*(rule.groups for rule in entry.content.approvers or () if person_id not in rule.users))
        groups = frozenset([group for group in sorted(wanted) if person_id and await self._has(group, user_id)])
        if person_id is None or not self._rule.lists(Approver(id=user_id, groups=groups)):
            raise NotAnApprover(user_id, entry.request.tool_name, 'you are not listed for this channel')
        approver = Approver(id=person_id, name=name, groups=groups)
        entry.check_approver(approver)
        return approver

    async def _has(self, group: str, user_id: str) -> bool:
        if _GROUP.fullmatch(group) is None:
            return False  # a group of another channel, which Slack knows nothing of
        known = self._members.get(group)
        if known is None or self._clock() - known[0] >= REMEMBERED_S:
            known = self._members[group] = (self._clock(), await self._channel.members(group))
        return user_id in known[1]


class ButtonActions:
    """Answers requests for approvers, and refuses others privately."""

    def __init__(self, inbox: Inbox, channel: SlackChannel, messages: MessageSync, people: People) -> None:
        """Put the parts together."""
        self._inbox = inbox
        self._channel = channel
        self._messages = messages
        self._people = people

    async def take(self, ack: Callable[[], Awaitable[object]], body: Mapping[str, Any]) -> None:
        """Take a press. Slack's library calls it, by the names of its parameters.

        Args:
            ack: Confirms to Slack that the press has arrived, which it expects within three seconds.
            body: What Slack has sent.
        """
        await ack()
        try:
            press = Press.model_validate(body)
        except ValidationError:
            # Not its text, which quotes what was sent.
            _log.warning('a press was ignored: it is not that of a button of an approval')
            return
        try:
            await self._carry_out(press)
        except (AnswerRefused, NotOffered, InboxUnavailable) as error:
            await self._tell(press, refusal_text(error, name=code, text=plain))
            if isinstance(error, AlreadySettled):
                await self._refresh(press)
        except (SlackUnavailable, SlackRefused) as error:
            _log.error('%s', error)
            await self._tell(press, _NO_ANSWER)

    async def _carry_out(self, press: Press) -> None:
        request_id, digest, page = press.target.split('.')
        entry = await self._inbox.get(request_id)
        entry.check_open(digest)
        name = (press.user_name or '')[:LONGEST_NAME] or None
        by = await self._people.approver(press.user_id, name, entry)
        if press.action in (APPROVE, SESSION, DENY, NOTE_FORM):
            # In a thread, as below: a request may have megabytes.
            decision = await asyncio.to_thread(decision_of, press, entry.request)
            # Its message is updated when the inbox reports the answer, as of answers given elsewhere.
            await self._inbox.decide(entry.id, decision, by=by, digest=digest)
        elif press.action == NOTE:
            await self._channel.show_view(note_form(entry), trigger_id=press.trigger_id)
        else:
            view = await asyncio.to_thread(full_view, entry, int(page))
            await self._channel.show_view(view, trigger_id=press.trigger_id, view_id=press.view_id)

    async def _tell(self, press: Press, text: str) -> None:
        try:
            await self._channel.whisper(press.user_id, text)
        except (SlackUnavailable, SlackRefused) as error:
            _log.warning('%s; why an answer did not count could not be shown', error)

    async def _refresh(self, press: Press) -> None:
        """A message whose buttons still work although its request is settled: a second one, or an old one."""
        try:
            await self._messages.settled(await self._inbox.get(press.request_id), press.timestamp)
        except (SlackUnavailable, AnswerRefused, InboxUnavailable) as error:
            _log.warning('%s; a message still shows a request as open', error)
