"""What people see of durable runs, and who may cancel one."""

from dataclasses import replace

import pytest
from tool_approval.durable.steering import (
    NobodyMay,
    RunEnded,
    UnknownRun,
    approvers_of,
    cancel_run,
    keeps_runs,
    read_run,
)
from tool_approval.inbox import Approver, ApproverRule, NotAnApprover
from tool_approval.inbox.entry import read_entry

from tests.approval.parts import NOON

from .parts import SOON, asked, executing, waiting

ADA, BOB = Approver(id='ada'), Approver(id='bob', groups=frozenset({'ops'}))
OPS = (ApproverRule(groups=frozenset({'ops'})),)


def test_why_a_run_does_not_go_on(store):
    waiting(store, first := asked(), second := asked(call='c2'))
    told = [read_run(store, 'order-17').why]
    for each in (first, second):
        store.inbox_store.settle(each.id, 'withdrawn', at=SOON)
        told.append(read_run(store, 'order-17').why)
    store.resume('order-17', 1, at=SOON)
    told.append(read_run(store, 'order-17').why)
    store.finish('order-17', 1, 'failed', '"no"', at=SOON)
    told.append(read_run(store, 'order-17').why)

    assert told == [
        'It waits for 2 answers since 2026-03-04 12:00:01 UTC',
        'It waits for 1 answer since 2026-03-04 12:00:01 UTC',
        'It has its answers, and goes on as soon as a worker takes it up',
        'It is executed, or waits for a worker, since 2026-03-04 12:00:01 UTC',
        'It ended at 2026-03-04 12:00:01 UTC: failed',
    ]


@pytest.mark.parametrize(
    ('content', 'told'),
    [
        ({}, 'everybody who is let in'),
        ({'approvers': (ApproverRule(),)}, 'nobody'),
        ({'approvers': (ApproverRule(users=frozenset({'b', 'a'})),)}, 'a, b'),
        ({'approvers': (ApproverRule(users=frozenset({'a'})), *OPS)}, 'a, who must also be members of ops'),
        ({'forbid_self_approval': True, 'requester': 'eve'}, 'everybody who is let in, but not eve'),
        ({'requester': 'eve'}, 'everybody who is let in'),
    ],
)
def test_who_may_answer_in_words(content, told):
    assert approvers_of(read_entry(asked(**content))) == told


def test_what_is_not_there_is_not_looked_for(store):
    for run_id in ('none', '', '\0', '\ud800'):
        with pytest.raises(UnknownRun):
            read_run(store, run_id)
        with pytest.raises(UnknownRun):
            cancel_run(store, run_id, at=NOON)


def test_who_may_answer_all_that_is_open_may_cancel(store):
    waiting(store, asked(approvers=OPS), first := asked('send_mail', approvers=(ApproverRule(users=frozenset('x')),)))

    with pytest.raises(NotAnApprover):
        cancel_run(store, 'order-17', BOB, at=NOON)
    store.inbox_store.settle(first.id, 'withdrawn', at=SOON)
    with pytest.raises(NotAnApprover):
        cancel_run(store, 'order-17', ADA, at=NOON)
    assert read_run(store, 'order-17').run.status == 'waiting'

    assert cancel_run(store, 'order-17', BOB, at=SOON).run.status == 'cancelled'
    with pytest.raises(RunEnded, match='the run has ended: it is cancelled'):
        cancel_run(store, 'order-17', ADA, at=SOON)


def test_where_nothing_is_open_who_may_answer_all_that_was_asked_may_cancel(store):
    waiting(store, first := asked(approvers=OPS))
    store.inbox_store.settle(first.id, 'withdrawn', at=SOON)

    with pytest.raises(NotAnApprover, match='they are not listed'):
        cancel_run(store, 'order-17', ADA, at=NOON)

    assert cancel_run(store, 'order-17', BOB, at=SOON).run.status == 'cancelled'


def test_who_asked_may_not_cancel_where_they_may_not_answer(store):
    waiting(store, asked(forbid_self_approval=True, requester='ada'))

    with pytest.raises(NotAnApprover, match='it is their own request'):
        cancel_run(store, 'order-17', ADA, at=NOON)


@pytest.mark.parametrize('requests', [(), (replace(asked(), content='{}'),), (asked(), replace(asked(), content='{}'))])
def test_without_a_request_that_says_who_nobody_may(store, requests):
    waiting(store, *requests)
    found = read_run(store, 'order-17')

    with pytest.raises(NobodyMay):
        cancel_run(store, 'order-17', ADA, at=NOON)

    assert found.unreadable == len([each for each in requests if each.content == '{}'])
    assert ('cannot be read' in found.why) is (found.unreadable > 0)
    assert cancel_run(store, 'order-17', at=NOON).run.status == 'cancelled', 'the owner of the store may'


def test_what_is_executed_is_shown(store):
    waiting(store, asked())
    executing(store)

    [view] = read_run(store, 'order-17').view.executions

    assert (view.state, view.attempt, view.started_at, view.changed_at) == ('executing', 1, SOON, SOON)


def test_a_store_of_an_inbox_alone_keeps_no_runs(store):
    assert keeps_runs(store.inbox_store)
    assert not keeps_runs(object())
