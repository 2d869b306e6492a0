"""Define the results of a benchmark session."""

from __future__ import annotations

from dataclasses import dataclass, field

from .cost import Comparison
from .spread import Spread


@dataclass(frozen=True, kw_only=True)
class Stall:
    """Time for which one variant blocked the event loop."""

    variant: str
    """Name of the measured variant."""
    ratio: Spread
    """Ratio of the longest gap to that of `ours, async` in the same round."""


@dataclass(kw_only=True)
class Results:
    """Results of a session. Lists have the order of the tables."""

    comparisons: list[Comparison] = field(default_factory=list[Comparison])
    """Comparisons by the number of rounds and of calls."""
    growth: dict[str, Spread] = field(default_factory=dict[str, Spread])
    """Ratios of one response with 1000 calls to ten runs with 100, by variant."""
    stalls: list[Stall] = field(default_factory=list[Stall])
    """Results about the event loop."""
