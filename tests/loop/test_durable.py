"""Durable engines: a run in their workflows takes no capabilities but its agent's, and asks the handler too."""

import asyncio
from pathlib import Path
from typing import Any

import pydantic_ai
import pytest
from pydantic_ai import ToolDenied
from pydantic_ai.capabilities import AbstractCapability, CombinedCapability, WrapperCapability
from pydantic_ai.exceptions import UserError
from pydantic_ai_deferred import Agent, HandlerAgent

from .scripted import Recorder, call, returns, scripted

pytestmark = pytest.mark.layer_only


class Engine(AbstractCapability[Any]):
    """A durable engine in whose workflow code always runs."""

    in_durable_context = True

    def _validate_runtime_capabilities(self, ctx: Any, capabilities: Any) -> None:
        if capabilities:
            raise UserError('a workflow takes no capabilities of a run')


def nothing(ctx: Any) -> None:
    """A function that makes no capability."""


def both_agents(durability: Any, deleted: list[str], handler: Recorder) -> tuple[Any, Any]:
    """Our agent, which has the handler, and a stock one, both under a durable engine."""
    ours = Agent(
        scripted([call('delete', '1')], 'done'), name='ours', capabilities=[durability()], deferred_tool_handler=handler
    )
    stock = pydantic_ai.Agent(scripted([call('delete', '1')], 'done'), name='stock', capabilities=[durability()])
    for each in (ours, stock):
        each.tool_plain(name='delete', requires_approval=True)(lambda: deleted.append('a'))
    return ours, stock


@pytest.mark.parametrize(
    'capabilities',
    [[Engine()], [nothing, Engine()], [CombinedCapability([Engine()])], [WrapperCapability(Engine())]],
    ids=['alone', 'beside a function', 'in a group', 'wrapped'],
)
def test_the_handler_is_asked_in_a_workflow_by_a_capability_the_agent_was_built_with(capabilities: Any):
    constructor, run = Recorder(), Recorder()
    agent = Agent(scripted([call('delete', '1')], 'done'), deferred_tool_handler=constructor, capabilities=capabilities)
    agent.tool_plain(name='delete', requires_approval=True)(lambda: 'deleted')

    first = agent.run_sync('go')
    agent.run_sync('go', deferred_tool_handler=run)

    assert returns(first.all_messages()) == {'1': ('deleted', 'success')}
    assert (constructor.ids, run.ids) == ([['1']], [['1']])


def test_under_dbos_our_agent_takes_a_handler_for_a_run_and_a_stock_agent_takes_none(tmp_path: Path):
    dbos = pytest.importorskip('dbos', reason='the development environment has DBOS')
    from pydantic_ai.durable_exec.dbos import DBOSDurability

    constructor, run, override, around = (Recorder() for _ in range(4))
    deleted: list[str] = []
    agent, stock = both_agents(DBOSDurability, deleted, constructor)

    @dbos.DBOS.workflow()
    async def each_way() -> list[str]:
        await agent.run('go')
        await agent.run('go', deferred_tool_handler=run)
        with agent.override(deferred_tool_handler=override):
            await agent.run('go')
        with pytest.raises(UserError, match='added per-run'):
            await HandlerAgent(stock, deferred_tool_handler=around).run('go')
        return (await HandlerAgent(agent, deferred_tool_handler=around).run('go')).output

    async def main() -> str:
        url = f'sqlite:///{tmp_path}/dbos.sqlite'
        dbos.DBOS(
            config=dbos.DBOSConfig(name='test', system_database_url=url, run_admin_server=False, log_level='CRITICAL')
        )
        dbos.DBOS.launch()
        try:
            return await each_way()
        finally:
            dbos.DBOS.destroy()

    assert asyncio.run(main()) == 'done'
    assert [len(each.asked) for each in (constructor, run, override, around)] == [1, 1, 1, 1]
    assert deleted == ['a'] * 4


@pytest.mark.filterwarnings('ignore::ResourceWarning', 'ignore::pytest.PytestUnraisableExceptionWarning')
def test_under_prefect_our_agent_takes_a_handler_for_a_run_and_a_stock_agent_is_wrapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv('PREFECT_HOME', str(tmp_path))
    monkeypatch.setenv('PREFECT_SERVER_ANALYTICS_ENABLED', 'false')
    prefect = pytest.importorskip('prefect', reason='prefect: not in the development environment')
    testing = pytest.importorskip('prefect.testing.utilities')
    from pydantic_ai.durable_exec.prefect import PrefectDurability

    deleted: list[str] = []
    constructor, run, override, around = (Recorder() for _ in range(4))
    denying = Recorder(**{'1': ToolDenied('not this one')})
    agent, stock = both_agents(PrefectDurability, deleted, constructor)

    @prefect.flow(validate_parameters=False)
    async def deleting(an_agent: Any, keywords: Any) -> str:
        return (await an_agent.run('go', **keywords)).output

    async def main() -> None:
        # A flow each: within one, the engine's cache gives an equal call the result of the first.
        await deleting(agent, {})
        await deleting(agent, {'deferred_tool_handler': run})
        with agent.override(deferred_tool_handler=override):
            await deleting(agent, {})
        await deleting(HandlerAgent(stock, deferred_tool_handler=around), {})
        await deleting(agent, {'deferred_tool_handler': denying})

    with testing.prefect_test_harness():
        asyncio.run(main())

    assert [len(each.asked) for each in (constructor, run, override, around, denying)] == [1, 1, 1, 1, 1]
    assert deleted == ['a', 'a', 'a', 'a']
