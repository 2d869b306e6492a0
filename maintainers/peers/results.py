"""Define the raw results of a session."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A run with approval and one without, of one peer in one round of a case."""

    peer: str
    """Name of the peer."""
    round: int
    """Number of the round. Samples of a round were taken one after another."""
    cpu_s: float
    """Computing time of a run with approval, with all threads of the process."""
    wall_s: float
    """Elapsed time of a run with approval."""
    plain_cpu_s: float
    """Computing time of the same run with a tool that needs no approval."""
    plain_wall_s: float
    """Elapsed time of the same run with a tool that needs no approval."""


@dataclass(kw_only=True)
class Case:
    """One size of work."""

    kind: str
    """`rounds` or `batch`."""
    rounds: int
    """Number of responses with calls."""
    calls: int
    """Calls in each of these responses."""
    samples: list[Sample] = field(default_factory=list[Sample])
    """Samples, in the order in which they were taken."""
    failures: dict[str, str] = field(default_factory=dict[str, str])
    """Reasons why peers have no samples, by peer."""


@dataclass(frozen=True, kw_only=True)
class Wait:
    """Runs of one peer that waited at the same time, in a separate process."""

    peer: str
    """Name of the peer."""
    resident: int | None
    """Growth of the process while all runs waited, in bytes; `None` if the system does not report it."""
    traced: int | None
    """Memory that Python allocated and did not free, in bytes; `None` if this process did not trace it."""


@dataclass(kw_only=True)
class Crowd:
    """All measurements with one number of waiting runs."""

    runs: int
    """Number of runs."""
    waits: list[Wait] = field(default_factory=list[Wait])
    """Measurements, in the order in which they were made."""
    failures: dict[str, str] = field(default_factory=dict[str, str])
    """Reasons why peers have no measurement, by peer."""


@dataclass(kw_only=True)
class Results:
    """Everything that a session measured."""

    machine: str
    """Description of the machine."""
    load_before: float
    """Load average of the last minute, before the measurements."""
    load_after: float = 0
    """Load average of the last minute, after the measurements."""
    versions: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    """Versions by distribution, by peer."""
    missing: dict[str, str] = field(default_factory=dict[str, str])
    """Reasons why peers could not be installed or started, by peer."""
    cases: list[Case] = field(default_factory=list[Case])
    """Sizes of work."""
    crowds: list[Crowd] = field(default_factory=list[Crowd])
    """Numbers of waiting runs."""
