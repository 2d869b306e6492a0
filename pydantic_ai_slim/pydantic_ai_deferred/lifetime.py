"""How long something lasts that others wait for."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any


class Lifetime:
    """Of a run, or of a tool call: it ends once, and tells who waits on it. Safe to share between threads."""

    def __init__(self) -> None:
        """Start it."""
        self._lock = threading.Lock()
        self._is_over = False
        self._watchers: dict[asyncio.Future[Any], asyncio.AbstractEventLoop] = {}

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._is_over

    def end(self) -> None:
        """End it, and cancel what watches it, each on its own event loop."""
        with self._lock:
            self._is_over = True
            watchers, self._watchers = self._watchers, {}
        for future, loop in watchers.items():
            with contextlib.suppress(RuntimeError):  # a loop that is closed has nothing left to cancel
                loop.call_soon_threadsafe(future.cancel)

    def watch(self, future: asyncio.Future[Any]) -> Callable[[], object]:
        """Have `future` cancelled at the end; it must belong to the running event loop.

        Returns:
            What to call when it is done, so that nothing is kept.
        """
        with self._lock:
            if not self._is_over:
                self._watchers[future] = asyncio.get_running_loop()
                return lambda: self._watchers.pop(future, None)
        future.cancel()
        return lambda: None
