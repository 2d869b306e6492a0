import pytest
from tool_approval.inbox.keeper import BEAT_S, LEASE_S, Leases


class Clock:
    def __init__(self):
        self.time = 1000.0

    def __call__(self):
        return self.time


def look(leases, clock, *numbers, after=BEAT_S):
    """Look again and again at the numbers of `a`, and return what was gone each time."""
    found = []
    for number in numbers:
        clock.time += after
        found.append(dict(leases.gone({'a': number})))
    return found


@pytest.mark.parametrize(
    ('numbers', 'gone'),
    [
        (range(20), [{}] * 20),
        ([7, 7, 7, 7, 7], [{}, {}, {}, {'a': 7}, {'a': 7}]),
        ([7, 7, 7, 8, 8, 8, 8], [{}] * 6 + [{'a': 8}]),
        ([7, 7, 7, 1, 1], [{}] * 5),
    ],
    ids=['counts on', 'stops for a lease', 'counts on in time and then stops', 'counts back, which is a sign of life'],
)
def test_owner_is_gone_once_its_number_has_not_changed_for_a_lease(numbers, gone):
    clock = Clock()

    assert look(Leases(clock), clock, *numbers) == gone
    assert 3 * BEAT_S == LEASE_S


def test_pause_of_the_process_that_looks_makes_no_owner_gone():
    clock = Clock()
    leases = Leases(clock)
    look(leases, clock, 7, 7)

    assert look(leases, clock, 7, after=3600) == [{}]
    assert look(leases, clock, 7, 7, 7) == [{}, {}, {'a': 7}]


def test_outage_of_the_store_makes_no_owner_gone():
    clock = Clock()
    leases = Leases(clock)
    look(leases, clock, 7, 7, 7)

    leases.forget()

    assert look(leases, clock, 7, 7, 7) == [{}] * 3
    assert look(leases, clock, 7) == [{'a': 7}]


def test_owner_without_open_requests_is_forgotten():
    clock = Clock()
    leases = Leases(clock)
    look(leases, clock, 7, 7, 7)
    clock.time += BEAT_S
    assert leases.gone({}) == {}

    assert look(leases, clock, 7) == [{}]


def test_lease_may_have_another_length():
    clock = Clock()

    assert look(Leases(clock, lease_s=3.0), clock, 7, 7, 7, 7, after=1.0) == [{}, {}, {}, {'a': 7}]
