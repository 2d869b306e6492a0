"""Where a call stands is the same before it runs, while it runs, and where it is blocked."""

from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai_deferred import Agent
from tool_approval.integrations.pydantic_ai import Approvals, ApprovalToolset
from tool_approval.testing import approve_all

from tests.loop.scripted import call, scripted
from tool_approval import ApprovalController

from .agents import Log


def delete(path: str) -> str:
    return f'deleted {path}'


def wipe(path: str) -> str:
    raise AssertionError


def lines_of(log: Log):
    return [
        (entry['event'], entry['tool_name'], [level['tool_name'] for level in entry['lineage']])
        for entry in log.entries
    ]


def helper(controller: ApprovalController) -> Agent:
    return Agent(
        scripted([call('delete', '1', path='a'), call('wipe', '2', path='a')], 'done'),
        name='helper',
        toolsets=[ApprovalToolset(FunctionToolset([delete, wipe]), controller)],
    )


def test_lineage_is_empty_in_the_outermost_run():
    log = Log()
    controller = ApprovalController(ui=approve_all(), audit=log, policy={'wipe': {'approval': 'blocked'}})

    helper(controller).run_sync('go', deferred_tool_handler=Approvals(controller, default='none'))

    assert lines_of(log) == [('blocked', 'wipe', []), ('decision', 'delete', []), ('outcome', 'delete', [])]


def test_lineage_of_a_nested_run_names_the_call_that_started_it():
    log = Log()
    controller = ApprovalController(ui=approve_all(), audit=log, policy={'wipe': {'approval': 'blocked'}})
    boss = Agent(scripted([call('delegate', '1')], 'done'), name='boss')

    @boss.tool_plain
    async def delegate() -> str:
        return (await helper(controller).run('help')).output

    boss.run_sync('go', deferred_tool_handler=Approvals(controller, default='none'))

    assert lines_of(log) == [
        ('blocked', 'wipe', ['delegate']),
        ('decision', 'delete', ['delegate']),
        ('outcome', 'delete', ['delegate']),
    ]
