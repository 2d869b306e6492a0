"""The messages of the bot: one for each open request, and each shows what became of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import aclosing
from datetime import datetime, timedelta

from tool_approval.inbox import Inbox, InboxEntry, InboxUnavailable, UnknownRequest

from .channel import SlackChannel, SlackRefused, SlackUnavailable, Sleep

LOOK_BACK = timedelta(days=2)
"""Chosen: a bot that was away for a weekend finds what was settled meanwhile. What is open it finds however old."""

LONGEST_PAUSE_S = 60.0
"""Chosen: seconds until it is tried again at the latest."""

_CLOCKS = timedelta(minutes=5)
"""Chosen: so much the clocks of Slack and of who posts may differ."""

_log = logging.getLogger('tool_approval')


class MessageSync:
    """Keeps the channel like the inbox. What it knows is found again in both, so nothing is lost with it."""

    def __init__(self, inbox: Inbox, channel: SlackChannel, *, now: Callable[[], datetime], sleep: Sleep) -> None:
        """Show what is in `inbox` in `channel`; `now` and `sleep` are those of `SlackBot`."""
        self._inbox = inbox
        self._channel = channel
        self._now = now
        self._sleep = sleep
        self._messages: dict[str, set[str]] = {}
        self._given_up: set[str] = set()

    async def follow(self) -> None:
        """Post, and update, as long as it is not cancelled. While Slack or the inbox is away, it is tried again.

        Raises:
            InboxError: The inbox is closed, or cannot be trusted.
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
                # Whether the last message was posted is not known, so all is looked up anew.
                _log.error('%s; trying again in %g seconds', error, pause)
            await self._sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_S)

    async def settled(self, entry: InboxEntry, timestamp: str | None = None) -> None:
        """Let the messages of a request show what became of it.

        Args:
            entry: The request.
            timestamp: Of one more message that shows it.

        Raises:
            SlackUnavailable: They may show it or not. It is tried again after the next look at the channel.
        """
        self._given_up.discard(entry.id)
        left = self._messages.pop(entry.id, set[str]())
        if timestamp is not None:
            left.add(timestamp)
        for each in sorted(left):
            try:
                await self._channel.update(each, entry)
            except SlackRefused as error:
                _log.warning('%s; the message stays as it is', error)
            except BaseException:
                self._messages.setdefault(entry.id, set()).update(left)
                raise
            left.discard(each)

    async def _find_again(self) -> None:
        since = self._now() - LOOK_BACK
        for oldest in await self._inbox.open(limit=1):
            since = min(since, oldest.posted_at - _CLOCKS)
        async for request_id, timestamp in self._channel.open_messages(since):
            self._messages.setdefault(request_id, set()).add(timestamp)

    async def _changed(self, changed: frozenset[str] | None) -> list[str]:
        if changed is not None:
            return sorted(changed)
        # Those that have a message first: their buttons may not work any more.
        waiting = [entry.id for entry in await self._inbox.open()]
        return [*self._messages, *(request_id for request_id in waiting if request_id not in self._messages)]

    async def _bring_up_to_date(self, request_id: str) -> None:
        try:
            entry = await self._inbox.get(request_id)
        except UnknownRequest:
            # Of another inbox that posts here, or forgotten: either way nothing is known about it.
            self._messages.pop(request_id, None)
            return
        if entry.state != 'pending':
            await self.settled(entry)
        elif request_id not in self._messages and request_id not in self._given_up:
            await self._post(entry)

    async def _post(self, entry: InboxEntry) -> None:
        try:
            timestamp = await self._channel.post(entry)
        except SlackRefused as error:
            # One that Slack does not take must not keep the others from being shown. Other channels show it.
            _log.error('%s; a request for %r is not shown there', error, entry.request.tool_name)
            self._given_up.add(entry.id)
        else:
            self._messages[entry.id] = {timestamp}
