"""A person answers in a tool's place: in every way to run an agent, the answer is the tool's result."""

import asyncio
from typing import Any

import pytest
from langchain_core.tools import tool
from pydantic_ai import Agent as HostAgent
from pydantic_ai import CallDeferred, DeferredToolRequests
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai_deferred import Agent
from tool_approval.core.calls import denied_because
from tool_approval.integrations.langchain import ApprovalMiddleware, ApprovalToolWrapper
from tool_approval.integrations.langchain.pausing import question_about
from tool_approval.integrations.pydantic_ai import Approvals, ApprovalToolset, collect_approvals_sync
from tool_approval.integrations.pydantic_ai.requests import conventional
from tool_approval.testing import RecordingUI, ScriptedUI, approve_all

from tests.approval.parts import ListSink, request_for
from tests.loop.scripted import call, returns, scripted
from tool_approval import ApprovalController, ApprovalDecision, ApprovalPresentation

from .langchain import scripted as langchain
from .pydantic_ai.agents import external

RESPONSE = ApprovalDecision(approved=False, response='paid by hand', decided_by=('ada',))
ANSWERS = {'pay': {'approval': 'required', 'answers': ['approve', 'edit', 'respond']}}
PAY = call('pay', '1', amount=10)


class Desk:
    """A tool that pays, and how often it did."""

    def __init__(self) -> None:
        self.paid: list[int] = []

    def pay(self, amount: int) -> str:
        """Pay an amount."""
        self.paid.append(amount)
        return f'paid {amount}'


def declared(desk: Desk, kind: Any = Agent, **agent: Any) -> Any:
    made = kind(scripted([PAY], 'done'), name='clerk', **agent)
    made.tool_plain(desk.pay, requires_approval=True)
    return made


def by_a_handler(desk: Desk, controller: ApprovalController) -> Any:
    return declared(desk).run_sync('go', deferred_tool_handler=Approvals(controller, default='none'))


def by_a_toolset(desk: Desk, controller: ApprovalController) -> Any:
    tools = ApprovalToolset(FunctionToolset([desk.pay]), controller)
    agent = Agent(scripted([PAY], 'done'), name='clerk', toolsets=[tools])
    return agent.run_sync('go', deferred_tool_handler=Approvals(controller, default='none'))


def by_stopping(desk: Desk, controller: ApprovalController) -> Any:
    agent = declared(desk, HostAgent, output_type=[str, DeferredToolRequests])
    stopped = agent.run_sync('go')
    answers = collect_approvals_sync(stopped.output, controller=controller)
    return agent.run_sync(message_history=stopped.all_messages(), deferred_tool_results=answers)


WAYS = [by_a_handler, by_a_toolset, by_stopping]
each_way = pytest.mark.parametrize('way', WAYS)


@each_way
@pytest.mark.parametrize('value', ['paid by hand', {'kind': 'tool-denied', 'paid': [1, None]}, 0])
def test_a_response_is_the_tools_successful_result(way: Any, value: Any):
    desk, sink = Desk(), ListSink()
    ui = RecordingUI(RESPONSE.model_copy(update={'response': value}))

    result = way(desk, ApprovalController(policy=ANSWERS, ui=ui, audit=sink))

    assert desk.paid == []
    [part] = [each for each in parts(result) if each.tool_name == 'pay']
    assert (part.content, part.outcome) == (value, 'success')
    assert [(each['event'], each.get('decided_by')) for each in sink.entries] == [
        ('decision', ['ada']),
        ('outcome', None),
    ]
    assert sink.outcomes() == ['responded']


def parts(result: Any) -> list[ToolReturnPart]:
    return [part for message in result.all_messages() for part in message.parts if isinstance(part, ToolReturnPart)]


@each_way
def test_a_response_that_the_tool_does_not_allow_is_refused(way: Any):
    desk = Desk()

    result = way(desk, ApprovalController(policy={'pay': {'approval': 'required'}}, ui=RecordingUI(RESPONSE)))

    assert desk.paid == []
    [part] = parts(result)
    assert 'the tool does not allow the answer `respond`' in part.content


@each_way
def test_the_request_carries_the_schema_of_the_arguments(way: Any):
    ui = approve_all()

    way(Desk(), ApprovalController(policy=ANSWERS, ui=ui))

    has_run = way is not by_stopping  # the tools are unknown between two runs
    assert (ui.requests[0].args_schema or {}).get('properties') == (
        {'amount': {'type': 'integer'}} if has_run else None
    )


@pytest.mark.parametrize('way', [by_a_handler])
def test_an_edit_that_the_tool_cannot_take_is_asked_again(way: Any):
    desk = Desk()
    ui = ScriptedUI([ApprovalDecision(approved=True, override_args={'amount': each}) for each in ('many', 7)])

    way(desk, ApprovalController(policy=ANSWERS, ui=ui))

    ui.assert_done()
    assert desk.paid == [7]
    assert ui.requests[1].rejected_edit is not None
    assert 'the values do not match the schema of the tool: amount' in ui.requests[1].rejected_edit.problem


def test_a_response_to_a_tool_that_nothing_of_ours_surrounds_is_told_as_a_denial_and_the_tool_does_not_run():
    from pydantic_ai.toolsets import AbstractToolset

    desk = Desk()
    plain: Any = FunctionToolset([desk.pay])

    class Elsewhere(AbstractToolset[Any]):
        """Calls its functions itself, as the toolset of an MCP server does."""

        id = None

        async def get_tools(self, ctx: Any) -> Any:
            from dataclasses import replace

            return {
                name: replace(each, tool_def=replace(each.tool_def, kind='unapproved'), call_func=None)
                for name, each in (await plain.get_tools(ctx)).items()
            }

        async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
            return desk.pay(**tool_args)

    controller = ApprovalController(policy=ANSWERS, ui=RecordingUI(RESPONSE))
    capability: Any = HandleDeferredToolCalls(Approvals(controller, default='none'))
    agent = HostAgent(scripted([PAY], 'done'), toolsets=[Elsewhere()], capabilities=[capability])

    result = agent.run_sync('go')

    assert desk.paid == []
    assert [(each.content, each.outcome) for each in parts(result)] == [('paid by hand', 'denied')]


ASK = call('ask', '1', question='How old?')
UNKNOWN = "No function is configured for external calls of 'ask'."


@pytest.mark.parametrize(
    ('policy', 'function', 'answer', 'told'),
    [
        ({'ask': {'approval': 'required'}}, None, RESPONSE, ('paid by hand', 'success')),
        ({'ask': {'answers': ['respond']}}, None, RESPONSE, ('paid by hand', 'success')),
        ({'ask': {'approval': 'required'}}, str.upper, RESPONSE, ('paid by hand', 'success')),
        ({'ask': {'approval': 'required'}}, str.upper, True, ('HOW OLD?', 'success')),
        ({'ask': {'approval': 'required'}}, None, 'no idea', (denied_because('no idea'), 'failed')),
        ({'ask': {'approval': 'required', 'answers': ['approve']}}, None, True, (UNKNOWN, 'failed')),
        ({'ask': {'approval': 'none', 'answers': ['respond']}}, None, RESPONSE, (UNKNOWN, 'failed')),
        ({}, None, RESPONSE, (UNKNOWN, 'failed')),
        ({'ask': {'approval': 'blocked'}}, None, RESPONSE, ("The tool 'ask' is blocked by policy.", 'failed')),
    ],
)
def test_a_person_answers_an_external_call(policy: Any, function: Any, answer: Any, told: tuple[str, str]):
    agent = Agent(scripted([ASK], 'done'), toolsets=[external('ask')])
    functions = {} if function is None else {'ask': lambda question: function(question)}
    controller = ApprovalController(policy=policy, ui=RecordingUI(answer))

    result = agent.run_sync('go', deferred_tool_handler=Approvals(controller, external=functions, default='none'))

    assert returns(result.all_messages()) == {'1': told}


@pytest.mark.parametrize('answer', [True, ApprovalDecision(approved=True, override_args={'question': 'x'})])
def test_an_external_call_without_a_function_cannot_be_approved(answer: Any):
    agent = Agent(scripted([ASK], 'done'), toolsets=[external('ask')])
    controller = ApprovalController(policy={'ask': {'approval': 'required'}}, ui=RecordingUI(answer))

    result = agent.run_sync('go', deferred_tool_handler=Approvals(controller, default='none'))

    [(told, outcome)] = returns(result.all_messages()).values()
    assert outcome == 'failed'
    assert 'the tool does not allow the answer' in told


def test_a_question_of_a_tool_is_asked_without_a_rule():
    agent = Agent(scripted([call('age', '1')], 'done'))

    @agent.tool_plain
    def age() -> int:
        try:
            raise CallDeferred(kind='question')
        except TypeError:
            pytest.skip('this host has no questions')

    ui = RecordingUI(ApprovalDecision(approved=False, response=42))

    result = agent.run_sync('go', deferred_tool_handler=Approvals(ApprovalController(ui=ui), default='none'))

    assert returns(result.all_messages()) == {'1': (42, 'success')}
    assert ui.requests[0].answers == ('respond',)


def langchain_ways() -> list[Any]:
    def middleware(desk: Desk, controller: ApprovalController) -> Any:
        from langchain.agents import create_agent

        model = langchain.scripted([langchain.call('pay', '1', amount=10)], 'done')
        agent: Any = create_agent(model, [tool(desk.pay)], middleware=[ApprovalMiddleware(controller)])
        return langchain.results(agent.invoke({'messages': [('user', 'go')]})['messages'])

    def wrapper(desk: Desk, controller: ApprovalController) -> Any:
        wrapped = ApprovalToolWrapper(tool(desk.pay), controller)
        return langchain.results([wrapped.invoke(langchain.call('pay', '1', amount=10))])

    def asynchronous(desk: Desk, controller: ApprovalController) -> Any:
        wrapped = ApprovalToolWrapper(tool(desk.pay), controller)
        return langchain.results([asyncio.run(wrapped.ainvoke(langchain.call('pay', '1', amount=10)))])

    return [middleware, wrapper, asynchronous]


@pytest.mark.parametrize('way', langchain_ways())
@pytest.mark.parametrize(('value', 'text'), [('paid by hand', 'paid by hand'), ({'b': 1, 'a': 2}, '{"a":2,"b":1}')])
def test_a_response_is_the_message_that_answers_the_call_in_langchain(way: Any, value: Any, text: str):
    desk, sink = Desk(), ListSink()
    ui = RecordingUI(RESPONSE.model_copy(update={'response': value}))

    told = way(desk, ApprovalController(policy=ANSWERS, ui=ui, audit=sink))

    assert desk.paid == []
    assert told == [('pay', text, 'success')]
    assert sink.outcomes() == ['responded']
    assert (ui.requests[0].args_schema or {})['properties']['amount']['type'] == 'integer'


@pytest.mark.parametrize('is_async', [True, False])
def test_code_that_calls_a_wrapped_tool_gets_the_value(is_async: bool):
    desk = Desk()
    ui = RecordingUI(RESPONSE.model_copy(update={'response': {'paid': 1}}))
    wrapped = ApprovalToolWrapper(tool(desk.pay), ApprovalController(policy=ANSWERS, ui=ui))

    result = asyncio.run(wrapped.ainvoke({'amount': 1})) if is_async else wrapped.invoke({'amount': 1})

    assert (result, desk.paid) == ({'paid': 1}, [])


def test_an_edit_that_a_tool_of_langchain_cannot_take_is_asked_again():
    desk = Desk()
    ui = ScriptedUI([ApprovalDecision(approved=True, override_args={'amount': each}) for each in ('many', 7)])
    wrapped = ApprovalToolWrapper(tool(desk.pay), ApprovalController(policy=ANSWERS, ui=ui))

    assert wrapped.invoke({'amount': 1}).startswith('paid 7')

    ui.assert_done()
    assert ui.requests[1].rejected_edit is not None
    assert 'amount' in ui.requests[1].rejected_edit.problem


def test_approvers_elsewhere_read_the_extra_access():
    lines = ['runs OUTSIDE the sandbox, as you', 'program: /usr/bin/git']
    shown = ApprovalPresentation(type='command', content='git push', metadata={'extra_access': lines})
    request = request_for(tool_call_id='1', reason='Why.', presentation=shown)

    question = question_about(request, call='1', digest='d')

    wanted = 'Why.\nextra access: runs OUTSIDE the sandbox, as you\nextra access: program: /usr/bin/git'
    assert question['action']['description'].endswith(wanted)
    assert conventional(request)['approval_reason'] == wanted
    assert 'approval_reason' not in conventional(request_for())
