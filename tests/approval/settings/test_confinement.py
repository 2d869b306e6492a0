"""A command gets the profile that fits how it was allowed."""

import asyncio
import os

import pytest
from tool_approval.os_sandbox import (
    Access,
    BubblewrapBackend,
    ExtraAccess,
    OSSandboxError,
    RefusingBackend,
    UnconfinedBackend,
)
from tool_approval.settings import RUN_SHELL, open_workspace
from tool_approval.settings.refusing import REFUSED
from tool_approval.testing import ScriptedUI
from tool_approval.tools.shell.environment import LOCALE

from tool_approval import (
    ApprovalBlocked,
    ApprovalContext,
    ApprovalController,
    ApprovalDecision,
    ApprovalPolicy,
    execute_tool,
)

from .desk import Desk, confining, settings_of

SETTINGS = """\
    sandbox:
      paths:
        work: {root: ., mode: rw, write_approval: false}
        priv: {root: priv, mode: rw, read_approval: true}
    shell:
      rules:
        - {pattern: echo, approval: false}
        - {pattern: rm, allowed: false}
        - {pattern: cat, approval: false, sandbox_paths: [work]}
"""


@pytest.fixture
def desk(tmp_path, backend):
    (tmp_path / 'work' / 'priv').mkdir(parents=True)
    return Desk(tmp_path / 'work', SETTINGS, backend=backend)


def was_approved(desk, profile):
    return profile.access(str(desk.folder / 'priv' / 'file')) is not Access.NONE


def test_pre_approved_command_has_access_only_to_what_needs_no_approval(desk, backend):
    assert desk.run('echo hello') == ('hello', False)
    assert [was_approved(desk, profile) for profile in backend.profiles] == [False]


def test_approved_command_has_access_to_what_needs_approval_and_the_question_shows_it(desk, backend):
    assert desk.run('printf hello') == ('hello', True)
    assert desk.run('sh -c "printf hello"') == ('hello', True)

    assert [profile.access(str(desk.folder / 'priv' / 'file')) for profile in backend.profiles] == [
        Access.READ,
        Access.WRITE,
    ]
    assert [request.presentation.metadata['extra_access'] for request in desk.ui.requests] == [
        ['reads files in priv'],
        ['reads and writes files in priv (not .git)'],
    ]


def test_an_approval_gives_the_base_profile_and_what_was_shown_of_what_it_can_give(tmp_path, backend):
    text = """\
        sandbox:
          paths:
            work: {root: ., mode: rw}
            free: {root: free, mode: rw, write_approval: false}
            priv: {root: priv, mode: rw, read_approval: true}
            shown: {root: shown, mode: ro, read_approval: true}
            shut: {root: shut, mode: rw, read_approval: blocked}
            texts: {root: texts, mode: rw, suffixes: [.txt]}
    """
    desk = Desk(tmp_path / 'work', text, backend=backend)
    confinement = desk.workspace.shell._confinement
    folders = {name: str(desk.folder / name) for name in ('', 'free', 'priv', 'shown', 'shut', 'texts')}
    paths = [f'{folder.rstrip("/")}/a.txt' for folder in folders.values()]

    def levels(profile):
        return [profile.access(path) for path in paths]

    everything = ExtraAccess(files=tuple(map(os.path.normpath, folders.values())), reads=(folders['shown'],))
    reading = ExtraAccess(reads=(folders['priv'],))
    read, write, none = Access.READ, Access.WRITE, Access.NONE
    assert levels(confinement.unasked) == [read, write, none, none, none, read]
    assert levels(confinement.given(ExtraAccess())) == levels(confinement.unasked)
    assert levels(confinement.given(reading)) == [read, write, read, none, none, read]
    # On Linux, no command can use a folder with `suffixes`, and elsewhere it is not opened either.
    assert levels(confinement.given(everything)) == [write, write, write, read, none, read]


def test_words_that_name_a_path_for_which_reading_needs_approval_ask_at_once(desk, backend):
    assert desk.run('echo priv/file')[1] is True
    assert desk.run('echo "priv/"*')[1] is True
    assert desk.run('echo private')[1] is False

    assert [was_approved(desk, profile) for profile in backend.profiles] == [True, True, False]


def test_only_bubblewrap_limits_what_a_command_uses(desk, tmp_path):
    confined = Desk(tmp_path / 'other', SETTINGS, backend=BubblewrapBackend()).workspace.shell

    assert desk.workspace.shell.limits is None
    assert confined.limits is not None
    assert 0 < confined.limits.memory_bytes < os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')


def test_a_blocked_command_is_never_confined(desk, backend):
    said, asked = desk.run('rm x')

    assert 'the rule `rm` blocks it' in said
    assert not asked
    assert backend.commands == []


def approved_to_run(desk, backend, *commands):
    """Return which of the commands get the profile of an approved one, in a function whose call was approved."""

    async def function(command):
        for each in commands:
            await desk.workspace.shell.run(each)

    controller = ApprovalController('approve_all')
    asyncio.run(execute_tool(function, 'function', {'command': 'printf a'}, controller, default='required'))
    return [was_approved(desk, profile) for profile in backend.profiles]


def test_approval_of_another_tool_that_showed_no_access_gives_none(desk, backend):
    assert approved_to_run(desk, backend, 'printf a', 'printf a') == [False, False]


def test_approval_covers_one_run_of_the_command(desk, backend):
    async def main():
        await execute_tool(desk.workspace.shell, RUN_SHELL, {'command': 'printf a'}, ApprovalController('approve_all'))
        await desk.workspace.shell.run('printf a')

    asyncio.run(main())

    assert [was_approved(desk, profile) for profile in backend.profiles] == [True, False]


def test_approval_covers_no_other_command(desk, backend):
    assert approved_to_run(desk, backend, 'printf b', 'printf a') == [False, False]


def test_check_without_a_decision_approves_nothing(desk, backend):
    async def main():
        shell = desk.workspace.shell
        shell.check_approval(ApprovalContext(tool_name=RUN_SHELL, args={'command': 'printf a'}))
        await shell.run('printf a')

    asyncio.run(main())

    assert [was_approved(desk, profile) for profile in backend.profiles] == [False]


def test_link_changed_after_the_check_voids_the_approval(desk, backend, tmp_path):
    (desk.folder / 'a.txt').write_text('inside')
    shell = desk.workspace.shell

    async def main():
        request = shell.check_approval(ApprovalContext(tool_name=RUN_SHELL, args={'command': 'cat a.txt'}))
        (desk.folder / 'a.txt').unlink()
        (desk.folder / 'a.txt').symlink_to(tmp_path)
        return request, shell.explain('cat a.txt').decision, await shell.run('cat a.txt')

    request, decision, _ = asyncio.run(main())

    assert (request, decision) == (None, 'ask')
    assert [was_approved(desk, profile) for profile in backend.profiles] == [False]


def test_a_policy_that_pre_approves_the_whole_tool_approves_no_command(tmp_path, backend):
    text = SETTINGS + '    tools: {run_*: {approval: none}}\n'
    desk = Desk(tmp_path / 'work', text, backend=backend)
    (desk.folder / 'priv').mkdir()

    assert desk.run('printf hello') == ('hello', False)
    assert [was_approved(desk, profile) for profile in backend.profiles] == [False]


@pytest.mark.parametrize(
    ('name', 'policy', 'metadata'),
    [
        (RUN_SHELL, {RUN_SHELL: {'approval': 'none'}}, {}),
        ('x_run_shell', {'x_*': {'approval': 'none'}}, {}),
        (
            RUN_SHELL,
            ApprovalPolicy(auto_grant={'ci': ['net']}),
            {'isolation_profile': 'ci', 'missing_capabilities': ['net']},
        ),
    ],
)
def test_a_rule_of_any_controller_under_any_name_approves_no_command(desk, backend, name, policy, metadata):
    controller = ApprovalController('strict', policy=policy)

    asyncio.run(execute_tool(desk.workspace.shell, name, {'command': 'printf a'}, controller, metadata))

    assert [was_approved(desk, profile) for profile in backend.profiles] == [False]


def test_approval_by_mode_or_memory_counts_as_approval(desk, backend):
    remembering = ApprovalController(ui=ScriptedUI([ApprovalDecision(approved=True, remember='session')]))

    async def main():
        for controller in (ApprovalController('approve_all'), remembering, remembering):
            await execute_tool(desk.workspace.shell, RUN_SHELL, {'command': 'printf a'}, controller, {'run_id': 'r'})

    asyncio.run(main())

    assert [was_approved(desk, profile) for profile in backend.profiles] == [True] * 3


def test_command_changed_by_the_approver_is_approved(desk, backend):
    change = ApprovalDecision(approved=True, override_args={'command': 'printf b'})
    controller = ApprovalController(ui=ScriptedUI([change]))

    said = asyncio.run(execute_tool(desk.workspace.shell, RUN_SHELL, {'command': 'printf a'}, controller))

    assert said == 'b'
    assert [was_approved(desk, profile) for profile in backend.profiles] == [True]


def test_pre_approved_call_inside_an_approved_one_is_not_approved(desk, backend):
    shell = desk.workspace.shell

    async def outer(command):
        free = ApprovalController(policy={RUN_SHELL: {'approval': 'none'}})
        await execute_tool(shell, RUN_SHELL, {'command': command}, free)

    controller = ApprovalController('approve_all')
    asyncio.run(execute_tool(outer, 'outer', {'command': 'printf a'}, controller, default='required'))

    assert [was_approved(desk, profile) for profile in backend.profiles] == [False]


def test_search_path_of_commands_has_no_relative_part(desk, backend, monkeypatch):
    monkeypatch.setenv('PATH', f'.::bin:{os.environ["PATH"]}')

    desk.run('echo hello')

    [command] = backend.commands
    assert command[0] == '/usr/bin/env'
    assert command[1].startswith('PATH=/')
    assert 'GIT_TERMINAL_PROMPT=0' in command
    assert command[-2:] == ['--', 'echo hello']


@confining
def test_no_locale_of_the_agent_reaches_a_command(tmp_path, monkeypatch):
    for name in ('LC_ALL', 'LC_CTYPE', 'LANG', 'LANGUAGE'):
        monkeypatch.setenv(name, 'zh_CN.GBK')
    for options in ({'backend': UnconfinedBackend()}, {}):
        desk = Desk(tmp_path / 'work', SETTINGS, **options)

        said = desk.approved('echo "$LC_ALL:$LC_CTYPE:$LANG:$LANGUAGE"')

        assert said == f'{LOCALE}:::'


def test_without_an_os_sandbox_commands_run_as_they_are(tmp_path):
    desk = Desk(tmp_path / 'work', SETTINGS, backend=UnconfinedBackend())

    assert desk.run('echo hello') == ('hello', False)


def test_command_that_cannot_be_confined_is_refused_and_logged(desk, backend, monkeypatch, caplog):
    def fail(command, profile, cwd):
        raise OSSandboxError('the root leads elsewhere', path='/secret/place')

    monkeypatch.setattr(backend, 'wrap', fail)

    said, _ = desk.run('echo hello')

    assert said == (
        "Blocked 'shell': The command was not run: the OS sandbox cannot confine it as the settings require: "
        'the root leads elsewhere.'
    )
    assert "'/secret/place': the root leads elsewhere" in caplog.text


@pytest.fixture
def refusing(tmp_path):
    return Desk(tmp_path / 'work', SETTINGS, backend=RefusingBackend('no OS sandbox works here'))


@pytest.mark.parametrize('command', ['echo hello', 'printf hello', 'rm x'])
def test_under_refuse_tools_no_command_is_asked_about_or_run(refusing, command):
    assert refusing.run(command) == (f"Blocked 'run_shell': {REFUSED}", False)
    with pytest.raises(ApprovalBlocked, match='File and shell tools are refused'):
        asyncio.run(refusing.workspace.shell.run(command))


def test_under_refuse_tools_no_file_is_asked_about_or_used(refusing):
    (refusing.folder / 'a.txt').write_text('a')

    for name, arguments in (
        ('read_file', {}),
        ('write_file', {'content': 'b'}),
        ('list_files', {}),
        ('delete', {}),
        ('copy', {'dest': 'b.txt'}),
    ):
        assert refusing.use(name, path='a.txt', **arguments) == (f"Blocked '{name}': {REFUSED}", False)
    assert refusing.workspace.files.decide('read_file', 'a.txt').outcome == 'block'
    assert (refusing.folder / 'a.txt').read_text() == 'a'


def test_under_refuse_tools_other_tools_work(refusing):
    def add(a: int, b: int) -> int:
        return a + b

    assert asyncio.run(execute_tool(add, 'add', {'a': 1, 'b': 2}, refusing.controller)) == 3


def test_settings_made_in_code_are_trusted(tmp_path, backend):
    workspace = open_workspace(settings_of(SETTINGS), tmp_path, backend=backend)

    assert workspace.shell.explain('echo a').decision == 'allow'
    assert workspace.directory == tmp_path


def test_a_root_that_many_programs_write_to_is_noted(tmp_path, backend, monkeypatch):
    monkeypatch.setenv('HOME', str(tmp_path / 'home'))
    note = f'{tmp_path} is a home, or shared by many programs, so repositories that commands leave in it are not'
    settings = 'sandbox: {paths: {all: {root: .., mode: MODE}}}'

    for mode, given, is_noted in (('rw', backend, True), ('ro', backend, False), ('rw', UnconfinedBackend(), False)):
        desk = Desk(tmp_path / 'work', settings.replace('MODE', mode), backend=given)

        assert any(each.startswith(note) for each in desk.workspace.notes) == is_noted
