"""An agent that asks while its run waits: who is asked about what, what runs, and what the model is told."""

import asyncio
from typing import Any

import pytest
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, InvalidToolCall, ToolMessage
from langchain_core.tools import ToolException, tool
from langgraph.types import Command
from pydantic import BaseModel
from tool_approval.core.calls import denied_because
from tool_approval.core.gate import DENIED
from tool_approval.integrations.langchain import ApprovalMiddleware
from tool_approval.testing import RecordingUI, ScriptedUI

from tests.approval.parts import ListSink
from tool_approval import (
    ApprovalController,
    AuditError,
    requires_approval,
)

from .scripted import GO, Runner, ScriptedModel, WaitingUI, call, change, results, scripted

CHANGED = '[The approver changed the arguments of this call, which ran with: {"content":"new","path":"b"}]'
WRITE = [call('write', '1', path='a', content='old')]


def test_an_approved_call_runs_and_the_model_gets_its_result(run, files):
    ui = ScriptedUI([True])
    model = scripted([call('read', '1', path='a')], 'done')

    told = run(model, files.tools(), ApprovalController(ui=ui))

    ui.assert_done()
    assert files.ran == ['read a']
    assert told == [('read', 'content of a', 'success')]
    assert len(model.told) == 2


def test_a_denied_call_does_not_run_and_the_model_gets_the_note_verbatim(run, files):
    note = 'Not this one: {path}\n<b>ask</b> Kim.'
    model = scripted(WRITE, 'done')

    told = run(model, files.tools(), ApprovalController(ui=ScriptedUI([note])))

    assert files.ran == []
    assert told == [('write', denied_because(note), 'error')]
    assert results(model.told[1]) == told


NEW = change(path='b', content='new')
FAILED_PROMPT = 'The approval prompt failed (RuntimeError), so the call was denied.'
STRICT = (
    'Strict mode: calls that need approval are denied without asking anyone. Use the mode `interactive` to be asked, '
    'or add a rule that allows such calls.'
)


BLOCKING = {'policy': {'wr*': {'approval': 'blocked'}}}

DECISIONS = {
    'denied without a note': ({}, [False], [], (DENIED, 'error')),
    'changed': ({}, [NEW], ['write b new'], (f'written\n\n{CHANGED}', 'success')),
    'blocked': (BLOCKING, [], [], ("The tool 'write' is blocked by policy.", 'error')),
    'strict': ({'mode': 'strict'}, [], [], (STRICT, 'error')),
    'all approved': ({'mode': 'approve_all'}, [], ['write a old'], ('written', 'success')),
    'no approver': ({'ui': None}, [], [], ('There is no approver to ask, so the call was denied.', 'error')),
    'a UI that fails': ({}, [RuntimeError('secret')], [], (FAILED_PROMPT, 'error')),
}


@pytest.mark.parametrize(('controller', 'answers', 'ran', 'told'), DECISIONS.values(), ids=DECISIONS)
def test_the_decision_is_what_runs_and_what_the_model_is_told(run, files, controller, answers, ran, told):
    ui = ScriptedUI(answers)

    given = run(scripted(WRITE, 'done'), files.tools(), ApprovalController(**{'ui': ui, **controller}))

    ui.assert_done()
    assert files.ran == ran
    assert given == [('write', *told)]


def test_all_calls_of_a_response_are_decided_before_any_of_them_runs(run, files):
    asked = []

    def answer(request):
        asked.append((request.metadata['position'], request.metadata['batch_size'], list(files.ran)))
        return request.args['path'] != 'b'

    model = scripted([call('read', '1', path='a'), call('read', '2', path='b'), call('write', '3', path='c')], 'done')

    told = run(model, files.tools(), ApprovalController(ui=RecordingUI(answer)))

    assert sorted(asked) == [(1, 3, []), (2, 3, []), (3, 3, [])]
    assert sorted(files.ran) == ['read a', 'write c nothing']
    assert sorted(told) == [
        ('read', DENIED, 'error'),
        ('read', 'content of a', 'success'),
        ('write', 'written', 'success'),
    ]


def test_each_response_is_a_batch_of_its_own_also_if_the_model_repeats_its_ids(run, files):
    ui = ScriptedUI([True, 'Once is enough.'])
    model = scripted([call('read', '1', path='a')], [call('read', '1', path='a')], 'done')

    told = run(model, files.tools(), ApprovalController(ui=ui))

    ui.assert_done()
    assert [request.metadata['batch_size'] for request in ui.requests] == [1, 1]
    assert files.ran == ['read a']
    assert told == [('read', 'content of a', 'success'), ('read', denied_because('Once is enough.'), 'error')]


def test_a_person_sees_the_arguments_with_defaults_and_without_what_the_tool_would_ignore(run, files):
    ui = ScriptedUI([False])

    run(
        scripted([call('write', '1', path='a', note='an admin approved this')], 'done'),
        files.tools(),
        ApprovalController(ui=ui),
    )

    [request] = ui.requests
    assert request.args == {'path': 'a', 'content': 'nothing'}
    assert request.description == "write(path='a', content='nothing')"
    assert request.tool_call_id == '1'


def test_the_model_is_not_told_of_changes_where_that_is_switched_off(run, files):
    controller = ApprovalController(ui=ScriptedUI([NEW]))

    told = run(scripted(WRITE, 'done'), files.tools(), controller, tells_changes=False)

    assert files.ran == ['write b new']
    assert told == [('write', 'written', 'success')]


def test_the_response_in_the_history_stays_as_the_model_made_it(run, files):
    controller = ApprovalController(ui=ScriptedUI([NEW]))

    messages = run.invoke(run.agent(scripted(WRITE, 'done'), files.tools(), controller))

    [made] = [made for message in messages if isinstance(message, AIMessage) for made in message.tool_calls]
    assert made['args'] == {'path': 'a', 'content': 'old'}


@pytest.mark.parametrize('is_list', [False, True])
def test_a_result_that_is_a_command_tells_of_the_change_as_well(run, is_list):
    @tool
    def write(path: str, content: str) -> Any:
        """Write a file."""
        said = Command(
            update={'messages': [ToolMessage('written', tool_call_id='1'), ToolMessage('-', tool_call_id='x')]}
        )
        return [said] if is_list else said

    controller = ApprovalController(ui=ScriptedUI([NEW]))

    told = run(scripted(WRITE, 'done'), [write], controller)

    assert [content for _, content, _ in told] == [f'written\n\n{CHANGED}', '-']


def test_a_result_of_content_blocks_gets_the_notice_as_a_block(run):
    @tool
    def write(path: str, content: str) -> Any:
        """Write a file."""
        return [{'type': 'text', 'text': 'written'}]

    controller = ApprovalController(ui=ScriptedUI([NEW]))

    told = run(scripted(WRITE, 'done'), [write], controller)

    assert told == [('write', [{'type': 'text', 'text': 'written'}, {'type': 'text', 'text': CHANGED}], 'success')]


def test_an_artifact_survives_the_notice(run):
    @tool(response_format='content_and_artifact')
    def write(path: str, content: str) -> Any:
        """Write a file."""
        return 'written', {'bytes': 3}

    controller = ApprovalController(ui=ScriptedUI([NEW]))

    messages = run.invoke(run.agent(scripted(WRITE, 'done'), [write], controller))

    assert [each.artifact for each in messages if isinstance(each, ToolMessage)] == [{'bytes': 3}]


MISFIT = 'the values do not match the schema of the tool: path: Field required'


@pytest.mark.parametrize(
    ('changed', 'decisions', 'reason'),
    [
        pytest.param(
            change(content='new'),
            [True],
            f"The approver's arguments are invalid ({MISFIT}), so the call was not run.",
            id='they do not fit the tool',
        ),
        pytest.param(change(path='/etc/hosts'), [True, False], 'The system is not yours.', id='the tool blocks them'),
    ],
)
def test_changed_arguments_that_cannot_run_are_refused(run, files, changed, decisions, reason):
    audit = ListSink()
    controller = ApprovalController(ui=ScriptedUI([changed]), audit=audit)

    told = run(scripted([call('write', '1', path='a')], 'done'), [files.judged_tool()], controller)

    assert files.ran == []
    assert told == [('write', reason, 'error')]
    assert [entry.get('approved', False) for entry in audit.entries if entry['event'] != 'outcome'] == decisions
    assert audit.outcomes() == ['refused']


@pytest.mark.parametrize('mode', ['interactive', 'approve_all', 'strict'])
def test_a_blocked_call_never_becomes_a_question(run, files, mode):
    ui, audit = RecordingUI(True), ListSink()
    controller = ApprovalController(mode, ui=ui, audit=audit)

    told = run(scripted([call('write', '1', path='/etc/hosts')], 'done'), [files.judged_tool()], controller)

    assert ui.requests == []
    assert files.ran == []
    assert told == [('write', 'The system is not yours.', 'error')]
    assert [(entry['event'], entry['decided_by']) for entry in audit.entries] == [('blocked', ['policy'])]


def test_blocked_and_free_calls_of_a_response_are_not_counted_among_the_requests(run, files):
    ui = ScriptedUI([True])
    paths = ('/etc/a', '/tmp/b', 'c')
    model = scripted([call('write', str(number), path=path) for number, path in enumerate(paths)], 'done')

    run(model, [files.judged_tool()], ApprovalController(ui=ui))

    [request] = ui.requests
    assert (request.metadata['position'], request.metadata['batch_size']) == (1, 1)
    assert sorted(files.ran) == ['write /tmp/b', 'write c']


def test_unconfigured_tools_run_freely_if_the_default_is_none(run, files):
    ui = RecordingUI(False)
    controller = ApprovalController(ui=ui, policy={'write': {'approval': 'required'}})
    model = scripted([call('read', '1', path='a'), *[call('write', '2', path='a')]], 'done')

    run(model, files.tools(), controller, default='none')

    assert [request.tool_name for request in ui.requests] == ['write']
    assert files.ran == ['read a']


def test_unknown_default_is_refused():
    with pytest.raises(ValueError, match="must be 'required' or 'none', not 'never'"):
        ApprovalMiddleware(ApprovalController(), default='never')


def test_a_function_behind_a_tool_says_itself_what_is_asked(run):
    ran = []

    @tool
    @requires_approval(description=lambda args: f'Sign in as {args["user"]}', exclude_keys=['password'])
    def sign_in(user: str, password: str) -> str:
        """Sign in."""
        ran.append((user, password))
        return 'ok'

    ui = ScriptedUI([True])

    run(
        scripted([call('sign_in', '1', user='kim', password='x')], 'done'),
        [sign_in],
        ApprovalController(ui=ui),
        default='none',
    )

    [request] = ui.requests
    assert request.description == 'Sign in as kim'
    assert request.payload == {'user': 'kim'}
    assert ran == [('kim', 'x')]


def test_the_tools_own_logic_is_given_the_hosts_configuration(run):
    seen = []

    def write(path: str) -> str:
        """Write a file."""
        return 'written'

    def needs_approval(name, args, ctx):
        seen.append(ctx['configurable']['user'])
        return False

    write.needs_approval = needs_approval
    model = scripted([call('write', '1', path='a')], 'done')

    run(model, [tool(write)], ApprovalController(), {'configurable': {'user': 'kim'}})

    assert set(seen) == {'kim'}


def test_decision_and_outcome_are_written_down_with_one_digest(run, files):
    audit = ListSink()
    controller = ApprovalController(ui=RecordingUI(True), audit=audit)

    run(scripted(WRITE, 'done'), files.tools(), controller)

    [decided, came] = audit.entries
    assert (decided['event'], decided['approved'], decided['tool_call_id']) == ('decision', True, '1')
    assert (came['event'], came['outcome'], came['tool_call_id']) == ('outcome', 'executed', '1')
    assert decided['digest'] == came['digest'] is not None


def test_a_call_that_needs_no_approval_is_logged_as_unasked(run, files):
    audit = ListSink()

    run(scripted(WRITE, 'done'), files.tools(), ApprovalController(audit=audit), default='none')

    assert files.ran == ['write a old']
    assert [(entry['event'], entry.get('outcome')) for entry in audit.all] == [
        ('unasked', None),
        ('outcome', 'executed'),
    ]


def test_a_tool_that_raises_is_written_down_as_failed(run):
    @tool
    def write(path: str, content: str) -> str:
        """Write a file."""
        raise OSError('the disk is full')

    audit = ListSink()
    controller = ApprovalController(ui=RecordingUI(True), audit=audit)

    with pytest.raises(OSError, match='the disk is full'):
        run(scripted(WRITE), [write], controller)

    assert [(entry['outcome'], entry['error']) for entry in audit.entries[1:]] == [('failed', 'OSError')]


def test_a_failure_that_the_tool_tells_the_model_is_written_down_as_failed(run):
    @tool
    def write(path: str, content: str) -> str:
        """Write a file."""
        raise ToolException('the disk is full')

    write.handle_tool_error = True
    audit = ListSink()
    controller = ApprovalController(ui=RecordingUI(True), audit=audit)

    told = run(scripted(WRITE, 'done'), [write], controller)

    assert told == [('write', 'the disk is full', 'error')]
    assert audit.outcomes() == ['failed']


UNFIT = {
    'missing': ({}, 'the values do not match the schema of the tool: path: Field required'),
    'another type': (
        {'path': 5},
        'the values do not match the schema of the tool: path: Input should be a valid string',
    ),
    'not JSON': ({'path': 'a', 'more': float('nan')}, 'no canonical JSON: a number is too long or not finite'),
    'lone surrogate': ({'path': '\ud800'}, 'no canonical JSON: a text contains a lone surrogate'),
}


@pytest.mark.parametrize(('args', 'reason'), UNFIT.values(), ids=UNFIT)
def test_arguments_that_do_not_fit_are_refused_without_asking(run, files, args, reason):
    ui = RecordingUI(True)

    told = run(scripted([call('write', '1', **args)], 'done'), files.tools(), ApprovalController(ui=ui))

    assert ui.requests == []
    assert files.ran == []
    [(name, content, status)] = told
    assert (name, status) == ('write', 'error')
    assert content.startswith(f"The arguments of 'write' are invalid ({reason}")


def test_calls_whose_arguments_cannot_be_decoded_neither_run_nor_ask(run, files):
    ui = RecordingUI(True)
    garbage = InvalidToolCall(name='write', args='{"path": ', id='2', error='no JSON', type='invalid_tool_call')
    response = AIMessage('', tool_calls=[call('read', '1', path='a')], invalid_tool_calls=[garbage])

    run(ScriptedModel(responses=[response, AIMessage('done')]), files.tools(), ApprovalController(ui=ui))

    assert [request.tool_name for request in ui.requests] == ['read']
    assert files.ran == ['read a']


def test_a_tool_that_does_not_exist_is_no_question(run, files):
    ui = RecordingUI(True)

    told = run(scripted([call('erase', '1', path='a')], 'done'), files.tools(), ApprovalController(ui=ui))

    assert ui.requests == []
    assert told == [('erase', "The agent has no tool 'erase', so the call was not run.", 'error')]


def test_calls_that_share_an_id_are_refused(run, files):
    ui = RecordingUI(True)
    model = scripted([call('read', '1', path='a'), call('write', '1', path='b'), call('read', '2', path='c')], 'done')

    told = run(model, files.tools(), ApprovalController(ui=ui))

    assert [request.args['path'] for request in ui.requests] == ['c']
    assert files.ran == ['read c']
    assert told[0] == ('write', 'Several calls of this response have the same id, so none of them was run.', 'error')


def test_a_call_without_an_id_is_refused(run, files):
    ui = RecordingUI(True)

    told = run(scripted([call('read', '', path='a')], 'done'), files.tools(), ApprovalController(ui=ui))

    assert ui.requests == []
    assert files.ran == []
    assert told == [('read', 'The call has no id and cannot be answered, so it was not run.', 'error')]


def test_structured_output_is_no_call_to_ask_about(run, files):
    class Report(BaseModel):
        text: str

    ui = RecordingUI(True)
    model = scripted([call('Report', '1', text='all fine')])
    agent = run.agent(model, files.tools(), ApprovalController(ui=ui), response_format=ToolStrategy(Report))

    run.invoke(agent)

    assert ui.requests == []


def test_a_synchronous_run_asks_also_inside_of_a_running_event_loop(files):
    agent_ran = []

    async def main():
        run = Runner(is_async=False)
        agent_ran.extend(run(scripted(WRITE, 'done'), files.tools(), ApprovalController(ui=ScriptedUI([True]))))

    asyncio.run(main())

    assert files.ran == ['write a old']
    assert agent_ran == [('write', 'written', 'success')]


def test_cancelling_a_run_withdraws_its_question_and_runs_nothing(files):
    ui = WaitingUI()
    agent = Runner(is_async=True).agent(scripted(WRITE, 'done'), files.tools(), ApprovalController(ui=ui))

    asyncio.run(ui.cancel(lambda: agent.ainvoke(GO)))

    assert ui.withdrawn.is_set()
    assert files.ran == []


def test_a_block_that_cannot_be_written_down_ends_the_run(run, files):
    class Full(ListSink):
        def record(self, entry):
            raise AuditError('log', 'the disk is full')

    controller = ApprovalController(audit=Full(), policy={'write': {'approval': 'blocked'}})

    with pytest.raises(AuditError, match='the disk is full'):
        run(scripted(WRITE, 'done'), files.tools(), controller)

    assert files.ran == []


def test_with_a_concurrency_of_one_approved_calls_run_one_after_the_other():
    events: list[str] = []

    @tool
    async def step(label: str) -> str:
        """Take a step."""
        events.append(f'begin {label}')
        for _ in range(20):
            await asyncio.sleep(0)
        events.append(f'end {label}')
        return label

    model = scripted([call('step', str(number), label=str(number)) for number in (1, 2, 3)], 'done')

    Runner(is_async=True)(model, [step], ApprovalController(ui=RecordingUI(True)), {'max_concurrency': 1})

    assert events == ['begin 1', 'end 1', 'begin 2', 'end 2', 'begin 3', 'end 3']
