"""One question at a time, where there is only one keyboard."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from concurrent.futures import Future


class Turns:
    """Hands out turns in the order they were asked for, across threads and event loops."""

    def __init__(self) -> None:
        """Nobody has the turn."""
        self._lock = threading.Lock()
        self._is_taken = False
        self._waiting: deque[Future[None]] = deque()

    async def take(self) -> None:
        """Wait for the turn. Whoever has taken it must `leave`; who is cancelled while waiting has not."""
        turn = self._ask()
        try:
            await asyncio.wrap_future(turn)
        except BaseException:
            # Cancelled, or its loop is gone. If that was just as the turn was given, it must go on to the next.
            if not turn.cancel():
                self.leave()
            raise

    def leave(self) -> None:
        """Give the turn to who has waited longest. May be called from any thread."""
        with self._lock:
            while self._waiting:
                turn = self._waiting.popleft()
                if turn.set_running_or_notify_cancel():
                    break
            else:
                self._is_taken = False
                return
        turn.set_result(None)

    def _ask(self) -> Future[None]:
        turn: Future[None] = Future()
        with self._lock:
            if self._is_taken:
                self._waiting.append(turn)
                return turn
            self._is_taken = True
        turn.set_running_or_notify_cancel()
        turn.set_result(None)
        return turn


# The one state of this package that is the process's: all terminal prompts share one terminal, whichever controller,
# run or thread they belong to, and an answer typed for one must not be read by another.
PROCESS_TURNS = Turns()
"""The turns of all UIs that ask one question at a time."""
