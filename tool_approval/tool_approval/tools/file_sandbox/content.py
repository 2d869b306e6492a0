"""Read files, and describe the state of a file or directory in a short text, so that later changes can be detected."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from hashlib import sha256

from .paths import FOLDER, names_in

MISSING = 'missing'
"""State of a name under which no file, directory or link exists."""

HASHED_BYTES = 16 * 1024 * 1024
"""Maximum size in bytes of a file that is hashed. Hashing a file of this size takes about 10 ms. The state of a larger
file is its inode, size and modification time."""

MAX_TREE = 10_000
"""Maximum number of files and directories that one call can move or delete."""

# O_NONBLOCK: a pipe in place of the file must not block. O_NOCTTY: a terminal must not become the controlling terminal.
_READING = sum(getattr(os, flag, 0) for flag in ('O_NOFOLLOW', 'O_NONBLOCK', 'O_NOCTTY', 'O_CLOEXEC'))


def open_file(folder: int, name: str) -> int:
    """Open a regular file for reading.

    Raises:
        OSError: The file does not exist, or is a link, directory, pipe or device.
    """
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if not stat.S_ISREG(found.st_mode):  # opening a device can already have an effect
        raise OSError(errno.EINVAL, 'not a regular file')
    descriptor = os.open(name, _READING, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, 'not a regular file')
    return descriptor


def read_bytes(descriptor: int, max_bytes: int) -> bytes | None:
    """Return the whole content of an open file, or `None` if it is longer than `max_bytes`."""
    parts: list[bytes] = []
    left = max_bytes + 1
    while left and (part := os.read(descriptor, min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    return b''.join(parts) if left else None


def read_file(folder: int, name: str, max_bytes: int) -> bytes | None:
    """Return the content of a regular file, or `None` if it is longer than `max_bytes`.

    Raises:
        OSError: The file does not exist or cannot be read.
    """
    descriptor = open_file(folder, name)
    try:
        return read_bytes(descriptor, max_bytes)
    finally:
        os.close(descriptor)


def state_of_bytes(content: bytes) -> str:
    """Return the state of a file with this content."""
    return f'sha256:{sha256(content).hexdigest()}'


def state_of_file(descriptor: int) -> str:
    """Return the state of an open file. The current position must be the start of the file."""
    status = os.fstat(descriptor)
    if status.st_size <= HASHED_BYTES and (content := read_bytes(descriptor, HASHED_BYTES)) is not None:
        return state_of_bytes(content)
    # Not st_ctime_ns: a rename changes it.
    return f'file:{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}'


def state_of(folder: int, name: str) -> str:
    """Return the state of a file, directory, link or special file, or `MISSING`.

    Raises:
        OSError: The file cannot be read, or the directory has too many entries.
    """
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            return f'link:{sha256(os.fsencode(os.readlink(name, dir_fd=folder))).hexdigest()}'
        if stat.S_ISDIR(status.st_mode):
            return state_of_tree(folder, name)
        if not stat.S_ISREG(status.st_mode):
            return f'special:{status.st_dev}:{status.st_ino}'
        descriptor = open_file(folder, name)
    except FileNotFoundError:
        return MISSING
    try:
        return state_of_file(descriptor)
    finally:
        os.close(descriptor)


def state_of_tree(folder: int, name: str) -> str:
    """Return the state of a directory: a hash of the name, type, inode, size and mtime of all its entries."""
    lines = [
        f'{path}\0{status.st_mode}:{status.st_ino}:{status.st_size if not stat.S_ISDIR(status.st_mode) else 0}'
        f':{status.st_mtime_ns}'
        for path, status in tree(folder, name)
    ]
    return f'tree:{sha256(os.fsencode(chr(10).join(sorted(lines)))).hexdigest()}'


def tree(folder: int, name: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield all files and directories below a directory, with relative paths. Links are not followed.

    Raises:
        OSError: The name is not a directory, or the directory contains more than `MAX_TREE` entries.
    """
    for count, (path, status) in enumerate(_below(folder, name, ''), start=1):
        if count > MAX_TREE:
            raise OSError(errno.E2BIG, f'more than {MAX_TREE} entries')
        yield path, status


def _below(folder: int, name: str, path: str, depth: int = 0) -> Iterator[tuple[str, os.stat_result]]:
    if depth > 100:  # each level keeps a descriptor open
        raise OSError(errno.E2BIG, 'more than 100 levels')
    descriptor = os.open(name, os.O_RDONLY | FOLDER, dir_fd=folder)
    try:
        for entry in names_in(descriptor):
            status = os.stat(entry, dir_fd=descriptor, follow_symlinks=False)
            inner = f'{path}{entry}'
            yield inner, status
            if stat.S_ISDIR(status.st_mode):
                yield from _below(descriptor, entry, f'{inner}/', depth + 1)
    finally:
        os.close(descriptor)
