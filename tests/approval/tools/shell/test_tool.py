import asyncio
import os

import pytest
from tool_approval.testing import ScriptedUI
from tool_approval.tools.shell import ShellTool
from tool_approval.tools.shell import tool as tool_module
from tool_approval.tools.shell.tool import digest_of

from tool_approval import (
    ApprovalBlocked,
    ApprovalContext,
    ApprovalController,
    ApprovalDecision,
    ApprovalDenied,
    execute_tool,
)

from .parts import OPEN, blocked, unasked


def check(tool, command, name='run_shell'):
    return tool.check_approval(ApprovalContext(tool_name=name, args={'command': command}))


def test_allowed_command_needs_no_approval(tmp_path):
    assert check(ShellTool({'rules': unasked('ls')}, cwd=tmp_path), 'ls -l') is None


def test_blocked_command_is_refused_with_the_rule(tmp_path):
    tool = ShellTool({'rules': blocked('rm')}, cwd=tmp_path)

    with pytest.raises(PermissionError, match='the rule `rm` blocks it'):
        check(tool, 'ls; rm a')


@pytest.mark.parametrize('command', [None, 1, ['ls'], b'ls'])
def test_command_that_is_not_a_string_is_refused(tmp_path, command):
    with pytest.raises(PermissionError, match='must be a string'):
        check(ShellTool(cwd=tmp_path), command)


def test_a_request_shows_the_whole_command_and_where_it_runs(tmp_path):
    command = 'git fetch ' + 'a' * 7000 + '\n' * 200 + 'b'

    request = check(ShellTool(cwd=tmp_path), command, name='sh')

    assert request.tool_name == 'sh'
    assert request.presentation.type == 'command'
    assert request.presentation.content == command
    assert request.presentation.language == 'bash'
    assert request.presentation.metadata['cwd'] == str(tmp_path)
    assert request.payload == {'command': command, 'cwd': str(tmp_path)}
    assert request.bound_to == {'cwd': str(tmp_path)}
    assert len(request.description) < 200


def test_a_rules_description_is_the_requests(tmp_path):
    rule = {'pattern': 'git commit', 'description': 'Create a commit'}

    request = check(ShellTool({'rules': [rule]}, cwd=tmp_path), 'git commit -m a')

    assert request.description == 'Create a commit'
    assert request.reason == 'the rule `git commit` asks'


@pytest.mark.parametrize(
    ('command', 'why'),
    [
        ('cp a b', 'no rule matches, and the default is to ask'),
        ('ls && cp a b', '`cp a b`: no rule matches, and the default is to ask'),
        ('mv c d; cp a b', '`mv c d` (and 1 more): no rule matches, and the default is to ask'),
        ("ls; cp a 'b\nc'", "`cp a 'b\\nc'`: no rule matches, and the default is to ask"),
        # One command, which is a part beside what it runs.
        ('python -m pytest', 'no rule matches, and the default is to ask'),
        (f'ls; cp a {"b" * 100}', f'`cp a {"b" * 52}...`: no rule matches, and the default is to ask'),
    ],
)
def test_reason_names_the_part_of_the_command_that_asks(tmp_path, command, why):
    assert check(ShellTool({'rules': unasked('ls')}, cwd=tmp_path), command).reason == why


def test_a_plain_command_offers_to_remember_its_sub_command(tmp_path):
    tool = ShellTool(cwd=tmp_path)

    [option] = check(tool, 'git status -s').remember_options

    assert option.kind == 'sub-command'
    assert option.payload == {'program': ['git', 'status'], 'cwd': str(tmp_path)}
    assert check(tool, 'git status -s; ls').remember_options == ()


class Approver:
    """Approves the first question for the session, under the widest option, and counts the questions."""

    def __init__(self):
        self.asked = []

    async def choose(self, request, *, mode):
        self.asked.append(request.args['command'])
        kind = request.remember_options[-1].kind if request.remember_options else 'exact'
        return ApprovalDecision(approved=True, remember='session', remember_option=kind)


def test_a_remembered_sub_command_covers_plain_commands_and_no_others(tmp_path):
    ui = Approver()
    tool, controller = ShellTool(cwd=tmp_path), ApprovalController(ui=ui)
    commands = [
        'git branch', 'git branch -v', 'git branch; true', 'git branch > a', 'git -c a=b branch', 'A=1 git branch',
        'git tag',
    ]  # fmt: skip

    async def main():
        for command in commands:
            await execute_tool(tool, 'run_shell', {'command': command}, controller)

    asyncio.run(main())

    assert ui.asked == ['git branch', *commands[2:]]


@pytest.mark.parametrize(
    ('command', 'name', 'others'),
    [('make test', 'Makefile', ['make test -k']), ('gmake test', 'GNUmakefile', ['gmake test -j4'])],
)
def test_a_remembered_target_covers_no_changed_definition(tmp_path, command, name, others):
    tool = ShellTool(cwd=tmp_path)

    (tmp_path / name).write_text('{}')
    first = check(tool, command)
    (tmp_path / name).write_text('{"scripts": {}}')
    second = check(tool, command)
    (tmp_path / name).unlink()

    options = [each.remember_options[0] for each in (first, second, check(tool, command))]
    assert options[0].label.endswith(f'no path outside, until {name} changes')
    assert len({str(option.payload) for option in options}) == 3
    assert [check(tool, each).remember_options for each in others] == [(options[2],)] * len(others)


def test_a_file_that_cannot_be_read_has_no_digest(tmp_path):
    assert digest_of(str(tmp_path / 'absent')) == ''


def test_a_command_runs_after_approval_and_not_after_denial(tmp_path):
    tool = ShellTool(cwd=tmp_path)
    approves = ApprovalController(ui=ScriptedUI([ApprovalDecision(approved=True)]))
    denies = ApprovalController(ui=ScriptedUI([ApprovalDecision(approved=False, note='no')]))

    async def main():
        made = await execute_tool(tool, 'run_shell', {'command': 'touch a; echo made'}, approves)
        with pytest.raises(ApprovalDenied):
            await execute_tool(tool, 'run_shell', {'command': 'touch b'}, denies)
        return made

    assert asyncio.run(main()) == 'made'
    assert os.listdir(tmp_path) == ['a']


@pytest.mark.parametrize('mode', ['interactive', 'approve_all', 'strict'])
def test_a_blocked_command_is_blocked_in_every_mode(tmp_path, mode):
    tool = ShellTool({'rules': blocked('touch'), 'default': OPEN}, cwd=tmp_path)

    with pytest.raises(ApprovalBlocked):
        asyncio.run(execute_tool(tool, 'run_shell', {'command': 'touch a'}, ApprovalController(mode)))

    assert os.listdir(tmp_path) == []


def test_running_by_itself_does_not_get_around_a_block(tmp_path):
    tool = ShellTool({'rules': blocked('touch'), 'default': OPEN}, cwd=tmp_path)

    with pytest.raises(ApprovalBlocked):
        asyncio.run(tool.run('true; touch a'))

    assert os.listdir(tmp_path) == []


def test_a_redirection_is_unasked_where_the_file_sandbox_says_so(tmp_path):
    rules = {'rules': unasked('echo')}
    tool = ShellTool(rules, cwd=tmp_path, is_writable=lambda path: path == f'{tmp_path}/a')

    assert check(tool, 'echo b > a') is None
    assert check(tool, 'echo b > c') is not None
    assert check(tool, 'cd x; echo b > a') is not None


def test_a_file_that_tee_writes_asks_unless_the_rule_names_it(tmp_path):
    tool = ShellTool({'rules': unasked('echo', 'tee')}, cwd=tmp_path, is_writable=lambda path: True)

    assert tool.explain('echo a | tee f').decision == 'ask'
    assert ShellTool({'rules': unasked('echo', 'tee -a f')}).explain('echo a | tee -a f').decision == 'allow'


def test_without_bash_nothing_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(tool_module, '_SHELLS', (str(tmp_path / 'bash'),))

    result = asyncio.run(ShellTool({'default': OPEN}, cwd=tmp_path).run('touch a'))

    assert result.for_model() == 'The command was not run: bash was not found'
    assert os.listdir(tmp_path) == []
