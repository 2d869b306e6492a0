"""Many runs that wait for an answer at once: where they wait, and how long they take when all are answered."""

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
    """Handlers wait here until all runs have come, and are released together."""

    def __init__(self, runs: int) -> None:
        """Make room for `runs` handlers; belongs to the running event loop."""
        self._missing = runs
        self._loop = asyncio.get_running_loop()
        self._is_full = asyncio.Event()
        self._is_open = asyncio.Event()
        self._is_open_to_threads = threading.Event()

    async def handler(self, ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
        """Wait, then approve everything."""
        self._arrive()
        await self._is_open.wait()
        return approve(ctx, requests)

    def sync_handler(self, ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
        """Block this thread, then approve everything."""
        self._loop.call_soon_threadsafe(self._arrive)
        self._is_open_to_threads.wait()
        return approve(ctx, requests)

    async def fill(self) -> None:
        """Wait until every run waits."""
        await self._is_full.wait()

    def open(self) -> None:
        """Let all of them go on."""
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
"""Variants by name, for a room. The host's own sync handler is none of them: the first one would stop the loop."""


class Crowd:
    """Runs of one variant that all wait for their answer."""

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
        """Answer all of them, and time how long they take to their ends."""
        wall_started, cpu_started = time.perf_counter(), time.process_time()
        self._room.open()
        await asyncio.gather(*self._tasks)
        return Timing(cpu_s=time.process_time() - cpu_started, wall_s=time.perf_counter() - wall_started)


async def release_pair(name: str, reference: str, *, runs: int, number: int) -> Pair:
    """Time the release of `runs` runs of two variants, one after the other, in odd rounds the reference first."""

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
        contests: Names of what is measured, and of what it is compared with.
        runs: Runs that wait at once.
        rounds: Pairs for each contest.
        note: Told how far it has come.

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
