"""Keep a call alone: no other call of the conversation runs beside it, or has changed anything since its question."""

from __future__ import annotations

import secrets
import threading


class Turns:
    """The calls of one conversation that run now. Threads and event loops may share the object."""

    def __init__(self) -> None:
        """Begin without a running call."""
        self._id = secrets.token_hex(8)
        self._lock = threading.Lock()
        self._running = 0
        self._changes = 0
        self._is_alone = False

    @property
    def mark(self) -> str:
        """A text that differs as soon as a call that could change something has ended, and in every other process."""
        with self._lock:
            return f'{self._id}-{self._changes}'

    def begin(self) -> bool:
        """Count a call that begins, and return true; return false, and count nothing, while another call is alone."""
        with self._lock:
            self._running += not self._is_alone
            return not self._is_alone

    def end(self, *, could_change: bool) -> None:
        """Count the end of a call, which says whether it could change something that another call uses."""
        with self._lock:
            self._running -= 1
            self._changes += could_change

    def begin_alone(self) -> bool:
        """Let no other call begin, and return true; return false, and change nothing, while another call runs."""
        with self._lock:
            if self._running or self._is_alone:
                return False
            self._is_alone = True
            return True

    def end_alone(self) -> None:
        """Let other calls begin again. The call that was alone could change something."""
        with self._lock:
            self._is_alone = False
            self._changes += 1
