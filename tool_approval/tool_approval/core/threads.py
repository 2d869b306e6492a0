"""Calls code of others, which may block, end its thread or cancel itself, without harm to the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from concurrent.futures import CancelledError, Future, wait
from typing import Any, TypeVar, cast

from .errors import ApprovalError

T = TypeVar('T')

_SIGNAL_CHECK_S = 0.5
"""Chosen: how late an interrupt may be noticed."""


class RunCancelled(asyncio.CancelledError):
    """Raised by a UI whose person stopped the run, and which has cancelled it: a `KeyboardInterrupt` would end more.

    It passes through every wait here, also where the run that is cancelled is one above, or in another thread.
    """


async def call_sync_or_async(
    function: Callable[..., object], *args: Any, on_end: Callable[[], None] = lambda: None, **keywords: Any
) -> object:
    """Call a coroutine function on the event loop, a plain one in a thread of its own, and await what it returns.

    Args:
        function: What to call.
        *args: Its arguments.
        on_end: Called when a thread ends; see `in_thread`.
        **keywords: Its arguments by name.

    Raises:
        asyncio.CancelledError: The wait was cancelled, even if `function` swallowed that: what it returns then comes
            too late.
        RunCancelled: `function` raised it.
        RuntimeError: It cancelled itself, or ended its thread.
        BaseException: Whatever else it raises.
    """
    task = asyncio.current_task()
    assert task is not None, 'a coroutine of asyncio runs in a task'
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
        raise RuntimeError('it was cancelled, and the run was not') from None
    if task.cancelling() > cancels:
        raise asyncio.CancelledError
    return result


@types.coroutine
def to_next_wait(work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """Await; a cancellation that meets a wait whose result is there already arrives at the next wait instead.

    asyncio would drop that result, such as what a person has just answered.
    """
    task = asyncio.current_task()
    assert task is not None, 'a coroutine of asyncio runs in a task'
    cancels = task.cancelling()
    try:
        awaited = work.send(None)
        while True:
            try:
                yield awaited
            except BaseException as error:  # noqa: BLE001 - all of it goes on to `work`
                if not (isinstance(error, asyncio.CancelledError) and _has_result(awaited)):
                    awaited = work.throw(error)
                    continue
                awaited = work.send(None)
                # Unless a timeout inside of `work` was what cancelled, and has ended.
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
    """Refuse an event loop that can be given no answer from a thread: the wait for it would never end.

    Raises:
        ApprovalError: It is one.
    """
    # A Temporal workflow's loop has the method of the abstract class, whose error reads like that of a closed loop.
    if type(loop).call_soon_threadsafe is asyncio.AbstractEventLoop.call_soon_threadsafe:
        raise ApprovalError(
            f'The event loop here (`{type(loop).__name__}`) accepts no answers from threads, as that of a Temporal '
            'workflow. Ask with a coroutine function; in a workflow, let it wait for an activity or a signal that '
            'brings the answer.'
        )


async def in_thread(function: Callable[[], T], *, on_end: Callable[[], None] = lambda: None) -> T:
    """Call what may block in a daemon thread of its own; cancelling abandons it.

    Args:
        function: What to call; context variables reach it.
        on_end: Called in the thread when `function` has returned, also long after it was abandoned.

    Raises:
        ApprovalError: The event loop can be given no answer from a thread; `function` was not called.
        RuntimeError: It raised what ends a thread but must not end a run, such as `SystemExit`.
        BaseException: Whatever else it raises; `KeyboardInterrupt` and `RunCancelled` among them.
    """
    loop = asyncio.get_running_loop()
    check_loop(loop)
    ended: asyncio.Future[tuple[T | None, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: T | None, error: BaseException | None) -> None:
        if not ended.done():
            # Not as the future's exception: one that nobody fetches is logged, and its text may hold a secret.
            ended.set_result((value, error))

    def work() -> None:
        value: T | None = None
        error: BaseException | None = None
        try:
            value = context.run(function)
        except BaseException as e:  # noqa: BLE001 - it has to reach who waits
            error = e
        on_end()
        with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits
            loop.call_soon_threadsafe(settle, value, error)

    try:
        threading.Thread(target=work, name='tool-approval-ui', daemon=True).start()
    except RuntimeError:  # no more threads can be had
        on_end()
        raise
    value, error = await ended
    if isinstance(error, Exception | KeyboardInterrupt | RunCancelled):
        raise error
    if error is not None:
        raise RuntimeError(f'the thread was ended by {type(error).__name__}')
    return cast('T', value)


async def together(questions: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Await all; the first error cancels the others and is raised by itself."""
    try:
        async with asyncio.TaskGroup() as group:
            for question in questions:
                group.create_task(_noticed(question))
    except BaseExceptionGroup as errors:
        # The caller knows these errors one by one.
        first = errors.exceptions[0]
        raise (RunCancelled() if isinstance(first, _Stopped) else first) from None


class _Stopped(Exception):
    """Stands for `RunCancelled` where questions are asked together."""


async def _noticed(question: Coroutine[Any, Any, None]) -> None:
    try:
        await question
    except RunCancelled:
        # A group takes no notice of a task that was cancelled, and would wait for the others.
        raise _Stopped from None


def wait_for(start: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine on an event loop of its own, in a thread of its own, and wait for its end.

    The thread leaves the caller's event loop alone, whether one is running or only set. Context variables reach the
    coroutine. If the wait is interrupted, by Ctrl-C for one, the coroutine is cancelled.

    Args:
        start: Makes the coroutine.

    Raises:
        BaseException: Whatever the coroutine raises.
    """
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()
    ended: Future[T] = Future()
    context = contextvars.copy_context()

    async def main() -> T:
        task = asyncio.current_task()
        assert task is not None, 'a coroutine of asyncio runs in a task'
        started.set_result((asyncio.get_running_loop(), task))
        return await start()

    def work() -> None:
        try:
            result = context.run(asyncio.run, main())
        except BaseException as error:  # noqa: BLE001 - it has to reach who waits
            ended.set_exception(error)
        else:
            ended.set_result(result)
        finally:
            started.cancel()  # where there was no loop to be had

    thread = threading.Thread(target=work, name='tool-approval-loop', daemon=True)
    try:
        thread.start()
        # A signal that arrives right before a wait without end would be noticed only after it.
        while not ended.done():
            wait((ended,), timeout=_SIGNAL_CHECK_S)
        return ended.result()
    except BaseException:
        # Nothing to cancel: the thread never began, the loop never did, or the coroutine has ended.
        with contextlib.suppress(TimeoutError, CancelledError, RuntimeError):
            loop, task = started.result(timeout=None if thread.is_alive() else 0)
            loop.call_soon_threadsafe(task.cancel)
        raise
