"""Detect replayed requests of signed webhooks."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

REMEMBERED_S = 600.0
"""Seconds for which a signature is remembered. Timestamps are accepted up to five minutes early or late, so a
request may be valid for ten minutes."""

MOST = 100_000
"""Maximum number of remembered signatures, far more than there are answers in ten minutes."""


class Replays:
    """Detects replayed requests by their signatures, which differ for each request because they cover the timestamp."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start without remembered signatures. `clock` returns monotonic seconds."""
        self._clock = clock
        self._seen: OrderedDict[str, float] = OrderedDict()

    def is_new(self, signature: str) -> bool:
        """Return whether this signature is new, and remember it. While `MOST` signatures are remembered, every request
        is treated as a replay.
        """
        now = self._clock()
        while self._seen and now - next(iter(self._seen.values())) >= REMEMBERED_S:
            self._seen.popitem(last=False)
        if signature in self._seen or len(self._seen) >= MOST:
            return False
        self._seen[signature] = now
        return True
