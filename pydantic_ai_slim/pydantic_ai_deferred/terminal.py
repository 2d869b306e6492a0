"""Give a handler the terminal while the handler runs, and end unfinished tasks after Ctrl-C.

The host's chat redraws the model's text many times a second, and overwrites what a handler prints. Square brackets in
printed text become markup. Therefore, the display stops while a handler runs, and restarts afterwards.
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
    """Mark code in the context as part of the host's chat. In a chat, a running handler has the terminal to itself."""
    token = _chatting.set(True)
    try:
        yield
    finally:
        _chatting.reset(token)


def terminal_to_handler() -> AbstractContextManager[None]:
    """Stop the live display while a handler runs. Outside of a chat, do nothing."""
    display = _live_display() if _chatting.get() else None
    return nullcontext() if display is None else _taken_down(display)


@contextmanager
def _taken_down(display: Any) -> Generator[None]:
    shown = display.get_renderable()
    # The display erases its last content when it restarts, so leave it only one empty line.
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
    # Rich replaces `sys.stdout` with a proxy while a display is live, and offers no public way from there to the
    # display. If a release of Rich changes this, no display is found and `test_chat.py` fails.
    consoles = [value for value in vars(sys.stdout).values() if hasattr(value, 'set_live')] if _is_proxy() else []
    displays = [display for console in consoles for display in getattr(console, '_live_stack', ())]
    return displays[0] if displays else None


def _is_proxy() -> bool:
    return hasattr(sys.stdout, 'rich_proxied_file')


@contextlib.contextmanager
def leaving_nothing() -> Generator[None]:
    """End unfinished tasks of a run when `KeyboardInterrupt` or `SystemExit` passes through the event loop.

    Both exceptions stop the event loop at once. The run's tasks then stay pending, and the threads that ran its sync
    tools wait for more work. On exit, the interpreter joins these threads and would wait forever.
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
    # The interrupt leaves the loop again for each task that waited for an interrupted one. One turn is needed even
    # without tasks, for the callbacks that end the threads. The number of tries is limited, so that a person can still
    # interrupt a task that does not end.
    for _ in range(len(tasks) + 1):
        with contextlib.suppress(KeyboardInterrupt, SystemExit):
            loop.run_until_complete(_ended(tasks))
            return


def _current_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that the host uses, even if the loop is not running."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', DeprecationWarning)  # before 3.14 a missing loop is created
        try:
            return asyncio.get_event_loop()
        except RuntimeError:
            return None


def _tasks(loop: asyncio.AbstractEventLoop | None) -> set[asyncio.Task[Any]]:
    return set() if loop is None else asyncio.all_tasks(loop)


async def _ended(tasks: set[asyncio.Task[Any]]) -> None:
    await asyncio.gather(asyncio.sleep(0), *(task for task in tasks if not task.done()), return_exceptions=True)
