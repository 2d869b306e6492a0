"""Write an audit log to one file, which any number of processes may share."""

from __future__ import annotations

import fcntl
import os
import secrets
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tool_approval.core.errors import AuditError, NotCanonicalError, check_type
from tool_approval.storage.private_file import append_whole, check_private, locked, make_private_folder, open_private

from .chain import START, Head, chained, read_head

LONGEST_LINE = 1024 * 1024
"""Maximum size of a line in bytes. Real payloads are much smaller than a megabyte. A longer line is rejected,
and the call does not run."""


def load_key(path: str | os.PathLike[str]) -> bytes:
    """Read the key from a private file, which is created if it does not exist.

    Args:
        path: Path of the key file. The file must be outside the log's folder, and the agent must not have read access.

    Returns:
        32 bytes.

    Raises:
        AuditError: The file is not private to the user, or does not contain a key.
    """
    place = Path(path)
    try:
        make_private_folder(place.parent)
        with locked(place) as descriptor:  # two processes may create the key at the same time
            text = os.read(descriptor, 100)
            if not text:
                text = secrets.token_hex(32).encode()
                append_whole(descriptor, text + b'\n', size=0, fsync=True)
        key = bytes.fromhex(text.decode())
    except (OSError, UnicodeDecodeError, ValueError) as error:
        problem = error.strerror or str(error) if isinstance(error, OSError) else 'it contains no valid key'
        raise AuditError(str(place), f'the key file cannot be used: {problem}') from None
    if len(key) != 32:
        raise AuditError(str(place), 'the key file cannot be used: it contains no valid key')
    return key


class JsonlAuditSink:
    """Appends each entry as one line of JSON, chained to the previous line. The log may be shared between threads.

    Any number of processes may write to the same file. When `record` returns, the line has been passed to the operating
    system, or, with `fsync`, written to the disk.
    """

    def __init__(self, path: str | os.PathLike[str], *, key: bytes, fsync: bool = False) -> None:
        """Open the log, or create it with mode 0600.

        Args:
            path: The file.
            key: Secret key of the chain, at least 16 bytes. `load_key` says where to keep the key.
            fsync: Whether entries must survive a power cut. Each line then takes a few milliseconds.

        Raises:
            AuditError: The file is not private to the user, or its last line is damaged or was not written with `key`.
            TypeError: The key is not `bytes`.
            ValueError: The key is too short.
        """
        check_type('key', key, 'bytes; `load_key` reads or makes them', bytes)
        if len(key) < 16:
            raise ValueError('the key must have at least 16 bytes')
        self._path = str(Path(path))
        self._key = key
        self._fsync = fsync
        self._lock = threading.Lock()
        self._head = Head(lines=0, mac=START)
        self._size = 0
        self._last = b''
        self._process = os.getpid()
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = open_private(Path(path), os.O_RDWR | os.O_CREAT | os.O_APPEND)
        except OSError as error:
            raise AuditError(self._path, error.strerror or str(error)) from None
        self._identity = _identity(os.fstat(self._descriptor))
        try:
            self._exclusively()
        except BaseException:
            self.close()
            raise

    def record(self, entry: Mapping[str, Any]) -> None:
        """Write an entry; see `AuditSink`."""
        self._exclusively(entry)

    @property
    def head(self) -> Head:
        """The end of the log, after the lines of all processes. Record the `mac` elsewhere to detect truncation.

        Raises:
            AuditError: The log was changed.
        """
        return self._exclusively()

    def close(self) -> None:
        """Close the file. Writing further entries raises `AuditError`."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def _exclusively(self, entry: Mapping[str, Any] | None = None) -> Head:
        """Lock the file, find the end of the log, and append `entry` unless it is `None`."""
        with self._lock:
            if self._descriptor < 0:
                raise AuditError(self._path, 'the log is closed')
            try:
                if self._process != os.getpid():
                    # A forked process shares the open file, and so the lock, with its parent, but needs its own lock.
                    parents = self._descriptor
                    self._descriptor = open_private(Path(self._path), os.O_RDWR | os.O_APPEND)
                    self._process = os.getpid()
                    os.close(parents)
                fcntl.flock(self._descriptor, fcntl.LOCK_EX)
                try:
                    head = self._catch_up()
                    return head if entry is None else self._append(entry, head)
                finally:
                    fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            except OSError as error:
                raise AuditError(self._path, error.strerror or str(error)) from None

    def _append(self, entry: Mapping[str, Any], previous: Head) -> Head:
        try:
            line, head = chained(entry, previous=previous, key=self._key)
        except NotCanonicalError as error:
            raise AuditError(self._path, f'the entry cannot be written ({error.problem})') from None
        if len(line) > LONGEST_LINE:
            raise AuditError(self._path, f'the entry is longer than {LONGEST_LINE} bytes')
        append_whole(self._descriptor, line, size=self._size, fsync=self._fsync)
        self._head, self._size, self._last = head, self._size + len(line), line
        return head

    def _catch_up(self) -> Head:
        """Find the end of the log, after the lines of all processes."""
        status = os.lstat(self._path)
        if _identity(status) != self._identity:
            raise AuditError(self._path, 'the file was replaced by another file while it was open')
        check_private(status)
        if status.st_size < self._size:
            raise AuditError(self._path, 'the file became shorter while it was open')
        # Attack: lines are cut off, and another process appends a line, so that the chain is intact (test_jsonl.py).
        if self._last and os.pread(self._descriptor, len(self._last), self._size - len(self._last)) != self._last:
            raise AuditError(self._path, 'the last known line was changed or removed')
        if status.st_size == self._size:
            return self._head
        line = _last_line(self._descriptor, status.st_size)
        try:
            self._head, self._size, self._last = read_head(line, key=self._key), status.st_size, line + b'\n'
        except ValueError as error:
            raise AuditError(
                self._path, f'the last line is not intact: {error}. Verify the log, move it away, and start a new one'
            ) from None
        return self._head


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _last_line(descriptor: int, size: int) -> bytes:
    window = min(size, LONGEST_LINE + 1)
    end = os.pread(descriptor, window, size - window)
    if not end.endswith(b'\n'):
        return b''
    return end[:-1].rpartition(b'\n')[2]
