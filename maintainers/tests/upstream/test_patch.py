"""The patch as a maintainer meets it: it applies, it is small, it has their form, and what comes of it imports."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from maintainers.upstream import patch as patches
from maintainers.upstream.changes import CHANGES, changed
from maintainers.upstream.patch import apply_patch, write_patch
from maintainers.upstream.patched import check_import
from maintainers.upstream.release import FOLDER

pytestmark = [pytest.mark.untraced, pytest.mark.thorough]


def lines(patch: Path, sign: str) -> list[str]:
    """The lines that are added (`+`) or taken away (`-`)."""
    all_lines = patch.read_text(encoding='utf-8').splitlines()
    return [line[1:] for line in all_lines if line.startswith(sign) and not line.startswith(sign * 3)]


def test_patched_tree_has_every_change_and_imports(release: Path, patch: Path, files: dict[str, str], tmp_path: Path):
    tree = tmp_path / 'tree'
    shutil.copytree(release, tree)

    apply_patch(patch, tree)

    for path, text in files.items():
        assert (tree / path).read_text(encoding='utf-8') == text
    assert not (tree / '.git').exists()
    check_import(tree)


def test_patch_does_not_apply_twice(release: Path, patch: Path, tmp_path: Path):
    tree = tmp_path / 'tree'
    shutil.copytree(release, tree)
    apply_patch(patch, tree)

    with pytest.raises(subprocess.CalledProcessError):
        apply_patch(patch, tree)


def test_patch_is_the_same_each_time_and_leaves_nothing_else_behind(
    release: Path, patch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(patches, 'changed', changed)
    again = tmp_path / 'new' / 'again.patch'

    write_patch(release, again)

    assert again.read_bytes() == patch.read_bytes()
    assert list(again.parent.iterdir()) == [again]


def test_patch_changes_files_of_the_distribution_in_the_upstream_repository(patch: Path):
    headers = [line for line in patch.read_text(encoding='utf-8').splitlines() if line.startswith('diff --git ')]

    files = {header.split(' b/')[1].removeprefix(f'{FOLDER}/pydantic_ai/') for header in headers}
    new = {'_deferred_tool_handler.py', '_deferred_results.py', '_deferred_snapshot.py'}
    assert files == set(CHANGES) | new


def test_patch_rewrites_four_lines_of_the_release(patch: Path):
    # A condition, a returned value, and the two calls that make a tool manager, which grow by an argument.
    assert len(lines(patch, '-')) == 4


def test_patched_files_keep_the_upstream_format(release: Path, files: dict[str, str], tmp_path: Path):
    for path, text in files.items():
        before = release / path
        for side, content in (
            ('before', before.read_text(encoding='utf-8') if before.exists() else ''),
            ('after', text),
        ):
            file = tmp_path / side / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, encoding='utf-8')

    assert unformatted(tmp_path / 'after') == unformatted(tmp_path / 'before')


def unformatted(folder: Path) -> set[str]:
    """The files that upstream's formatter would change."""
    options = ['--isolated', '--config', 'line-length=120', '--config', 'format.quote-style="single"']
    command = [sys.executable, '-m', 'ruff', 'format', '--check', *options, '.']
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout
    return set(re.findall(r'(?m)^Would reformat: (.*)$', said))


def test_the_new_modules_import_only_what_upstream_has(files: dict[str, str]):
    new = [text for path, text in files.items() if Path(path).name.startswith('_deferred_')]

    assert len(new) == 3
    assert all('pydantic_ai_deferred' not in text and 'bubble_up' not in text for text in new)
