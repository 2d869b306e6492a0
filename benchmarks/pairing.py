"""Pairs of runs that advance in turn, so that whatever slows the machine down slows down both.

Other processes, and the neighbours of a virtual machine, change what a second of computing is worth by a factor of
two from one second to the next. Two runs measured one after the other differ by that. Here the two sides of a pair
hand over to each other at every model request, which comes every few milliseconds.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

Checkpoint: TypeAlias = Callable[[], Awaitable[None]]
"""Lets the other side go on, and returns when it is one's turn again."""

Job: TypeAlias = Callable[[Checkpoint], Awaitable[object]]
"""Work to be timed. It awaits the checkpoint where the other side may take its turn."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """How long a job took, without the turns of the other side."""

    cpu_s: float
    """Computing time of the whole process, all its threads."""
    wall_s: float
    """Elapsed time."""

    def __add__(self, other: Timing) -> Timing:
        return Timing(cpu_s=self.cpu_s + other.cpu_s, wall_s=self.wall_s + other.wall_s)


Pair: TypeAlias = tuple[Timing, Timing]


class _Turns:
    """Whose turn it is. The side that has it runs; the other one waits for a future."""

    def __init__(self) -> None:
        self.second_starts = asyncio.get_running_loop().create_future()
        self._waiting: asyncio.Future[None] | None = self.second_starts
        self._is_alone = False

    async def hand_over(self) -> None:
        if self._is_alone:
            return
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._wake_other()
        self._waiting = mine
        await mine

    def finish(self) -> None:
        self._is_alone = True
        self._wake_other()

    def _wake_other(self) -> None:
        other, self._waiting = self._waiting, None
        if other is not None:
            other.set_result(None)


class _Stopwatch:
    """Runs while its side has the turn."""

    def __init__(self) -> None:
        self._cpu_s = self._wall_s = 0.0

    def start(self) -> None:
        self._wall_started = time.perf_counter()
        self._cpu_started = time.process_time()

    def stop(self) -> None:
        self._cpu_s += time.process_time() - self._cpu_started
        self._wall_s += time.perf_counter() - self._wall_started

    def timing(self) -> Timing:
        return Timing(cpu_s=self._cpu_s, wall_s=self._wall_s)


async def race(first: Job, second: Job) -> Pair:
    """Run two jobs in turn, one checkpoint of the one and one of the other, and time each.

    Args:
        first: Takes the first turn.
        second: Takes the second.

    Raises:
        BaseException: Whatever a job raises; the other one is finished before.
    """
    turns = _Turns()

    async def timed(job: Job) -> Timing:
        watch = _Stopwatch()

        async def checkpoint() -> None:
            watch.stop()
            await turns.hand_over()
            watch.start()

        watch.start()
        try:
            await job(checkpoint)
        finally:
            watch.stop()
            turns.finish()
        return watch.timing()

    async def later(job: Job) -> Timing:
        await turns.second_starts
        return await timed(job)

    sides = [asyncio.ensure_future(timed(first)), asyncio.ensure_future(later(second))]
    await asyncio.wait(sides)
    return sides[0].result(), sides[1].result()


async def paired_round(job: Job, reference: Job) -> Pair:
    """Race `job` against `reference` twice, each of them taking the first turn once.

    Args:
        job: What is measured.
        reference: What it is compared with.

    Returns:
        The timing of the job, and of the reference: the sum of both races.
    """
    # A collection that one side provokes would otherwise be paid for by whoever is running when it is due.
    gc.collect()
    first_mine, second_theirs = await race(job, reference)
    first_theirs, second_mine = await race(reference, job)
    return first_mine + second_mine, first_theirs + second_theirs
