"""What a confined command may touch, said without naming a backend."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import PurePosixPath

from .errors import OSSandboxError

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
        for name in self.environment:
            if not name or '=' in name or '\0' in name:
                raise OSSandboxError(f'{name!r} cannot be the name of an environment variable')
        object.__setattr__(self, 'roots', tuple(merged[path] for path in sorted(merged)))
        object.__setattr__(self, 'hidden', tuple(sorted(set(self.hidden))))
        object.__setattr__(self, 'protected', tuple(sorted(set(self.protected))))
        object.__setattr__(self, 'held', tuple(sorted(set(self.held))))

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
        by_path = {root.path: root for root in self.roots}
        return next((by_path[above] for above in lineage(path) if above in by_path), None)

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
            closed = Root(path=path, access=Access.NONE)
            roots.append(closed if mine is None or theirs is None else replace(_both(mine, theirs), path=path))
        return OSProfile(
            roots=tuple(roots),
            hidden=(*self.hidden, *other.hidden),
            protected=(*self.protected, *other.protected),
            held=(*self.held, *other.held),
            network=self.network and other.network,
            environment=self.environment & other.environment,
        )


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
