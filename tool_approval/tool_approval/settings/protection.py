"""Which files no tool writes, and where the roots are for the rules of the shell."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tool_approval.os_sandbox.git_index import MOST_INDEX_BYTES, submodules
from tool_approval.storage.private_file import default_path
from tool_approval.tools.file_sandbox import FileSandbox, PathConfig
from tool_approval.tools.file_sandbox.names import git_led_to, is_control, places, starts_with
from tool_approval.tools.file_sandbox.paths import SandboxRoot

from .files import NAMES
from .model import SandboxSettings

HEAD: Final = 'HEAD'
_MOST_SUBMODULES: Final = 1000
"""Chosen: in a repository with more, the whole work tree is protected. Each can be a mount."""


def state_folder() -> Path | None:
    """Where the memory's store and the trust in files are; `None` where there is no home folder."""
    try:
        return default_path().parent
    except RuntimeError:
        return None


def protected_paths(directory: Path, source: Path | None, sandbox: SandboxSettings) -> tuple[Path, ...]:
    """What is protected in any case, whether it exists or not.

    Args:
        directory: The working directory, absolute.
        source: The settings file in use; where there is none, none can be made under any of its names.
        sandbox: The roots of the file tools.
    """
    found = [source] if source is not None else [directory / name for name in NAMES]
    found += [state] if (state := state_folder()) is not None else []
    found.append(directory / '.git')
    found += [above / '.git' for above in directory.parents if os.path.lexists(above / '.git')]
    roots = [Path(os.path.realpath(directory / path.root)) for path in sandbox.paths.values()]
    repositories = [*(path for path in found if path.name == '.git'), *(root / '.git' for root in roots)]
    found += [place for git in dict.fromkeys(repositories) for place in _git_places(git)]
    # A root that is itself a part of Git's: `root: .git/hooks`.
    found += [root for root in roots if is_control(root.parts)]
    return tuple(dict.fromkeys(found))


def only_files_protected(directory: Path, named_as: Path | None) -> tuple[Path, ...]:
    """What the file tools do not write either, though commands are kept from it in another way.

    Args:
        directory: The working directory, absolute.
        named_as: The settings file as it was named. Whoever replaces a link on the way to it names another file.
    """
    # Attack: without `.git`, git takes a folder with `HEAD`, `objects` and `refs` for a repository, and runs what its
    # `config` names (test_hostile_repository.py). Commands make neither name there.
    head = [] if os.path.lexists(directory / '.git') else [directory / HEAD]
    return (*([] if named_as is None else [named_as]), *head)


def _git_places(git: Path) -> list[Path]:
    """Where a `.git` leads git, and the `.git` of each submodule in its index.

    Attack: a submodule is not there yet, and a command makes a repository in its place. `git status` runs git in it.
    """
    found: list[Path] = []
    todo = [git]
    while todo:
        this = todo.pop()
        led = list(git_led_to(this))
        found += [place for each in led for place in places(each)]
        names = {name for folder in (this, *led) for name in submodules(_index_of(folder))}
        # The last of its places is where the `.git` itself is.
        inner = [way for name in sorted(names) if (way := places(this.parent / name / '.git'))[-1] not in found]
        if len(found) + len(inner) > _MOST_SUBMODULES:
            return [*found, git.parent]
        found += [place for way in inner for place in way]
        todo += [way[-1] for way in inner]
    return found


def _index_of(folder: Path) -> bytes:
    try:
        with open(folder / 'index', 'rb', opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as opened:
            return opened.read(MOST_INDEX_BYTES) or b''
    except OSError:
        return b''


def root_checks(files: FileSandbox, *, is_confined: bool = True) -> dict[str, RootCheck]:
    """What the shell tool asks of each root for the `sandbox_paths` of its rules, by its name.

    Args:
        files: The roots.
        is_confined: Whether the operating system keeps a command that runs unasked from reading where roots ask.
    """
    return {root.name: RootCheck(files, root, is_confined) for root in files.roots.all}


@dataclass(frozen=True)
class RootCheck:
    """A root for the shell tool; see `OuterRoot`. A path belongs to the innermost root that it is in."""

    files: FileSandbox
    """All roots."""
    root: SandboxRoot
    """This one."""
    is_confined: bool
    """Whether an unasked command cannot read where a root asks."""

    def __call__(self, path: str) -> bool:
        """Whether a path is in the root, or in one within it. A rule that holds in a root reads there.

        Where the operating system does not keep secrets from a command, a path that leads to one is not.
        """
        innermost, _ = self.files.roots_at(path)
        if innermost is None or self.root.config.read_approval == 'blocked':
            return False
        if not self.is_confined and self.files.holds_secrets(path):
            return False
        return starts_with(innermost.names, self.root.names)

    def asking(self, path: str, *, is_written: bool) -> str | None:
        """The name of the root within it that a path is in, if that one asks about it."""
        innermost, below = self.files.roots_at(path)
        if innermost is not None and innermost != self.root and self._asks(path, is_written):
            return innermost.name
        # Attack: `grep -r x .`, and a directory below asks. In the OS sandbox, such a directory is empty.
        return None if self.is_confined else next((each.name for each in below if _asks(each.config, is_written)), None)

    def _asks(self, path: str, is_written: bool) -> bool:
        try:
            # What is written may be read as well: the source of `cp` counts as written.
            return self.files.needs_read_approval(path) or (is_written and self.files.needs_write_approval(path))
        except PermissionError:
            return True


def _asks(root: PathConfig, is_written: bool) -> bool:
    return root.read_approval is not False or (is_written and (root.mode != 'rw' or root.write_approval))


def is_written_unasked(files: FileSandbox, path: str) -> bool:
    """Whether the file tools write to a path without asking."""
    try:
        return not files.needs_write_approval(path)
    except PermissionError:
        return False
