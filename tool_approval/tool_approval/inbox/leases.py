"""Whose heartbeat has stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

BEAT_S = 10.0
"""Chosen: three heartbeats fit into a lease, so that one may fail. Seconds between two of them, and between two looks
at those of others."""

LEASE_S = 30.0
"""Source: the inbox's design. A process of which no heartbeat was seen for so many seconds is gone."""


class Leases:
    """Watches the numbers that waiting processes count up, with nobody's clock but its own.

    A time that another process, or a database, has written down would be worth nothing after one of the clocks was set.
    So each process that looks measures for itself how long a number has stood still, with a clock that is never set.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing was seen yet.

        Args:
            clock: Seconds that never go back.
        """
        self._clock = clock
        self._seen: dict[str, tuple[int, float]] = {}
        self._looked_at: float | None = None

    def gone(self, beats: Mapping[str, int]) -> Mapping[str, int]:
        """Those whose number has stood still for the whole of a lease, while it was looked at all the time.

        Args:
            beats: All numbers there are, by owner, read just now.
        """
        now = self._clock()
        if self._looked_at is None or now - self._looked_at > LEASE_S / 2:
            # This process was stopped, or the store away: then others may not have been able to count either.
            self._seen.clear()
        self._looked_at = now
        seen = self._seen
        self._seen = {
            owner: seen[owner] if owner in seen and seen[owner][0] == number else (number, now)
            for owner, number in beats.items()
        }
        return {owner: number for owner, (number, since) in self._seen.items() if now - since >= LEASE_S}

    def forget(self) -> None:
        """Begin anew: the store was away, and nobody could count."""
        self._looked_at = None
