"""Compute figures from the samples: costs, what approval adds, ratios, and the peers that are faster than ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.spread import Spread, ratios, spread

from .catalog import CONTROL, PEERS, REFERENCE
from .results import Case, Crowd, Sample, Wait

ENOUGH = 5
"""With fewer rounds, quartiles cannot show which peer is faster."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Cost of one peer in one case."""

    peer: str
    """Name of the peer."""
    cpu_ms: Spread
    """Computing time of a run with approval, in milliseconds."""
    plain_cpu_ms: Spread
    """Computing time of a run without approval, in milliseconds."""
    wall_ms: Spread
    """Elapsed time of a run with approval, in milliseconds."""
    added_ms: Spread
    """Computing time that approval adds to a run, for each approved call, in milliseconds."""
    ratio: Spread
    """Ratio of the computing time with approval to ours in the same round."""
    added_difference_ms: Spread
    """Difference of `added_ms` to ours in the same round."""


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Cost of one peer for a number of waiting runs."""

    peer: str
    """Name of the peer."""
    resident: float | None
    """Growth of the process for each run, in bytes."""
    traced: float | None
    """Memory that Python allocated for each run, in bytes."""


def costs(case: Case) -> list[Cost]:
    """Return the cost of each measured peer, in the order of the catalogue."""
    references = {sample.round: sample for sample in case.samples if sample.peer == REFERENCE}
    found: list[Cost] = []
    for peer, samples in _by_peer(case.samples).items():
        pairs = [(sample, references[sample.round]) for sample in samples if sample.round in references]
        if not pairs:
            continue
        found.append(
            Cost(
                peer=peer,
                cpu_ms=spread(1000 * each.cpu_s for each in samples),
                plain_cpu_ms=spread(1000 * each.plain_cpu_s for each in samples),
                wall_ms=spread(1000 * each.wall_s for each in samples),
                added_ms=spread(_added_ms(each, case) for each in samples),
                ratio=ratios((mine.cpu_s, ours.cpu_s) for mine, ours in pairs),
                added_difference_ms=spread(_added_ms(mine, case) - _added_ms(ours, case) for mine, ours in pairs),
            )
        )
    return found


def noise(found: Sequence[Cost]) -> Cost | None:
    """Return the cost of ours compared with itself, or `None` if it was not measured."""
    return next((each for each in found if each.peer == CONTROL), None)


def is_enough(found: Sequence[Cost]) -> bool:
    """Whether there are enough rounds to compare peers."""
    return all(each.ratio.count >= ENOUGH for each in found if each.peer in (REFERENCE, CONTROL))


def cheaper(found: Sequence[Cost]) -> list[Cost]:
    """Return the peers whose approval adds less than ours, cheapest first.

    A peer counts if the upper quartile of its difference is below the lower quartile of the control. It may be another
    handler or layer of ours.
    """
    control = noise(found)
    limit = min(0.0, control.added_difference_ms.lower) if control is not None else 0.0
    beaten = [
        each for each in found if each.peer not in (REFERENCE, CONTROL) and each.added_difference_ms.upper < limit
    ]
    return sorted(beaten, key=lambda each: each.added_difference_ms.median)


def faster(found: Sequence[Cost]) -> list[Cost]:
    """Return the peers whose whole run takes less time than ours, beyond the noise, fastest first."""
    control = noise(found)
    limit = min(1.0, control.ratio.lower) if control is not None else 1.0
    beaten = [each for each in found if each.peer not in (REFERENCE, CONTROL) and each.ratio.upper < limit]
    return sorted(beaten, key=lambda each: each.ratio.median)


def waiting(crowd: Crowd) -> list[Waiting]:
    """Return the cost of waiting for each measured peer."""
    return [
        Waiting(
            peer=peer,
            resident=_typical([each.resident for each in waits], crowd.runs),
            traced=_typical([each.traced for each in waits], crowd.runs),
        )
        for peer, waits in _waits_by_peer(crowd.waits).items()
    ]


def _added_ms(sample: Sample, case: Case) -> float:
    return 1000 * (sample.cpu_s - sample.plain_cpu_s) / (case.rounds * case.calls)


def _typical(values: Sequence[int | None], runs: int) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) / runs if known else None


def _by_peer(samples: Sequence[Sample]) -> dict[str, list[Sample]]:
    return {peer: [each for each in samples if each.peer == peer] for peer in _in_order({s.peer for s in samples})}


def _waits_by_peer(waits: Sequence[Wait]) -> dict[str, list[Wait]]:
    return {peer: [each for each in waits if each.peer == peer] for peer in _in_order({w.peer for w in waits})}


def _in_order(names: set[str]) -> list[str]:
    # Order by catalogue: the order of the first round has no meaning.
    places = {peer.name: place for place, peer in enumerate(PEERS)}
    return sorted(names, key=lambda name: (places.get(name, len(places)), name))
