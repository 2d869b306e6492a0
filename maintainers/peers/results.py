"""What one session of measuring found, before anything is computed from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One peer in one round of one case: a run with approval, and one without."""

    peer: str
    """Which."""
    round: int
    """Number of the round; samples of a round were made one after the other."""
    cpu_s: float
    """Computing time of a run with approval, all threads of its process."""
    wall_s: float
    """Elapsed time of it."""
    plain_cpu_s: float
    """Computing time of the same run of the same framework whose tool needs no approval."""
    plain_wall_s: float
    """Elapsed time of it."""


@dataclass(kw_only=True)
class Case:
    """One size of work."""

    kind: str
    """`rounds` or `batch`."""
    rounds: int
    """Responses with calls."""
    calls: int
    """Calls in each of them."""
    samples: list[Sample] = field(default_factory=list[Sample])
    """In the order they were made."""
    failures: dict[str, str] = field(default_factory=dict[str, str])
    """Why there is nothing of a peer."""


@dataclass(frozen=True, kw_only=True)
class Wait:
    """One peer with a number of runs that waited at once, in a process of its own."""

    peer: str
    """Which."""
    asked_cpu_s: float
    """Computing time until all waited."""
    done_cpu_s: float
    """Computing time from the answer to the end of the last run."""
    done_wall_s: float
    """Elapsed time of that."""
    resident: int | None
    """Bytes the process had grown by while all waited; `None` where the system does not say."""
    traced: int | None
    """Bytes Python had allocated and not freed; `None` where this process did not trace."""


@dataclass(kw_only=True)
class Crowd:
    """One number of waiting runs."""

    runs: int
    """How many."""
    waits: list[Wait] = field(default_factory=list[Wait])
    """In the order they were made."""
    failures: dict[str, str] = field(default_factory=dict[str, str])
    """Why there is nothing of a peer."""


@dataclass(kw_only=True)
class Results:
    """Everything."""

    machine: str
    """What it was measured on."""
    load_before: float
    """Load average of the last minute."""
    load_after: float = 0
    """The same at the end."""
    versions: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    """Distributions, by peer."""
    missing: dict[str, str] = field(default_factory=dict[str, str])
    """Peers that could not be installed or started, and why."""
    cases: list[Case] = field(default_factory=list[Case])
    """Sizes of work."""
    crowds: list[Crowd] = field(default_factory=list[Crowd])
    """Numbers of waiting runs."""

    def dump(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self), indent=1)

    @staticmethod
    def load(text: str) -> Results:
        """From what `dump` gave."""
        data: dict[str, Any] = json.loads(text)
        data['cases'] = [_with(Case, each, samples=Sample) for each in data['cases']]
        data['crowds'] = [_with(Crowd, each, waits=Wait) for each in data['crowds']]
        return Results(**data)


def _with(kind: type[Any], data: Mapping[str, Any], **lists: type[Any]) -> Any:
    made = {name: [kind(**each) for each in data[name]] for name, kind in lists.items()}
    return kind(**{**data, **made})
