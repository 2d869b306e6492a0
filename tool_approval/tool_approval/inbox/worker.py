"""Run blocking store calls in one thread, away from the event loops."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeAlias, TypeVar, cast

from .errors import InboxError, InboxUnavailable
from .store import InboxStore, Row

T = TypeVar('T')

PAUSE_S = 0.5
"""After a failure, calls fail for this many seconds without contacting the store. Thousands of waiting calls then fail
at once. Without the pause, the calls would fail one after another, each after the store's timeout."""


AT_ONCE = 20
"""Maximum number of rows per read, and of actions per transaction. If thousands of calls wake together, a few hundred
reads are needed, and only a few large rows are in memory at the same time."""

_Work: TypeAlias = tuple[Callable[[], Any], Callable[[Any, BaseException | None], None]]
"""An action, and the function to call with its value and its error."""


class Worker:
    """Runs actions one after another in one thread. Any thread or event loop can submit an action."""

    def __init__(
        self,
        place: str,
        clock: Callable[[], float] = time.monotonic,
        *,
        together: Callable[[], AbstractContextManager[None]] | None = None,
    ) -> None:
        """Create a worker. The first submitted action starts the thread.

        Args:
            place: Location of the store for error messages.
            clock: Monotonic clock in seconds.
            together: Function that opens a transaction for the changes of several actions. If one of the actions finds
                the store unavailable, each of them runs again without the others.
        """
        self._place = place
        self._clock = clock
        self._together = together
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._failure: tuple[float, str] | None = None

    def submit(self, action: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        """Run `action` in the thread. Then call `done(value, None)` there, or on failure `done(None, exception)`.

        Raises:
            InboxError: The inbox is closed, or was created before this process was forked.
        """
        if self._process != os.getpid():
            raise InboxError('the inbox was created before this process was forked; create one in each process')
        with self._lock:
            if self._is_closed:
                raise InboxError('the inbox is closed')
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name='tool-approval-inbox', daemon=True)
                self._thread.start()
            self._queue.put((action, done))

    async def run(self, action: Callable[[], T]) -> T:
        """Run `action` in the thread and return its value. Cancelling stops the wait, not the action.

        Raises:
            InboxError: The inbox is closed, or was created before this process was forked.
            BaseException: Raised by `action`.
        """
        # Not as the future's exception, which asyncio logs if it is never retrieved.
        ended: asyncio.Future[tuple[T | None, BaseException | None]] = asyncio.get_running_loop().create_future()
        self.submit(action, lambda value, error: _end(ended, (value, error)))
        value, error = await ended
        if error is not None:
            raise error
        return cast('T', value)

    def close(self, timeout_s: float) -> None:
        """Finish the submitted actions and stop the thread, waiting for at most `timeout_s` seconds."""
        with self._lock:
            thread = None if self._is_closed else self._thread
            self._is_closed = True
        if thread is not None and self._process == os.getpid():
            self._queue.put(None)
            thread.join(timeout_s)

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            works = [work]
            while self._together is not None and len(works) < AT_ONCE and not self._queue.empty():
                if (work := self._queue.get()) is None:
                    self._queue.put(None)
                    break
                works.append(work)
            ended = self._ended_together(works) or [_ended(partial(self._guarded, action)) for action, _ in works]
            for (_, done), (value, error) in zip(works, ended, strict=True):
                done(value, error)

    def _ended_together(self, works: Sequence[_Work]) -> Sequence[tuple[Any, BaseException | None]] | None:
        """Run several actions in one transaction. Return how they ended, or `None` if each has to run on its own."""
        if self._together is None or len(works) == 1 or self._failure is not None:
            return None
        ended: list[tuple[Any, BaseException | None]] = []
        with suppress(InboxError), self._together():
            for action, _ in works:
                value, error = _ended(action)
                if isinstance(error, InboxError):
                    raise error
                ended.append((value, error))
            return ended
        return None

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


_Found: TypeAlias = 'asyncio.Future[Row | BaseException | None]'


def _ended(action: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return action(), None
    except BaseException as error:  # noqa: BLE001 - passed to the caller
        return None, error


class RowReader:
    """Collects the requested ids while the worker is busy, and then reads their rows together."""

    def __init__(self, store: InboxStore, worker: Worker) -> None:
        self._store = store
        self._worker = worker
        self._lock = threading.Lock()
        self._asked: dict[str, list[_Found]] = {}
        self._is_reading = False

    async def read(self, request_id: str) -> Row | None:
        """Return the row with this id, or `None` if there is none. The row is read after this method is called.

        Raises:
            InboxError: The store cannot be read, or the inbox is closed.
        """
        ended: _Found = asyncio.get_running_loop().create_future()
        with self._lock:
            self._asked.setdefault(request_id, []).append(ended)
        self._read_on()
        found = await ended
        if isinstance(found, BaseException):
            raise found
        return found

    def _read_on(self) -> None:
        with self._lock:
            if self._is_reading or not self._asked:
                return
            self._is_reading = True
        try:
            self._worker.submit(self._take_and_read, self._done)
        except BaseException as error:  # noqa: BLE001 - passed to all callers
            self._done(None, error)

    def _take_and_read(self) -> None:
        """Read the next batch in the worker's thread. Later requests wait for the following batch."""
        with self._lock:
            taken = {request_id: self._asked.pop(request_id) for request_id in list(self._asked)[:AT_ONCE]}
        error: BaseException | None = None
        rows: dict[str, Row] = {}
        try:
            rows = {row.id: row for row in self._store.get(list(taken))}
        except BaseException as e:
            error = e
            raise
        finally:
            for request_id, waiting in taken.items():
                for each in waiting:
                    _end(each, rows.get(request_id) if error is None else error)

    def _done(self, _: None, error: BaseException | None) -> None:
        with self._lock:
            self._is_reading = False
            failed = [] if error is None else list(self._asked.values())
            if error is not None:
                # The store is unavailable, so later callers fail immediately.
                self._asked.clear()
        for waiting in failed:
            for each in waiting:
                _end(each, error)
        self._read_on()


def _end(ended: asyncio.Future[T], found: T) -> None:
    """Set the result of a future. Any thread may call this function."""
    with contextlib.suppress(RuntimeError):  # the loop is closed
        ended.get_loop().call_soon_threadsafe(_set, ended, found)


def _set(ended: asyncio.Future[T], found: T) -> None:
    if not ended.done():
        ended.set_result(found)
