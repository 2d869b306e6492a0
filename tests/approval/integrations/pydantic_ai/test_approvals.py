"""`Approvals` as a capability of the host's own agent."""

from types import SimpleNamespace
from typing import Any, cast

import pydantic_ai
import pytest
from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import PartStartEvent, TextPart
from pydantic_ai.toolsets import FunctionToolset, WrapperToolset
from pydantic_ai_deferred import Agent, DeferredToolHandler
from tool_approval.approvals import Approvals as AnyApprovals
from tool_approval.core.calls import denied_because
from tool_approval.core.gate import CHANGED
from tool_approval.integrations.pydantic_ai import Approvals, ApprovalToolset
from tool_approval.integrations.pydantic_ai.guard import NOT_BY_OTHERS, UNBOUND
from tool_approval.testing import RecordingUI, ScriptedUI

from tests.loop.scripted import call, returns, scripted
from tool_approval import ApprovalController, ApprovalDecision, ApprovalMemory, ApprovalResult, requires_approval

from .agents import Log, changed

KINDS = ('function', 'declared', 'decorated', 'toolset')


def agent_with(kind: str, ran: list[str], *responses: Any, **options: Any) -> pydantic_ai.Agent[Any, Any]:
    """A stock agent with one tool of a kind."""

    def delete(path: str) -> str:
        ran.append(path)
        return f'deleted {path}'

    if kind == 'decorated':
        delete = requires_approval()(delete)
    toolsets = [FunctionToolset[Any]([delete])] if kind == 'toolset' else []
    responses = responses or ([call('delete', '1', path='a')], 'done')
    agent: Any = pydantic_ai.Agent(scripted(*responses), name='janitor', toolsets=toolsets, **options)
    if kind != 'toolset':
        agent.tool_plain(requires_approval=kind == 'declared')(delete)
    return agent


def told(result: Any) -> Any:
    return returns(result.all_messages())['1']


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('is_approved', [True, False])
def test_every_tool_of_a_stock_agent_is_asked_about_bound_and_logged(kind: str, is_approved: bool):
    ran: list[str] = []
    ui, log = RecordingUI(is_approved or 'Keep it.'), Log()

    result = agent_with(kind, ran, capabilities=[Approvals(ui=ui, log=log)]).run_sync('go')

    assert [dict(request.args) for request in ui.requests] == [{'path': 'a'}]
    assert ran == (['a'] if is_approved else [])
    assert told(result) == (('deleted a', 'success') if is_approved else (denied_because('Keep it.'), 'denied'))
    assert log.told == [('decision', is_approved, '1'), *([('outcome', 'executed', '1')] if is_approved else [])]


@pytest.mark.anyio
@pytest.mark.parametrize('kind', KINDS)
async def test_streamed_runs_ask_about_every_tool_too(kind: str):
    ran: list[str] = []
    agent = agent_with(kind, ran, capabilities=[Approvals(ui=RecordingUI(True))])

    async with agent.run_stream('go') as result:
        assert await result.get_output() == 'done'

    assert ran == ['a']


@pytest.mark.anyio
async def test_text_after_a_declared_call_does_not_end_a_stream():
    ran: list[str] = []
    first = [call('delete', '1', path='a'), TextPart('I delete it.')]
    agent = agent_with('declared', ran, first, 'done', capabilities=[Approvals(ui=RecordingUI(True))])

    async with agent.run_stream('go') as result:
        assert await result.get_output() == 'done'

    assert ran == ['a']


@pytest.mark.parametrize('kind', KINDS)
def test_rules_hold_for_every_tool(kind: str):
    ran: list[str] = []
    blocks = Approvals({'delete': {'approval': 'blocked'}}, mode='approve_all')
    frees = Approvals({'delete': {'approval': 'none'}}, mode='strict')

    blocked = agent_with(kind, ran, capabilities=[blocks]).run_sync('go')
    assert (told(blocked)[0], ran) == ("The tool 'delete' is blocked by policy.", [])

    agent_with(kind, ran, capabilities=[frees]).run_sync('go')
    assert ran == ['a']


@pytest.mark.parametrize(('kind', 'asks'), [('function', 0), ('declared', 1), ('decorated', 1), ('toolset', 0)])
def test_with_the_default_none_only_tools_that_say_so_are_asked_about(kind: str, asks: int):
    ran: list[str] = []
    ui = RecordingUI(True)

    agent_with(kind, ran, capabilities=[Approvals(ui=ui, default='none')]).run_sync('go')

    assert (len(ui.requests), ran) == (asks, ['a'])


def test_changed_arguments_run_and_the_model_is_told():
    ran: list[str] = []
    agent = agent_with('function', ran, capabilities=[Approvals(ui=RecordingUI(changed(path='b')))])

    [text, _] = told(agent.run_sync('go'))

    assert ran == ['b']
    assert 'which ran with: {"path":"b"}' in text


@pytest.mark.parametrize('inherit', [True, False])
@pytest.mark.parametrize('kind', ['declared', 'decorated'])
def test_nested_agents_of_ours_inherit_the_guard(kind: str, inherit: bool):
    ran: list[str] = []
    ui, log = RecordingUI(True), Log()
    boss = pydantic_ai.Agent(
        scripted([call('ask', '9')], 'done'), capabilities=[Approvals(ui=ui, log=log, default='none', inherit=inherit)]
    )
    inner = Agent(scripted([call('delete', '1', path='a')], 'done'), name='helper')

    def delete(path: str) -> None:
        ran.append(path)

    inner.tool_plain(requires_approval=kind == 'declared')(
        requires_approval()(delete) if kind == 'decorated' else delete
    )

    @boss.tool_plain
    async def ask() -> str:
        return (await inner.run('help')).output

    if not inherit:
        with pytest.raises(UserError):
            boss.run_sync('go')
        assert ran == []
        return
    boss.run_sync('go')

    assert ran == ['a']
    assert [[level.tool_name for level in request.lineage] for request in ui.requests] == [['ask']]
    assert log.told == [('decision', True, '1'), ('outcome', 'executed', '1')]


def test_a_nested_agent_with_approvals_of_its_own_uses_those():
    ran: list[str] = []
    above, own = RecordingUI(True), RecordingUI(True)
    boss = Agent(scripted([call('ask', '9')], 'done'), deferred_tool_handler=Approvals(ui=above, default='none'))
    inner = agent_with('function', ran, capabilities=[Approvals(ui=own)])

    @boss.tool_plain
    async def ask() -> str:
        return (await inner.run('help')).output

    boss.run_sync('go')

    assert (len(above.requests), len(own.requests), ran) == (0, 1, ['a'])


def others(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
    return DeferredToolResults(approvals={each.tool_call_id: True for each in requests.approvals})


@pytest.mark.parametrize(
    ('options', 'ran', 'decided', 'asked'),
    [
        ({}, True, [('decision', 'other')], 0),
        ({'log_unasked': False}, True, [('decision', 'other')], 0),
        ({'others': 'refuse'}, False, [('blocked', 'policy')], 0),
        ({'others': 'ask'}, True, [('decision', 'ui')], 1),
        ({'others': 'ask', 'ui': RecordingUI('no')}, False, [('decision', 'ui')], 1),
        ({'others': 'ask', 'ui': RecordingUI(changed(path='b'))}, False, [('decision', 'ui')], 2),
        ({'mode': 'strict'}, False, [('blocked', 'policy')], 0),
    ],
)
def test_calls_that_another_capability_approved_are_logged_asked_about_or_refused(
    options: dict[str, Any], ran: bool, decided: list[Any], asked: int
):
    executed: list[str] = []
    log, ui = Log(), RecordingUI(True)
    approvals = Approvals(**{'ui': ui, 'log': log, **options})
    asked_ui: Any = options.get('ui', ui)
    before = len(asked_ui.requests)

    result = agent_with('declared', executed, capabilities=[HandleDeferredToolCalls(others), approvals]).run_sync('go')

    assert executed == (['a'] if ran else [])
    assert [(each['event'], *each['decided_by']) for each in log.entries if each['event'] != 'outcome'] == decided
    assert len(asked_ui.requests) - before == asked
    if options.get('others') == 'refuse' or 'mode' in options:
        assert told(result) == (NOT_BY_OTHERS, 'failed')


@pytest.mark.skipif(not hasattr(DeferredToolResults(), 'answered_by'), reason='answered_by: newer hosts')
@pytest.mark.anyio
@pytest.mark.parametrize('streams', [False, True])
async def test_the_log_has_the_name_that_another_capability_gives(streams: bool):
    def named(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        results = others(ctx, requests)
        results.answered_by['1'] = 'the release bot'
        return results

    ran: list[str] = []
    log = Log()
    responses = [call('delete', '1', path='a')], [call('delete', '2', path='b')], 'done'
    capabilities = [HandleDeferredToolCalls(named), Approvals(log=log)]
    agent = agent_with('declared', ran, *responses, capabilities=capabilities)

    if streams:
        async with agent.run_stream('go') as result:
            await result.get_output()
    else:
        await agent.run('go')

    assert ran == ['a', 'b']
    decisions = [
        (each['tool_call_id'], each['decided_by'], each['how'], each.get('answered_by')) for each in log.decisions()
    ]
    assert decisions == [('1', ['other'], 'other', 'the release bot'), ('2', ['other'], 'other', None)]


@pytest.mark.anyio
async def test_no_other_event_is_noted():
    approvals, ctx = Approvals(), cast(Any, SimpleNamespace(run_id='r', tool_call_id='1'))
    event = PartStartEvent(index=0, part=TextPart('Hello'))

    await approvals.on_event(ctx, event=event)

    assert (approvals.listens_to(event), approvals.answered_by(ctx)) == (False, None)


def test_beside_other_code_an_approver_may_answer_in_the_tools_place():
    ran: list[str] = []
    rules = {'delete': {'approval': 'required', 'answers': ['respond']}}
    ui = RecordingUI(ApprovalDecision(approved=False, response='done by hand'))
    capabilities = [HandleDeferredToolCalls(others), Approvals(rules, ui=ui, others='ask')]

    result = agent_with('declared', ran, capabilities=capabilities).run_sync('go')

    assert (told(result), ran) == (('done by hand', 'success'), [])


def test_beside_other_code_what_a_tool_declares_must_not_change_while_the_approver_is_asked():
    ran: list[str] = []
    version = ['old']

    def delete(path: str) -> None:
        ran.append(path)

    def declare(name: str, args: Any) -> ApprovalResult:
        return ApprovalResult.needs_approval(bound_to={'version': version[0]})

    def decide(request: Any) -> bool:
        version[0] = 'new'
        return True

    vars(delete)['needs_approval'] = declare
    log = Log()
    capabilities = [HandleDeferredToolCalls(others), Approvals(ui=RecordingUI(decide), log=log, others='ask')]
    agent = pydantic_ai.Agent(scripted([call('delete', '1', path='a')], 'done'), capabilities=capabilities)
    agent.tool_plain(requires_approval=True)(delete)

    result = agent.run_sync('go')

    assert (told(result), ran) == ((CHANGED, 'failed'), [])
    assert log.told == [('decision', True, '1'), ('outcome', 'refused', '1')]


def test_without_a_ui_the_memory_still_decides():
    ran: list[str] = []
    memory = ApprovalMemory()
    for ui in (ScriptedUI(['s']), None):
        approvals = Approvals(ui=ui, remember=memory, session='ada')
        result = agent_with('function', ran, output_type=STOPS, capabilities=[approvals]).run_sync('go')
        assert result.output == 'done'

    assert ran == ['a', 'a']


def test_a_guard_of_another_controller_decides_for_itself():
    ran: list[str] = []

    def delete(path: str) -> None:
        ran.append(path)

    strict = Approvals(mode='strict')
    toolset = strict.guard(FunctionToolset[Any]([delete]))
    model = scripted([call('delete', '1', path='a')], 'done')
    capabilities = [HandleDeferredToolCalls(others), Approvals()]

    result = pydantic_ai.Agent(model, toolsets=[toolset], capabilities=capabilities).run_sync('go')

    assert (told(result), ran) == ((NOT_BY_OTHERS, 'failed'), [])


def test_an_approval_by_other_code_covers_no_other_call_that_a_toolset_makes():
    ran: list[str] = []
    ui = RecordingUI('no')
    approvals = Approvals(ui=ui)

    def look(path: str) -> None:
        raise AssertionError

    def delete(path: str) -> None:
        ran.append(path)

    class Rerouting(WrapperToolset[Any]):
        async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: Any) -> Any:
            other = (await self.wrapped.get_tools(ctx))['delete']
            return await self.wrapped.call_tool('delete', tool_args, ctx, other)

    toolset = Rerouting(Approvals(approvals.controller, others='refuse').guard(FunctionToolset[Any]([look, delete])))
    model = scripted([call('look', '1', path='a')], 'done')
    agent = pydantic_ai.Agent(model, toolsets=[toolset], capabilities=[HandleDeferredToolCalls(others), approvals])

    result = agent.run_sync('go')

    assert (told(result), ran) == ((NOT_BY_OTHERS, 'failed'), [])


def test_a_block_holds_whoever_approves():
    ran: list[str] = []
    blocks = Approvals({'delete': {'approval': 'blocked'}})

    result = agent_with('declared', ran, capabilities=[HandleDeferredToolCalls(others), blocks]).run_sync('go')

    assert (told(result)[0], ran) == ("The tool 'delete' is blocked by policy.", [])


STOPS: Any = [str, DeferredToolRequests]


@pytest.mark.parametrize('kind', KINDS)
def test_without_a_ui_the_run_stops_and_answers_resume_it_in_another_process(kind: str):
    ran: list[str] = []
    key, log = b'k' * 32, Log()

    def approvals(**parts: Any) -> Approvals:
        return Approvals(key=key, log=log, **parts)

    stopped = agent_with(kind, ran, output_type=STOPS, capabilities=[approvals()]).run_sync('go')
    assert isinstance(stopped.output, DeferredToolRequests)
    assert (ran, log.entries) == ([], [])

    answers = approvals(ui=RecordingUI(True)).answer_sync(stopped.output, session='s', caller='janitor')
    resumed = agent_with(kind, ran, output_type=STOPS, capabilities=[approvals()]).run_sync(
        message_history=stopped.all_messages(), deferred_tool_results=answers
    )

    assert (resumed.output, ran) == ('done', ['a'])
    assert log.told == [('decision', True, '1'), ('outcome', 'executed', '1')]


def test_without_a_ui_calls_are_denied_where_the_output_takes_none_of_them():
    ran: list[str] = []

    result = agent_with('function', ran, capabilities=[Approvals()]).run_sync('go')

    assert (told(result)[1], ran) == ('denied', [])


def test_without_a_ui_rules_and_memory_still_decide():
    ran: list[str] = []
    free = Approvals({'delete': {'approval': 'none'}})

    result = agent_with('declared', ran, output_type=STOPS, capabilities=[free]).run_sync('go')

    assert (result.output, ran) == ('done', ['a'])


def test_an_approval_between_two_runs_that_is_bound_to_nothing_is_refused():
    ran: list[str] = []
    agent = agent_with('declared', ran, output_type=STOPS, capabilities=[Approvals()])
    stopped = agent.run_sync('go')

    resumed = agent.run_sync(
        message_history=stopped.all_messages(), deferred_tool_results=DeferredToolResults(approvals={'1': True})
    )

    assert (told(resumed), ran) == ((UNBOUND, 'failed'), [])


def test_a_test_reaches_nested_runs_and_no_others():
    ran: list[str] = []
    real = RecordingUI('no')
    approvals = Approvals(ui=real, default='none')
    boss = pydantic_ai.Agent(scripted([call('ask', '9')], 'done'), capabilities=[approvals])
    inner = Agent(scripted([call('delete', '1', path='a')], 'done'))

    @inner.tool_plain(requires_approval=True)
    def delete(path: str) -> None:
        ran.append(path)

    @boss.tool_plain
    async def ask() -> str:
        return (await inner.run('help')).output

    with approvals.testing(ScriptedUI([True])) as log:
        boss.run_sync('go')

    assert (ran, real.requests) == (['a'], [])
    assert [each['event'] for each in log if each['tool_name'] == 'delete'] == ['question', 'decision', 'outcome']


@pytest.mark.parametrize(
    'capabilities',
    [
        [Approvals(), Approvals()],
        [Approvals(id='one'), Approvals(id='two')],
        [Approvals(), DeferredToolHandler(others)],
        [DeferredToolHandler(others), Approvals()],
    ],
)
def test_two_that_would_answer_are_an_error(capabilities: list[Any]):
    ran: list[str] = []

    with pytest.raises(UserError, match='Two'):
        agent_with('function', ran, capabilities=capabilities).run_sync('go')

    assert ran == []


def test_a_runs_approvals_replace_the_agents():
    ran: list[str] = []
    one, other = RecordingUI(True), RecordingUI(True)
    agent = agent_with('function', ran, capabilities=[Approvals(ui=one)])

    agent.run_sync('go', capabilities=[Approvals(ui=other)])

    assert (len(one.requests), len(other.requests), ran) == (0, 1, ['a'])


def test_guarded_twice_by_one_object_a_call_is_asked_about_and_logged_once():
    ran: list[str] = []
    ui, log = RecordingUI(True), Log()
    approvals = Approvals(ui=ui, log=log)

    def delete(path: str) -> None:
        ran.append(path)

    toolset = approvals.guard(FunctionToolset[Any]([delete]))
    model = scripted([call('delete', '1', path='a')], 'done')

    pydantic_ai.Agent(model, toolsets=[toolset], capabilities=[approvals]).run_sync('go')

    assert (len(ui.requests), ran) == (1, ['a'])
    assert log.told == [('decision', True, '1'), ('outcome', 'executed', '1')]


@pytest.mark.parametrize(
    ('make', 'text'),
    [
        (lambda: Approvals(others='ignore'), '`others` must be'),  # pyright: ignore[reportArgumentType]
        (lambda: ApprovalToolset(FunctionToolset(), Approvals(), 'none'), 'have their own `default`'),
        (lambda: ApprovalToolset(FunctionToolset(), 7), 'takes `Approvals` or an `ApprovalController`'),  # pyright: ignore[reportArgumentType]
        (lambda: ApprovalToolset(7, Approvals()), 'wraps a toolset, not int'),  # pyright: ignore[reportArgumentType]
    ],
)
def test_construction_errors_say_what_is_wrong(make: Any, text: str):
    with pytest.raises((UserError, ValueError), match=text):
        make()


def test_one_object_given_twice_is_one():
    approvals = Approvals()

    assert Approvals.combine([approvals, approvals]) is approvals


def test_the_capability_stays_out_of_specs():
    assert Approvals.get_serialization_name() is None


def test_a_check_that_blocks_is_not_overruled_by_a_function_that_frees():
    ran: list[str] = []
    agent = agent_with('function', ran, capabilities=[Approvals(mode='approve_all')])
    function: Any = agent._function_toolset.tools['delete'].function
    function.needs_approval = lambda name, args: ApprovalResult.blocked('Not here.')

    assert (told(agent.run_sync('go'))[0], ran) == ('Not here.', [])


def test_a_controller_can_be_given_in_place_of_rules():
    ran: list[str] = []
    ui = RecordingUI(True)

    agent_with('function', ran, capabilities=[Approvals(ApprovalController(ui=ui))]).run_sync('go')

    assert (len(ui.requests), ran) == (1, ['a'])


def test_approvals_without_a_framework_say_what_a_framework_needs():
    agent = pydantic_ai.Agent(scripted(call('act', '1')), capabilities=[AnyApprovals()])

    with pytest.raises(TypeError, match=r'import `Approvals` from `tool_approval.integrations.pydantic_ai`'):
        agent.run_sync('go')
