"""Durable engines: a handler is asked in their workflows, whoever gave it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import ToolDenied
from pydantic_ai_deferred import Agent

from .scripted import Recorder, call, scripted


def make(durability: Any, deleted: list[str], handler: Recorder) -> Any:
    """An agent with a handler, under a durable engine."""
    agent = Agent(
        scripted([call('delete', '1')], 'done'), name='ours', capabilities=[durability()], deferred_tool_handler=handler
    )
    agent.tool_plain(name='delete', requires_approval=True)(lambda: deleted.append('a'))
    return agent


def test_under_dbos_each_handler_is_asked(tmp_path: Path):
    dbos = pytest.importorskip('dbos', reason='the development environment has DBOS')
    from pydantic_ai.durable_exec.dbos import DBOSDurability

    constructor, run, override = Recorder(), Recorder(), Recorder()
    deleted: list[str] = []
    agent = make(DBOSDurability, deleted, constructor)

    @dbos.DBOS.workflow()
    async def workflow() -> str:
        await agent.run('go')
        with agent.override(deferred_tool_handler=override):
            await agent.run('go')
        return (await agent.run('go', deferred_tool_handler=run)).output

    async def main() -> str:
        url = f'sqlite:///{tmp_path}/dbos.sqlite'
        dbos.DBOS(
            config=dbos.DBOSConfig(name='test', system_database_url=url, run_admin_server=False, log_level='CRITICAL')
        )
        dbos.DBOS.launch()
        try:
            return await workflow()
        finally:
            dbos.DBOS.destroy()

    assert asyncio.run(main()) == 'done'
    assert [len(each.asked) for each in (constructor, run, override)] == [1, 1, 1]
    assert deleted == ['a'] * 3


@pytest.mark.parametrize('approved', [True, False])
@pytest.mark.filterwarnings('ignore::ResourceWarning', 'ignore::pytest.PytestUnraisableExceptionWarning')
def test_under_prefect_the_agents_handler_is_asked(approved: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv('PREFECT_HOME', str(tmp_path))
    monkeypatch.setenv('PREFECT_SERVER_ANALYTICS_ENABLED', 'false')
    prefect = pytest.importorskip('prefect', reason='prefect: not in the development environment')
    testing = pytest.importorskip('prefect.testing.utilities')
    from pydantic_ai.durable_exec.prefect import PrefectDurability

    deleted: list[str] = []
    handler = Recorder(**{'1': True if approved else ToolDenied('not this one')})
    agent = make(PrefectDurability, deleted, handler)

    @prefect.flow(validate_parameters=False)
    async def deleting() -> str:
        return (await agent.run('go')).output

    with testing.prefect_test_harness():
        asyncio.run(deleting())

    assert len(handler.asked) == 1
    assert deleted == (['a'] if approved else [])
