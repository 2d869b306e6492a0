"""An assistant on a real folder: what it may do unasked, and what it asks about."""

import asyncio
import json
import os
import re
import subprocess
from contextlib import ExitStack
from types import SimpleNamespace

import pytest
from pydantic_ai import RunContext, Tool
from pydantic_ai.exceptions import ApprovalRequired, UnexpectedModelBehavior
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.toolsets import FunctionToolset, WrapperToolset
from pydantic_ai_deferred import Agent
from tool_approval.assistant.build import READ_ONLY, RESULT, _commands, build_assistant, limits_of
from tool_approval.assistant.conversation import NO_RESULT, hold_session
from tool_approval.assistant.errors import AssistantError
from tool_approval.assistant.stories.scene import scripted
from tool_approval.core.errors import AuditError, StoreError
from tool_approval.integrations.pydantic_ai import Approvals
from tool_approval.os_sandbox.mounts import FROZEN
from tool_approval.settings import load_settings
from tool_approval.testing import ScriptedUI

from tests.approval.settings.desk import confining
from tool_approval import ApprovalDecision, requires_approval

from .shown import shown_screen

pytestmark = pytest.mark.usefixtures('own_home')

WRITE = ToolCallPart('write_file', {'path': 'a', 'content': 'b'})
NOT_UNASKED = 'audit: {unasked: false}\n'
WRITING_IS_FREE = 'sandbox:\n  paths:\n    here: {root: ., mode: rw, write_approval: false}\n'


def run_shell(*commands):
    """A call for each of the commands."""
    return [ToolCallPart('run_shell', {'command': command}) for command in commands]


def outcome(folder, state, calls, answers=(), **options):
    """The results of the calls, made one after the other, and who was asked about what."""
    ui = ScriptedUI(list(answers))
    (folder / 'notes.txt').write_text('remember the milk\n')

    def plan(results):
        return [calls[len(results)]] if len(results) < len(calls) else 'done'

    options = {'model': scripted(plan), **options}
    with ExitStack() as stack:
        conversation, notes = build_assistant(
            load_settings(
                options.pop('config', None), directory=folder, named='named' in options and options.pop('named')
            ),
            state=state,
            make_ui=lambda memory, presenters: ui,
            screen=shown_screen(),
            stack=stack,
            **options,
        )
        asyncio.run(conversation.take_turn('Go.'))
    results = [part for message in conversation.messages for part in message.parts if isinstance(part, ToolReturnPart)]
    return results, ui.requests, conversation, notes


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / 'work'
    made.mkdir()
    return made


@pytest.fixture
def state(tmp_path):
    return tmp_path / 'state'


@pytest.fixture
def stack():
    """Closes the log after the test."""
    with ExitStack() as stack:
        yield stack


def test_a_continued_conversation_knows_its_commands():
    strange = ToolCallPart('run_shell', '[1')
    other = ToolCallPart('run_shell', {'command': 1})
    messages = [
        ModelRequest([UserPromptPart('Go.')]),
        ModelResponse([*run_shell('make', 'ls'), strange, other, WRITE]),
    ]

    assert list(_commands(messages)) == ['make', 'ls']


def test_a_stopped_command_keeps_what_it_printed(folder, state, stack):
    calls, screen = run_shell('echo begun; kill -INT $PPID; sleep 60'), shown_screen()
    conversation, _ = build_assistant(
        load_settings(None, directory=folder),
        state=state,
        make_ui=lambda memory, presenters: ScriptedUI([True]),
        screen=screen,
        stack=stack,
        model=scripted(lambda results: calls),
        confined=False,
    )

    assert asyncio.run(conversation.take_turn('Go.')) == 'stopped'

    [result] = [part for message in conversation.messages for part in message.parts if isinstance(part, ToolReturnPart)]
    assert result.content == f'{NO_RESULT} Until then, it printed:\nbegun\n'
    assert screen.shown.endswith('  │ begun\n')


def test_a_command_ends_at_the_time_limit_of_the_option(folder, state):
    results, *_ = outcome(folder, state, run_shell('sleep 60'), answers=[True], confined=False, timeout_s=0.2)

    assert results[0].content == '[timed out after 0.2 s]'


@confining
def test_background_processes_end_with_the_conversation_and_the_user_sees_which(folder, state):
    made = [ToolCallPart('run_shell', {'command': f'sleep 44.{each}', 'background': True}) for each in (1, 2)]
    calls = [made[0], ToolCallPart('background_processes', {}), made[1]]
    screen, ui, listed = shown_screen(), ScriptedUI([]), []

    def plan(results):
        listed[:] = results
        return [calls[len(results)]] if len(results) < len(calls) else 'done'

    with ExitStack() as stack:
        conversation, _ = build_assistant(
            load_settings(None, directory=folder),
            state=state,
            make_ui=lambda memory, presenters: ui,
            screen=screen,
            stack=stack,
            model=scripted(plan),
        )
        assert hold_session(conversation, ['Go.', '/discard', 'Go.']) == 0
        assert 'Background process 1 (`sleep 44.1`) has been running for' in str(listed[1])
        assert screen.shown.count('was ended, because the conversation has') == 2

    assert ui.requests == []
    ended = screen.shown.split('was ended, because the conversation has')
    assert [re.findall('sleep 44.[12]', each)[-1] for each in ended[:-1]] == ['sleep 44.1', 'sleep 44.2'] * 2


@pytest.mark.parametrize(('retries', 'tries'), [(1, 2), (3, 4)])
def test_an_invalid_call_is_repeated_as_often_as_the_option_allows(folder, state, stack, retries, tries):
    made = []

    def plan(results):
        made.append(len(results))
        return [ToolCallPart('read_file', {'nothing': 1})]

    conversation, _ = build_assistant(
        load_settings(None, directory=folder),
        state=state,
        make_ui=lambda memory, presenters: ScriptedUI([]),
        screen=shown_screen(),
        stack=stack,
        model=scripted(plan),
        confined=False,
        retries=retries,
    )

    with pytest.raises(UnexpectedModelBehavior, match='max retries'):
        asyncio.run(conversation.take_turn('Go.'))

    assert len(made) == tries


def test_without_settings_reading_is_free_and_writing_is_asked_about(folder, state):
    calls = [ToolCallPart('read_file', {'path': 'notes.txt'}), WRITE]

    results, asked, *_ = outcome(folder, state, calls, answers='n')

    assert 'remember the milk' in results[0].content
    assert [request.tool_name for request in asked] == ['write_file']
    assert not (folder / 'a').exists()


@confining
def test_without_settings_a_confined_command_that_looks_is_free(folder, state):
    results, asked, *_ = outcome(folder, state, run_shell('cat notes.txt', 'touch x'), answers='n')

    assert 'remember the milk' in results[0].content
    assert [request.args['command'] for request in asked] == ['touch x']


@confining
def test_without_settings_looking_around_is_free(folder, state):
    subprocess.run(['git', 'init', '--quiet', str(folder)], check=True)
    expected = {
        'ls': 'notes.txt',
        'ls -la | wc -l': '5',
        'pwd': str(folder),
        'git status --short': '?? notes.txt',
        'git diff': '[no output]',
    }

    results, asked, *_ = outcome(folder, state, run_shell(*expected))

    assert asked == []
    assert [result.content for result in results] == list(expected.values())


@confining
@pytest.mark.parametrize('has_git', [True, False])
def test_approved_command_creates_files_without_a_settings_file(folder, state, has_git):
    if has_git:
        (folder / '.git').mkdir()

    results, _, _, notes = outcome(folder, state, run_shell('touch new', 'touch approvals.yaml'), answers='yy')

    assert notes[-1] == 'no settings file, so the defaults apply'
    assert results[0].content == '[no output]'
    assert 'approvals.yaml' in results[1].content
    assert (folder / 'new').exists()
    assert not (folder / 'approvals.yaml').exists()


def test_a_failed_result_in_a_frozen_directory_names_the_directory(tmp_path):
    notes = (f'{FROZEN} {tmp_path} while x is a symbolic link; to lift this limit, make a real file',)

    assert limits_of(SimpleNamespace(directory=tmp_path, notes=notes)) == (notes, {READ_ONLY: RESULT.format(tmp_path)})
    assert limits_of(SimpleNamespace(directory=tmp_path / 'sub', notes=notes)) == (notes, {})


def test_unconfined_every_command_is_asked_about(folder, state):
    _, asked, *_ = outcome(folder, state, run_shell('cat notes.txt'), answers='n', confined=False)

    assert len(asked) == 1


@pytest.mark.parametrize('command', ['find . -delete', 'cat notes.txt > x', 'rm notes.txt', 'curl example.org'])
def test_words_that_show_that_a_command_needs_more_access_ask_at_once(folder, state, command):
    _, asked, *_ = outcome(folder, state, run_shell(command), answers='n')

    assert len(asked) == 1


@confining
@pytest.mark.parametrize(
    'command', ['cat /etc/passwd', 'ls ..', 'git diff --output=x', 'git -C /x status', 'eval "$x"', 'python3 -c 1']
)
def test_what_the_sandbox_holds_runs_unasked_and_changes_nothing(folder, state, command):
    _, asked, *_ = outcome(folder, state, run_shell(command))

    assert (asked, os.listdir(folder)) == ([], ['notes.txt'])


def test_settings_apply_and_the_mode_can_be_chosen(folder, state):
    config = folder.parent / 'approvals.yaml'
    config.write_text(WRITING_IS_FREE)
    calls = [WRITE, *run_shell('touch c')]

    results, asked, _, notes = outcome(folder, state, calls, config=config, named=True, mode='strict', confined=False)

    assert (folder / 'a').read_text() == 'b'
    assert asked == []
    assert 'Strict mode' in results[1].content
    assert notes[0].endswith(', mode strict')


@confining
@pytest.mark.parametrize('mode', ['interactive', 'approve_all'])
def test_a_listed_command_runs_outside_of_the_sandbox_if_a_person_approves(folder, state, mode):
    (folder / 'approvals.yaml').write_text('shell: {default: {approval: false}, host: [cat]}')
    outside = folder.parent / 'outside.txt'
    outside.write_text('from outside')
    calls = [ToolCallPart('run_shell', {'command': f'cat {outside}', 'access': access}) for access in ([], ['host'])]

    results, asked, _, _ = outcome(folder, state, calls, [True], config='approvals.yaml', named=True, mode=mode)

    said = [result.content for result in results]
    assert 'No such file' in said[0]
    if mode == 'interactive':
        assert (said[1], len(asked)) == ('from outside', 1)
    else:
        assert ('the mode `approve_all` blocks it' in said[1], asked) == (True, [])


def test_untrusted_settings_file_only_tightens_the_policy(folder, state, monkeypatch):
    monkeypatch.setenv('XDG_STATE_HOME', str(state))
    (folder / 'approvals.yaml').write_text(WRITING_IS_FREE)

    _, asked, *_ = outcome(folder, state, [WRITE], answers='n')

    assert len(asked) == 1


def test_the_log_begins_with_the_settings_and_has_the_decision_and_its_note(folder, state):
    denial = ApprovalDecision(approved=False, note='not today')

    outcome(folder, state, [ToolCallPart('delete', {'path': 'notes.txt'})], answers=[denial])

    lines = [json.loads(line) for line in (state / 'audit' / 'decisions.jsonl').read_text().splitlines()]
    assert [line['event'] for line in lines] == ['settings', 'question', 'decision']
    assert lines[2]['note'] == 'not today'
    assert (state / 'audit' / 'decisions.jsonl').stat().st_mode & 0o777 == 0o600
    assert {path.stat().st_mode & 0o777 for path in (state, *state.iterdir()) if path.is_dir()} == {0o700}


@pytest.mark.parametrize(('audit', 'events'), [('', ['settings', 'unasked', 'outcome']), (NOT_UNASKED, ['settings'])])
def test_calls_that_run_unasked_are_logged_unless_the_settings_say_otherwise(folder, state, audit, events):
    config = folder.parent / 'approvals.yaml'
    config.write_text(WRITING_IS_FREE + audit)

    outcome(folder, state, [WRITE], config=config, named=True, confined=False)

    assert (folder / 'a').exists()
    lines = (state / 'audit' / 'decisions.jsonl').read_text().splitlines()
    assert [json.loads(line)['event'] for line in lines] == events


def test_audit_folder_writable_by_others_is_refused(folder, state):
    (state / 'audit').mkdir(parents=True)
    state.chmod(0o700)
    (state / 'audit').chmod(0o777)

    with pytest.raises(AuditError, match='other users can write to the folder'):
        outcome(folder, state, [])


def test_a_state_directory_that_the_agent_could_write_to_is_refused(folder):
    with pytest.raises(StoreError, match='inside the project'):
        outcome(folder, folder / 'state', [])


def test_an_agent_of_the_users_own_is_under_the_policy(folder, state):
    agent = Agent(name='mine')

    @agent.tool_plain(requires_approval=True)
    def pay(amount: int) -> str:
        return f'paid {amount}'

    results, asked, _, notes = outcome(folder, state, [ToolCallPart('pay', {'amount': 5})], answers='y', agent=agent)

    assert results[0].content == 'paid 5'
    assert [request.tool_name for request in asked] == ['pay']
    assert notes[2].startswith('the agent has its own tools')


def test_earlier_messages_are_in_the_history(folder, state):
    first = outcome(folder, state, [])[2]

    second = outcome(folder, state, [], messages=first.messages)[2]

    assert len(second.messages) == 4


def test_notes_name_mode_directory_os_sandbox_and_settings(folder, state, monkeypatch):
    monkeypatch.setenv('XDG_STATE_HOME', str(state))

    defaults = outcome(folder, state, [], confined=False)[3]
    (folder / 'approvals.yaml').write_text('mode: strict\n')
    found = outcome(folder, state, [], confined=False)[3]
    named = outcome(folder, state, [], config=folder / 'approvals.yaml', named=True)[3]

    assert defaults[0].endswith(', mode interactive')
    assert defaults[1:4] == (
        f'directory {folder}',
        'no OS sandbox: commands are not confined',
        'no settings file, so the defaults apply',
    )
    assert f'settings {folder}/approvals.yaml (the file is not trusted, so it can only make rules stricter)' in found
    assert f'settings {folder}/approvals.yaml (trusted)' in named
    assert 'mode strict' in named[0]


class Careful(WrapperToolset[None]):
    """A toolset around another one, with a check of its own."""

    needs_approval = True


@pytest.mark.parametrize('kind', ['plain', 'decorated', 'in a toolset with a check'])
@pytest.mark.parametrize('rule', ['blocked', 'required'])
def test_a_rule_holds_for_every_tool_of_the_users_agent_and_a_check_asks(folder, tmp_path, kind, rule):
    function = requires_approval()(lambda: 'paid') if kind == 'decorated' else lambda: 'paid'
    tools = FunctionToolset([Tool(function, name='pay', takes_ctx=False)])
    agent = Agent(toolsets=[Careful(tools) if 'check' in kind else tools])
    (folder / 'approvals.yaml').write_text(f'tools: {{pay: {{approval: {rule}}}}}\n')

    results, asked, _, _ = outcome(folder, tmp_path / 'state', [ToolCallPart('pay', {})], answers='y', agent=agent)

    contents = {'blocked': "The tool 'pay' is blocked by policy.", 'required': 'paid'}
    assert [result.content for result in results] == [contents[rule]]
    assert [request.tool_name for request in asked] == ([] if rule == 'blocked' else ['pay'])


@pytest.mark.parametrize(
    ('agent', 'named'),
    [
        (Agent(capabilities=[Approvals()]), '`Approvals`'),
        (Agent(deferred_tool_handler=lambda ctx, requests: None), '`deferred_tool_handler`'),
    ],
)
def test_an_agent_with_a_handler_of_its_own_is_refused(folder, tmp_path, agent, named):
    with pytest.raises(AssistantError, match=named):
        outcome(folder, tmp_path / 'state', [], agent=agent)


def pay() -> str:
    return 'paid'


def test_a_rule_holds_for_every_tool_of_the_users_agent(folder, tmp_path):
    agent = Agent(name='mine')

    @agent.tool
    def pay(ctx: RunContext[None]) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired
        return 'paid'

    (folder / 'approvals.yaml').write_text('tools:\n  pay: {approval: blocked}\n')

    results, asked, _, _ = outcome(folder, tmp_path / 'state', [ToolCallPart('pay', {})], answers='y', agent=agent)

    assert [result.content for result in results] == ["The tool 'pay' is blocked by policy."]
    assert asked == []
