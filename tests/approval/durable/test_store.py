import contextlib
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import get_args

import pytest
from tool_approval.durable import MOVES, DurableStore, ExecutionRow, ExecutionState, RunRow, open_store
from tool_approval.durable.store import ASKED_AGAIN_MS, about_unknown, derived_id
from tool_approval.inbox import InboxError, InboxUntrusted, Row
from tool_approval.inbox.store import Changes
from tool_approval.inbox.stores import SQLiteStore
from tool_approval.testing import check_inbox_store

from tests.approval.parts import NOON

from .parts import change

LATER = NOON + timedelta(seconds=1)
RUN = RunRow(id='run', agent='agent', state='{}', created_at=NOON, changed_at=NOON)
ASKED = Row(id='asked', owner='run', content='{"a":1}', posted_at=NOON)
CALL = ExecutionRow(
    key='key', attempt=1, run_id='run', tool_name='pay', tool_call_id='call', idempotency_key='once', changed_at=NOON
)


def parked(store, *requests, **keywords):
    assert store.add_run(RUN)
    assert store.park('run', 0, '{"n":1}', requests or [ASKED], at=LATER, **keywords)


def states(store):
    return [(row.id, row.state) for row in store.requests_of('run')]


def test_store_has_a_conforming_inbox_store(make_store):
    check_inbox_store(lambda: make_store().inbox_store, tries=5)


def test_a_run_is_parked_with_its_requests_and_is_ready_when_all_are_answered(make_store):
    store, other = make_store(), make_store()
    assert store.add_run(RUN)
    assert other.add_run(replace(RUN, state='{"other":1}')) is False
    assert store.get_run('run') == RUN
    assert store.get_run('other') is None
    assert other.ready(['agent'], 10) == other.ready_after(['agent'], 10, []) == [('run', 0)]
    second = replace(ASKED, id='second')

    assert store.resume('run', 0, at=NOON)
    assert store.park('run', 0, '{"n":1}', [ASKED, second], at=LATER)

    assert other.get_run('run') == replace(RUN, status='waiting', segment=1, state='{"n":1}', changed_at=LATER)
    assert other.requests_of('run') == other.inbox_store.open(10) == [ASKED, second]
    assert other.ready(['agent'], 10) == []
    other.inbox_store.settle('asked', 'approved', at=LATER, answer='{}')
    assert store.ready(['agent'], 10) == store.ready_after(['agent'], 10, ['asked']) == []
    other.inbox_store.settle('second', 'denied', at=LATER, answer='{}')
    assert store.ready(['agent'], 10) == store.ready_after(['agent'], 10, ['second', 'unknown']) == [('run', 1)]
    assert store.ready(['another'], 10) == store.ready_after(['another'], 10, ['second']) == []
    assert store.ready_after(['agent'], 10, []) == store.ready_after(['agent'], 10, ['unknown']) == []
    assert [row.id for row in store.still_ready(['agent'], [('run', 0), ('run', 1), ('other', 1)])] == ['run']
    assert store.still_ready(['agent'], [('run', 0)]) == store.still_ready(['another'], [('run', 1)]) == []
    begun_at = store.inbox_store.now()
    assert store.resume('run', 1, at=begun_at) == store.get_run('run')
    assert store.get_run('run').status == 'queued'
    assert store.ready(['agent'], 10) == store.ready_after(['agent'], 10, ['second']) == [], 'its segment has begun'
    assert store.still_ready(['agent'], [('run', 1)]) == []
    assert store.resume('run', 1, at=begun_at - timedelta(milliseconds=ASKED_AGAIN_MS))
    assert store.ready(['agent'], 10) == [('run', 1)], 'the engine may have lost its record'


def test_changes_together_are_one_transaction_in_which_one_may_fail(make_store):
    store, other = make_store(), make_store()
    other.get_run('none')

    with store.together():
        assert store.add_run(RUN)
        with pytest.raises(ZeroDivisionError), store.inbox_store.transaction() as execute:
            execute("UPDATE runs SET agent = 'changed'")
            _ = 1 / 0
        assert store.resume('run', 0, at=LATER)
        assert other.get_run('run') is None

    assert (other.get_run('run').agent, other.get_run('run').status) == ('agent', 'queued')
    assert other.get_run('run').changed_at == LATER
    with store.together():
        assert store.get_run('run') is not None


@pytest.mark.parametrize('statement', ['INSERT INTO none VALUES (1)', 'SELECT * FROM none'])
def test_an_error_of_the_database_undoes_all_changes_that_were_made_together(make_store, statement):
    store, other = make_store(), make_store()

    with pytest.raises(InboxError), store.together():
        store.add_run(RUN)
        with contextlib.suppress(InboxError), store.inbox_store.transaction() as execute:
            execute(statement)

    assert other.get_run('run') is None
    assert store.add_run(RUN), 'it goes on'


def test_sqlite_does_not_say_that_changes_are_committed_which_it_has_rolled_back(tmp_path):
    store = DurableStore(SQLiteStore(tmp_path / 'state' / 'inbox.sqlite'))

    with pytest.raises(InboxError), store.together():
        store.add_run(RUN)
        with contextlib.suppress(InboxError), store.inbox_store.transaction() as execute:
            execute('ROLLBACK')
            raise ValueError('as after an error for which SQLite rolls back')

    assert store.get_run('run') is None
    store.close()


def test_a_segment_that_is_over_changes_nothing(store):
    parked(store)
    before = store.get_run('run')

    assert store.park('run', 0, '{"late":1}', [replace(ASKED, id='late')], at=LATER) is False
    assert store.resume('run', 0, at=LATER) is None
    assert store.finish('run', 0, 'done', '1', at=LATER) is False
    assert store.park('run', 1, '{"early":1}', [], at=LATER) is False, 'it is not begun'

    assert store.get_run('run') == before
    assert states(store) == [('asked', 'pending')]


def test_requests_that_are_there_are_left_as_they_are(store):
    parked(store)
    store.inbox_store.settle('asked', 'approved', at=LATER, answer='{}')
    store.resume('run', 1, at=LATER)

    assert store.park('run', 1, '{}', [replace(ASKED, content='{"b":2}'), replace(ASKED, id='new')], at=LATER)

    assert states(store) == [('asked', 'approved'), ('new', 'pending')]
    assert store.requests_of('run')[0].content == ASKED.content


def test_a_run_ends_once(store):
    parked(store)
    assert store.resume('run', 1, at=LATER)

    assert store.finish('run', 1, 'done', '"out"', state='{"n":2}', at=LATER)

    assert store.finish('run', 1, 'failed', '"late"', state='{"n":3}', at=LATER) is False
    assert store.cancel('run', at=LATER) is False
    assert store.get_run('run') == replace(
        RUN, status='done', segment=1, state='{"n":2}', outcome='"out"', changed_at=LATER
    )
    assert states(store) == [('asked', 'withdrawn')]


def test_cancelling_a_run_withdraws_its_requests(make_store):
    store, other = make_store(), make_store()
    parked(store)
    other.inbox_store.watch(0.0)

    assert store.cancel('run', at=LATER)

    assert other.inbox_store.watch(5.0).settled == {'asked'}
    assert states(store) == [('asked', 'withdrawn')]
    assert store.get_run('run').status == 'cancelled'
    assert store.ready(['agent'], 10) == []
    assert store.cancel('run', at=LATER) is False
    assert store.cancel('none', at=LATER) is False


def test_new_runs_and_parked_requests_are_followed_as_any_others(make_store):
    store, other = make_store(), make_store()
    other.inbox_store.watch(0.0)

    store.add_run(RUN)
    began = time.monotonic()
    changed = other.inbox_store.watch(5.0)
    assert (changed.added, changed.settled) == (set(), set())
    assert time.monotonic() - began < 4, 'the run has ended the wait'

    store.park('run', 0, '{"n":1}', [ASKED], at=LATER)
    assert other.inbox_store.watch(5.0).added == {'asked'}
    store.resume('run', 1, at=LATER)
    assert other.inbox_store.watch(0.2) == Changes()


def test_no_lease_ends_a_parked_request(store):
    parked(store)
    store.inbox_store.add(replace(ASKED, id='unparked'))

    assert store.inbox_store.beats() == {'run': 0}
    assert store.inbox_store.withdraw_all_of('run', 0, at=LATER) == 1

    assert states(store) == [('asked', 'pending')]
    assert store.inbox_store.beats() == {}


def test_a_deadline_expires_what_is_still_open(store):
    parked(store, ASKED, deadline=store.inbox_store.now())
    assert store.resume('run', 1, at=NOON)
    assert store.park(
        'run', 1, '{}', [replace(ASKED, id='second')], store.inbox_store.now() + timedelta(hours=1), at=NOON
    )

    assert (store.expire(), store.expire()) == (1, 0)

    assert states(store) == [('asked', 'expired'), ('second', 'pending')]
    assert store.ready(['agent'], 10) == []


@pytest.mark.parametrize('said', ['approved', 'denied'])
def test_an_answer_after_the_deadline_is_refused_whatever_the_clock_of_its_process(said, make_store):
    store, page = make_store(), make_store()
    parked(store, ASKED, deadline=store.inbox_store.now())

    assert page.inbox_store.settle('asked', said, at=NOON, answer='{}') is False

    [row] = store.requests_of('run')
    assert (row.state, row.answer) == ('expired', None)
    assert row.settled_at > LATER, 'the time is that of the database'
    assert store.ready(['agent'], 10) == [('run', 1)]


def test_requests_of_a_run_are_pruned_after_its_end(store):
    parked(store)
    store.add_execution(CALL)
    store.inbox_store.settle('asked', 'approved', at=NOON, answer='{}')
    store.resume('run', 1, at=NOON)

    assert (store.inbox_store.prune(LATER), store.prune(LATER)) == (0, 0)
    store.finish('run', 1, 'done', '1', at=NOON)
    store.add_execution(replace(CALL, key='by hand', run_id='elsewhere'))

    assert (store.inbox_store.prune(LATER), store.prune(LATER)) == (1, 1)
    assert store.get_run('run') is None
    assert store.executions_of('run') == store.requests_of('run') == []
    assert len(store.executions_of('elsewhere')) == 1


def test_runs_are_listed_newest_first_in_pages(store):
    for number in range(5):
        store.add_run(replace(RUN, id=f'r{number}', created_at=NOON + timedelta(seconds=number // 2)))
    store.cancel('r1', at=LATER)

    def ids(*args, **keywords):
        return [each.id for each in store.list_runs(*args, **keywords)]

    assert ids() == ['r4', 'r3', 'r2', 'r1', 'r0']
    assert ids(limit=2) == ['r4', 'r3']
    assert ids(limit=2, after='r3') == ['r2', 'r1']
    assert ids('queued', after='r2') == ['r0']
    assert ids('cancelled') == ['r1']


def test_the_secret_is_made_once(make_store):
    with ThreadPoolExecutor(4) as pool:
        [secret] = set(pool.map(lambda each: each.secret(), [make_store() for _ in range(4)]))

    assert len(secret) == 32


@pytest.mark.parametrize('value', ['', 'xyz', 'ab'])
def test_a_changed_secret_is_refused(store, value):
    store.secret()
    change(store, 'UPDATE secret SET value = ?', value)

    with pytest.raises(InboxUntrusted, match='the secret key was changed'):
        store.secret()


def test_every_move_of_the_table_and_no_other(store):
    for number, state in enumerate(get_args(ExecutionState)):
        for to in get_args(ExecutionState):
            row = replace(CALL, key=f'{number} {to}', state=state, owner='w')
            assert store.add_execution(row)
            if to in MOVES[state]:
                assert store.move(row, to, owner='w', at=LATER, result='1')
                started = LATER if to == 'executing' else None
                expected = replace(row, state=to, result='1', changed_at=LATER, started_at=started)
                assert store.latest(row.key) == expected
                assert not store.move(row, to, owner='w', at=LATER)
            else:
                with pytest.raises(ValueError, match=f'cannot change from {state} to {to}'):
                    store.move(row, to, owner='w', at=LATER)


def test_only_its_holder_moves_an_execution(store):
    reserved = replace(CALL, state='reserved', owner='w')
    assert store.add_execution(CALL)
    assert store.add_execution(CALL) is False
    assert store.move(CALL, 'reserved', owner='w', at=NOON)

    assert store.move(replace(reserved, owner='other'), 'executing', owner='other', at=LATER) is False
    assert store.move(replace(reserved, owner=None), 'executing', owner='other', at=LATER) is False

    assert store.latest('key') == reserved
    assert store.latest('none') is None


def test_one_of_two_workers_wins_an_execution(make_store):
    stores, start = [make_store(), make_store()], threading.Barrier(2)

    def reserve(number, row):
        start.wait()
        return stores[number].move(row, 'reserved', owner=f'w{number}', at=LATER)

    with ThreadPoolExecutor(2) as pool:
        for number in range(30):
            row = replace(CALL, key=f'raced {number}')
            stores[0].add_execution(row)
            won = list(pool.map(reserve, (0, 1), (row, row)))
            assert sorted(won) == [False, True]
            assert stores[0].latest(row.key).owner == f'w{won.index(True)}'


def test_sqlite_finds_what_a_worker_held_by_an_index(tmp_path):
    store = DurableStore(SQLiteStore(tmp_path / 'state' / 'inbox.sqlite'))
    store.add_execution(replace(CALL, state='executing', owner='w'))
    transaction, plans = store.inbox_store.transaction, []

    @contextlib.contextmanager
    def explained():
        with transaction() as execute:

            def execute_explained(statement, values):
                plans.extend(plan for *_, plan in execute(f'EXPLAIN QUERY PLAN {statement}', values))
                return execute(statement, values)

            yield execute_explained

    store.inbox_store.transaction = explained
    assert store.release('w', 0, at=LATER) == 1
    store.close()

    used = [plan for plan in plans if 'executions' in plan]
    assert len(used) == 2
    assert all('USING INDEX executions_in_hand' in plan for plan in used), used


def test_a_worker_that_is_gone_loses_what_it_held(store):
    store.add_execution(replace(CALL, key='a', state='reserved', owner='w'))
    store.add_execution(replace(CALL, key='b', state='executing', owner='w'))
    store.add_execution(replace(CALL, key='c', state='done', owner='w'))
    store.add_execution(replace(CALL, key='d', state='executing', owner='other'))
    assert store.beats() == {'w': 0, 'other': 0}
    store.beat('w', 1)
    store.beat('w', 2)
    assert store.beats() == {'w': 2, 'other': 0}

    assert store.release('w', 1, at=LATER) == 0, 'it is alive'
    assert store.release('w', 2, at=LATER) == 2

    assert [(row.key, row.state, row.owner) for row in store.executions_of('run')] == [
        ('a', 'approved', None),
        ('b', 'unknown', 'w'),
        ('c', 'done', 'w'),
        ('d', 'executing', 'other'),
    ]
    assert [row.key for row in store.unknown_executions()] == ['b']
    store.forget_worker('w')
    assert store.beats() == {'other': 0}


def test_an_unknown_execution_is_tried_again_once_and_is_not_settled_after_that(store):
    unknown = replace(CALL, state='unknown', owner='w')
    store.add_execution(unknown)
    again = replace(CALL, attempt=2, idempotency_key='twice')

    assert store.retry(again)
    assert store.retry(again) is False

    assert store.move(unknown, 'done', owner='w', at=LATER, result='1') is False
    assert store.latest('key') == again
    assert store.unknown_executions() == []
    assert store.retry(replace(CALL, attempt=3)) is False, 'the second is not unknown'


UNKNOWN = replace(CALL, state='unknown', owner='w')


def about(store):
    """The question about the unknown call."""
    return replace(ASKED, id=derived_id(store.secret(), 'run', about_unknown('key', 1)))


@pytest.mark.parametrize('to', ['done', 'failed', 'unknown', 'again'])
def test_settling_a_call_withdraws_the_question_about_it(to, make_store):
    store, frozen = make_store(), make_store()
    store.add_execution(UNKNOWN)
    parked(store, about(store), replace(ASKED, id='another'), about={about(store).id: ('key', 1)})
    assert [state for _, state in states(store)] == ['pending', 'pending']

    # A worker that was frozen during the call goes on, or a person settles the call.
    if to == 'again':
        assert frozen.retry(replace(CALL, attempt=2, idempotency_key='twice', changed_at=LATER))
    else:
        assert frozen.move(UNKNOWN, to, owner='w', at=LATER, result='{"text":"settled"}')

    assert dict(states(store)) == {about(store).id: 'withdrawn', 'another': 'pending'}
    assert store.inbox_store.settle(about(store).id, 'approved', at=LATER, answer='{}') is False


def test_a_call_that_is_settled_while_its_run_is_parked_leaves_no_open_question(make_store):
    store, frozen = make_store(), make_store()
    store.add_execution(UNKNOWN)
    store.add_run(RUN)
    question, begun = about(store), threading.Event()

    def park():
        begun.set()
        return store.park('run', 0, '{}', [question], about={question.id: ('key', 1)}, at=LATER)

    with ThreadPoolExecutor(1) as pool:
        with frozen.inbox_store.transaction() as execute:
            execute("UPDATE executions SET state = 'done', result = '1' WHERE key = 'key'")
            parking = pool.submit(park)
            begun.wait()
            time.sleep(0.2)  # the parking has to meet the open transaction
        assert parking.result()

    assert states(store) == []
    assert store.ready(['agent'], 10) == [('run', 1)]


def test_rows_changed_by_another_program_are_refused(tmp_path):
    store = open_store(f'sqlite:///{tmp_path}/state/inbox.sqlite')
    store.add_run(RUN)
    store.add_execution(CALL)
    with pytest.raises(InboxUntrusted, match='CHECK constraint failed'):
        change(store, "UPDATE runs SET status = 'later'")
    store.close()


@pytest.mark.parametrize('damage', ["'soon'", "x'ff'", '4611686018427387904', '-1e300'])
def test_a_damaged_time_of_a_run_or_a_call_touches_nothing_else(damage, tmp_path):
    store = open_store(f'sqlite:///{tmp_path}/state/inbox.sqlite')
    spared, other = replace(RUN, id='spared'), replace(UNKNOWN, key='other')
    for run in (RUN, spared):
        store.add_run(run)
    for call in (UNKNOWN, other):
        store.add_execution(call)
    change(store, f"UPDATE runs SET created_at = {damage}, changed_at = {damage} WHERE id = 'run'")
    change(store, f"UPDATE executions SET changed_at = {damage}, started_at = {damage} WHERE key = 'key'")

    hit = replace(UNKNOWN, changed_at=None)
    assert {run.id: run for run in store.list_runs()} == {
        'run': replace(RUN, created_at=None, changed_at=None),
        'spared': spared,
    }
    assert store.executions_of('run') == [hit, other]
    assert set(store.unknown_executions()) == {hit, other}
    assert store.move(hit, 'done', owner='w', at=LATER, result='1')
    assert store.cancel('run', at=LATER)
    assert store.get_run('run').changed_at == LATER
    store.close()


def test_a_run_that_is_not_utf_8_hides_no_other(tmp_path):
    store = open_store(f'sqlite:///{tmp_path}/state/inbox.sqlite')
    store.add_run(RUN)
    change(store, "UPDATE runs SET state = CAST(x'ff7b' AS TEXT)")

    assert [run.state for run in store.list_runs()] == ['\ufffd{']
    store.close()


@pytest.mark.parametrize('form', ['{}', 'sqlite:///{}'])
def test_a_file_is_opened_by_path_or_url_and_survives_a_power_cut(tmp_path, form):
    path = tmp_path / 'state' / 'inbox.sqlite'

    store = open_store(form.format(path))

    store.add_run(RUN)
    assert path.exists()
    with store.inbox_store.reading() as execute:
        assert execute('PRAGMA synchronous').fetchall() == [(2,)]
    store.close()


def test_a_database_is_opened_by_its_url():
    store = open_store('postgresql://user:secret@host/name')

    assert store.place == "the PostgreSQL database 'name'"


@pytest.mark.parametrize('url', ['mysql://host/name', 'sqlite://path', 'https://host'])
def test_another_url_is_refused(url):
    with pytest.raises(ValueError, match=r'the store must be postgresql://'):
        open_store(url)


def test_the_page_has_the_table_of_the_code():
    page = (Path(__file__).parents[3] / 'docs' / 'explanation' / 'durable.md').read_text()
    _, _, section = page.partition('## The states of an execution')
    rows = re.findall(r'^\| `(\w+)` \| [^|]+ \| ?([^|]*)\|$', section, re.MULTILINE)

    assert {state: set(re.findall(r'`(\w+)`', following)) for state, following in rows} == dict(MOVES)
