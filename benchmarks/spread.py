"""What repeated measurements say: their median, and how far they lie apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median, quantiles


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Median, quartiles and extremes of some measurements, in the unit of these."""

    count: int
    """How many there were."""
    lowest: float
    """The smallest."""
    lower: float
    """The first quartile."""
    median: float
    """The second."""
    upper: float
    """The third."""
    highest: float
    """The largest."""


def spread(values: Iterable[float]) -> Spread:
    """Describe measurements.

    Quartiles are those of the measurements themselves (`statistics.quantiles` with `method='inclusive'`), so they
    never lie outside of what was measured.

    Args:
        values: One number for each measurement, in any order.

    Raises:
        ValueError: There are none.
    """
    numbers = sorted(values)
    if not numbers:
        raise ValueError('There is nothing to describe: no measurement was made.')
    lower, middle, upper = quantiles(numbers, n=4, method='inclusive') if len(numbers) > 1 else numbers * 3
    assert middle == median(numbers)
    return Spread(count=len(numbers), lowest=numbers[0], lower=lower, median=middle, upper=upper, highest=numbers[-1])


def ratios(pairs: Iterable[tuple[float, float]]) -> Spread:
    """The spread of the first divided by the second of each pair.

    The ratio is taken within a pair, whose two sides met the same machine; a ratio of two medians would compare
    measurements that did not.

    Raises:
        ValueError: There is no pair, or a second number is not positive.
    """
    quotients: list[float] = []
    for first, second in pairs:
        if second <= 0:
            raise ValueError(f'{second!r} is no duration to compare with: it must be positive.')
        quotients.append(first / second)
    return spread(quotients)
