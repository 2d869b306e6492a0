"""Open and replace files that only their owner may access, without following symbolic links."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Generator
from pathlib import Path

MODE = 0o600
"""Mode of a file that only its owner can read and write."""


class FileReplaced(PermissionError):
    """The file was replaced or deleted while it was being opened."""


def open_private(path: Path, flags: int) -> int:
    """Open a regular file that only the current user may access.

    Args:
        path: The file; it must not be a symbolic link. A file that this call creates gets mode 0600.
        flags: Flags as for `os.open`.

    Raises:
        PermissionError: The path is a link or not a regular file, or other users own the file or can access it. The
            message names the problem.
        OSError: Any other error while opening the file, such as `FileNotFoundError`.
    """
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, MODE)
    except OSError as error:
        if path.is_symlink():
            raise PermissionError('the file is a symbolic link') from error
        raise
    try:
        check_private(os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def check_private(status: os.stat_result) -> None:
    """Raise an error unless the file is a regular file that only the current user may access.

    Raises:
        FileReplaced: The file no longer has a name.
        PermissionError: The file is not regular or not private. The message gives the reason.
    """
    if not stat.S_ISREG(status.st_mode):
        raise PermissionError('the path is not a regular file')
    if status.st_uid != os.geteuid():
        raise PermissionError(f'the file belongs to another user (id {status.st_uid})')
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise PermissionError(f'others can access the file (mode {stat.S_IMODE(status.st_mode):04o}); run: chmod 600')
    if status.st_nlink == 0:
        raise FileReplaced('the file was replaced while it was being opened')
    if status.st_nlink != 1:
        raise PermissionError('the file has more than one name (a hard link)')


def make_private_folder(folder: Path) -> None:
    """Create `folder` and its parents, and raise an error if other users can write to it.

    Raises:
        PermissionError: The folder belongs to another user, is a link, or is writable by others.
        OSError: The folder cannot be created.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode):
        raise PermissionError(f'the folder {str(folder)!r} is a symbolic link')
    if status.st_uid != os.geteuid():
        raise PermissionError(f'the folder {str(folder)!r} belongs to another user (id {status.st_uid})')
    if stat.S_IMODE(status.st_mode) & 0o022:
        raise PermissionError(f'other users can write to the folder {str(folder)!r}; run: chmod 700')


@contextlib.contextmanager
def locked(path: Path) -> Generator[int]:
    """Open or create a private file, and hold an exclusive lock on it against other processes.

    Raises:
        PermissionError: The file is not private to the current user.
        OSError: The file cannot be created.
    """
    descriptor = open_private(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def append_whole(descriptor: int, content: bytes, *, size: int, fsync: bool = False) -> None:
    """Append all of `content`, or nothing.

    Args:
        descriptor: File opened for appending. No other process may write to the file during the call.
        content: Bytes to append.
        size: Current size of the file in bytes.
        fsync: Whether to wait until the content is on the disk.

    Raises:
        OSError: The content could not be written; the file is unchanged.
    """
    try:
        if os.write(descriptor, content) != len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if fsync:
            os.fsync(descriptor)
    except BaseException:
        # Half a line would break the log for every process that writes to it.
        os.ftruncate(descriptor, size)
        raise


def replace_private(path: Path, content: bytes) -> None:
    """Replace the whole file atomically: even after a crash, the file has either the old or the new content.

    Raises:
        OSError: The file cannot be written; the old content is unchanged.
    """
    temporary = path.with_name(f'.{path.name}.{secrets.token_hex(8)}')
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, MODE)
    try:
        with os.fdopen(descriptor, 'wb') as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def default_path() -> Path:
    """Return `tool-approval/approvals.json` in `XDG_STATE_HOME`, or in `~/.local/state`."""
    given = os.environ.get('XDG_STATE_HOME', '')
    # XDG base directory specification: relative paths are invalid and must be ignored.
    state = Path(given) if os.path.isabs(given) else Path.home() / '.local' / 'state'
    return state / 'tool-approval' / 'approvals.json'
