"""Put a file in its place in one step, and lose nothing that no person has seen.

The new content is complete under another name before it takes the place. What it displaces is looked at afterwards,
when it can no longer be changed by name: if it is not what was expected, the two are swapped back.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Callable
from functools import cache

from tool_approval.core.errors import ApprovalError

from .content import MISSING, state_of


class FileToolError(ApprovalError):
    """A file operation that the rules allow did not happen. The sentence is made for a model."""

    def __init__(self, file: str, problem: str) -> None:
        """Name the file as `root:path`, never by its place on the host, and say what to do."""
        self.file = file
        self.problem = problem
        super().__init__(f'{file}: {problem}')


_LINUX = {'exclusive': 1, 'exchange': 2}
"""`RENAME_NOREPLACE` and `RENAME_EXCHANGE` of linux/fs.h."""

_MACOS = {'exclusive': 4, 'exchange': 2}
"""`RENAME_EXCL` and `RENAME_SWAP` of macOS's sys/stdio.h."""

_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})


class NoExchange(Exception):
    """This system, or this file system, cannot swap two names."""


def exchange(folder: int, name: str, other_folder: int, other: str) -> None:
    """Swap what two names stand for, in one step.

    Raises:
        NoExchange: It cannot be done here.
        OSError: One of them does not exist.
    """
    try:
        _rename('exchange', folder, name, other_folder, other)
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            raise NoExchange from None
        raise


def rename_exclusive(folder: int, name: str, other_folder: int, other: str) -> None:
    """Rename, unless the new name is taken.

    Raises:
        FileExistsError: It is.
        OSError: The old name does not exist, or is on another file system.
    """
    try:
        _rename('exclusive', folder, name, other_folder, other)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        _rename_in_steps(folder, name, other_folder, other)


def _rename_in_steps(folder: int, name: str, other_folder: int, other: str) -> None:
    if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        # A directory cannot have two names. Made first, it is replaced only as long as it is empty.
        os.mkdir(other, dir_fd=other_folder)
        os.rename(name, other, src_dir_fd=folder, dst_dir_fd=other_folder)
        return
    os.link(name, other, src_dir_fd=folder, dst_dir_fd=other_folder, follow_symlinks=False)
    os.unlink(name, dir_fd=folder)


def _rename(kind: str, folder: int, name: str, other_folder: int, other: str) -> None:
    function, flags = _system_call()
    if function(folder, os.fsencode(name), other_folder, os.fsencode(other), flags[kind]) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@cache
def _system_call() -> tuple[Callable[..., int], dict[str, int]]:
    name, flags = ('renameatx_np', _MACOS) if sys.platform == 'darwin' else ('renameat2', _LINUX)
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if function is None:
        return _missing, flags
    function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    function.restype = ctypes.c_int
    return function, flags


def _missing(*arguments: object) -> int:
    ctypes.set_errno(errno.ENOSYS)
    return -1


CHANGED = 'it has changed since it was looked at, so nothing was done; read it again'


def put(folder: int, name: str, content: bytes, *, expected: str, shown: str) -> None:
    """Give a name in a directory a new content. Only what has the state `expected` may be displaced.

    Raises:
        FileToolError: Something else stands at the name. It still does, or is kept beside under the name in the text.
        OSError: It cannot be written. Nothing has changed.
    """
    temporary = _temporary_name()
    ours = _write_new(folder, temporary, content, like=None if expected == MISSING else _status(folder, name))
    try:
        if expected == MISSING:
            try:
                rename_exclusive(folder, temporary, folder, name)
            except FileExistsError:
                raise FileToolError(shown, CHANGED) from None
        else:
            replace(folder, temporary, folder, name, expected=expected, shown=shown)
    except BaseException:
        # After a swap that could not be undone, another's content has this name.
        if _identity(folder, temporary) == ours:
            os.unlink(temporary, dir_fd=folder)
        raise


def replace(
    source_folder: int,
    source: str,
    folder: int,
    name: str,
    *,
    expected: str,
    shown: str,
    source_state: str | None = None,
) -> None:
    """Let one file take the place of another, which goes. `expected` is the state of what may be displaced, and
    `source_state` of what may take its place; whatever is there if `None`.

    Raises:
        FileToolError: One of them is something else by now. Both are where they were, or what is there is kept beside.
        OSError: It cannot be done. Nothing has changed.
    """
    ours = _identity(source_folder, source)
    try:
        exchange(source_folder, source, folder, name)
    except FileNotFoundError:
        raise FileToolError(shown, CHANGED) from None
    except NoExchange:
        if source_state is not None:
            raise FileToolError(
                shown, 'nothing can be replaced by moving on this file system; delete it first'
            ) from None
        _replace_in_steps(folder, source, name, expected=expected, shown=shown)
        return
    is_expected = _is(source_folder, source, expected) and (source_state is None or _is(folder, name, source_state))
    if is_expected:
        os.unlink(source, dir_fd=source_folder)
        return
    # Attack: another process replaces the file after the person has seen it (test_races.py).
    with contextlib.suppress(FileNotFoundError):
        exchange(source_folder, source, folder, name)
    if source_state is None and _identity(source_folder, source) != ours:
        # Replaced yet again in between: what came back is not ours to delete.
        kept = _keep(source_folder, source, folder, name)
        raise FileToolError(
            shown, f'it kept changing, so nothing was done; one of its versions is in {kept!r} beside it'
        )
    raise FileToolError(shown, CHANGED)


def take_away(folder: int, name: str, *, expected: str, shown: str) -> None:
    """Delete what stands at a name, with everything in it.

    Raises:
        FileToolError: Something else stands there. It still does, or is kept beside under the name in the text.
        OSError: It cannot be deleted, or not all of it.
    """
    aside = _temporary_name()
    rename_exclusive(folder, name, folder, aside)
    if not _is(folder, aside, expected):
        _put_back(lambda: rename_exclusive(folder, aside, folder, name), aside, shown)
        raise FileToolError(shown, CHANGED)
    try:
        if stat.S_ISDIR(os.stat(aside, dir_fd=folder, follow_symlinks=False).st_mode):
            shutil.rmtree(aside, dir_fd=folder)  # where it meets a link, the link goes
        else:
            os.unlink(aside, dir_fd=folder)
    except OSError:
        _put_back(lambda: rename_exclusive(folder, aside, folder, name), aside, shown)
        raise


def carry(source_folder: int, source: str, folder: int, name: str, *, expected: str, shown: str) -> None:
    """Move what stands at a name to another that is free.

    Raises:
        FileExistsError: It is not.
        FileToolError: Something else stands at the first. It still does, or is kept at the second.
        OSError: It cannot be moved. Nothing has changed.
    """
    rename_exclusive(source_folder, source, folder, name)
    if not _is(folder, name, expected):
        _put_back(lambda: rename_exclusive(folder, name, source_folder, source), name, shown)
        raise FileToolError(shown, CHANGED)


def _put_back(rename: Callable[[], None], kept: str, shown: str) -> None:
    try:
        rename()
    except OSError:
        raise FileToolError(shown, f'it kept changing, so nothing was done; it is in {kept!r} now') from None


def _replace_in_steps(folder: int, source: str, name: str, *, expected: str, shown: str) -> None:
    """Without a swap, a change between these two lines goes unnoticed; the documentation says so."""
    if not _is(folder, name, expected):
        raise FileToolError(shown, CHANGED)
    os.rename(source, name, src_dir_fd=folder, dst_dir_fd=folder)


def _write_new(folder: int, name: str, content: bytes, *, like: os.stat_result | None) -> tuple[int, int]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    # Nobody may read in the new file who may not read in the old.
    descriptor = os.open(name, flags, 0o666 if like is None else 0o600, dir_fd=folder)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        if like is not None:
            with contextlib.suppress(PermissionError):
                os.fchown(descriptor, like.st_uid, like.st_gid)
            os.fchmod(descriptor, stat.S_IMODE(like.st_mode) & 0o777)  # a new content is no set-uid program
        os.fsync(descriptor)
        status = os.fstat(descriptor)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        raise
    finally:
        os.close(descriptor)
    return status.st_dev, status.st_ino


def _keep(source_folder: int, source: str, folder: int, name: str) -> str:
    stem, suffix = os.path.splitext(name)
    kept = f'{stem[:150]}.kept-{secrets.token_hex(4)}{suffix[:50]}'
    rename_exclusive(source_folder, source, folder, kept)
    return kept


def _is(folder: int, name: str, expected: str) -> bool:
    try:
        return state_of(folder, name) == expected
    except OSError:
        return False


def _identity(folder: int, name: str) -> tuple[int, int] | None:
    status = _status(folder, name)
    return None if status is None else (status.st_dev, status.st_ino)


def _status(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _temporary_name() -> str:
    return f'.tool-approval-{secrets.token_hex(8)}.tmp'
