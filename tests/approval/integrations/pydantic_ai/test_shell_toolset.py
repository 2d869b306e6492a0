import asyncio
import os

import pytest
from pydantic_ai import Agent, DeferredToolRequests, RunContext, RunUsage
from pydantic_ai.exceptions import ApprovalRequired, UserError
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import WrapperToolset
from pydantic_ai_deferred import Agent as DeferredAgent
from tool_approval.compat import blocking_approval as compat
from tool_approval.integrations.pydantic_ai import ApprovalToolset, collect_approvals_sync
from tool_approval.integrations.pydantic_ai.shell_toolset import ShellToolset
from tool_approval.testing import RecordingUI
from tool_approval.tools.shell import ShellTool
from tool_approval.ui.terminal import render_request

from tests.loop.scripted import call, returns, scripted
from tool_approval import ApprovalBlocked, ApprovalController, ApprovalRequest

from .agents import Log, told_in

RULES = {'rules': [{'pattern': 'echo', 'approval': False}, {'pattern': 'rm', 'allowed': False}]}


def person(approved: bool) -> RecordingUI:
    """Answers every question the same."""
    return RecordingUI(approved or 'not now')


def told(tmp_path, command, ui):
    """What the model is told of its one command."""
    controller = ApprovalController(ui=ui)
    toolset = ApprovalToolset(ShellToolset(ShellTool(RULES, cwd=tmp_path)), controller)
    agent = DeferredAgent(says(command), toolsets=[toolset])
    return told_in(agent, controller, session='s')['1'][0]


def test_an_allowed_command_runs_unasked(tmp_path):
    ui = person(approved=False)

    assert told(tmp_path, 'echo hello', ui) == 'hello'
    assert ui.requests == []


EXTRAS = {'description': 'Say hello', 'timeout': 120_000}


@pytest.mark.parametrize('args', [{'command': 'echo hello', **EXTRAS}, '{"command": "echo hello", "timeout": 5}'])
def test_arguments_of_other_shell_tools_have_no_effect(tmp_path, args):
    ui = person(approved=False)
    controller = ApprovalController(ui=ui)
    toolset = ApprovalToolset(ShellToolset(ShellTool(RULES, cwd=tmp_path)), controller)
    agent = DeferredAgent(scripted([ToolCallPart('run_shell', args, tool_call_id='1')], 'done'), toolsets=[toolset])

    assert told_in(agent, controller, session='s')['1'][0] == 'hello'
    assert ui.requests == []


@pytest.mark.parametrize(
    ('args', 'problem'),
    [
        ({'commands': 'touch made'}, 'missing'),
        ('{"command": 1}', 'string_type'),
        ('{"command": "touch made", "cwd": "/"}', 'extra_forbidden'),
    ],
)
def test_other_wrong_arguments_are_refused(tmp_path, args, problem):
    ui = person(approved=True)
    controller = ApprovalController(ui=ui)
    toolset = ApprovalToolset(ShellToolset(ShellTool(RULES, cwd=tmp_path)), controller)
    agent = DeferredAgent(scripted([ToolCallPart('run_shell', args, tool_call_id='1')], 'done'), toolsets=[toolset])

    [error, *_], _ = told_in(agent, controller, session='s')['1']
    assert error['type'] == problem
    assert (ui.requests, os.listdir(tmp_path)) == ([], [])


def test_question_shows_arguments_without_effect_and_runs_the_command(tmp_path):
    ui = person(approved=True)
    controller = ApprovalController(ui=ui)
    toolset = ApprovalToolset(ShellToolset(ShellTool(RULES, cwd=tmp_path)), controller)
    agent = DeferredAgent(
        scripted([call('run_shell', '1', command='touch made', **EXTRAS)], 'done'), toolsets=[toolset]
    )

    given = told_in(agent, controller, session='s')

    assert given['1'] == ('[no output]', 'success')
    [request] = ui.requests
    assert request.args == {'command': 'touch made', **EXTRAS}
    assert request.used == {'command': 'touch made'}
    assert os.listdir(tmp_path) == ['made']


CONFINED = """\
    sandbox:
      paths:
        work: {root: ., mode: rw}
    shell:
      rules:
        - {pattern: echo, approval: false}
        - {pattern: sleep, approval: false}
"""


@pytest.fixture
def desk():
    """A module that needs more libraries than the others of this file."""
    return pytest.importorskip('tests.approval.settings.desk')


@pytest.mark.usefixtures('own_home')
@pytest.mark.parametrize('keeps_tmp', [True, False])
def test_the_description_says_whether_the_conversation_keeps_its_tmp(tmp_path, monkeypatch, desk, keeps_tmp):
    monkeypatch.setattr('tool_approval.settings.ConfinedShell.keeps_tmp', keeps_tmp)
    toolset = ShellToolset(desk.Desk(tmp_path / 'work', CONFINED, backend=desk.Backend()).workspace.shell)

    tools = asyncio.run(toolset.get_tools(RunContext(deps=None, model=TestModel(), usage=RunUsage())))

    text = ' '.join(tools['run_shell'].tool_def.description.split())
    assert ('`/tmp` is private, and lasts for the conversation' in text) is keeps_tmp
    assert ('empty at the start of each call' in text) is not keeps_tmp
    assert list(tools) == ['run_shell']


@pytest.mark.usefixtures('own_home')
def test_a_question_does_not_show_that_a_command_does_not_run_in_the_background(tmp_path, desk):
    shell, ui = desk.Desk(tmp_path / 'work', CONFINED, backend=desk.Backend()).workspace.shell, person(approved=False)
    controller = ApprovalController(ui=ui)
    agent = DeferredAgent(
        scripted([call('run_shell', '1', command='touch a')], 'done'),
        toolsets=[ApprovalToolset(ShellToolset(shell), controller)],
    )

    told_in(agent, controller)

    [request] = ui.requests
    assert request.args == {'command': 'touch a', 'access': None, 'background': False}
    assert 'background' not in render_request(request)


@pytest.mark.usefixtures('own_home')
def test_commands_in_the_background_are_read_and_ended_without_a_question(tmp_path, monkeypatch, desk):
    monkeypatch.setattr(desk.Backend, 'name', 'bubblewrap')
    monkeypatch.setattr('tool_approval.settings.background._AT_ONCE_S', 0.2)
    shell, ui = desk.Desk(tmp_path / 'work', CONFINED, backend=desk.Backend()).workspace.shell, person(approved=False)
    controller = ApprovalController(ui=ui)
    calls = [
        call('run_shell', '1', command='echo hello; sleep 50', background=True),
        call('background_processes', '2'),
        call('background_processes', '3', number=1, end=True),
        call('background_processes', '4', number=1, command='true'),
    ]
    agent = DeferredAgent(
        scripted(*([each] for each in calls), 'done'), toolsets=[ApprovalToolset(ShellToolset(shell), controller)]
    )

    given = told_in(agent, controller)

    name = 'Background process 1 (`echo hello; sleep 50`)'
    assert f'[{name} has been running for' in given['1'][0]
    assert given['1'][0].startswith('hello\n') or given['3'][0].startswith('hello\n')
    assert given['2'][0].startswith(f'{name} has been running for')
    assert given['3'][0].endswith(f'[{name} was ended, because you ended it.]')
    assert given['4'][1] != 'success'
    assert ui.requests == []


@pytest.mark.parametrize('approved', [True, False])
@pytest.mark.parametrize('is_guarded', [True, False])
def test_other_command_runs_only_if_approved(tmp_path, is_guarded, approved):
    ui = person(approved)
    controller, toolset = ApprovalController(ui=ui), ShellToolset(ShellTool(RULES, cwd=tmp_path))
    agent = DeferredAgent(
        says('touch made'), toolsets=[ApprovalToolset(toolset, controller) if is_guarded else toolset]
    )

    given = told_in(agent, controller)

    assert os.listdir(tmp_path) == (['made'] if approved else [])
    [request] = ui.requests
    assert request.presentation.content == 'touch made'
    assert given['1'][1] == ('success' if approved else 'denied')


def test_blocked_command_is_refused_without_asking(tmp_path):
    ui = person(approved=True)
    (tmp_path / 'kept').touch()

    output = told(tmp_path, 'echo a; rm kept', ui)

    assert 'blocked' in output
    assert ui.requests == []
    assert os.listdir(tmp_path) == ['kept']


def test_without_approval_a_blocked_command_is_still_refused(tmp_path):
    toolset = ShellToolset(ShellTool(RULES, cwd=tmp_path))
    (tmp_path / 'kept').touch()

    with pytest.raises(PermissionError, match='the rule `rm` blocks it'):
        asyncio.run(toolset.run_shell('rm kept'))


def returned(result):
    """What the model was told of its one command."""
    return returns(result.all_messages())['1'][0]


def says(command):
    """A model that runs one command."""
    return scripted([call('run_shell', '1', command=command)], 'done')


def test_a_shell_that_nothing_guards_runs_no_command(tmp_path):
    agent = Agent(says('echo hello'), toolsets=[ShellToolset(ShellTool(RULES, cwd=tmp_path))])

    with pytest.raises(UserError, match="'run_shell' needs approval, but nothing guards it"):
        agent.run_sync('go')


def test_an_approval_given_for_another_directory_does_not_hold(tmp_path):
    """Stopped under one working directory, resumed under another."""
    (tmp_path / 'here').mkdir()
    (tmp_path / 'there').mkdir()
    controller = ApprovalController('approve_all')

    def agent(directory):
        toolset = ShellToolset(ShellTool(RULES, cwd=tmp_path / directory))
        guarded = ApprovalToolset(toolset, controller)
        return Agent(says('touch made'), toolsets=[guarded], output_type=[str, DeferredToolRequests])

    stopped = asyncio.run(agent('here').run('go'))
    answers = collect_approvals_sync(stopped.output, controller=controller)

    result = asyncio.run(agent('there').run(message_history=stopped.all_messages(), deferred_tool_results=answers))

    assert 'changed after it was approved' in returned(result)
    assert os.listdir(tmp_path / 'there') == []


@pytest.mark.parametrize('becomes', ['elsewhere', 'blocked'])
def test_command_whose_judgement_changed_since_its_approval_is_logged_as_refused(tmp_path, becomes):
    (tmp_path / 'there').mkdir()
    toolset = ShellToolset(ShellTool(RULES, cwd=tmp_path))

    def change(request):
        rules = RULES if becomes == 'elsewhere' else {'rules': [{'pattern': 'touch', 'allowed': False}]}
        toolset.shell = ShellTool(rules, cwd=tmp_path / 'there')
        return True

    log = Log()

    told_in(
        DeferredAgent(says('touch made'), toolsets=[toolset]), ApprovalController(ui=RecordingUI(change), audit=log)
    )

    assert log.told[:2] == [('decision', True, '1'), ('outcome', 'refused', '1')]
    assert log.told[2:] == ([('blocked', None, '1')] if becomes == 'blocked' else [])
    assert os.listdir(tmp_path / 'there') == []


def test_pre_approved_command_runs_without_asking(tmp_path):
    controller = ApprovalController('strict', policy={'run_shell': {'approval': 'none'}})
    toolset = ApprovalToolset(ShellToolset(ShellTool(RULES, cwd=tmp_path)), controller)

    asyncio.run(Agent(says('touch made'), toolsets=[toolset]).run('go'))

    assert os.listdir(tmp_path) == ['made']


@pytest.mark.parametrize('commands', [['touch made', 'touch made'], ['touch made', 'touch other'], ['touch other']])
def test_a_judgement_lets_one_command_run_and_no_other(tmp_path, commands):
    class Rewriting(WrapperToolset):
        async def call_tool(self, name, tool_args, ctx, tool):
            for command in commands:
                told.append(await super().call_tool(name, {'command': command}, ctx, tool))

    told = []
    controller = ApprovalController(policy={'run_shell': {'approval': 'none'}})
    toolset = ApprovalToolset(Rewriting(ShellToolset(ShellTool(RULES, cwd=tmp_path))), controller)

    result = Agent(says('touch made'), toolsets=[toolset]).run_sync('go')

    assert 'changed after it was approved' in returned(result)

    assert len(told) == len(commands) - 1
    assert os.listdir(tmp_path) == (['made'] if told else [])


def test_the_rules_hold_where_a_callback_of_other_code_approves(tmp_path):
    (tmp_path / 'kept').touch()
    toolset = compat.ApprovalToolset(
        ShellToolset(ShellTool(RULES, cwd=tmp_path)), lambda request: compat.ApprovalDecision(approved=True)
    )

    with pytest.raises(ApprovalBlocked, match='the rule `rm` blocks it'):
        Agent(says('rm kept'), toolsets=[toolset]).run_sync('go')

    assert os.listdir(tmp_path) == ['kept']


def test_a_command_that_did_not_run_lets_no_direct_call_run(tmp_path):
    toolset, arguments = ShellToolset(ShellTool(RULES, cwd=tmp_path)), {'command': 'touch made'}

    async def main():
        wrapped = ApprovalToolset(toolset, ApprovalController())
        ctx = RunContext(deps=None, model=says(''), usage=RunUsage())
        tool = (await wrapped.get_tools(ctx))['run_shell']
        with pytest.raises(ApprovalRequired):
            await wrapped.call_tool('run_shell', arguments, ctx, tool)
        with pytest.raises(UserError, match='nothing guards it'):
            await toolset.call_tool('run_shell', arguments, ctx, tool)

    asyncio.run(main())

    assert os.listdir(tmp_path) == []


def test_the_tool_is_described_for_a_model(tmp_path):
    model = TestModel(call_tools=[])

    Agent(model, toolsets=[ShellToolset(ShellTool(cwd=tmp_path), id='shell')]).run_sync('go')

    [tool] = model.last_model_request_parameters.function_tools
    assert tool.name == 'run_shell'
    assert tool.parameters_json_schema['required'] == ['command']
    assert 'bash' in tool.description


def test_configured_reason_is_added_to_a_failed_command(tmp_path):
    reasons = {'No such file': 'Nothing is kept here.'}
    toolset = ShellToolset(ShellTool(RULES, cwd=tmp_path), reasons=reasons)

    def result(command):
        return asyncio.run(toolset.run_shell(command))

    assert result('cat gone').endswith('[exit status 1]\n[Nothing is kept here.]')
    assert result('cat gone; true').endswith('No such file or directory')
    assert result('echo "No such file"; false').endswith('[exit status 1]')


def test_a_changed_command_is_shown_as_the_first_one_was(tmp_path):
    toolset = ShellToolset(ShellTool(RULES, cwd=tmp_path))
    present = toolset.presenters['run_shell']

    def presented(command):
        return present(ApprovalRequest(tool_name='run_shell', args={'command': command}))

    for command in ('touch made', 'echo hello'):  # what is asked about, and what would run without approval
        assert presented(command).type == 'command'
        assert presented(command).content == command
        assert presented(command).metadata['cwd'] == str(tmp_path)
    with pytest.raises(PermissionError, match='This command is blocked'):
        presented('rm made')
    assert not (tmp_path / 'made').exists()
