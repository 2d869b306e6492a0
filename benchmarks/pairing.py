"""Time pairs of runs that take turns, so that a disturbance of the machine slows both of them.

Other processes, and neighbours on a virtual machine, can change the speed of computing by a factor of two from one
second to the next. Runs that are measured one after another differ by that factor. Here, the two sides of a pair hand
over to each other at every model request, every few milliseconds.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

Checkpoint: TypeAlias = Callable[[], Awaitable[None]]
"""Function that lets the other side run, and returns when it is this side's turn again."""

Job: TypeAlias = Callable[[Checkpoint], Awaitable[object]]
"""Work to time. It awaits the checkpoint whenever the other side may take its turn."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Time of a job, without the turns of the other side."""

    cpu_s: float
    """Computing time of the process, with all its threads."""
    wall_s: float
    """Elapsed time."""

    def __add__(self, other: Timing) -> Timing:
        return Timing(cpu_s=self.cpu_s + other.cpu_s, wall_s=self.wall_s + other.wall_s)


Pair: TypeAlias = tuple[Timing, Timing]


class _Turns:
    """Keeps track of whose turn it is. One side runs while the other waits for a future."""

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
    """Measures time while its side has the turn."""

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
    """Run two jobs in turns, from checkpoint to checkpoint, and time each.

    Args:
        first: The job that takes the first turn.
        second: The other job.

    Raises:
        BaseException: The error of a job. The other job has finished by then.
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
    """Race `job` against `reference` twice. Each takes the first turn once.

    Args:
        job: The job to measure.
        reference: The job to compare it with.

    Returns:
        The timing of the job and that of the reference, each the sum of both races.
    """
    # Otherwise garbage of one side could be collected, and timed, during the turn of the other.
    gc.collect()
    first_mine, second_theirs = await race(job, reference)
    first_theirs, second_mine = await race(reference, job)
    return first_mine + second_mine, first_theirs + second_theirs
