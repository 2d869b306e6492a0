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


def test_who_counts_on_is_never_gone():
    clock = Clock()

    assert look(Leases(clock), clock, *range(20)) == [{}] * 20


def test_a_number_that_stands_still_for_a_lease_is_gone():
    clock = Clock()

    assert look(Leases(clock), clock, 7, 7, 7, 7, 7) == [{}, {}, {}, {'a': 7}, {'a': 7}]
    assert 3 * BEAT_S == LEASE_S


def test_one_that_counts_on_in_time_begins_anew():
    clock = Clock()

    assert look(Leases(clock), clock, 7, 7, 7, 8, 8, 8, 8) == [{}] * 6 + [{'a': 8}]


def test_a_number_that_goes_back_is_a_sign_of_life():
    clock = Clock()

    assert look(Leases(clock), clock, 7, 7, 7, 1, 1) == [{}] * 5


def test_nobody_is_gone_because_the_one_who_looks_was_stopped():
    clock = Clock()
    leases = Leases(clock)
    look(leases, clock, 7, 7)

    assert look(leases, clock, 7, after=3600) == [{}]
    assert look(leases, clock, 7, 7, 7) == [{}, {}, {'a': 7}]


def test_nobody_is_gone_because_the_store_was_away():
    clock = Clock()
    leases = Leases(clock)
    look(leases, clock, 7, 7, 7)

    leases.forget()

    assert look(leases, clock, 7, 7, 7) == [{}] * 3
    assert look(leases, clock, 7) == [{'a': 7}]


def test_who_has_no_open_requests_any_more_is_forgotten():
    clock = Clock()
    leases = Leases(clock)
    look(leases, clock, 7, 7, 7)
    clock.time += BEAT_S
    assert leases.gone({}) == {}

    assert look(leases, clock, 7) == [{}]


def test_a_lease_of_another_length_ends_after_it():
    clock = Clock()

    assert look(Leases(clock, lease_s=3.0), clock, 7, 7, 7, 7, after=1.0) == [{}, {}, {}, {'a': 7}]
