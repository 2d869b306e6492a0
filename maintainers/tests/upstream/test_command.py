"""`python -m maintainers.upstream`: what it says, and what it returns."""

import fcntl
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from maintainers.upstream import __main__ as command
from maintainers.upstream import newest
from maintainers.upstream.release import FOLDER, NAME, NoRelease, unpack_wheel

pytestmark = [pytest.mark.untraced, pytest.mark.thorough]

Moved = Callable[[str, Callable[[str], str]], Path]


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Path], None]:
    """Has the index say that a release is out, which is what a folder has."""

    def publish(version: str, folder: Path) -> None:
        def download(asked: str, to: Path) -> Path:
            assert asked == version
            wheel = to / f'pydantic_ai_slim-{version}-py3-none-any.whl'
            with zipfile.ZipFile(wheel, 'w') as archive:
                for path in (folder / FOLDER).rglob('*.py'):
                    archive.write(path, path.relative_to(folder / FOLDER))
                archive.writestr(f'pydantic_ai_slim-{version}.dist-info/METADATA', 'not of the package')
            return wheel

        monkeypatch.setattr(command, 'newest_version', lambda: version)
        monkeypatch.setattr(command, 'download_newest', download)

    return publish


def test_the_newest_release_is_the_one_used_here(
    published: Any, release: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(command, 'unpack_installed', lambda folder: '9.0.0')
    published('9.0.0', release)

    assert command.main(['newest']) == 0

    assert f'{NAME} 9.0.0 is the newest release' in capsys.readouterr().out


def test_a_newer_release_for_which_the_patch_can_be_made_is_named(
    published: Any, release: Path, capsys: pytest.CaptureFixture[str]
):
    published('99.0.0', release)

    assert command.main(['newest']) == 0

    said = capsys.readouterr().out
    assert f'{NAME} 99.0.0 is out' in said
    assert 'can be made for 99.0.0 too' in said


def test_a_newer_release_that_has_moved_is_named_with_the_place(
    published: Any, moved: Moved, capsys: pytest.CaptureFixture[str]
):
    published('99.0.0', moved('__init__.py', lambda text: text.replace("'DeferredToolRequests',", '')))

    assert command.main(['newest']) == 1

    said = capsys.readouterr()
    assert '99.0.0 is out' in said.out
    assert 'Upstream has moved: pydantic_ai/__init__.py: __all__: `DeferredToolRequests` expected once' in said.err
    assert 'upstream/README.md' in said.err


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets what `pip index` answers."""

    def answer(said: str, error: str = '', status: int = 0) -> None:
        answered = subprocess.CompletedProcess([], status, said, error)
        monkeypatch.setattr(newest.subprocess, 'run', lambda *arguments, **keywords: answered)

    return answer


def test_index_that_does_not_answer_has_its_own_exit_status(
    index: Callable[..., None], capsys: pytest.CaptureFixture[str]
):
    index('', 'WARNING: retrying\nERROR: no route to host\n', 1)

    assert command.main(['newest']) == 2
    assert 'ERROR: no route to host' in capsys.readouterr().err


def test_the_newest_version_is_what_pip_names_first(index: Callable[..., None]):
    index('pydantic-ai-slim (2.70.0)\nAvailable versions: 2.70.0, 2.68.0')

    assert newest.newest_version() == '2.70.0'


def test_an_answer_of_the_index_without_a_version_is_unknown(index: Callable[..., None]):
    index('hello')

    with pytest.raises(newest.Unknown, match='hello'):
        newest.newest_version()


def test_changed_place_is_reported_in_one_line(
    moved: Moved, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    release = moved('__init__.py', lambda text: text.replace("'DeferredToolRequests',", ''))
    monkeypatch.setattr(command, 'PATCH', tmp_path / 'the.patch')
    monkeypatch.setattr(
        command, 'unpack_installed', lambda folder: folder.joinpath(FOLDER).symlink_to(release / FOLDER)
    )

    assert command.main([]) == 1

    assert capsys.readouterr().err.startswith('pydantic_ai/__init__.py: __all__: `DeferredToolRequests` expected once')
    assert not (tmp_path / 'the.patch').exists()


def test_a_wheel_that_would_write_outside_of_its_folder_is_refused(tmp_path: Path):
    wheel = tmp_path / 'pydantic_ai_slim-1-py3-none-any.whl'
    with zipfile.ZipFile(wheel, 'w') as archive:
        archive.writestr('pydantic_ai/../../../evil.py', '')

    with pytest.raises(NoRelease, match='outside'):
        unpack_wheel(wheel, tmp_path / 'release')


def test_changed_installation_is_not_a_release(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    from importlib.metadata import PackagePath

    from maintainers.upstream import release as module

    class Changed:
        version = '1'
        file = PackagePath('pydantic_ai/__init__.py')

        @property
        def files(self) -> list[PackagePath]:
            from importlib.metadata import FileHash

            self.file.hash = FileHash('sha256=not-its-hash')
            return [self.file]

        def locate_file(self, path: Any) -> Path:
            return tmp_path / 'file.py'

    (tmp_path / 'file.py').write_text('changed')
    monkeypatch.setattr(module, 'distribution', lambda name: Changed())

    with pytest.raises(NoRelease, match='install that release anew'):
        module.unpack_installed(tmp_path / 'release')


def test_the_patched_tree_is_made_by_one_process_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(command, 'PATCHED', tmp_path / 'build' / 'patched')

    with command.alone(), (tmp_path / 'build' / 'patched.lock').open() as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)

    with (tmp_path / 'build' / 'patched.lock').open() as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
