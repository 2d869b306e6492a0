"""Note what is in the workspace before a command, so that `sweep` can tell afterwards what is new."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from .git_forms import entries, findings, git_folders, gitlinks, inside, modules, read, refs, text
from .git_mounts import HOLDER, LINKED, guards
from .profile import covers
from .tree import Tree

_TICK_NS: Final = 20_000_000
"""How much earlier than the clock a change can seem to be: the kernel's clock for files has ticks of up to 10 ms."""
_GRACE_S: Final = 60
"""Seconds between the time limit of a command and the time at which it has certainly ended."""
_SHARED: Final = ('/tmp', '/var/tmp', '/dev/shm')
"""Folders for temporary files of all programs."""


def is_shared(root: str) -> bool:
    """Whether many programs write to a folder: the root of the file system, a home, or one for temporary files.

    Any program may have made a file that appears there during a command, so the sweep does not search it.
    """
    wide = (os.path.realpath(os.path.expanduser('~')), *map(os.path.realpath, _SHARED))
    return root == os.path.realpath(tempfile.gettempdir()) or any(covers((root,), path) for path in wide)


@dataclass(kw_only=True)
class Before:
    """The state of the workspace before a command. A journal holds it as JSON."""

    roots: list[str]
    """Folders that the command can write to and that the sweep searches."""
    absent: list[str]
    """Guarded paths that do not exist."""
    makes: bool
    """Whether the command is to make repositories."""
    began_ns: int
    """Time of the start, in nanoseconds since 1970."""
    ends_ns: int
    """Time by which the command has ended, even if this process dies."""
    opened: str | None
    """The repository that the command was given access to."""
    known: list[str] = field(default_factory=list[str])
    """Every `.git`, every bare repository and every repository of a submodule."""
    repositories: list[str] = field(default_factory=list[str])
    """Those that the command can write to."""
    guarded: dict[str, list[int | str | None]] = field(default_factory=dict[str, 'list[int | str | None]'])
    """Device, inode and content of each path that no command may change; an empty list for a missing path."""
    heads: dict[str, str] = field(default_factory=dict[str, str])
    """Content of `HEAD`, by repository folder."""
    findings: list[list[str]] = field(default_factory=list[list[str]])
    """Pairs of path and reason of what would be moved away if it were new."""
    locks: list[str] = field(default_factory=list[str])
    """Git's locks in the repositories."""
    holders: list[str] = field(default_factory=list[str])
    """Files that are made to hold a name while the command runs."""
    refs: dict[str, str] = field(default_factory=dict[str, str])
    """Branches, tags and the stash of the repository that the command was given access to."""
    submodules: list[str] = field(default_factory=list[str])
    """Submodules in the index of that repository."""


def take(
    roots: Iterable[str],
    common: str | None,
    *,
    tree: Tree,
    absent: Iterable[str],
    closed: Collection[str],
    makes: bool,
    limit_s: float,
) -> Before:
    """Note what is there.

    Args:
        roots: Folders that the command can write to.
        common: The repository that the command is given access to, if any.
        tree: The search of the roots.
        absent: Guarded paths that do not exist.
        closed: Paths that the command cannot write to.
        makes: Whether the command is to make repositories.
        limit_s: Seconds after which the command is ended.

    Raises:
        OSError: A repository cannot be read.
    """
    began = time.time_ns() - _TICK_NS
    before = Before(
        roots=sorted(root for root in roots if not is_shared(root)),
        absent=[*absent],
        makes=makes,
        began_ns=began,
        ends_ns=began + int((limit_s + _GRACE_S) * 1e9),
        opened=common,
    )
    before.known = repositories(before, tree.look(before.roots).repositories)
    own = () if common is None else (common, *modules(common))
    before.repositories = [path for path in before.known if path in own or not covers(closed, path)]
    before.holders = [path for each in own if not os.path.lexists(path := f'{each}/commondir')]
    if common is not None:
        before.refs = refs(common)
        before.submodules = submodules_of(common)
    for each in before.repositories:
        linked = (f'{tree}/{name}' for tree in inside(f'{each}/worktrees') for name in LINKED)
        before.guarded |= {path: look(path) for path in (*guards([each]), *linked)}
        before.findings += map(list, findings(each))
        before.locks += locks_of(each)
        before.heads |= {git: text(f'{git}/HEAD') for git in git_folders(each)}
    return before


def repositories(before: Before, found: Iterable[str]) -> list[str]:
    """Return the repositories that were found, the one that the command was given, and those of their submodules."""
    tops = dict.fromkeys((*found, *(() if before.opened is None else (before.opened,))))
    return [path for top in tops for path in (top, *modules(top))]


def submodules_of(common: str) -> list[str]:
    """Return the submodules in the index of a repository, sorted; none if git cannot read the index."""
    try:
        return sorted(gitlinks(common))
    except ValueError:  # `findings` has it
        return []


def locks_of(common: str) -> list[str]:
    """Return git's locks in a repository."""
    return [each.path for each in entries(common) if each.name.endswith('.lock')]


def hold(before: Before) -> None:
    """Hold the name `commondir`, and make `hooks` where it is missing, so that no command can make them.

    Raises:
        OSError: A name cannot be held.
    """
    for path in before.holders:
        with open(path, 'xb') as file:
            file.write(HOLDER)
        os.makedirs(os.path.join(os.path.dirname(path), 'hooks'), exist_ok=True)


def look(path: str) -> list[int | str | None]:
    """Return device, inode and content of a path; an empty list if it does not exist."""
    try:
        status = os.lstat(path)
    except OSError:
        return []
    content = read(path)
    return [status.st_dev, status.st_ino, None if content is None else content.decode('latin-1')]
