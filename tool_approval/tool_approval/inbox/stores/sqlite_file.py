"""Open, check and migrate a private SQLite file, and reconnect after a failure."""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
import stat
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Literal

from tool_approval.inbox.errors import InboxUnavailable, InboxUntrusted
from tool_approval.storage.private_file import MODE, check_private, locked, make_private_folder

BUSY_S = 5.0
"""Seconds to wait for a lock. Other processes hold the lock for milliseconds, so a longer wait means a
fault."""

APPLICATION_ID = 0x74614962
"""SQLite's `application_id` of an inbox file."""

_PASSING = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
    }
)
"""SQLite's codes for temporary errors. All other codes mean that the file is damaged or is not an inbox."""


def is_passing(error: sqlite3.Error) -> bool:
    """Return whether SQLite may work again later, for example because the disk is full."""
    return getattr(error, 'sqlite_errorcode', sqlite3.SQLITE_ERROR) & 0xFF in _PASSING


Synchronous = Literal['NORMAL', 'FULL']
"""SQLite's `synchronous` setting in WAL mode. Both values protect the file against corruption. With `NORMAL`, a power
cut may undo the last changes, such as an answer or the state of a durable run. `FULL` keeps all changes."""


class SQLiteFile:
    """A private SQLite file, used by one thread at a time."""

    def __init__(self, path: Path, migrations: Sequence[Sequence[str]], synchronous: Synchronous = 'NORMAL') -> None:
        """Configure the file; the first use opens it. Migration n creates version n + 1 (`user_version`)."""
        self._synchronous = synchronous
        self._path = path
        self._place = repr(str(path))
        self._migrations = migrations
        self._lock = threading.RLock()
        self._is_together = False
        self._is_closed = False
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """Yield the connection. Each statement sees the current state of the file.

        Raises:
            InboxUnavailable: The file cannot be used at the moment.
            InboxUntrusted: Other users can access the file, or the file is not an inbox of a known version.
        """
        with self._lock:
            try:
                yield self._opened()
            except sqlite3.Error as error:
                self._let_go()
                problem = str(error)
                if is_passing(error):
                    raise InboxUnavailable(self._place, problem) from error
                hint = 'inspect the file, or move it away to start with a new one'
                raise InboxUntrusted(self._place, f'{problem}; {hint}') from error
            except OSError as error:
                self._let_go()
                problem = error.strerror or str(error)
                if isinstance(error, PermissionError):
                    raise InboxUntrusted(self._place, problem) from error
                raise InboxUnavailable(self._place, problem) from error

    @contextmanager
    def changing(self) -> Generator[sqlite3.Connection]:
        """Yield the connection in an exclusive write transaction, which is rolled back if an exception is raised.

        Raises:
            InboxUnavailable: As `reading`.
            InboxUntrusted: As `reading`.
        """
        with self.reading() as connection, (_part if self._is_together else _transaction)(connection):
            yield connection

    @contextmanager
    def together(self) -> Generator[None]:
        """See `ParkingStore`.

        Raises:
            InboxUnavailable: As `reading`.
            InboxUntrusted: As `reading`.
        """
        with self.reading() as connection:
            self._is_together = True
            try:
                yield
                if self._connection is not connection:
                    raise InboxUnavailable(self._place, 'the file was closed meanwhile')
                if connection.in_transaction:
                    connection.execute('COMMIT')
            except BaseException:
                self._let_go()  # rolls back
                raise
            finally:
                self._is_together = False

    def close(self) -> None:
        """Close the file permanently."""
        with self._lock:
            self._is_closed = True
            self._let_go()

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def _opened(self) -> sqlite3.Connection:
        if self._is_closed:
            raise InboxUnavailable(self._place, 'the store is closed')
        if self._connection is not None:
            try:
                is_same = self._check() == self._identity
            except FileNotFoundError:
                is_same = False
            if not is_same:
                self._let_go()
                raise InboxUnavailable(self._place, 'the file was removed, or replaced by another file')
            return self._connection
        make_private_folder(self._path.parent)
        with locked(self._path.with_name(f'{self._path.name}.lock')):
            self._make()
            self._identity = self._check()
            self._connection = sqlite3.connect(
                self._path, timeout=BUSY_S, isolation_level=None, check_same_thread=False, cached_statements=32
            )
            # One row that is not UTF-8 must not hide the others.
            self._connection.text_factory = partial(str, encoding='utf-8', errors='replace')
            self._set_up(self._connection)
        return self._connection

    def _make(self) -> None:
        if os.path.lexists(self._path):
            return
        # Created under another name: another connection of this process may have the file open, and closing a second
        # descriptor would drop that connection's locks (SQLite: "How To Corrupt An SQLite Database File", 2.2).
        new = self._path.with_name(f'.{self._path.name}.{secrets.token_hex(8)}')
        os.close(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, MODE))
        os.rename(new, self._path)

    def _check(self) -> tuple[int, int]:
        status = os.lstat(self._path)
        if stat.S_ISLNK(status.st_mode):
            raise PermissionError('the file is a symbolic link')
        check_private(status)
        return status.st_dev, status.st_ino

    def _set_up(self, connection: sqlite3.Connection) -> None:
        # A prepared file must not make SQLite call functions, and pruned data must be overwritten.
        for setting in ('trusted_schema = OFF', 'secure_delete = ON', 'cell_size_check = ON'):
            connection.execute(f'PRAGMA {setting}')
        [(version,)] = connection.execute('PRAGMA user_version')
        [(application,)] = connection.execute('PRAGMA application_id')
        [(tables,)] = connection.execute('SELECT count(*) FROM sqlite_schema')
        if application != APPLICATION_ID and (application, version, tables) != (0, 0, 0):
            raise InboxUntrusted(self._place, 'the file belongs to another program')
        if version > len(self._migrations):
            raise InboxUntrusted(
                self._place,
                f'the file has version {version}, but this release supports up to {len(self._migrations)}; '
                'upgrade tool_approval',
            )
        [(mode,)] = connection.execute('PRAGMA journal_mode = WAL')
        if mode != 'wal':
            raise InboxUntrusted(self._place, 'processes cannot share a file on this file system; use a local disk')
        connection.execute(f'PRAGMA synchronous = {self._synchronous}')
        if version == len(self._migrations):
            return
        with _transaction(connection):
            for steps in self._migrations[version:]:
                for step in steps:
                    connection.execute(step)
            connection.execute(f'PRAGMA application_id = {APPLICATION_ID}')
            connection.execute(f'PRAGMA user_version = {len(self._migrations)}')


@contextmanager
def _part(connection: sqlite3.Connection) -> Generator[None]:
    if not connection.in_transaction:
        connection.execute('BEGIN IMMEDIATE')
    connection.execute('SAVEPOINT part')
    try:
        yield
    except BaseException:
        # Fails after errors, such as a full disk, for which SQLite has rolled back all parts already.
        connection.execute('ROLLBACK TO part')
        raise
    connection.execute('RELEASE part')


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Generator[None]:
    connection.execute('BEGIN IMMEDIATE')
    try:
        yield
        connection.execute('COMMIT')
    except BaseException:
        # After some errors, such as a full disk, SQLite has rolled back already.
        if connection.in_transaction:
            connection.execute('ROLLBACK')
        raise
