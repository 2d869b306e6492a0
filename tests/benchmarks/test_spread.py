from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.spread import Spread, ratios, spread

durations = st.floats(min_value=1e-6, max_value=1e6)


@pytest.mark.parametrize(
    ('values', 'expected'),
    [
        ([5, 1, 3, 2, 4], Spread(count=5, lowest=1, lower=2, median=3, upper=4, highest=5)),
        ([1, 2, 3, 10], Spread(count=4, lowest=1, lower=1.75, median=2.5, upper=4.75, highest=10)),
        ([7.5], Spread(count=1, lowest=7.5, lower=7.5, median=7.5, upper=7.5, highest=7.5)),
    ],
    ids=['an odd number', 'an even number, between the middle two', 'one'],
)
def test_spread_names_the_quartiles_and_the_extremes(values: list[float], expected: Spread):
    assert spread(values) == expected


@pytest.mark.parametrize('measure', [spread, ratios])
def test_no_measurements_are_refused(measure: Callable[..., Spread]):
    with pytest.raises(ValueError, match='there are no measurements'):
        measure([])


@given(st.lists(durations, min_size=1))
def test_spread_is_ordered_and_within_what_was_measured(values: list[float]):
    measured = spread(values)

    assert measured.count == len(values)
    assert min(values) == measured.lowest <= measured.lower <= measured.median
    assert measured.median <= measured.upper <= measured.highest == max(values)


@given(st.lists(durations, min_size=1), st.randoms(use_true_random=False))
def test_spread_does_not_depend_on_the_order_of_measurements(values: list[float], random):
    shuffled = list(values)
    random.shuffle(shuffled)

    assert spread(shuffled) == spread(values)


def test_ratios_are_taken_within_pairs():
    # The machine was ten times as slow during the second pair. Medians of each side would give 22 / 11.
    measured = ratios([(2, 1), (20, 10), (3, 12)])

    assert (measured.lowest, measured.median, measured.highest) == (0.25, 2, 2)


@given(st.lists(durations, min_size=1))
def test_ratios_of_equal_sides_are_one(values: list[float]):
    measured = ratios((value, value) for value in values)

    assert (measured.lowest, measured.highest) == (1, 1)


@given(st.lists(st.tuples(durations, durations), min_size=1), st.integers(min_value=-10, max_value=10))
def test_ratios_do_not_depend_on_the_unit(pairs: list[tuple[float, float]], exponent: int):
    # A power of two, so that scaling is exact.
    scaled = [(first * 2.0**exponent, second * 2.0**exponent) for first, second in pairs]

    assert ratios(scaled) == ratios(pairs)


@pytest.mark.parametrize('reference', [0, -1])
def test_ratio_to_no_duration_is_refused(reference: float):
    with pytest.raises(ValueError, match='must be positive'):
        ratios([(1, 1), (1, reference)])
