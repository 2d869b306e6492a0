"""Show an inbox in a chat: post and update one message for each request, and check who presses its buttons."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import Protocol

from tool_approval.core.approvers import Approver, ApproverRule
from tool_approval.core.decision import is_reserved
from tool_approval.core.errors import ApprovalError, check_type

from .entry import InboxEntry
from .errors import InboxUnavailable, NotAnApprover, UnknownRequest
from .inbox import Inbox, check_inbox

Sleep = Callable[[float], Awaitable[None]]

LOOK_BACK = timedelta(days=2)
"""After a restart, the bot looks this far back for messages of settled requests, to update them. Two days cover a
weekend. For messages of open requests there is no limit."""

LONGEST_PAUSE_S = 60.0
"""Maximum seconds between retries."""

_CLOCKS = timedelta(minutes=5)
"""Allowed difference between the chat's clock and the clock of this process."""

_log = logging.getLogger('tool_approval')


class ChatError(ApprovalError):
    """A call to the API of a chat failed."""

    def __init__(self, chat: str, call: str, problem: str) -> None:
        """Set the message.

        Args:
            chat: Name of the chat, such as `Slack`.
            call: Name of the call to its API.
            problem: Error code of the chat, or a description.
        """
        self.chat = chat
        self.call = call
        self.problem = problem
        super().__init__(f'{chat} call {call} failed: {problem}')


class ChatUnavailable(ChatError):
    """The chat cannot be reached, is too busy, or denies the bot access. The call may or may not have had an effect."""


class ChatRefused(ChatError):
    """The chat permanently refuses this message, so the call had no effect."""


class ChatChannel(Protocol):
    """A channel of a chat, in which a bot shows requests."""

    @property
    def chat(self) -> str:
        """Name of the chat, for the log."""
        ...

    async def post(self, entry: InboxEntry, others: int) -> str:
        """Post a request, and return the id of the message. Raises as `update` does.

        Args:
            entry: The request.
            others: How many of `entry.others_at` have passed.
        """
        ...

    async def update(self, message_id: str, entry: InboxEntry) -> None:
        """Update a message to show the current state of the request.

        Raises:
            ChatRefused: The chat permanently refuses this message.
            ChatUnavailable: The message may or may not have been updated.
        """
        ...

    def open_messages(self, since: datetime) -> AsyncGenerator[tuple[str, str, int]]:
        """Yield the request id, the message id and `others`, or less, of each of the bot's messages that show an open
        request.

        Raises:
            ChatUnavailable: The messages cannot be listed.
        """
        ...


def check_people(inbox: Inbox, approvers: ApproverRule, people: Mapping[str, str] | None) -> None:
    """Check the arguments that every bot takes.

    Raises:
        TypeError: `inbox` is not an `Inbox`, or `approvers` is not an `ApproverRule`.
        ValueError: No approver is listed, the rule says more than who may answer, or an id in `people` is the name of a
            rule.
    """
    check_inbox(inbox)
    check_type('approvers', approvers, 'an `ApproverRule`', ApproverRule)
    if not approvers.users and not approvers.groups:
        raise ValueError('`approvers` must list at least one user or group')
    if approvers != ApproverRule(users=approvers.users, groups=approvers.groups):
        raise ValueError('`approvers` of a bot has only users and groups; say the rest with `InboxUI(approvers=...)`')
    for person in filter(is_reserved, (people or {}).values()):
        raise ValueError(f'{person!r} in `people` is the name of a rule; use another id')


def approver_of(
    entry: InboxEntry, user: Approver, *, approvers: ApproverRule, people: Mapping[str, str] | None
) -> Approver:
    """Check that a user of a chat may answer a request, and return the approver.

    Args:
        entry: The request.
        user: The user, with the chat's ids of the user and of groups.
        approvers: Users and groups of the chat that may answer.
        people: Maps the chat's user ids to approver ids. Users without an entry may not answer. `None` uses the chat's
            ids.

    Raises:
        NotAnApprover: The person is not allowed to answer the request.
    """
    person_id = user.id if people is None else people.get(user.id)
    if person_id is None or not approvers.lists(user):
        raise NotAnApprover(user.id, entry.request.tool_name, 'only approvers listed for this channel may answer')
    approver = Approver(id=person_id, name=user.name, groups=user.groups)
    entry.check_approver(approver)
    return approver


class MessageSync:
    """Posts and updates one message for each request, and one more each time that others may answer, too.

    After a restart, the state is read from the chat and the inbox.
    """

    def __init__(
        self, inbox: Inbox, channel: ChatChannel, *, now: Callable[[], datetime], sleep: Sleep = asyncio.sleep
    ) -> None:
        """Show the requests of `inbox` in `channel`. `now` returns the current time, and `sleep` waits for seconds."""
        self._inbox = inbox
        self._channel = channel
        self._now = now
        self._sleep = sleep
        self._messages: dict[str, set[str]] = {}
        self._others: dict[str, int] = {}
        self._given_up: set[str] = set()

    async def follow(self) -> None:
        """Post and update messages until cancelled, and retry while the chat or the inbox is unavailable.

        Raises:
            InboxError: The inbox is closed or cannot be trusted.
        """
        pause = 1.0
        while True:
            try:
                await self._find_again()
                async with aclosing(self._inbox.changes()) as changes:
                    async for changed in changes:
                        for request_id in await self._changed(changed):
                            await self._bring_up_to_date(request_id)
                        pause = 1.0
            except (ChatUnavailable, InboxUnavailable) as error:
                # The last message may or may not have been posted, so the channel is read again.
                _log.error('%s; trying again in %g seconds', error, pause)
            await self._sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_S)

    async def settled(self, entry: InboxEntry, message_id: str | None = None) -> None:
        """Update the messages of a settled request with its outcome.

        Args:
            entry: The settled request.
            message_id: Id of a message to update in addition to the messages that the bot knows.

        Raises:
            ChatUnavailable: Some messages may not have been updated. The bot reads the channel again and retries.
        """
        self._given_up.discard(entry.id)
        left = self._messages.pop(entry.id, set[str]())
        self._others.pop(entry.id, None)
        if message_id is not None:
            left.add(message_id)
        for each in sorted(left):
            try:
                await self._channel.update(each, entry)
            except ChatRefused as error:
                _log.warning('%s; the %s message keeps its old content', error, self._channel.chat)
            except BaseException:
                self._messages.setdefault(entry.id, set()).update(left)
                raise
            left.discard(each)

    async def _find_again(self) -> None:
        since = self._now() - LOOK_BACK
        for oldest in await self._inbox.open(limit=1):
            since = min(since, oldest.posted_at - _CLOCKS)
        async for request_id, message_id, others in self._channel.open_messages(since):
            self._messages.setdefault(request_id, set()).add(message_id)
            self._others[request_id] = max(others, self._others.get(request_id, 0))

    async def _changed(self, changed: frozenset[str] | None) -> list[str]:
        if changed is not None:
            return sorted(changed)
        # Requests with a message come first: their buttons may no longer work.
        waiting = [entry.id for entry in await self._inbox.open()]
        return [*self._messages, *(request_id for request_id in waiting if request_id not in self._messages)]

    async def _bring_up_to_date(self, request_id: str) -> None:
        try:
            entry = await self._inbox.get(request_id)
        except UnknownRequest:
            # The request was pruned, or belongs to another inbox that posts to this channel.
            self._messages.pop(request_id, None)
            self._others.pop(request_id, None)
            return
        others = sum(at <= self._now() for at in entry.others_at)
        if entry.state != 'pending':
            await self.settled(entry)
        elif others > self._others.get(request_id, -1) and request_id not in self._given_up:
            await self._post(entry, others)

    async def _post(self, entry: InboxEntry, others: int) -> None:
        try:
            message_id = await self._channel.post(entry, others)
        except ChatRefused as error:
            # A message that the chat refuses must not stop the others. Other UIs still show the request.
            _log.error('%s; %s does not show a request for %r', error, self._channel.chat, entry.request.tool_name)
            self._given_up.add(entry.id)
        else:
            self._messages.setdefault(entry.id, set()).add(message_id)
            self._others[entry.id] = others
