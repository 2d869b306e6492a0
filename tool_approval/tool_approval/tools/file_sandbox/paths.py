"""Go to a path directory by directory, hold each of them open, and find the root it lies in.

Each step is relative to a directory that is open already, and none follows a link: a link is read, and its text is
walked the same way. Whatever is renamed or replaced meanwhile, what was looked at is what is used afterwards.
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
"""Opens a directory and nothing else. Where a flag is missing, `FileSandbox` refuses to be made."""

PASSING = FOLDER | getattr(os, 'O_PATH', os.O_RDONLY)
"""Opens a directory that may only be passed through, where the system can."""

MAX_DEPTH = 200
"""Chosen: each level holds a descriptor, of which a process often has 1024."""


def is_possible() -> bool:
    """Whether this system can open files relative to a directory, without following links."""
    return os.open in os.supports_dir_fd and hasattr(os, 'O_NOFOLLOW')


class WalkedPath:
    """Where a path leads: the open directories on the way, and what stands at its end."""

    def __init__(self) -> None:
        """At the top of the file system."""
        self.folders = [os.open('/', PASSING)]
        """Descriptors of the directories; the first is `/`, and the i-th is that of `names[:i]`."""
        self.names: list[str] = []
        """The names from the top, without links."""
        self.links: list[list[str]] = []
        """The links that were followed, each as its names from the top."""
        self.left: set[tuple[str, ...]] = set()
        """The places that `..` led away from, whether they exist or not."""
        self.status: os.stat_result | None = None
        """What the end is, if it exists and is no directory."""

    @property
    def is_folder(self) -> bool:
        """Whether the end is a directory."""
        return len(self.folders) == len(self.names) + 1

    @property
    def is_missing(self) -> bool:
        """Whether there is nothing at the end."""
        return not self.is_folder and self.status is None

    @property
    def missing_folders(self) -> list[str]:
        """The directories that would have to be made for the end to have a parent."""
        return [] if self.is_folder else self.names[len(self.folders) - 1 : -1]

    @property
    def parent(self) -> int:
        """The descriptor of the directory that has, or would have, the last name.

        Raises:
            FileNotFoundError: That directory is missing, too.
        """
        if self.missing_folders:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return self.folders[len(self.names) - 1]

    @property
    def name(self) -> str:
        """The last name."""
        return self.names[-1]

    def up(self) -> None:
        """To the directory that was come from: not to what `..` means by now."""
        if not self.names:
            return
        self.left.add(tuple(self.names))
        if self.is_folder:
            os.close(self.folders.pop())
        self.names.pop()

    def enter(self, name: str, *, flags: int = PASSING) -> None:
        """Into a directory.

        Raises:
            OSError: There is none of that name, or a link.
        """
        self.folders.append(os.open(name, flags, dir_fd=self.folders[-1]))
        self.names.append(name)

    def make_parents(self) -> None:
        """Make the directories that are missing, one in the other."""
        end = self.names[-1]
        for name in self.missing_folders:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=self.folders[-1])
            self.folders.append(os.open(name, PASSING, dir_fd=self.folders[-1]))
        assert self.names[-1] == end, 'only descriptors were added'

    def back_to_top(self) -> None:
        """To `/`."""
        for folder in self.folders[1:]:
            os.close(folder)
        del self.folders[1:]
        self.names.clear()

    def close(self) -> None:
        """Let go of all directories. May be called again."""
        while self.folders:
            os.close(self.folders.pop())


def walk(start: Sequence[str], path: str, *, follows_last: bool) -> WalkedPath:
    """Go to a path, and return where it leads; the caller closes it. Nothing in the path is expanded.

    Args:
        start: The names of the directory that relative paths begin in.
        path: The path.
        follows_last: Whether a link at the end is followed.

    Raises:
        WalkError: It leads nowhere: through a file, in circles, or where the system forbids to go.
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
    """A path could not be walked to its end."""

    def __init__(self, error: OSError, names: list[str], left: set[tuple[str, ...]]) -> None:
        """Keep how far it went, and what it went up from."""
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
            place.names.append(name)  # below what is missing, everything is
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


OUTSIDE = 'It lies outside of every directory that these tools may use.'


@dataclass(frozen=True, kw_only=True)
class SandboxRoot:
    """One configured directory, as it stood when the sandbox was made."""

    name: str
    """What messages call it."""
    config: PathConfig
    """What may be done in it."""
    names: tuple[str, ...]
    """Its place, from the top of the file system, without links."""
    identity: tuple[int, int] | None
    """Device and inode; `None` if it did not exist then."""

    @classmethod
    def of(cls, name: str, config: PathConfig, base: Path) -> SandboxRoot:
        """Fix the place of a root once, so that no change of directory moves it later.

        Links on the way to it are followed, but not within the working directory: what is a link there may have been
        made by whoever wrote the files in it, and leads nowhere that was meant (test_links.py).
        """
        place = _resolved(config.root, base)
        return cls(name=name, config=config, names=tuple(components(str(place))), identity=_identity(place))

    @property
    def place(self) -> Path:
        """Where it is on the host. Not for messages."""
        return Path('/', *self.names)

    @property
    def is_where_it_was(self) -> bool:
        """Whether the directory is still the one that was configured."""
        return self.identity is not None and _identity(self.place) == self.identity


class SandboxRoots:
    """All of them."""

    def __init__(self, paths: Mapping[str, PathConfig], base: Path) -> None:
        """Resolve them.

        Raises:
            ApprovalConfigError: Two are the same directory.
        """
        self.base = tuple(components(os.path.realpath(base)))
        roots = [SandboxRoot.of(name, config, base) for name, config in paths.items()]
        # The longest first: the innermost root decides.
        self.all = sorted(roots, key=lambda root: len(root.names), reverse=True)
        seen: dict[tuple[str, ...], str] = {}
        for root in roots:
            if root.names in seen:
                problem = f'is the same directory as `{seen[root.names]}`; name it once'
                raise ApprovalConfigError(problem, key=f'sandbox.paths.{root.name}.root')
            seen[root.names] = root.name
        far = [Path('/', *self.base) / root.config.root for root in roots if not starts_with(root.names, self.base)]
        self._passed = {names for path in (base, *far) for names in _left_on_the_way(path)}
        self._on_the_way = (self.base, components(str(base)), *(root.names for root in roots))

    def find(self, names: Sequence[str]) -> SandboxRoot | None:
        """The innermost root that a place is at or in."""
        return next((root for root in self.all if starts_with(names, root.names)), None)

    def of(self, place: WalkedPath) -> SandboxRoot:
        """The root whose rules hold.

        Raises:
            PermissionError: There is none, or the place is another name for something in one.
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
        # Attack: on a file system that ignores case, `Ref/` is `ref/` without its rule; so is a second mount of it.
        if is_like or any(
            _identity_of(folder) == root.identity and tuple(place.names[:depth]) != root.names and root.is_where_it_was
            for depth, folder in enumerate(place.folders)
        ):
            raise PermissionError(f'It is, or looks like, another name for {root.name!r}; use the name itself.')

    def below(self, names: Sequence[str]) -> list[SandboxRoot]:
        """The roots that are at a place or below it."""
        return [root for root in self.all if starts_with(root.names, names)]

    def is_known(self, names: Sequence[str]) -> bool:
        """Whether the configuration itself says that a place exists: it is in a root, or on the way to one.

        So is what is on the way to where relative paths begin.
        """
        return (
            self.find(names) is not None
            or tuple(names) in self._passed
            or any(starts_with(way, names) for way in self._on_the_way)
        )

    def listed(self) -> str:
        """For a model: which directories there are, relative to the working directory."""
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
    """What `..` leads away from on the way to a path, as in a link to `../elsewhere`."""
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
