"""Measure how long the event loop is blocked while many runs wait for slow handlers."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext

from .variants import Script, Variant, approve, ours, upstream

HANDLER_S = 0.02
"""Seconds that a handler takes."""

_SCRIPT = Script(rounds=1, calls=1)


async def _sleeping(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
    await asyncio.sleep(HANDLER_S)
    return approve(ctx, requests)


def _blocking(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
    time.sleep(HANDLER_S)
    return approve(ctx, requests)


STALLING: Mapping[str, Callable[[], Variant]] = MappingProxyType(
    {
        'upstream, async': lambda: upstream(_sleeping, 'upstream, async'),
        'upstream, sync': lambda: upstream(_blocking, 'upstream, sync'),
        'ours, async': lambda: ours(_sleeping, 'ours, async'),
        'ours, async (again)': lambda: ours(_sleeping, 'ours, async (again)'),
        'ours, sync': lambda: ours(_blocking, 'ours, sync'),
    }
)
"""Variants by name."""


async def longest_gap(variant: Variant, *, runs: int) -> float:
    """Return how many seconds a task has to wait for its turn while `runs` other runs are active.

    The work of the runs counts: they compute between two awaits, one after another.
    """
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        woken_s = time.perf_counter()
        while True:
            await asyncio.sleep(0.001)
            gap_s = time.perf_counter() - woken_s
            longest = max(longest, gap_s)
            woken_s += gap_s

    model = _SCRIPT.model()
    ticking = asyncio.ensure_future(tick())
    await asyncio.sleep(0.005)
    await asyncio.gather(*(variant.run(model) for _ in range(runs)))
    await asyncio.sleep(0.005)
    ticking.cancel()
    return longest


async def gaps(*, runs: int, rounds: int, note: Callable[[str], None]) -> dict[str, list[float]]:
    """Return the gaps of each variant in each round. The variants rotate from round to round."""
    variants = [make() for make in STALLING.values()]
    for variant in variants:
        await longest_gap(variant, runs=2)
    measured: dict[str, list[float]] = {name: [] for name in STALLING}
    for number in range(rounds):
        note(f'event loop: round {number + 1} of {rounds}')
        for turn in range(len(variants)):
            variant = variants[(turn + number) % len(variants)]
            gc.collect()
            measured[variant.name].append(await longest_gap(variant, runs=runs))
    return measured
