"""Format the results as a Markdown page."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version

from .cost import Comparison
from .results import Results
from .targets import CONTROL, LAYER, judge

_COST = """\
## Rounds and calls

N is the number of model responses in one run. Each response has one call to approve.
K is the number of calls in one response. K = 1 is the same as N = 1.
A fake model answers at once, the tool does nothing, and the handler approves at once.
So the figures show only the cost of the approval mechanism, which is far less than the response time of a real model.
Each ratio is the median over several pairs of runs. The quartiles follow in brackets.
In "upstream, in a thread", an async handler calls the sync handler by `asyncio.to_thread`, as a program with upstream
must if the handler may block. Upstream's thread is kept for the next run; a thread of ours ends with its run.
"""


def page(results: Results, *, load_before: float, load_after: float) -> str:
    """Return the page with all results and the machine that they were measured on.

    Args:
        results: The results.
        load_before: Load average of the last minute before the measurements.
        load_after: Load average of the last minute after the measurements.
    """
    verdicts = judge(results)
    missed = sum(not verdict.holds for verdict in verdicts)
    lines = [
        '# Benchmarks of the loop',
        '',
        'Written by `python -m benchmarks.loop --write PATH`; `make bench-loop` prints the same figures.',
        f'Measured with pydantic-ai-slim {version("pydantic-ai-slim")} on {_machine()}.',
        f'The load average was {load_before:.1f} before and {load_after:.1f} after the measurements.',
        '',
        '## Targets',
        '',
        f'{len(verdicts) - missed} of {len(verdicts)} targets are met.',
        *_meaning(results.comparisons),
        '',
        *_table(
            ('target', 'measured', 'verdict'),
            ((verdict.target, verdict.measured, 'met' if verdict.holds else '**MISSED**') for verdict in verdicts),
        ),
        *_cost(results.comparisons),
    ]
    return '\n'.join(lines).rstrip() + '\n'


def _meaning(comparisons: Iterable[Comparison]) -> Iterator[str]:
    layer = [each.cpu.median for each in comparisons if each.variant == LAYER]
    if layer:
        yield (
            'A missed target means more computing time beside the model: with the approval layer, up to '
            f'{max(layer):.1f} times that of upstream, in a run whose model and tools take no time.'
        )


def _cost(comparisons: Sequence[Comparison]) -> Iterator[str]:
    if not comparisons:
        return
    yield from (*_COST.splitlines(), _noise(comparisons), '')


def _noise(comparisons: Iterable[Comparison]) -> str:
    controls = [each.cpu for each in comparisons if each.variant == CONTROL]
    cpu = max(abs(quartile - 1) for ratio in controls for quartile in (ratio.lower, ratio.upper))
    return (
        f'On a machine without noise, the ratio of a variant to itself ("{CONTROL}") would be 1. The quartiles '
        f'of this ratio differed from 1 by up to {cpu:.1%}.'
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield _row(head)
    yield _row(['---'] * len(head))
    yield from map(_row, rows)
    yield ''


def _row(cells: Sequence[str]) -> str:
    return f'| {" | ".join(cells)} |'


def _machine() -> str:
    return (
        f'{platform.python_implementation()} {platform.python_version()}, {platform.system()} {platform.machine()}, '
        f'{os.cpu_count()} processors'
    )
