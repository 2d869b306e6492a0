"""Determine which files no tool can write, and whether a path in a shell command is in a given root."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tool_approval.os_sandbox.git_forms import MOST_INDEX_BYTES, read, submodules
from tool_approval.os_sandbox.git_mounts import led_to
from tool_approval.storage.private_file import default_path
from tool_approval.tools.file_sandbox import FileSandbox, PathConfig
from tool_approval.tools.file_sandbox.names import git_led_to, is_control, places, starts_with
from tool_approval.tools.file_sandbox.paths import SandboxRoot

from .files import NAMES
from .model import SandboxSettings

HEAD: Final = 'HEAD'
_MOST_SUBMODULES: Final = 1000
"""Maximum number of submodules that are protected individually. Each submodule may need its own mount. If a
repository has more submodules, its whole work tree is protected."""


def state_folder() -> Path | None:
    """Return the user's state directory, or `None` if there is no home directory."""
    try:
        return default_path().parent
    except RuntimeError:
        return None


def protected_paths(directory: Path, source: Path | None, sandbox: SandboxSettings) -> tuple[Path, ...]:
    """Return the paths that are always protected, whether they exist or not.

    Args:
        directory: The absolute working directory.
        source: The settings file; `None` to protect all files that have the name of a settings file.
        sandbox: The roots of the file tools.
    """
    found = [source] if source is not None else [directory / name for name in NAMES]
    found += [state] if (state := state_folder()) is not None else []
    found.append(directory / '.git')
    found += [above / '.git' for above in directory.parents if os.path.lexists(above / '.git')]
    roots = [Path(os.path.realpath(directory / path.root)) for path in sandbox.paths.values()]
    repositories = [*(path for path in found if path.name == '.git'), *(root / '.git' for root in roots)]
    found += [place for git in dict.fromkeys(repositories) for place in _git_places(git)]
    # A root that is itself inside `.git`, as with `root: .git/hooks`.
    found += [root for root in roots if is_control(root.parts)]
    return tuple(dict.fromkeys(found))


def only_files_protected(directory: Path, named_as: Path | None) -> tuple[Path, ...]:
    """Return further paths to which the file tools cannot write. The OS sandbox, not this list, confines commands.

    Args:
        directory: The absolute working directory.
        named_as: The path of the settings file, without resolving links. No tool may replace a link at this path.
    """
    # Attack: without `.git`, git takes a folder with `HEAD`, `objects` and `refs` for a repository, and runs programs
    # that its `config` names (test_hostile_repository.py). The OS sandbox lets commands make neither name there.
    head = [] if os.path.lexists(directory / '.git') else [directory / HEAD]
    return (*([] if named_as is None else [named_as]), *head)


def _git_places(git: Path) -> list[Path]:
    """Return the paths to which a `.git` file or folder refers, and the `.git` of each submodule in the index.

    Without this protection, a command could create a repository in place of a missing submodule. A later `git status`
    would then also run git in that repository.
    """
    found: list[Path] = []
    todo = [git]
    while todo:
        this = todo.pop()
        led = list(git_led_to(this))
        found += [place for each in led for place in places(each)]
        names = {name for folder in (this, *led) for name in _submodules_of(folder)}
        found += [Path(path) for folder in (this, *led) for path in led_to(str(folder))]
        # The last of the places is the path of the `.git` itself.
        inner = [way for name in sorted(names) if (way := places(this.parent / name / '.git'))[-1] not in found]
        if len(found) + len(inner) > _MOST_SUBMODULES:
            return [*found, git.parent]
        found += [place for way in inner for place in way]
        todo += [way[-1] for way in inner]
    return found


def _submodules_of(folder: Path) -> frozenset[str]:
    data = read(str(folder / 'index'), MOST_INDEX_BYTES) or b''
    try:
        return submodules(data, 32 if b'sha256' in (read(str(folder / 'config')) or b'') else 20)[0]
    except ValueError:
        return frozenset()


def root_checks(files: FileSandbox, *, is_confined: bool = True) -> dict[str, RootCheck]:
    """Map the name of each root to its check, for `sandbox_paths` in shell rules.

    Args:
        files: The file sandbox with the roots.
        is_confined: Whether an OS sandbox prevents pre-approved commands from reading paths that need approval.
    """
    return {root.name: RootCheck(files, root, is_confined) for root in files.roots.all}


@dataclass(frozen=True)
class RootCheck:
    """Checks whether a path in a shell command is in a root; see `OuterRoot`. For nested roots, the innermost root
    decides.
    """

    files: FileSandbox
    """File sandbox with all roots."""
    root: SandboxRoot
    """Root to check."""
    is_confined: bool
    """Whether an OS sandbox prevents pre-approved commands from reading paths that need approval."""

    def __call__(self, path: str) -> bool:
        """Whether this root, or a root nested in it, lets a pre-approved command read a path.

        Without an OS sandbox, the result is `False` for a path that leads to a secret.
        """
        innermost, _ = self.files.roots_at(path)
        if innermost is None or self.root.config.read_approval == 'blocked':
            return False
        if not self.is_confined and self.files.holds_secrets(path):
            return False
        return starts_with(innermost.names, self.root.names)

    def asks(self, path: str, *, is_written: bool) -> bool:
        """Return whether a nested root contains the path and requires approval for it."""
        innermost, below = self.files.roots_at(path)
        if innermost is not None and innermost != self.root and self._asks(path, is_written):
            return True
        # Attack: `grep -r x .` if a directory below needs approval. In the OS sandbox, that directory is empty.
        return not self.is_confined and any(_asks(each.config, is_written) for each in below)

    def _asks(self, path: str, is_written: bool) -> bool:
        try:
            # A written path may be read as well: the source of `cp` counts as written.
            return self.files.needs_read_approval(path) or (is_written and self.files.needs_write_approval(path))
        except PermissionError:
            return True


def _asks(root: PathConfig, is_written: bool) -> bool:
    return root.read_approval is not False or (is_written and (root.mode != 'rw' or root.write_approval))


def is_written_unasked(files: FileSandbox, path: str) -> bool:
    """Whether the file tools can write to a path without approval."""
    try:
        return not files.needs_write_approval(path)
    except PermissionError:
        return False


def is_written_with_access(files: FileSandbox, path: str) -> bool:
    """Whether a confined command can write to a path only with the extra access `write`."""
    innermost, _ = files.roots_at(path)
    try:
        return innermost is not None and innermost.config.suffixes is None and files.needs_write_approval(path)
    except PermissionError:
        return False
