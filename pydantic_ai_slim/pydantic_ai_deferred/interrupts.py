"""What an interrupt leaves behind on the event loop of the host's sync variants, and how it is ended."""

from __future__ import annotations

import asyncio
import contextlib
import warnings
from collections.abc import Generator
from typing import Any


@contextlib.contextmanager
def leaving_nothing() -> Generator[None]:
    """End what a run leaves unfinished when `KeyboardInterrupt` or `SystemExit` passes through the event loop.

    Both leave the loop at once: the tasks of the run stay where they are, and the threads of its sync tools wait for
    work. The interpreter would wait for these threads when it exits, for ever.
    """
    before = _tasks(_current_loop())
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        loop = _current_loop()
        if loop is not None and not loop.is_running() and not loop.is_closed():
            _end(_tasks(loop) - before, loop)
        raise


def _end(tasks: set[asyncio.Task[Any]], loop: asyncio.AbstractEventLoop) -> None:
    for task in tasks:
        task.cancel()
    # The interrupt leaves the loop again from each task that waited for one it passed through; a turn of the loop is due
    # also without any task, for the callbacks that end the threads. As many tries as that can take, so that a person
    # can still interrupt a task that will not end.
    for _ in range(len(tasks) + 1):
        with contextlib.suppress(KeyboardInterrupt, SystemExit):
            loop.run_until_complete(_ended(tasks))
            return


def _current_loop() -> asyncio.AbstractEventLoop | None:
    """The loop the host takes, which may not be running."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', DeprecationWarning)  # before 3.14 one is made where there is none
        try:
            return asyncio.get_event_loop()
        except RuntimeError:
            return None


def _tasks(loop: asyncio.AbstractEventLoop | None) -> set[asyncio.Task[Any]]:
    return set() if loop is None else asyncio.all_tasks(loop)


async def _ended(tasks: set[asyncio.Task[Any]]) -> None:
    await asyncio.gather(asyncio.sleep(0), *(task for task in tasks if not task.done()), return_exceptions=True)
