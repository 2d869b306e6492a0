import pytest

from benchmarks.cost import Comparison
from benchmarks.results import Results, Stall
from benchmarks.spread import Spread, spread
from benchmarks.targets import (
    CONTROL,
    LAYER,
    OURS,
    OURS_CONTROL,
    OURS_SYNC,
    STOP_RESUME,
    UPSTREAM,
    UPSTREAM_THREAD,
    judge,
)


def around(median: float) -> Spread:
    return spread([median - 0.02, median, median + 0.02])


def comparison(case: str, variant: str, reference: str, cpu: float) -> Comparison:
    return Comparison(case=case, variant=variant, reference=reference, cpu=around(cpu))


@pytest.mark.parametrize(
    ('case', 'variant', 'reference', 'kept', 'missed'),
    [
        ('N = 1', OURS, UPSTREAM, 1.1, 1.101),
        ('N = 10', OURS, UPSTREAM, 1.05, 1.051),
        ('N = 50', OURS, UPSTREAM, 1.05, 1.051),
        ('N = 200', OURS, UPSTREAM, 1.05, 1.051),
        ('K = 1000', OURS, UPSTREAM, 1.15, 1.151),
        ('N = 1', OURS_SYNC, UPSTREAM, 1.15, 1.151),
        ('K = 100', OURS_SYNC, UPSTREAM, 1.15, 1.151),
        ('N = 10', OURS_SYNC, UPSTREAM_THREAD, 1.06, 1.061),
        ('N = 1', LAYER, UPSTREAM, 1.25, 1.251),
        ('N = 200', LAYER, UPSTREAM, 1.15, 1.151),
        ('K = 1000', LAYER, UPSTREAM, 1.8, 1.801),
        ('N = 10', STOP_RESUME, OURS, 1.3, 1.299),
        ('N = 200', STOP_RESUME, OURS, 1.3, 1.299),
    ],
)
def test_median_of_computing_time_decides(case: str, variant: str, reference: str, kept: float, missed: float):
    results = Results(
        comparisons=[comparison(case, variant, reference, kept), comparison(case, variant, reference, missed)]
    )

    verdicts = judge(results)

    assert [verdict.holds for verdict in verdicts] == [True, False]


@pytest.mark.parametrize(
    ('case', 'variant', 'reference'),
    [
        ('N = 1', CONTROL, UPSTREAM),
        ('K = 10', OURS, UPSTREAM),
        ('N = 1', STOP_RESUME, OURS),
        ('K = 100', STOP_RESUME, OURS),
        ('N = 50', STOP_RESUME, UPSTREAM),
        ('N = 1', OURS_SYNC, UPSTREAM_THREAD),
        ('K = 100', LAYER, UPSTREAM),
    ],
)
def test_other_figures_have_no_target(case: str, variant: str, reference: str):
    assert judge(Results(comparisons=[comparison(case, variant, reference, 99)])) == []


@pytest.mark.parametrize(
    ('ours', 'host', 'holds'), [(0.9, 0.9, True), (1, 0.9, True), (1.01, 0.9, False), (1.1, 1.1, True)]
)
def test_growth_is_linear_unless_the_host_grows_faster(ours: float, host: float, holds: bool):
    results = Results(growth={OURS: around(ours), UPSTREAM: around(host)})

    [verdict] = judge(results)

    assert verdict.holds is holds


@pytest.mark.parametrize(('sync', 'holds'), [(0.8, True), (1.005, True), (1.02, False)])
def test_sync_handler_may_stall_the_loop_as_an_async_one_does(sync: float, holds: bool):
    stalls = [Stall(variant=name, ratio=around(ratio)) for name, ratio in ((OURS_CONTROL, 1.0), (OURS_SYNC, sync))]

    [verdict] = judge(Results(stalls=stalls))

    assert verdict.holds is holds
