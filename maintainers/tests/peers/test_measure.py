import re
from typing import Any, Self, cast

import pytest

from maintainers.peers.catalog import CONTROL, PEERS, REFERENCE, Environment, Peer
from maintainers.peers.figures import cheaper, costs, faster, waiting
from maintainers.peers.measure import Plan, measure
from maintainers.peers.page import page, plots
from maintainers.peers.process import Worker, WorkerError
from maintainers.peers.results import Results

PLAN = Plan(sizes=(('rounds', 1, 1, 2, 2), ('rounds', 10, 1, 1, 5), ('batch', 1, 5, 1, 2)), crowds=((4, 2),))
NOWHERE = Environment(name='nowhere', installs=())


def peer(name: str) -> Peer:
    return Peer(name=name, environment=NOWHERE, worker='fake')


class FakeWorker:
    """Answers orders at once, and reports the durations that were set."""

    def __init__(self, name: str, log: list[str], *, cpu_s: float, lost: int = 0, error: str = '') -> None:
        self.versions = {'fake': '1'}
        self._name, self._log, self._cpu_s, self._lost, self._error = name, log, cpu_s, lost, error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._log.append(f'{self._name} closed')

    def order(self, **order: Any) -> dict[str, Any]:
        if self._error:
            raise WorkerError(self._error)
        if 'waiting' in order:
            runs = order['waiting']
            counts = {'requests': 2 * runs, 'asked': runs, 'executed': runs}
            traced = 3000 * runs if order['trace'] else None
            return {'resident': 5000 * runs, 'traced': traced, 'counts': counts}
        self._log.append(f'{self._name} {"asks" if order["approval"] else "runs"}')
        calls = order['rounds'] * order['calls'] * order['repeat']
        cpu_s = 0.001 + self._cpu_s * order['rounds'] * order['calls'] * order['approval']
        counts = {
            'requests': (order['rounds'] + 1) * order['repeat'],
            'asked': calls if order['approval'] else 0,
            'executed': calls - self._lost,
        }
        return {'cpu_s': cpu_s, 'wall_s': cpu_s, 'counts': counts}


def measured(peers: list[Peer], plan: Plan = PLAN, **workers: dict[str, Any]) -> tuple[Results, list[str]]:
    log: list[str] = []

    def start(peer: Peer) -> Worker:
        settings = workers.get(peer.name.replace(' ', '_'), {'cpu_s': 0.002})
        if 'absent' in settings:
            raise WorkerError(settings['absent'])
        return cast(Worker, FakeWorker(peer.name, log, **settings))

    results = Results(machine='a machine', load_before=0.5)
    measure(results, peers, plan, start)
    return results, log


def test_peers_take_turns_and_another_one_begins_each_round():
    plan = Plan(sizes=(('rounds', 1, 1, 1, 2),), crowds=())

    _, log = measured([peer('a'), peer('b')], plan)

    assert log[:8] == ['a runs', 'a asks', 'b runs', 'b asks', 'b asks', 'b runs', 'a asks', 'a runs']


def test_the_first_round_is_not_kept():
    results, _ = measured([peer('a')])

    assert [sample.round for sample in results.cases[0].samples] == [1, 2]


def test_all_workers_are_ended():
    results, log = measured([peer('a'), peer('b')], Plan(sizes=PLAN.sizes, crowds=()))

    assert len(results.cases) == 3
    assert log[-2:] == ['a closed', 'b closed']


def test_peer_that_does_less_work_is_refused():
    results, _ = measured([peer('lazy')], lazy={'cpu_s': 0.001, 'lost': 1})

    assert results.cases[0].samples == []
    assert results.cases[0].failures['lazy'].startswith('did other work')


def test_peer_that_cannot_start_is_listed_and_the_others_are_measured():
    results, _ = measured([peer('a'), peer('gone')], gone={'absent': 'no such module'})

    assert results.missing == {'gone': 'no such module'}
    assert {sample.peer for case in results.cases for sample in case.samples} == {'a'}


def test_peer_that_was_not_installed_is_left_out():
    results = Results(machine='a machine', load_before=0, missing={'a': 'could not be installed'})

    def start(peer: Peer) -> Worker:
        raise AssertionError(f'{peer.name} was started')

    measure(results, [peer('a')], PLAN, start)

    assert results.crowds[0].waits == []


def test_time_that_approval_adds_is_divided_by_the_calls():
    results, _ = measured([peer(REFERENCE)])

    (cost,) = costs(results.cases[1])

    assert cost.added_ms.median == pytest.approx(2)
    assert cost.plain_cpu_ms.median == pytest.approx(1)


@pytest.mark.parametrize(('cpu_s', 'named'), [(0.001, ['other']), (0.003, [])])
def test_peers_that_are_faster_than_ours_are_named(cpu_s: float, named: list[str]):
    results, _ = measured([peer(REFERENCE), peer(CONTROL), peer('other')], other={'cpu_s': cpu_s})

    found = costs(results.cases[1])

    assert [each.peer for each in cheaper(found)] == named
    assert [each.peer for each in faster(found)] == named


def test_peer_that_is_faster_by_less_than_the_noise_is_not_named():
    noisy = {CONTROL.replace(' ', '_'): {'cpu_s': 0.0005}}

    results, _ = measured([peer(REFERENCE), peer(CONTROL), peer('quick')], quick={'cpu_s': 0.001}, **noisy)

    assert cheaper(costs(results.cases[1])) == []


def test_memory_is_for_one_run():
    results, _ = measured([peer('a')])

    (cost,) = waiting(results.crowds[0])

    assert (cost.traced, cost.resident) == (3000, 5000)


def test_the_page_names_failures_and_versions():
    results, _ = measured(
        [peer(REFERENCE), peer('broken'), peer('gone')],
        broken={'cpu_s': 1, 'error': 'a | b\nc'},
        gone={'absent': 'no such module'},
    )

    text = page(results, pictures='plots')

    assert '| broken | a / b c |' in text
    assert '| gone | not measured: no such module |' in text
    assert '![A run with approvals, all calls in one response](plots-batch.svg)' in text
    assert 'Other work ran on the machine' not in text


def test_the_page_says_that_the_machine_was_busy():
    results, _ = measured([peer(REFERENCE)])
    results.load_after = 4

    assert 'Other work ran on the machine' in page(results, pictures='plots')


def test_a_plot_has_a_line_for_each_peer_but_not_for_the_control():
    results, _ = measured([peer(REFERENCE), peer(CONTROL), peer('a < b')])

    drawn = plots(results)

    assert sorted(drawn) == ['batch', 'rounds']
    assert drawn['rounds'].count('<polyline') == 2
    assert 'a &lt; b' in drawn['rounds']


def test_the_catalogue_begins_with_the_reference_and_its_control():
    assert [each.name for each in PEERS[:2]] == [REFERENCE, CONTROL]
    assert len({each.name for each in PEERS}) == len(PEERS)


def test_no_peer_is_named_after_too_few_rounds():
    results, _ = measured([peer(REFERENCE), peer(CONTROL), peer('quick')], quick={'cpu_s': 0.001})

    text = page(results, pictures='plots')

    assert re.search(r'N = 1, .* too few rounds \|\n', text)
    assert re.search(r'N = 10, .* \| quick \(0\.\d+\) \| quick \(-1\.00 ms a call\) \|\n', text)


def test_tables_are_in_the_order_of_the_catalogue():
    results, _ = measured([peer('other'), peer(CONTROL), peer(REFERENCE)])

    assert [each.peer for each in costs(results.cases[0])] == [REFERENCE, CONTROL, 'other']
