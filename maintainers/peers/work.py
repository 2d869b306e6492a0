"""The work every peer does, and who approves it. Needs the standard library alone: it runs in every environment.

A prompt says how many responses with calls the model gives and how many calls are in each of them (`'10 1'`), so that
an agent is built once and a scripted model needs no state.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

Run: TypeAlias = Callable[[str, bool], Awaitable[None]]
"""Runs an agent from its prompt to its final text; the flag says whether its calls need approval."""

RUN_LIMIT = 10_000
"""chosen: above the steps of every run here, for frameworks that stop after a number of them."""


@dataclass(kw_only=True)
class Counts:
    """What really happened, so that nobody is timed who does less."""

    requests: int = 0
    """Responses the model was asked for."""
    asked: int = 0
    """Calls somebody was asked about."""
    executed: int = 0
    """Tools that ran."""


class Bench:
    """The scripted model's words, the tool, and the person, all counted."""

    def __init__(self) -> None:
        """Nothing has happened, and the person answers at once."""
        self.counts = Counts()
        self.crowd: Crowd | None = None

    def calls_of(self, prompt: str, messages: int, per_call: int, per_response: int) -> range | None:
        """The numbers of the calls in the next response; `None` for the final text.

        Args:
            prompt: What the run began with.
            messages: How many messages came after the prompt.
            per_call: How many of them one call makes.
            per_response: How many of them a response makes whatever it calls.
        """
        self.counts.requests += 1
        rounds, calls = map(int, prompt.split())
        return range(calls) if messages < rounds * (per_response + calls * per_call) else None

    def touch(self, number: int) -> str:
        """The tool: as little work as a tool can be."""
        self.counts.executed += 1
        return f'touched {number}'

    async def answer(self, calls: int = 1) -> None:
        """Be asked about calls, and return when they are approved."""
        self.counts.asked += calls
        if self.crowd is not None:
            self.crowd.arrive()
            await self.crowd.gate.wait()

    def answer_blocking(self, calls: int = 1) -> None:
        """The same, from a thread that may block."""
        crowd = self.crowd
        if crowd is None:
            self.counts.asked += calls
            return
        with crowd.lock:
            self.counts.asked += calls
        crowd.loop.call_soon_threadsafe(crowd.arrive)
        crowd.blocking_gate.wait()


class Crowd:
    """Runs that wait for an answer at once. Made where an event loop runs."""

    def __init__(self, size: int) -> None:
        """Nobody waits yet.

        Args:
            size: How many will.
        """
        self.loop = asyncio.get_running_loop()
        self.lock = threading.Lock()
        self.gate = asyncio.Event()
        self.blocking_gate = threading.Event()
        self.is_complete = asyncio.Event()
        self._missing = size

    def arrive(self) -> None:
        """One more waits. Called on the event loop."""
        self._missing -= 1
        if self._missing == 0:
            self.is_complete.set()

    def release(self) -> None:
        """Approve everything."""
        self.gate.set()
        self.blocking_gate.set()
