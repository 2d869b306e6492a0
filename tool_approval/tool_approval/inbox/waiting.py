"""Who waits for what, in this process."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Collection, Sequence

Waiter = asyncio.Future[None]


class Waiting:
    """Futures by request id, of any number of event loops. Woken from any thread."""

    def __init__(self) -> None:
        """Nobody waits."""
        self._lock = threading.Lock()
        self._waiters: dict[str, list[Waiter]] = {}

    def add(self, request_id: str) -> Waiter:
        """A future of the running loop, to be passed to `remove` in the end."""
        waiter: Waiter = asyncio.get_running_loop().create_future()
        with self._lock:
            self._waiters.setdefault(request_id, []).append(waiter)
        return waiter

    def remove(self, request_id: str, waiter: Waiter) -> None:
        """Forget one."""
        with self._lock:
            waiters = self._waiters[request_id]
            waiters.remove(waiter)
            if not waiters:
                del self._waiters[request_id]

    def ids(self) -> Collection[str]:
        """What is waited for."""
        with self._lock:
            return list(self._waiters)

    def __len__(self) -> int:
        """How many requests are waited for."""
        return len(self._waiters)

    def wake(self, request_ids: Collection[str]) -> None:
        """Wake whoever waits for one of these. Each loop is disturbed once."""
        by_loop: dict[asyncio.AbstractEventLoop, list[Waiter]] = {}
        with self._lock:
            for request_id in request_ids:
                for waiter in self._waiters.get(request_id, ()):
                    by_loop.setdefault(waiter.get_loop(), []).append(waiter)
        for loop, waiters in by_loop.items():
            with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits
                loop.call_soon_threadsafe(_wake, waiters)


def _wake(waiters: Sequence[Waiter]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
