"""The sweep: which runs are begun, whose work is taken up, and what a store that is away does to it."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tool_approval.durable import RunRow, open_store
from tool_approval.inbox.errors import InboxUnavailable
from tool_approval.inbox.inbox import KEEP_HISTORY
from tool_approval.inbox.keeper import PRUNE_S
from tool_approval.inbox.store import Changes, Row

from tests.approval.parts import NOON, logged

pytest.importorskip('dbos', reason='the development environment has DBOS')

from tool_approval.durable.worker import AT_ONCE, BEGUN_AT_ONCE, NEXT_S, ROOM_S, SWEEP_S, Sweep

from .parts import eventually

RUN = RunRow(id='run', agent='bot', state='{}', created_at=NOON, changed_at=NOON)


class FakeEngine:
    """Keeps what it is asked for."""

    def __init__(self):
        self.begun = []
        self.taken = []
        self.pruned = []
        self.running = 0
        self.dead_letters = {}
        self.is_broken = False

    def begin(self, segments):
        assert len(segments) <= BEGUN_AT_ONCE
        self.begun += segments

    def take_up(self, worker):
        self.taken.append(worker)

    def workers(self):
        return ['running']

    def given_up(self):
        return self.dead_letters

    def prune(self, before):
        self.pruned.append(before)


class FakeLedger:
    """Finds the workers dead that it is given."""

    def __init__(self):
        self.dead = []
        self.ticks = 0

    def tick(self, workers):
        assert workers == ['running']
        self.ticks += 1
        return self.dead


class Looking:
    """A sweep of a store, with a clock of the test's."""

    def __init__(self, url):
        self.store = open_store(url)
        self.engine, self.ledger = FakeEngine(), FakeLedger()
        self.time, self.day = 0.0, NOON
        self.sweep = Sweep(
            self.store,
            self.engine,
            self.ledger,
            agents=['bot'],
            is_readable=lambda row: row.state != 'unreadable',
            lease_s=3.0,
            now=lambda: self.day,
            clock=lambda: self.time,
        )

    def add(self, run_id, **fields):
        made = {'agent': 'bot', 'state': '{}', 'created_at': NOON, 'changed_at': NOON, **fields}
        self.store.add_run(RunRow(id=run_id, **made))

    def park(self, run_id, deadline=None):
        row = Row(id=run_id.ljust(43, '_'), owner=run_id, content='{}', posted_at=NOON)
        self.add(run_id)
        self.store.park(run_id, 0, '{}', [row], deadline, at=NOON)


@pytest.fixture
def looking(url):
    made = Looking(url)
    yield made
    made.store.close()


def test_each_run_that_waits_for_nothing_is_begun_once(looking):
    for number in range(AT_ONCE + 1):
        looking.add(f'run {number}')
    looking.add('of another agent', agent='other')
    looking.add('of another version', state='unreadable')
    looking.park('that waits')

    for _ in range(AT_ONCE // BEGUN_AT_ONCE + 3):
        looking.sweep.look()

    assert sorted(looking.engine.begun) == sorted((f'run {number}', 0) for number in range(AT_ONCE + 1))


def test_what_one_check_leaves_does_not_wait_for_the_next_sweep(looking):
    for number in range(2 * AT_ONCE + 1):
        looking.add(f'run {number}')

    looking.sweep.look()
    for _ in range(2 * AT_ONCE // BEGUN_AT_ONCE + 3):
        looking.sweep.look(Changes())

    assert len(set(looking.engine.begun)) == len(looking.engine.begun) == 2 * AT_ONCE + 1


def test_a_worker_that_has_enough_to_begin_looks_for_more_afterwards(looking, monkeypatch):
    for number in range(2 * BEGUN_AT_ONCE):
        looking.add(f'run {number}')
    looking.sweep.look()
    looking.engine.running = BEGUN_AT_ONCE
    ready, reads = looking.store.ready, []
    monkeypatch.setattr(looking.store, 'ready', lambda *given: reads.append(1) or ready(*given))
    looking.add('late')

    looking.sweep.look(Changes(has_runs=True))
    assert reads == []

    looking.engine.running = 0
    for _ in range(3):
        looking.sweep.look(Changes())
    assert ('late', 0) in looking.engine.begun


def test_a_worker_that_has_enough_to_do_begins_more_only_after_a_while(looking):
    for number in range(2 * BEGUN_AT_ONCE):
        looking.add(f'run {number}')
    looking.sweep.look()
    looking.engine.running = BEGUN_AT_ONCE

    looking.sweep.look(Changes())
    assert len(looking.engine.begun) == BEGUN_AT_ONCE

    looking.time += NEXT_S
    looking.sweep.look(Changes())
    assert len(looking.engine.begun) == 2 * BEGUN_AT_ONCE


def test_more_begins_as_soon_as_there_is_room(looking, monkeypatch):
    for number in range(BEGUN_AT_ONCE + 1):
        looking.add(f'run {number}')
    waits, watch = [], looking.store.inbox_store.watch
    monkeypatch.setattr(looking.store.inbox_store, 'watch', lambda pause_s: waits.append(pause_s) or watch(pause_s))
    looking.sweep.start()

    eventually(lambda: len(looking.engine.begun) == BEGUN_AT_ONCE + 1)

    looking.sweep.close()
    assert waits[0] == ROOM_S


def test_what_another_worker_has_begun_is_not_begun_again(looking):
    found = [f'run {number}' for number in range(2 * BEGUN_AT_ONCE)]
    for run_id in found:
        looking.add(run_id)
    looking.sweep.look()
    others = set(found) - {run_id for run_id, _ in looking.engine.begun}
    for run_id in others:
        looking.store.resume(run_id, 0, at=looking.store.inbox_store.now())

    looking.sweep.look(Changes())

    assert {run_id for run_id, _ in looking.engine.begun} == set(found) - others


def test_without_changes_the_store_is_not_read_before_the_next_sweep(looking, monkeypatch):
    looking.sweep.look()
    reading, reads = looking.store.inbox_store.reading, []
    monkeypatch.setattr(looking.store.inbox_store, 'reading', lambda: reads.append(1) or reading())

    looking.sweep.look(Changes())
    assert reads == []

    looking.time += SWEEP_S
    looking.sweep.look(Changes())
    assert len(reads) == 2


def test_a_new_run_is_begun_before_the_next_sweep(looking):
    looking.sweep.look()
    assert looking.store.inbox_store.watch(0.0) is None
    looking.add('run')
    changed = looking.store.inbox_store.watch(5.0)

    looking.sweep.look(changed)

    assert changed == Changes(has_runs=True)
    assert looking.engine.begun == [('run', 0)]


def test_a_run_goes_on_before_the_next_sweep_when_its_nested_run_has_ended(looking):
    looking.add('run')
    looking.store.park('run', 0, '{}', [], nested=[replace(RUN, id='nested', parent='run')], at=NOON)
    looking.sweep.look()
    looking.store.finish('nested', 0, 'done', '1', at=NOON)
    looking.sweep.look(Changes())
    assert looking.engine.begun == [('nested', 0)]

    looking.sweep.hurry()
    looking.sweep.look(Changes())

    assert looking.engine.begun == [('nested', 0), ('run', 1)]


def test_a_run_goes_on_when_its_question_is_answered(looking):
    looking.park('run')
    looking.sweep.look()
    assert looking.engine.begun == []

    looking.store.inbox_store.settle('run'.ljust(43, '_'), 'denied', at=NOON, answer='{}')
    looking.sweep.look()

    assert looking.engine.begun == [('run', 1)]


@pytest.mark.parametrize(('left', 'begun'), [(timedelta(hours=1), []), (timedelta(milliseconds=-1), [('run', 1)])])
@pytest.mark.parametrize('set_to', [timedelta(days=-400), timedelta(days=400)])
def test_a_deadline_passes_by_the_clock_of_the_store_and_not_of_the_worker(looking, set_to, left, begun):
    looking.park('run', deadline=looking.store.inbox_store.now() + left)
    looking.day = NOON + set_to

    looking.sweep.look()

    [row] = looking.store.requests_of('run')
    assert row.state == ('expired' if begun else 'pending')
    assert looking.engine.begun == begun


def test_the_work_of_a_dead_worker_is_taken_up(looking):
    looking.store.beat('dead', 7)
    looking.ledger.dead = ['dead']

    looking.sweep.look()
    looking.sweep.look()

    assert (looking.engine.taken, looking.ledger.ticks) == (['dead'], 1)
    assert looking.store.beats() == {}
    looking.time += 1.0
    looking.sweep.look()
    assert looking.ledger.ticks == 2


def test_a_run_whose_segment_the_engine_gave_up_has_failed(looking):
    looking.add('run')
    looking.sweep.look()
    looking.engine.dead_letters = {('run', 0): 'MAX_RECOVERY_ATTEMPTS_EXCEEDED', ('ended', 1): 'ERROR'}
    looking.sweep.look()
    assert looking.store.get_run('run').status == 'queued'

    looking.time += 1.0
    looking.sweep.look()

    run = looking.store.get_run('run')
    assert run.status == 'failed'
    assert 'MAX_RECOVERY_ATTEMPTS_EXCEEDED' in run.outcome
    looking.time += 1.0
    looking.sweep.look()
    assert looking.store.get_run('run') == run


def test_runs_that_ended_weeks_ago_are_pruned_once_an_hour(looking):
    looking.add('ended')
    looking.store.finish('ended', 0, 'done', '{}', at=NOON)
    looking.park('that waits')
    looking.sweep.look()
    assert looking.store.get_run('ended') is not None

    looking.day = NOON + KEEP_HISTORY + timedelta(minutes=1)
    looking.sweep.look()
    looking.time += PRUNE_S
    looking.sweep.look()

    assert looking.store.get_run('ended') is None
    assert looking.store.get_run('that waits') is not None
    assert looking.engine.pruned == [NOON - KEEP_HISTORY, NOON + timedelta(minutes=1)]


def test_no_heartbeat_is_counted_when_the_engine_is_broken(looking, caplog):
    looking.engine.is_broken = True

    looking.sweep.start()
    looking.sweep.close()

    assert looking.ledger.ticks == 0
    assert 'executes no more runs' in logged(caplog)[-1]


def test_looking_goes_on_when_the_store_is_back(looking, caplog, monkeypatch):
    expire, failures = looking.store.expire, [InboxUnavailable('the inbox', 'gone'), ValueError('secret')]

    def failing():
        if failures:
            raise failures.pop(0)
        return expire()

    monkeypatch.setattr(looking.store, 'expire', failing)
    looking.add('run')
    looking.sweep.start()
    eventually(lambda: looking.engine.begun and any('go on' in each for each in logged(caplog)))
    looking.sweep.close()

    assert looking.engine.begun == [('run', 0)]
    first, second = logged(caplog)
    assert first.startswith('Durable runs wait: ')
    assert 'gone' in first
    assert second == 'Durable runs go on'


def test_an_unexpected_error_is_logged_by_its_name_alone(looking, caplog, monkeypatch):
    def failing():
        raise ValueError('secret')

    monkeypatch.setattr(looking.store, 'expire', failing)
    looking.sweep.start()
    eventually(lambda: logged(caplog))
    looking.sweep.close()

    assert logged(caplog)[0] == 'Durable runs wait: ValueError'
