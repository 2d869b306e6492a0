"""`to_cli`: the terminal is the handler's while it asks.

The host's chat redraws what the model says many times a second, over whatever a handler prints, and takes square
brackets in it for markup. So the display is taken down while a handler is asked, and put up again afterwards.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
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


@contextmanager
def terminal_to_handler() -> Generator[None]:
    """While a handler is asked: no live display writes to the terminal. Outside of a chat, nothing happens."""
    display = _live_display() if _chatting.get() else None
    if display is None:
        yield
        return
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
