"""How much a client may ask of the page."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tool_approval.core.threads import in_thread

T = TypeVar('T')


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Chosen: far above what people at a page need, and far below what would keep others from it."""

    max_body_bytes: int = 1024 * 1024
    """The longest body; arguments that are edited have to fit."""
    requests_per_s: float = 50.0
    """Requests of one client in the long run. A client is an address."""
    burst: int = 200
    """Requests of one client at once."""
    max_streams: int = 100
    """Pages that are kept up to date at once, of all clients."""


_MOST_CLIENTS = 10_000
"""Chosen: more are not told apart; whoever was not heard of for longest begins anew."""


async def draw_apart(turn: asyncio.Semaphore, draw: Callable[[], T]) -> T:
    """Draw what may be very long, in a thread and one after the other: the loop serves others, and memory is bounded.

    Attack: a tool's request of 4 MB has 600,000 lines, and drawing them kept everybody from the page for many seconds
    (test_pages.py: test_what_is_drawn_whole_does_not_block_the_page).

    Args:
        turn: Admits one at a time.
        draw: What draws.
    """
    async with turn:
        return await in_thread(draw)


class RateLimit:
    """A bucket of tokens for each client: each request takes one, and time brings them back."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        """All buckets are full.

        Args:
            limits: How many tokens.
            clock: Seconds that never go back.
        """
        self._limits = limits
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def takes(self, client: str) -> bool:
        """Whether one more request of a client is within its limit."""
        now = self._clock()
        tokens, since = self._buckets.pop(client, (float(self._limits.burst), now))
        tokens = min(self._limits.burst, tokens + (now - since) * self._limits.requests_per_s)
        is_within = tokens >= 1
        self._buckets[client] = (tokens - is_within, now)
        if len(self._buckets) > _MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return is_within
