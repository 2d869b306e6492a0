"""The OpenAI Agents SDK, with its own run loop and a model that follows a script."""

import asyncio
import json
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import pytest
from agents import (
    Agent,
    CodeInterpreterTool,
    CustomTool,
    FunctionTool,
    LocalShellTool,
    RunConfig,
    Runner,
    ToolExecutionConfig,
    ToolOutputText,
    function_tool,
    handoff,
    set_trace_processors,
    set_tracing_disabled,
)
from agents.lifecycle import AgentHooks
from agents.mcp import MCPServerStdio
from agents.testing import ScriptedModel, assistant_message, function_call
from agents.tool import ProgrammaticToolCallingTool
from agents.tool_context import ToolContext
from agents.tracing import trace
from pydantic import AfterValidator, BaseModel, Field, SecretStr
from tool_approval.core.calls import denied_because
from tool_approval.core.gate import CHANGED, DENIED, EXPIRED
from tool_approval.integrations.openai_agents import guarded, guarded_tool
from tool_approval.storage import FileApprovalStore
from tool_approval.testing import RecordingUI, ScriptedUI

from tests.approval.parts import ListSink
from tool_approval import (
    ApprovalController,
    ApprovalDecision,
    ApprovalMemory,
    Approvals,
    MissingExtraError,
    requires_approval,
    simple_approval_request,
)

from .pydantic_ai import mcp_server


@pytest.fixture(autouse=True)
def no_exporter():
    """Traces stay in this process."""
    set_trace_processors([])
    yield
    set_trace_processors([])


def call(name: str, call_id: str = '1', /, **args: Any) -> Any:
    return function_call(name, args, call_id=call_id)


class Desk:
    def __init__(self) -> None:
        self.ran: list[Any] = []

    @property
    def write(self) -> FunctionTool:
        ran = self.ran

        @function_tool
        def write(path: str, text: str = 'empty') -> str:
            """Write a file."""
            ran.append((path, text))
            return f'wrote {path}'

        return write

    @property
    def read(self) -> FunctionTool:
        ran = self.ran

        @function_tool
        async def read(path: str) -> str:
            """Read a file."""
            ran.append(path)
            return f'the text of {path}'

        return read


def run_agent(agent: Any, given: Any, **options: Any) -> Any:
    # `Runner.run_sync` leaves an event loop open.
    return asyncio.run(Runner.run(agent, given, **options))


def told(result: Any) -> dict[str, Any]:
    """What the model is told of each call."""
    items = [item.raw_item for item in result.new_items if item.type == 'tool_call_output_item']
    return {item['call_id']: item['output'] for item in items}


def run(
    tools: Any, approvals: Any, *calls: Any, config: Any = None, session: Any = None, **options: Any
) -> dict[str, Any]:
    agent = Agent('clerk', tools=list(tools), model=ScriptedModel([list(calls), [assistant_message('done')]]))
    return told(run_agent(guarded(agent, approvals, session=session, **options), 'go', run_config=config))


def test_each_call_is_decided_by_the_policy_or_a_person():
    desk, sink = Desk(), ListSink()
    rules = {'read': {'approval': 'none'}, 'drop': {'approval': 'blocked'}}
    ui = ScriptedUI([True, 'Keep that one.'])

    @function_tool
    def drop() -> str:
        desk.ran.append('drop')
        return 'dropped'

    result = run(
        [desk.read, desk.write, drop],
        Approvals(rules, ui=ui, log=sink),
        call('read', '1', path='a'),
        call('write', '2', path='b'),
        call('write', '3', path='c', text='x'),
        call('drop', '4'),
        config=RunConfig(tool_execution=ToolExecutionConfig(max_function_tool_concurrency=1)),
    )

    ui.assert_done()
    assert result == {
        '1': 'the text of a',
        '2': 'wrote b',
        '3': denied_because('Keep that one.'),
        '4': "The tool 'drop' is blocked by policy.",
    }
    assert desk.ran == ['a', ('b', 'empty')]
    assert [request.args for request in ui.requests] == [{'path': 'b', 'text': 'empty'}, {'path': 'c', 'text': 'x'}]
    assert [request.facts.caller for request in ui.requests] == ['clerk', 'clerk']
    assert [(each['event'], each.get('outcome')) for each in sink.entries] == [
        ('decision', None),
        ('outcome', 'executed'),
        ('decision', None),
        ('blocked', None),
    ]
    assert [each['event'] for each in sink.unasked] == ['unasked', 'outcome']


@pytest.mark.parametrize('streams', [False, True])
def test_a_streaming_run_asks_too(streams: bool):
    desk = Desk()
    agent = Agent(
        'clerk', tools=[desk.write], model=ScriptedModel([[call('write', path='a')], [assistant_message('')]])
    )
    ui = ScriptedUI(['No.'])

    async def go() -> Any:
        copied = guarded(agent, Approvals(ui=ui))
        if not streams:
            return await Runner.run(copied, 'go')
        streamed = Runner.run_streamed(copied, 'go')
        async for _ in streamed.stream_events():
            pass
        return streamed

    assert told(asyncio.run(go())) == {'1': denied_because('No.')}
    assert desk.ran == []


def test_a_denial_without_a_note_says_that_the_call_was_denied():
    desk = Desk()

    result = run([desk.write], Approvals(ui=RecordingUI(False)), call('write', path='a'))

    assert (result, desk.ran) == ({'1': DENIED}, [])


def test_without_a_ui_nothing_runs():
    desk = Desk()

    result = run([desk.write], Approvals(), call('write', path='a'))

    assert desk.ran == []
    assert 'denied' in result['1'] or 'approv' in result['1']


def edit(**args: Any) -> ApprovalDecision:
    return ApprovalDecision(approved=True, override_args=args)


def test_an_edit_runs_and_the_model_reads_what_ran():
    desk, sink, seen = Desk(), ListSink(), []

    class Hooks(AgentHooks):
        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
            seen.append(context.tool_arguments)

    agent = Agent(
        'clerk',
        tools=[desk.write],
        hooks=Hooks(),
        model=ScriptedModel([[call('write', path='a')], [assistant_message('done')]]),
    )
    approvals = Approvals(ui=RecordingUI(edit(path='b', text='new')), log=sink)

    result = told(run_agent(guarded(agent, approvals), 'go'))

    assert desk.ran == [('b', 'new')]
    assert result['1'] == (
        'wrote b\n\n[The approver changed the arguments of this call, which ran with: {"path":"b","text":"new"}]'
    )
    assert [json.loads(each) for each in seen] == [{'path': 'b', 'text': 'new'}]
    assert sink.outcomes() == ['executed']


def test_without_tells_changes_the_result_stays():
    desk = Desk()
    approvals = Approvals(ui=RecordingUI(edit(path='b', text='new')), tells_changes=False)

    assert run([desk.write], approvals, call('write', path='a')) == {'1': 'wrote b'}


@pytest.mark.parametrize(
    ('value', 'expected'),
    [
        (ToolOutputText(text='x'), ['x', '[The']),
        ([ToolOutputText(text='x'), {'type': 'text', 'text': 'y'}], ['x', 'y', '[The']),
        ([1, 2], '[1, 2]\n\n[The'),
        ([], '[]\n\n[The'),
    ],
)
def test_the_notice_fits_the_kind_of_result(value: Any, expected: Any):
    @function_tool
    def show(number: int) -> Any:
        return value

    result = run([show], Approvals(ui=RecordingUI(edit(number=2))), call('show', number=1))['1']

    if isinstance(expected, str):
        assert result.startswith(expected)
    else:
        assert [each['text'][: len(text)] for each, text in zip(result, expected, strict=True)] == expected


def test_an_edit_that_the_tool_cannot_take_is_asked_again():
    paid = []

    @function_tool
    def pay(euros: int) -> str:
        paid.append(euros)
        return 'paid'

    ui = ScriptedUI([edit(euros='many'), edit(euros=7)])

    assert run([pay], Approvals(ui=ui), call('pay', euros=1))['1'].startswith('paid')

    ui.assert_done()
    assert paid == [7]
    assert ui.requests[1].rejected_edit is not None
    assert 'the values do not match the schema of the tool: euros' in ui.requests[1].rejected_edit.problem


class Transfer(BaseModel):
    account: str = Field('DEFAULT', validation_alias='iban')
    when: date = date(2026, 1, 2)


def test_values_under_an_alias_and_of_other_types_are_shown_and_edited_as_they_run():
    paid = []

    @function_tool(strict_mode=False)
    def pay(to: Transfer, euros: Annotated[int, AfterValidator(lambda each: each * 100)], memo: str = '') -> str:
        paid.append((to.account, to.when, euros, memo))
        return 'paid'

    ui = ScriptedUI([edit(to={'account': 'SAFE', 'when': '2026-01-02'}, euros=1000, memo='x')])

    run([pay], Approvals(ui=ui), call('pay', to={'iban': 'EVIL'}, euros=10))

    assert ui.requests[0].args == {'to': {'account': 'EVIL', 'when': '2026-01-02'}, 'euros': 1000, 'memo': ''}
    assert paid == [('SAFE', date(2026, 1, 2), 1000, 'x')]


def test_a_secret_is_neither_shown_nor_lost():
    used = []

    @function_tool(strict_mode=False)
    def log_in(user: str, password: SecretStr) -> str:
        used.append((user, password.get_secret_value()))
        return 'in'

    ui = ScriptedUI([edit(user='bob', password='[hidden]')])

    run([log_in], Approvals(ui=ui), call('log_in', user='ada', password='hunter2'))

    assert ui.requests[0].args['password'] == '[hidden]'
    assert used == [('bob', 'hunter2')]


@pytest.mark.parametrize(
    ('arguments', 'problem'),
    [
        ('{"path": 5}', 'path: Input should be a valid string'),
        ('{}', 'path: Field required'),
        ('[1]', 'they are not a JSON object'),
        ('{"path"', 'they are not valid JSON'),
        ('{"path": "a", "text": NaN}', 'text'),
    ],
)
def test_arguments_that_cannot_be_judged_are_refused_without_a_question(arguments: str, problem: str):
    desk, ui = Desk(), ScriptedUI([])
    made = function_call('write', {}, call_id='1').model_copy(update={'arguments': arguments})

    result = run([desk.write], Approvals(ui=ui), made)

    assert result['1'].startswith("The arguments of 'write' are invalid (")
    assert problem in result['1']
    assert (desk.ran, ui.requests) == ([], [])


@pytest.mark.parametrize('arguments', ['[' * 100_000, '{"path": "\\ud800"}'])
def test_arguments_that_the_sdk_cannot_handle_end_the_run_or_are_refused(arguments: str):
    desk, ui = Desk(), ScriptedUI([])
    made = function_call('write', {}, call_id='1').model_copy(update={'arguments': arguments})
    tool = guarded_tool(desk.write, Approvals(ui=ui))

    with pytest.raises((RecursionError, UnicodeEncodeError)):
        run([tool], Approvals(), made)
    context = ToolContext(None, tool_name='write', tool_call_id='1', tool_arguments=arguments)
    refused = asyncio.run(tool.on_invoke_tool(context, arguments))

    assert refused.startswith("The arguments of 'write' are invalid (")
    assert (desk.ran, ui.requests) == ([], [])


def test_a_validator_that_fails_in_any_way_refuses_the_call():
    def fails(value: str) -> str:
        raise KeyError(value)

    @function_tool
    def write(path: Annotated[str, AfterValidator(fails)]) -> str:
        return 'wrote'

    result = run([write], Approvals(ui=ScriptedUI([])), call('write', path='secret'))

    assert result['1'] == (
        "The arguments of 'write' are invalid (the values could not be validated (KeyError)), so the call was not run."
    )


@pytest.mark.parametrize('rules', [{}, {'write': {'approval': 'none'}}])
def test_a_value_that_is_different_each_time_does_not_run(rules: Any):
    numbers, ran, sink = iter(range(100)), [], ListSink()

    @function_tool(strict_mode=False)
    def write(number: int = Field(default_factory=lambda: next(numbers))) -> str:
        ran.append(number)
        return 'wrote'

    result = run([write], Approvals(rules, ui=RecordingUI(True), log=sink), call('write'))

    assert (result, ran) == ({'1': CHANGED}, [])
    assert sink.outcomes() == ['refused'] or [each['event'] for each in sink.entries] == ['blocked']


def test_a_check_that_changes_what_it_was_shown_changes_nothing_that_runs():
    ran: list[Any] = []

    def write(paths: list[str]) -> str:
        ran.extend(paths)
        return 'wrote'

    def needs_approval(name: str, args: dict[str, Any]) -> bool:
        args['paths'].append('evil')
        return False

    write.needs_approval = needs_approval  # pyright: ignore[reportFunctionMemberAccess]

    run([function_tool(write)], Approvals(), call('write', paths=['a']))

    assert ran in ([], ['a'])


def test_a_rule_that_blocks_while_the_person_is_asked_holds():
    ran, is_closed = [], []

    def write(path: str) -> str:
        ran.append(path)
        return 'wrote'

    def check_approval(context: Any) -> Any:
        if is_closed:
            raise PermissionError('Closed by now.')
        return simple_approval_request(context.tool_name, context.args)

    write.check_approval = check_approval  # pyright: ignore[reportFunctionMemberAccess]

    class Closing:
        def choose(self, request: Any, *, mode: Any) -> ApprovalDecision:
            is_closed.append(True)
            return ApprovalDecision(approved=True)

    assert run([function_tool(write)], Approvals(ui=Closing()), call('write', path='a')) == {'1': 'Closed by now.'}
    assert ran == []


def test_an_approval_that_expires_before_the_call_runs_does_not_run():
    desk, clock = Desk(), [datetime(2026, 3, 4, tzinfo=UTC)]

    def check(context: Any) -> Any:
        clock[0] += timedelta(days=2)

    class Slow:
        def choose(self, request: Any, *, mode: Any) -> ApprovalDecision:
            return ApprovalDecision(approved=True, decided_at=clock[0])

    controller = ApprovalController(
        ui=Slow(), now=lambda: clock[0], policy=None, valid_for=timedelta(days=1), memory=ApprovalMemory()
    )

    @function_tool
    @requires_approval(description=lambda args: check(None) or 'write')
    def write(path: str) -> str:
        desk.ran.append(path)
        return 'wrote'

    assert run([write], Approvals(controller), call('write', path='a')) == {'1': EXPIRED}
    assert desk.ran == []


def test_a_mark_on_the_function_asks_and_a_failing_tool_is_logged_as_failed():
    sink = ListSink()

    @function_tool
    @requires_approval()
    def write(path: str) -> str:
        raise OSError('disk full')

    @function_tool
    async def other() -> str:
        return 'ran'

    ui = RecordingUI(True)
    approvals = Approvals(ui=ui, log=sink, default='none')

    result = run([write, other], approvals, call('write', path='a'), call('other', '2'))

    assert [request.tool_name for request in ui.requests] == ['write']
    assert 'error' in result['1'].lower()
    assert result['2'] == 'ran'
    assert sink.outcomes() == ['failed']


def test_a_failure_that_ends_the_run_is_logged():
    sink = ListSink()

    @function_tool(failure_error_function=None)
    def write(path: str) -> str:
        raise OSError('disk full')

    with pytest.raises(Exception, match='disk full'):
        run([write], Approvals(ui=RecordingUI(True), log=sink), call('write', path='a'))

    assert sink.outcomes() == ['failed']


RESPOND = {'ask': {'approval': 'required', 'answers': ['approve', 'respond']}}


@pytest.mark.parametrize(('value', 'text'), [('forty-two', 'forty-two'), ({'b': 1, 'a': 2}, '{"a":2,"b":1}')])
def test_a_person_answers_in_the_tools_place(value: Any, text: str):
    ran, sink = [], ListSink()

    @function_tool
    def ask(question: str) -> str:
        ran.append(question)
        return ''

    ui = RecordingUI(ApprovalDecision(approved=False, response=value))

    assert run([ask], Approvals(RESPOND, ui=ui, log=sink), call('ask', question='?')) == {'1': text}
    assert ran == []
    assert sink.outcomes() == ['responded']


class Answer(BaseModel):
    number: int


def answering(**options: Any) -> FunctionTool:
    @function_tool(output_type=Answer, **options)
    async def ask(question: str) -> Answer:
        if question == 'slow':
            await asyncio.sleep(60)
        if question == 'fail':
            raise ValueError('no')
        return Answer(number=1)

    return ask


@pytest.mark.parametrize(
    ('answer', 'expected'),
    [
        (True, '{"number":1}'),
        (edit(question='!'), '{"number":1}'),
        (edit(question='fail'), 'An error'),
        ('No.', denied_because('No.')),
        (ApprovalDecision(approved=False, response={'number': 2}), '{"number":2}'),
        (ApprovalDecision(approved=False, response='two'), 'two'),
    ],
)
def test_a_refusal_needs_no_form(answer: Any, expected: str):
    rules = {'ask': {'approval': 'required', 'answers': ['approve', 'respond', 'edit']}}

    result = run([answering()], Approvals(rules, ui=ScriptedUI([answer])), call('ask', question='?'))

    assert result['1'].startswith(expected)


def test_a_tools_timeout_does_not_count_the_time_for_the_answer():
    class Slow:
        async def choose(self, request: Any, *, mode: Any) -> ApprovalDecision:
            await asyncio.sleep(0.3)
            return ApprovalDecision(approved=True)

    sink, tool = ListSink(), answering(timeout=0.2)
    approvals = Approvals(ui=Slow(), log=sink)

    result = run([tool], approvals, call('ask', '1', question='?'), call('ask', '2', question='slow'))

    assert result['1'] == '{"number":1}'
    assert 'timed out' in result['2']
    assert sorted(sink.outcomes()) == ['executed', 'failed']
    assert tool.timeout_seconds == 0.2


def test_sessions():
    desk = Desk()
    approvals = Approvals(ui=ScriptedUI(['s', 'Not again.', 's', 'Nor here.']))

    def go(**options: Any) -> Any:
        return run([desk.write], approvals, call('write', path='a'), **options)['1']

    assert [go(session='Ada'), go(session=lambda context: 'Ada'), go(session='Bob')] == [
        'wrote a',
        'wrote a',
        denied_because('Not again.'),
    ]
    thread = RunConfig(group_id='thread')
    assert [go(config=thread), go(config=thread), go()] == ['wrote a', 'wrote a', denied_because('Nor here.')]


def test_a_call_for_which_nothing_is_left_of_its_approval_does_not_run():
    class OthersAreFaster(ApprovalMemory):
        """Another process takes a use right before each call of this one."""

        def take(self, approval_id: str, request: Any) -> None:
            super().take(approval_id, request)
            super().take(approval_id, request)

    def bounded(request: Any) -> ApprovalDecision:
        kind = request.remember_options[0].kind
        return ApprovalDecision(approved=True, remember='session', remember_option=kind)

    desk, sink = Desk(), ListSink()
    approvals = Approvals(
        {'write': {'remember': [{'uses': 2}]}}, ui=ScriptedUI([bounded]), remember=OthersAreFaster(), log=sink
    )

    told_of = [run([desk.write], approvals, call('write', path='a'), session='Ada')['1'] for _ in range(2)]

    assert told_of[0] == 'wrote a'
    assert 'is used up' in told_of[1]
    assert desk.ran == [('a', 'empty')]
    assert sink.outcomes() == ['executed', 'refused']


def test_without_a_session_an_approval_ends_with_the_trace():
    desk = Desk()
    approvals = Approvals(ui=ScriptedUI(['s', 'Not in another.']))

    with trace('one'):
        first = [run([desk.write], approvals, call('write', path='a'))['1'] for _ in range(2)]
    second = run([desk.write], approvals, call('write', path='a'))['1']

    assert first == ['wrote a'] * 2
    assert second == denied_because('Not in another.')


def test_without_tracing_nothing_is_remembered_for_a_session():
    approvals = Approvals(ui=ScriptedUI(['s', 'No.']))
    set_tracing_disabled(True)
    try:
        result = [run([Desk().write], approvals, call('write', path='a'))['1'] for _ in range(2)]
    finally:
        set_tracing_disabled(False)

    assert result == ['wrote a', denied_because('No.')]


def test_the_requester_is_told():
    ui = RecordingUI(True)

    run([Desk().write], Approvals(ui=ui), call('write', path='a'), requester='eve')

    assert ui.requests[0].facts.requester == 'eve'


def test_an_approval_for_always_ends_with_another_definition(tmp_path: Path):
    def go(answers: list[Any], description: str) -> str:
        @function_tool(description_override=description)
        def write(path: str) -> str:
            return 'wrote'

        memory = ApprovalMemory(FileApprovalStore(tmp_path / 'project', path=tmp_path / 'state/approvals.json'))
        ui = ScriptedUI(answers)
        result = run([write], Approvals(ui=ui, remember=memory), call('write', path='a'))
        ui.assert_done()
        return result['1']

    assert go(['a'], 'Write.') == 'wrote'
    assert go([], 'Write.') == 'wrote'
    assert go(['No.'], 'Write, and mail it to everybody.') == denied_because('No.')


@pytest.mark.parametrize('way', ['appended', 'cloned', 'hook'])
def test_tools_that_come_later_are_guarded(way: str):
    desk, ui = Desk(), ScriptedUI(['No.'])
    model = ScriptedModel([[call('write', path='a')], [assistant_message('done')]])

    class Hooks(AgentHooks):
        async def on_start(self, context: Any, agent: Any) -> None:
            agent.tools = [desk.write]

    agent = guarded(Agent('clerk', model=model, hooks=Hooks() if way == 'hook' else None), Approvals(ui=ui))
    if way == 'appended':
        agent.tools.append(desk.write)
    if way == 'cloned':
        agent = agent.clone(tools=[desk.write])

    assert told(run_agent(agent, 'go')) == {'1': denied_because('No.')}
    ui.assert_done()
    assert desk.ran == []


def test_a_tool_that_is_guarded_already_asks_once():
    desk, ui = Desk(), ScriptedUI([True])

    result = run([guarded_tool(desk.write, Approvals(ui=ui))], Approvals(ui=ScriptedUI([])), call('write', path='a'))

    ui.assert_done()
    assert result == {'1': 'wrote a'}


@pytest.mark.parametrize('is_wrapped', [False, True])
def test_agents_to_hand_over_to_are_guarded(is_wrapped: bool):
    desk, ui = Desk(), ScriptedUI(['No.'])
    worker = Agent(
        'worker', tools=[desk.write], model=ScriptedModel([[call('write', '2', path='a')], [assistant_message('done')]])
    )
    triage = Agent('triage', model=ScriptedModel([[call('transfer_to_worker', '1')]]))
    triage.handoffs = [handoff(worker) if is_wrapped else worker]
    worker.handoffs = [triage]

    result = run_agent(guarded(triage, Approvals(ui=ui)), 'go')

    ui.assert_done()
    assert (told(result)['2'], desk.ran) == (denied_because('No.'), [])
    assert ui.requests[0].facts.caller == 'worker'


def test_an_agent_that_is_guarded_already_keeps_its_own_rules():
    desk = Desk()
    worker = guarded(
        Agent('worker', tools=[desk.write], model=ScriptedModel([[call('write', '2', path='a')], []])),
        Approvals(mode='strict'),
    )

    assert guarded(worker, Approvals({'*': {'approval': 'none'}})) is worker


def test_an_agent_as_a_tool_is_asked_about_as_one_call_and_its_own_tools_if_it_is_guarded():
    desk, ui = Desk(), ScriptedUI([True, 'No.'])
    approvals = Approvals(ui=ui)
    worker = Agent(
        'worker', tools=[desk.write], model=ScriptedModel([[call('write', '2', path='a')], [assistant_message('ok')]])
    )
    tool = guarded(worker, approvals).as_tool('work', 'Work.')

    result = run([tool], approvals, call('work', input='go'))

    ui.assert_done()
    assert result == {'1': 'ok'}
    assert [(each.tool_name, each.facts.caller) for each in ui.requests] == [('work', 'clerk'), ('write', 'worker')]
    assert desk.ran == []


def test_the_tools_of_an_mcp_server_are_guarded(tmp_path: Path):
    (tmp_path / 'a').write_text('the note a')
    ui = ScriptedUI(['No.'])
    calls = [call('read_note', '1', name='a'), call('write_note', '2', name='a', text='x')]

    async def go() -> Any:
        async with MCPServerStdio(
            {'command': sys.executable, 'args': [str(mcp_server.__file__), str(tmp_path)]},
            client_session_timeout_seconds=60,
        ) as server:
            model = ScriptedModel([calls, [assistant_message('done')]])
            agent = Agent('clerk', mcp_servers=[server], model=model)
            return await Runner.run(guarded(agent, Approvals({'read_*': {'approval': 'none'}}, ui=ui)), 'go')

    result = told(asyncio.run(go()))

    ui.assert_done()
    assert 'the note a' in str(result['1'])
    assert result['2'] == denied_because('No.')
    assert (tmp_path / 'a').read_text() == 'the note a'


def test_a_tool_that_pauses_the_run_is_asked_about_when_it_goes_on():
    ran, ui = [], ScriptedUI(['No.', True])

    @function_tool(needs_approval=True)
    def write(path: str) -> str:
        ran.append(path)
        return 'wrote'

    calls = [call('write', '1', path='a'), call('write', '2', path='b')]
    agent = guarded(
        Agent('clerk', tools=[write], model=ScriptedModel([calls, [assistant_message('done')]])), Approvals(ui=ui)
    )

    paused = run_agent(agent, 'go')
    asked_before = len(ui.requests)
    state = paused.to_state()
    for each in paused.interruptions:
        state.approve(each)
    one_by_one = RunConfig(tool_execution=ToolExecutionConfig(max_function_tool_concurrency=1))
    result = told(run_agent(agent, state, run_config=one_by_one))

    assert asked_before == 0
    ui.assert_done()
    assert (result['1'], result['2'], ran) == (denied_because('No.'), 'wrote', ['b'])


def test_a_tool_that_was_made_by_hand_or_from_an_object_shows_what_the_model_gave():
    ran: list[Any] = []

    async def invoke(context: Any, arguments: str) -> str:
        ran.append(json.loads(arguments))
        return 'ran'

    schema = {'type': 'object', 'properties': {'n': {'type': 'integer'}}, 'required': ['n']}
    tool = FunctionTool('by_hand', 'By hand.', schema, invoke, strict_json_schema=False)

    class Adds:
        def __call__(self, n: int, m: int = 2) -> str:
            ran.append((n, m))
            return 'added'

    ui = ScriptedUI([edit(n=2), True])
    config = RunConfig(tool_execution=ToolExecutionConfig(max_function_tool_concurrency=1))

    result = run(
        [tool, function_tool(Adds(), strict_mode=False)],
        Approvals(ui=ui),
        call('by_hand', '1', n=1),
        call('Adds', '2', n=1),
        config=config,
    )

    assert ran == [{'n': 2}, (1, 2)]
    assert result['1'].startswith('ran\n\n[The approver changed')
    assert ui.requests[1].args == {'n': 1}


def test_a_tool_whose_definition_has_no_json_form_has_no_digest():
    async def invoke(context: Any, arguments: str) -> str:
        return 'ran'

    tool = FunctionTool('odd', 'Odd \ud800.', {'type': 'object'}, invoke, strict_json_schema=False)
    ui = RecordingUI(True)

    assert run([tool], Approvals(ui=ui), call('odd')) == {'1': 'ran'}
    assert ui.requests[0].facts.tool_digest is None


def test_a_test_replaces_the_person():
    approvals = Approvals(ui=ScriptedUI([]))

    with approvals.testing(ScriptedUI(['No.'])) as log:
        result = run([Desk().write], approvals, call('write', path='a'))

    assert result == {'1': denied_because('No.')}
    assert [each['event'] for each in log] == ['question', 'decision']


def test_what_cannot_be_guarded_is_refused():
    async def apply(*args: Any) -> str:
        return ''

    @function_tool
    def plain() -> str:
        return ''

    class Own(Agent[Any]):
        pass

    class Ledger:
        async def execute(self, *args: Any, **kwargs: Any) -> Any: ...

    for tool in (LocalShellTool(executor=lambda request: ''), CustomTool('patch', 'x', apply)):
        with pytest.raises(TypeError, match=f'a {type(tool).__name__} cannot be guarded'):
            guarded(Agent('clerk', tools=[tool]), Approvals())
    with pytest.raises(TypeError, match='a Own may bring tools of its own'):
        guarded(Own('clerk'), Approvals())
    with pytest.raises(TypeError, match='`tool` must be a `FunctionTool`'):
        guarded_tool(plain.__wrapped__, Approvals())  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match='`approvals` must be an `Approvals`'):
        guarded(Agent('clerk'), ApprovalController())  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match='cannot go through a ledger'):
        guarded(Agent('clerk'), Approvals(ledger=Ledger()))


def test_tools_of_the_provider_pass():
    tools = [ProgrammaticToolCallingTool(), CodeInterpreterTool({'type': 'code_interpreter', 'container': 'c'})]

    assert guarded(Agent('clerk', tools=[*tools]), Approvals()).tools == tools


def test_the_error_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(sys.modules, 'tool_approval.integrations.openai_agents')
    monkeypatch.setitem(sys.modules, 'agents', None)

    with pytest.raises(MissingExtraError, match=r"pip install './tool_approval\[openai-agents\]'"):
        __import__('tool_approval.integrations.openai_agents')


def test_core_imports_without_the_sdk():
    check = 'import sys; sys.modules.update(agents=None, openai=None); import tool_approval; print(1)'

    ended = subprocess.run([sys.executable, '-c', check], capture_output=True, text=True, timeout=60)

    assert (ended.stdout, ended.stderr) == ('1\n', '')
