"""Which files no tool writes, and where the roots are for the rules of the shell."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tool_approval.storage.private_file import default_path
from tool_approval.tools.file_sandbox import FileSandbox
from tool_approval.tools.file_sandbox.names import git_led_to, is_control, places

from .files import NAMES
from .model import SandboxSettings


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
    found += [
        place for each in tuple(found) if each.name == '.git' for led in git_led_to(each) for place in places(led)
    ]
    # A root that is itself a part of Git's: `root: .git/hooks`.
    roots = (Path(os.path.realpath(directory / path.root)) for path in sandbox.paths.values())
    found += [root for root in roots if is_control(root.parts)]
    return tuple(dict.fromkeys(found))


def root_checks(files: FileSandbox) -> dict[str, Callable[[str], bool]]:
    """By root, whether a path is in it: what the shell tool asks for the `sandbox_paths` of its rules."""
    return {name: _inside(files, name) for name in files.config.paths}


def _inside(files: FileSandbox, name: str) -> Callable[[str], bool]:
    # A rule that holds in a root reads there.
    is_blocked = files.config.paths[name].read_approval == 'blocked'
    return lambda path: not is_blocked and files.root_of(path) == name


def is_written_unasked(files: FileSandbox, path: str) -> bool:
    """Whether the file tools write to a path without asking."""
    try:
        return not files.needs_write_approval(path)
    except PermissionError:
        return False
