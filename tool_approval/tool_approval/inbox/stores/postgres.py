"""Store requests in a PostgreSQL database for processes on any number of machines. Needs the extra `postgres`."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString

from tool_approval.core.errors import MissingExtraError
from tool_approval.inbox.errors import InboxError, InboxUnavailable, InboxUntrusted
from tool_approval.inbox.store import Changes, Execute, Row, Settled

try:
    import psycopg
    from psycopg import sql
    from psycopg.abc import Buffer
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
    from psycopg.types.datetime import TimestamptzLoader
except ImportError:  # pragma: no cover - a test takes psycopg away in a process of its own
    raise MissingExtraError('psycopg', extra='postgres') from None

UniqueViolation = psycopg.errors.UniqueViolation
"""Error for a row whose key is already in use."""

CONNECT: Mapping[str, str] = {
    'application_name': 'tool-approval inbox',
    'connect_timeout': '5',
    # Detect a vanished server within half a minute, and sooner while sending.
    'keepalives_idle': '10',
    'keepalives_interval': '5',
    'keepalives_count': '3',
    'tcp_user_timeout': '8000',
}
"""Default connection parameters, which the DSN can override. Times are in seconds, except `tcp_user_timeout`,
which is in milliseconds."""

STATEMENT_MS = 8000
"""Maximum duration of a statement in milliseconds, less than the ten seconds that a call may take."""

_MIGRATING = 0x7461496E626F78
"""Key of the advisory lock for migrations: an arbitrary number, which other programs are unlikely to use."""


def read_dsn(dsn: str) -> Mapping[str, object]:
    """Return the parameters of a DSN by their libpq names.

    Raises:
        ValueError: The DSN is invalid. The error does not quote the DSN.
    """
    try:
        return dict(conninfo_to_dict(dsn))
    except psycopg.ProgrammingError:
        raise ValueError('the DSN is invalid; write postgresql://user:password@host/database') from None


class _TimeLoader(TimestamptzLoader):
    """Reads a time that Python cannot hold, such as `infinity`, as `None`, so that it blocks no other row."""

    def load(self, data: Buffer) -> datetime | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        try:
            return super().load(data)
        except psycopg.DataError:
            return None


class PostgresConnection:
    """A connection to the database, used by one thread at a time."""

    def __init__(self, dsn: str, schema: str, place: str, migrations: Sequence[Sequence[LiteralString]]) -> None:
        """Configure the connection; the first use connects and applies the migrations that are missing."""
        self._dsn = make_conninfo(dsn, **{name: each for name, each in CONNECT.items() if name not in read_dsn(dsn)})
        self._schema = schema
        self._place = place
        self._migrations = migrations
        self._lock = threading.RLock()
        self._is_closed = False
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None

    @contextmanager
    def using(self) -> Generator[psycopg.Connection[tuple[Any, ...]]]:
        """Yield the connection. Each statement is a separate transaction.

        Raises:
            InboxUnavailable: The database cannot be reached, or temporarily refuses the statement.
            InboxUntrusted: The schema differs from the one that this version creates, or access to the schema is
                denied.
        """
        with self._lock:
            try:
                yield self._connected()
            except psycopg.Error as error:
                self._let_go()
                # The server's message, or else libpq's, which names the host. Neither holds the password.
                problem = error.diag.message_primary or str(error).partition('\n')[0] or type(error).__name__
                if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError | psycopg.InternalError):
                    raise InboxUnavailable(self._place, problem) from error
                raise InboxUntrusted(self._place, problem) from error
            except InboxError:
                self._let_go()
                raise

    def close(self) -> None:
        """Close the connection permanently."""
        with self._lock:
            self._is_closed = True
            self._let_go()

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error):
                connection.close()

    def _connected(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._is_closed:
            raise InboxUnavailable(self._place, 'the store is closed')
        if self._connection is None:
            self._connection = psycopg.connect(self._dsn, autocommit=True)
            self._connection.adapters.register_loader('timestamptz', _TimeLoader)
            self._set_up(self._connection)
        return self._connection

    def _set_up(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        # Also end an idle transaction, so that a suspended process does not hold its rows longer than that.
        for name in ('statement_timeout', 'idle_in_transaction_session_timeout'):
            connection.execute(sql.SQL('SET {} = {}').format(sql.Identifier(name), sql.Literal(STATEMENT_MS)))
        # Attack: a table of the same name is temporary, or in a schema that is searched earlier
        # (test_postgres.py: test_other_tables_of_the_same_name_are_not_met).
        connection.execute(sql.SQL('SET search_path = {}, pg_temp').format(sql.Identifier(self._schema)))
        # Fails on a standby, which is read-only. libpq's `target_session_attrs=read-write` finds the primary.
        with connection.transaction():
            connection.execute('SELECT pg_advisory_xact_lock(%s)', (_MIGRATING,))
            found = connection.execute('SELECT FROM pg_namespace WHERE nspname = %s', (self._schema,))
            if not found.rowcount:
                connection.execute(sql.SQL('CREATE SCHEMA {}').format(sql.Identifier(self._schema)))
            version = self._version(connection)
            if version > len(self._migrations):
                raise InboxUntrusted(
                    self._place,
                    f'the schema has version {version}, but this release supports up to {len(self._migrations)}; '
                    'upgrade tool_approval',
                )
            for steps in self._migrations[version:]:
                for step in steps:
                    connection.execute(step)
            connection.execute('UPDATE version SET number = %s WHERE number < %s', (len(self._migrations),) * 2)

    def _version(self, connection: psycopg.Connection[tuple[Any, ...]]) -> int:
        tables = connection.execute('SELECT tablename FROM pg_tables WHERE schemaname = %s', (self._schema,)).fetchall()
        if not tables:
            connection.execute('CREATE TABLE version (number integer NOT NULL)')
            connection.execute('INSERT INTO version VALUES (0)')
            return 0
        if ('version',) not in tables:
            raise InboxUntrusted(
                self._place, f'the schema {self._schema!r} has other tables; give the inbox its own schema'
            )
        found = connection.execute('SELECT number FROM version').fetchall()
        if len(found) != 1:
            raise InboxUntrusted(self._place, "the table 'version' must have one row")
        [(version,)] = found
        return version


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
            content text NOT NULL,
            run text COLLATE "C",
            deadline bigint
        )""",
        "CREATE INDEX open_requests ON requests (posted_at, number) WHERE state = 'pending'",
        "CREATE INDEX open_by_owner ON requests (owner) WHERE state = 'pending'",
        "CREATE INDEX open_deadlines ON requests (deadline) WHERE state = 'pending'",
        "CREATE INDEX settled_requests ON requests (settled_at) WHERE state <> 'pending'",
        'CREATE INDEX parked_requests ON requests (run, state) WHERE run IS NOT NULL',
        'CREATE TABLE owners (id text COLLATE "C" PRIMARY KEY, beat bigint NOT NULL)',
        """CREATE TABLE runs (
            id text COLLATE "C" PRIMARY KEY,
            agent text COLLATE "C" NOT NULL,
            status text COLLATE "C" NOT NULL CHECK (status IN ('queued', 'waiting', 'done', 'failed', 'cancelled')),
            segment integer NOT NULL,
            state text NOT NULL,
            outcome text,
            created_at bigint NOT NULL,
            changed_at bigint NOT NULL,
            parent text COLLATE "C"
        )""",
        "CREATE INDEX unfinished_runs ON runs (agent, status, changed_at) WHERE status IN ('queued', 'waiting')",
        'CREATE INDEX runs_by_age ON runs (created_at, id)',
        'CREATE INDEX nested_runs ON runs (parent, status) WHERE parent IS NOT NULL',
        """CREATE FUNCTION run_added() RETURNS trigger LANGUAGE plpgsql
            AS 'BEGIN PERFORM pg_notify(TG_TABLE_SCHEMA || ''_inbox'', ''''); RETURN NULL; END'""",
        'CREATE TRIGGER run_added AFTER INSERT ON runs FOR EACH STATEMENT EXECUTE FUNCTION run_added()',
        """CREATE TABLE executions (
            key text COLLATE "C" NOT NULL,
            attempt integer NOT NULL,
            run_id text COLLATE "C" NOT NULL,
            tool_name text NOT NULL,
            tool_call_id text NOT NULL,
            state text COLLATE "C" NOT NULL CHECK (
                state IN ('approved', 'reserved', 'executing', 'done', 'failed', 'refused', 'unknown')
            ),
            owner text COLLATE "C",
            idempotency_key text NOT NULL,
            result text,
            changed_at bigint NOT NULL,
            started_at bigint,
            PRIMARY KEY (key, attempt)
        )""",
        'CREATE INDEX executions_of_run ON executions (run_id)',
        "CREATE INDEX executions_in_hand ON executions (owner) WHERE state IN ('reserved', 'executing')",
        "CREATE INDEX unknown_executions ON executions (changed_at) WHERE state = 'unknown'",
        'CREATE TABLE workers (id text COLLATE "C" PRIMARY KEY, beat bigint NOT NULL)',
        'CREATE TABLE secret (id integer PRIMARY KEY CHECK (id = 1), value text NOT NULL)',
        """CREATE TABLE approvals (
            id text COLLATE "C" PRIMARY KEY,
            number bigint NOT NULL,
            content text NOT NULL
        )""",
    ),
)
"""Statements of each migration. Migration n creates schema version n + 1. The table `version` stores this number."""

_ALL = '*'
"""Notification that many requests have changed. The notification does not contain the ids of the requests."""

_ADDED = '+'
"""Prefix that notifications add to the id of a new request. No request id itself begins with this prefix."""

_RUN = ''
"""Notification that a durable run was added. The notification does not contain the run's id."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_SCHEMA = re.compile(r'[a-z_][a-z0-9_]{0,49}')

_CLOCK: LiteralString = 'CAST(floor(extract(epoch FROM statement_timestamp()) * 1000) AS bigint)'
"""SQL expression for the time at which the server received the statement, in milliseconds since 1970."""

_COLUMNS = sql.SQL('id, owner, content, posted_at, state, settled_at, answer')


class PostgresStore:
    """An `InboxStore` in a PostgreSQL schema. The database sends notifications of changes, so no process polls."""

    clock = _CLOCK
    """See `ParkingStore`."""

    def __init__(self, dsn: str, *, schema: str = 'tool_approval') -> None:
        """Configure the store. The first use of the store in a process opens two connections.

        Args:
            dsn: Connection string for libpq, such as `postgresql://user@host/database`. `user` must own the schema or
                be able to create it. Do not use a connection pooler in transaction mode, which loses notifications.
            schema: Name of the schema; each inbox in the database needs a separate schema.

        Raises:
            ValueError: The DSN or the schema name is invalid. The error does not quote the DSN.
            MissingExtraError: psycopg is not installed; raised when this module is imported.
        """
        if _SCHEMA.fullmatch(schema) is None:
            raise ValueError(f'{schema!r} is not a valid schema name; use lowercase letters, digits and _')
        given = read_dsn(dsn)
        name = given.get('dbname') or given.get('user') or 'the default database'
        self.place = f'the PostgreSQL database {name!r}'
        self._channel = f'{schema}_inbox'
        self._database = PostgresConnection(dsn, schema, self.place, MIGRATIONS)
        self._listening = PostgresConnection(dsn, schema, self.place, MIGRATIONS)
        self._heard: object = None

    def now(self) -> datetime:
        """See `InboxStore`."""
        with self._database.using() as database:
            [(moment,)] = database.execute("SELECT date_trunc('milliseconds', statement_timestamp())").fetchall()
            return moment.astimezone(UTC)

    def add(self, row: Row, deadline: datetime | None = None) -> None:
        """See `InboxStore`."""
        with self._database.using() as database:
            try:
                database.execute(
                    'WITH added AS (INSERT INTO requests (id, owner, content, posted_at, deadline, state) '
                    "VALUES (%s, %s, %s, %s, %s, 'pending') RETURNING id) SELECT pg_notify(%s, %s || id) FROM added",
                    (row.id, row.owner, row.content, row.posted_at, _number(deadline), self._channel, _ADDED),
                )
            except UniqueViolation:
                raise InboxUntrusted(self.place, 'a request with this id already exists') from None

    def settle(self, request_id: str, state: Settled, *, at: datetime, answer: str | None = None) -> bool:
        """See `InboxStore`."""
        with self._database.using() as database:
            is_late: LiteralString = f'%(answer)s::text IS NOT NULL AND deadline <= {_CLOCK}'
            now: LiteralString = "date_trunc('milliseconds', statement_timestamp())"
            done = database.execute(
                f"WITH done AS (UPDATE requests SET state = CASE WHEN {is_late} THEN 'expired' ELSE %(state)s END, "
                f'settled_at = CASE WHEN {is_late} THEN {now} ELSE %(at)s END, '
                f'answer = CASE WHEN {is_late} THEN NULL ELSE %(answer)s END '
                "WHERE id = %(id)s AND state = 'pending' RETURNING id, state) "
                'SELECT state, pg_notify(%(channel)s, id) FROM done',
                {'state': state, 'at': at, 'answer': answer, 'id': request_id, 'channel': self._channel},
            )
            return [given for given, _ in done] == [state]

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
            "WHERE state <> 'pending' AND (%s::timestamptz IS NULL OR settled_at < %s) "
            'AND (%s::text IS NULL OR (settled_at, number) < (SELECT settled_at, number FROM requests WHERE id = %s)) '
            'ORDER BY settled_at DESC, number DESC LIMIT %s'
        )
        return self._rows(which, (before, before, after, after, limit))

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
                "(SELECT DISTINCT owner FROM requests WHERE state = 'pending' AND run IS NULL) AS waiting "
                'LEFT JOIN owners ON owners.id = owner'
            )
            return dict(found)

    def withdraw_all_of(self, owner: str, number: int, *, at: datetime) -> int:
        """See `InboxStore`."""
        with self._database.using() as database:
            done = database.execute(
                "WITH done AS (UPDATE requests SET state = 'withdrawn', settled_at = %s "
                "WHERE owner = %s AND state = 'pending' AND run IS NULL "
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
            done = database.execute(
                "DELETE FROM requests WHERE state <> 'pending' AND settled_at < %s "
                "AND NOT EXISTS (SELECT FROM runs WHERE runs.id = run AND status IN ('queued', 'waiting'))",
                (before,),
            )
            database.execute('DELETE FROM owners WHERE NOT EXISTS (SELECT FROM requests WHERE owner = owners.id)')
            return done.rowcount

    def watch(self, timeout_s: float) -> Changes | None:
        """See `InboxStore`. A separate connection listens for changes."""
        with self._listening.using() as listening:
            if listening is not self._heard:
                listening.execute(sql.SQL('LISTEN {}').format(sql.Identifier(self._channel)))
                self._heard = listening
                return None
            sent = {each.payload for each in listening.notifies(timeout=timeout_s, stop_after=1)}
        if _ALL in sent:
            return None
        added = frozenset(each for each in sent if each.startswith(_ADDED))
        settled = frozenset(sent - added - {_RUN})
        new = frozenset(each.removeprefix(_ADDED) for each in added)
        return Changes(added=new, settled=settled, has_runs=_RUN in sent)

    @contextmanager
    def transaction(self) -> Generator[Execute]:
        """See `ParkingStore`."""
        with self._database.using() as database, database.transaction():
            yield _executing(database)

    @contextmanager
    def together(self) -> Generator[None]:
        """See `ParkingStore`. Each transaction within the transaction is a savepoint."""
        with self._database.using() as database, database.transaction():
            yield
            if database.closed:  # psycopg would not say that nothing is committed
                raise InboxUnavailable(self.place, 'the connection was closed meanwhile')

    @contextmanager
    def reading(self) -> Generator[Execute]:
        """See `ParkingStore`."""
        with self._database.using() as database:
            yield _executing(database)

    def add_parked(self, execute: Execute, row: Row, run_id: str, deadline: datetime | None) -> None:
        """See `ParkingStore`."""
        execute(
            'WITH added AS (INSERT INTO requests (id, owner, content, posted_at, state, run, deadline) '
            "VALUES (?, ?, ?, ?, 'pending', ?, ?) ON CONFLICT (id) DO NOTHING RETURNING id) "
            'SELECT pg_notify(?, ? || id) FROM added',
            (row.id, row.owner, row.content, row.posted_at, run_id, _number(deadline), self._channel, _ADDED),
        )

    def settle_parked(
        self, execute: Execute, state: Settled, at: datetime, which: str, values: tuple[str | int, ...]
    ) -> int:
        """See `ParkingStore`."""
        return execute(
            'WITH done AS (UPDATE requests SET state = ?, settled_at = ? '
            f"WHERE state = 'pending' AND {which} RETURNING id) SELECT pg_notify(?, id) FROM done",
            (state, at, *values, self._channel),
        ).rowcount

    def parked_of(self, run_id: str) -> Sequence[Row]:
        """See `ParkingStore`."""
        return self._rows(sql.SQL('WHERE run = %s ORDER BY posted_at, number'), (run_id,))

    def close(self) -> None:
        """See `InboxStore`."""
        self._database.close()
        self._listening.close()

    def _rows(self, which: sql.SQL, values: tuple[Any, ...]) -> Sequence[Row]:
        with self._database.using() as database:
            select = sql.SQL('SELECT {} FROM requests {}').format(_COLUMNS, which)
            return [_row(found) for found in database.execute(select, values)]


def _executing(database: psycopg.Connection[tuple[Any, ...]]) -> Execute:
    return lambda statement, values=(): database.execute(statement.replace('?', '%s').encode(), values)


def _number(deadline: datetime | None) -> int | None:
    return None if deadline is None else (deadline - _EPOCH) // timedelta(milliseconds=1)


def _row(values: tuple[Any, ...]) -> Row:
    request_id, owner, content, posted_at, state, settled_at, answer = values
    return Row(
        id=request_id,
        owner=owner,
        content=content,
        posted_at=None if posted_at is None else posted_at.astimezone(UTC),
        state=state,
        settled_at=None if settled_at is None else settled_at.astimezone(UTC),
        answer=answer,
    )
