"""Find repositories and files that run later on the host. A folder is read again only if it has changed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from .git_forms import is_git_name, is_repository

RUN_LATER: Final = frozenset({
    '.envrc', '.pre-commit-config.yaml', '.npmrc', '.mise.toml', '.gitmodules', 'GNUmakefile', 'Makefile', 'makefile',
    'justfile', 'package.json', 'conftest.py', 'setup.py', 'noxfile.py', 'sitecustomize.py', 'build.rs', 'build.gradle',
})  # fmt: skip
"""Names of files that programs on the host run, or take programs from."""
_RUN_LATER_IN: Final = frozenset({'.vscode', '.idea', '.devcontainer', '.husky', '.bin', 'workflows'})
"""The same for all files in a folder of this name."""
_UNSETTLED_NS: Final = 2_000_000_000
"""A file system such as FAT rounds times to two seconds, so two changes can have the same time."""


@dataclass(kw_only=True)
class Found:
    """The result of a search. Every list has absolute paths."""

    repositories: list[str] = field(default_factory=list[str])
    """Every path that git, on some file system, takes for a repository."""
    run_later: list[str] = field(default_factory=list[str])
    """Files that programs on the host may run later."""
    closed: list[str] = field(default_factory=list[str])
    """Folders that this process cannot list."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Folder:
    state: tuple[int, ...]
    """Device, inode, mtime and ctime. Programs cannot set the ctime, which changes with every name in the folder."""
    is_settled: bool
    """Whether every later change will alter `state`."""
    folders: list[str]
    found: Found


class Tree:
    """Searches folders, and keeps what it has found in each."""

    def __init__(self) -> None:
        """Begin with nothing known."""
        self._folders: dict[str, _Folder] = {}

    def look(self, tops: Iterable[str]) -> Found:
        """Search some folders and everything below them, without following links, and without looking into `.git`."""
        folders: dict[str, _Folder] = {}
        found = Found()
        todo = [*tops]
        while todo:
            path = todo.pop()
            if path in folders:
                continue
            try:
                folder = self._folder(path)
            except PermissionError:
                found.closed.append(path)
                continue
            except OSError:  # gone
                continue
            folders[path] = folder
            todo += folder.folders
            found.repositories += folder.found.repositories
            found.run_later += folder.found.run_later
        self._folders = folders
        return found

    def _folder(self, path: str) -> _Folder:
        status = os.lstat(path)
        state = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
        known = self._folders.get(path)
        if known is not None and known.is_settled and known.state == state:
            return known
        found, folders = Found(), list[str]()
        is_run_later = os.path.basename(path) in _RUN_LATER_IN
        with os.scandir(path) as entries:
            for each in entries:
                if is_git_name(each.name):
                    found.repositories.append(each.path)
                elif each.is_dir(follow_symlinks=False):
                    folders.append(each.path)
                elif each.name == 'HEAD' and is_repository(path):
                    # Attack: a repository in `.vscode`, whose files run later anyway (test_tree.py).
                    found.repositories.append(path)
                elif is_run_later or each.name in RUN_LATER:
                    found.run_later.append(each.path)
        newest = max(status.st_mtime_ns, status.st_ctime_ns)
        return _Folder(state=state, is_settled=time.time_ns() - newest > _UNSETTLED_NS, folders=folders, found=found)
