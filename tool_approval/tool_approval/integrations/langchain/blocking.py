"""Waits for a coroutine in code that is not asynchronous, also where an event loop is running."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

T = TypeVar('T')


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
        return ended.result()
    except BaseException:
        # Nothing to cancel: the thread never began, the loop never did, or the coroutine has ended.
        with contextlib.suppress(TimeoutError, CancelledError, RuntimeError):
            loop, task = started.result(timeout=None if thread.is_alive() else 0)
            loop.call_soon_threadsafe(task.cancel)
        raise
