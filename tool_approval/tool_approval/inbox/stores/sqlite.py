"""Store requests in a private SQLite file that the processes of one machine share."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from tool_approval.inbox.errors import InboxUntrusted
from tool_approval.inbox.store import Changes, Execute, Row, Settled, whole
from tool_approval.storage import default_path as approvals_path

from .sqlite_file import SQLiteFile, Synchronous

POLL_S = 0.02
"""Seconds between checks for changes. An answer must arrive within 100 ms, which is enough for five checks. SQLite
cannot wake another process. A check takes microseconds, and serves all waiting requests of a process."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE requests (
            id TEXT PRIMARY KEY,
            owner TEXT NOT NULL,
            state TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'expired', 'withdrawn')),
            posted_at INTEGER NOT NULL,
            settled_at INTEGER CHECK ((settled_at IS NULL) = (state = 'pending')),
            change INTEGER NOT NULL,
            answer TEXT,
            content TEXT NOT NULL,
            run TEXT,
            deadline INTEGER
        )""",
        "CREATE INDEX open_requests ON requests (posted_at) WHERE state = 'pending'",
        "CREATE INDEX open_by_owner ON requests (owner) WHERE state = 'pending'",
        "CREATE INDEX open_deadlines ON requests (deadline) WHERE state = 'pending'",
        "CREATE INDEX settled_requests ON requests (settled_at) WHERE state <> 'pending'",
        'CREATE INDEX changed_requests ON requests (change)',
        'CREATE INDEX parked_requests ON requests (run, state) WHERE run IS NOT NULL',
        'CREATE TABLE changes (last INTEGER NOT NULL)',
        'INSERT INTO changes VALUES (0)',
        'CREATE TABLE owners (id TEXT PRIMARY KEY, beat INTEGER NOT NULL)',
        """CREATE TABLE runs (
            id TEXT PRIMARY KEY,
            agent TEXT NOT NULL,
            status TEXT NOT NULL CHECK (status IN ('queued', 'waiting', 'done', 'failed', 'cancelled')),
            segment INTEGER NOT NULL,
            state TEXT NOT NULL,
            outcome TEXT,
            created_at INTEGER NOT NULL,
            changed_at INTEGER NOT NULL,
            parent TEXT
        )""",
        "CREATE INDEX unfinished_runs ON runs (agent, status, changed_at) WHERE status IN ('queued', 'waiting')",
        'CREATE INDEX runs_by_age ON runs (created_at, id)',
        'CREATE INDEX nested_runs ON runs (parent, status) WHERE parent IS NOT NULL',
        """CREATE TABLE executions (
            key TEXT NOT NULL,
            attempt INTEGER NOT NULL,
            run_id TEXT NOT NULL,
            tool_name TEXT NOT NULL,
            tool_call_id TEXT NOT NULL,
            state TEXT NOT NULL CHECK (
                state IN ('approved', 'reserved', 'executing', 'done', 'failed', 'refused', 'unknown')
            ),
            owner TEXT,
            idempotency_key TEXT NOT NULL,
            result TEXT,
            changed_at INTEGER NOT NULL,
            started_at INTEGER,
            PRIMARY KEY (key, attempt)
        )""",
        'CREATE INDEX executions_of_run ON executions (run_id)',
        "CREATE INDEX executions_in_hand ON executions (owner) WHERE state IN ('reserved', 'executing')",
        "CREATE INDEX unknown_executions ON executions (changed_at) WHERE state = 'unknown'",
        'CREATE TABLE workers (id TEXT PRIMARY KEY, beat INTEGER NOT NULL)',
        'CREATE TABLE secret (id INTEGER PRIMARY KEY CHECK (id = 1), value TEXT NOT NULL)',
        'CREATE TABLE approvals (id TEXT PRIMARY KEY, number INTEGER NOT NULL, content TEXT NOT NULL)',
    ),
)
"""Statements of each migration; see `SQLiteFile`."""

_COLUMNS = 'id, owner, content, posted_at, state, settled_at, answer'

_THIS = '(SELECT last FROM changes)'
"""SQL expression for the number of the current change. The transaction of each change increments the number, so a
reader that sees change n also sees all earlier changes."""

_CLOCK = "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"
"""SQL expression for the time of the machine, in milliseconds since 1970."""

_NOTHING = Changes()

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def default_path() -> Path:
    """Return the path `tool-approval/inbox.sqlite` in `XDG_STATE_HOME` or `~/.local/state`."""
    return approvals_path().with_name('inbox.sqlite')


class SQLiteStore:
    """An `InboxStore` in one file with mode 0600, in a folder that no other user can write to."""

    clock = _CLOCK
    """See `ParkingStore`."""

    def __init__(self, path: str | os.PathLike[str] | None = None, *, synchronous: Synchronous = 'NORMAL') -> None:
        """Configure the store; the first use opens it.

        Args:
            path: Path of the file on a local disk; `None` for `default_path()`. SQLite's WAL mode does not work on
                network drives.
            synchronous: With `FULL`, no power cut undoes a change, but each change waits for the disk.
        """
        self.path = Path(path) if path is not None else default_path()
        """Path of the file."""
        self.place = repr(str(self.path))
        self._database = SQLiteFile(self.path, MIGRATIONS, synchronous)
        self._watching = SQLiteFile(self.path, MIGRATIONS)
        self._is_closed = threading.Event()
        self._seen: tuple[int, int, int | None] | None = None

    def now(self) -> datetime:
        """See `InboxStore`."""
        with self._database.reading() as database:
            [(number,)] = database.execute(f'SELECT {_CLOCK}')
            return _EPOCH + timedelta(milliseconds=number)

    def add(self, row: Row, deadline: datetime | None = None) -> None:
        """See `InboxStore`.

        Raises:
            InboxUntrusted: The id is already in use.
            InboxError: The request cannot be stored.
        """
        expires = None if deadline is None else _number(deadline)
        values = (row.id, row.owner, row.content, _number(whole(row.posted_at)), expires)
        with self._changing() as database:
            try:
                database.execute(
                    'INSERT INTO requests (id, owner, content, posted_at, state, change, deadline) '
                    f"VALUES (?, ?, ?, ?, 'pending', {_THIS}, ?)",
                    values,
                )
            except sqlite3.IntegrityError:
                raise InboxUntrusted(self.place, 'a request with this id already exists') from None

    def settle(self, request_id: str, state: Settled, *, at: datetime, answer: str | None = None) -> bool:
        """See `InboxStore`."""
        with self._changing() as database:
            is_late = f'?3 IS NOT NULL AND deadline <= {_CLOCK}'
            done = database.execute(
                f"UPDATE requests SET state = CASE WHEN {is_late} THEN 'expired' ELSE ?1 END, "
                f'settled_at = CASE WHEN {is_late} THEN {_CLOCK} ELSE ?2 END, '
                f'answer = CASE WHEN {is_late} THEN NULL ELSE ?3 END, change = {_THIS} '
                "WHERE id = ?4 AND state = 'pending'",
                (state, _number(at), answer, request_id),
            )
            found = database.execute('SELECT state FROM requests WHERE id = ?', (request_id,)).fetchall()
            return done.rowcount == 1 and found == [(state,)]

    def get(self, request_ids: Collection[str]) -> Sequence[Row]:
        """See `InboxStore`."""
        with self._database.reading() as database:
            select = f'SELECT {_COLUMNS} FROM requests WHERE id = ?'
            return [_row(found) for each in request_ids for found in database.execute(select, (each,))]

    def pending_of(self, owner: str) -> Collection[str]:
        """See `InboxStore`."""
        with self._database.reading() as database:
            found = database.execute("SELECT id FROM requests WHERE owner = ? AND state = 'pending'", (owner,))
            return {request_id for (request_id,) in found}

    def open(self, limit: int) -> Sequence[Row]:
        """See `InboxStore`."""
        with self._database.reading() as database:
            select = f"SELECT {_COLUMNS} FROM requests WHERE state = 'pending' ORDER BY posted_at, rowid LIMIT ?"
            return [_row(found) for found in database.execute(select, (limit,))]

    def history(self, limit: int, before: datetime | None = None, after: str | None = None) -> Sequence[Row]:
        """See `InboxStore`."""
        with self._database.reading() as database:
            select = (
                f"SELECT {_COLUMNS} FROM requests WHERE state <> 'pending' AND (?1 IS NULL OR settled_at < ?1) "
                'AND (?2 IS NULL OR (settled_at, change) < (SELECT settled_at, change FROM requests WHERE id = ?2)) '
                'ORDER BY settled_at DESC, change DESC LIMIT ?3'
            )
            limits = (None if before is None else _number(before), after, limit)
            return [_row(found) for found in database.execute(select, limits)]

    def beat(self, owner: str, number: int) -> None:
        """See `InboxStore`."""
        with self._changing() as database:
            database.execute('INSERT OR REPLACE INTO owners VALUES (?, ?)', (owner, number))

    def beats(self) -> Mapping[str, int]:
        """See `InboxStore`."""
        with self._database.reading() as database:
            return dict(
                database.execute(
                    'SELECT DISTINCT owner, coalesce(beat, 0) FROM requests LEFT JOIN owners ON owners.id = owner '
                    "WHERE state = 'pending' AND run IS NULL"
                )
            )

    def withdraw_all_of(self, owner: str, number: int, *, at: datetime) -> int:
        """See `InboxStore`."""
        with self._changing() as database:
            done = database.execute(
                f"UPDATE requests SET state = 'withdrawn', settled_at = ?, change = {_THIS} "
                "WHERE owner = ? AND state = 'pending' AND run IS NULL "
                'AND coalesce((SELECT beat FROM owners WHERE id = ?), 0) = ?',
                (_number(at), owner, owner, number),
            )
            return done.rowcount

    def prune(self, before: datetime) -> int:
        """See `InboxStore`."""
        with self._changing() as database:
            done = database.execute(
                "DELETE FROM requests WHERE state <> 'pending' AND settled_at < ? "
                "AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = run AND status IN ('queued', 'waiting'))",
                (_number(before),),
            )
            database.execute('DELETE FROM owners WHERE id NOT IN (SELECT owner FROM requests)')
            return done.rowcount

    def watch(self, timeout_s: float) -> Changes | None:
        """See `InboxStore`. SQLite's `data_version` shows when other connections have written."""
        until = time.monotonic() + timeout_s
        try:
            while True:
                with self._watching.reading() as database:
                    changed = self._changed(database)
                if changed is not _NOTHING or time.monotonic() >= until or self._is_closed.wait(POLL_S):
                    return changed
        except BaseException:
            self._seen = None
            raise

    @contextmanager
    def transaction(self) -> Generator[Execute]:
        """See `ParkingStore`."""
        with self._changing() as database:
            yield database.execute

    def together(self) -> AbstractContextManager[None]:
        """See `ParkingStore`."""
        return self._database.together()

    @contextmanager
    def reading(self) -> Generator[Execute]:
        """See `ParkingStore`."""
        with self._database.reading() as database:
            yield database.execute

    def add_parked(self, execute: Execute, row: Row, run_id: str, deadline: datetime | None) -> None:
        """See `ParkingStore`."""
        expires = None if deadline is None else _number(deadline)
        execute(
            'INSERT INTO requests (id, owner, content, posted_at, state, change, run, deadline) '
            f"VALUES (?, ?, ?, ?, 'pending', {_THIS}, ?, ?) ON CONFLICT (id) DO NOTHING",
            (row.id, row.owner, row.content, _number(whole(row.posted_at)), run_id, expires),
        )

    def settle_parked(
        self, execute: Execute, state: Settled, at: datetime, which: str, values: tuple[str | int, ...]
    ) -> int:
        """See `ParkingStore`."""
        return execute(
            f"UPDATE requests SET state = ?, settled_at = ?, change = {_THIS} WHERE state = 'pending' AND {which}",
            (state, _number(at), *values),
        ).rowcount

    def parked_of(self, run_id: str) -> Sequence[Row]:
        """See `ParkingStore`."""
        with self._database.reading() as database:
            select = f'SELECT {_COLUMNS} FROM requests WHERE run = ? ORDER BY posted_at, rowid'
            return [_row(found) for found in database.execute(select, (run_id,))]

    def close(self) -> None:
        """See `InboxStore`."""
        self._is_closed.set()
        self._database.close()
        self._watching.close()

    @contextmanager
    def _changing(self) -> Generator[sqlite3.Connection]:
        with self._database.changing() as database:
            database.execute('UPDATE changes SET last = last + 1')
            yield database

    def _changed(self, database: sqlite3.Connection) -> Changes | None:
        [(version,)] = database.execute('PRAGMA data_version')
        if self._seen is not None and version == self._seen[0]:
            return _NOTHING
        [(last, run)] = database.execute('SELECT last, (SELECT max(rowid) FROM runs) FROM changes')
        if self._seen is None:
            self._seen = (version, last, run)
            return None
        _, last, last_run = self._seen
        found = database.execute(
            'SELECT id, state, change FROM requests WHERE change > ? ORDER BY change', (last,)
        ).fetchall()
        self._seen = (version, found[-1][2] if found else last, run)
        if not found and run == last_run:
            return _NOTHING
        return Changes(
            added=frozenset(request_id for request_id, state, _ in found if state == 'pending'),
            settled=frozenset(request_id for request_id, state, _ in found if state != 'pending'),
            has_runs=run != last_run,
        )


def _number(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _moment(number: object) -> datetime | None:
    """Return a stored time, or `None` if another program has damaged it."""
    try:
        return _EPOCH + timedelta(milliseconds=cast('int', number))
    except (TypeError, OverflowError):
        return None


def _row(values: tuple[Any, ...]) -> Row:
    request_id, owner, content, posted_at, state, settled_at, answer = values
    return Row(
        id=request_id,
        owner=owner,
        content=content,
        posted_at=_moment(posted_at),
        state=state,
        settled_at=_moment(settled_at),
        answer=answer,
    )
