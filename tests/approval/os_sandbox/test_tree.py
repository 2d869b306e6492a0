"""Where repositories, and files that run later, are found, and when a folder is read again."""

import os
import time
from pathlib import Path

import pytest
from tool_approval.os_sandbox import tree as module
from tool_approval.os_sandbox.tree import Tree


@pytest.fixture
def top(tmp_path: Path) -> Path:
    for path in ('a/b/c', 'a/.git/objects', 'bare/refs', 'bare/objects', '.vscode', 'node_modules/x/.bin'):
        (tmp_path / path).mkdir(parents=True)
    for path in (
        'a/b/.git', 'bare/HEAD', 'a/HEAD', '.vscode/tasks.json', 'a/Makefile', 'a/b/Makefile.txt',
        'node_modules/x/.bin/t',
    ):  # fmt: skip
        (tmp_path / path).touch()
    (tmp_path / 'a/link').symlink_to(tmp_path)
    return tmp_path


def test_repositories_and_files_that_run_later_are_found_everywhere_but_behind_links(top: Path):
    found = Tree().look([str(top), str(top / 'a'), str(top / 'absent')])

    assert sorted(found.repositories) == [f'{top}/a/.git', f'{top}/a/b/.git', f'{top}/bare']
    assert sorted(found.run_later) == [f'{top}/.vscode/tasks.json', f'{top}/a/Makefile', f'{top}/node_modules/x/.bin/t']
    assert found.closed == []


def test_only_a_folder_that_has_changed_is_read_again(top: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, '_UNSETTLED_NS', -(10**15))
    tree = Tree()
    before = tree.look([str(top)])
    read: list[str] = []
    scan = os.scandir
    monkeypatch.setattr(os, 'scandir', lambda path: read.append(str(path)) or scan(path))

    again = tree.look([str(top)])
    (top / 'a/b/c/.git').mkdir()
    (top / 'node_modules').rename(top.parent / 'elsewhere')
    changed = tree.look([str(top)])

    assert again == before
    assert sorted(read) == [str(top), f'{top}/a/b/c']
    assert f'{top}/a/b/c/.git' in changed.repositories
    assert f'{top}/node_modules/x/.bin/t' not in changed.run_later


def test_a_folder_that_has_just_changed_is_read_again(top: Path, monkeypatch: pytest.MonkeyPatch):
    """Two changes may have the same time."""
    tree = Tree()
    tree.look([str(top)])
    status = os.lstat(top / 'a')
    lstat = os.lstat
    monkeypatch.setattr(os, 'lstat', lambda path: status if str(path) == f'{top}/a' else lstat(path))
    (top / 'a/.GIT').mkdir()

    assert f'{top}/a/.GIT' in tree.look([str(top)]).repositories

    monkeypatch.setattr(time, 'time_ns', lambda: status.st_mtime_ns + 3 * 10**9)
    assert f'{top}/a/.GIT' in tree.look([str(top)]).repositories


@pytest.mark.parametrize('name', ['.vscode', 'workflows', '.bin'])
def test_a_repository_is_found_in_a_folder_whose_files_run_later(tmp_path: Path, name: str):
    for path in ('objects', 'refs'):
        (tmp_path / name / path).mkdir(parents=True)
    (tmp_path / name / 'HEAD').touch()

    assert Tree().look([str(tmp_path)]).repositories == [f'{tmp_path}/{name}']
