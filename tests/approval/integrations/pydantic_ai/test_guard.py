"""Functions with a check of their own among an agent's ordinary tools: asked about, or refused."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pydantic_ai
import pytest
from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.exceptions import UserError
from pydantic_ai.toolsets import FunctionToolset, WrapperToolset
from pydantic_ai_deferred import Agent
from tool_approval.compat import blocking_approval as compat
from tool_approval.core.calls import denied_because
from tool_approval.integrations.pydantic_ai import (
    Approvals,
    ApprovalToolset,
    run_with_approval,
    run_with_approval_sync,
)
from tool_approval.testing import RecordingUI

from tests.loop.scripted import call, returns, scripted
from tool_approval import (
    ApprovalContext,
    ApprovalController,
    ApprovalRequest,
    ApprovalResult,
    execute_tool,
    requires_approval,
)

from .agents import Log, told_in

CALL = [call('delete', '1', path='a')]


def checked(kind: str, ran: list[str]) -> Any:
    """A function that asks by itself, in one of the ways there are."""

    def delete(path: str) -> str:
        ran.append(path)
        return f'deleted {path}'

    function: Any = delete
    match kind:
        case 'decorated':
            return requires_approval()(function)
        case 'check_approval':
            function.check_approval = lambda ctx: ApprovalRequest(tool_name=ctx.tool_name, args=ctx.args)
        case 'needs_approval':
            function.needs_approval = lambda name, args: True
        case _:
            function._requires_approval = True
    return function


KINDS = ('decorated', 'check_approval', 'needs_approval', 'marked')


def with_tools(function: Any, **options: Any) -> Agent[Any, Any]:
    return Agent(scripted(CALL, 'done'), tools=[function], **options)


def with_decorator(function: Any, **options: Any) -> Agent[Any, Any]:
    agent: Agent[Any, Any] = Agent(scripted(CALL, 'done'), **options)
    agent.tool_plain(function)
    return agent


def with_toolset(function: Any, **options: Any) -> Agent[Any, Any]:
    return Agent(scripted(CALL, 'done'), toolsets=[FunctionToolset[Any]([function])], **options)


def with_renamed_toolset(function: Any, **options: Any) -> Agent[Any, Any]:
    toolset = FunctionToolset[Any]([function]).prefixed('x')
    return Agent(scripted([call('x_delete', '1', path='a')], 'done'), toolsets=[toolset], **options)


PLACES = (with_tools, with_decorator, with_toolset, with_renamed_toolset)


def answer_of(result: Any) -> Any:
    return returns(result.all_messages())['1']


APPROVED = pytest.mark.parametrize('is_approved', [True, False], ids=['approved', 'denied'])


@APPROVED
@pytest.mark.parametrize('place', PLACES)
@pytest.mark.parametrize('kind', KINDS)
def test_the_handler_is_asked_before_it_runs(kind: str, place: Callable[..., Agent[Any, Any]], is_approved: bool):
    ran: list[str] = []
    ui, log = RecordingUI(is_approved or 'Keep it.'), Log()
    handler = Approvals(ApprovalController(ui=ui, audit=log), default='none')

    result = place(checked(kind, ran), deferred_tool_handler=handler).run_sync('go')

    assert [dict(request.args) for request in ui.requests] == [{'path': 'a'}]
    assert ran == (['a'] if is_approved else [])
    assert answer_of(result) == (('deleted a', 'success') if is_approved else (denied_because('Keep it.'), 'denied'))
    assert log.told == [('decision', is_approved, '1'), *([('outcome', 'executed', '1')] if is_approved else [])]


async def run(function: Any, controller: ApprovalController) -> None:
    await with_tools(function).run('go', deferred_tool_handler=Approvals(controller, default='none'))


async def run_stream(function: Any, controller: ApprovalController) -> None:
    agent = with_tools(function, deferred_tool_handler=Approvals(controller, default='none'))
    async with agent.run_stream('go') as result:
        assert await result.get_output() == 'done'


async def run_iter(function: Any, controller: ApprovalController) -> None:
    async with with_tools(function).iter('go', deferred_tool_handler=Approvals(controller, default='none')) as running:
        async for _ in running:
            pass


def stock(*tools: Any, **options: Any) -> Any:
    return pydantic_ai.Agent(scripted(CALL, 'done'), tools=tools, **options)


async def run_with_the_capability(function: Any, controller: ApprovalController) -> None:
    await stock(function).run('go', capabilities=[Approvals(controller, default='none')])


async def run_on_the_hosts_hook(function: Any, controller: ApprovalController) -> None:
    approvals = Approvals(controller, default='none')
    toolset = approvals.guard(FunctionToolset[Any]([function]))
    await stock(toolsets=[toolset], capabilities=[HandleDeferredToolCalls(approvals)]).run('go')


async def stop_and_resume(function: Any, controller: ApprovalController) -> None:
    await run_with_approval(stock(function), 'go', controller=controller)


@APPROVED
@pytest.mark.parametrize(
    'way', [run, run_stream, run_iter, run_with_the_capability, run_on_the_hosts_hook, stop_and_resume]
)
def test_a_function_asks_in_every_way_to_run_an_agent(way: Any, is_approved: bool):
    ran: list[str] = []
    ui = RecordingUI(is_approved)

    asyncio.run(way(checked('decorated', ran), ApprovalController(ui=ui)))

    assert (len(ui.requests), ran) == (1, ['a'] if is_approved else [])


@APPROVED
def test_a_nested_run_that_inherits_the_handler(is_approved: bool):
    ran: list[str] = []
    ui = RecordingUI(is_approved)
    helper = with_tools(checked('decorated', ran))
    boss = Agent(scripted([call('delegate', '1')], 'done'))

    @boss.tool_plain
    async def delegate() -> str:
        return (await helper.run('help')).output

    boss.run_sync('go', deferred_tool_handler=Approvals(ApprovalController(ui=ui), default='none'))

    [request] = ui.requests
    assert [level.tool_name for level in request.lineage] == ['delegate']
    assert ran == (['a'] if is_approved else [])


def test_a_function_that_takes_the_context_is_asked_about_too():
    ran: list[str] = []
    agent = Agent(scripted(CALL, 'done'))

    @agent.tool
    @requires_approval(description='Delete a file')
    async def delete(ctx: RunContext[None], path: str) -> None:
        ran.append(path)

    ui = RecordingUI('no')
    agent.run_sync('go', deferred_tool_handler=Approvals(ApprovalController(ui=ui), default='none'))

    assert ([request.description for request in ui.requests], ran) == (['Delete a file'], [])


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('agent', ['stock', 'ours'])
def test_run_without_a_handler_raises_an_error_that_names_the_remedy(kind: str, agent: str):
    ran: list[str] = []
    tools = [checked(kind, ran)]
    made: Any = (pydantic_ai.Agent if agent == 'stock' else Agent)(scripted(CALL, 'done'), tools=tools)

    with pytest.raises(UserError, match=r'add `Approvals\(...\)` to the `capabilities` of the agent'):
        made.run_sync('go')

    assert ran == []


def test_function_runs_if_its_check_or_the_policy_needs_no_approval():
    ran: list[str] = []
    free = checked('needs_approval', ran)
    free.needs_approval = lambda name, args: False
    silent = checked('needs_approval', ran)
    silent.needs_approval = lambda name, args: None
    controller = ApprovalController(policy={'delete': {'approval': 'none'}})

    for function in (free, silent):
        stock(function, capabilities=[Approvals(default='none')]).run_sync('go')
    with_tools(checked('decorated', ran)).run_sync('go', deferred_tool_handler=Approvals(controller, default='none'))

    assert ran == ['a'] * 3


def _approving(ctx: Any, requests: DeferredToolRequests) -> DeferredToolResults:
    return DeferredToolResults(approvals={each.tool_call_id: True for each in requests.approvals})


def blocking(ran: list[str]) -> Any:
    function = checked('needs_approval', ran)
    function.needs_approval = lambda name, args: ApprovalResult.blocked('Not here.')
    return function


@pytest.mark.parametrize('is_declared', [True, False])
@pytest.mark.parametrize('others', [[], [HandleDeferredToolCalls(_approving)]], ids=['alone', 'others approve'])
def test_function_blocked_by_its_check_never_runs(others: Any, is_declared: bool):
    ran: list[str] = []
    agent = Agent(scripted(CALL, 'done'), capabilities=[*others, Approvals(mode='approve_all')])
    agent.tool_plain(requires_approval=is_declared)(blocking(ran))

    result = agent.run_sync('go')

    assert (answer_of(result)[0], ran) == ('Not here.', [])


@pytest.mark.parametrize('changes', [True, False])
def test_state_bound_by_the_check_must_not_change_before_execution(changes: bool):
    ran: list[str] = []
    state = ['before']

    def check(ctx: ApprovalContext) -> ApprovalRequest:
        return ApprovalRequest(tool_name=ctx.tool_name, args=ctx.args, bound_to={'state': state[-1]})

    def change(request: Any) -> bool:
        state.append('after' if changes else 'before')
        return True

    function = checked('check_approval', ran)
    function.check_approval = check
    log = Log()

    told, _ = told_in(with_tools(function), ApprovalController(ui=RecordingUI(change), audit=log))['1']

    assert ran == ([] if changes else ['a'])
    assert ('changed after it was approved' in told) is changes
    assert log.told[1:] == [('outcome', 'refused' if changes else 'executed', '1')]


ASKS, RUNS, BLOCKS = ApprovalResult.needs_approval(), ApprovalResult.pre_approved(), ApprovalResult.blocked('No.')


@pytest.mark.parametrize(
    ('toolset_says', 'function_says', 'is_asked', 'runs'),
    [
        (ASKS, None, True, True),
        (RUNS, None, False, True),
        (BLOCKS, None, False, False),
        (ASKS, RUNS, True, True),
        (RUNS, ASKS, True, True),
        (ASKS, BLOCKS, False, False),
    ],
)
def test_a_toolset_with_a_check_is_asked_too_and_the_stricter_verdict_holds(
    toolset_says: Any, function_says: Any, is_asked: bool, runs: bool
):
    ran: list[str] = []

    class Careful(FunctionToolset[Any]):
        def check_approval(self, ctx: ApprovalContext) -> Any:
            return toolset_says

    function = checked('needs_approval', ran)
    function.needs_approval = lambda name, args: function_says
    ui = RecordingUI(True)
    agent = Agent(scripted(CALL, 'done'), toolsets=[Careful([function])])

    agent.run_sync('go', deferred_tool_handler=Approvals(ApprovalController(ui=ui), default='none'))

    assert (len(ui.requests), ran) == (int(is_asked), ['a'] * runs)


def test_renamed_function_is_asked_about_by_its_new_name():
    ran: list[str] = []
    function = checked('check_approval', ran)
    function.check_approval = lambda ctx: ApprovalRequest(
        tool_name=ctx.tool_name, description='Delete a file', bound_to={'state': 1}
    )
    ui = RecordingUI(True)
    handler = Approvals(ApprovalController(ui=ui), default='none')

    with_renamed_toolset(function, deferred_tool_handler=handler).run_sync('go')

    assert [(request.tool_name, request.description) for request in ui.requests] == [('x_delete', 'Delete a file')]
    assert ran == ['a']


@APPROVED
def test_declared_function_with_a_check_is_asked_about_once(is_approved: bool):
    ran: list[str] = []
    function = checked('check_approval', ran)
    function.check_approval = lambda ctx: ApprovalRequest(tool_name=ctx.tool_name, bound_to={'state': 1})
    agent = Agent(scripted(CALL, 'done'))
    agent.tool_plain(requires_approval=True)(function)
    ui = RecordingUI(is_approved)

    agent.run_sync('go', deferred_tool_handler=Approvals(ApprovalController(ui=ui), default='none'))

    assert (len(ui.requests), ran) == (1, ['a'] if is_approved else [])


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('policy', [{}, {'delete': {'approval': 'none'}}])
def test_call_decided_by_an_approval_toolset_is_not_asked_again(kind: str, policy: Any):
    ran: list[str] = []
    ui = RecordingUI(True)
    controller = ApprovalController(ui=ui, policy=policy)
    toolset = ApprovalToolset(FunctionToolset[Any]([checked(kind, ran)]), controller)
    agent = pydantic_ai.Agent(scripted(CALL, 'done'), toolsets=[toolset])

    run_with_approval_sync(agent, 'go', controller=controller)

    assert (len(ui.requests), ran) == (0 if policy else 1, ['a'])


@pytest.mark.parametrize('config', [None, {'delete': {'pre_approved': True}}])
def test_call_decided_by_a_callback_is_not_asked_again(config: Any):
    ran: list[str] = []
    asked: list[Any] = []

    def approve(request: Any) -> compat.ApprovalDecision:
        asked.append(request)
        return compat.ApprovalDecision(approved=True)

    toolset = compat.ApprovalToolset(FunctionToolset[Any]([checked('marked', ran)]), approve, config=config)

    pydantic_ai.Agent(scripted(CALL, 'done'), toolsets=[toolset]).run_sync('go')

    assert (len(asked), ran) == (0 if config else 1, ['a'])


def test_a_call_inside_of_an_approved_one_is_asked_about_by_itself():
    """Also where it runs in the same run, as in a tool that calls others."""
    ran: list[str] = []
    inner = FunctionToolset[Any]([checked('decorated', ran)])
    outer: FunctionToolset[Any] = FunctionToolset()

    @outer.tool
    async def both(ctx: RunContext[Any]) -> None:
        tool = (await inner.get_tools(ctx))['delete']
        await inner.call_tool('delete', {'path': 'a'}, ctx, tool)

    controller = ApprovalController(policy={'both': {'approval': 'none'}})
    agent = pydantic_ai.Agent(scripted([call('both', '1')], 'done'), toolsets=[ApprovalToolset(outer, controller)])

    with pytest.raises(UserError, match="'delete' needs approval, but nothing guards it"):
        agent.run_sync('go')

    assert ran == []


def test_the_function_itself_stays_callable_by_code():
    ran: list[str] = []
    function = checked('decorated', ran)
    agent = Agent(scripted([call('tidy', '1')], 'done'))

    @agent.tool_plain
    def tidy() -> None:
        function(path='c')

    asyncio.run(execute_tool(function, 'delete', {'path': 'b'}, ApprovalController('approve_all')))
    agent.run_sync('go')

    assert (function(path='d'), ran) == ('deleted d', ['b', 'c', 'd'])


def test_the_decorator_alone_is_enough_in_an_agent_that_imports_nothing_else_of_ours():
    program = """
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from tool_approval import requires_approval

@requires_approval()
def delete(path: str) -> None:
    print('deleted')

Agent(TestModel(), tools=[delete]).run_sync('go')
"""

    finished = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True)

    assert (finished.returncode, finished.stdout) == (1, '')
    assert 'nothing guards it, so it was not run' in finished.stderr


@APPROVED
def test_a_judged_call_lends_its_judgement_to_no_other_call_that_its_toolset_makes(is_approved: bool):
    ran: list[str] = []

    class Rerouting(WrapperToolset[Any]):
        async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: Any) -> Any:
            unasked = replace(ctx, tool_call_id='2', tool_call_approved=False, tool_call_metadata=None)
            other = (await self.wrapped.get_tools(ctx))['delete']
            return await self.wrapped.call_tool('delete', tool_args, unasked, other)

    def look(path: str) -> str:
        raise AssertionError

    tools = Rerouting(FunctionToolset[Any]([look, checked('decorated', ran)]))
    policy = {'look': {'approval': 'required' if is_approved else 'none'}}
    controller = ApprovalController(ui=RecordingUI(True), policy=policy)
    model = scripted([call('look', '1', path='a')], 'done')
    agent = Agent(model, toolsets=[ApprovalToolset(tools, controller)])

    with pytest.raises(UserError, match="'delete' needs approval, but nothing guards it"):
        run_with_approval_sync(agent, 'go', controller=controller)

    assert ran == []


@pytest.mark.parametrize('place', ['a toolset', 'a guarded function', 'a declared tool'])
@pytest.mark.parametrize('way', ['inside the run', 'stop and resume'])
def test_arguments_changed_by_a_check_do_not_run_unseen(way: str, place: str):
    ran: list[list[str]] = []

    def delete(paths: list[str]) -> None:
        ran.append(paths)

    def check(ctx: ApprovalContext) -> ApprovalRequest:
        request = ApprovalRequest(tool_name=ctx.tool_name)
        ctx.args['paths'][:] = ['harmless']
        return request

    function: Any = delete
    function.check_approval = check
    ui = RecordingUI(True)
    controller = ApprovalController(ui=ui)
    tools = FunctionToolset[Any]()
    tools.add_function(function, requires_approval=place == 'a declared tool')
    toolset: Any = ApprovalToolset(tools, controller) if place == 'a toolset' else tools
    handler = Approvals(controller, default='none')
    model = scripted([call('delete', '1', paths=['a'])], 'done')
    agent = pydantic_ai.Agent(model, toolsets=[toolset])

    if way == 'stop and resume':
        run_with_approval_sync(agent, 'go', controller=controller)
    else:
        agent.run_sync('go', capabilities=[handler])

    assert [request.args['paths'] for request in ui.requests] == [['harmless']]
    assert ran == []


def test_a_check_that_a_toolset_gets_while_a_response_runs_is_asked():
    ran: list[str] = []

    def pay(to: str) -> str:
        ran.append(to)
        return 'paid'

    def lock() -> str:
        toolset.check_approval = lambda ctx: ApprovalResult.blocked('locked')
        return 'locked'

    functions: list[Any] = [pay, lock]
    toolset: Any = WrapperToolset(FunctionToolset[Any](functions, sequential=True))
    calls = [call('pay', '1', to='a'), call('lock', '2'), call('pay', '3', to='b')]
    handler = Approvals(ApprovalController(), default='none')

    result = pydantic_ai.Agent(scripted(calls, 'done'), toolsets=[toolset], capabilities=[handler]).run_sync('go')

    assert ran == ['a']
    assert returns(result.all_messages())['3'] == ('locked', 'failed')
