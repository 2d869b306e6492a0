"""Replace, move and delete files atomically, without losing content that the approver has not seen.

New content is written to a temporary file, which is then swapped with the old file. The old file, which now has the
temporary name, is checked. If the old file is not in the expected state, the two files are swapped back.
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
    """Raised if a permitted file operation fails. The message is for the model."""

    def __init__(self, file: str, problem: str) -> None:
        """Set the message. `file` is `root:path`, never a path on the host. `problem` includes a remedy."""
        self.file = file
        self.problem = problem
        super().__init__(f'{file}: {problem}')


_LINUX = {'exclusive': 1, 'exchange': 2}
"""Values of `RENAME_NOREPLACE` and `RENAME_EXCHANGE` in linux/fs.h."""

_MACOS = {'exclusive': 4, 'exchange': 2}
"""Values of `RENAME_EXCL` and `RENAME_SWAP` in sys/stdio.h of macOS."""

_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})


class NoExchange(Exception):
    """Raised if the operating system or the file system cannot swap two files."""


def exchange(folder: int, name: str, other_folder: int, other: str) -> None:
    """Swap two files atomically.

    Raises:
        NoExchange: The operating system or the file system cannot swap files.
        OSError: One of the files is missing.
    """
    try:
        _rename('exchange', folder, name, other_folder, other)
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            raise NoExchange from None
        raise


def rename_exclusive(folder: int, name: str, other_folder: int, other: str) -> None:
    """Rename a file, or fail if the new name exists.

    Raises:
        FileExistsError: A file with the new name exists.
        OSError: The file does not exist, or the new name is on another file system.
    """
    try:
        _rename('exclusive', folder, name, other_folder, other)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        _rename_in_steps(folder, name, other_folder, other)


def _rename_in_steps(folder: int, name: str, other_folder: int, other: str) -> None:
    if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        # A directory cannot have two names. An empty directory reserves the name; `rename` replaces only an empty one.
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


CHANGED = 'the content has changed in the meantime, so nothing was done; read it again'


def put(folder: int, name: str, content: bytes, *, expected: str, shown: str) -> None:
    """Write a file. Replace an existing file only if its state is `expected`.

    Raises:
        FileToolError: The file is not in the expected state. Either the file is unchanged, or it was renamed and the
            message gives its new name.
        OSError: The file cannot be written. No file has changed.
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
        # If a swap could not be undone, the temporary name holds content of another process.
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
    """Replace a file if its state is `expected` and the state of the new file is `source_state`. `None` accepts any
    state.

    Raises:
        FileToolError: One of the two files is not in the expected state. Either both files are unchanged, or one was
            renamed and the message gives its new name.
        OSError: The file cannot be replaced. No file has changed.
    """
    ours = _identity(source_folder, source)
    try:
        exchange(source_folder, source, folder, name)
    except FileNotFoundError:
        raise FileToolError(shown, CHANGED) from None
    except NoExchange:
        if source_state is not None:
            raise FileToolError(
                shown, 'this file system cannot safely move one file onto another; delete the target first'
            ) from None
        _replace_in_steps(folder, source, name, expected=expected, shown=shown)
        return
    is_expected = _is(source_folder, source, expected) and (source_state is None or _is(folder, name, source_state))
    if is_expected:
        os.unlink(source, dir_fd=source_folder)
        return
    # Attack: another process replaces the file after the approver has seen it (test_races.py).
    with contextlib.suppress(FileNotFoundError):
        exchange(source_folder, source, folder, name)
    if source_state is None and _identity(source_folder, source) != ours:
        # Another process replaced the file in between: the content that came back must not be deleted.
        kept = _keep(source_folder, source, folder, name)
        raise FileToolError(
            shown,
            f'the content kept changing, so the call failed; one of the versions was kept as {kept!r} '
            'in the same directory',
        )
    raise FileToolError(shown, CHANGED)


def take_away(folder: int, name: str, *, expected: str, shown: str) -> None:
    """Delete a file, or a directory with everything in it.

    Raises:
        FileToolError: The file is not in the expected state. Either the file is unchanged, or it was renamed and the
            message gives its new name.
        OSError: The file or directory cannot be deleted completely.
    """
    aside = _temporary_name()
    rename_exclusive(folder, name, folder, aside)
    if not _is(folder, aside, expected):
        _put_back(lambda: rename_exclusive(folder, aside, folder, name), aside, shown)
        raise FileToolError(shown, CHANGED)
    try:
        if stat.S_ISDIR(os.stat(aside, dir_fd=folder, follow_symlinks=False).st_mode):
            shutil.rmtree(aside, dir_fd=folder)  # removes links, not their targets
        else:
            os.unlink(aside, dir_fd=folder)
    except OSError:
        _put_back(lambda: rename_exclusive(folder, aside, folder, name), aside, shown)
        raise


def carry(source_folder: int, source: str, folder: int, name: str, *, expected: str, shown: str) -> None:
    """Move a file or directory to a name that does not exist.

    Raises:
        FileExistsError: A file or directory with this name exists.
        FileToolError: The file is not in the expected state. The file is unchanged, or it was moved to the new name.
        OSError: The file cannot be moved. No file has changed.
    """
    rename_exclusive(source_folder, source, folder, name)
    if not _is(folder, name, expected):
        _put_back(lambda: rename_exclusive(folder, name, source_folder, source), name, shown)
        raise FileToolError(shown, CHANGED)


def _put_back(rename: Callable[[], None], kept: str, shown: str) -> None:
    try:
        rename()
    except OSError:
        raise FileToolError(
            shown, f'the content kept changing, so the call failed and left the file under the name {kept!r}'
        ) from None


def _replace_in_steps(folder: int, source: str, name: str, *, expected: str, shown: str) -> None:
    """Replace a file on systems that cannot swap files. A change between the check and the rename is not detected."""
    if not _is(folder, name, expected):
        raise FileToolError(shown, CHANGED)
    os.rename(source, name, src_dir_fd=folder, dst_dir_fd=folder)


def _write_new(folder: int, name: str, content: bytes, *, like: os.stat_result | None) -> tuple[int, int]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    # The new file must not be readable for more users than the old file.
    descriptor = os.open(name, flags, 0o666 if like is None else 0o600, dir_fd=folder)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        if like is not None:
            with contextlib.suppress(PermissionError):
                os.fchown(descriptor, like.st_uid, like.st_gid)
            os.fchmod(descriptor, stat.S_IMODE(like.st_mode) & 0o777)  # new content must not inherit set-uid
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
