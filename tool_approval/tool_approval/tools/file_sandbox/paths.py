"""Resolve a path directory by directory, keep each directory open, and find its root.

Every step is relative to an open directory and follows no link: a link is read and its target resolved in the same
way. So the files that are used later are the ones that were checked, whatever is renamed or replaced meanwhile.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tool_approval.core.errors import ApprovalConfigError

from .names import MAX_LINKS, asks_for_folder, components, fold, starts_with

if TYPE_CHECKING:
    from .config import PathConfig

FOLDER = sum(getattr(os, flag, 0) for flag in ('O_DIRECTORY', 'O_NOFOLLOW', 'O_CLOEXEC'))
"""Flags that open only a directory. `FileSandbox` raises `NotImplementedError` on systems without these flags."""

PASSING = FOLDER | getattr(os, 'O_PATH', os.O_RDONLY)
"""Flags that open a directory only to resolve names in it, if the system supports that."""

MAX_DEPTH = 200
"""Chosen: maximum depth of a path. Each level keeps a descriptor open, and a process is often limited to 1024."""


def is_possible() -> bool:
    """Return whether this system can open files relative to a directory without following links."""
    return os.open in os.supports_dir_fd and hasattr(os, 'O_NOFOLLOW')


class WalkedPath:
    """A resolved path: the open directories along it, and the file at its end."""

    def __init__(self) -> None:
        """Start at the root of the file system."""
        self.folders = [os.open('/', PASSING)]
        """Descriptors of the open directories; `folders[i]` is the directory `names[:i]`, and the first is `/`."""
        self.names: list[str] = []
        """Names from `/` to the end of the path, with links resolved."""
        self.links: list[list[str]] = []
        """Links that were followed, each as names from `/`."""
        self.left: set[tuple[str, ...]] = set()
        """Paths that were followed by a `..`, as names from `/`, whether the paths exist or not."""
        self.status: os.stat_result | None = None
        """Status of the end of the path; `None` if it is missing or a directory."""

    @property
    def is_folder(self) -> bool:
        """Whether the path ends at a directory."""
        return len(self.folders) == len(self.names) + 1

    @property
    def is_missing(self) -> bool:
        """Whether the path ends at a name that does not exist."""
        return not self.is_folder and self.status is None

    @property
    def missing_folders(self) -> list[str]:
        """Names of the missing directories above the last name."""
        return [] if self.is_folder else self.names[len(self.folders) - 1 : -1]

    @property
    def parent(self) -> int:
        """Descriptor of the directory that contains, or would contain, the last name.

        Raises:
            FileNotFoundError: The directory is missing too.
        """
        if self.missing_folders:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return self.folders[len(self.names) - 1]

    @property
    def name(self) -> str:
        """Last name of the path."""
        return self.names[-1]

    def up(self) -> None:
        """Return to the directory that this path came through, even if `..` means another directory on disk by now."""
        if not self.names:
            return
        self.left.add(tuple(self.names))
        if self.is_folder:
            os.close(self.folders.pop())
        self.names.pop()

    def enter(self, name: str, *, flags: int = PASSING) -> None:
        """Go down into a directory.

        Raises:
            OSError: The name is missing, a link, or not a directory.
        """
        self.folders.append(os.open(name, flags, dir_fd=self.folders[-1]))
        self.names.append(name)

    def make_parents(self) -> None:
        """Create the missing directories above the last name."""
        end = self.names[-1]
        for name in self.missing_folders:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=self.folders[-1])
            self.folders.append(os.open(name, PASSING, dir_fd=self.folders[-1]))
        assert self.names[-1] == end, 'the loop adds no names'

    def back_to_top(self) -> None:
        """Return to `/`."""
        for folder in self.folders[1:]:
            os.close(folder)
        del self.folders[1:]
        self.names.clear()

    def close(self) -> None:
        """Close all directories. May be called again."""
        while self.folders:
            os.close(self.folders.pop())


def walk(start: Sequence[str], path: str, *, follows_last: bool) -> WalkedPath:
    """Resolve a path and return it; the caller closes it. `~` and variables are not expanded.

    Args:
        start: Names from `/` of the directory that relative paths start in.
        path: The path.
        follows_last: Whether to follow a link at the end of the path.

    Raises:
        WalkError: The path runs through a file, a loop of links, or a directory that the system forbids to open.
    """
    place = WalkedPath()
    try:
        _go(place, ([] if path.startswith('/') else list(start)) + components(path), follows_last, path)
    except OSError as error:
        place.close()
        raise WalkError(error, place.names, place.left) from None
    except BaseException:
        place.close()
        raise
    return place


class WalkError(Exception):
    """Raised if a path cannot be resolved to its end."""

    def __init__(self, error: OSError, names: list[str], left: set[tuple[str, ...]]) -> None:
        """Record the names reached so far, and the paths that were followed by a `..`."""
        self.error = error
        self.names = names
        self.left = left
        super().__init__(os.strerror(error.errno or 0))


def _go(place: WalkedPath, names: list[str], follows_last: bool, path: str) -> None:
    todo = names[::-1]
    links = 0
    while todo:
        name = todo.pop()
        if place.status is not None:
            raise OSError(errno.ENOTDIR, '')
        if name == '..':
            place.up()
            continue
        if len(place.names) >= MAX_DEPTH:
            raise OSError(errno.ENAMETOOLONG, '')
        if not place.is_folder:
            place.names.append(name)  # nothing exists below a missing directory
            continue
        try:
            found = os.stat(name, dir_fd=place.folders[-1], follow_symlinks=False)
        except FileNotFoundError:
            place.names.append(name)
            continue
        if stat.S_ISDIR(found.st_mode):
            place.enter(name)
        elif stat.S_ISLNK(found.st_mode) and (todo or follows_last or asks_for_folder(path)):
            links += 1
            if links > MAX_LINKS:
                raise OSError(errno.ELOOP, '')
            place.links.append([*place.names, name])
            target = os.readlink(name, dir_fd=place.folders[-1])
            if target.startswith('/'):
                place.back_to_top()
            todo += components(target)[::-1]
        else:
            place.names.append(name)
            place.status = found
    if place.status is not None and asks_for_folder(path):
        raise OSError(errno.ENOTDIR, '')


OUTSIDE = 'The path is outside of the directories that these tools may use.'


@dataclass(frozen=True, kw_only=True)
class SandboxRoot:
    """One configured directory, as found when the sandbox was created."""

    name: str
    """Name used in messages."""
    config: PathConfig
    """Rules of the directory."""
    names: tuple[str, ...]
    """Path of the directory as names from `/`, with links resolved."""
    identity: tuple[int, int] | None
    """Device and inode; `None` if the directory was missing at creation."""

    @classmethod
    def of(cls, name: str, config: PathConfig, base: Path) -> SandboxRoot:
        """Resolve a root once, so that a later change of the working directory does not move it.

        Links are followed only outside of the working directory, because a program that writes files there may also
        have made the link (test_links.py).
        """
        place = _resolved(config.root, base)
        return cls(name=name, config=config, names=tuple(components(str(place))), identity=_identity(place))

    @property
    def place(self) -> Path:
        """Absolute path on the host. Messages must not contain this path."""
        return Path('/', *self.names)

    @property
    def is_where_it_was(self) -> bool:
        """Whether the path still leads to the configured directory."""
        return self.identity is not None and _identity(self.place) == self.identity


class SandboxRoots:
    """All roots of a sandbox."""

    def __init__(self, paths: Mapping[str, PathConfig], base: Path) -> None:
        """Resolve the roots.

        Raises:
            ApprovalConfigError: Two roots are the same directory.
        """
        self.base = tuple(components(os.path.realpath(base)))
        roots = [SandboxRoot.of(name, config, base) for name, config in paths.items()]
        # Longest path first: the innermost root decides.
        self.all = sorted(roots, key=lambda root: len(root.names), reverse=True)
        seen: dict[tuple[str, ...], str] = {}
        for root in roots:
            if root.names in seen:
                problem = f'this root is the same directory as `{seen[root.names]}`; name it once'
                raise ApprovalConfigError(problem, key=f'sandbox.paths.{root.name}.root')
            seen[root.names] = root.name
        far = [Path('/', *self.base) / root.config.root for root in roots if not starts_with(root.names, self.base)]
        self._passed = {names for path in (base, *far) for names in _left_on_the_way(path)}
        self._on_the_way = (self.base, components(str(base)), *(root.names for root in roots))

    def find(self, names: Sequence[str]) -> SandboxRoot | None:
        """Return the innermost root that contains a path, or `None`."""
        return next((root for root in self.all if starts_with(names, root.names)), None)

    def of(self, place: WalkedPath) -> SandboxRoot:
        """Return the root whose rules apply to a path.

        Raises:
            PermissionError: No root contains the path, or the path is another name for something in a root.
        """
        found = self.find(place.names)
        if found is None:
            raise PermissionError(OUTSIDE)
        for root in self.all:
            self._check_look_alike(root, place)
        return found

    def _check_look_alike(self, root: SandboxRoot, place: WalkedPath) -> None:
        beginning = place.names[: len(root.names)]
        is_like = list(map(fold, beginning)) == list(map(fold, root.names)) and tuple(beginning) != root.names
        # Attack: if the file system ignores case, `Ref/` avoids the rule for `ref/`. So does a second mount of `ref/`.
        if is_like or any(
            _identity_of(folder) == root.identity and tuple(place.names[:depth]) != root.names and root.is_where_it_was
            for depth, folder in enumerate(place.folders)
        ):
            raise PermissionError(
                f'The path is, or looks like, another path of {root.name!r}; use the configured path.'
            )

    def below(self, names: Sequence[str]) -> list[SandboxRoot]:
        """Return the roots at a path or below it."""
        return [root for root in self.all if starts_with(root.names, names)]

    def is_known(self, names: Sequence[str]) -> bool:
        """Return whether the configuration reveals that a path exists.

        A path is revealed if it is in a root, or on the way to a root or to the base of relative paths.
        """
        return (
            self.find(names) is not None
            or tuple(names) in self._passed
            or any(starts_with(way, names) for way in self._on_the_way)
        )

    def listed(self) -> str:
        """Return the directories, relative to the working directory, for a message to the model."""
        base = Path('/', *self.base)
        shown = sorted(f'{os.path.relpath(root.place, base)}/ ({root.name}, {root.config.mode})' for root in self.all)
        return ', '.join(shown) or 'none'


def _resolved(root: Path, base: Path) -> Path:
    real_base = Path(os.path.realpath(base))
    place = Path(os.path.normpath(real_base / root))
    for beginning in (base, real_base):
        if place.is_relative_to(beginning):
            return real_base / place.relative_to(beginning)
    return Path(os.path.realpath(real_base / root))


def _left_on_the_way(path: Path) -> Iterable[tuple[str, ...]]:
    """Return each path that is followed by a `..` on the way to `path`, as in a link to `../elsewhere`."""
    try:
        with contextlib.closing(walk([], str(path), follows_last=True)) as place:
            return place.left
    except WalkError as error:
        return error.left


def _identity(place: Path) -> tuple[int, int] | None:
    try:
        status = os.lstat(place)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _identity_of(folder: int) -> tuple[int, int]:
    status = os.fstat(folder)
    return status.st_dev, status.st_ino
