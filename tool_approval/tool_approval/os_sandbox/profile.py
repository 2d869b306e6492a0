"""Describe what a confined command may touch, without naming a backend."""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal

from tool_approval.core.errors import ApprovalError

if TYPE_CHECKING:
    from .access import ExtraAccess


class OSSandboxError(ApprovalError):
    """A command cannot be confined as its profile says, so it does not run."""

    def __init__(self, problem: str, *, path: str | None = None) -> None:
        """Say what stands in the way, and at which path of the host."""
        self.problem = problem
        self.path = path
        super().__init__(problem if path is None else f'{path!r}: {problem}')


class OSSandboxUnavailable(OSSandboxError):
    """No backend works on this machine, and the configuration requires one."""


DEFAULT_ENVIRONMENT = frozenset(
    {'COLORTERM', 'HOME', 'LANG', 'LC_ALL', 'LC_CTYPE', 'LOGNAME', 'PATH', 'TERM', 'TZ', 'USER'}
)
"""Variables that programs expect and that hold no secret. Chosen: what a fresh login shell has, without sockets."""


class Access(IntEnum):
    """How far a path is open. More includes less."""

    NONE = 0
    """Neither read nor written."""
    READ = 1
    """Read, and executed where the file says so."""
    WRITE = 2
    """Read and written."""


@dataclass(frozen=True, kw_only=True)
class Root:
    """A folder or file, and everything below it up to the next root."""

    path: str
    """Absolute, without `.` and `..`, and with no symbolic link on the way."""
    access: Access
    """How far it is open."""
    suffixes: frozenset[str] | None = None
    """The only endings of files that are open, such as `.txt`; `None` means any, an empty set means none."""

    def __post_init__(self) -> None:
        """Refuse what no kernel could enforce."""
        check_path(self.path)

    def opens(self, path: str) -> Access:
        """How far `path`, which lies below this root, is open."""
        if self.suffixes is not None and PurePosixPath(path).suffix not in self.suffixes:
            return Access.NONE
        return self.access


@dataclass(frozen=True, kw_only=True)
class OSProfile:
    """Everything a confined command may touch. What no root covers is closed."""

    roots: tuple[Root, ...] = ()
    """The longest one that covers a path decides. Of two with the same path only what both open stays open."""
    hidden: tuple[str, ...] = ()
    """Absolute paths that are never read nor written, with what is below them, whatever the roots say."""
    protected: tuple[str, ...] = ()
    """The same for writing alone: control files. They need not exist; whatever a symbolic link there leads to counts
    as well, and nothing on the way to them can be renamed."""
    held: tuple[str, ...] = ()
    """Absolute paths of symbolic links that stay what they are: not replaced, renamed or deleted, nor is anything on
    the way to where they lead. What they lead to is as open as it was."""
    network: bool = False
    """Whether the machine's network is reachable. Sockets in the file system never are, as far as a backend can."""
    environment: frozenset[str] = DEFAULT_ENVIRONMENT
    """The names of the variables that are passed on."""
    variables: tuple[tuple[str, str], ...] = ()
    """Variables that a command gets whatever this process has, as pairs of name and value."""

    def __post_init__(self) -> None:
        """Sort and merge, so that equal profiles compare equal, and refuse what cannot be meant.

        Raises:
            OSSandboxError: A path holds a NUL, or a name cannot be that of a variable.
        """
        merged: dict[str, Root] = {}
        for root in self.roots:
            merged[root.path] = _both(merged.get(root.path, root), root)
        for path in (*self.hidden, *self.protected, *self.held):
            check_path(path)
        for name in (*self.environment, *(name for name, _ in self.variables)):
            if not name or '=' in name or '\0' in name:
                raise OSSandboxError(f'{name!r} cannot be the name of an environment variable')
        object.__setattr__(self, 'roots', tuple(merged[path] for path in sorted(merged)))
        for name in ('hidden', 'protected', 'held', 'variables'):
            object.__setattr__(self, name, tuple(sorted(set(getattr(self, name)))))

    @property
    def readable(self) -> tuple[str, ...]:
        """Paths of the roots that can be read, those with suffixes too."""
        return tuple(root.path for root in self.roots if root.access >= Access.READ)

    @property
    def writable(self) -> tuple[str, ...]:
        """Paths of the roots that can be written, those with suffixes too."""
        return tuple(root.path for root in self.roots if root.access is Access.WRITE)

    def root_of(self, path: str) -> Root | None:
        """The longest root that covers `path`, if any does."""
        return next((self._by_path[above] for above in lineage(path) if above in self._by_path), None)

    @cached_property
    def _by_path(self) -> dict[str, Root]:
        return {root.path: root for root in self.roots}

    def access(self, path: str) -> Access:
        """How far an absolute path without symbolic links is open."""
        root = self.root_of(path)
        access = Access.NONE if root is None else root.opens(path)
        if covers(self.hidden, path):
            return Access.NONE
        return min(access, Access.READ) if covers(self.protected, path) else access

    def intersect(self, other: OSProfile) -> OSProfile:
        """What both allow: never more than either of them.

        Raises:
            OSSandboxError: Never for two profiles that could be made.
        """
        roots: list[Root] = []
        for path in {root.path for root in (*self.roots, *other.roots)}:
            mine, theirs = self.root_of(path), other.root_of(path)
            both = None if mine is None or theirs is None else _both(mine, theirs)
            roots.append(Root(path=path, access=Access.NONE) if both is None else replace(both, path=path))
        return OSProfile(
            roots=tuple(roots),
            hidden=(*self.hidden, *other.hidden),
            protected=(*self.protected, *other.protected),
            held=(*self.held, *other.held),
            network=self.network and other.network,
            environment=self.environment & other.environment,
            variables=tuple(set(self.variables) & set(other.variables)),
        )

    def can_open(self, path: str) -> bool:
        """Whether `with_access` makes a folder writable: one that can be read, and is no control path."""
        return self.access(path) is Access.READ and not covers(self.protected, path)

    def with_access(self, extra: ExtraAccess) -> OSProfile:
        """This profile, with what an approver allowed one command beyond it.

        It opens the network, and the folders in `writes` as far as `can_open` lets them be: what is hidden, blocked or
        protected below one stays so, as does a root of its own. `git` and `names` open nothing here: their folders are
        written through a layer.
        """
        opened = [path for path in extra.writes if self.can_open(path)]
        roots = {root.path: root for root in self.roots}
        for path in opened:
            root = self.root_of(path)
            assert root is not None, 'a path without a root cannot be read'
            roots[path] = replace(root, path=path, access=Access.WRITE)
        return replace(self, roots=tuple(roots.values()), network=self.network or extra.network)


def check_path(path: str) -> None:
    """Refuse a path that could mean more than one place.

    Raises:
        OSSandboxError: It is not absolute and normalised, or holds a NUL.
    """
    if not path.startswith('/') or path.startswith('//') or posixpath.normpath(path) != path or '\0' in path:
        raise OSSandboxError('a profile takes absolute, normalised paths', path=path)


def lineage(path: str) -> Iterable[str]:
    """The path itself, then each folder above it, up to `/`."""
    while path != '/':
        yield path
        path = path[: path.rindex('/')] or '/'
    yield path


def covers(paths: Collection[str], path: str) -> bool:
    """Whether one of `paths` is `path` or above it."""
    return bool(paths) and not set(paths).isdisjoint(lineage(path))


def _both(one: Root, other: Root) -> Root:
    """What two roots with the same path both open."""
    suffixes = one.suffixes if other.suffixes is None else other.suffixes
    if one.suffixes is not None and other.suffixes is not None:
        suffixes = one.suffixes & other.suffixes
    return Root(path=one.path, access=min(one.access, other.access), suffixes=suffixes)


_DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin'


def passed_on(profile: OSProfile, source: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables of `source` that the profile names, sorted, its own, and a `PATH` without relative parts.

    Args:
        profile: Names them.
        source: Where they come from, by default this process's own.
    """
    values = os.environ if source is None else source
    chosen = {name: values[name] for name in sorted(profile.environment) if name in values} | dict(profile.variables)
    # Attack: an empty or relative part finds a program that the agent has just written.
    path = ':'.join(place for place in chosen.get('PATH', '').split(':') if place.startswith('/'))
    chosen.pop('PATH', None)
    return {'PATH': path or _DEFAULT_PATH, **chosen}


_MOST_LINKS = 40
"""As many as the kernel follows (`path_resolution(7)`)."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One name that is looked up on the way."""

    path: str
    """The folder it is in, without symbolic links, and the name."""
    kind: Literal['folder', 'file', 'link', 'missing']
    """What is there. `file` is anything that is not a folder, devices and sockets too."""


def trail(path: str) -> tuple[list[Step], str]:
    """Follow an absolute path, symbolic links too, as far as it exists. Replacing a step changes where the path leads.

    Returns:
        Every step from `/` on, in order, and where it ends: the path without links. What is missing is taken as it
        is written; what would lie below a file ends at the file.

    Raises:
        OSSandboxError: Links lead in a circle, or a folder cannot be searched.
    """
    steps: list[Step] = []
    links = 0
    here = '/'
    ahead = path.split('/')[::-1]
    while ahead:
        name = ahead.pop()
        if name in ('', '.', '..'):
            here = posixpath.dirname(here) if name == '..' else here
            continue
        entry = posixpath.join(here, name)
        kind = _kind(entry)
        steps.append(Step(path=entry, kind=kind))
        if kind == 'link':
            links += 1
            if links > _MOST_LINKS:
                raise OSSandboxError('symbolic links lead in a circle', path=path)
            target = os.readlink(entry)
            here = '/' if target.startswith('/') else here
            ahead += target.split('/')[::-1]
        elif kind == 'missing':
            return steps, posixpath.normpath(posixpath.join(entry, *ahead[::-1]))
        else:
            here = entry
            if kind == 'file':
                break
    return steps, here


def way_to_root(root: Root) -> list[Step]:
    """The steps to a root.

    Raises:
        OSSandboxError: It leads elsewhere than when the profile was made, or cannot be followed.
    """
    way, end = trail(root.path)
    if end != root.path or any(step.kind == 'link' for step in way):
        raise OSSandboxError(f'the root leads to {end!r} now, which nobody configured', path=root.path)
    return way


def _kind(entry: str) -> Literal['folder', 'file', 'link', 'missing']:
    try:
        mode = os.lstat(entry).st_mode
    except FileNotFoundError:
        return 'missing'
    except OSError as error:
        raise OSSandboxError(f'it cannot be looked at: {error.strerror}', path=entry) from error
    if stat.S_ISLNK(mode):
        return 'link'
    return 'folder' if stat.S_ISDIR(mode) else 'file'
