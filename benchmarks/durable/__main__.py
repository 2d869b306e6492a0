"""Measure durable runs: `python -m benchmarks.durable`, `make bench-durable`.

Thousands of runs are parked, and cost a worker nothing; answers come at a steady rate or all at once, and workers go
on; one approved call is compared with the same DBOS steps without a question.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.inbox import places

from .answers import BURST, Burst, Resumed, measure_burst, measure_plain_burst, measure_resumed
from .faults import OURS, disturb
from .page import page
from .parked import PARKED, Parked, measure_parked
from .stories import measure_stories
from .workers import url_of


def main() -> None:
    """Measure, print the page, and write it where that was asked for. A missed limit is printed, and no failure."""
    parser = argparse.ArgumentParser(prog='python -m benchmarks.durable', description=__doc__)
    parser.add_argument('--quick', action='store_true', help='measure little')
    parser.add_argument('--write', type=Path, metavar='PATH', help='also write the page, as Markdown')
    parser.add_argument('--runs', type=int, metavar='N', default=PARKED, help='runs to park on PostgreSQL')
    parser.add_argument('--sqlite-runs', type=int, metavar='N', default=2_000, help='runs to park on SQLite')
    parser.add_argument('--rounds', type=int, metavar='N', default=5, help='how often a call is compared')
    parser.add_argument('--faults', action='store_true', help='disturb runs and look for an effect too many instead')
    parser.add_argument('--disturbed-runs', type=int, metavar='N', default=50, help='runs to disturb on each store')
    parser.add_argument('--seed', type=int, default=0, help='seed of the disturbances')
    parser.add_argument('--agent', metavar='MODULE:FUNCTION', default=OURS, help='function that makes an agent')
    options = parser.parse_args()
    if options.faults:
        with places() as makers, tempfile.TemporaryDirectory() as folder:
            made = [make() for make in makers]
            count = sum(
                disturb(
                    store,
                    place,
                    url_of((store, place)),
                    options.agent,
                    options.disturbed_runs,
                    options.seed,
                    Path(folder),
                )
                for store, place in made
            )
        raise SystemExit(1 if count else 0)
    parked: list[Parked] = []
    resumed: list[Resumed] = []
    bursts: list[Burst] = []
    stories: dict[str, dict[str, list[list[float]]]] = {}
    with places(syncs=True) as makers:
        for make in reversed(makers):
            place = make()
            store, _ = place
            count = 200 if options.quick else options.sqlite_runs if store == 'SQLite' else options.runs
            stories[store] = measure_stories(make, 10, 1 if options.quick else options.rounds)
            print(f'{store}: stories measured', file=sys.stderr)
            parked.append(measure_parked(place, make(), count))
            print(f'{store}: parked', file=sys.stderr)
            resumed.append(measure_resumed(place, PARKED // count * count, min(count, 2000) // 2))
            bursts.append(measure_burst(place, min(count // 2, BURST)))
            bursts.append(measure_plain_burst(make(), min(count // 2, BURST)))
    text = page(parked, resumed, bursts, stories)
    print(text, end='')
    if options.write is not None:
        options.write.write_text(text, encoding='utf-8')


if __name__ == '__main__':
    main()
