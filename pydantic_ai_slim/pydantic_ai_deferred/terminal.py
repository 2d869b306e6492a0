"""The terminal of a run: given to the handler while it asks, and left in order by Ctrl-C.

The host's chat redraws what the model says many times a second, over whatever a handler prints, and takes square
brackets in it for markup. So the display is taken down while a handler is asked, and put up again afterwards.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import warnings
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

_chatting: ContextVar[bool] = ContextVar('pydantic_ai_deferred_chatting', default=False)


@contextmanager
def chatting() -> Generator[None]:
    """While the host's chat runs: handlers asked in it are given the terminal."""
    token = _chatting.set(True)
    try:
        yield
    finally:
        _chatting.reset(token)


def terminal_to_handler() -> AbstractContextManager[None]:
    """While a handler is asked: no live display writes to the terminal. Outside of a chat, nothing happens."""
    display = _live_display() if _chatting.get() else None
    return nullcontext() if display is None else _taken_down(display)


@contextmanager
def _taken_down(display: Any) -> Generator[None]:
    shown = display.get_renderable()
    # One empty line is all that the display may take back when it starts again.
    display.update('', refresh=True)
    nothing = display.get_renderable()
    display.stop()
    display.console.print(shown)
    try:
        yield
    finally:
        display.start()
        if display.get_renderable() is nothing:
            display.update(shown)


def _live_display() -> Any:
    # Rich puts a proxy in the place of `sys.stdout` while a display is live; it has no public way from there to the
    # display. Where a release of Rich changes this, nothing is found, and `test_chat.py` says so.
    consoles = [value for value in vars(sys.stdout).values() if hasattr(value, 'set_live')] if _is_proxy() else []
    displays = [display for console in consoles for display in getattr(console, '_live_stack', ())]
    return displays[0] if displays else None


def _is_proxy() -> bool:
    return hasattr(sys.stdout, 'rich_proxied_file')


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
    # The interrupt leaves the loop again from each task that waited for one it passed through; a turn of the loop is
    # due also without any task, for the callbacks that end the threads. As many tries as that can take, so that a
    # person can still interrupt a task that will not end.
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
