"""Repositories and commands plant nothing for the user's own Git, which no sandbox confines, or for ours."""

import os
import subprocess
from pathlib import Path

import pytest
from tool_approval.os_sandbox import BubblewrapBackend, UnconfinedBackend

from tests.approval.os_sandbox.house import skip_reason

from .desk import Desk

GIT = '/usr/bin/git'
REPOSITORY = """\
rm -rf {0}/.git; mkdir -p {0}; cd {0} && git init -q . && git config user.name x && git config user.email x \
&& git config core.fsmonitor "touch '$PWD/../ran'; false" && echo x > file && git add file && git commit -qm x; cd - \
"""


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """In a repository with a commit."""
    if (reason := skip_reason('root') and skip_reason('ordinary')) or not os.path.isfile(GIT):
        pytest.skip(reason or 'git is not installed below /usr')
    monkeypatch.setenv('HOME', str(tmp_path))
    (tmp_path / '.gitconfig').write_text('[user]\n\tname = Ann\n\temail = ann@example.org\n')
    folder = tmp_path / 'work'
    folder.mkdir()
    git(folder, 'init', '-q')
    (folder / 'file').touch()
    git(folder, 'add', '-A')
    git(folder, 'commit', '-qm', 'one')
    return Desk(folder, 'sandbox: {paths: {work: {root: ., mode: rw}}}', backend=BubblewrapBackend())


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run([GIT, *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


def has_run(desk: Desk) -> bool:
    """Whether the user's `git status` runs what was planted."""
    # A command may have made the file by a git of its own, which is confined.
    for mark in desk.folder.rglob('ran'):
        mark.unlink()
    git(desk.folder, 'status')
    return any(desk.folder.rglob('ran'))


def submodule(desk: Desk, place: str, folder: Path) -> None:
    """Add a submodule that was not fetched, as a clone has it."""
    commit = git(folder, 'rev-parse', 'HEAD').strip()
    git(folder, 'update-index', '--add', '--cacheinfo', f'160000,{commit},{place}')
    git(folder, 'commit', '-qm', 'submodule')
    (folder / place).mkdir(parents=True, exist_ok=True)
    desk.open(desk.loaded, backend=BubblewrapBackend())


@pytest.mark.parametrize('command', ['git add -A', 'git add sub && git commit -qm two'])
def test_confined_a_repository_in_a_folder_does_not_stay_behind_a_submodule(desk, command):
    said, asked = desk.run(f'{REPOSITORY.format("sub")}; {command}', access=['git'])

    assert asked
    assert f'moved {desk.folder}/sub/.git to ' in said
    assert 'new submodules in the index: sub' in said
    assert not has_run(desk)


@pytest.mark.parametrize('place', ['sub', 'sub/deep'])
def test_confined_no_repository_is_made_in_the_place_of_a_submodule(desk, place):
    submodule(desk, place, desk.folder)

    said, asked = desk.run(REPOSITORY.format(place), access=['git'])

    assert asked
    assert not (desk.folder / place / '.git').exists(), said
    assert not has_run(desk)


def test_confined_git_file_of_a_submodule_is_not_changed(desk):
    real = desk.folder / '.git' / 'modules' / 'sub'
    submodule(desk, 'sub', desk.folder)
    real.parent.mkdir()
    git(desk.folder, 'clone', '-q', '--separate-git-dir', str(real), '.', 'sub')
    submodule(desk, 'inner', desk.folder / 'sub')
    before = (desk.folder / 'sub' / '.git').read_text()

    for place in ('sub', 'sub/inner'):
        _, asked = desk.run(REPOSITORY.format(place), access=['git'])
        assert asked

    assert (desk.folder / 'sub' / '.git').read_text() == before
    assert not (desk.folder / 'sub' / 'inner' / '.git').exists()
    assert not has_run(desk)


def test_confined_secrets_are_found_in_a_folder_that_looks_like_an_environment(desk):
    place = desk.folder / 'env'
    for name in ('pyvenv.cfg', 'bin/activate', 'lib/python3.11/site-packages/plain.py', 'plain.txt'):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text('plain\n')
    for name in ('.env', 'bin/.env', 'etc/.env'):
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text('s3cret\n')
    desk.open(desk.loaded, backend=BubblewrapBackend())

    said, asked = desk.run('cat env/.env env/*/.env env/plain.txt', access=['environment'])

    assert asked
    assert desk.ui.requests[-1].presentation.metadata['extra_access'] == ['writes to env']
    assert 'plain' in said
    assert 's3cret' not in said


@pytest.mark.parametrize('has_git', [False, True])
def test_the_file_tools_do_not_make_a_repository_of_the_working_directory(tmp_path, has_git):
    folder = tmp_path / 'work'
    folder.mkdir()
    for name in ('HEAD', 'objects', 'refs') if has_git else ():
        (folder / '.git' / name).mkdir(parents=True)
    desk = Desk(
        folder, 'sandbox: {paths: {work: {root: ., mode: rw, write_approval: false}}}', backend=UnconfinedBackend()
    )

    for path, text in {'refs/x': '', 'objects/x': '', 'config': '[core]', 'HEAD': 'ref: refs/heads/x\n'}.items():
        said, asked = desk.use('write_file', path=path, content=text)
        assert not asked, said
    # In a repository it is a file like others.
    assert (folder / 'HEAD').exists() is has_git


@pytest.mark.parametrize(
    'names', [('HEAD', 'objects/x', 'refs/x'), ('refs/x', 'objects/x', 'head'), ('commondir', 'HEAD')]
)
def test_the_file_tools_do_not_make_a_repository_below_the_working_directory(tmp_path, names):
    desk = Desk(
        tmp_path / 'work',
        'sandbox: {paths: {work: {root: ., mode: rw, write_approval: false}}}',
        backend=UnconfinedBackend(),
    )
    *first, last = names
    for name in first:
        assert 'Wrote' in desk.use('write_file', path=f'x/{name}', content='')[0]
    desk.use('write_file', path='moved', content='')

    said = [
        desk.use('write_file', path=f'x/{last}', content='')[0],
        desk.use('move', path='moved', dest=f'x/{last}')[0],
        desk.use('copy', path='moved', dest=f'x/{last}')[0],
    ]

    assert ['would take for one' in each for each in said] == [True] * 3
    assert not (desk.folder / 'x' / last).exists()
    assert 'Wrote' in desk.use('write_file', path='x/other', content='')[0]


def test_the_file_tools_change_nothing_that_git_reads_in_a_repository_of_another_name(tmp_path):
    desk = Desk(
        tmp_path / 'work',
        'sandbox: {paths: {work: {root: ., mode: rw, write_approval: false}}}',
        backend=UnconfinedBackend(),
    )
    for name in ('HEAD', 'objects', 'refs'):
        (desk.folder / 'bare' / name).mkdir(parents=True)

    said = [desk.use('write_file', path=f'bare/{name}', content='')[0] for name in ('config', 'hooks/x', 'main/a')]

    assert ['git takes' in each for each in said] == [True, True, False]
