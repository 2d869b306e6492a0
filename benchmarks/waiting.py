"""Measure many runs that wait for an answer: the time until all have ended after they are answered."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext

from .pairing import Pair, Timing
from .variants import Script, Variant, approve, ours, stop_resume, upstream

_SCRIPT = Script(rounds=1, calls=1)


class WaitingRoom:
    """Keeps handlers waiting until all runs have arrived, and releases them together."""

    def __init__(self, runs: int) -> None:
        """Wait for `runs` handlers. Belongs to the running event loop."""
        self._missing = runs
        self._loop = asyncio.get_running_loop()
        self._is_full = asyncio.Event()
        self._is_open = asyncio.Event()
        self._is_open_to_threads = threading.Event()

    async def handler(self, ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
        """Wait, then approve every call."""
        self._arrive()
        await self._is_open.wait()
        return approve(ctx, requests)

    def sync_handler(self, ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
        """Block this thread, then approve every call."""
        self._loop.call_soon_threadsafe(self._arrive)
        self._is_open_to_threads.wait()
        return approve(ctx, requests)

    async def fill(self) -> None:
        """Wait until every run has arrived."""
        await self._is_full.wait()

    def open(self) -> None:
        """Release all handlers."""
        self._is_open.set()
        self._is_open_to_threads.set()

    def _arrive(self) -> None:
        self._missing -= 1
        if not self._missing:
            self._is_full.set()


WAITING: Mapping[str, Callable[[WaitingRoom], Variant]] = MappingProxyType(
    {
        'upstream, async': lambda room: upstream(room.handler, 'upstream, async'),
        'upstream, async (again)': lambda room: upstream(room.handler, 'upstream, async (again)'),
        'stop/resume': lambda room: stop_resume(room.handler),
        'ours, async': lambda room: ours(room.handler, 'ours, async'),
        'ours, sync': lambda room: ours(room.sync_handler, 'ours, sync'),
    }
)
"""Variants by name, for a room. The host's sync handler is left out, because the first one would block the loop."""


class Crowd:
    """Runs of one variant that all wait for an answer."""

    def __init__(self, name: str, runs: int) -> None:
        """Prepare `runs` runs of the variant `name`."""
        self._room = WaitingRoom(runs)
        self._variant = WAITING[name](self._room)
        self._runs = runs

    async def gather(self) -> None:
        """Start the runs, and return when all of them wait."""
        model = _SCRIPT.model()
        self._tasks = [asyncio.ensure_future(self._variant.run(model)) for _ in range(self._runs)]
        await self._room.fill()

    async def release(self) -> Timing:
        """Answer all runs, and time how long they take to end."""
        wall_started, cpu_started = time.perf_counter(), time.process_time()
        self._room.open()
        await asyncio.gather(*self._tasks)
        return Timing(cpu_s=time.process_time() - cpu_started, wall_s=time.perf_counter() - wall_started)


async def release_pair(name: str, reference: str, *, runs: int, number: int) -> Pair:
    """Time the release of `runs` runs of two variants, one after another. In odd rounds the reference is first."""

    async def timed(each: str) -> Timing:
        crowd = Crowd(each, runs)
        await crowd.gather()
        gc.collect()
        return await crowd.release()

    if number % 2:
        theirs = await timed(reference)
        return await timed(name), theirs
    mine = await timed(name)
    return mine, await timed(reference)


async def releases(
    contests: Sequence[tuple[str, str]], *, runs: int, rounds: int, note: Callable[[str], None]
) -> list[list[Pair]]:
    """Time the release of `runs` waiting runs.

    Args:
        contests: Pairs of names: a variant and its reference.
        runs: Number of runs that wait at the same time.
        rounds: Pairs for each contest.
        note: Called with a text about the progress.

    Returns:
        The pairs of each contest.
    """
    pairs: list[list[Pair]] = [[] for _ in contests]
    for number in range(rounds):
        note(f'M = {runs}: round {number + 1} of {rounds}')
        for turn in range(len(contests)):
            index = (turn + number) % len(contests)
            name, reference = contests[index]
            pairs[index].append(await release_pair(name, reference, runs=runs, number=number))
    return pairs
