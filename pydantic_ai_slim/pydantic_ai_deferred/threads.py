"""The threads in which handlers are called that may block."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeAlias

IDLE_LIMIT_S = 10.0
"""How long a thread waits for the next question, at most: a run that is abandoned, and never ends, leaves no thread."""

_Work: TypeAlias = Callable[[], None]


class HandlerThreads:
    """The daemon threads of one run: one is enough unless questions overlap; it is kept from question to question.

    Not a shared pool: people take minutes, so waiting handlers would use up the pool that sync tools need, and the
    threads of a pool are joined when the process exits.
    """

    def __init__(self) -> None:
        """None is started before the first question."""
        self._lock = threading.Lock()
        self._idle: list[SimpleQueue[_Work | None]] = []
        self._is_over = False

    async def call(self, call: Callable[[], object]) -> object:
        """Call in a thread, and wait for what comes of it. Cancelling abandons the thread.

        Raises:
            BaseException: Whatever `call` raises.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[object] = loop.create_future()
        context = contextvars.copy_context()
        work: SimpleQueue[_Work | None] = SimpleQueue()

        def settle(result: object, error: BaseException | None) -> None:
            if answer.done():
                return
            if error is None:
                answer.set_result(result)
            elif isinstance(error, StopIteration):
                # A future cannot carry it, and a coroutine that raises it turns it into this as well.
                wrapped = RuntimeError('the deferred tool handler raised StopIteration')
                wrapped.__cause__ = error
                answer.set_exception(wrapped)
            else:
                answer.set_exception(error)

        def ask() -> None:
            result: object = None
            error: BaseException | None = None
            try:
                result = context.run(call)
            except BaseException as e:  # noqa: BLE001 - every way a handler can end must reach the run that waits
                error = e
            # Before the answer is out: the run may ask again, or end, as soon as it has it.
            self._rest(work)
            # The loop may have been closed while the handler was busy: its run is gone, and nobody waits.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, result, error)

        with self._lock:
            idle = self._idle.pop() if self._idle else None
        if idle is not None:
            work = idle
            work.put(ask)
        else:
            work.put(ask)
            _STARTS.start(lambda: self._serve(work), fail=lambda error: loop.call_soon_threadsafe(settle, None, error))
        return await answer

    def end(self) -> None:
        """The run is over: idle threads end now, busy ones with the question they have."""
        with self._lock:
            self._is_over = True
            idle, self._idle = self._idle, []
        for work in idle:
            work.put(None)

    def _rest(self, work: SimpleQueue[_Work | None]) -> None:
        with self._lock:
            if not self._is_over:
                self._idle.append(work)
                return
        work.put(None)

    def _serve(self, work: SimpleQueue[_Work | None]) -> None:
        while True:
            try:
                ask = work.get(timeout=IDLE_LIMIT_S)
            except Empty:
                with self._lock:
                    if work in self._idle:
                        self._idle.remove(work)
                        return
                continue
            if ask is None:
                return
            ask()
            del ask


class _Starts:
    """Starts threads one after the other, each by the one before it.

    Starting one means waiting until it is up. Where fifty runs ask at once, the event loop would stand still for all
    fifty; so it starts the first, and that one the next before it does its own work.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[tuple[_Work, Callable[[Exception], object]]] = deque()
        self._is_starting = False

    def start(self, work: _Work, *, fail: Callable[[Exception], object]) -> None:
        """Have `work` done in a thread of its own, or `fail` called with why there is none."""
        with self._lock:
            self._waiting.append((work, fail))
            if self._is_starting:
                return
            self._is_starting = True
        self._start_next()

    def _start_next(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._is_starting = False
                    return
                work, fail = self._waiting.popleft()
            thread = threading.Thread(target=self._begin, args=(work,), name='deferred-tool-handler', daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # the machine has no thread left
                with contextlib.suppress(RuntimeError):  # the loop is closed
                    fail(error)
                continue
            return

    def _begin(self, work: _Work) -> None:
        self._start_next()
        work()


# The process's, not a run's: it is the event loop's time that is saved, and many runs share it.
_STARTS = _Starts()
