"""Measure the loop layer against the host's own ways: `python -m benchmarks.loop`, `make bench-loop`."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import sys
import tempfile
from pathlib import Path

from . import approval, cost, stall
from .page import page
from .results import Results, Stall
from .spread import ratios
from .targets import CONTROL, LAYER, OURS, OURS_SYNC, UPSTREAM, UPSTREAM_THREAD
from .variants import approve, approve_async, approve_in_thread, check_same_work, ours, stop_resume, upstream

WHAT = ('cost', 'growth', 'stall')


def main() -> None:
    """Measure, print the page, and write it if asked to. A missed target is printed, but is not a failure."""
    parser = argparse.ArgumentParser(prog='python -m benchmarks.loop', description=__doc__)
    parser.add_argument('--quick', action='store_true', help='measure little, in a minute or two')
    parser.add_argument('--only', choices=WHAT, action='append', help='measure just this; may be repeated')
    parser.add_argument('--write', type=Path, metavar='PATH', help='also write the page, as Markdown')
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        results = asyncio.run(_measure(set(options.only or WHAT), Path(folder), is_quick=options.quick))
    text = page(results, load_before=load_before, load_after=os.getloadavg()[0])
    print(text, end='')
    if options.write is not None:
        options.write.write_text(text, encoding='utf-8')


async def _measure(what: set[str], folder: Path, *, is_quick: bool) -> Results:
    results = Results()
    reference = upstream(approve_async, UPSTREAM)
    again = upstream(approve_async, CONTROL)
    mine, mine_sync = ours(approve_async, OURS), ours(approve, OURS_SYNC)
    resumed, threaded = stop_resume(approve_async), upstream(approve_in_thread, UPSTREAM_THREAD)
    layer = approval.layered(LAYER, approval.asked_each_time(approval.sink(folder)))
    await check_same_work([reference, again, mine, mine_sync, threaded, resumed, layer])
    # Otherwise every full collection would look through the imported modules.
    gc.collect()
    gc.freeze()
    if 'cost' in what:
        against_reference = [again, mine, mine_sync, layer]
        contests = [*((each, reference) for each in against_reference), (mine_sync, threaded), (resumed, mine)]
        for case in cost.QUICK_CASES if is_quick else cost.CASES:
            results.comparisons += await cost.compare(case, contests, note=_note)
    if 'growth' in what:
        for variant in (reference, mine):
            results.growth[variant.name] = await cost.growth(variant, rounds=2 if is_quick else 8, note=_note)
    if 'stall' in what:
        results.stalls += await _stalls(rounds=3 if is_quick else 16)
    return results


async def _stalls(rounds: int) -> list[Stall]:
    measured = await stall.gaps(runs=50, rounds=rounds, note=_note)
    return [
        Stall(
            variant=name,
            ratio=ratios(zip(gaps, measured[OURS], strict=True)),
        )
        for name, gaps in measured.items()
    ]


def _note(progress: str) -> None:
    if sys.stderr.isatty():
        print(f'\r\033[K{progress}', end='', file=sys.stderr, flush=True)


if __name__ == '__main__':
    main()
