"""The commits for Pydantic AI apply to the installed release, and a release in which a place has moved is named."""

import fcntl
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from importlib.metadata import FileHash, PackagePath
from pathlib import Path
from types import SimpleNamespace

import pytest

from maintainers.upstream import __main__ as command
from maintainers.upstream import release as releases
from maintainers.upstream.release import FOLDER, NAME, NoRelease, unpack_installed, unpack_wheel

pytestmark = [pytest.mark.untraced, pytest.mark.thorough]

PLACE = f'{FOLDER}/pydantic_ai/capabilities/hooks.py'
"""A file that the first commit changes."""


@pytest.fixture(scope='session')
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('release')
    unpack_installed(folder)
    return folder


@pytest.fixture
def tree(release: Path, tmp_path: Path) -> Path:
    """A copy of the release."""
    return Path(shutil.copytree(release, tmp_path / 'tree'))


@pytest.fixture
def edit(tree: Path) -> Callable[[str, str], None]:
    """Changes a file of the copy that the first commit changes as well."""

    def replace(old: str, new: str) -> None:
        file = tree / PLACE
        text = file.read_text(encoding='utf-8')
        assert old in text
        file.write_text(text.replace(old, new), encoding='utf-8')

    return replace


def test_both_commits_apply_and_the_patched_package_is_imported(tree: Path):
    command.commit(tree, 'the release')

    command.apply(tree)

    command.check_import(tree)
    assert len(command.COMMITS) == 2


def test_an_unpatched_package_is_not_taken_for_a_patched_one(tree: Path):
    with pytest.raises(command.Moved, match='deferred_tool_handler'):
        command.check_import(tree)


def test_each_commit_leaves_the_format_of_pydantic_ai(tree: Path):
    command.commit(tree, 'the release')
    command.apply(tree)
    changed = command._git(tree, 'diff', '--name-only', 'HEAD~2').stdout.split()

    modules = [path for path in changed if path.endswith('.py')]
    options = ['--isolated', '--config', 'line-length=120', '--config', 'format.quote-style="single"']
    format_check = [sys.executable, '-m', 'ruff', 'format', '--check', *options, *modules]
    said = subprocess.run(format_check, cwd=tree, capture_output=True, text=True)

    assert len(modules) == 16
    assert said.returncode == 0, said.stdout


def test_a_place_that_has_moved_is_named_with_its_file(tree: Path, edit: Callable[[str, str], None]):
    edit('def _has_prepare_model_request', 'def _prepares_model_requests')
    edit('def has_wrap_run_event_stream', 'def _wraps_event_streams')
    command.commit(tree, 'another release')

    with pytest.raises(command.Moved, match=re.escape(PLACE)):
        command.apply(tree)


def test_the_third_commit_changes_pages_alone():
    (pages,) = Path(command.HERE).glob('0003-*.patch')

    changed = re.findall(r'(?m)^diff --git a/(\S+) ', pages.read_text(encoding='utf-8'))

    assert changed
    assert all(path.startswith('docs/') for path in changed)


@pytest.fixture
def publish(tree: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Has the index say that a release is out, which is what the copy has."""

    def download(asked: str, to: Path) -> Path:
        wheel = to / f'pydantic_ai_slim-{asked}-py3-none-any.whl'
        with zipfile.ZipFile(wheel, 'w') as archive:
            for path in (tree / FOLDER).rglob('*'):
                if path.is_file():
                    archive.write(path, path.relative_to(tree / FOLDER))
            archive.writestr(f'pydantic_ai_slim-{asked}.dist-info/METADATA', 'not of the package')
        return wheel

    def publish(version: str) -> None:
        monkeypatch.setattr(command, 'newest_version', lambda: version)
        monkeypatch.setattr(command, 'download', download)

    return publish


def test_the_newest_release_is_the_installed_one(
    publish: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(command, 'unpack_installed', lambda folder: '9.0.0')
    publish('9.0.0')

    assert command.main(['newest']) == 0

    assert f'{NAME} 9.0.0 is the newest release' in capsys.readouterr().out


def test_a_newer_release_whose_lines_have_shifted_takes_the_commits(
    publish: Callable[[str], None], edit: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]
):
    edit('from __future__ import annotations\n', 'from __future__ import annotations\n' + '# A new line.\n' * 40)
    publish('99.0.0')

    assert command.main(['newest']) == 0

    assert 'The commits apply to 99.0.0 too' in capsys.readouterr().out


def test_a_newer_release_that_has_moved_is_named_with_the_file(
    publish: Callable[[str], None], edit: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]
):
    edit('def _has_prepare_model_request', 'def _prepares_model_requests')
    edit('def has_wrap_run_event_stream', 'def _wraps_event_streams')
    publish('99.0.0')

    assert command.main(['newest']) == 1

    said = capsys.readouterr()
    assert '99.0.0 is out' in said.out
    assert PLACE in said.err


@pytest.mark.parametrize(
    'said, error, status, reported',
    [
        ('', 'WARNING: retrying\nERROR: no route to host\n', 1, 'ERROR: no route to host'),
        ('hello', '', 0, "it said: 'hello'"),
    ],
)
def test_an_index_that_names_no_version_has_its_own_exit_status(
    said: str,
    error: str,
    status: int,
    reported: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    answered = subprocess.CompletedProcess([], status, said, error)
    monkeypatch.setattr(releases.subprocess, 'run', lambda *arguments, **keywords: answered)

    assert command.main(['newest']) == 2
    assert reported in capsys.readouterr().err


def test_a_wheel_that_would_write_outside_of_its_folder_is_refused(tmp_path: Path):
    wheel = tmp_path / 'pydantic_ai_slim-1-py3-none-any.whl'
    with zipfile.ZipFile(wheel, 'w') as archive:
        archive.writestr('pydantic_ai/../../../evil.py', '')

    with pytest.raises(NoRelease, match='outside'):
        unpack_wheel(wheel, tmp_path / 'release')


def test_a_changed_installation_is_not_a_release(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    file = PackagePath('pydantic_ai/__init__.py')
    file.hash = FileHash('sha256=not-its-hash')
    (tmp_path / 'file.py').write_text('changed')
    changed = SimpleNamespace(version='1', files=[file], locate_file=lambda path: tmp_path / 'file.py')
    monkeypatch.setattr(releases, 'distribution', lambda name: changed)

    with pytest.raises(NoRelease, match='install that release anew'):
        unpack_installed(tmp_path / 'release')


def test_the_patched_tree_is_made_by_one_process_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(command, 'PATCHED', tmp_path / 'build' / 'patched')

    with command.alone(), (tmp_path / 'build' / 'patched.lock').open() as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)

    with (tmp_path / 'build' / 'patched.lock').open() as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
