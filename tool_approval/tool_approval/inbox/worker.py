"""One thread for everything that blocks on the store, so that no event loop does."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeVar, cast

from .errors import InboxError, InboxUnavailable

T = TypeVar('T')

PAUSE_S = 0.5
"""Chosen: for so long after a failure nobody tries again, so that thousands of waiting calls fail at once and not each
after the store's own timeout."""


class Worker:
    """Does one thing after the other, in the order they were asked for. For any number of threads and event loops."""

    def __init__(self, place: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing is started before there is work.

        Args:
            place: The store's, for errors.
            clock: Seconds that never go back.
        """
        self._place = place
        self._clock = clock
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._failure: tuple[float, str] | None = None

    def submit(self, action: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        """Do `action` in the thread, then call `done` there with what it returned, or raised.

        Raises:
            InboxError: The inbox is closed, or belongs to the process this one was forked from.
        """

        def work() -> None:
            value: T | None = None
            error: BaseException | None = None
            try:
                value = self._guarded(action)
            except BaseException as e:  # noqa: BLE001 - it has to reach who asked
                error = e
            done(value, error)

        if self._process != os.getpid():
            raise InboxError('the inbox was made before this process was forked; make another in each process')
        with self._lock:
            if self._is_closed:
                raise InboxError('the inbox is closed')
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name='tool-approval-inbox', daemon=True)
                self._thread.start()
            self._queue.put(work)

    async def run(self, action: Callable[[], T]) -> T:
        """Do `action` in the thread. Cancelling abandons it, and it is done nevertheless.

        Raises:
            InboxError: As `submit`.
            BaseException: Whatever `action` raises.
        """
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[tuple[T | None, BaseException | None]] = loop.create_future()

        def settle(value: T | None, error: BaseException | None) -> None:
            if not ended.done():
                # Not as the future's exception: one that nobody fetches is logged.
                ended.set_result((value, error))

        def done(value: T | None, error: BaseException | None) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits
                loop.call_soon_threadsafe(settle, value, error)

        self.submit(action, done)
        value, error = await ended
        if error is not None:
            raise error
        return cast('T', value)

    def close(self, timeout_s: float) -> None:
        """Do what was asked for so far, and end the thread, waiting for it so long at most."""
        with self._lock:
            thread = None if self._is_closed else self._thread
            self._is_closed = True
        if thread is not None and self._process == os.getpid():
            self._queue.put(None)
            thread.join(timeout_s)

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            work()

    def _guarded(self, action: Callable[[], T]) -> T:
        if self._failure is not None:
            since, problem = self._failure
            if 0 <= self._clock() - since < PAUSE_S:
                raise InboxUnavailable(self._place, problem)
            self._failure = None
        try:
            return action()
        except InboxUnavailable as error:
            self._failure = (self._clock(), error.problem)
            raise
