"""Check a handler, and call it without blocking the event loop."""

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

The handler is called once for each response with deferred calls, before any of these calls executes. It gets the run's
context and a snapshot of the calls, and must answer every call. The dictionary `results.approvals` maps a
`tool_call_id` to `True`, `False`, `ToolApproved` or `ToolDenied`; `results.calls` maps it to a value, a `ModelRetry` or
(on newer hosts) a `ToolFailed`. An exception from the handler ends the run.

A plain function is called in a separate thread, so it may block. A coroutine function runs on the event loop of the
outermost run.
"""

AnyHandler: TypeAlias = DeferredToolHandler[Any]
"""A handler with any type of deps."""

Execute: TypeAlias = Callable[[dict[str, Any]], Awaitable[Any]]
"""Executes a tool with the given arguments and returns its result."""


class ExecutionWrapper(Protocol):
    """A handler that also wraps the execution of the tools it was asked about.

    Set the class attribute `wraps_resumed = True` to also wrap calls that a run's `deferred_tool_results` approved.
    """

    async def around_execute(self, ctx: RunContext[Any], call: ToolCallPart, args: dict[str, Any], run: Execute) -> Any:
        """Execute an approved call, or refuse to execute it.

        This method is called for each execution that the handler was asked to approve. The method runs inside the hooks
        of all capabilities, on the event loop of the outermost run, and concurrently for parallel calls. While this
        method runs, the last level of `lineage()` is the call that is being executed. The handler is inherited by
        agents that the tool runs, but not by agents that this method runs.

        Args:
            ctx: The context of the tool call. `ctx.tool_call_metadata` is the metadata of the handler's results.
            call: The call, with its arguments as approved (`ToolApproved.override_args` if given).
            args: The validated arguments by parameter name, with defaults filled in.
            run: `await run(args)` executes the tool and returns its result. To refuse the call, do not call `run`.

        Returns:
            The tool's result for the model.

        Raises:
            ModelRetry: The model is asked to try again. Any other exception ends the run as if the tool had raised it.
        """
        ...  # pragma: no cover - a protocol has no body


class Declined(DeferredToolResults):
    """Results that resolve no call, returned by `bubble_up`."""


def bubble_up(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
    """Decline all calls, so that they leave the run as `DeferredToolRequests`.

    If an agent has a handler, but one run should stop and be resumed later, pass `bubble_up` as that run's handler. The
    run's output type must then contain `DeferredToolRequests`. To decline all calls of a response, your own handler can
    also `return bubble_up(ctx, requests)`. A run with `bubble_up` as its handler offers no handler to nested runs.
    """
    return Declined()


def check_handler(handler: object) -> None:
    """Reject an invalid handler when it is given, not in the middle of a run.

    Raises:
        UserError: `handler` is neither `None` nor callable, or its `around_execute` is not a coroutine function.
    """
    if handler is None:
        return
    if not callable(handler):
        raise UserError(
            f'`deferred_tool_handler` must be a callable that takes `(ctx, requests)`, not {type(handler).__name__}. '
            'To use the default, omit `deferred_tool_handler` or pass `None`.'
        )
    around_execute = getattr(type(handler), 'around_execute', None)
    if around_execute is not None and not inspect.iscoroutinefunction(around_execute):
        raise UserError(
            f'`{type(handler).__name__}.around_execute` must be `async def around_execute(self, ctx, call, args, run)`.'
        )


def is_async(handler: AnyHandler) -> bool:
    """Whether calling `handler` only creates a coroutine, so that it is safe to call on the event loop."""
    target: Any = handler
    while isinstance(target, functools.partial):
        target = cast('functools.partial[Any]', target).func
    return inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(type(target).__call__)


def wraps_execution(handler: object) -> TypeIs[ExecutionWrapper]:
    """Whether the class of `handler` defines `around_execute` as a coroutine function.

    Attributes of the instance are ignored, because a mock has every attribute.
    """
    return inspect.iscoroutinefunction(getattr(type(handler), 'around_execute', None))


def wraps_resumed(handler: object) -> bool:
    """Whether the handler also wraps calls that were approved before the run began."""
    return wraps_execution(handler) and getattr(type(handler), 'wraps_resumed', False) is True


def call_handler(
    handler: AnyHandler,
    ctx: RunContext[Any],
    requests: DeferredToolRequests,
    *,
    loop: asyncio.AbstractEventLoop,
    threads: HandlerThreads | None,
) -> Coroutine[Any, Any, object]:
    """Call `handler` in a thread if `threads` is given, else on `loop`, and return its unchecked answer.

    Raises:
        UserError: `loop` ended before the answer came, or the handler needs a thread but the running event loop accepts
            no results from threads.
        BaseException: Any exception that the handler raises.
    """
    ask = functools.partial(handler, ctx, requests)
    return run_on_loop(loop, ask) if threads is None else _in_thread(ask, loop, threads)


async def _in_thread(ask: Callable[[], object], loop: asyncio.AbstractEventLoop, threads: HandlerThreads) -> object:
    here = asyncio.get_running_loop()
    # A Temporal workflow's loop inherits this method from the abstract class; its error looks like a closed loop's.
    if type(here).call_soon_threadsafe is asyncio.AbstractEventLoop.call_soon_threadsafe:
        raise UserError(
            'The deferred tool handler is a plain function and runs in a thread, but the event loop '
            f'`{type(here).__name__}` accepts no results from threads. Temporal workflows use such a loop. '
            'The handler was not called, and no deferred call was executed. Use `async def handler(ctx, requests)`; in '
            'a workflow, let the handler wait for an activity or a signal that brings the answer.'
        )
    answer = await threads.call(ask)
    return await run_on_loop(loop, lambda: answer) if inspect.isawaitable(answer) else answer


async def run_on_loop(loop: asyncio.AbstractEventLoop, make: Callable[[], Any]) -> object:
    """Await the result of `make()` on `loop`, which may run in another thread.

    Raises:
        UserError: `loop` is not running, or ended before the answer came.
        BaseException: Any exception from calling `make()` or from awaiting its result.
    """
    if loop is asyncio.get_running_loop():
        return await make()
    if not loop.is_running():
        raise UserError(
            'A deferred tool call of a nested run cannot be answered: the event loop of the outermost run has ended.'
        )

    async def there() -> object:
        return await make()

    # `call_soon_threadsafe` copies the context it is called in, so the task on the other loop sees this one.
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
"""Seconds after which an idle thread ends, so that an abandoned run does not keep a thread forever."""

_Work: TypeAlias = Callable[[], None]


class HandlerThreads:
    """Daemon threads of one run, reused for later questions. A second thread starts only if questions overlap.

    A shared pool would not work. A handler that waits minutes for a person would occupy a pool thread that sync tools
    need. At exit, the interpreter would wait for the handlers, because it joins the threads of a pool.
    """

    def __init__(self) -> None:
        """Start with no threads; the first question starts one."""
        self._lock = threading.Lock()
        self._idle: list[SimpleQueue[_Work | None]] = []
        self._is_over = False

    async def call(self, call: Callable[[], object]) -> object:
        """Run `call` in a thread and return its result. Cancelling abandons the thread.

        Raises:
            BaseException: Any exception that `call` raises.
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
                # A future cannot carry `StopIteration`. A coroutine that raises it also ends with a `RuntimeError`.
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
            except BaseException as e:  # noqa: BLE001 - however the handler ends, the waiting run must learn of it
                error = e
            # Before the answer is delivered, because the run may then ask again, or end, at once.
            self._rest(work)
            # The loop may have been closed while the handler was busy; then no run waits.
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
        """End idle threads now, and busy threads after their current question."""
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
    """Starts many threads, but makes the event loop wait only for the start of the first one.

    `Thread.start` waits until the thread runs. If fifty questions came at once, the event loop would wait fifty times.
    Instead, the loop starts only the first thread, and each thread starts the next before its own work.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[tuple[_Work, Callable[[Exception], object]]] = deque()
        self._is_starting = False

    def start(self, work: _Work, *, fail: Callable[[Exception], object]) -> None:
        """Run `work` in a new thread, or call `fail` with the error if no thread can be started."""
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


# One object for the process, because many runs share the event loop.
_STARTS = _Starts()
