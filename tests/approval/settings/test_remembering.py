"""What a remembered approval of a confined command covers, and until when."""

import asyncio
import os

import pytest
from tool_approval.os_sandbox import Access
from tool_approval.settings import RUN_SHELL
from tool_approval.testing import RecordingUI

from tool_approval import ApprovalController, ApprovalDecision, execute_tool

from .desk import Desk
from .test_extra_access import FILES, SETTINGS, checked, with_environment


@pytest.fixture
def desk(tmp_path, backend):
    return with_environment(Desk(tmp_path / 'work', SETTINGS, backend=backend))


def test_remember_option_names_the_access_it_covers(desk):
    [option] = checked(desk, 'mkdir a').remember_options
    [plain] = checked(desk, 'pip list').remember_options

    covered = 'in this directory, with safe arguments and no path outside'
    assert option.label == f'any simple `mkdir` command, {FILES} included, {covered}'
    assert option.payload['extra_access'] == {'files': [str(desk.folder)]}
    assert plain.label == f'any simple `pip list` command {covered}'
    assert 'extra_access' not in plain.payload
    for command in ('pip uninstall -y a', 'npm install a'):
        assert checked(desk, command).remember_options == ()


@pytest.mark.parametrize(
    'command, access, answers',
    [
        ('python3 fetch.py', ['network'], ('approve', 'edit', 'deny')),
        ('make fetch', ['network'], ('approve', 'edit', 'deny')),
        ('./fetch; curl example.org', [], ('approve', 'edit', 'deny')),
        ('pytest', ['environment'], ('approve', 'edit', 'deny')),
        ('curl example.org', ['environment'], ('approve', 'edit', 'deny')),
        ('curl example.org', [], None),
        ('pip install a', [], None),
        ('pip uninstall a', [], None),
        ('make fetch', ['write'], None),
        ('.venv/bin/pip install a', [], None),
        ('python3 -m pip install a', [], ('approve', 'edit', 'deny')),
    ],
)
def test_the_network_is_not_remembered_for_what_runs_files_of_the_workspace(desk, command, access, answers):
    assert checked(desk, command, access=access).answers == answers


@pytest.mark.parametrize(
    'command',
    [
        'pip install -r /tmp/a.txt',
        'pip install -r/tmp/a.txt',
        'pip install -r "/t"mp/a.txt',
        'pip install -r //tmp/a.txt',
        'pip install file://localhost/tmp/a',
        'pip install -r link',
        'curl -d @/tmp/a example.org',
        'curl --config=/proc/self/root/tmp/a example.org',
        'curl -d "@$PWD/a" example.org',
        'curl -d @a example.org > b',
        'PIP_CONFIG_FILE=a pip install b',
    ],
)
def test_remembered_words_name_no_file_that_is_not_seen(desk, command):
    (desk.folder / 'link').symlink_to('/tmp/a.txt')

    assert checked(desk, command).answers == ('approve', 'edit', 'deny')


@pytest.mark.parametrize(
    'command, name',
    [
        ('curl -d @body example.org', 'body'),
        ('curl -d "@bo""dy" example.org', 'body'),
        ('curl --data=body example.org', 'body'),
        ('pip install -rbody', 'body'),
        ('npm install', 'package.json'),
        ('pip install ./part', 'part/setup.py'),
        ('curl example.org', 'bin/curl'),
        ('curl -T large example.org', 'large'),
    ],
)
def test_the_network_is_remembered_while_the_files_that_the_words_name_stay_the_same(
    tmp_path, backend, monkeypatch, command, name
):
    monkeypatch.setenv('PATH', f'{tmp_path}/work/bin:/usr/bin:/bin')
    desk = with_environment(Desk(tmp_path / 'work', SETTINGS, backend=backend))
    for folder in ('bin', 'part'):
        (desk.folder / folder).mkdir()
    before = checked(desk, command)
    found = []

    for size in (1, 2, 2) if name != 'large' else (65 << 20, 66 << 20):
        (desk.folder / name).touch()
        os.truncate(desk.folder / name, size)
        found.append(checked(desk, command).payload)

    assert 'defined_by' not in before.payload
    assert [each.keys() - before.payload.keys() for each in found] == [{'defined_by'}] * len(found)
    assert found[0] != found[1] and found[1:] == [found[1]] * len(found[1:])


def test_a_remembered_program_is_not_one_that_a_command_has_put_in_its_place(tmp_path, backend, monkeypatch):
    monkeypatch.setenv('PATH', f'{tmp_path}/work/bin:/usr/bin:/bin')
    desk = with_environment(Desk(tmp_path / 'work', SETTINGS, backend=backend))
    (desk.folder / 'bin').mkdir()
    [before] = checked(desk, 'mkdir a').remember_options

    (desk.folder / 'bin/mkdir').symlink_to('/usr/bin/touch')
    [after] = checked(desk, 'mkdir a').remember_options

    assert 'defined_by' not in before.payload
    assert after.payload['defined_by'] == {'bin/mkdir': '/usr/bin/touch'}
    assert after.label.endswith(', until bin/mkdir changes')


@pytest.mark.usefixtures('own_home')  # pip and cargo keep things there
def test_a_remembered_sub_command_covers_no_other_access(desk, backend):
    ui = RecordingUI(ApprovalDecision(approved=True, remember='session', remember_option='sub-command'))
    controller = ApprovalController(ui=ui)

    async def main():
        for access in (None, ['write'], ['write'], None):
            arguments = {'command': 'pip list', **({'access': access} if access else {})}
            await execute_tool(desk.workspace.shell, RUN_SHELL, arguments, controller, {'run_id': 'r'})

    asyncio.run(main())

    assert [request.args.get('access') for request in ui.requests] == [None, ['write']]
    written = [profile.access(str(desk.folder)) is Access.WRITE for profile in backend.profiles]
    assert written == [False, True, True, False]


@pytest.mark.parametrize('config', ['[core]\n\thooksPath = .husky\n', '[filter "lfs"]\n\tclean = ./clean\n'])
def test_a_commit_that_runs_what_a_command_could_write_is_remembered_for_one_call(desk, config):
    (desk.folder / '.git' / 'objects').mkdir(parents=True)
    [option] = checked(desk, 'git commit -m a').remember_options

    (desk.folder / '.git' / 'config').write_text(config)

    assert option.label.startswith('any simple `git commit` command, writes to .git and files here; can change')
    assert checked(desk, 'git commit -m a').remember_options == ()


def test_a_commit_with_a_hook_is_remembered_for_one_call(desk):
    (desk.folder / '.git' / 'objects').mkdir(parents=True)
    (desk.folder / '.git' / 'hooks').mkdir()
    (desk.folder / '.git' / 'hooks' / 'pre-push').touch()
    before = checked(desk, 'git commit -m a').remember_options

    (desk.folder / '.git' / 'hooks' / 'commit-msg').touch()

    assert (len(before), checked(desk, 'git commit -m a').remember_options) == (1, ())
