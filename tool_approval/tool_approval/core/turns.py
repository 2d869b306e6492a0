"""One question at a time, where there is only one keyboard."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Generator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from weakref import WeakValueDictionary


class Turns:
    """Hands out turns in the order they were asked for, across threads and event loops."""

    def __init__(self) -> None:
        """Start with the turn free."""
        self.is_over = False
        """Whether the question that these turns belong to has ended: see `turns_within`."""
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


# State of the process: all terminal prompts share one terminal, whichever controller, run or thread they belong to, and an
# answer typed for one must not be read by another.
PROCESS_TURNS = Turns()
"""The turns of all UIs with `one_at_a_time`."""

# State of the process: controllers and event loops share a UI object. By id, as a UI need not be hashable; whoever holds
# or awaits a turn keeps both the entry and its UI alive, so an id is never taken over by another UI.
_turns_by_ui: WeakValueDictionary[int, Turns] = WeakValueDictionary()
_by_ui_lock = threading.Lock()


def turns_for(ui: object) -> Turns:
    """The turns of one UI object."""
    with _by_ui_lock:
        return _turns_by_ui.setdefault(id(ui), Turns())


# A UI may ask again before it answers, as an agent that reviews calls does: its inner question must not wait for the
# turn that the outer one holds.
_open_questions: ContextVar[Mapping[Turns, Turns] | None] = ContextVar('tool_approval_open_questions', default=None)


def turns_within(turns: Turns) -> Turns:
    """The turns a new question waits for: `turns`, or those inside the open question that asks it."""
    inner = (_open_questions.get() or {}).get(turns)
    return turns if inner is None or inner.is_over else turns_within(inner)


@contextmanager
def open_question(turns: Turns) -> Generator[Turns]:
    """The turns inside a question that holds the turn of `turns`; they are over when it has given its turn back."""
    inner = Turns()
    token = _open_questions.set({**(_open_questions.get() or {}), turns: inner})
    try:
        yield inner
    finally:
        _open_questions.reset(token)
