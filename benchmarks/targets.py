"""Define the targets of the loop layer, and judge the measurements by them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .cost import Comparison
from .results import Results
from .spread import Spread

UPSTREAM = 'upstream, async'
"""Reference for the other variants."""
CONTROL = 'upstream, async (again)'
"""The reference built a second time. Its ratio shows the noise of the machine, and should be 1."""
UPSTREAM_THREAD = 'upstream, in a thread'
"""The host with an async handler that calls a sync one by `asyncio.to_thread`."""
OURS = 'ours, async'
"""This project with an async handler."""
OURS_SYNC = 'ours, sync'
"""This project with a sync handler."""
LAYER = 'the approval layer'
"""This project with a handler of `tool_approval` that logs its decisions."""
_LAYER = {'N = 1': 1.25, 'N = 10': 1.25, 'N = 200': 1.15, 'K = 1000': 1.8}
OURS_CONTROL = 'ours, async (again)'
"""This project with an async handler, built a second time."""
STOP_RESUME = 'stop/resume'
"""The host without a handler."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Result for one target."""

    target: str
    """Description of the target."""
    measured: str
    """Measured value."""
    holds: bool
    """Whether the target is met."""


def judge(results: Results) -> list[Verdict]:
    """Judge the results. Targets without a measurement are left out. Ratios are of computing time."""
    return [*_costs(results.comparisons), *_growth(results), *_stalls(results)]


def shown(ratio: Spread) -> str:
    """Return a ratio with its quartiles as text."""
    return f'{ratio.median:.3f} [{ratio.lower:.3f}–{ratio.upper:.3f}]'


def _costs(comparisons: list[Comparison]) -> Iterator[Verdict]:
    for each in comparisons:
        kind, size = each.case.split(' = ')
        if (each.variant, each.reference) == (OURS, UPSTREAM):
            if kind == 'N':
                yield _at_most(1.10 if int(size) == 1 else 1.05, each)
            elif int(size) == 1000:
                yield _at_most(1.15, each)
        elif (each.variant, each.reference) == (OURS_SYNC, UPSTREAM):
            yield _at_most(1.15, each)
        elif (each.variant, each.reference) == (OURS_SYNC, UPSTREAM_THREAD) and each.case == 'N = 10':
            yield _at_most(1.06, each)
        elif (each.variant, each.reference) == (LAYER, UPSTREAM) and each.case in _LAYER:
            yield _at_most(_LAYER[each.case], each)
        elif (each.variant, each.reference) == (STOP_RESUME, OURS) and kind == 'N' and int(size) >= 10:
            yield Verdict(
                target=f'{each.case}: {STOP_RESUME} ≥ 1.30 × {OURS}',
                measured=shown(each.cpu),
                holds=each.cpu.median >= 1.3,
            )


def _at_most(limit: float, measured: Comparison) -> Verdict:
    return Verdict(
        target=f'{measured.case}: {measured.variant} ≤ {limit:.2f} × {measured.reference}',
        measured=shown(measured.cpu),
        holds=measured.cpu.median <= limit,
    )


def _growth(results: Results) -> Iterator[Verdict]:
    if OURS not in results.growth:
        return
    ours, host = results.growth[OURS], results.growth[UPSTREAM]
    # Growth of the host beyond linear is not this project's, and must not hide this project's own.
    limit = max(1.0, host.upper)
    yield Verdict(
        target=f'linear growth: one run with K = 1000 takes at most {limit:.2f} times as long as ten runs with '
        f'K = 100 (the limit is the upper quartile for "{UPSTREAM}", but at least 1)',
        measured=f'{shown(ours)}; "{UPSTREAM}": {shown(host)}',
        holds=ours.median <= limit,
    )


def _stalls(results: Results) -> Iterator[Verdict]:
    ratios = {stall.variant: stall.ratio for stall in results.stalls}
    if OURS_SYNC not in ratios:
        return
    control = ratios[OURS_CONTROL]
    limit = max(1.0, control.upper)
    yield Verdict(
        target=f'event loop: with a blocking sync handler, the longest gap is at most {limit:.2f} times as long as '
        f'with an async handler (the limit is the upper quartile for "{OURS_CONTROL}", but at least 1)',
        measured=f'{shown(ratios[OURS_SYNC])}; "{OURS_CONTROL}": {shown(control)}',
        holds=ratios[OURS_SYNC].median <= limit,
    )
