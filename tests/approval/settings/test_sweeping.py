"""The sweep runs around each command that can write to the workspace."""

import asyncio
import os
import subprocess
import threading
from errno import ENOSPC
from pathlib import Path

import pytest
from tool_approval.os_sandbox import Access
from tool_approval.os_sandbox.journal import Journal
from tool_approval.settings import RUN_SHELL

from tests.system import needs_git
from tool_approval import ApprovalController, execute_tool

from .desk import Desk
from .test_confinement import SETTINGS

PLANT = 'git init -q sub; echo "[core]" > sub/.git/config; printf "\\tfsmonitor = x\\n" >> sub/.git/config'
NOT_RUN = 'the OS sandbox cannot confine it'


@pytest.fixture
def desk(tmp_path, backend):
    (tmp_path / 'work' / 'priv').mkdir(parents=True)
    return Desk(tmp_path / 'work', SETTINGS, backend=backend)


@pytest.fixture
def state(cache):
    """The user's state folder."""
    return Path(os.environ['XDG_STATE_HOME'], 'tool-approval')


@needs_git
def test_what_a_command_leaves_is_swept_and_named(desk, state):
    said, _ = desk.run(PLANT)

    assert f'[moved {desk.folder}/sub/.git to {state}/set-aside/' in said
    assert not (desk.folder / 'sub/.git').exists()


@needs_git
@pytest.mark.parametrize(
    'command, is_guarded',
    [
        ('rm -r sub', False),
        ('rm -rf -- ./sub', False),
        ('git worktree remove --force sub', False),
        ('rm -r sub; true', True),
        ('rm -r other', True),
        ('git worktree add sub', True),
        ('ls', True),
    ],
)
def test_a_nested_repository_is_guarded_from_all_but_one_rm(tmp_path, backend, state, command, is_guarded):
    text = """\
        sandbox:
          paths:
            work: {root: ., mode: rw}
    """
    desk = Desk(tmp_path / 'work', text, backend=backend)
    (desk.folder / 'other').mkdir()
    subprocess.run(['git', 'init', '-q', 'sub'], cwd=desk.folder, check=True)

    desk.run(command, access=['write'])

    assert (str(desk.folder / 'sub/.git/config') in backend.profiles[-1].protected) == is_guarded


@needs_git
@pytest.mark.parametrize(('name', 'is_guarded'), [('rm', True), ('git', True), ('other', False)])
def test_a_program_that_commands_can_write_leaves_out_no_guard(tmp_path, backend, state, monkeypatch, name, is_guarded):
    monkeypatch.setenv('PATH', f'{tmp_path}/work/bin:/usr/bin:/bin')
    desk = Desk(tmp_path / 'work', 'sandbox: {paths: {work: {root: ., mode: rw}}}', backend=backend)
    subprocess.run(['git', 'init', '-q', 'sub'], cwd=desk.folder, check=True)
    (desk.folder / 'bin').mkdir()
    (desk.folder / 'bin' / name).touch()

    desk.run('rm -r sub', access=['write'])

    assert (str(desk.folder / 'sub/.git/config') in backend.profiles[-1].protected) == is_guarded


def test_without_a_state_folder_no_command_that_can_write_runs(tmp_path, backend, homeless, caplog):
    desk = Desk(tmp_path / 'work', SETTINGS, backend=backend)

    assert NOT_RUN in desk.run('printf a')[0]
    assert 'there is no state folder' in caplog.text
    assert backend.commands == []


def test_where_no_journal_can_be_opened_nothing_runs(desk, backend, state, caplog):
    state.mkdir(parents=True, mode=0o700)
    (state / 'sweeps').write_text('a file')

    assert NOT_RUN in desk.run('printf a')[0]
    assert 'the journal of the sweep cannot be opened' in caplog.text
    assert backend.commands == []


def test_where_the_sweep_cannot_be_prepared_nothing_runs(desk, backend, monkeypatch, caplog):
    def fail(*arguments, **options):
        raise OSError(ENOSPC, 'No space left on device')

    monkeypatch.setattr('tool_approval.settings.sweeping.take', fail)

    said = desk.run('printf a')[0]

    assert said.endswith('the sweep cannot be prepared: [Errno 28] No space left on device.')
    assert NOT_RUN in said
    assert 'the sweep cannot be prepared' in caplog.text
    assert backend.commands == []


@pytest.mark.parametrize('is_released', [True, False])
def test_a_command_waits_for_another_that_writes_here(tmp_path, backend, state, monkeypatch, caplog, is_released):
    desk = Desk(tmp_path / 'work', SETTINGS + '      timeout_s: 20\n', backend=backend)
    other = Journal.of(str(state), str(desk.folder))
    waited = []

    async def wait(seconds):
        waited.append(seconds)
        if is_released:
            other.close()
        else:
            monkeypatch.setattr('time.monotonic', lambda: float('inf'))

    monkeypatch.setattr('tool_approval.settings.sweeping.asyncio.sleep', wait)
    try:
        said, _ = desk.run('printf a')
    finally:
        if not is_released:
            other.close()

    assert len(waited) == 1
    assert (said == 'a') == is_released
    assert ('another command still writes here' in caplog.text) != is_released
    assert len(backend.commands) == is_released


@needs_git
def test_a_sweep_that_fails_stops_the_next_command_until_it_succeeds(desk, state, monkeypatch):
    def full(*paths):
        raise OSError('the disk is full')

    with monkeypatch.context() as patch:
        patch.setattr('tool_approval.os_sandbox.sweep.os.rename', full)
        said, _ = desk.run(PLANT)
        after, _ = desk.run('printf a')

    assert 'The command may have left something here that git runs, and the check failed: the disk is full.' in said
    assert NOT_RUN in after
    assert desk.run('printf a') == ('a', True)
    assert not (desk.folder / 'sub/.git').exists()


@needs_git
def test_a_start_notes_what_it_has_swept_and_what_it_could_not(desk, backend, state, monkeypatch):
    def full(*paths):
        raise OSError('the disk is full')

    with monkeypatch.context() as patch:
        patch.setattr('tool_approval.os_sandbox.sweep.os.rename', full)
        desk.run(PLANT)
        desk.open(desk.loaded, backend=backend)

    assert 'what a command left could not be checked: the disk is full' in desk.workspace.notes
    desk.open(desk.loaded, backend=backend)
    assert any(note.startswith(f'moved {desk.folder}/sub/.git to ') for note in desk.workspace.notes)


def test_a_call_that_is_cancelled_twice_waits_for_the_sweep(desk, monkeypatch):
    begun, may_end = threading.Event(), threading.Event()
    finish = Journal.finish

    def slow(journal, tree):
        begun.set()
        assert may_end.wait(30)
        return finish(journal, tree)

    monkeypatch.setattr(Journal, 'finish', slow)
    call = execute_tool(desk.workspace.shell, RUN_SHELL, {'command': 'printf a'}, ApprovalController('approve_all'))

    async def main():
        task = asyncio.create_task(call)
        await asyncio.to_thread(begun.wait, 30)
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0.05)
        assert not task.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())

    assert desk.run('printf a') == ('a', True)


@pytest.mark.skipif(not os.path.isfile('/usr/bin/git'), reason='git is not installed below /usr')
def test_a_command_with_access_to_git_gets_the_settings_and_the_ignored_files_of_the_user(
    desk, backend, monkeypatch, tmp_path
):
    monkeypatch.setenv('HOME', str(tmp_path))
    monkeypatch.setenv('XDG_CONFIG_HOME', str(tmp_path / 'config'))
    ignored = tmp_path / 'config/git/ignore'
    ignored.parent.mkdir(parents=True)
    ignored.write_text('*.tmp')
    subprocess.run(['/usr/bin/git', 'init', '-q'], cwd=desk.folder, check=True)
    subprocess.run(['/usr/bin/git', 'init', '-q', 'sub'], cwd=desk.folder, check=True)
    desk.open(desk.loaded, backend=backend)

    said, _ = desk.run('git config core.excludesFile; git config gc.auto', access=['git'])

    assert said.splitlines() == [str(ignored), '0']
    [profile] = backend.profiles
    assert profile.access(str(ignored)) is Access.READ
    assert profile.access(str(desk.folder / '.git/index')) is Access.WRITE
    for name in ('.git/config', 'sub/.git/config', 'sub/.git/hooks'):
        assert profile.access(str(desk.folder / name)) is Access.READ
