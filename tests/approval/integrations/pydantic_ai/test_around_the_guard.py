"""Tools, agents and arguments that come around the guard: each is guarded too, or refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pydantic
import pydantic_ai
import pytest
from pydantic_ai import ApprovalRequired, DeferredToolRequests, DeferredToolResults, ModelRetry, RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.exceptions import UserError
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, ExternalToolset, FunctionToolset, WrapperToolset
from pydantic_ai_deferred import Agent, DeferredToolHandler
from tool_approval.core.gate import CHANGED
from tool_approval.integrations.pydantic_ai import Approvals, run_with_approval_sync
from tool_approval.testing import RecordingUI

from tests.loop.scripted import call, returns, scripted
from tool_approval import ApprovalController, ApprovalDecision, requires_approval

from .agents import Log, changed

DELETE = [call('delete', '1', path='a')]


class Bringing(AbstractCapability[Any]):
    """Adds a tool around all toolsets, as the code mode of a harness does, and may change arguments late."""

    def __init__(self, function: Any, position: Any, late: dict[str, Any] | None = None) -> None:
        self.function = function
        self.position = position
        self.late = late

    def get_ordering(self) -> CapabilityOrdering | None:
        return CapabilityOrdering(position=self.position) if self.position else None

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return CombinedToolset([toolset, FunctionToolset([self.function])])

    async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        return args if self.late is None else self.late


@pytest.mark.parametrize('position', ['outermost', None, 'innermost'])
@pytest.mark.parametrize('is_first', [True, False])
@pytest.mark.parametrize(
    ('rules', 'answer', 'runs'),
    [({}, True, True), ({}, False, False), ({'*': {'approval': 'blocked'}}, True, False)],
)
def test_a_tool_that_another_capability_adds_around_the_guard_is_guarded(
    position: Any, is_first: bool, rules: Any, answer: bool, runs: bool
):
    ran: list[str] = []
    ui, log = RecordingUI(answer), Log()

    def delete(path: str) -> str:
        ran.append(path)
        return 'deleted'

    capabilities = [Bringing(delete, position), Approvals(rules, ui=ui, log=log)]
    agent = pydantic_ai.Agent(scripted(DELETE, 'done'), capabilities=capabilities if is_first else capabilities[::-1])
    agent.run_sync('go')

    assert ran == (['a'] if runs else [])
    assert [dict(request.args) for request in ui.requests] == ([] if rules else [{'path': 'a'}])
    first = ('blocked', None, '1') if rules else ('decision', runs, '1')
    assert log.told == [first, *([('outcome', 'executed', '1')] if runs else [])]


def test_a_late_change_of_the_arguments_of_such_a_tool_is_found():
    ran: list[str] = []

    def delete(path: str) -> str:
        ran.append(path)
        return 'deleted'

    ui = RecordingUI(True)
    capabilities = [Bringing(delete, 'outermost', late={'path': 'b'}), Approvals(ui=ui)]
    result = pydantic_ai.Agent(scripted(DELETE, 'done'), capabilities=capabilities).run_sync('go')

    # Older hosts change the arguments before anybody is asked.
    shown = [dict(request.args) for request in ui.requests]
    assert (shown, ran) in (([{'path': 'a'}], []), ([{'path': 'b'}], ['b']))
    if not ran:
        assert returns(result.all_messages())['1'] == (CHANGED, 'failed')


@pytest.mark.parametrize(('rules', 'kept'), [({}, 'success'), ({'search_*': {'approval': 'blocked'}}, 'failed')])
def test_the_hosts_own_search_for_tools_asks_only_if_a_rule_says_so(rules: Any, kept: str):
    tools: FunctionToolset[Any] = FunctionToolset()
    tools.add_function(delete_nothing, defer_loading=True)
    ui = RecordingUI(True)
    agent = pydantic_ai.Agent(
        scripted([call('search_tools', '1', queries=['delete'])], 'done'),
        toolsets=[tools],
        capabilities=[Approvals(rules, ui=ui)],
    )
    result = agent.run_sync('go')
    if not hasattr(ToolDefinition(name='x'), 'tool_kind'):
        pytest.skip('this host does not mark its own tools')

    assert ui.requests == []
    assert returns(result.all_messages())['1'][1] == kept


def delete_nothing() -> str:
    raise AssertionError('not called')


def inner_agent(ran: list[str], **options: Any) -> Agent[Any, Any]:
    agent: Any = Agent(scripted(DELETE, 'done'), name='inner', **options)

    @agent.tool_plain
    def delete(path: str) -> str:
        ran.append(path)
        return 'deleted'

    return agent


def outer_agent(inner: Agent[Any, Any], approvals: Approvals, **options: Any) -> Agent[Any, Any]:
    agent: Any = Agent(scripted([call('delegate', 'd')], 'done'), name='outer', capabilities=[approvals])

    @agent.tool_plain
    async def delegate() -> str:
        return str((await inner.run('go', **options)).output)

    return agent


def answers(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
    return requests.build_results(approve_all=True)


@pytest.mark.parametrize('place', ['agent', 'run'])
def test_a_nested_agent_that_may_end_with_deferred_calls_is_guarded_too(place: str):
    ran: list[str] = []
    output: Any = {'output_type': [str, DeferredToolRequests]}
    inner = inner_agent(ran, **(output if place == 'agent' else {}))
    approvals = Approvals({'delete': {'approval': 'blocked'}, 'delegate': {'approval': 'none'}}, ui=RecordingUI(True))

    outer_agent(inner, approvals, **(output if place == 'run' else {})).run_sync('go')

    assert ran == []


@pytest.mark.parametrize(
    'given',
    [{'deferred_tool_handler': answers}, {'capabilities': [DeferredToolHandler(answers)]}],
    ids=['keyword', 'capability'],
)
@pytest.mark.parametrize('place', ['agent', 'run'])
def test_a_nested_agent_with_another_handler_would_be_without_the_guard(place: str, given: Any):
    ran: list[str] = []
    inner = inner_agent(ran, **(given if place == 'agent' else {}))
    approvals = Approvals(default='none', ui=RecordingUI(True))

    with pytest.raises(UserError, match='without their guard'):
        outer_agent(inner, approvals, **(given if place == 'run' else {})).run_sync('go')

    assert ran == []
    outer_agent(inner, Approvals(default='none', inherit=False), **(given if place == 'run' else {})).run_sync('go')
    assert ran == ['a']


def test_approvals_inside_a_handler_would_guard_nothing():
    with pytest.raises(UserError, match='would guard nothing'):
        DeferredToolHandler(Approvals())


def test_one_call_with_approval_does_not_replace_the_approvals_of_the_agent():
    ran: list[str] = []
    agent = inner_agent(ran, capabilities=[Approvals({'delete': {'approval': 'blocked'}})])

    with pytest.raises(UserError, match='has `Approvals` of its own'):
        run_with_approval_sync(agent, 'go', ui=RecordingUI(True))

    assert ran == []


class InPlace(WrapperToolset[Any]):
    """Changes the arguments between the guard and the function, in the same objects."""

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        tool_args['paths'][0] = True
        return await super().call_tool(name, tool_args, ctx, tool)


@pytest.mark.parametrize('given', [['a'], [1]])
@pytest.mark.parametrize('is_decorated', [True, False])
def test_a_change_in_place_below_the_guard_is_found(given: list[Any], is_decorated: bool):
    ran: list[Any] = []

    def delete(paths: list[Any]) -> str:
        ran.append(paths)
        return 'deleted'

    approvals = Approvals(ui=RecordingUI(True))
    tools: AbstractToolset[Any] = FunctionToolset([requires_approval()(delete) if is_decorated else delete])
    agent = pydantic_ai.Agent(
        scripted([call('delete', '1', paths=given)], 'done'),
        toolsets=[InPlace(tools if is_decorated else approvals.guard(tools))],
        capabilities=[approvals],
    )
    result = agent.run_sync('go')

    assert ran == []
    assert returns(result.all_messages())['1'] == (CHANGED, 'failed')


class Open(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra='allow')
    path: str


@dataclass(slots=True)
class Slotted:
    path: str


class InPlaceOfAField(WrapperToolset[Any]):
    """Changes a field of an argument between the guard and the function."""

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        value = tool_args['it']
        setattr(value, 'more' if isinstance(value, Open) else 'path', 'b')
        return await super().call_tool(name, tool_args, ctx, tool)


@pytest.mark.parametrize('kind', [Open, Slotted])
def test_a_changed_field_of_a_model_or_dataclass_below_the_guard_is_found(kind: type):
    ran: list[Any] = []

    def delete(it: Any, force: bool = False) -> str:
        ran.append(it)
        return 'deleted'

    delete.__annotations__['it'] = kind
    given = {'path': 'a', 'more': 'a'} if kind is Open else {'path': 'a'}
    agent = pydantic_ai.Agent(
        scripted([call('delete', '1', it=given)], 'done'),
        toolsets=[InPlaceOfAField(FunctionToolset([requires_approval()(delete)]))],
        capabilities=[Approvals(ui=RecordingUI(True))],
    )
    result = agent.run_sync('go')

    assert ran == []
    assert returns(result.all_messages())['1'] == (CHANGED, 'failed')


def large(ctx: RunContext[Any], **args: Any) -> None:
    """Validate the arguments: the host lets a validator ask for approval, before the guard does."""
    if not ctx.tool_call_approved:
        raise ApprovalRequired


def sending(ran: list[Any], log: Any, answer: Any, validator: Any = None, **limits: Any) -> Any:
    def send(to: str, memo: str) -> str:
        ran.append((to, memo))
        return 'sent'

    tool = Tool(requires_approval(**limits)(send), name='send', args_validator=validator)
    approvals = Approvals(ui=RecordingUI(answer), log=log, key=b'k' * 32)
    options: dict[str, Any] = {'capabilities': [approvals], 'output_type': [str, DeferredToolRequests]}
    return pydantic_ai.Agent(scripted([call('send', '1', to='bob', memo='private')], 'done'), tools=[tool], **options)


def test_what_a_check_excludes_is_not_logged_though_other_code_deferred_the_call():
    ran: list[Any] = []
    log = Log()

    sending(ran, log, True, large, exclude_keys=['memo']).run_sync('go')

    assert ran == [('bob', 'private')]
    assert 'private' not in str(log.entries)


@pytest.mark.parametrize(
    ('answer', 'allowed'),
    [(changed(to='eve', memo='private'), ['approve']), (True, ['respond'])],
    ids=['edit', 'approve'],
)
def test_an_answer_that_the_check_does_not_allow_runs_nothing_though_other_code_deferred_the_call(
    answer: Any, allowed: list[Any]
):
    ran: list[Any] = []

    sending(ran, Log(), answer, large, answers=allowed).run_sync('go')

    assert ran == []


def test_a_check_that_asks_nothing_leaves_the_question_of_other_code_as_it_is():
    ran: list[Any] = []
    ui = RecordingUI(True)

    def send(to: str) -> str:
        ran.append(to)
        return 'sent'

    send.check_approval = lambda ctx: None
    tool = Tool(send, args_validator=large)
    agent = pydantic_ai.Agent(
        scripted([call('send', '1', to='bob')], 'done'), tools=[tool], capabilities=[Approvals(ui=ui)]
    )
    agent.run_sync('go')

    assert (ran, len(ui.requests)) == (['bob'], 1)


def test_arguments_that_the_validator_refuses_once_they_are_approved_are_shown_and_do_not_run():
    ran: list[Any] = []
    ui = RecordingUI(True)

    def send(to: str) -> str:
        ran.append(to)
        return 'sent'

    def fickle(ctx: RunContext[Any], to: str) -> None:
        raise ModelRetry('Not to him.') if ctx.tool_call_approved else ApprovalRequired

    agent = pydantic_ai.Agent(
        scripted([call('send', '1', to='bob')], 'done'),
        tools=[Tool(send, args_validator=fickle)],
        capabilities=[Approvals(ui=ui)],
    )
    agent.run_sync('go')

    assert [dict(request.args) for request in ui.requests] == [{'to': 'bob'}]
    assert ran == []


def test_a_check_that_blocks_a_call_which_other_code_deferred_is_not_asked_about():
    ran: list[Any] = []
    ui = RecordingUI(True)

    def send(to: str) -> str:
        ran.append(to)
        return 'sent'

    def check_approval(ctx: Any) -> None:
        raise PermissionError('never')

    send.check_approval = check_approval
    tool = Tool(send, args_validator=large)
    agent = pydantic_ai.Agent(
        scripted([call('send', '1', to='bob')], 'done'), tools=[tool], capabilities=[Approvals(ui=ui)]
    )
    result = agent.run_sync('go')

    assert (ran, ui.requests) == ([], [])
    assert returns(result.all_messages())['1'] == ('never', 'denied')


@pytest.mark.parametrize(
    ('answer', 'allowed'),
    [(changed(to='eve', memo='private'), ['approve']), (True, ['respond'])],
    ids=['edit', 'approve'],
)
def test_an_answer_from_a_process_that_does_not_know_what_the_tool_allows_runs_nothing(answer: Any, allowed: list[Any]):
    ran: list[Any] = []
    log = Log()
    agent = sending(ran, log, None, answers=allowed)
    with_no_ui = Approvals(key=b'k' * 32)
    stopped = agent.run_sync('go', capabilities=[with_no_ui])
    adapter = pydantic.TypeAdapter(DeferredToolRequests)
    requests = adapter.validate_json(adapter.dump_json(stopped.output))

    answered = Approvals(ApprovalController(ui=RecordingUI(answer), key=b'k' * 32)).answer_sync(requests)
    result = agent.run_sync(message_history=stopped.all_messages(), deferred_tool_results=answered)

    assert ran == []
    assert 'does not allow the answer' in str(returns(result.all_messages())['1'][0])


@pytest.mark.parametrize('name', ['on_end', 'function'])
def test_an_argument_of_an_external_call_may_have_any_name(name: str):
    ran: list[Any] = []

    def pay(**args: Any) -> str:
        ran.append(args)
        return 'paid'

    agent = pydantic_ai.Agent(
        scripted([call('pay', '1', **{name: 'x'})], 'done'),
        toolsets=[ExternalToolset([ToolDefinition(name='pay', parameters_json_schema={'type': 'object'})])],
        capabilities=[Approvals(ui=RecordingUI(ApprovalDecision(approved=True)), external={'pay': pay})],
    )
    agent.run_sync('go')

    assert ran == [{name: 'x'}]
