"""Measure what a run costs, by its number of rounds (N) and of calls in one response (K)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .pairing import Checkpoint, Job, Pair, paired_round
from .spread import Spread, ratios
from .variants import Script, Variant


@dataclass(frozen=True, kw_only=True)
class Case:
    """One size of work, and how often to measure it."""

    label: str
    """Name of the case in the tables."""
    script: Script
    """Script of the model."""
    repeats: int
    """Runs on each side of a race, enough for some hundredths of a second."""
    rounds: int
    """Number of pairs of races."""


CASES = (
    Case(label='N = 1', script=Script(rounds=1, calls=1), repeats=10, rounds=20),
    Case(label='N = 10', script=Script(rounds=10, calls=1), repeats=2, rounds=16),
    Case(label='N = 50', script=Script(rounds=50, calls=1), repeats=1, rounds=10),
    Case(label='N = 200', script=Script(rounds=200, calls=1), repeats=1, rounds=4),
    Case(label='K = 10', script=Script(rounds=1, calls=10), repeats=5, rounds=16),
    Case(label='K = 100', script=Script(rounds=1, calls=100), repeats=1, rounds=16),
    Case(label='K = 1000', script=Script(rounds=1, calls=1000), repeats=1, rounds=12),
)
"""All cases. N = 1 also serves as K = 1."""

QUICK_CASES = (
    Case(label='N = 1', script=Script(rounds=1, calls=1), repeats=5, rounds=5),
    Case(label='N = 10', script=Script(rounds=10, calls=1), repeats=1, rounds=5),
    Case(label='N = 50', script=Script(rounds=50, calls=1), repeats=1, rounds=2),
    Case(label='K = 100', script=Script(rounds=1, calls=100), repeats=1, rounds=4),
)
"""Cases that take about a minute, to notice large regressions."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One variant compared with another, at one size."""

    case: str
    """Label of the case."""
    variant: str
    """Name of the measured variant."""
    reference: str
    """Name of the variant that it is compared with."""
    cpu: Spread
    """Ratios of computing time."""


def job(variant: Variant, script: Script, repeats: int) -> Job:
    """Return a job of several runs of a variant. The other side gets its turn at each model request."""

    async def run(checkpoint: Checkpoint) -> None:
        model = script.model(checkpoint)
        for _ in range(repeats):
            await variant.run(model)

    return run


async def compare(
    case: Case, contests: Sequence[tuple[Variant, Variant]], *, note: Callable[[str], None]
) -> list[Comparison]:
    """Compare variants. Every round measures each contest once, in rotating order.

    Args:
        case: The size of the work.
        contests: Pairs of a variant and its reference.
        note: Called with a text about the progress.
    """
    for variant in {id(each): each for contest in contests for each in contest}.values():
        await variant.run(case.script.model())
    pairs: list[list[Pair]] = [[] for _ in contests]
    for number in range(case.rounds):
        note(f'{case.label}: round {number + 1} of {case.rounds}')
        for turn in range(len(contests)):
            index = (turn + number) % len(contests)
            mine, theirs = (job(variant, case.script, case.repeats) for variant in contests[index])
            pairs[index].append(await paired_round(mine, theirs))
    return [
        Comparison(
            case=case.label,
            variant=variant.name,
            reference=reference.name,
            cpu=ratios((mine.cpu_s, theirs.cpu_s) for mine, theirs in measured),
        )
        for (variant, reference), measured in zip(contests, pairs, strict=True)
    ]


async def growth(variant: Variant, *, rounds: int, note: Callable[[str], None]) -> Spread:
    """Compare one response with 1000 calls to ten runs of one response with 100.

    Returns:
        Ratios of computing time. Linear growth gives 1, or less because of the fixed cost of a run.
    """
    large, small = Script(rounds=1, calls=1000), Script(rounds=1, calls=100)
    await variant.run(large.model())
    pairs: list[Pair] = []
    for number in range(rounds):
        note(f'growth of {variant.name}: round {number + 1} of {rounds}')
        pairs.append(await paired_round(job(variant, large, 1), job(variant, small, 10)))
    return ratios((mine.cpu_s, theirs.cpu_s) for mine, theirs in pairs)
