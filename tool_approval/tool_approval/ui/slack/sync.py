"""Synchronize the bot's messages in a channel with the requests in the inbox."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import aclosing
from datetime import datetime, timedelta

from tool_approval.inbox import Inbox, InboxEntry, InboxUnavailable, UnknownRequest

from .channel import SlackChannel, SlackRefused, SlackUnavailable, Sleep

LOOK_BACK = timedelta(days=2)
"""After a restart, the bot looks this far back for messages of settled requests, to update them. Two days cover a
weekend. For messages of open requests there is no limit."""

LONGEST_PAUSE_S = 60.0
"""Maximum seconds between retries."""

_CLOCKS = timedelta(minutes=5)
"""Allowed difference between Slack's clock and the clock of this process."""

_log = logging.getLogger('tool_approval')


class MessageSync:
    """Posts and updates one message for each request, and one more each time that others may answer, too.

    After a restart, the state is read from Slack and the inbox.
    """

    def __init__(self, inbox: Inbox, channel: SlackChannel, *, now: Callable[[], datetime], sleep: Sleep) -> None:
        """Show the requests of `inbox` in `channel`. For `now` and `sleep`, see `SlackBot`."""
        self._inbox = inbox
        self._channel = channel
        self._now = now
        self._sleep = sleep
        self._messages: dict[str, set[str]] = {}
        self._others: dict[str, int] = {}
        self._given_up: set[str] = set()

    async def follow(self) -> None:
        """Post and update messages until cancelled, and retry while Slack or the inbox is unavailable.

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
            except (SlackUnavailable, InboxUnavailable) as error:
                # The last message may or may not have been posted, so the channel is read again.
                _log.error('%s; trying again in %g seconds', error, pause)
            await self._sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_S)

    async def settled(self, entry: InboxEntry, timestamp: str | None = None) -> None:
        """Update the messages of a settled request with its outcome.

        Args:
            entry: The settled request.
            timestamp: Timestamp of a message to update in addition to the messages that the bot knows.

        Raises:
            SlackUnavailable: Some messages may not have been updated. The bot reads the channel again and retries.
        """
        self._given_up.discard(entry.id)
        left = self._messages.pop(entry.id, set[str]())
        self._others.pop(entry.id, None)
        if timestamp is not None:
            left.add(timestamp)
        for each in sorted(left):
            try:
                await self._channel.update(each, entry)
            except SlackRefused as error:
                _log.warning('%s; the Slack message keeps its old content', error)
            except BaseException:
                self._messages.setdefault(entry.id, set()).update(left)
                raise
            left.discard(each)

    async def _find_again(self) -> None:
        since = self._now() - LOOK_BACK
        for oldest in await self._inbox.open(limit=1):
            since = min(since, oldest.posted_at - _CLOCKS)
        async for request_id, timestamp, others in self._channel.open_messages(since):
            self._messages.setdefault(request_id, set()).add(timestamp)
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
            timestamp = await self._channel.post(entry, others)
        except SlackRefused as error:
            # A message that Slack refuses must not stop the others. Other UIs still show the request.
            _log.error('%s; Slack does not show a request for %r', error, entry.request.tool_name)
            self._given_up.add(entry.id)
        else:
            self._messages.setdefault(entry.id, set()).add(timestamp)
            self._others[entry.id] = others
