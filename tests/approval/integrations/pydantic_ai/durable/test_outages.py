"""PostgreSQL is away for five seconds in the middle of a durable run: nothing is lost, and nothing runs twice."""

import asyncio
import sqlite3
import threading
import time
from contextlib import contextmanager
from functools import partial

import pytest
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai_deferred import Agent
from tool_approval.durable import open_store
from tool_approval.inbox import Inbox
from tool_approval.inbox.errors import InboxUnavailable
from tool_approval.inbox.stores.sqlite_file import SQLiteFile

from tests.approval.inbox.parts import answer
from tests.loop.scripted import call

pytest.importorskip('dbos', reason='the development environment has DBOS')
pytest.importorskip('psycopg', reason='the development environment has psycopg')

from pydantic_ai.durable_exec.dbos import DBOSDurability
from sqlalchemy import Engine, event
from tool_approval.integrations.pydantic_ai import Approvals
from tool_approval.integrations.pydantic_ai.durable import DurableAgent

from benchmarks.durable.faults import read_only

pytestmark = [pytest.mark.thorough, pytest.mark.untraced]


@contextmanager
def disk_full():
    """What SQLite says to every writer while the disk is full."""

    def execute(cursor, statement, *_):
        if not statement.lstrip().upper().startswith(('SELECT', 'PRAGMA', 'BEGIN', 'ROLLBACK')):
            error = sqlite3.OperationalError('database or disk is full')
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error

    def refused(self):
        raise InboxUnavailable(self._place, 'database or disk is full')

    event.listen(Engine, 'do_execute', execute)
    changing = SQLiteFile.changing
    SQLiteFile.changing = refused
    try:
        yield
    finally:
        SQLiteFile.changing = changing
        event.remove(Engine, 'do_execute', execute)


@pytest.mark.parametrize('kind', ['sqlite', 'postgres'])
@pytest.mark.parametrize('point', ['model 1', 'tool', 'model 2'])
def test_a_fault_of_the_store_parks_runs_and_fails_none(point, kind, url, request):
    fault, paid, faults = disk_full, [], []
    if kind == 'postgres':
        url = request.getfixturevalue('postgres_url')
        server = request.getfixturevalue('postgres')
        fault = partial(read_only, server.dsn)

    def away(here):
        if here == point and not faults:
            entered = fault()
            entered.__enter__()
            faults.append(here)
            threading.Timer(3, entered.__exit__, (None, None, None)).start()

    def respond(messages, info):
        number = 1 + sum(isinstance(message, ModelResponse) for message in messages)
        away(f'model {number}')
        return ModelResponse(parts=[call('pay', '1', amount=10)] if number == 1 else [TextPart('done')])

    agent = Agent(FunctionModel(respond), name='bot', capabilities=[DBOSDurability(), Approvals()])

    @agent.tool_plain
    def pay(amount: int) -> str:
        away('tool')
        paid.append(amount)
        return f'paid {amount}'

    durable = DurableAgent(agent, store=url)

    async def main():
        with Inbox(open_store(url).inbox_store) as inbox:
            async with asyncio.timeout(60), durable.worker(polling=0.05, lease=30):
                run = await durable.start('go', run_id='run')
                while not (entries := await patiently(inbox.open)):
                    await asyncio.sleep(0.1)
                await patiently(lambda: answer(inbox, entries[0]))
                return await run.result()

    assert asyncio.run(main()) == 'done'
    assert (paid, faults) == ([10], [point])


async def patiently(action):
    """Do it again until the database can be reached, as an approver would."""
    while True:
        try:
            return await action()
        except InboxUnavailable:
            await asyncio.sleep(0.2)


@pytest.mark.parametrize('point', ['model 1', 'waiting', 'tool before', 'tool after', 'model 2'])
def test_a_database_that_is_away_for_a_while_loses_nothing(point, postgres, postgres_url):
    paid = []

    def away(here):
        if here == point:
            postgres.stop()
            time.sleep(5)
            postgres.start()

    def respond(messages, info):
        number = 1 + sum(isinstance(message, ModelResponse) for message in messages)
        away(f'model {number}')
        return ModelResponse(parts=[call('pay', '1', amount=10)] if number == 1 else [TextPart('done')])

    agent = Agent(FunctionModel(respond), name='away', capabilities=[DBOSDurability(), Approvals()])

    @agent.tool_plain
    def pay(amount: int) -> str:
        away('tool before')
        paid.append(amount)
        away('tool after')
        return f'paid {amount}'

    durable = DurableAgent(agent, store=postgres_url)

    async def main():
        with Inbox(open_store(postgres_url).inbox_store) as inbox:
            async with asyncio.timeout(100), durable.worker(polling=0.05, lease=3):
                run = await durable.start('go', run_id='run')
                while (await patiently(run.status)).status != 'waiting':
                    await asyncio.sleep(0.1)
                await asyncio.to_thread(away, 'waiting')
                [entry] = await patiently(inbox.open)
                await patiently(lambda: answer(inbox, entry))
                return await run.result()

    assert asyncio.run(main()) == 'done'
    store = open_store(postgres_url)
    assert [each.state for each in store.executions_of('run')] == ['done']
    store.close()
    assert paid == [10]
