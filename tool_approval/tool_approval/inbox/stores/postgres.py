"""Requests in a PostgreSQL database, for processes on any number of machines. Needs the extra `postgres`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, LiteralString

from tool_approval.inbox.errors import InboxUntrusted
from tool_approval.inbox.states import Settled
from tool_approval.inbox.store import Changes, Row

from .postgres_connection import PostgresConnection, UniqueViolation, read_dsn, sql

MIGRATIONS: tuple[tuple[LiteralString, ...], ...] = (
    (
        """CREATE TABLE requests (
            id text COLLATE "C" PRIMARY KEY,
            owner text COLLATE "C" NOT NULL,
            state text NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'expired', 'withdrawn')),
            posted_at timestamptz NOT NULL,
            settled_at timestamptz CHECK ((settled_at IS NULL) = (state = 'pending')),
            number bigint GENERATED ALWAYS AS IDENTITY,
            answer text,
            content text NOT NULL
        )""",
        "CREATE INDEX open_requests ON requests (posted_at, number) WHERE state = 'pending'",
        "CREATE INDEX open_by_owner ON requests (owner) WHERE state = 'pending'",
        "CREATE INDEX settled_requests ON requests (settled_at) WHERE state <> 'pending'",
        'CREATE TABLE owners (id text COLLATE "C" PRIMARY KEY, beat bigint NOT NULL)',
    ),
)
"""What makes version n + 1 of version n. The version is a row of the table `version`."""

_ALL = '*'
"""Notified instead of an id: many requests have changed."""

_ADDED = '+'
"""Stands before the id of a new request; no id begins with it."""

_SCHEMA = re.compile(r'[a-z_][a-z0-9_]{0,49}')

_COLUMNS = sql.SQL('id, owner, content, posted_at, state, settled_at, answer')


class PostgresStore:
    """Tables in a schema of their own. Changes are notified, so that nobody polls. See `InboxStore`."""

    def __init__(self, dsn: str, *, schema: str = 'tool_approval') -> None:
        """Nothing is connected before the first use; then there are two connections for each process.

        Args:
            dsn: As libpq takes it, such as `postgresql://user@host/database`. The user must be able to create the
                schema, or own it. A pooler between must not share connections between transactions: notifications get
                lost there.
            schema: The schema; several inboxes in one database have one each.

        Raises:
            ValueError: The DSN cannot be read, and the error does not quote it. Or that is no name of a schema.
            MissingExtraError: psycopg is not installed; raised when this module is imported.
        """
        if _SCHEMA.fullmatch(schema) is None:
            raise ValueError(f'{schema!r} is no name for the schema; use lower case letters, digits and _')
        given = read_dsn(dsn)
        name = given.get('dbname') or given.get('user') or 'the default database'
        self.place = f'the PostgreSQL database {name!r}'
        self._channel = f'{schema}_inbox'
        self._database = PostgresConnection(dsn, schema, self.place, MIGRATIONS)
        self._listening = PostgresConnection(dsn, schema, self.place, MIGRATIONS)
        self._heard: object = None

    def add(self, row: Row) -> None:
        """See `InboxStore`."""
        with self._database.using() as database:
            try:
                database.execute(
                    'WITH added AS (INSERT INTO requests (id, owner, content, posted_at, state) '
                    "VALUES (%s, %s, %s, %s, 'pending') RETURNING id) SELECT pg_notify(%s, %s || id) FROM added",
                    (row.id, row.owner, row.content, row.posted_at, self._channel, _ADDED),
                )
            except UniqueViolation:
                raise InboxUntrusted(self.place, 'a request of that id is there already') from None

    def settle(self, request_id: str, state: Settled, *, at: datetime, answer: str | None = None) -> bool:
        """See `InboxStore`."""
        with self._database.using() as database:
            done = database.execute(
                'WITH done AS (UPDATE requests SET state = %s, settled_at = %s, answer = %s '
                "WHERE id = %s AND state = 'pending' RETURNING id) SELECT pg_notify(%s, id) FROM done",
                (state, at, answer, request_id, self._channel),
            )
            return done.rowcount == 1

    def get(self, request_ids: Collection[str]) -> Sequence[Row]:
        """See `InboxStore`."""
        return self._rows(sql.SQL('WHERE id = ANY(%s)'), (list(request_ids),))

    def pending_of(self, owner: str) -> Collection[str]:
        """See `InboxStore`."""
        with self._database.using() as database:
            found = database.execute("SELECT id FROM requests WHERE owner = %s AND state = 'pending'", (owner,))
            return {request_id for (request_id,) in found}

    def open(self, limit: int) -> Sequence[Row]:
        """See `InboxStore`."""
        return self._rows(sql.SQL("WHERE state = 'pending' ORDER BY posted_at, number LIMIT %s"), (limit,))

    def history(self, limit: int, before: datetime | None = None, after: str | None = None) -> Sequence[Row]:
        """See `InboxStore`."""
        which = sql.SQL(
            "WHERE state <> 'pending' AND settled_at < coalesce(%s, 'infinity'::timestamptz) "
            'AND (%s::text IS NULL OR (settled_at, number) < (SELECT settled_at, number FROM requests WHERE id = %s)) '
            'ORDER BY settled_at DESC, number DESC LIMIT %s'
        )
        return self._rows(which, (before, after, after, limit))

    def beat(self, owner: str, number: int) -> None:
        """See `InboxStore`."""
        with self._database.using() as database:
            database.execute(
                'INSERT INTO owners VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET beat = excluded.beat',
                (owner, number),
            )

    def beats(self) -> Mapping[str, int]:
        """See `InboxStore`."""
        with self._database.using() as database:
            found = database.execute(
                'SELECT owner, coalesce(beat, 0) FROM '
                "(SELECT DISTINCT owner FROM requests WHERE state = 'pending') AS waiting "
                'LEFT JOIN owners ON owners.id = owner'
            )
            return dict(found)

    def withdraw_all_of(self, owner: str, number: int, *, at: datetime) -> int:
        """See `InboxStore`."""
        with self._database.using() as database:
            done = database.execute(
                "WITH done AS (UPDATE requests SET state = 'withdrawn', settled_at = %s "
                "WHERE owner = %s AND state = 'pending' "
                'AND coalesce((SELECT beat FROM owners WHERE id = %s), 0) = %s RETURNING id), '
                'told AS (SELECT pg_notify(%s, %s) FROM done LIMIT 1) '
                'SELECT count(*), (SELECT count(*) FROM told) FROM done',
                (at, owner, owner, number, self._channel, _ALL),
            )
            [(count, _)] = done.fetchall()
            return count

    def prune(self, before: datetime) -> int:
        """See `InboxStore`."""
        with self._database.using() as database:
            done = database.execute("DELETE FROM requests WHERE state <> 'pending' AND settled_at < %s", (before,))
            database.execute('DELETE FROM owners WHERE NOT EXISTS (SELECT FROM requests WHERE owner = owners.id)')
            return done.rowcount

    def watch(self, timeout_s: float) -> Changes | None:
        """See `InboxStore`. It listens on a connection of its own."""
        with self._listening.using() as listening:
            if listening is not self._heard:
                listening.execute(sql.SQL('LISTEN {}').format(sql.Identifier(self._channel)))
                self._heard = listening
                return None
            told = {each.payload for each in listening.notifies(timeout=timeout_s, stop_after=1)}
        if _ALL in told:
            return None
        added = frozenset(each for each in told if each.startswith(_ADDED))
        return Changes(added=frozenset(each.removeprefix(_ADDED) for each in added), settled=frozenset(told - added))

    def close(self) -> None:
        """See `InboxStore`."""
        self._database.close()
        self._listening.close()

    def _rows(self, which: sql.SQL, values: tuple[Any, ...]) -> Sequence[Row]:
        with self._database.using() as database:
            select = sql.SQL('SELECT {} FROM requests {}').format(_COLUMNS, which)
            return [_row(found) for found in database.execute(select, values)]


def _row(values: tuple[Any, ...]) -> Row:
    request_id, owner, content, posted_at, state, settled_at, answer = values
    return Row(
        id=request_id,
        owner=owner,
        content=content,
        posted_at=posted_at.astimezone(UTC),
        state=state,
        settled_at=None if settled_at is None else settled_at.astimezone(UTC),
        answer=answer,
    )
