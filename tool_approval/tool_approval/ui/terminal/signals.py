"""Puts the terminal back before a signal stops or ends the program."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Generator
from types import FrameType

from .tty import Terminal

_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP)


@contextlib.contextmanager
def restored_at_signals(terminal: Terminal) -> Generator[None]:
    """Until the block ends, a signal that nobody handles puts the terminal back before it does what it does.

    Only Python's main thread may handle signals; in another, and for those that the program handles itself, nothing is
    done here. A program that was stopped and continued finds out for itself; see `Terminal.is_raw`.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        terminal.restore()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        # After SIGTSTP, this is when the program goes on.
        signal.signal(number, handle)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handled = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in handled:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)
