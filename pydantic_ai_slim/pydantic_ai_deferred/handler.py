"""The handler: what it may be, how it is recognised, and how it is called without stopping the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ToolCallPart
from typing_extensions import TypeIs

DepsT = TypeVar('DepsT')

DeferredToolHandler: TypeAlias = Callable[
    [RunContext[DepsT], DeferredToolRequests], DeferredToolResults | Awaitable[DeferredToolResults]
]
"""Resolves all deferred tool calls of one model response, inside the run.

It is called once per response that has deferred calls, before any of them executes, with the run's context and a
snapshot of the calls. It must answer every one of them: each `tool_call_id` of `requests.approvals` in
`results.approvals` (`True`, `False`, `ToolApproved` or `ToolDenied`), each of `requests.calls` in `results.calls`
(a value, `ModelRetry`, or on newer hosts `ToolFailed`). An exception it raises ends the run as it is.

A plain function is called in a thread of the run's own, so it may block. A coroutine function runs on the event loop
of the outermost run.
"""

AnyHandler: TypeAlias = DeferredToolHandler[Any]
"""A handler whose deps are no longer known: inside the loop layer it is only stored and called."""

Execute: TypeAlias = Callable[[dict[str, Any]], Awaitable[Any]]
"""Executes a tool with the arguments it is given and returns its result."""


class ExecutionWrapper(Protocol):
    """A handler that also wraps the execution of the tools it was asked about.

    With the class attribute `wraps_resumed = True` it wraps calls as well that `deferred_tool_results` approve at the
    start of the run.
    """

    async def around_execute(self, ctx: RunContext[Any], call: ToolCallPart, args: dict[str, Any], run: Execute) -> Any:
        """Execute an approved call, or refuse to.

        Called once for each execution of an approval this handler was asked for, concurrently for calls that run in
        parallel, inside of every capability's hooks and on the event loop of the outermost run. `lineage()` ends
        with the call being executed; an agent that runs here inherits nothing, one inside the tool does.

        Args:
            ctx: The context of the tool call; `ctx.tool_call_metadata` is what the handler's results gave.
            call: The call, with the arguments as approved (`ToolApproved.override_args` where they were given).
            args: The validated arguments by parameter name, defaults filled in.
            run: `await run(args)` executes the tool and returns its result. Not calling it refuses the call.

        Returns:
            What the model is given as the tool's result.

        Raises:
            ModelRetry: The model is asked to try again; any other exception ends the run as if the tool raised it.
        """
        ...  # pragma: no cover - a protocol has no body


class Declined(DeferredToolResults):
    """The answer of `bubble_up`: nothing is resolved here."""


def bubble_up(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
    """A handler that declines everything: the calls leave the run as `DeferredToolRequests`.

    Give it to one run of an agent that has a handler, to stop and resume instead: the run's output type must then
    contain `DeferredToolRequests`. A handler of your own may also return `bubble_up(ctx, requests)` to decline a
    whole response. Nested runs are not offered a handler by a run that bubbles up.
    """
    return Declined()


def check_handler(handler: object) -> None:
    """Refuse what cannot be called, where it is given and not in the middle of a run.

    Raises:
        UserError: `handler` is neither `None` nor callable, or its `around_execute` is not a coroutine function.
    """
    if handler is None:
        return
    if not callable(handler):
        raise UserError(
            f'`deferred_tool_handler` must be callable as `handler(ctx, requests)`, not {type(handler).__name__}. '
            'Leave it out, or pass `None`, to use the default.'
        )
    around_execute = getattr(type(handler), 'around_execute', None)
    if around_execute is not None and not inspect.iscoroutinefunction(around_execute):
        raise UserError(
            f'`{type(handler).__name__}.around_execute` must be `async def around_execute(self, ctx, call, args, run)`.'
        )


def is_async(handler: AnyHandler) -> bool:
    """Whether calling `handler` only makes a coroutine, so that it is safe to call on the event loop."""
    target: Any = handler
    while isinstance(target, functools.partial):
        target = cast('functools.partial[Any]', target).func
    return inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(type(target).__call__)


def wraps_execution(handler: object) -> TypeIs[ExecutionWrapper]:
    """Whether `handler` is an object whose class also has `around_execute`. A mock that has any attribute has not."""
    return inspect.iscoroutinefunction(getattr(type(handler), 'around_execute', None))


def wraps_resumed(handler: object) -> bool:
    """Whether the handler's class says that it wraps calls that were approved before the run began."""
    return wraps_execution(handler) and getattr(type(handler), 'wraps_resumed', False) is True


def call_handler(
    handler: AnyHandler,
    ctx: RunContext[Any],
    requests: DeferredToolRequests,
    *,
    loop: asyncio.AbstractEventLoop,
    threads: HandlerThreads | None,
) -> Coroutine[Any, Any, object]:
    """Ask `handler` and wait for its answer, whatever it is: in a thread if there are `threads`, and on `loop` if not.

    Raises:
        UserError: `loop` ended while the answer was awaited there, or the handler has to be called in a thread and
            the event loop can be given no answer from one.
        BaseException: Whatever the handler raises.
    """
    ask = functools.partial(handler, ctx, requests)
    return run_on_loop(loop, ask) if threads is None else _in_thread(ask, loop, threads)


async def _in_thread(ask: Callable[[], object], loop: asyncio.AbstractEventLoop, threads: HandlerThreads) -> object:
    here = asyncio.get_running_loop()
    # The loop of a Temporal workflow has the method of the abstract class, whose error reads like a closed loop's.
    if type(here).call_soon_threadsafe is asyncio.AbstractEventLoop.call_soon_threadsafe:
        raise UserError(
            'The deferred tool handler is a plain function, which is called in a thread, and the event loop here '
            f'(`{type(here).__name__}`) accepts no answers from threads, as that of a Temporal workflow. The handler '
            'was not asked, and no deferred call was executed. Make it `async def handler(ctx, requests)`; in a '
            'workflow, let it wait for an activity or a signal that brings the answer.'
        )
    answer = await threads.call(ask)
    return await run_on_loop(loop, lambda: answer) if inspect.isawaitable(answer) else answer


async def run_on_loop(loop: asyncio.AbstractEventLoop, make: Callable[[], Any]) -> object:
    """Await what `make` returns, on `loop`, whichever loop is running here.

    Raises:
        UserError: `loop` is not running, or ended before the answer came.
        BaseException: Whatever is raised there.
    """
    if loop is asyncio.get_running_loop():
        return await make()
    if not loop.is_running():
        raise UserError(
            'A deferred tool call of a nested run has no one to ask: the event loop of the outermost run has ended.'
        )

    async def there() -> object:
        return await make()

    # The task on the other loop gets a copy of this context: `call_soon_threadsafe` takes it where it is called.
    answer = asyncio.run_coroutine_threadsafe(there(), loop)
    try:
        return await asyncio.wrap_future(answer)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise UserError(
            'A deferred tool call of a nested run was not answered: the event loop of the outermost run ended first.'
        ) from None


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
            # The loop may have been closed while the handler was busy: its run is gone.
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

    Starting one means waiting until it is up. Where fifty runs ask at once, the event loop would wait for all fifty;
    so it starts the first, and that one the next before it does its own work.
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
