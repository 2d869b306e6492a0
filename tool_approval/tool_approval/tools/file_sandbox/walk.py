"""Goes to a path directory by directory, and holds every one of them open.

Each step is relative to a directory that is open already, and none follows a link: a link is read, and its text is
walked the same way. Whatever is renamed or replaced meanwhile, what was looked at is what is used afterwards.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from .names import asks_for_folder, components

FOLDER = sum(getattr(os, flag, 0) for flag in ('O_DIRECTORY', 'O_NOFOLLOW', 'O_CLOEXEC'))
"""Opens a directory and nothing else. Where a flag is missing, `FileSandbox` refuses to be made."""

PASSING = FOLDER | getattr(os, 'O_PATH', os.O_RDONLY)
"""Opens a directory that may only be passed through, where the system can."""

MAX_LINKS = 40
"""Linux's own limit."""

MAX_DEPTH = 200
"""Chosen: each level holds a descriptor, of which a process often has 1024."""


def is_possible() -> bool:
    """Whether this system can open files relative to a directory, without following links."""
    return os.open in os.supports_dir_fd and hasattr(os, 'O_NOFOLLOW')


class Place:
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

    def __enter__(self) -> Self:
        """Held open until the `with` ends."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all directories."""
        self.close()

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


def walk(start: Sequence[str], path: str, *, follows_last: bool) -> Place:
    """Go to a path.

    Args:
        start: The names of the directory that relative paths begin in.
        path: The path; nothing in it is expanded.
        follows_last: Whether a link at the end is followed.

    Returns:
        Where it leads; the caller closes it.

    Raises:
        WalkError: It leads nowhere: through a file, in circles, or where the system forbids to go.
    """
    place = Place()
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


def _go(place: Place, names: list[str], follows_last: bool, path: str) -> None:
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
