"""Confined commands use the toolchains of the user, and change none of them."""

import os
import sys
import venv
from pathlib import Path

import pytest
from tool_approval.os_sandbox import Access, BubblewrapBackend, ExtraAccess
from tool_approval.settings import RUN_SHELL, open_workspace

from .desk import Backend, Desk, settings_of

SETTINGS = """\
    sandbox:
      paths:
        work: {root: ., mode: rw, write_approval: false}
    shell:
      rules:
        - {pattern: cat, approval: false}
        - {pattern: touch, approval: false}
        - {pattern: ls, approval: false}
        - {pattern: tool, approval: false, arguments: any}
        - {pattern: python, approval: false, arguments: any}
"""
PROGRAM = '#!/bin/bash\necho "$0 runs"\n'


@pytest.fixture
def house(confined_folder, monkeypatch):
    """A home directory with a project in it, and nothing else of this machine in the environment."""
    folder = confined_folder
    (folder / 'project' / '.git').mkdir(parents=True)
    (folder / 'project' / 'priv').mkdir()
    for name in ('VIRTUAL_ENV', 'CONDA_PREFIX', 'PYENV_ROOT', 'RUSTUP_HOME', 'CARGO_HOME', 'NVM_DIR'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv('HOME', str(folder))
    monkeypatch.setenv('XDG_STATE_HOME', str(folder / 'state'))
    monkeypatch.setenv('PATH', '/usr/bin:/bin')
    return folder


def make(folder, *files, text=PROGRAM):
    for name in files:
        file = Path(folder, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)


def test_confined_the_tests_of_a_project_run_in_the_active_environment(house, monkeypatch):
    if sys.prefix == sys.base_prefix:
        pytest.skip('the tests run in no virtual environment')
    monkeypatch.setenv('VIRTUAL_ENV', sys.prefix)
    monkeypatch.setenv('PATH', f'{sys.prefix}/bin:/usr/bin:/bin')
    (house / 'project' / 'test_it.py').write_text('def test_it():\n    assert 1 + 1 == 2\n')
    desk = Desk(house / 'project', SETTINGS)

    said = desk.approved('python -m pytest -q -p no:cacheprovider test_it.py')

    assert '1 passed' in said
    # A pre-approved command uses it as well.
    assert desk.run('python -c "import pytest, sys; print(sys.prefix)"')[0] == sys.prefix
    assert 'Read-only file system' in desk.approved(f'touch {sys.prefix}/lib/x')


@pytest.mark.parametrize(
    ('files', 'program'),
    [
        (('.nvm/nvm.sh', '.nvm/versions/node/v20.1.0/bin/node'), 'node'),
        (('.cargo/bin/cargo', '.rustup/settings.toml', '.rustup/toolchains/stable/bin/rustc'), 'cargo'),
        (('.pyenv/libexec/pyenv', '.pyenv/shims/python3.9', '.pyenv/versions/3.9.1/bin/python3.9'), 'python3.9'),
        (('go/bin/go', 'go/VERSION', 'go/src/runtime/x.go'), 'go'),
        (('.local/bin/uv',), 'uv'),
    ],
)
def test_confined_a_toolchain_in_the_home_directory_runs_and_its_credentials_are_not_there(
    house, monkeypatch, files, program
):
    make(house, *files)
    secrets = ['.cargo/credentials.toml', '.npmrc', '.pypirc', '.nvm/.npmrc', 'go/secret', '.local/bin/private']
    make(house, *secrets, text='token-s3cret\n')
    first = [house / '.nvm/versions/node/v20.1.0/bin', house / 'go/bin', house / '.local/bin']
    monkeypatch.setenv('PATH', f'{":".join(map(str, first))}:/usr/bin:/bin')
    desk = Desk(house / 'project', SETTINGS)

    said = desk.approved(program)

    assert said.endswith(f'/{program} runs')
    for secret in secrets:
        assert 's3cret' not in desk.approved(f'cat {house}/{secret}; cat ~/{secret}')
    assert 'Read-only file system' in desk.approved(f'touch {said.removesuffix(" runs")}')


def test_confined_more_toolchains_are_opened_by_the_settings(house):
    make(house / 'tools', 'bin/tool', 'data')

    desk = Desk(house / 'project', SETTINGS.replace('paths:', f'toolchains: [{house}/tools, {house}]\n      paths:'))

    assert desk.run('tool') == (f'{house}/tools/bin/tool runs', False)
    make(house, 'secret.txt', text='s3cret')
    assert 's3cret' not in desk.approved(f'cat {house}/secret.txt')


def test_untrusted_settings_open_no_toolchain(house):
    make(house / 'tools', 'bin/tool')

    desk = Desk(
        house / 'project', SETTINGS.replace('paths:', f'toolchains: [{house}/tools]\n      paths:'), named=False
    )

    assert desk.workspace.settings.sandbox.toolchains == ()
    assert 'command not found' in desk.approved('tool')


def test_confined_an_environment_in_the_workspace_is_not_written_without_extra_access(house, monkeypatch):
    work = house / 'project'
    venv.create(work / '.venv', symlinks=True)
    monkeypatch.setenv('VIRTUAL_ENV', str(work / '.venv'))
    desk = Desk(work, SETTINGS)

    assert desk.approved('python -c "import sys; print(sys.prefix)"') == str(work / '.venv')
    for run in (lambda command: desk.run(command)[0], lambda command: desk.approved(command)):
        assert 'Read-only file system' in run('touch .venv/bin/ls')
        assert run('touch priv/x') == '[no output]'


def test_an_environment_in_the_workspace_can_be_opened_and_nothing_else(house, monkeypatch):
    work = house / 'project'
    venv.create(work / '.venv', symlinks=True)
    backend = Backend()
    desk = Desk(work, SETTINGS, backend=backend)

    desk.run('touch priv/x')

    [profile] = backend.profiles
    assert profile.access(f'{work}/.venv/lib') is Access.READ
    opened = profile.with_access(ExtraAccess(writes=(f'{work}/.venv', f'{work}/.git')))
    assert opened.access(f'{work}/.venv/lib') is Access.WRITE
    assert opened.access(f'{work}/.git/config') is Access.READ


@pytest.mark.parametrize(
    ('arguments', 'shown'),
    [
        ({'command': 'pip install x'}, ['writes to .venv']),
        ({'command': 'ls && pip install x'}, ['writes to .venv']),
        ({'command': 'pip install x', 'access': ['environment']}, ['writes to .venv', 'writes to venv']),
        ({'command': 'make', 'access': ['environment']}, ['writes to .venv', 'writes to venv']),
        ({'command': 'venv/bin/pip list'}, []),
    ],
)
def test_the_question_names_the_environment_that_a_command_writes(house, monkeypatch, arguments, shown):
    work = house / 'project'
    for name in ('.venv', 'venv'):
        venv.create(work / name, symlinks=True)
    monkeypatch.setenv('VIRTUAL_ENV', str(work / '.venv'))
    desk = Desk(work, SETTINGS)

    desk._call(desk.workspace.shell, RUN_SHELL, arguments)

    [request] = desk.ui.requests
    lines = request.presentation.metadata.get('extra_access', [])
    assert [line for line in lines if line.startswith('writes')] == shown


def test_environment_below_a_closed_root_is_closed_to_pre_approved_commands(house):
    work = house / 'project'
    venv.create(work / '.venv', symlinks=True)
    backend = Backend()
    desk = Desk(work, SETTINGS.replace('write_approval: false', 'read_approval: true'), backend=backend)

    desk.run('touch priv/x')
    desk.run('true "$(id)"')

    assert [each.access(f'{work}/.venv/lib') for each in backend.profiles] == [Access.NONE, Access.READ]


@pytest.mark.parametrize('named', ['/', '{home}', '{home}/bin', '{home}/secrets/bin', '/root/bin', '/etc'])
@pytest.mark.parametrize('target', ['{home}/secrets/key', '/etc/shadow', '{home}', '/'])
def test_confined_a_fake_environment_of_a_hostile_repository_gains_nothing(house, monkeypatch, named, target):
    make(house, 'secrets/key', 'secrets/bin/python3', 'bin/python3', '.ssh/config', text='s3cret\n')
    fake = house / 'project' / '.venv'
    make(fake, 'bin/activate', 'lib/python3.12/site-packages/x.py')
    (fake / 'pyvenv.cfg').write_text(f'home = {named.format(home=house)}\n')
    for name in ('python', 'python3', 'ls'):
        (fake / 'bin' / name).symlink_to(target.format(home=house))
    (fake / 'lib64').symlink_to(house)
    monkeypatch.setenv('VIRTUAL_ENV', str(fake))
    monkeypatch.setenv('PATH', f'{fake}/bin:/usr/bin:/bin')
    desk = Desk(house / 'project', SETTINGS)

    said = desk.approved(
        f'cat .venv/bin/python .venv/lib64/secrets/key {house}/secrets/key {house}/.ssh/config /etc/shadow; '
        f'python x; /usr/bin/ls -a {house} .venv/lib64/ /root /etc/ssh; echo x > .venv/bin/evil',
    )

    assert 's3cret' not in said
    assert 'root:' not in said
    assert '.ssh' not in said.replace('/.ssh/config', '')
    assert not (fake / 'bin' / 'evil').exists()


def test_confined_caches_last_and_an_approved_command_reads_none_of_an_unasked_one(house, cache):
    desk = Desk(house / 'project', SETTINGS)

    assert desk.approved('mkdir -p $PIP_CACHE_DIR $CARGO_HOME; echo a > $PIP_CACHE_DIR/x; echo b > $CARGO_HOME/y') == (
        '[no output]'
    )
    assert desk.approved('cat $PIP_CACHE_DIR/x') == 'a'
    # One that runs without approval reads what was downloaded, and cannot change it.
    [own] = (cache / 'tool-approval').iterdir()
    assert desk.run(f'cat {own}/approved/cargo/y') == ('b', False)
    assert 'Read-only file system' in desk.run(f'touch {own}/approved/cargo/z')[0]
    assert desk.run(f'touch {own}/unasked/evil') == ('[no output]', False)
    assert 'evil' not in desk.approved(f'ls -a $XDG_CACHE_HOME {own} {own}/unasked')
    assert [each.stat().st_mode & 0o777 for each in (own, *own.iterdir())] == [0o700] * 3


def test_confined_caches_of_another_workspace_are_not_visible(house, cache):
    one = Desk(house / 'project', SETTINGS)
    one.approved('echo a > $XDG_CACHE_HOME/x')
    other = Desk(house / 'other', SETTINGS)

    said = other.approved(f'ls -R {cache}')

    assert (cache / 'tool-approval').is_dir()
    assert len(list((cache / 'tool-approval').iterdir())) == 2
    assert '/x' not in said
    assert said.count('approved') == 1 + said.count('approved:')


@pytest.mark.parametrize('problem', ['a file', 'no home'])
def test_note_reports_that_no_caches_are_kept(tmp_path, cache, homeless, monkeypatch, problem):
    if problem == 'a file':
        (cache / 'tool-approval').touch()
    else:
        monkeypatch.setenv('XDG_CACHE_HOME', 'relative/is/ignored')
    (tmp_path / 'work').mkdir()

    workspace = open_workspace(settings_of('{}'), tmp_path / 'work', backend=Backend())

    assert any(each.startswith('commands keep no caches between calls: ') for each in workspace.notes)


def test_an_active_environment_that_is_broken_is_noted(house, monkeypatch):
    broken = house / 'project' / '.venv'
    make(broken, 'pyvenv.cfg', text='home = /nowhere\n')
    monkeypatch.setenv('VIRTUAL_ENV', str(broken))

    workspace = open_workspace(settings_of(SETTINGS), house / 'project', backend=BubblewrapBackend())

    assert (
        f'VIRTUAL_ENV: {broken} is ignored: the folder does not have the layout of a virtual environment'
        in workspace.notes
    )


def test_without_an_os_sandbox_no_toolchain_is_searched_for(tmp_path, cache, no_os_sandbox):
    (tmp_path / 'work').mkdir()

    open_workspace(settings_of('{}'), tmp_path / 'work')

    assert os.listdir(cache) == []
