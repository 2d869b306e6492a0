"""Looking at durable runs, and steering them."""

import sqlite3
from dataclasses import replace

import pytest
from tool_approval.durable import DurableStore
from tool_approval.inbox import ApproverRule
from tool_approval.inbox.stores import SQLiteStore

from tests.approval.durable.parts import CALL, asked, asked_again, below, change, executing, unknown, waiting
from tests.approval.parts import NOON


@pytest.fixture
def store(work):
    """The user's own inbox, with a run in it."""
    made = DurableStore(SQLiteStore())
    made.secret()
    yield made
    made.close()


def test_runs_commands_create_no_inbox(tool_approval, work):
    for words in (['list'], ['show', 'order-17'], ['cancel', 'order-17']):
        finished = tool_approval('runs', *words)

        assert (finished.status, finished.out) == (2, '')
        assert 'there is no inbox in' in finished.err
    assert not (work.parent / 'state').exists()


def test_inbox_without_runs_is_reported(tool_approval, store):
    assert tool_approval('runs', 'list').out == 'there are no runs\n'
    assert tool_approval('runs', 'list', '--status', 'done').out == 'there are no runs with this status\n'
    assert tool_approval('runs', 'list', '--json').out == ''


def test_runs_are_listed_the_newest_first(tool_approval, store):
    waiting(store, run_id='order-1')
    waiting(store, run_id='order-2\x1b[31m', agent='shop\n')
    store.cancel('order-1', at=NOON)

    assert tool_approval('runs', 'list').out == (
        'waiting    2026-03-04 12:00  shop<U+000A>  order-2<U+001B>[31m\ncancelled  2026-03-04 12:00  shop  order-1\n'
    )
    assert tool_approval('runs', 'list', '--status', 'cancelled', '--json').lines == [
        {
            'id': 'order-1',
            'agent': 'shop',
            'status': 'cancelled',
            'created_at': '2026-03-04T12:00:00Z',
            'changed_at': '2026-03-04T12:00:00Z',
            'parent': None,
        }
    ]


def test_damaged_times_are_shown_as_such(tool_approval, store):
    waiting(store)
    executing(store)
    change(store, "UPDATE runs SET created_at = 'soon', changed_at = 'soon'")
    change(store, "UPDATE executions SET changed_at = 'soon'")

    assert tool_approval('runs', 'list').out == 'waiting    damaged           shop  order-17\n'
    shown = tool_approval('runs', 'show', 'order-17').out
    assert 'run order-17 of shop, started a time that is damaged' in shown
    assert 'changed a time that is damaged' in shown


@pytest.mark.parametrize('count', [1, 2, 3])
def test_all_runs_are_listed_if_there_are_several_pages(tool_approval, store, monkeypatch, count):
    monkeypatch.setattr('tool_approval.cli.runs._AT_ONCE', 2)
    for number in range(count):
        waiting(store, run_id=f'order-{number}')

    names = [line.split()[-1] for line in tool_approval('runs', 'list').out.splitlines()]

    assert names == [f'order-{number}' for number in reversed(range(count))]


def test_a_run_is_shown_with_what_it_waits_for_and_whom(tool_approval, store):
    rules = (ApproverRule(users=frozenset({'ada', 'eve\x1b'}), groups=frozenset({'ops'})), ApproverRule())
    waiting(
        store,
        asked(approvers=rules, requester='eve', forbid_self_approval=True, expires_at=NOON),
        asked('send_\x1bmail', 'c2'),
    )
    unknown(store)
    store.add_execution(replace(CALL, attempt=2))

    assert tool_approval('runs', 'show', 'order-17').out.splitlines() == [
        'run order-17 of shop, started 2026-03-04 12:00:00 UTC',
        'The run has been waiting for 2 answers since 2026-03-04 12:00:01 UTC.',
        (
            'open since 2026-03-04 12:00:00 UTC, until 2026-03-04 12:00:00 UTC: pay (call c1); '
            'ada, eve<U+001B>, members of ops, who must also be no one, but not eve may answer'
        ),
        ('open since 2026-03-04 12:00:00 UTC: send_<U+001B>mail (call c2); everyone who has access may answer'),
        'call c1 of pay, attempt 1: unknown, started 2026-03-04 12:00:01 UTC, changed 2026-03-04 12:00:01 UTC',
        '  the call may have run: settle it with `tool-approval runs settle`; its key is key',
        'call c1 of pay, attempt 2: approved, not started, changed 2026-03-04 12:00:00 UTC',
    ]


def test_a_run_is_shown_with_the_runs_nested_in_it(tool_approval, store):
    waiting(store)
    below(store, asked())

    above, shown = (tool_approval('runs', 'show', each).out.splitlines() for each in ('order-17', 'lookup'))

    assert above[1:] == [
        'The run has been waiting for 1 answer since 2026-03-04 12:00:01 UTC.',
        'nested run lookup of shop/clerk: waiting',
    ]
    assert shown[:2] == [
        'run lookup of shop/clerk, started 2026-03-04 12:00:00 UTC',
        'nested in the run order-17',
    ]


def test_a_run_that_has_ended_is_shown_with_its_outcome(tool_approval, store):
    waiting(store, asked())
    store.resume('order-17', 1, at=NOON)
    store.finish('order-17', 1, 'done', '"paid\x1b"', at=NOON)

    lines = tool_approval('runs', 'show', 'order-17').out.splitlines()
    shown = tool_approval('runs', 'show', 'order-17', '--json').json

    assert lines[1:] == [
        'The run ended at 2026-03-04 12:00:00 UTC: done.',
        'asked for pay (call c1) at 2026-03-04 12:00:00 UTC: withdrawn',
        'outcome: "paid<U+001B>"',
    ]
    assert (shown['outcome'], [each['state'] for each in shown['requests']]) == ('"paid\x1b"', ['withdrawn'])
    assert (shown['why'], shown['executions']) == ('The run ended at 2026-03-04 12:00:00 UTC: done', [])


def test_a_run_is_cancelled_once(tool_approval, store):
    waiting(store, asked())
    executing(store)
    store.add_execution(replace(CALL, key='other'))

    finished = tool_approval('runs', 'cancel', 'order-17')
    again = tool_approval('runs', 'cancel', 'order-17')

    assert (finished.status, finished.out) == (0, 'cancelled order-17\n')
    assert finished.err == 'tool-approval: pay is still executing; the cancellation does not stop it\n'
    assert [row.state for row in store.requests_of('order-17')] == ['withdrawn']
    assert (again.status, again.err) == (2, 'tool-approval: the run has already ended: its status is cancelled\n')


@pytest.mark.parametrize('words', [['show', 'order-18'], ['cancel', 'order-18'], ['show', 'order\x1b']])
def test_unknown_run_is_reported(tool_approval, store, words):
    finished = tool_approval('runs', *words)

    assert (finished.status, finished.err) == (2, 'tool-approval: there is no such run in the inbox\n')


def test_other_inbox_can_be_named(tool_approval, work):
    waiting(store := DurableStore(SQLiteStore(work.parent / 'else' / 'inbox.sqlite')))

    for place in (work.parent / 'else/inbox.sqlite', f'sqlite:///{work.parent}/else/inbox.sqlite'):
        assert tool_approval('runs', 'list', '--store', str(place)).out.endswith('order-17\n')
    store.close()


def test_a_file_of_another_version_or_program_is_refused(tool_approval, work, store):
    store.close()
    database = sqlite3.connect(store.inbox_store.path)
    database.execute('PRAGMA user_version = 99')
    database.close()

    finished = tool_approval('runs', 'list')

    assert (finished.status, finished.out) == (2, '')
    assert 'upgrade tool_approval' in finished.err


@pytest.mark.parametrize('place', ['mysql://x/y', 'sqlite://x', 'postgresql://a b'])
def test_invalid_address_of_an_inbox_is_refused(tool_approval, place):
    pytest.importorskip('psycopg')

    assert tool_approval('runs', 'list', '--store', place).status == 2


@pytest.mark.parametrize(
    ('words', 'told', 'state'),
    [
        (['c1', '--result', '{"paid": [250, "€"]}'], 'done, with your result', 'done'),
        (['key', '--result', 'null'], 'done, with your result', 'done'),
        (['c1', '--again'], 'to be run again', 'approved'),
        (['c1', '--give-up'], 'given up', 'unknown'),
    ],
)
def test_an_unknown_call_is_settled_once(tool_approval, store, monkeypatch, words, told, state):
    monkeypatch.setattr('getpass.getuser', lambda: 'ada')
    waiting(store, asked_again(store))
    unknown(store)
    assert 'its key is key' in tool_approval('runs', 'show', 'order-17').out

    finished = tool_approval('runs', 'settle', 'order-17', *words)
    again = tool_approval('runs', 'settle', 'order-17', *words)

    assert (finished.status, finished.out, finished.err) == (0, f'settled pay: {told}\n', '')
    assert store.latest('key').state == state
    assert '"by":"ada"' in store.executions_of('order-17')[0].result
    assert [row.state for row in store.requests_of('order-17')] == ['withdrawn']
    assert (again.status, 'may be settled already' in again.err) == (2, True)
    assert 'its key' not in tool_approval('runs', 'show', 'order-17').out


def test_a_call_of_a_run_that_is_resumed_by_hand_is_settled(tool_approval, store):
    unknown(store)

    assert tool_approval('runs', 'settle', 'order-17', 'c1', '--give-up').status == 0


def test_key_selects_one_of_two_calls_with_the_same_id(tool_approval, store):
    unknown(store)
    unknown(store, replace(CALL, key='second'))

    refused = tool_approval('runs', 'settle', 'order-17', 'c1', '--again')
    assert refused.status == 2
    assert 'several unsettled calls have this id' in refused.err
    assert refused.err.endswith('; give one of these keys instead: key (pay), second (pay)\n')
    assert tool_approval('runs', 'settle', 'order-17', 'second', '--again').status == 0
    assert tool_approval('runs', 'settle', 'order-17', 'c1', '--again').status == 0


@pytest.mark.parametrize(
    'words',
    [
        [],
        ['--again', '--give-up'],
        ['--result', 'paid'],
        ['--result', 'NaN'],
        ['--result', '[' * 100_000],
        ['--result', '"\\ud800"'],
    ],
)
def test_settle_without_one_valid_outcome_is_refused(tool_approval, store, words):
    unknown(store)

    finished = tool_approval('runs', 'settle', 'order-17', 'c1', *words)

    assert (finished.status, finished.out, finished.err.count('\n')) == (2, '', 1)
    assert store.latest('key').state == 'unknown'
