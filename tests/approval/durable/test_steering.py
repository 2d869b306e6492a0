"""What people see of durable runs, who may cancel one, and what becomes of a call that they settle."""

import asyncio
import json
from dataclasses import replace

import pytest
from tool_approval.durable.steering import (
    NobodyMay,
    NotUnknown,
    RunEnded,
    UnknownRun,
    approvers_of,
    cancel_run,
    executions_of,
    keeps_runs,
    read_run,
    settle_call,
)
from tool_approval.inbox import Approver, ApproverRule, NotAnApprover
from tool_approval.inbox.entry import read_entry

from tests.approval.parts import NOON

from .parts import CALL, SOON, asked, asked_again, below, executing, unknown, waiting

ADA, BOB = Approver(id='ada'), Approver(id='bob', groups=frozenset({'ops'}))
OPS = (ApproverRule(groups=frozenset({'ops'})),)


def test_status_names_what_the_run_waits_for(store):
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
        'The run has been waiting for 2 answers since 2026-03-04 12:00:01 UTC',
        'The run has been waiting for 1 answer since 2026-03-04 12:00:01 UTC',
        'The run has its answers, and continues as soon as a worker resumes it',
        (
            'Since 2026-03-04 12:00:01 UTC, the run has been executing, '
            'or waiting for a worker that serves its agent and version'
        ),
        'The run ended at 2026-03-04 12:00:01 UTC: failed',
    ]


def test_a_run_waits_for_the_answers_and_the_ends_of_its_nested_runs(store):
    waiting(store)
    below(store, question := asked())
    below(store, run_id='second')
    told = [read_run(store, 'order-17').why]
    store.inbox_store.settle(question.id, 'withdrawn', at=SOON)
    told.append(read_run(store, 'order-17').why)
    store.cancel('second', at=SOON)
    told.append(read_run(store, 'order-17').why)
    store.cancel('lookup', at=SOON)
    told.append(read_run(store, 'order-17').why)

    assert told == [
        'The run has been waiting for 1 answer since 2026-03-04 12:00:01 UTC',
        'The run has been waiting for 2 nested runs since 2026-03-04 12:00:01 UTC',
        'The run has been waiting for 1 nested run since 2026-03-04 12:00:01 UTC',
        'The run has its answers, and continues as soon as a worker resumes it',
    ]
    view = read_run(store, 'order-17').view
    assert [(each.id, each.agent, each.status, each.parent) for each in view.nested] == [
        ('lookup', 'shop/clerk', 'cancelled', 'order-17'),
        ('second', 'shop/clerk', 'cancelled', 'order-17'),
    ]
    assert view.requests == ()


def test_who_may_not_answer_a_nested_run_may_not_cancel_the_run_above(store):
    waiting(store, asked())
    below(store, asked(approvers=OPS))

    with pytest.raises(NotAnApprover):
        cancel_run(store, 'order-17', ADA, at=SOON)
    assert store.get_run('lookup').status == 'waiting'

    cancel_run(store, 'order-17', BOB, at=SOON)
    assert store.get_run('lookup').status == 'cancelled'
    assert store.inbox_store.open(10) == []


def test_a_request_of_a_nested_run_that_cannot_be_read_says_not_who_may_cancel(store):
    waiting(store, asked())
    below(store, replace(asked(), content='{'))

    with pytest.raises(NobodyMay):
        cancel_run(store, 'order-17', ADA, at=SOON)


@pytest.mark.parametrize(
    ('content', 'told'),
    [
        ({}, 'everyone who has access'),
        ({'approvers': (ApproverRule(),)}, 'no one'),
        ({'approvers': (ApproverRule(users=frozenset({'b', 'a'})),)}, 'a, b'),
        ({'approvers': (ApproverRule(users=frozenset({'a'})), *OPS)}, 'a, who must also be members of ops'),
        ({'forbid_self_approval': True, 'requester': 'eve'}, 'everyone who has access, but not eve'),
        ({'requester': 'eve'}, 'everyone who has access'),
    ],
)
def test_approvers_are_described_in_words(content, told):
    assert approvers_of(read_entry(asked(**content))) == told


def test_unknown_run_id_raises_unknown_run(store):
    for run_id in ('none', '', '\0', '\ud800'):
        with pytest.raises(UnknownRun):
            read_run(store, run_id)
        with pytest.raises(UnknownRun):
            cancel_run(store, run_id, at=NOON)


def test_approver_of_all_open_requests_may_cancel(store):
    waiting(store, asked(approvers=OPS), first := asked('send_mail', approvers=(ApproverRule(users=frozenset('x')),)))

    with pytest.raises(NotAnApprover):
        cancel_run(store, 'order-17', BOB, at=NOON)
    store.inbox_store.settle(first.id, 'withdrawn', at=SOON)
    with pytest.raises(NotAnApprover):
        cancel_run(store, 'order-17', ADA, at=NOON)
    assert read_run(store, 'order-17').run.status == 'waiting'

    assert cancel_run(store, 'order-17', BOB, at=SOON).run.status == 'cancelled'
    with pytest.raises(RunEnded, match='the run has already ended: its status is cancelled'):
        cancel_run(store, 'order-17', ADA, at=SOON)


def test_approver_of_all_past_requests_may_cancel_if_none_is_open(store):
    waiting(store, first := asked(approvers=OPS))
    store.inbox_store.settle(first.id, 'withdrawn', at=SOON)

    with pytest.raises(NotAnApprover, match='only listed approvers may answer'):
        cancel_run(store, 'order-17', ADA, at=NOON)

    assert cancel_run(store, 'order-17', BOB, at=SOON).run.status == 'cancelled'


def test_requester_may_not_cancel_without_the_right_to_answer(store):
    waiting(store, asked(forbid_self_approval=True, requester='ada'))

    with pytest.raises(NotAnApprover, match='requesters may not answer their own requests'):
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


def test_executions_are_shown(store):
    waiting(store, asked())
    executing(store)

    [view] = read_run(store, 'order-17').view.executions

    assert (view.state, view.attempt, view.started_at, view.changed_at) == ('executing', 1, SOON, SOON)


def test_a_store_of_an_inbox_alone_keeps_no_runs(store):
    assert keeps_runs(store.inbox_store)
    assert not keeps_runs(object())


def settled(store, row, verdict, result=None, **keywords):
    return asyncio.run(settle_call(store, row, verdict, result, **{'by': 'ada', **keywords}))


@pytest.mark.parametrize(
    ('verdict', 'rows', 'kept'),
    [
        ('result', [('done', 1)], {'value': {'paid': 250}, 'by': 'ada'}),
        ('again', [('unknown', 1), ('approved', 2)], {'text': '... The call was tried again.', 'by': 'ada'}),
        ('give_up', [('unknown', 1)], {'text': '... ada decided not to run the call again.', 'by': 'ada'}),
    ],
)
def test_a_call_is_settled_once_and_its_run_can_go_on(store, verdict, rows, kept):
    waiting(store, question := asked_again(store), other := asked(call='c2'), third := asked('send_mail'))
    row = unknown(store)

    settled(store, row, verdict, {'paid': 250})

    found = store.executions_of('order-17')
    written = json.loads(found[0].result)
    if 'text' in written:
        began, _, end = written['text'].partition('The call may have happened.')
        assert began.startswith("The call of 'pay' was started at 2026-03-04 12:00:01 UTC")
        written['text'] = f'...{end}'
    assert ([(each.state, each.attempt) for each in found], written) == (rows, kept)
    states = {row.id: row.state for row in store.requests_of('order-17')}
    assert states == {question.id: 'withdrawn', other.id: 'pending', third.id: 'pending'}
    assert not any(each.is_unsettled for each in found)
    with pytest.raises(NotUnknown):
        read_run(store, 'order-17').unsettled('key', 1)
    if verdict != 'give_up':  # of which somebody may think better until it was tried again
        with pytest.raises(NotUnknown):
            settled(store, row, 'result')


def test_only_unknown_calls_can_be_settled(store):
    waiting(store, asked())
    row = executing(store)

    for key, attempt in (('key', 1), ('key', 2), ('other', 1)):
        with pytest.raises(NotUnknown):
            read_run(store, 'order-17').unsettled(key, attempt)
    with pytest.raises(ValueError, match='cannot change from'):
        settled(store, replace(row, state='reserved'), 'result')
    assert store.latest('key').state == 'executing'


def test_approver_of_the_tool_may_settle(store):
    waiting(store, asked('pay', approvers=OPS), asked('send_mail', approvers=(ApproverRule(users=frozenset({'ada'})),)))
    row = unknown(store)
    mail = unknown(store, replace(CALL, key='mail', tool_name='send_mail'))
    other = unknown(store, replace(CALL, key='other', tool_name='other'))
    details = read_run(store, 'order-17')

    details.check_may_settle(row, BOB)
    details.check_may_settle(mail, ADA)
    for refused, by in ((row, ADA), (mail, BOB)):
        with pytest.raises(NotAnApprover):
            details.check_may_settle(refused, by)
    with pytest.raises(NobodyMay):
        details.check_may_settle(other, ADA)


def test_the_names_of_calls_are_kept_escaped_and_found(store):
    waiting(store, asked('pay\x1b', 'c\x1b'), run_id='order <U+17')
    row = unknown(store, replace(CALL, run_id='order <U+003C>U+17', tool_name='pay<U+001B>', tool_call_id='c<U+001B>'))
    [found] = executions_of(store, 'order <U+17')

    read_run(store, 'order <U+17').check_may_settle(row, ADA)
    settled(store, found, 'give_up')

    assert not any(each.is_unsettled for each in executions_of(store, 'order <U+17'))
