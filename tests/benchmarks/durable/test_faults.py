"""The schedule of faults finds each thing that must not happen, and finds nothing where nothing happened."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import pytest
from tool_approval.durable import ExecutionRow, RunRow

from tests.approval.durable.parts import asked
from tests.approval.parts import NOON
from tests.postgres_server import postgres, url_of

pytest.importorskip('dbos', reason='the development environment has DBOS')
pytest.importorskip('psycopg', reason='the development environment has psycopg')

from benchmarks.durable.faults import OURS, Found, Told, disturb, locked, problems

__all__ = ('postgres',)

LATER = NOON + timedelta(seconds=1)
RUN = RunRow(id='run', agent='payments', state='{}', created_at=NOON, changed_at=NOON, status='done', outcome='"paid"')
REQUEST = replace(asked(call='1'), owner='run', state='approved', settled_at=NOON)
CALL = ExecutionRow(
    key='key',
    attempt=1,
    run_id='run',
    tool_name='pay',
    tool_call_id='1',
    idempotency_key='once',
    changed_at=NOON,
    state='done',
    started_at=NOON,
)


def answered(row):
    """The request, with the answer that belongs to its state."""
    answer = {
        'decision': {'approved': row.state == 'approved', 'decided_by': ['ada']},
        'by': {'id': 'ada'},
        'digest': 'd' * 64,
    }
    return row if row.state not in ('approved', 'denied') else replace(row, answer=json.dumps(answer))


def found(*, run=RUN, request=REQUEST, execution=CALL, effects=1, left=0):
    return Found(
        runs=[run],
        requests=[answered(request)],
        executions=[execution],
        effects={('run', '1'): effects} if effects else {},
        left=left,
    )


OPEN = replace(REQUEST, state='pending', settled_at=None)
DENIED = replace(REQUEST, state='denied')
UNKNOWN = replace(CALL, state='unknown')
CANCELLED = replace(RUN, status='cancelled')


@pytest.mark.parametrize(
    ('given', 'problem'),
    [
        ({'run': replace(RUN, status='waiting')}, 'has not ended: waiting'),
        ({'run': replace(RUN, status='failed')}, 'has failed'),
        ({'effects': 2}, 'had 2 effects, but 1 approvals'),
        ({'request': DENIED}, 'had 1 effects, but 0 approvals'),
        ({'request': OPEN, 'effects': 0, 'execution': UNKNOWN}, 'is still open'),
        ({'request': replace(REQUEST, content='{')}, 'cannot be read'),
        ({'effects': 0}, 'is done, but had no effect'),
        ({'run': CANCELLED, 'execution': replace(UNKNOWN, started_at=LATER)}, 'began after the run was cancelled'),
        ({'left': 3}, '3 rows are left'),
    ],
)
def test_each_problem_is_found(given, problem):
    assert any(problem in each for each in problems(Told(), found(**given)))


def test_an_approver_who_read_something_else_is_found():
    told = Told(answers={REQUEST.id: 'denied'})

    assert problems(told, found()) == ['an approver of run run read denied, but approved is stored']


def test_without_a_problem_none_is_found():
    told = Told(answers={REQUEST.id: 'approved'})

    assert problems(told, found()) == []
    assert problems(Told(), found(run=CANCELLED, execution=UNKNOWN)) == []
    # A call that nobody was asked about may have its effect.
    assert problems(Told(), replace(found(effects=0, execution=UNKNOWN), effects={('run', 'free'): 1})) == []


def test_a_file_that_a_frozen_worker_has_locked_does_not_end_the_schedule(tmp_path):
    path = tmp_path / 'inbox.sqlite'

    with closing(sqlite3.connect(path, isolation_level=None)) as worker:
        worker.execute('BEGIN IMMEDIATE')
        with locked(str(path)):
            assert worker.in_transaction
        worker.execute('ROLLBACK')
        with locked(str(path)), pytest.raises(sqlite3.OperationalError, match='locked'):
            worker.execute('PRAGMA busy_timeout = 0')
            worker.execute('BEGIN IMMEDIATE')


@pytest.mark.thorough
@pytest.mark.untraced
def test_a_short_schedule_finds_nothing(tmp_path, capsys):
    place = str(tmp_path / 'state' / 'inbox.sqlite')

    count = disturb('SQLite', place, f'sqlite:///{place}', OURS, 4, 1, tmp_path)

    assert count == 0, capsys.readouterr().err
    assert '4 runs' in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(8))
@pytest.mark.parametrize('store', ['SQLite', 'PostgreSQL'])
def test_a_long_schedule_finds_nothing(store, seed, tmp_path, capsys, request):
    """All together 800 runs, which start more than 1,400 nested runs."""
    place = str(tmp_path / 'state' / 'inbox.sqlite')
    url = f'sqlite:///{place}'
    if store == 'PostgreSQL':
        place = request.getfixturevalue('postgres').new_database()
        url = url_of(place)

    count = disturb(store, place, url, OURS, 50, seed, tmp_path)

    assert count == 0, capsys.readouterr().err
