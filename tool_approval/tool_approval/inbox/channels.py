"""Ways by which people hear of requests, and by which they may answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from typing import Protocol

from tool_approval.core.threads import call

from .entry import InboxEntry

CHANNEL_S = 30.0
"""Chosen: seconds that a channel may take to tell of one thing. The run does not wait for it."""

_log = logging.getLogger('tool_approval')


class Channel(Protocol):
    """Tells people of requests, such as a chat. To answer, it calls `Inbox.decide`; the first valid answer wins.

    Coroutine functions run on the event loop of the run, plain ones in a thread of their own. What they raise is logged,
    and keeps neither another channel nor the run from going on; so does what takes longer than 30 seconds. For one
    request, `settled` is called after `posted` has ended, whatever became of that; for several, in any order.

    They are called in the process of the run, and not after it has ended. What must survive that, such as the page,
    follows `Inbox.changes` in a process of its own.
    """

    def posted(self, entry: InboxEntry) -> Awaitable[None] | None:
        """Tell of a new request."""
        ...  # pragma: no cover - a protocol has no body

    def settled(self, entry: InboxEntry) -> Awaitable[None] | None:
        """Tell what became of it: `entry.state`, and `entry.answer.by` where a person answered."""
        ...  # pragma: no cover - a protocol has no body


class Announcements:
    """What the channels are told of one request."""

    def __init__(self, channels: Sequence[Channel], entry: InboxEntry) -> None:
        """Tell all of them at once that it was posted, without waiting for them."""
        self._posted = [(channel, asyncio.ensure_future(_tell(channel, 'posted', entry))) for channel in channels]

    def settled(self, entry: InboxEntry) -> set[asyncio.Future[None]]:
        """Tell all of them what became of it, and return the tasks that do."""
        return {
            asyncio.ensure_future(_tell_after(posted, channel, 'settled', entry)) for channel, posted in self._posted
        }


async def _tell_after(before: asyncio.Future[None], channel: Channel, what: str, entry: InboxEntry) -> None:
    await before
    await _tell(channel, what, entry)


async def _tell(channel: Channel, what: str, entry: InboxEntry) -> None:
    try:
        async with asyncio.timeout(CHANNEL_S):
            await call(getattr(channel, what), entry)
    except Exception as error:  # noqa: BLE001 - one channel must not keep another from telling
        # Not its text, which may quote arguments.
        _log.error('%s.%s failed with %s', type(channel).__name__, what, type(error).__name__)
