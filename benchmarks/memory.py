"""Measure the memory of waiting runs, each time in a new process: `python -m benchmarks.memory NAME RUNS HOW`."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

from .waiting import Crowd

_STATM = Path('/proc/self/statm')


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Memory of one waiting run, in bytes."""

    traced: float
    """Memory that Python allocated and did not free (`tracemalloc`), without the stacks of threads."""
    resident: float | None
    """Growth of the process in main memory; `None` if the system does not report it."""


def measure(name: str, runs: int) -> Memory:
    """Let `runs` runs of the variant `name` wait in two new processes, because tracing itself takes memory.

    Raises:
        subprocess.CalledProcessError: A process failed.
    """
    traced = _in_process(name, runs, 'traced')
    assert traced is not None
    resident = _in_process(name, runs, 'resident') if _STATM.exists() else None
    return Memory(traced=traced / runs, resident=resident if resident is None else resident / runs)


def _in_process(name: str, runs: int, how: str) -> float | None:
    command = [sys.executable, '-m', 'benchmarks.memory', name, str(runs), how]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def _resident_bytes() -> int:
    return int(_STATM.read_text().split()[1]) * os.sysconf('SC_PAGE_SIZE')


def _traced_bytes() -> int:
    return tracemalloc.get_traced_memory()[0]


async def _growth(name: str, runs: int, how: str) -> int:
    # The first runs fill caches and compile schemas, whose memory is not that of waiting.
    for _ in range(3):
        warm = Crowd(name, 1)
        await warm.gather()
        await warm.release()
    if how == 'traced':
        tracemalloc.start()
    taken = _traced_bytes if how == 'traced' else _resident_bytes
    crowd = Crowd(name, runs)
    gc.collect()
    before = taken()
    await crowd.gather()
    gc.collect()
    after = taken()
    await crowd.release()
    return after - before


if __name__ == '__main__':
    print(json.dumps(asyncio.run(_growth(sys.argv[1], int(sys.argv[2]), sys.argv[3]))))
