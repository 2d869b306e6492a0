"""One connection to a PostgreSQL database: made, migrated, and made again after a failure."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, LiteralString

from tool_approval.core.errors import MissingExtraError
from tool_approval.inbox.errors import InboxError, InboxUnavailable, InboxUntrusted

try:
    import psycopg
    from psycopg import sql
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
except ImportError:  # pragma: no cover - a test takes psycopg away in a process of its own
    raise MissingExtraError('psycopg', extra='postgres') from None

UniqueViolation = psycopg.errors.UniqueViolation
"""A row of that key is there already."""

CONNECT: Mapping[str, str] = {
    'application_name': 'tool-approval inbox',
    'connect_timeout': '5',
    # A peer that is gone without a word is noticed within half a minute, and while something is being sent sooner.
    'keepalives_idle': '10',
    'keepalives_interval': '5',
    'keepalives_count': '3',
    'tcp_user_timeout': '8000',
}
"""Chosen: how to connect unless the DSN says otherwise. In seconds; the last one in milliseconds."""

STATEMENT_MS = 8000
"""Chosen: a statement takes milliseconds; this keeps within the ten seconds that a call may take."""

_MIGRATING = 0x7461496E626F78
"""Any number that nobody else is likely to lock: the key of an advisory lock."""


def read_dsn(dsn: str) -> Mapping[str, object]:
    """The parameters that a DSN gives, by libpq's names for them.

    Raises:
        ValueError: It cannot be read. The error does not quote it.
    """
    try:
        return dict(conninfo_to_dict(dsn))
    except psycopg.ProgrammingError:
        raise ValueError('this is no DSN of PostgreSQL; write postgresql://user:password@host/database') from None


class PostgresConnection:
    """For one thread at a time."""

    def __init__(self, dsn: str, schema: str, place: str, migrations: Sequence[Sequence[LiteralString]]) -> None:
        """Nothing is connected before the first use.

        Args:
            dsn: As libpq takes it.
            schema: Where the tables are.
            place: The database, for errors.
            migrations: What makes version n + 1 of version n. The version is the one row of the table `version`.
        """
        self._dsn = make_conninfo(dsn, **{name: each for name, each in CONNECT.items() if name not in read_dsn(dsn)})
        self._schema = schema
        self._place = place
        self._migrations = migrations
        self._lock = threading.Lock()
        self._is_closed = False
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None

    @contextmanager
    def using(self) -> Generator[psycopg.Connection[tuple[Any, ...]]]:
        """The connection; each statement is a transaction of its own.

        Raises:
            InboxUnavailable: The database cannot be reached, or does not take it now.
            InboxUntrusted: Something there is not as this version made it, or may not be used.
        """
        with self._lock:
            try:
                yield self._connected()
            except psycopg.Error as error:
                self._let_go()
                # The server's own sentence; libpq's, which names the host, where there was none. Never the password.
                problem = error.diag.message_primary or str(error).partition('\n')[0] or type(error).__name__
                if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError | psycopg.InternalError):
                    raise InboxUnavailable(self._place, problem) from error
                raise InboxUntrusted(self._place, problem) from error
            except InboxError:
                self._let_go()
                raise

    def close(self) -> None:
        """Disconnect for good."""
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
            raise InboxUnavailable(self._place, 'it is closed')
        if self._connection is None:
            self._connection = psycopg.connect(self._dsn, autocommit=True)
            self._set_up(self._connection)
        return self._connection

    def _set_up(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        connection.execute(sql.SQL('SET statement_timeout = {}').format(sql.Literal(STATEMENT_MS)))
        # Attack: somebody makes a temporary table of our name, or one in a schema that is searched earlier
        # (test_postgres.py: test_other_tables_of_the_same_name_are_not_met).
        connection.execute(sql.SQL('SET search_path = {}, pg_temp').format(sql.Identifier(self._schema)))
        # A standby takes no answers. libpq's `target_session_attrs=read-write` finds the primary.
        with connection.transaction():
            connection.execute('SELECT pg_advisory_xact_lock(%s)', (_MIGRATING,))
            found = connection.execute('SELECT FROM pg_namespace WHERE nspname = %s', (self._schema,))
            if not found.rowcount:
                connection.execute(sql.SQL('CREATE SCHEMA {}').format(sql.Identifier(self._schema)))
            version = self._version(connection)
            if version > len(self._migrations):
                raise InboxUntrusted(
                    self._place,
                    f'its schema has version {version}, and this tool_approval knows up to {len(self._migrations)}; '
                    'upgrade it',
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
            raise InboxUntrusted(self._place, f'the schema {self._schema!r} has other tables; give the inbox its own')
        found = connection.execute('SELECT number FROM version').fetchall()
        if len(found) != 1:
            raise InboxUntrusted(self._place, 'it does not say which version its schema has')
        [(version,)] = found
        return version
