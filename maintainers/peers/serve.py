"""Serve as a worker process: read orders from standard input, one JSON object a line, and answer each with one line.

The answer to `{"rounds": 10, "calls": 1, "approval": true, "repeat": 3}` has the seconds of computing and elapsed time
of one run. `{"waiting": 100, "trace": false}` lets that many runs wait for approval at the same time. The first line of
a worker names its versions, or the reason why it cannot work. This module needs only the standard library.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .work import Bench, Counts, Crowd, Run

_STATM = Path('/proc/self/statm')


def serve(build: Callable[[Bench], Run], packages: Sequence[str]) -> None:
    """Answer orders until standard input ends.

    Args:
        build: Makes the agents of the peer.
        packages: Distributions whose versions are reported.
    """
    # Output of a framework must not look like an answer.
    answers = os.fdopen(os.dup(1), 'w', encoding='utf-8')
    os.dup2(2, 1)

    def say(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer) + '\n')
        answers.flush()

    bench = Bench()
    try:
        run = build(bench)
    except Exception as error:  # noqa: BLE001 - the page reports any error as the reason why the peer has no figures
        say({'error': f'{type(error).__name__}: {error}'})
        return
    say({'versions': {name: version(name) for name in packages}})
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            order = json.loads(line)
            work = _wait(bench, run, **order) if 'waiting' in order else _time(bench, run, **order)
            try:
                say(runner.run(work))
            except Exception as error:  # noqa: BLE001 - see above
                say({'error': f'{type(error).__name__}: {error}'})


async def _time(bench: Bench, run: Run, *, rounds: int, calls: int, approval: bool, repeat: int) -> dict[str, Any]:
    bench.counts, bench.crowd = Counts(), None
    prompt = f'{rounds} {calls}'
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(repeat):
        await run(prompt, approval)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return {'cpu_s': cpu / repeat, 'wall_s': wall / repeat, 'counts': asdict(bench.counts)}


async def _wait(bench: Bench, run: Run, *, waiting: int, trace: bool) -> dict[str, Any]:
    bench.counts, bench.crowd = Counts(), None
    await run('1 1', True)  # the first run of a process fills caches, which no waiting run should pay for
    gc.collect()
    bench.counts, bench.crowd = Counts(), Crowd(waiting)
    if trace:
        tracemalloc.start()
    resident = _resident()
    runs = [asyncio.ensure_future(run('1 1', True)) for _ in range(waiting)]
    await _all_wait(bench.crowd, runs)
    gc.collect()
    traced = tracemalloc.get_traced_memory()[0] if trace else None
    tracemalloc.stop()
    grown = None if resident is None else (_resident() or 0) - resident
    bench.crowd.release()
    await asyncio.gather(*runs)
    return {'resident': grown, 'traced': traced, 'counts': asdict(bench.counts)}


async def _all_wait(crowd: Crowd, runs: Sequence[asyncio.Future[None]]) -> None:
    # A failed run never arrives, so wait for it as well.
    complete = asyncio.ensure_future(crowd.is_complete.wait())
    await asyncio.wait([complete, *runs], return_when=asyncio.FIRST_COMPLETED)
    if not complete.done():
        complete.cancel()
        crowd.release()
        await asyncio.gather(*runs)
        raise RuntimeError('A run ended without waiting for its approval.')


def _resident() -> int | None:
    if not _STATM.exists():
        return None
    return int(_STATM.read_text(encoding='ascii').split()[1]) * os.sysconf('SC_PAGE_SIZE')
