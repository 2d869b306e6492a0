"""Everything one session of measuring found."""

from __future__ import annotations

from dataclasses import dataclass, field

from .cost import Comparison
from .memory import Memory
from .spread import Spread


@dataclass(frozen=True, kw_only=True)
class Release:
    """Waiting runs of one variant that were answered all at once."""

    runs: int
    """How many waited."""
    variant: str
    """What was measured."""
    reference: str
    """What it was compared with."""
    cpu: Spread
    """Ratios of computing time."""
    wall_ms: Spread
    """From the answer to the end of the last run."""
    memory: Memory
    """What one of them took while it waited."""


@dataclass(frozen=True, kw_only=True)
class Stall:
    """How long the event loop stood still with one variant."""

    variant: str
    """What was measured."""
    longest_ms: Spread
    """The longest gap between two ticks."""
    idle_ms: Spread
    """The same, without what the event loop's thread computed meanwhile."""
    ratio: Spread
    """The longest gap, to that of ours with an async handler in the same round."""


@dataclass(kw_only=True)
class Results:
    """What was measured; lists are in the order of the tables."""

    comparisons: list[Comparison] = field(default_factory=list[Comparison])
    """By the number of rounds and of calls."""
    growth: dict[str, Spread] = field(default_factory=dict[str, Spread])
    """One response with 1000 calls, to ten runs with 100, by variant."""
    releases: list[Release] = field(default_factory=list[Release])
    """By the number of waiting runs."""
    stalls: list[Stall] = field(default_factory=list[Stall])
    """Of the event loop."""
