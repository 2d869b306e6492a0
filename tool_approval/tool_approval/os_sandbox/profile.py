"""Describe what a confined command may access, independently of the backend."""

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
    """Raised if the sandbox cannot enforce the profile of a command. The command does not run."""

    def __init__(self, problem: str, *, path: str | None = None) -> None:
        """Set the problem, and the path on the host that causes the problem."""
        self.problem = problem
        self.path = path
        super().__init__(problem if path is None else f'{path!r}: {problem}')


class OSSandboxUnavailable(OSSandboxError):
    """Raised if the settings require a backend and none works on this machine."""


DEFAULT_ENVIRONMENT = frozenset({'COLORTERM', 'HOME', 'LOGNAME', 'PATH', 'TERM', 'TZ', 'USER'})
"""Environment variables that programs expect. They contain no secrets, and a fresh login shell usually has them."""


class Access(IntEnum):
    """Access to a path. Each level includes the access of the lower levels."""

    NONE = 0
    """No access."""
    READ = 1
    """The command can read the path, and execute it if the file is executable."""
    WRITE = 2
    """The command can read and write the path."""


@dataclass(frozen=True, kw_only=True)
class Root:
    """Access to a file, or to a folder and everything in it except nested roots."""

    path: str
    """Absolute path without `.`, `..` or symbolic links."""
    access: Access
    """Access to the path."""
    suffixes: frozenset[str] | None = None
    """Allowed suffixes of file names, such as `.txt`. `None` allows every file. An empty set allows no file."""

    def __post_init__(self) -> None:
        """Check that the path is absolute and normalised."""
        check_path(self.path)

    def opens(self, path: str) -> Access:
        """Return the access that this root gives to `path`, which is in the root."""
        if self.suffixes is not None and PurePosixPath(path).suffix not in self.suffixes:
            return Access.NONE
        return self.access


@dataclass(frozen=True, kw_only=True)
class OSProfile:
    """Everything that a confined command may access. A command cannot access a path that is in no root."""

    roots: tuple[Root, ...] = ()
    """The innermost root that contains a path determines the access to the path. If two roots have the same path,
    commands get only the access that both roots give."""
    hidden: tuple[str, ...] = ()
    """Absolute paths. A command cannot access these paths, or anything below them, even if a root allows it."""
    protected: tuple[str, ...] = ()
    """Absolute paths of control files, which a command can never write. The files need not exist. If a path is a
    symbolic link, its target is protected as well. Commands cannot rename a folder above the path or the target."""
    held: tuple[str, ...] = ()
    """Absolute paths of symbolic links that a command cannot replace, rename or delete. The same holds for
    folders on the way to the links' targets. The access to the targets does not change."""
    copies: tuple[tuple[str, str], ...] = ()
    """Pairs of the absolute path of a file and of another file of the host, which commands read in its place. Commands
    can read and write the first file no more than the second, which no root contains."""
    network: bool = False
    """Whether the command can use the machine's network. Unix sockets are blocked if the backend can block them."""
    environment: frozenset[str] = DEFAULT_ENVIRONMENT
    """Names of the environment variables that this process passes on."""
    variables: tuple[tuple[str, str], ...] = ()
    """Environment variables to set, as pairs of name and value."""

    def __post_init__(self) -> None:
        """Check all values, sort them and remove duplicates, so that profiles that give the same access are equal.

        Raises:
            OSSandboxError: A path contains a NUL, or a variable has an invalid name.
        """
        merged: dict[str, Root] = {}
        for root in self.roots:
            merged[root.path] = _both(merged.get(root.path, root), root)
        for path in (*self.hidden, *self.protected, *self.held, *(path for pair in self.copies for path in pair)):
            check_path(path)
        for name in (*self.environment, *(name for name, _ in self.variables)):
            if not name or '=' in name or '\0' in name:
                raise OSSandboxError(f'{name!r} cannot be the name of an environment variable')
        object.__setattr__(self, 'roots', tuple(merged[path] for path in sorted(merged)))
        for name in ('hidden', 'protected', 'held', 'copies', 'variables'):
            object.__setattr__(self, name, tuple(sorted(set(getattr(self, name)))))

    @property
    def readable(self) -> tuple[str, ...]:
        """Paths of the roots that can be read, including roots with `suffixes`."""
        return tuple(root.path for root in self.roots if root.access >= Access.READ)

    @property
    def writable(self) -> tuple[str, ...]:
        """Paths of the roots that can be written, including roots with `suffixes`."""
        return tuple(root.path for root in self.roots if root.access is Access.WRITE)

    def root_of(self, path: str) -> Root | None:
        """Return the innermost root that contains `path`; `None` if no root contains it."""
        return next((self._by_path[above] for above in lineage(path) if above in self._by_path), None)

    @cached_property
    def _by_path(self) -> dict[str, Root]:
        return {root.path: root for root in self.roots}

    def access(self, path: str) -> Access:
        """Return the access that a command has to an absolute path. The path must contain no symbolic links."""
        root = self.root_of(path)
        access = Access.NONE if root is None else root.opens(path)
        if covers(self.hidden, path):
            return Access.NONE
        return min(access, Access.READ) if covers(self.protected, path) else access

    def intersect(self, other: OSProfile) -> OSProfile:
        """Return a profile that gives only the access that both profiles give."""
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
            copies=(*self.copies, *other.copies),
            network=self.network and other.network,
            environment=self.environment & other.environment,
            variables=tuple(set(self.variables) & set(other.variables)),
        )

    def can_open(self, path: str) -> bool:
        """Whether `with_access` can make a folder writable. The folder must be readable and not protected."""
        return self.access(path) is Access.READ and not covers(self.protected, path)

    def with_access(self, extra: ExtraAccess) -> OSProfile:
        """Return this profile with the extra access that an approver granted to one command.

        The command can use the network if `extra` grants that. A folder in `writes` becomes writable if `can_open`
        accepts it. In such a folder, hidden, blocked and protected paths stay restricted, and nested roots keep their
        access. `git_mounts.opened` opens what `git` names.
        """
        opened = [path for path in extra.writes if self.can_open(path)]
        roots = {root.path: root for root in self.roots}
        for path in opened:
            root = self.root_of(path)
            assert root is not None, 'only a path in a root can be opened'
            roots[path] = replace(root, path=path, access=Access.WRITE)
        return replace(self, roots=tuple(roots.values()), network=self.network or extra.network)


def check_path(path: str) -> None:
    """Check that a path is absolute, normalised and without NUL.

    Raises:
        OSSandboxError: The path is not absolute, is not normalised, or contains a NUL.
    """
    if not path.startswith('/') or path.startswith('//') or posixpath.normpath(path) != path or '\0' in path:
        raise OSSandboxError('a path in a profile must be absolute and normalised', path=path)


def lineage(path: str) -> Iterable[str]:
    """Yield the path itself, then each folder above it, up to `/`."""
    while path != '/':
        yield path
        path = path[: path.rindex('/')] or '/'
    yield path


def covers(paths: Collection[str], path: str) -> bool:
    """Whether `path` or a folder above it is in `paths`."""
    return bool(paths) and not set(paths).isdisjoint(lineage(path))


def _both(one: Root, other: Root) -> Root:
    """Combine two roots that have the same path. The result gives only the access that both roots give."""
    suffixes = one.suffixes if other.suffixes is None else other.suffixes
    if one.suffixes is not None and other.suffixes is not None:
        suffixes = one.suffixes & other.suffixes
    return Root(path=one.path, access=min(one.access, other.access), suffixes=suffixes)


_DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin'


def passed_on(profile: OSProfile, source: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a command: the variables in the profile, and `PATH` without relative folders.

    Args:
        profile: The profile of the command.
        source: The environment from which variables are copied, by default the environment of this process.
    """
    values = os.environ if source is None else source
    chosen = {name: values[name] for name in sorted(profile.environment) if name in values} | dict(profile.variables)
    # Attack: with an empty or relative part, a program that the agent has written is found.
    path = ':'.join(place for place in chosen.get('PATH', '').split(':') if place.startswith('/'))
    chosen.pop('PATH', None)
    return {'PATH': path or _DEFAULT_PATH, **chosen}


_MOST_LINKS = 40
"""Maximum number of symbolic links that the kernel follows in a path (`path_resolution(7)`)."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One name that the kernel looks up to resolve a path."""

    path: str
    """Absolute path that ends with the name. Only the last part may be a symbolic link."""
    kind: Literal['folder', 'file', 'link', 'missing']
    """Kind of the file at the path. The kind `file` includes devices and sockets."""


def trail(path: str) -> tuple[list[Step], str]:
    """Resolve an absolute path, and follow its symbolic links. Missing names stay in the resolved path.

    Returns:
        The names that were looked up, in order, and the resolved path. If an entry with one of these names is
        replaced, the path may resolve differently. If one of the names is a file, the rest of the path is ignored.

    Raises:
        OSSandboxError: Symbolic links form a loop, or a folder cannot be searched.
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
                raise OSSandboxError('the symbolic links form a loop', path=path)
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
    """Return the names that the kernel looks up to resolve a root.

    Raises:
        OSSandboxError: The root now resolves to a different path than in the profile, or cannot be resolved.
    """
    way, end = trail(root.path)
    if end != root.path or any(step.kind == 'link' for step in way):
        raise OSSandboxError(f'the root is now a link to {end!r}, which is not in the settings', path=root.path)
    return way


def _kind(entry: str) -> Literal['folder', 'file', 'link', 'missing']:
    try:
        mode = os.lstat(entry).st_mode
    except FileNotFoundError:
        return 'missing'
    except OSError as error:
        raise OSSandboxError(f'the path cannot be inspected: {error.strerror}', path=entry) from error
    if stat.S_ISLNK(mode):
        return 'link'
    return 'folder' if stat.S_ISDIR(mode) else 'file'
