"""Call foreign code without blocking the event loop, even if the code ends its thread or cancels itself."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
import threading
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from concurrent.futures import CancelledError, Future, wait
from typing import Any, ParamSpec, TypeVar, cast

from .errors import ApprovalError

T = TypeVar('T')
P = ParamSpec('P')

_SIGNAL_CHECK_S = 0.5
"""Maximum delay before an interrupt is noticed, in seconds."""


class RunCancelled(asyncio.CancelledError):
    """Raised by a UI after it has cancelled the run at the user's request. The UI does not raise `KeyboardInterrupt`,
    which would end more than the run.

    The functions of this module pass `RunCancelled` on to their callers, even if the cancelled run is an outer run or
    in another thread.
    """


async def call_sync_or_async(
    function: Callable[..., object], *args: Any, on_end: Callable[[], None] = lambda: None, **keywords: Any
) -> object:
    """Call a coroutine function on the event loop, or a plain function in its own thread, and await the result.

    Args:
        function: Function to call.
        *args: Positional arguments of `function`.
        on_end: Called when a thread ends; see `in_thread`.
        **keywords: Keyword arguments of `function`.

    Raises:
        asyncio.CancelledError: The wait was cancelled. This exception is raised even if `function` suppressed the
            cancellation and returned a result.
        RunCancelled: `function` raised this exception.
        RuntimeError: `function` cancelled itself, or ended its thread.
        BaseException: Any other exception of `function`.
    """
    task = asyncio.current_task()
    assert task is not None, 'the coroutine must run in an asyncio task'
    cancels = task.cancelling()
    try:
        if inspect.iscoroutinefunction(function):
            result: object = await function(*args, **keywords)
        else:
            result = await in_thread(lambda: function(*args, **keywords), on_end=on_end)
            if inspect.isawaitable(result):
                result = await cast('Awaitable[object]', result)
    except RunCancelled:
        raise
    except asyncio.CancelledError:
        if task.cancelling() > cancels:
            raise
        raise RuntimeError('the function was cancelled, but the run was not') from None
    if task.cancelling() > cancels:
        raise asyncio.CancelledError
    return result


@types.coroutine
def to_next_wait(work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """Await `work`. If the result is already available when a cancellation arrives, delay the cancellation to the next
    wait. Without this delay, asyncio would drop the result, which may be an approver's answer.
    """
    task = asyncio.current_task()
    assert task is not None, 'the coroutine must run in an asyncio task'
    cancels = task.cancelling()
    try:
        awaited = work.send(None)
        while True:
            try:
                yield awaited
            except BaseException as error:  # noqa: BLE001 - passed on to `work`
                if not (isinstance(error, asyncio.CancelledError) and _has_result(awaited)):
                    awaited = work.throw(error)
                    continue
                awaited = work.send(None)
                # False if a timeout inside `work` cancelled it and has ended.
                is_cancelled = task.cancelling() > cancels
                if is_cancelled and not (asyncio.isfuture(awaited) and awaited.cancel()):
                    awaited = work.throw(error)
            else:
                awaited = work.send(None)
    except StopIteration as end:
        return end.value


def _has_result(awaited: object) -> bool:
    return asyncio.isfuture(awaited) and awaited.done() and not awaited.cancelled()


def check_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Raise an error if the event loop cannot receive results from threads: a wait would never end then.

    Raises:
        ApprovalError: The loop cannot receive results from threads.
    """
    # The loop of a Temporal workflow inherits the abstract method, whose error looks like that of a closed loop.
    if type(loop).call_soon_threadsafe is asyncio.AbstractEventLoop.call_soon_threadsafe:
        raise ApprovalError(
            f'The event loop `{type(loop).__name__}` accepts no results from threads. Temporal workflows run in '
            'such a loop. Use a coroutine function to ask; in a workflow, let the function wait for an activity or a '
            'signal that brings the answer.'
        )


async def in_thread(function: Callable[[], T], *, on_end: Callable[[], None] = lambda: None) -> T:
    """Call a function in its own daemon thread, where the function may block. Cancelling abandons the thread.

    Args:
        function: Function to call. The function sees the caller's context variables.
        on_end: Called in the thread when `function` has returned, even long after the wait was cancelled.

    Raises:
        ApprovalError: The event loop cannot receive results from threads; `function` was not called.
        RuntimeError: `function` raised an exception that ends a thread but must not end a run, such as `SystemExit`.
        BaseException: Any other exception of `function`, including `KeyboardInterrupt` and `RunCancelled`.
    """
    loop = asyncio.get_running_loop()
    check_loop(loop)
    ended: asyncio.Future[tuple[T | None, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: T | None, error: BaseException | None) -> None:
        if not ended.done():
            # Set as a result, because asyncio logs unretrieved exceptions, and their text may contain a secret.
            ended.set_result((value, error))

    def work() -> None:
        value: T | None = None
        error: BaseException | None = None
        try:
            value = context.run(function)
        except BaseException as e:  # noqa: BLE001 - passed on to the waiting task
            error = e
        on_end()
        with contextlib.suppress(RuntimeError):  # the loop is closed, so no task waits
            loop.call_soon_threadsafe(settle, value, error)

    try:
        threading.Thread(target=work, name='tool-approval-ui', daemon=True).start()
    except RuntimeError:  # no thread could be started
        on_end()
        raise
    value, error = await ended
    if isinstance(error, Exception | KeyboardInterrupt | RunCancelled):
        raise error
    if error is not None:
        raise RuntimeError(f'the thread was ended by {type(error).__name__}')
    return cast('T', value)


async def together(questions: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Await all coroutines. The first error cancels the other coroutines and is raised without an exception group."""
    try:
        async with asyncio.TaskGroup() as group:
            for question in questions:
                group.create_task(_noticed(question))
    except BaseExceptionGroup as errors:
        # Callers expect a plain exception.
        first = errors.exceptions[0]
        raise (RunCancelled() if isinstance(first, _Stopped) else first) from None


class _Stopped(Exception):
    """Takes the place of `RunCancelled` in a task group."""


async def _noticed(question: Coroutine[Any, Any, None]) -> None:
    try:
        await question
    except RunCancelled:
        # A task group ignores a cancelled task and would wait for the others.
        raise _Stopped from None


def wait_for(start: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine on a new event loop in a new thread, and wait for the coroutine's result.

    The caller's event loop is not used, whether it is running or not. The coroutine sees the caller's context
    variables. If the wait is interrupted, for example by Ctrl-C, the coroutine is cancelled.

    Args:
        start: Makes the coroutine.

    Raises:
        BaseException: Any exception of the coroutine.
    """
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()
    ended: Future[T] = Future()
    context = contextvars.copy_context()

    async def main() -> T:
        task = asyncio.current_task()
        assert task is not None, 'the coroutine must run in an asyncio task'
        started.set_result((asyncio.get_running_loop(), task))
        return await start()

    def work() -> None:
        try:
            result = context.run(asyncio.run, main())
        except BaseException as error:  # noqa: BLE001 - passed on to the waiting thread
            ended.set_exception(error)
        else:
            ended.set_result(result)
        finally:
            started.cancel()  # no effect unless the loop failed to start

    thread = threading.Thread(target=work, name='tool-approval-loop', daemon=True)
    try:
        thread.start()
        # A wait without a timeout would miss a signal that arrives right before it.
        while not ended.done():
            wait((ended,), timeout=_SIGNAL_CHECK_S)
        return ended.result()
    except BaseException:
        # There is nothing to cancel: the thread or the loop never started, or the coroutine has ended.
        with contextlib.suppress(TimeoutError, CancelledError, RuntimeError):
            loop, task = started.result(timeout=None if thread.is_alive() else 0)
            loop.call_soon_threadsafe(task.cancel)
        raise


def blocking(start: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Return a function for synchronous code that waits for what `start` makes. It may block a running event loop."""

    @functools.wraps(start)
    def wait(*args: P.args, **keywords: P.kwargs) -> T:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            # Not `asyncio.run`, which would remove the thread's event loop, and the host's `run_sync` keeps that loop.
            with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
                return runner.run(start(*args, **keywords))
        return wait_for(lambda: start(*args, **keywords))

    wait.__name__ = wait.__qualname__ = f'{start.__name__}_sync'
    return wait
