"""Describe repeated measurements by their median and their spread."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median, quantiles


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Median, quartiles and extremes of measurements, in the unit of the measurements."""

    count: int
    """Number of measurements."""
    lowest: float
    """Smallest value."""
    lower: float
    """First quartile."""
    median: float
    """Median."""
    upper: float
    """Third quartile."""
    highest: float
    """Largest value."""


def spread(values: Iterable[float]) -> Spread:
    """Describe measurements.

    Quartiles are computed with `statistics.quantiles` and `method='inclusive'`, so they are never outside of the
    measured range.

    Args:
        values: One number for each measurement, in any order.

    Raises:
        ValueError: There are no values.
    """
    numbers = sorted(values)
    if not numbers:
        raise ValueError('there are no measurements to describe')
    lower, middle, upper = quantiles(numbers, n=4, method='inclusive') if len(numbers) > 1 else numbers * 3
    assert middle == median(numbers)
    return Spread(count=len(numbers), lowest=numbers[0], lower=lower, median=middle, upper=upper, highest=numbers[-1])


def ratios(pairs: Iterable[tuple[float, float]]) -> Spread:
    """Return the spread of the first number divided by the second, over all pairs.

    A ratio is computed within each pair, because the machine was the same for both sides. A ratio of two medians would
    compare measurements under different conditions.

    Raises:
        ValueError: There is no pair, or a second number is not positive.
    """
    quotients: list[float] = []
    for first, second in pairs:
        if second <= 0:
            raise ValueError(f'{second!r} cannot be compared with: a duration must be positive.')
        quotients.append(first / second)
    return spread(quotients)
