"""Trees of runs in the store: a run starts nested runs, waits for their ends, and takes them along when it ends."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

from tool_approval.durable import ExecutionRow, RunRow
from tool_approval.inbox import Row

from tests.approval.parts import NOON

from .parts import change

LATER = NOON + timedelta(seconds=1)
TOP = RunRow(id='top', agent='boss', state='{}', created_at=NOON, changed_at=NOON)
MIDDLE = replace(TOP, id='middle', agent='boss/clerk', parent='top')
LEAF = replace(TOP, id='leaf', agent='boss/clerk/boy', parent='middle')
OTHER = replace(MIDDLE, id='other')
AGENTS = ['boss', 'boss/clerk', 'boss/clerk/boy']


def asked(owner):
    return Row(id=f'asked by {owner}', owner=owner, content='{}', posted_at=NOON)


def grow(store):
    """A run that waits for two others, one of which waits for a third, which waits for an answer as the second does."""
    assert store.add_run(TOP)
    assert store.park('top', 0, '{}', [], nested=[MIDDLE, OTHER], at=LATER)
    assert store.park('middle', 0, '{}', [], nested=[LEAF], at=LATER)
    assert store.park('leaf', 0, '{}', [asked('leaf')], at=LATER)
    assert store.park('other', 0, '{}', [asked('other')], at=LATER)


def status_of(store):
    return {each.id: each.status for each in store.list_runs()}


def end(store, run_id, segment=1):
    assert store.resume(run_id, segment, at=LATER)
    assert store.finish(run_id, segment, 'done', '1', at=LATER)


def test_a_run_goes_on_when_its_nested_runs_have_ended(make_store):
    store, other = make_store(), make_store()
    store.add_run(TOP)
    assert store.park('top', 0, '{}', [asked('top')], nested=[MIDDLE, OTHER], at=LATER)

    assert other.get_run('middle') == MIDDLE
    assert sorted(other.ready(AGENTS, 10)) == sorted(other.ready_after(AGENTS, 10, ())) == [('middle', 0), ('other', 0)]
    assert other.ready(['boss'], 10) == []
    end(store, 'middle', 0)
    store.inbox_store.settle('asked by top', 'denied', at=LATER, answer='{}')
    assert other.ready(['boss'], 10) == other.ready_after(['boss'], 10, ['asked by top']) == []
    end(store, 'other', 0)

    assert other.ready(AGENTS, 10) == [('top', 1)]


def test_a_nested_run_that_is_there_is_left_as_it_is(store):
    grow(store)
    end(store, 'other')
    store.cancel('middle', at=LATER)
    store.resume('top', 1, at=LATER)

    assert store.park('top', 1, '{}', [], nested=[replace(OTHER, state='{"b":2}')], at=LATER)

    assert store.get_run('other').status == 'done'
    assert store.ready(['boss'], 10) == [('top', 2)]


def test_a_segment_that_is_over_starts_no_nested_run(store):
    grow(store)

    assert store.park('top', 0, '{}', [], nested=[replace(OTHER, id='late')], at=LATER) is False

    assert store.get_run('late') is None


def test_the_runs_nested_in_a_run_are_listed(store):
    grow(store)

    assert [each.id for each in store.nested_in('top')] == ['leaf', 'middle', 'other']
    assert [each.id for each in store.nested_in('middle')] == ['leaf']
    assert store.nested_in('leaf') == store.nested_in('none') == []


def test_cancelling_a_run_cancels_all_below_it_and_withdraws_their_questions(make_store):
    store, other = make_store(), make_store()
    grow(store)
    other.inbox_store.watch(0.0)

    assert store.cancel('middle', at=LATER)

    assert status_of(store) == {'top': 'waiting', 'middle': 'cancelled', 'leaf': 'cancelled', 'other': 'waiting'}
    assert [row.state for each in ('leaf', 'other') for row in store.requests_of(each)] == ['withdrawn', 'pending']
    assert other.inbox_store.watch(5.0).settled == {'asked by leaf'}
    assert store.cancel('top', at=LATER)
    assert set(status_of(store).values()) == {'cancelled'}
    assert store.inbox_store.open(10) == []
    assert store.cancel('leaf', at=LATER) is False


def test_a_run_that_fails_leaves_nothing_below_it_that_goes_on(store):
    grow(store)

    assert store.finish('top', 1, 'failed', '{}', at=LATER)

    assert status_of(store) == {'top': 'failed', 'middle': 'cancelled', 'leaf': 'cancelled', 'other': 'cancelled'}
    assert store.ready(AGENTS, 10) == []


def test_a_call_of_a_nested_run_does_not_begin_after_the_run_above_was_cancelled(store):
    grow(store)
    call = ExecutionRow(
        key='k', attempt=1, run_id='leaf', tool_name='t', tool_call_id='c', idempotency_key='i', changed_at=NOON
    )
    store.add_execution(call)
    assert store.move(call, 'reserved', owner='w', at=NOON)

    store.cancel('top', at=LATER)

    assert store.move(replace(call, state='reserved', owner='w'), 'executing', owner='w', at=LATER) is False


def test_a_nested_run_that_starts_another_while_it_is_cancelled_leaves_none(make_store):
    store, worker = make_store(), make_store()
    store.add_run(TOP)
    store.park('top', 0, '{}', [], nested=[MIDDLE], at=LATER)
    begun = threading.Event()

    def cancel():
        begun.set()
        return store.cancel('top', at=LATER)

    with ThreadPoolExecutor(1) as pool:
        with worker.inbox_store.transaction() as execute:
            # As `park` does: the nested run ends its segment, and starts another run.
            execute("UPDATE runs SET status = 'waiting', segment = 1 WHERE id = 'middle' AND status = 'queued'")
            cancelling = pool.submit(cancel)
            begun.wait()
            time.sleep(0.2)  # the cancellation has to meet the open transaction
            execute(
                'INSERT INTO runs (id, agent, status, segment, state, created_at, changed_at, parent) '
                "VALUES ('leaf', 'boss/clerk/boy', 'queued', 0, '{}', 0, 0, 'middle')"
            )
        assert cancelling.result()

    assert status_of(store) == {'top': 'cancelled', 'middle': 'cancelled', 'leaf': 'cancelled'}


def test_a_tree_is_pruned_as_a_whole_after_the_end_of_its_first_run(store):
    grow(store)
    for each in ('leaf', 'middle', 'other'):
        store.add_execution(
            ExecutionRow(
                key=each,
                attempt=1,
                run_id=each,
                tool_name='t',
                tool_call_id='c',
                idempotency_key='i',
                changed_at=NOON,
            )
        )
        end(store, each)
    after = LATER + timedelta(seconds=1)

    assert store.prune(after) == 0
    assert len(store.list_runs()) == 4
    store.finish('top', 1, 'done', '1', at=after)
    assert store.prune(after) == 0
    assert store.prune(after + timedelta(seconds=1)) == 4

    assert store.list_runs() == []
    assert [row for each in ('leaf', 'middle', 'other') for row in store.executions_of(each)] == []


def test_a_nested_run_whose_first_run_is_gone_is_pruned_too(store):
    grow(store)
    store.cancel('top', at=LATER)
    change(store, "DELETE FROM runs WHERE id = 'top'")

    assert store.prune(LATER + timedelta(seconds=1)) == 3
