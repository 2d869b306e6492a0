"""Resolve a path directory by directory, keep each directory open, and find the root that contains the path.

Each part of the path is opened relative to an open directory, without following links. The target of a link is also
resolved directory by directory. So an operation uses the files that were checked, even if another process renames or
replaces a directory.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import unicodedata
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
"""Flags that open a directory only for looking up names, if the system supports this."""

MAX_DEPTH = 200
"""Maximum depth of a path. Each level needs a file descriptor, and the usual limit is 1024."""


def is_possible() -> bool:
    """Return whether this system can open files relative to a directory without following links."""
    return os.open in os.supports_dir_fd and hasattr(os, 'O_NOFOLLOW')


class WalkedPath:
    """A resolved path, with an open descriptor for each directory on the way."""

    def __init__(self) -> None:
        """Start at `/`."""
        self.folders = [os.open('/', PASSING)]
        """Descriptors of the open directories; `folders[i]` is the directory `names[:i]`, and the first is `/`."""
        self.names: list[str] = []
        """Parts of the resolved path, without `/`."""
        self.links: list[list[str]] = []
        """Paths of the links that were followed, each split into its parts."""
        self.left: set[tuple[str, ...]] = set()
        """Directories that the path enters and then leaves through `..`. Each directory is a tuple of the parts of its
        path. The directories need not exist."""
        self.status: os.stat_result | None = None
        """Result of `stat` for the path; `None` if the path is a directory or does not exist."""

    @property
    def is_folder(self) -> bool:
        """Whether the path is a directory."""
        return len(self.folders) == len(self.names) + 1

    @property
    def is_missing(self) -> bool:
        """Whether the path does not exist."""
        return not self.is_folder and self.status is None

    @property
    def missing_folders(self) -> list[str]:
        """Names of the parent directories that do not exist."""
        return [] if self.is_folder else self.names[len(self.folders) - 1 : -1]

    @property
    def parent(self) -> int:
        """Descriptor of the parent directory.

        Raises:
            FileNotFoundError: The parent directory does not exist.
        """
        if self.missing_folders:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return self.folders[len(self.names) - 1]

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.names[-1]

    def up(self) -> None:
        """Go back to the previous directory, even if that directory was moved after it was opened."""
        if not self.names:
            return
        self.left.add(tuple(self.names))
        if self.is_folder:
            os.close(self.folders.pop())
        self.names.pop()

    def enter(self, name: str, *, flags: int = PASSING) -> None:
        """Open a directory in the current directory.

        Raises:
            OSError: The name does not exist, is a link, or is not a directory.
        """
        self.folders.append(os.open(name, flags, dir_fd=self.folders[-1]))
        self.names.append(name)

    def make_parents(self) -> None:
        """Create the missing parent directories."""
        end = self.names[-1]
        for name in self.missing_folders:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=self.folders[-1])
            self.folders.append(os.open(name, PASSING, dir_fd=self.folders[-1]))
        assert self.names[-1] == end, '`make_parents` must not change `names`'

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


def walk(start: Sequence[str], path: str, *, follows_last: bool, is_exact: bool = True) -> WalkedPath:
    """Resolve a path. The caller must close the result. `~` and variables are not expanded.

    Args:
        start: Parts of the absolute path of the directory from which relative paths start.
        path: The path.
        follows_last: Whether to follow the last part of the path if this part is a link.
        is_exact: Whether a name that does not exist stays as it is. Otherwise, it means the name in the directory that
            is the same text in another Unicode form, as macOS and archives made there store names.

    Raises:
        WalkError: The path uses a file as a directory, has a loop of links, or names a directory that cannot be
            opened or listed, or a name could mean several files.
    """
    place = WalkedPath()
    try:
        _go(place, ([] if path.startswith('/') else list(start)) + components(path), follows_last, path, is_exact)
    except OSError as error:
        place.close()
        raise WalkError(error, place.names, place.left) from None
    except BaseException:
        place.close()
        raise
    return place


class WalkError(Exception):
    """Raised if a path cannot be resolved completely."""

    def __init__(self, error: OSError, names: list[str], left: set[tuple[str, ...]]) -> None:
        """Store the resolved parts of the path, and each directory that the path leaves by a `..`."""
        self.error = error
        self.names = names
        self.left = left
        super().__init__(error.strerror or os.strerror(error.errno or 0))


def _find(folder: int, name: str, is_exact: bool) -> tuple[str, os.stat_result | None]:
    """Return the name under which a directory has a file, and the file's status; `None` if it does not exist."""
    try:
        return name, os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        stored = None if is_exact or name.isascii() else _stored_form(folder, name)
        return (name, None) if stored is None else _find(folder, stored, is_exact=True)


def _stored_form(folder: int, name: str) -> str | None:
    """Return the name in a directory that differs from `name` only in its Unicode form."""
    text = unicodedata.normalize('NFC', name)
    found = [each for each in names_in(folder) if each != name and unicodedata.normalize('NFC', each) == text]
    if len(found) > 1:
        # Attack: two files whose names look the same, and the approver takes one for the other (test_names.py).
        raise OSError(errno.EINVAL, 'several names there look like the given one; rename all but one')
    return found[0] if found else None


def names_in(folder: int) -> list[str]:
    """Return the names in an open directory, sorted."""
    descriptor = os.open('.', os.O_RDONLY | FOLDER, dir_fd=folder)
    try:
        return sorted(os.listdir(descriptor))
    finally:
        os.close(descriptor)


def _go(place: WalkedPath, names: list[str], follows_last: bool, path: str, is_exact: bool) -> None:
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
        name, found = _find(place.folders[-1], name, is_exact)
        if found is None:
            place.names.append(name)
        elif stat.S_ISDIR(found.st_mode):
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
    """One configured directory, as it was when the sandbox was created."""

    name: str
    """Name used in messages."""
    config: PathConfig
    """Rules of the directory."""
    names: tuple[str, ...]
    """Parts of the directory's path, with links resolved."""
    identity: tuple[int, int] | None
    """Device and inode; `None` if the directory did not exist when the sandbox was created."""

    @classmethod
    def of(cls, name: str, config: PathConfig, base: Path) -> SandboxRoot:
        """Resolve a root once, so that a later change of the working directory has no effect.

        Links in the working directory are not followed, because an agent that writes there may have created them
        (test_links.py).
        """
        place = _resolved(config.root, base)
        return cls(name=name, config=config, names=tuple(components(str(place))), identity=_identity(place))

    @property
    def place(self) -> Path:
        """Absolute path on the host. Messages for the model must not contain this path."""
        return Path('/', *self.names)

    @property
    def is_where_it_was(self) -> bool:
        """Whether the path still resolves to the directory that existed when the sandbox was created."""
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
        # Sort the longest path first, because the rules of the innermost root apply.
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
        """Return the innermost root that contains a path; `None` if no root contains it."""
        return next((root for root in self.all if starts_with(names, root.names)), None)

    def of(self, place: WalkedPath) -> SandboxRoot:
        """Return the root whose rules apply to a path.

        Raises:
            PermissionError: No root contains the path, or the path is an alias of a path in a root.
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
                f'The path may be an alias of a path in root {root.name!r}; spell that root as in the configuration.'
            )

    def below(self, names: Sequence[str]) -> list[SandboxRoot]:
        """Return the roots that are equal to a path or below it."""
        return [root for root in self.all if starts_with(root.names, names)]

    def is_known(self, names: Sequence[str]) -> bool:
        """Return whether messages may reveal the existence of a path. Messages may reveal all paths in roots, and each
        directory that leads to a root or to `base`.
        """
        return (
            self.find(names) is not None
            or tuple(names) in self._passed
            or any(starts_with(way, names) for way in self._on_the_way)
        )

    def listed(self) -> str:
        """Return the roots as text for a message to the model. Their paths are relative to the working directory."""
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
    """Return the directories that `path` enters and then leaves through `..`. The `..` may be in a link's target."""
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
