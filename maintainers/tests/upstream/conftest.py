"""The release the patch is for, and the patch, made once for all of these tests."""

import functools
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from maintainers.upstream import patch as patches
from maintainers.upstream.patch import patched_files, write_patch
from maintainers.upstream.release import FOLDER, unpack_installed


@pytest.fixture(scope='session', autouse=True)
def edited_once() -> Generator[None]:
    """Edits the same text once: nearly all time goes there."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(patches, 'changed', functools.cache(patches.changed))
        yield


@pytest.fixture(scope='session')
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed release, which no test may change."""
    folder = tmp_path_factory.mktemp('release')
    unpack_installed(folder)
    return folder


@pytest.fixture(scope='session')
def patch(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp('build') / 'the.patch'
    write_patch(release, path)
    return path


@pytest.fixture(scope='session')
def files(release: Path) -> dict[str, str]:
    """Every file that is changed or new, as it is with the change."""
    return patched_files(release)


@pytest.fixture
def moved(release: Path, tmp_path: Path) -> Callable[[str, Callable[[str], str]], Path]:
    """Makes a release in which one file is another one."""

    def move(file: str, change: Callable[[str], str]) -> Path:
        folder = tmp_path / 'moved'
        (folder / FOLDER).mkdir(parents=True)
        for path in (release / FOLDER / 'pydantic_ai').rglob('*.py'):
            target = folder / path.relative_to(release)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
        target = folder / FOLDER / 'pydantic_ai' / file
        before = target.read_text(encoding='utf-8') if target.exists() else ''
        after = change(before)
        assert after != before
        target.write_text(after, encoding='utf-8')
        return folder

    return move
