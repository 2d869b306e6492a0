"""Define the work that every peer does, and its approver. This module needs only the standard library.

A prompt names the number of responses with calls, and of calls in each (`'10 1'`). So an agent is built only once, and
a scripted model needs no state.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

Run: TypeAlias = Callable[[str, bool], Awaitable[None]]
"""Function that runs an agent from its prompt to its final text. The flag is whether its calls need approval."""

RUN_LIMIT = 10_000
"""More steps than any run has, for frameworks that stop after a number of them."""


@dataclass(kw_only=True)
class Counts:
    """Numbers of the work that was done, so that no peer is timed for doing less."""

    requests: int = 0
    """Requests to the model."""
    asked: int = 0
    """Calls that the approver was asked about."""
    executed: int = 0
    """Executions of tools."""


class Bench:
    """The scripted model, the tool and the approver of a run, with counts of their work."""

    def __init__(self) -> None:
        """Start with counts of zero, and an approver who answers at once."""
        self.counts = Counts()
        self.crowd: Crowd | None = None

    def calls_of(self, prompt: str, messages: int, per_call: int, per_response: int) -> range | None:
        """Return the numbers of the calls in the next response, or `None` for the final text.

        Args:
            prompt: The prompt of the run.
            messages: The number of messages after the prompt.
            per_call: Messages that each call adds.
            per_response: Messages that each response adds, whatever it calls.
        """
        self.counts.requests += 1
        rounds, calls = map(int, prompt.split())
        return range(calls) if messages < rounds * (per_response + calls * per_call) else None

    def touch(self, number: int) -> str:
        """Do as little as a tool can do."""
        self.counts.executed += 1
        return f'touched {number}'

    async def answer(self, calls: int = 1) -> None:
        """Approve calls."""
        self.counts.asked += calls
        if self.crowd is not None:
            self.crowd.arrive()
            await self.crowd.gate.wait()

    def answer_blocking(self, calls: int = 1) -> None:
        """Approve calls from a thread that may block."""
        crowd = self.crowd
        if crowd is None:
            self.counts.asked += calls
            return
        with crowd.lock:
            self.counts.asked += calls
        crowd.loop.call_soon_threadsafe(crowd.arrive)
        crowd.blocking_gate.wait()


class Crowd:
    """Runs that wait for an answer at the same time. Create it inside a running event loop."""

    def __init__(self, size: int) -> None:
        """Expect runs.

        Args:
            size: The number of runs that will wait.
        """
        self.loop = asyncio.get_running_loop()
        self.lock = threading.Lock()
        self.gate = asyncio.Event()
        self.blocking_gate = threading.Event()
        self.is_complete = asyncio.Event()
        self._missing = size

    def arrive(self) -> None:
        """Count a run that waits. Call this on the event loop."""
        self._missing -= 1
        if self._missing == 0:
            self.is_complete.set()

    def release(self) -> None:
        """Approve all calls."""
        self.gate.set()
        self.blocking_gate.set()
