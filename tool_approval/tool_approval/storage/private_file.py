"""Files that only their owner may touch: where the user's are, opened without following links, replaced as a whole."""

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
"""Read and written by the owner alone."""


def open_private(path: Path, flags: int) -> int:
    """Open a regular file of ours that nobody else may read or write.

    Args:
        path: The file; it may not be a symbolic link. A new one is made with mode 0600 if `flags` say so.
        flags: As for `os.open`.

    Raises:
        PermissionError: It is a link, no regular file, somebody else's, or open to others. The text says which.
        OSError: It cannot be opened otherwise, `FileNotFoundError` among them.
    """
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, MODE)
    except OSError as error:
        if path.is_symlink():
            raise PermissionError('it is a symbolic link') from error
        raise
    try:
        check_private(os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def check_private(status: os.stat_result) -> None:
    """Refuse what is no regular file of ours alone.

    Raises:
        PermissionError: The text says why.
    """
    if not stat.S_ISREG(status.st_mode):
        raise PermissionError('it is not a regular file')
    if status.st_uid != os.geteuid():
        raise PermissionError(f'it belongs to another user (id {status.st_uid})')
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise PermissionError(f'others may use it (mode {stat.S_IMODE(status.st_mode):04o}); run: chmod 600')
    if status.st_nlink != 1:
        raise PermissionError('it has another name (a hard link)')


def make_private_folder(folder: Path) -> None:
    """Make `folder` and what is above it, and refuse one that others can write to.

    Raises:
        PermissionError: It is somebody else's, a link, or open to others for writing.
        OSError: It cannot be made.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode):
        raise PermissionError(f'the folder {str(folder)!r} is a symbolic link')
    if status.st_uid != os.geteuid():
        raise PermissionError(f'the folder {str(folder)!r} belongs to another user (id {status.st_uid})')
    if stat.S_IMODE(status.st_mode) & 0o022:
        raise PermissionError(f'others may write to the folder {str(folder)!r}; run: chmod 700')


@contextlib.contextmanager
def locked(path: Path) -> Generator[int]:
    """Open a private file, made if there is none, and hold a lock on it that other processes wait for here.

    Raises:
        PermissionError: The file is not ours alone.
        OSError: It cannot be made.
    """
    descriptor = open_private(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def append_whole(descriptor: int, content: bytes, *, size: int, fsync: bool = False) -> None:
    """Append all of `content`, or nothing of it.

    Args:
        descriptor: A file opened for appending, to which nobody else writes meanwhile.
        content: What to append.
        size: The file's size so far, in bytes.
        fsync: Wait until it is on the disk.

    Raises:
        OSError: It could not be written; the file is as it was.
    """
    try:
        if os.write(descriptor, content) != len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if fsync:
            os.fsync(descriptor)
    except BaseException:
        # Half a line would break a log for all who write to it.
        os.ftruncate(descriptor, size)
        raise


def replace_private(path: Path, content: bytes) -> None:
    """Write the whole file, so that a reader, or a crash, meets the old content or the new and nothing between.

    Raises:
        OSError: It cannot be written; the old content is left as it was.
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
    """`tool-approval/approvals.json` in `XDG_STATE_HOME`, or in `~/.local/state`."""
    given = os.environ.get('XDG_STATE_HOME', '')
    # The XDG base directory specification: a relative path is invalid and to be ignored.
    state = Path(given) if os.path.isabs(given) else Path.home() / '.local' / 'state'
    return state / 'tool-approval' / 'approvals.json'
