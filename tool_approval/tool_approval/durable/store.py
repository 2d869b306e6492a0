"""Keep durable runs, their parked requests and the executions of their calls in the inbox's database."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal

from tool_approval.core.canonical import canonical_json
from tool_approval.core.errors import check_methods
from tool_approval.inbox.remembered import secret_of
from tool_approval.inbox.store import Execute, ParkingStore, Row, whole
from tool_approval.inbox.stores import SQLiteStore

from .rows import (
    EXECUTION_COLUMNS,
    MOVES,
    RUN_COLUMNS,
    ExecutionRow,
    ExecutionState,
    RunRow,
    RunStatus,
    execution_of,
    insert_execution,
    insert_run,
    milliseconds_of,
    run_of,
)


class DurableStore:
    """Durable runs and executions in the database of an inbox. See `open_store`.

    All methods block, so call them in a separate thread. All methods may raise `InboxUnavailable` and `InboxUntrusted`,
    with the same meaning as for an `InboxStore`.
    """

    def __init__(self, inbox_store: ParkingStore) -> None:
        """Use a database.

        Args:
            inbox_store: The database of the inbox. An `SQLiteStore` needs `synchronous='FULL'`; otherwise, a call may
                be executed again after a power failure.

        Raises:
            TypeError: `inbox_store` is not a store. `open_store` opens a store by its path or URL.
        """
        check_methods(
            'inbox_store', inbox_store, 'a store such as `SQLiteStore(path)`', 'transaction', 'reading', 'watch'
        )
        self.inbox_store = inbox_store
        """Store of the requests, for `Inbox`. `close` also closes this store. Both stores share a connection."""
        self.place = inbox_store.place
        """Location of the database as shown in messages, without secrets."""

    def close(self) -> None:
        """Close files and connections. It is safe to call this method twice."""
        self.inbox_store.close()

    def together(self) -> AbstractContextManager[None]:
        """See `ParkingStore`."""
        return self.inbox_store.together()

    def secret(self) -> bytes:
        """Return 32 random bytes, created once for each database.

        Raises:
            InboxUntrusted: The bytes were changed.
        """
        with self.inbox_store.transaction() as execute:
            return self._secret(execute)

    def _secret(self, execute: Execute) -> bytes:
        return secret_of(execute, self.place)

    # Workers

    def beat(self, worker: str, number: int) -> None:
        """Record that a worker is alive. The heartbeat numbers of a worker increase."""
        with self.inbox_store.transaction() as execute:
            execute(
                'INSERT INTO workers VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET beat = excluded.beat',
                (worker, number),
            )

    def beats(self) -> dict[str, int]:
        """Return the last heartbeat of each worker; 0 for a worker that holds executions but never sent a heartbeat."""
        with self.inbox_store.reading() as execute:
            holders = execute("SELECT DISTINCT owner, 0 FROM executions WHERE state IN ('reserved', 'executing')")
            return dict(holders.fetchall()) | dict(execute('SELECT id, beat FROM workers').fetchall())

    def release(self, worker: str, number: int, *, at: datetime) -> int:
        """Release the executions of a dead worker, unless the worker has recorded a later heartbeat.

        A reserved execution becomes available to other workers again. If an execution had begun, its outcome
        becomes unknown. If the worker is alive after all, the worker can still settle such an execution.

        Returns:
            The number of released executions.
        """
        # SQLite finds them by its index of such states only where they are named in the same words.
        is_held = "owner = ? AND state IN ('reserved', 'executing')"
        if not self._select(f'SELECT 1 FROM executions WHERE {is_held} LIMIT 1', (worker,)):
            return 0
        is_gone = f'{is_held} AND coalesce((SELECT beat FROM workers WHERE id = ?), 0) = ?'
        values = (milliseconds_of(at), worker, worker, number)
        with self.inbox_store.transaction() as execute:
            freed = execute(
                "UPDATE executions SET state = 'approved', owner = NULL, changed_at = ? "
                f"WHERE state = 'reserved' AND {is_gone}",
                values,
            )
            lost = execute(
                f"UPDATE executions SET state = 'unknown', changed_at = ? WHERE state = 'executing' AND {is_gone}",
                values,
            )
            return freed.rowcount + lost.rowcount

    def forget_worker(self, worker: str) -> None:
        """Delete the heartbeat of a worker."""
        with self.inbox_store.transaction() as execute:
            execute('DELETE FROM workers WHERE id = ?', (worker,))

    # Runs

    def add_run(self, row: RunRow) -> bool:
        """Add a run. Return `False`, and change nothing, if a run with this id exists."""
        with self.inbox_store.transaction() as execute:
            return insert_run(execute, row)

    def get_run(self, run_id: str) -> RunRow | None:
        """Return a run, or `None` if the id is unknown."""
        found = self._select(f'SELECT {RUN_COLUMNS} FROM runs WHERE id = ?', (run_id,))
        return run_of(found[0]) if found else None

    def list_runs(
        self, status: RunStatus | None = None, limit: int = 100, after: str | None = None
    ) -> Sequence[RunRow]:
        """Return runs, newest first.

        Args:
            status: Status of the runs to return.
            limit: Maximum number of runs.
            after: Id of a run; only the runs that follow it are returned.
        """
        of_status = '' if status is None else 'AND status = ?'
        later = '' if after is None else 'AND (created_at, id) < (SELECT created_at, id FROM runs WHERE id = ?)'
        found = self._select(
            f'SELECT {RUN_COLUMNS} FROM runs WHERE 1 = 1 {of_status} {later} ORDER BY created_at DESC, id DESC LIMIT ?',
            (*(each for each in (status, after) if each is not None), limit),
        )
        return [run_of(each) for each in found]

    def park(
        self,
        run_id: str,
        segment: int,
        state: str,
        requests: Sequence[Row],
        deadline: datetime | None = None,
        *,
        nested: Sequence[RunRow] = (),
        about: Mapping[str, tuple[str, int]] = MappingProxyType({}),
        at: datetime,
    ) -> bool:
        """In one atomic step, end a segment, post the run's requests and start its nested runs. The run then waits for
        the answers, and for the ends of the nested runs.

        Args:
            run_id: The run.
            segment: The current segment of the run. Segment numbers increase by one.
            state: The input of the next segment.
            requests: The requests to post. Existing requests are not changed, whether answered or not.
            deadline: Time from which the requests take no answer any more, by the clock of the database.
            nested: The nested runs to start. Existing runs are not changed, whether ended or not.
            about: Key and attempt of the unsettled execution that a request asks about, by the request's id. If the
                execution was settled meanwhile, the request is not posted.
            at: The current time.

        Returns:
            Whether this call parked the run. If `False`, the segment had ended before, and nothing was changed.
        """
        with self.inbox_store.transaction() as execute:
            parked = execute(
                "UPDATE runs SET status = 'waiting', segment = segment + 1, state = ?, changed_at = ? "
                "WHERE id = ? AND segment = ? AND status = 'queued'",
                (state, milliseconds_of(at), run_id, segment),
            )
            if parked.rowcount != 1:
                return False
            for row in requests:
                # Locks the row, so that a worker that settles the call at this moment finds the question.
                # (test_store.py: test_a_call_that_is_settled_while_its_run_is_parked_leaves_no_open_question)
                if (
                    row.id in about
                    and not execute(
                        f'UPDATE executions SET state = state WHERE key = ? AND attempt = ? AND {_IS_UNSETTLED}',
                        about[row.id],
                    ).rowcount
                ):
                    continue
                self.inbox_store.add_parked(execute, row, run_id, deadline)
            for each in nested:
                insert_run(execute, each)
            return True

    def ready(self, agents: Sequence[str], limit: int) -> Sequence[tuple[str, int]]:
        """Return the ids and segments of the agents' runs that never began, or no longer wait for an answer or for the
        end of a nested run.

        This method reads every waiting run. `ready_after` does not.
        """
        is_ready = _is_ready(agents, self.inbox_store.clock)
        ready = f'SELECT id, segment FROM runs WHERE {is_ready} ORDER BY status DESC, changed_at LIMIT ?'
        found = self._select(ready, (*agents, limit))
        return [(run_id, segment) for run_id, segment in found]

    def ready_after(self, agents: Sequence[str], limit: int, settled: Collection[str]) -> Sequence[tuple[str, int]]:
        """Like `ready`, but return only runs that never began or that waited for a request in `settled`."""
        is_ready = _is_ready(agents, self.inbox_store.clock)
        with self.inbox_store.reading() as execute:
            queued = f"SELECT id, segment FROM runs WHERE {is_ready} AND status = 'queued' ORDER BY changed_at LIMIT ?"
            found = list(execute(queued, (*agents, limit)).fetchall())
            if settled:
                ids = ', '.join('?' * len(settled))
                # SQLite keeps the order of a cross join. Otherwise it looks at all runs that wait.
                answered = (
                    'SELECT DISTINCT runs.id, segment FROM requests AS settled CROSS JOIN runs '
                    f"WHERE settled.id IN ({ids}) AND runs.id = settled.run AND {is_ready} AND status = 'waiting'"
                )
                found += execute(answered, (*settled, *agents)).fetchall()
        return [(run_id, segment) for run_id, segment in found]

    def still_ready(self, agents: Sequence[str], segments: Sequence[tuple[str, int]]) -> Sequence[RunRow]:
        """Return those of the runs, given by their ids and segments, that `ready` would still return."""
        which = ' OR '.join(['(id = ? AND segment = ?)'] * len(segments))
        values = (each for segment in segments for each in segment)
        found = self._select(
            f'SELECT {RUN_COLUMNS} FROM runs WHERE ({which}) AND {_is_ready(agents, self.inbox_store.clock)}',
            (*values, *agents),
        )
        return [run_of(each) for each in found]

    def resume(self, run_id: str, segment: int, *, at: datetime) -> RunRow | None:
        """Start a segment, or continue it after a crash.

        Returns:
            The run, or `None` if the segment is not the run's current segment, and nothing was changed.
        """
        with self.inbox_store.transaction() as execute:
            found = execute(
                "UPDATE runs SET status = 'queued', changed_at = ? "
                f"WHERE id = ? AND segment = ? AND status IN ('queued', 'waiting') RETURNING {RUN_COLUMNS}",
                (milliseconds_of(at), run_id, segment),
            ).fetchall()
        return run_of(found[0]) if found else None

    def finish(
        self,
        run_id: str,
        segment: int,
        status: Literal['done', 'failed'],
        outcome: str,
        *,
        state: str | None = None,
        at: datetime,
    ) -> bool:
        """End a run and its current segment. Return `False`, and change nothing, if that segment has ended.

        Nested runs that have not ended are cancelled. `state` is what the run leaves to the run above it; `None` leaves
        the input of its last segment.
        """
        return self._end(run_id, 'AND segment = ?', (segment,), status, outcome, at, state)

    def cancel(self, run_id: str, *, at: datetime) -> bool:
        """Cancel a run and its nested runs, at any depth. Return `False` if the run does not exist or has ended."""
        return self._end(run_id, '', (), 'cancelled', None, at)

    def _end(
        self,
        run_id: str,
        which: str,
        values: tuple[int, ...],
        status: RunStatus,
        outcome: str | None,
        at: datetime,
        state: str | None = None,
    ) -> bool:
        with self.inbox_store.transaction() as execute:
            ended = execute(
                'UPDATE runs SET status = ?, outcome = ?, changed_at = ?, state = coalesce(?, state) '
                f"WHERE id = ? AND status IN ('queued', 'waiting') {which}",
                (status, outcome, milliseconds_of(at), state, run_id, *values),
            )
            if ended.rowcount != 1:
                return False
            cancel = (
                "UPDATE runs SET status = 'cancelled', changed_at = ? "
                f"WHERE status IN ('queued', 'waiting') AND id IN ({_TREE})"
            )
            # A nested run may be starting others while it is cancelled. They are found when it can start no more.
            # (test_store.py: test_a_nested_run_that_starts_another_while_it_is_cancelled_leaves_none)
            while execute(cancel, (milliseconds_of(at), run_id)).rowcount:
                pass
            self.inbox_store.settle_parked(execute, 'withdrawn', at, f'run IN ({_TREE})', (run_id,))
            return True

    def nested_in(self, run_id: str) -> Sequence[RunRow]:
        """Return the runs that are nested in a run, at any depth, oldest first."""
        found = self._select(
            f'SELECT {RUN_COLUMNS} FROM runs WHERE id IN ({_TREE}) AND id <> ? ORDER BY created_at, id',
            (run_id, run_id),
        )
        return [run_of(each) for each in found]

    def requests_of(self, run_id: str) -> Sequence[Row]:
        """Return all requests of a run, oldest first."""
        return self.inbox_store.parked_of(run_id)

    def expire(self) -> int:
        """Let requests expire if their deadline has passed by the clock of the database, and return their number."""
        # Usually there are none, and even an empty change has to wait for the disk.
        is_due = f'deadline <= {self.inbox_store.clock}'
        if not self._select(f"SELECT 1 FROM requests WHERE state = 'pending' AND {is_due} LIMIT 1", ()):
            return 0
        now = self.inbox_store.now()
        with self.inbox_store.transaction() as execute:
            return self.inbox_store.settle_parked(execute, 'expired', now, is_due, ())

    def prune(self, before: datetime) -> int:
        """Delete runs that ended before a given time, with their executions, and return the number of runs.

        A nested run is deleted together with the run above. Executions are kept if their run is not in the store,
        because such a run may be resumed by hand at any time.
        """
        ended = (
            'WITH RECURSIVE tree (id) AS ('
            "SELECT id FROM runs WHERE status NOT IN ('queued', 'waiting') AND changed_at < ? "
            'AND NOT EXISTS (SELECT 1 FROM runs AS above WHERE above.id = runs.parent) '
            'UNION SELECT runs.id FROM runs JOIN tree ON runs.parent = tree.id) SELECT id FROM tree'
        )
        with self.inbox_store.transaction() as execute:
            execute(f'DELETE FROM executions WHERE run_id IN ({ended})', (milliseconds_of(before),))
            return execute(f'DELETE FROM runs WHERE id IN ({ended})', (milliseconds_of(before),)).rowcount

    # Executions

    def add_execution(self, row: ExecutionRow) -> bool:
        """Add an execution. Return `False`, and change nothing, if the attempt already exists."""
        with self.inbox_store.transaction() as execute:
            return insert_execution(execute, row)

    def retry(self, row: ExecutionRow, note: str | None = None) -> bool:
        """Add another attempt. Afterwards, the previous attempt, whose outcome is unknown, can no longer be settled.

        Returns:
            Whether the attempt was added. If `False`, the outcome of the previous attempt is known, or the call was
            already tried again.
        """
        with self.inbox_store.transaction() as execute:
            given_up = execute(
                'UPDATE executions SET owner = NULL, result = coalesce(?, result) '
                "WHERE key = ? AND attempt = ? AND state = 'unknown' AND owner IS NOT NULL "
                "AND coalesce(result, '') = ?",
                (note, row.key, row.attempt - 1, row.result or ''),
            )
            if given_up.rowcount != 1:
                return False
            self._withdraw(execute, row, row.attempt - 1, whole(row.changed_at))
            return insert_execution(execute, replace(row, result=None))

    def move(
        self,
        row: ExecutionRow,
        to: ExecutionState,
        *,
        owner: str | None,
        at: datetime,
        result: str | None = None,
    ) -> bool:
        """Change an execution in one atomic step, if its state and owner are still those of `row`.

        If this settles a call whose outcome was unknown, the question about it is withdrawn in the same step.

        Args:
            row: The execution, as last read.
            to: The new state; `MOVES` must allow the change.
            owner: The worker that holds the execution from now on.
            at: The current time.
            result: The outcome.

        Returns:
            Whether this call changed the execution. If `False`, nothing was changed.

        Raises:
            ValueError: `MOVES` does not allow this change.
        """
        if to not in MOVES[row.state]:
            raise ValueError(f'an execution cannot change from {row.state} to {to}')
        moment = milliseconds_of(at)
        with self.inbox_store.transaction() as execute:
            moved = execute(
                'UPDATE executions SET state = ?, owner = ?, result = ?, changed_at = ?, '
                "started_at = CASE WHEN CAST(? AS text) = 'executing' THEN ? ELSE started_at END "
                "WHERE key = ? AND attempt = ? AND state = ? AND coalesce(owner, '') = ? AND coalesce(result, '') = ? "
                # Attack: a run is cancelled while its worker is about to begin, or is stopped there
                # (test_ledger.py: test_a_call_of_a_run_that_has_ended_meanwhile_does_not_begin).
                "AND (CAST(? AS text) <> 'executing' OR NOT EXISTS ("
                "SELECT 1 FROM runs WHERE id = run_id AND status NOT IN ('queued', 'waiting')))",
                (
                    *(to, owner, result, moment, to, moment),
                    *(row.key, row.attempt, row.state, row.owner or '', row.result or '', to),
                ),
            )
            if moved.rowcount != 1:
                return False
            if row.state == 'unknown':
                self._withdraw(execute, row, row.attempt, at)
            return True

    def _withdraw(self, execute: Execute, row: ExecutionRow, attempt: int, at: datetime) -> None:
        """Withdraw the question about an attempt whose outcome was unknown."""
        # Attack: a frozen worker goes on and records the result, and an approver of the open question lets the call run
        # again (test_store.py: test_settling_a_call_withdraws_the_question_about_it).
        question = derived_id(self._secret(execute), row.run_id, about_unknown(row.key, attempt))
        self.inbox_store.settle_parked(execute, 'withdrawn', at, 'id = ?', (question,))

    def latest(self, key: str) -> ExecutionRow | None:
        """Return the last attempt to execute a call, or `None`."""
        found = self._select(
            f'SELECT {EXECUTION_COLUMNS} FROM executions WHERE key = ? ORDER BY attempt DESC LIMIT 1', (key,)
        )
        return execution_of(found[0]) if found else None

    def executions_of(self, run_id: str) -> Sequence[ExecutionRow]:
        """Return all executions of a run."""
        found = self._select(
            f'SELECT {EXECUTION_COLUMNS} FROM executions WHERE run_id = ? ORDER BY key, attempt', (run_id,)
        )
        return [execution_of(each) for each in found]

    def unknown_executions(self, limit: int = 100) -> Sequence[ExecutionRow]:
        """Return executions whose outcome is unknown and was not settled, oldest first."""
        found = self._select(
            f'SELECT {EXECUTION_COLUMNS} FROM executions WHERE {_IS_UNSETTLED} ORDER BY changed_at, key LIMIT ?',
            (limit,),
        )
        return [execution_of(each) for each in found]

    def _select(self, statement: str, values: tuple[Any, ...]) -> Sequence[tuple[Any, ...]]:
        with self.inbox_store.reading() as execute:
            return execute(statement, values).fetchall()


ASKED_AGAIN_MS = 60_000
"""Milliseconds after the beginning of a segment until its run counts as ready again."""

_IS_UNSETTLED = "state = 'unknown' AND owner IS NOT NULL AND result IS NULL"

_TREE = (
    'WITH RECURSIVE tree (id) AS ('
    'SELECT id FROM runs WHERE id = ? UNION SELECT runs.id FROM runs JOIN tree ON runs.parent = tree.id) '
    'SELECT id FROM tree'
)
"""SQL query for the ids of a run and of all runs nested in it."""


def _is_ready(agents: Sequence[str], clock: str) -> str:
    """Return the SQL condition for the runs of these agents that wait for nothing, and that no worker has begun."""
    return (
        f"agent IN ({', '.join('?' * len(agents))}) AND status IN ('queued', 'waiting') "
        # A segment has begun, and the engine continues it after a crash. After a while, the engine is asked anyway: its
        # records may be those of an older backup.
        f"AND NOT (status = 'queued' AND changed_at > created_at AND changed_at > {clock} - {ASKED_AGAIN_MS}) "
        "AND NOT EXISTS (SELECT 1 FROM requests WHERE run = runs.id AND state = 'pending') "
        'AND NOT EXISTS ('
        "SELECT 1 FROM runs AS nested WHERE nested.parent = runs.id AND nested.status IN ('queued', 'waiting'))"
    )


def derived_id(secret: bytes, run_id: str, of: Sequence[object]) -> str:
    """Return the id of a parked question or a nested run of a run. The secret key of the store makes it unguessable.

    Args:
        secret: See `DurableStore.secret`.
        run_id: The id of the run.
        of: JSON values that name the subject. The same values give the same id.
    """
    made = hmac.digest(secret, canonical_json([run_id, *of]).encode(), 'sha256')
    return base64.urlsafe_b64encode(made).decode().rstrip('=')


def about_unknown(key: str, attempt: int) -> Sequence[object]:
    """Return what the question about a call of unknown outcome is about; see `derived_id`."""
    return ['unknown', key, attempt]


def open_store(url: str) -> DurableStore:
    """Open the database that inbox, runs and executions share. The store connects when it is first used.

    Args:
        url: `postgresql://user@host/database`, or the path of an SQLite file, optionally with `sqlite:///` before it.

    Raises:
        ValueError: The URL has none of these forms, or cannot be parsed.
        MissingExtraError: PostgreSQL needs the extra `postgres`.
    """
    scheme, separator, rest = url.partition('://')
    if scheme in ('postgresql', 'postgres') and separator:
        from tool_approval.inbox.stores.postgres import PostgresStore

        return DurableStore(PostgresStore(url))
    if separator and (scheme != 'sqlite' or not rest.startswith('/')):
        raise ValueError('the store must be postgresql://..., sqlite:///path, or the path of a file')
    path = rest[1:] if separator else url
    return DurableStore(SQLiteStore(path, synchronous='FULL'))
