"""Requests that were seen before."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

REMEMBERED_S = 600.0
"""Source: Slack's library takes a timestamp that is at most five minutes off, to either side, so a request may be valid
for ten minutes."""

MOST = 100_000
"""Chosen: far more than people press in ten minutes. Only what Slack has signed is remembered."""


class Replays:
    """Remembers signatures. Slack signs the timestamp too, so that no two requests have the same."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing was seen yet.

        Args:
            clock: Seconds that never go back.
        """
        self._clock = clock
        self._seen: OrderedDict[str, float] = OrderedDict()

    def is_new(self, signature: str) -> bool:
        """Whether a request with this signature was not seen, and remember it. While there are too many, none is new."""
        now = self._clock()
        while self._seen and now - next(iter(self._seen.values())) >= REMEMBERED_S:
            self._seen.popitem(last=False)
        if signature in self._seen or len(self._seen) >= MOST:
            return False
        self._seen[signature] = now
        return True
