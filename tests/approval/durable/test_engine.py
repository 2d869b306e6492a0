"""DBOS as the engine: what of it is not public, and where its tables are."""

import asyncio
import importlib
import inspect
import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from tool_approval import ApprovalError, MissingExtraError

pytest.importorskip('dbos', reason='the development environment has DBOS')

from dbos import DBOS, DBOSConfig, _sys_db
from dbos._dbos import DBOS as DBOSClass
from sqlalchemy.exc import DBAPIError
from tool_approval.durable import engine
from tool_approval.durable.engine import DBOSEngine, engine_url

from .parts import eventually


async def nothing(run_id, segment):
    """A segment that does nothing."""


def test_private_function_of_dbos_has_the_known_signature():
    parameters = inspect.signature(DBOSClass._recover_pending_workflows).parameters

    assert list(parameters) == ['executor_ids']
    assert parameters['executor_ids'].default == ['local']


def failed(cause):
    return DBAPIError('INSERT', {}, cause)


def of_sqlite(code):
    error = sqlite3.OperationalError('no')
    error.sqlite_errorcode = code
    return error


def test_faults_that_may_pass_are_told_from_those_that_do_not():
    psycopg = pytest.importorskip('psycopg', reason='the development environment has psycopg')
    errors = psycopg.errors
    passing = [
        *map(of_sqlite, (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_BUSY)),
        errors.ReadOnlySqlTransaction(),
        errors.IoError(),
        errors.DiskFull(),
        errors.AdminShutdown(),
    ]
    lasting = [of_sqlite(sqlite3.SQLITE_CORRUPT), errors.UndefinedTable(), errors.QueryCanceled(), ValueError('no')]

    assert _sys_db.retriable_postgres_exception is engine.may_pass
    assert [engine.may_pass(failed(each)) for each in (*passing, *lasting)] == [True] * 8 + [False] * 4
    assert engine.may_pass(ValueError('of the agent')) is False


@pytest.mark.parametrize('kind', ['sqlite', 'postgres'])
def test_segment_of_a_dead_worker_is_run_again_once(kind, tmp_path, request):
    url = engine_url(str(tmp_path / 'state' / 'inbox.sqlite'))
    if kind == 'postgres':
        url = engine_url(request.getfixturevalue('postgres_url'))
    ran = []
    never = asyncio.Event()

    async def hang(run_id, segment):
        ran.append('first')
        await never.wait()

    async def end(run_id, segment):
        ran.append('second')

    first = DBOSEngine(url, 'bot', hang, worker='one', polling_s=0.05)
    first.start()
    first.begin([('run', 0)])
    first.begin([('run', 0)])
    eventually(lambda: ran == ['first'])
    # As a crash: nothing is written about the segment.
    DBOS.destroy()

    second = DBOSEngine(url, 'bot', end, worker='two', polling_s=0.05)
    second.start()
    try:
        second.begin([('run', 0)])
        second.take_up('one')
        second.take_up('one')
        eventually(lambda: 'second' in ran)
        second.take_up('two')
        assert not second.is_broken
    finally:
        second.close()
    assert ran == ['first', 'second']


def test_a_segment_that_cannot_be_started_is_reported_and_holds_up_no_other(tmp_path, monkeypatch):
    ran = []

    async def run(run_id, segment):
        ran.append(run_id)

    made = DBOSEngine(engine_url(str(tmp_path / 'state' / 'inbox.sqlite')), 'bot', run, worker='one', polling_s=0.05)
    start = DBOS.start_workflow_async

    def failing(function, agent, run_id, segment):
        if run_id == 'bad':
            raise OSError('no')
        return start(function, agent, run_id, segment)

    made.start()
    try:
        monkeypatch.setattr(DBOS, 'start_workflow_async', failing)
        with pytest.raises(OSError, match='no'):
            made.begin([('bad', 0), ('good', 0)])
        eventually(lambda: ran == ['good'])
    finally:
        made.close()


def test_segment_of_a_dead_worker_waits_for_a_worker_of_its_agent(tmp_path):
    url = engine_url(str(tmp_path / 'state' / 'inbox.sqlite'))
    ran = []

    async def hang(run_id, segment):
        ran.append('first')
        await asyncio.Event().wait()

    def segment_of(agent):
        async def run(run_id, segment):
            ran.append((agent, run_id))

        return run

    first = DBOSEngine(url, 'mine', hang, worker='one', polling_s=0.05)
    first.start()
    first.begin([('run', 0)])
    eventually(lambda: ran == ['first'])
    DBOS.destroy()

    other = DBOSEngine(url, 'other', segment_of('other'), worker='two', polling_s=0.05)
    other.start()
    try:
        other.take_up('one')
        other.begin([('another', 0)])
        eventually(lambda: ran[1:] == [('other', 'another')])
        eventually(lambda: list(other.workers()) == [])
        assert len(ran) == 2
    finally:
        other.close()

    again = DBOSEngine(url, 'mine', segment_of('mine'), worker='three', polling_s=0.05)
    again.start()
    try:
        assert list(again.workers()) == ['one']
        again.take_up('one')
        eventually(lambda: ran[2:] == [('mine', 'run')])
    finally:
        again.close()


@pytest.mark.parametrize('kind', ['sqlite', 'postgres'])
def test_records_of_segments_that_ended_are_forgotten(kind, tmp_path, request, monkeypatch):
    monkeypatch.setattr(engine, '_PRUNED_AT_ONCE', 2)
    url = engine_url(str(tmp_path / 'state' / 'inbox.sqlite'))
    if kind == 'postgres':
        url = engine_url(request.getfixturevalue('postgres_url'))
    never = asyncio.Event()

    async def run(run_id, segment):
        if run_id == 'runs':
            await never.wait()

    made = DBOSEngine(url, 'bot', run, worker='one', polling_s=0.05)
    made.start()
    try:
        for run_id in ('a', 'b', 'c', 'runs'):
            made.begin([(run_id, 0)])
        eventually(lambda: len(DBOS.list_workflows(status='SUCCESS')) == 3)

        made.prune(datetime.now(UTC) - timedelta(minutes=1))
        kept = len(DBOS.list_workflows())
        made.prune(datetime.now(UTC) + timedelta(minutes=1))
        [left] = DBOS.list_workflows()
    finally:
        DBOS.destroy()
    assert kept == 4
    assert left.workflow_id == 'runs:0'


def test_segments_that_will_not_be_run_again_are_reported(tmp_path):
    async def fail(run_id, segment):
        raise ValueError

    made = DBOSEngine(
        engine_url(str(tmp_path / 'state' / 'inbox.sqlite')), 'bot', fail, worker='one', polling_s=0.05, store='s:'
    )
    made.start()
    try:
        made.begin([('a:b', 7)])
        eventually(lambda: made.given_up() == {('a:b', 7): 'ERROR'})
        made.begin([('a:b', 7)])
    finally:
        made.close()


def test_a_segment_of_another_store_is_not_run(tmp_path):
    url = engine_url(str(tmp_path / 'state' / 'inbox.sqlite'))
    ran, never = [], asyncio.Event()

    async def hang(run_id, segment):
        ran.append(run_id)
        await never.wait()

    first = DBOSEngine(url, 'bot', hang, worker='one', polling_s=0.05, store='removed:')
    first.start()
    first.begin([('run', 0)])
    eventually(lambda: ran == ['run'])
    assert first.workers() == {'one'}
    DBOS.destroy()

    second = DBOSEngine(url, 'bot', hang, worker='two', polling_s=0.05, store='new:')
    second.start()
    try:
        second.take_up('one')
        eventually(lambda: len(DBOS.list_workflows(status='SUCCESS')) == 1)
    finally:
        second.close()
    assert ran == ['run']


def test_what_runs_apart_is_not_recorded_and_neither_are_its_own_steps(tmp_path):
    counted, ended = [], []

    async def step():
        counted.append(1)
        return len(counted)

    async def run(run_id, segment):
        inside = await made.apart(lambda: made.record('inside', step))
        after = await made.record('after', step)
        ended.append((inside, after))
        if len(ended) == 1:
            await asyncio.Event().wait()

    made = DBOSEngine(engine_url(str(tmp_path / 'state' / 'inbox.sqlite')), 'bot', run, worker='one', polling_s=0.05)
    made.start()
    made.begin([('run', 0)])
    eventually(lambda: ended == [(1, 2)])
    DBOS.destroy()

    again = DBOSEngine(engine_url(str(tmp_path / 'state' / 'inbox.sqlite')), 'bot', run, worker='two', polling_s=0.05)
    again.start()
    try:
        again.take_up('one')
        eventually(lambda: len(ended) == 2)
        steps = DBOS.list_workflow_steps('run:0')
    finally:
        again.close()
    assert ended[1] == (3, 2), 'only the step after it was recorded'
    assert [each['function_name'] for each in steps] == ['after']


EXITING = """
import asyncio, sys, time
from tool_approval.durable.engine import DBOSEngine, engine_url

async def run(run_id, segment):
    async def leave():
        sys.exit()

    await asyncio.ensure_future(leave())

made = DBOSEngine(engine_url(sys.argv[1]), 'bot', run, worker='one', polling_s=0.05)
made.start()
assert not made.is_broken
made.begin([('run', 0)])
ends_at = time.monotonic() + 20
while not made.is_broken and time.monotonic() < ends_at:
    time.sleep(0.02)
print('broken' if made.is_broken else 'whole', flush=True)
"""


def test_an_exit_in_a_task_breaks_the_engine_which_says_so(tmp_path):
    # In a process of its own: the loop that has ended leaves tasks behind.
    ended = subprocess.run(
        [sys.executable, '-c', EXITING, f'{tmp_path}/state/inbox.sqlite'],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        timeout=60,
    )

    assert ended.stdout.strip() == 'broken'


def test_a_process_that_runs_dbos_for_something_else_is_no_worker(tmp_path):
    DBOS(config=DBOSConfig(name='other', system_database_url=f'sqlite:///{tmp_path}/other.sqlite'))
    try:
        with pytest.raises(ApprovalError, match='DBOS already runs in this process'):
            DBOSEngine(f'sqlite:///{tmp_path}/dbos.sqlite', 'bot', nothing, worker='one', polling_s=1).start()
    finally:
        DBOS.destroy()


def test_the_engines_file_is_beside_the_store_and_the_users_alone(tmp_path):
    url = engine_url(f'sqlite:///{tmp_path}/state/inbox.sqlite')

    path = tmp_path / 'state' / 'inbox.dbos.sqlite'
    assert url == f'sqlite:///{path}'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with closing(sqlite3.connect(path)) as database:
        assert database.execute('PRAGMA journal_mode').fetchone() == ('wal',)
    os.chmod(path, 0o644)
    with pytest.raises(PermissionError, match='others can access the file'):
        engine_url(f'{tmp_path}/state/inbox.sqlite')


def test_the_engines_tables_are_in_the_stores_database():
    assert engine_url('postgres://user@host/base') == 'postgresql://user@host/base'


def test_without_dbos_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, 'dbos', None)
    monkeypatch.delitem(sys.modules, 'tool_approval.durable.engine')

    with pytest.raises(MissingExtraError, match=r'tool_approval\[durable\]'):
        importlib.import_module('tool_approval.durable.engine')
