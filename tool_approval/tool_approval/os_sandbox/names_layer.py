"""Copy the top level of a frozen folder, so that a command can create and remove files in the copy.

The files directly in the folder are copied, and its subfolders are mounted. After the command has ended, new and
changed files are moved to the folder, and files that the command removed are deleted there. Changes to files that the
command must not create or replace, such as `.git`, are dropped.
"""

from __future__ import annotations

import os
import shutil
import stat
import threading
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from tool_approval.core.errors import printable

from .backend import OSSandboxBackend
from .git_files import LayerError, listed
from .mounts import MOST_FROZEN_ENTRIES, Mount, MountKind
from .profile import Access, OSProfile

_LARGEST: Final = 1 << 24
"""Maximum size in bytes of a file that is copied. Copying a file of this size takes a few milliseconds. Commands cannot
remove larger files, because these files are mounted."""
_MOST_COPIED: Final = 1000
"""Maximum number of files to copy. Copying a small file takes a quarter of a millisecond."""


def names_problem(top: str, profile: OSProfile) -> str | None:
    """Return a message for the user if the top level of a folder cannot have a layer, else `None`.

    Args:
        top: The folder.
        profile: The profile of the command, as returned by `as_mounted`.
    """
    try:
        with os.scandir(top) as found:
            return _too_much(found, profile)
    except OSError as error:
        return f'the folder cannot be listed: {error.strerror}'


def _too_much(entries: Iterable[os.DirEntry[str]], profile: OSProfile) -> str | None:
    shown = copied = 0
    for each in entries:
        is_shown = _is_shown(each.stat(follow_symlinks=False), profile.access(each.path))
        shown, copied = shown + is_shown, copied + (not is_shown)
        if shown > MOST_FROZEN_ENTRIES:
            return f'the folder has more than {MOST_FROZEN_ENTRIES} folders and files that cannot be copied'
        if copied > _MOST_COPIED:
            return f'the folder has more than {_MOST_COPIED} files'
    return None


def _is_shown(status: os.stat_result, access: Access) -> bool:
    """Whether an entry is mounted instead of copied."""
    is_other = access is not Access.WRITE or not _is_ours(status)
    return stat.S_ISDIR(status.st_mode) or (stat.S_ISREG(status.st_mode) and is_other)


_Look = tuple[int, ...]
"""State of a file from `os.stat`: mode, device, inode, size, modification time and change time."""


class _Copy(NamedTuple):
    """State of a copied file or link before the command ran."""

    before: _Look
    """State of the original."""
    copy: _Look
    """State of the copy."""


class NamesLayer:
    """A copy of the top level of one folder, for one command."""

    def __init__(self, top: str, staging: str, profile: OSProfile, held: Iterable[str]) -> None:
        """Copy the top level of the folder.

        Args:
            top: The frozen folder.
            staging: An empty folder on the same file system as `top`. No command can access this folder.
            profile: The profile of the command, as returned by `as_mounted`.
            held: Paths in the folder that the command must not create or replace.

        Raises:
            LayerError: The folder has too many entries for a layer.
            OSError: The folder cannot be read.
        """
        self._top = top
        self._copy = os.path.join(staging, 'top')
        self._held = frozenset(_folded(os.path.basename(path)) for path in held)
        if '.git' in self._held:
            # Attack: with `HEAD`, `objects` and `refs`, the folder is itself a repository with a `config` of its own.
            # A file system with short names takes `git~1` for `.git`.
            self._held |= {'head', 'git~1'}
        self._copies: dict[str, _Copy] = {}
        self._mounts: dict[str, Mount] = {}
        """Mounts of the entries that are not copied. Each key is the name of an entry."""
        self._full: set[str] = set()
        self._skipped: set[str] = set()
        with os.scandir(top) as found:
            entries = list(found)
        if (problem := _too_much(entries, profile)) is not None:
            raise LayerError(problem)
        os.mkdir(self._copy)
        for each in entries:
            self._take(each, profile.access(each.path))
        shutil.copystat(top, self._copy)

    def variables(self) -> dict[str, str]:
        """Return an empty dict, because this layer needs no environment variables."""
        return {}

    def change(self, mounts: Iterable[Mount]) -> Iterator[Mount]:
        """Return the mounts of a command. The copy is mounted instead of the original folder."""
        shown = {mount.path: mount for mount in self._mounts.values()}
        yield Mount(kind='write', path=self._top, source=self._copy)
        for mount in mounts:
            if os.path.dirname(mount.path) == self._top:
                # A folder may itself be frozen. Copied files have no mount.
                if shown.pop(mount.path, None) is not None:
                    yield mount
            elif mount.path != self._top:
                yield mount
        yield from shown.values()

    def keep(self, backend: OSSandboxBackend, cancelled: threading.Event) -> tuple[str, ...]:
        """Move the changes into the folder. The command must have ended. The move takes milliseconds.

        Args:
            backend: Not used.
            cancelled: Not used, because the move takes only milliseconds.

        Returns:
            Lines with the names that were not kept: forbidden names, names that another program changed, and errors.
        """
        dropped: list[str] = []
        lost: list[str] = []
        failed: list[str] = []
        shown = printable(self._top)
        emptied = sorted(name for name in self._full if not _is_full(os.path.join(self._top, name)))
        try:
            names = sorted({*os.listdir(self._copy), *self._copies} - self._mounts.keys())
        except OSError as error:
            return (f'no change to {shown} was kept: {printable(str(error))}',)
        for name in names:
            try:
                copied = self._copies.get(name)
                after = _look(os.path.join(self._copy, name))
                if after == (copied.copy if copied is not None else None):
                    continue
                if _folded(name) in self._held or (after is not None and not _is_kept(after)):
                    dropped.append(name)
                elif name in self._skipped or not self._move(name, copied, after):
                    lost.append(name)
            except OSError as error:
                failed.append(f'{name} ({error.strerror})')
        return (
            *([f'dropped from {shown}: {listed(dropped)}'] if dropped else []),
            *([f'not kept in {shown}, because another program changed these files: {listed(lost)}'] if lost else []),
            *([f'not kept in {shown}: {listed(failed)}'] if failed else []),
            *([f'folders in {shown} were emptied, but not removed or renamed: {listed(emptied)}'] if emptied else []),
        )

    def _take(self, entry: os.DirEntry[str], access: Access) -> None:
        status = entry.stat(follow_symlinks=False)
        path = os.path.join(self._copy, entry.name)
        if stat.S_ISDIR(status.st_mode):
            os.mkdir(path)
            self._show(entry, access, 'empty')
            if access is Access.WRITE and _is_full(entry.path):
                self._full.add(entry.name)
        elif stat.S_ISLNK(status.st_mode):
            os.symlink(os.readlink(entry.path), path)
        elif not stat.S_ISREG(status.st_mode):
            self._skipped.add(entry.name)
            return
        elif _is_shown(status, access):
            with open(path, 'xb'):
                pass
            self._show(entry, access, 'mask')
        else:
            shutil.copy2(entry.path, path, follow_symlinks=False)
        if entry.name not in self._mounts:
            self._copies[entry.name] = _Copy(_seen(status), _seen(os.lstat(path)))

    def _show(self, entry: os.DirEntry[str], access: Access, closed: MountKind) -> None:
        kind: MountKind = 'write' if access is Access.WRITE else 'read' if access is Access.READ else closed
        self._mounts[entry.name] = Mount(kind=kind, path=entry.path)

    def _move(self, name: str, copied: _Copy | None, after: _Look | None) -> bool:
        """Move or remove a file. Return false and change nothing if another program changed the original."""
        source, path = os.path.join(self._copy, name), os.path.join(self._top, name)
        if _look(path) != (copied.before if copied is not None else None):
            return False
        if after is None:
            os.unlink(path)
            return True
        if copied is not None and stat.S_ISDIR(after[0]):
            os.unlink(path)
        # Attack: another command made a link of this name. Renaming replaces the link, and does not follow it.
        os.rename(source, path)
        return True


def _folded(name: str) -> str:
    """Fold a name: remove differences that some file systems ignore, such as case and invisible characters.

    For example, `.GIT` and `.git` may be the same folder.
    """
    seen = ''.join(char for char in name if unicodedata.category(char) != 'Cf')
    return unicodedata.normalize('NFKC', unicodedata.normalize('NFKC', seen).casefold()).rstrip(' .')


def _look(path: str) -> _Look | None:
    try:
        return _seen(os.lstat(path))
    except FileNotFoundError:
        return None


def _seen(status: os.stat_result) -> _Look:
    return status.st_mode, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _is_full(folder: str) -> bool:
    try:
        with os.scandir(folder) as found:
            return next(found, None) is not None
    except OSError:
        return False


def _is_kept(look: _Look) -> bool:
    return stat.S_ISREG(look[0]) or stat.S_ISDIR(look[0]) or stat.S_ISLNK(look[0])


def _is_ours(status: os.stat_result) -> bool:
    """Return whether a copy can replace a file. Only small, readable files of the user with one hard link qualify."""
    is_readable = bool(status.st_mode & stat.S_IRUSR)
    return is_readable and status.st_uid == os.geteuid() and status.st_nlink == 1 and status.st_size <= _LARGEST
