"""What an idle worker costs the database: a company may have many, and most of them have nothing to do."""

import asyncio

import pytest
from pydantic_ai.models.test import TestModel
from pydantic_ai_deferred import Agent

pytest.importorskip('dbos', reason='the development environment has DBOS')
psycopg = pytest.importorskip('psycopg', reason='the development environment has psycopg')

from pydantic_ai.durable_exec.dbos import DBOSDurability
from tool_approval.integrations.pydantic_ai import Approvals
from tool_approval.integrations.pydantic_ai.durable import DurableAgent

from tests.postgres_server import url_of

pytestmark = [pytest.mark.slow, pytest.mark.untraced]

STARTED_S = 65
"""DBOS looks for schedules once a second in its first minute."""

MEASURED_S = 20

LIMIT = 5
"""Transactions a second."""


def test_an_idle_worker_makes_few_transactions(postgres, capsys):
    dsn = postgres.new_database()
    agent = Agent(TestModel(), name='idle', capabilities=[DBOSDurability(), Approvals()])

    def count(database):
        # The statistics of a session that does something are reported within a second.
        query = 'SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()'
        [(found,)] = database.execute(query).fetchall()
        return found

    async def main():
        async with DurableAgent(agent, store=url_of(dsn)).worker():
            await asyncio.sleep(STARTED_S)
            with psycopg.connect(dsn, autocommit=True) as database:
                before = count(database)
                await asyncio.sleep(MEASURED_S)
                return (count(database) - before - 1) / MEASURED_S

    made = asyncio.run(main())

    with capsys.disabled():
        print(f'an idle worker makes {made:.1f} transactions a second')
    assert 0 < made <= LIMIT
