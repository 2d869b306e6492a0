"""The calls that a turn makes: which run, since when, and about which somebody was asked."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from tool_approval.core.request import ApprovalRequest

SHOWN_AFTER_S = 1.0
"""Chosen: what takes less needs no sign that it goes on."""


@dataclass
class _Call:
    name: str
    began: float


class Calls:
    """Told by the printer and by the UI; asked by the line that shows progress."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Nothing runs.

        Args:
            now: Seconds that never go back.
        """
        self._now = now
        self._running: dict[str, _Call] = {}
        self._asked: dict[str, str] = {}
        self._waits_since = now()

    def clear(self) -> None:
        """A turn begins."""
        self._running.clear()
        self._asked.clear()
        self.go_on()

    def go_on(self) -> None:
        """Something came from the model, or a question was answered: what is waited for is waited for from now."""
        self._waits_since = self._now()
        for call in self._running.values():
            call.began = self._waits_since

    def begin(self, call_id: str, name: str) -> None:
        """A call was made."""
        self._running[call_id] = _Call(name, self._now())

    def end(self, call_id: str) -> str | None:
        """A call has its result.

        Returns:
            What somebody was asked, `None` if nobody was.
        """
        self._running.pop(call_id, None)
        self._waits_since = self._now()
        return self._asked.pop(call_id, None)

    def ask(self, request: ApprovalRequest) -> None:
        """Somebody is asked about a call."""
        if request.tool_call_id is not None:
            self._asked[request.tool_call_id] = request.attributed_description

    def is_unseen(self, call_id: str) -> bool:
        """Whether that call has no result yet, and nobody was asked about it."""
        return call_id in self._running and call_id not in self._asked

    @property
    def are_any_running(self) -> bool:
        """Whether a call has no result yet."""
        return bool(self._running)

    def progress(self) -> str | None:
        """What takes longer than a moment, and for how many seconds it does; not escaped."""
        since = min((call.began for call in self._running.values()), default=self._waits_since)
        seconds = self._now() - since
        if seconds < SHOWN_AFTER_S:
            return None
        names = ', '.join(dict.fromkeys(call.name[:100] for call in self._running.values()))
        return f'{names or "waiting for the model"} {seconds:.0f} s'
