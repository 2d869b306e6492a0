"""A wrapped tool: called by code, by an agent, with and without an event loop."""

import asyncio
from datetime import date
from pathlib import Path
from typing import Annotated

import pytest
from langchain.agents import create_agent
from langchain.tools import InjectedState, ToolRuntime
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tools import BaseTool, StructuredTool, Tool, ToolException, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel
from tool_approval.core.calls import denied_because
from tool_approval.core.gate import CHANGED
from tool_approval.integrations.langchain import ApprovalMiddleware, ApprovalToolWrapper
from tool_approval.os_sandbox import Access
from tool_approval.testing import RecordingUI, ScriptedUI
from tool_approval.tools.file_sandbox import FileSandbox, FileTools

from tests.approval.parts import ListSink
from tests.approval.settings.desk import Backend, Desk
from tool_approval import (
    ApprovalBlocked,
    ApprovalController,
    ApprovalDenied,
    ApprovalRequest,
    ApprovalResult,
    Approvals,
    requires_approval,
)

from .scripted import GO, WaitingUI, call, change, results, scripted
from .test_arguments import Untyped, mcp_tool

NOTICE = '[The approver changed the arguments of this call, which ran with: {"content":"nothing","path":"b"}]'


class Caller:
    """Calls a tool, one way or the other."""

    def __init__(self, *, is_async: bool):
        self.is_async = is_async

    def __call__(self, wrapped, given, config=None):
        if self.is_async:
            return asyncio.run(wrapped.ainvoke(given, config))
        return wrapped.invoke(given, config)

    def run(self, wrapped, given, **options):
        if self.is_async:
            return asyncio.run(wrapped.arun(given, **options))
        return wrapped.run(given, **options)


@pytest.fixture(params=['sync', 'async'])
def invoke(request):
    return Caller(is_async=request.param == 'async')


def write_tool(files):
    return files.tools()[1]


@pytest.mark.parametrize('given', [{'path': 'a'}, 'a'], ids=['arguments', 'a text for the first one'])
def test_an_approved_call_returns_what_the_tool_returns(invoke, files, given):
    ui = ScriptedUI([True])

    result = invoke(ApprovalToolWrapper(write_tool(files), ApprovalController(ui=ui)), given)

    assert result == 'written'
    assert files.ran == ['write a nothing']
    assert ui.requests[0].args == {'path': 'a', 'content': 'nothing'}


REFUSALS = {
    'denied': ({}, ['Ask Kim.'], ApprovalDenied, 'Ask Kim'),
    'blocked': (
        {'mode': 'approve_all', 'policy': {'write': {'approval': 'blocked'}}},
        [],
        ApprovalBlocked,
        "The tool 'write' is blocked by policy",
    ),
    'strict': ({'mode': 'strict'}, [], ApprovalDenied, 'Strict mode: calls that need approval'),
    'a UI that fails': ({}, [RuntimeError('secret')], ApprovalDenied, r'The approval prompt failed \(RuntimeError\)'),
}


@pytest.mark.parametrize(('controller', 'answers', 'error', 'reason'), REFUSALS.values(), ids=REFUSALS)
def test_a_call_that_is_not_approved_raises_with_the_reason(invoke, files, controller, answers, error, reason):
    ui = ScriptedUI(answers)
    wrapped = ApprovalToolWrapper(write_tool(files), ApprovalController(ui=ui, **controller))

    with pytest.raises(error, match=reason) as raised:
        invoke(wrapped, {'path': 'a'})

    ui.assert_done()
    assert isinstance(raised.value, PermissionError)
    assert files.ran == []


def test_unconfigured_tool_runs_if_the_default_is_none(invoke, files):
    wrapped = ApprovalToolWrapper(write_tool(files), ApprovalController(), 'none')

    assert invoke(wrapped, {'path': 'a'}) == 'written'


def test_unknown_default_is_refused(files):
    with pytest.raises(ValueError, match="must be 'required' or 'none', not 'never'"):
        ApprovalToolWrapper(write_tool(files), ApprovalController(), 'never')


def test_a_function_is_no_tool():
    with pytest.raises(TypeError, match='wraps a tool, not function; make a tool with `@tool`'):
        ApprovalToolWrapper(lambda path: path, ApprovalController())


@pytest.mark.parametrize('given', [{}, {'path': 5}, None, 5, ['a']])
def test_arguments_that_do_not_fit_raise_without_asking(invoke, files, given):
    ui = RecordingUI(True)

    with pytest.raises(ApprovalDenied, match=r"The arguments of 'write' are invalid \(the "):
        invoke(ApprovalToolWrapper(write_tool(files), ApprovalController(ui=ui)), given)

    assert ui.requests == []
    assert files.ran == []


@pytest.mark.parametrize(('options', 'notice'), [({}, f'\n\n{NOTICE}'), ({'tells_changes': False}, '')])
def test_changed_arguments_run_and_a_text_says_so_unless_switched_off(invoke, files, options, notice):
    controller = ApprovalController(ui=ScriptedUI([change(path='b')]))

    result = invoke(ApprovalToolWrapper(write_tool(files), controller, **options), {'path': 'a'})

    assert result == f'written{notice}'
    assert files.ran == ['write b nothing']


def test_a_result_for_code_keeps_its_type(invoke):
    @tool
    def size(path: str) -> int:
        """Measure a file."""
        return len(path)

    wrapped = ApprovalToolWrapper(size, ApprovalController(ui=ScriptedUI([change(path='four')])))

    assert invoke(wrapped, {'path': 'a'}) == 4


def test_a_models_call_is_answered_by_a_message(invoke, files):
    wrapped = ApprovalToolWrapper(write_tool(files), ApprovalController(ui=ScriptedUI([True, 'Ask Kim.'])))

    answers = [invoke(wrapped, call('write', each, path='a')) for each in ('1', '2')]

    assert results(answers) == [('write', 'written', 'success'), ('write', denied_because('Ask Kim.'), 'error')]
    assert [answer.tool_call_id for answer in answers] == ['1', '2']


def test_an_agent_takes_a_wrapped_tool_like_any_other(invoke, files):
    read, write = files.tools()
    controller = ApprovalController(ui=ScriptedUI([True, 'Ask Kim.']))
    model = scripted([call('read', '1', path='a')], [call('write', '2', path='b')], 'done')
    agent = create_agent(model, [ApprovalToolWrapper(read, controller), ApprovalToolWrapper(write, controller)])

    told = results(invoke(agent, GO)['messages'])

    assert files.ran == ['read a']
    assert told == [('read', 'content of a', 'success'), ('write', denied_because('Ask Kim.'), 'error')]


def test_a_wrapped_tool_of_an_agent_gets_what_the_host_fills_in(invoke):
    seen = []

    class Arguments(BaseModel):
        path: str

    @tool(args_schema=Arguments)
    def read(path: str, runtime: ToolRuntime, state: Annotated[dict, InjectedState]) -> str:
        """Read a file."""
        seen.append((path, runtime.tool_call_id, len(state['messages'])))
        return 'content'

    ui = ScriptedUI([change(path='b')])
    model = scripted([call('read', '1', path='a', runtime='forged')], 'done')
    agent = create_agent(model, [ApprovalToolWrapper(read, ApprovalController(ui=ui))])

    invoke(agent, GO)

    assert ui.requests[0].args == {'path': 'a'}
    assert seen == [('b', '1', 2)]


def test_a_wrapped_tool_looks_like_the_inner_one_to_the_model():
    @tool(response_format='content_and_artifact', extras={'defer_loading': True})
    def write(path: str, runtime: ToolRuntime, content: str = '') -> tuple[str, int]:
        """Write a file."""
        return 'written', 1

    wrapped = ApprovalToolWrapper(write, ApprovalController())

    assert (wrapped.name, wrapped.description) == ('write', 'Write a file.')
    assert wrapped.args == write.args
    assert wrapped.args_schema is write.args_schema
    assert wrapped.tool_call_schema is write.tool_call_schema
    assert wrapped.get_input_schema() is write.get_input_schema()
    assert (wrapped.response_format, wrapped.extras) == ('content_and_artifact', {'defer_loading': True})


def test_a_wrapped_tool_can_be_wrapped_again(invoke, files):
    first, second = ScriptedUI([True]), ScriptedUI(['no'])
    inner = ApprovalToolWrapper(write_tool(files), ApprovalController(ui=second))

    with pytest.raises(ApprovalDenied, match='no'):
        invoke(ApprovalToolWrapper(inner, ApprovalController(ui=first)), {'path': 'a'})

    first.assert_done()
    second.assert_done()
    assert files.ran == []


@pytest.mark.parametrize('answer', [True, 'no'])
def test_older_ways_to_call_a_tool_ask_as_well(invoke, files, answer):
    wrapped = ApprovalToolWrapper(write_tool(files), ApprovalController(ui=ScriptedUI([answer] * 2)))

    answered = invoke.run(wrapped, {'path': 'a'}, tool_call_id='1', tags=['t'])
    if answer is True:
        assert invoke.run(wrapped, {'path': 'a'}) == 'written'
    else:
        with pytest.raises(ApprovalDenied, match='no'):
            invoke.run(wrapped, {'path': 'a'})

    assert results([answered]) == [
        ('write', *(('written', 'success') if answer is True else (denied_because('no'), 'error')))
    ]
    assert len(files.ran) == (2 if answer is True else 0)


def test_the_implementation_cannot_be_called_past_the_question(files):
    wrapped = ApprovalToolWrapper(write_tool(files), ApprovalController(ui=RecordingUI('no')))

    with pytest.raises(ApprovalDenied):
        wrapped._run(path='a')
    with pytest.raises(ApprovalDenied):
        asyncio.run(wrapped._arun(path='a'))

    assert files.ran == []


def test_the_inner_tools_callbacks_hear_of_the_call_once(invoke, files):
    heard = []

    class Handler(BaseCallbackHandler):
        def on_tool_start(self, serialized, input_str, **kwargs):
            heard.append(serialized['name'])

    wrapped = ApprovalToolWrapper(write_tool(files), ApprovalController(ui=RecordingUI(True)))

    invoke(wrapped, {'path': 'a'}, {'callbacks': [Handler()]})

    assert heard == ['write']


def test_values_of_code_are_shown_as_json_and_passed_on_as_they_are(invoke):
    seen = []

    @tool
    def remind(on: date, folder: Path) -> str:
        """Remind somebody."""
        seen.append((on, folder))
        return 'ok'

    ui = ScriptedUI([True])

    invoke(ApprovalToolWrapper(remind, ApprovalController(ui=ui)), {'on': date(2026, 3, 4), 'folder': Path('notes')})

    assert ui.requests[0].args == {'on': '2026-03-04', 'folder': 'notes'}
    assert seen == [(date(2026, 3, 4), Path('notes'))]


def test_changes_by_the_caller_while_the_question_is_open_do_not_run(invoke):
    seen = []

    @tool
    def delete(paths: list[str]) -> str:
        """Delete files."""
        seen.append(paths)
        return 'ok'

    given = {'paths': ['a']}

    def answer(request):
        given['paths'].append('b')
        return True

    invoke(ApprovalToolWrapper(delete, ApprovalController(ui=RecordingUI(answer))), given)

    assert seen == [['a']]


@pytest.mark.parametrize('is_asked', [True, False])
def test_arguments_changed_by_the_tools_own_logic_do_not_run(invoke, is_asked):
    seen = []

    def delete(paths: list[str]) -> str:
        """Delete files."""
        seen.append(paths)
        return 'ok'

    def needs_approval(name, args):
        args['paths'].append('b')
        return is_asked

    delete.needs_approval = needs_approval
    audit = ListSink()
    controller = ApprovalController(ui=RecordingUI(True), audit=audit)

    with pytest.raises(ApprovalDenied, match=CHANGED):
        invoke(ApprovalToolWrapper(tool(delete), controller), {'paths': ['a']})

    assert seen == []
    assert audit.outcomes() == ['refused'] * is_asked


def test_a_tool_object_has_logic_of_its_own(invoke):
    class Delete(BaseTool):
        name: str = 'delete'
        description: str = 'Delete a file.'

        def needs_approval(self, name, args):
            return ApprovalResult.blocked('Never.') if args['path'] == '/' else False

        def _run(self, path: str) -> str:
            return f'deleted {path}'

    wrapped = ApprovalToolWrapper(Delete(), ApprovalController())

    assert invoke(wrapped, {'path': 'a'}) == 'deleted a'
    with pytest.raises(ApprovalBlocked, match='Never'):
        invoke(wrapped, {'path': '/'})


def test_an_asynchronous_function_has_logic_of_its_own():
    @tool
    @requires_approval(description='Delete it for good')
    async def delete(path: str) -> str:
        """Delete a file."""
        return f'deleted {path}'

    ui = ScriptedUI([True])

    result = asyncio.run(ApprovalToolWrapper(delete, ApprovalController(ui=ui), 'none').ainvoke({'path': 'a'}))

    assert result == 'deleted a'
    assert ui.requests[0].description == 'Delete it for good'


def test_a_tool_of_one_text_is_asked_about(invoke):
    ui = ScriptedUI([True])
    shout = Tool(name='shout', description='Shout.', func=str.upper)

    result = invoke(ApprovalToolWrapper(shout, ApprovalController(ui=ui)), 'hey')

    assert result == 'HEY'
    assert ui.requests[0].args == {'tool_input': 'hey'}


def test_the_model_is_told_of_a_tool_of_one_text(invoke):
    shout = Tool(name='shout', description='Shout.', func=str.upper)
    wrapped = ApprovalToolWrapper(shout, ApprovalController(ui=RecordingUI(True)))
    model = scripted([call('shout', '1', tool_input='hey')], 'done')
    agent = create_agent(model, [wrapped], middleware=[ApprovalMiddleware(ApprovalController('approve_all'))])

    told = results(invoke(agent, GO)['messages'])

    assert convert_to_openai_tool(wrapped)['function'] == {
        'name': 'shout',
        'description': 'Shout.',
        'parameters': {'type': 'object', 'properties': {'tool_input': {'type': 'string'}}, 'required': ['tool_input']},
    }
    assert told == [('shout', 'HEY', 'success')]


def test_the_model_is_told_the_same_of_a_wrapped_tool(files):
    for inner in [*files.tools(), mcp_tool(), Untyped()]:
        wrapped = ApprovalToolWrapper(inner, ApprovalController())

        assert convert_to_openai_tool(wrapped) == convert_to_openai_tool(inner)


def test_the_outcome_is_written_down(invoke):
    @tool
    def fail(how: str) -> str:
        """Fail."""
        raise ToolException('told') if how == 'told' else OSError('raised')

    audit = ListSink()
    wrapped = ApprovalToolWrapper(fail, ApprovalController(ui=RecordingUI(True), audit=audit))

    with pytest.raises(OSError, match='raised'):
        invoke(wrapped, {'how': 'raised'})
    with pytest.raises(ToolException):
        invoke(wrapped, {'how': 'told'})

    assert [(each['outcome'], each['error']) for each in audit.entries if each['event'] == 'outcome'] == [
        ('failed', 'OSError'),
        ('failed', 'ToolException'),
    ]


def test_sync_invocation_asks_inside_a_running_event_loop(files):
    wrapped = ApprovalToolWrapper(write_tool(files), ApprovalController(ui=ScriptedUI([True])))

    async def main():
        return wrapped.invoke({'path': 'a'})

    assert asyncio.run(main()) == 'written'


def test_an_invocation_that_is_awaited_is_refused_before_the_tool_runs(files):
    ui = RecordingUI(True)
    wrapped = ApprovalToolWrapper(write_tool(files), ApprovalController(ui=ui))

    async def main():
        with pytest.raises(TypeError, match="'write' was not run; await `ainvoke` instead"):
            await wrapped.invoke({'path': 'a'})
        result = wrapped.invoke({'path': 'b'})
        assert await wrapped.ainvoke({'path': 'c'}) == result

    asyncio.run(main())

    assert files.ran == ['write b nothing', 'write c nothing']
    assert [request.args['path'] for request in ui.requests] == ['b', 'c']


@pytest.mark.parametrize('is_tool', [True, False], ids=['of a tool object', 'of a function'])
def test_the_tools_check_gets_the_configuration_and_the_request_does_not(invoke, is_tool):
    seen = []

    def check_approval(ctx):
        seen.append(ctx.metadata['config']['configurable'])
        return ApprovalRequest(tool_name=ctx.tool_name, args=ctx.args)

    def delete(path: str) -> str:
        """Delete a file."""
        return f'deleted {path}'

    class Delete(BaseTool):
        name: str = 'delete'
        description: str = 'Delete a file.'

        def check_approval(self, ctx):
            return check_approval(ctx)

        def _run(self, path: str) -> str:
            return delete(path)

    delete.check_approval = check_approval
    ui = RecordingUI(True)
    wrapped = ApprovalToolWrapper(Delete() if is_tool else tool(delete), ApprovalController(ui=ui))

    assert invoke(wrapped, {'path': 'a'}, {'configurable': {'user': 'kim'}}) == 'deleted a'

    assert {each['user'] for each in seen} == {'kim'}
    assert 'config' not in ui.requests[0].metadata


def test_cancelling_withdraws_the_question_and_runs_nothing(files):
    ui = WaitingUI()
    wrapped = ApprovalToolWrapper(write_tool(files), ApprovalController(ui=ui))

    asyncio.run(ui.cancel(lambda: wrapped.ainvoke({'path': 'a'})))

    assert ui.withdrawn.is_set()
    assert files.ran == []


@pytest.mark.parametrize('arrangement', ['wrapper', 'middleware'])
def test_a_call_that_was_denied_lets_no_direct_call_run(arrangement, tmp_path):
    (tmp_path / 'a').touch()
    delete = FileTools(FileSandbox({'paths': {'work': {'root': '.', 'mode': 'rw'}}}, tmp_path))['delete']

    @tool
    async def deletes(path: str) -> str:
        """Delete a file."""
        return delete(path=path)

    deletes.coroutine.check_approval = delete.check_approval
    controller = ApprovalController('strict')
    if arrangement == 'wrapper':
        denied = ApprovalToolWrapper(deletes, controller).ainvoke(call('deletes', '1', path='a'))
    else:
        model = scripted([call('deletes', '1', path='a')], 'done')
        agent = create_agent(model, [deletes], middleware=[ApprovalMiddleware(controller)])
        denied = agent.ainvoke(GO)

    async def main():
        assert 'Strict mode' in str(await denied)
        with pytest.raises(PermissionError, match='Approval was not requested'):
            delete(path='a')

    asyncio.run(main())

    assert (tmp_path / 'a').exists()


@pytest.mark.usefixtures('own_home')
@pytest.mark.parametrize('arrangement', ['wrapper', 'middleware'])
@pytest.mark.parametrize('is_asked', [True, False])
def test_an_approval_that_showed_no_access_gives_a_command_none(arrangement, is_asked, invoke, run, tmp_path):
    backend = Backend()
    desk = Desk(tmp_path / 'work', 'sandbox: {paths: {work: {root: ., read_approval: true}}}', backend=backend)
    shell = desk.workspace.shell

    def renamed(command: str) -> str:
        """Run a command."""
        return asyncio.run(shell(command))

    async def renamed_later(command: str) -> str:
        """Run a command."""
        return await shell(command)

    tools = StructuredTool.from_function(renamed, renamed_later, name='renamed')
    policy = {} if is_asked else {'renamed': {'approval': 'none'}}
    controller = ApprovalController(policy=policy, ui=RecordingUI(True))

    if arrangement == 'wrapper':
        invoke(ApprovalToolWrapper(tools, controller), {'command': 'echo a'})
    else:
        run(scripted([call('renamed', '1', command='echo a')], 'done'), [tools], controller)

    [profile] = backend.profiles
    assert profile.access(str(desk.folder / 'file')) is Access.NONE


def test_one_object_makes_the_wrapper_and_the_middleware():
    ran: list[str] = []

    @tool
    def delete(path: str) -> str:
        """Delete a file."""
        ran.append(path)
        return 'deleted'

    ui = RecordingUI(True)
    approvals = Approvals(ui=ui)

    assert approvals.wrap(delete).invoke({'path': 'a'}) == 'deleted'
    agent = create_agent(
        scripted([call('delete', '1', path='b')], 'done'), [delete], middleware=[approvals.middleware()]
    )
    agent.invoke(GO)

    assert ran == ['a', 'b']
    assert len(ui.requests) == 2
