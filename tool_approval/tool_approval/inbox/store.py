"""Define the states of a request and the protocols of a store."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal, Protocol, runtime_checkable

State = Literal['pending', 'approved', 'denied', 'expired', 'withdrawn']
"""State of a request in the inbox."""

Settled = Literal['approved', 'denied', 'expired', 'withdrawn']
"""Final states of a request."""

MOVES: Mapping[State, frozenset[Settled]] = MappingProxyType(
    {
        'pending': frozenset[Settled]({'approved', 'denied', 'expired', 'withdrawn'}),
        'approved': frozenset[Settled](),
        'denied': frozenset[Settled](),
        'expired': frozenset[Settled](),
        'withdrawn': frozenset[Settled](),
    }
)
"""States that may follow each state. A store changes the state of a request in one atomic step."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A request in the form in which a store keeps it. The texts are ASCII, and the store does not interpret them."""

    id: str
    """Id of the request."""
    owner: str
    """Id of the process that waits for the answer. A process sends one heartbeat for all its requests."""
    content: str
    """`Content` as JSON, at most 4 MiB."""
    posted_at: datetime | None
    """UTC time at which the request was posted, in whole milliseconds; `None` if the stored time is damaged."""
    state: State = 'pending'
    """State of the request."""
    settled_at: datetime | None = None
    """UTC time at which the request was settled, in whole milliseconds; `None` while the request is open, and if the
    stored time is damaged."""
    answer: str | None = None
    """`Answer` as JSON, at most 4 MiB; `None` unless the request was approved or denied."""


def whole(posted_at: datetime | None) -> datetime:
    """Return the time of a row to store. Only rows that a store has read can have a damaged one."""
    assert posted_at is not None, 'a damaged row is never stored again'
    return posted_at


@dataclass(frozen=True, kw_only=True, slots=True)
class Changes:
    """Ids of requests that were added to a store or settled there."""

    added: frozenset[str] = frozenset()
    """Ids of new requests."""
    settled: frozenset[str] = frozenset()
    """Ids of requests that are no longer open."""
    has_runs: bool = False
    """Whether a durable run was added. A store that keeps no durable runs never sets this."""


class InboxStore(Protocol):
    """Keeps requests for any number of processes. `tool_approval.testing.check_inbox_store` tests an implementation.

    All methods block. The inbox never calls a store on an event loop. The inbox has one thread for `watch` and another
    thread for all other methods, so `watch` and another method may run at the same time. Each method returns or raises
    within ten seconds. All methods except `close` may raise these exceptions:

    - `InboxUnavailable`: The store cannot be reached or written to. Either nothing was changed, or the change is
      complete and the connection broke before the store could confirm it. The next call connects again.
    - `InboxUntrusted`: The store is not in the expected state, so a person must repair it. Nothing was changed.
      A damaged row does not raise this error: it is returned as far as it can be read.

    When a method returns, its change is stored; only a power cut may still undo the change.
    """

    place: str
    """Location of the store as shown in messages, without secrets."""

    def now(self) -> datetime:
        """Return the UTC time by the clock that decides about deadlines, in whole milliseconds."""
        ...  # pragma: no cover - a protocol has no body

    def add(self, row: Row, deadline: datetime | None = None) -> None:
        """Add a new request. Raise `InboxUntrusted` if the id is already in use.

        Args:
            row: The request.
            deadline: Time from which `settle` takes no answer any more.
        """
        ...  # pragma: no cover - a protocol has no body

    def settle(self, request_id: str, state: Settled, *, at: datetime, answer: str | None = None) -> bool:
        """Set the state of a request if it is still pending, in one atomic step.

        The same step compares the store's own clock with the deadline. An answer after the deadline is not kept: the
        request expires instead, at the time of that clock.

        Returns:
            Whether this call gave the request this state. If `False`, the request had been settled, or has expired.
        """
        ...  # pragma: no cover - a protocol has no body

    def get(self, request_ids: Collection[str]) -> Sequence[Row]:
        """Return the existing requests with these ids, in any order."""
        ...  # pragma: no cover - a protocol has no body

    def pending_of(self, owner: str) -> Collection[str]:
        """Return the ids of an owner's open requests."""
        ...  # pragma: no cover - a protocol has no body

    def open(self, limit: int) -> Sequence[Row]:
        """Return open requests, oldest first."""
        ...  # pragma: no cover - a protocol has no body

    def history(self, limit: int, before: datetime | None = None, after: str | None = None) -> Sequence[Row]:
        """Return settled requests, newest first.

        Args:
            limit: Maximum number of requests.
            before: Return only requests settled before this time.
            after: Return only requests listed after the settled request with this id, or none if the id is unknown.
        """
        ...  # pragma: no cover - a protocol has no body

    def beat(self, owner: str, number: int) -> None:
        """Record a heartbeat. An owner gives each of its heartbeats a higher number than the last."""
        ...  # pragma: no cover - a protocol has no body

    def beats(self) -> Mapping[str, int]:
        """Return the last heartbeat number of each owner of open requests, or 0 if the owner has sent no heartbeat."""
        ...  # pragma: no cover - a protocol has no body

    def withdraw_all_of(self, owner: str, number: int, *, at: datetime) -> int:
        """Withdraw all open requests of an owner if the number of the owner's last heartbeat is still `number`.

        Returns:
            Number of withdrawn requests.
        """
        ...  # pragma: no cover - a protocol has no body

    def watch(self, timeout_s: float) -> Changes | None:
        """Wait until any process adds or settles a request, or the time has passed.

        If the store keeps durable runs, a new run also ends the wait.

        Returns:
            All changes since the last call, each at least once. A request that was both added and settled may appear
            only as settled. `None` if changes may have been missed: on the first call, and after each interruption.
        """
        ...  # pragma: no cover - a protocol has no body

    def prune(self, before: datetime) -> int:
        """Delete the requests settled before a time, and return their number."""
        ...  # pragma: no cover - a protocol has no body

    def close(self) -> None:
        """Close files and connections, and make a running `watch` return soon. A second call does nothing."""
        ...  # pragma: no cover - a protocol has no body


class StatementResult(Protocol):
    """Result of an SQL statement."""

    @property
    def rowcount(self) -> int:
        """Number of rows that the statement changed."""
        ...  # pragma: no cover - a protocol has no body

    def fetchall(self) -> Sequence[tuple[Any, ...]]:
        """Return all rows of the result."""
        ...  # pragma: no cover - a protocol has no body


class Execute(Protocol):
    """Executes SQL statements in which `?` is the placeholder of a value."""

    def __call__(self, statement: str, values: tuple[Any, ...] = (), /) -> StatementResult:
        """Execute a statement."""
        ...  # pragma: no cover - a protocol has no body


@runtime_checkable
class ParkingStore(InboxStore, Protocol):
    """A database store that also keeps durable runs and their *parked* requests.

    A parked request belongs to a run, not to a process. Such a request does not depend on a lease, and is kept until
    the run has ended. See `tool_approval.durable`.
    """

    clock: str
    """SQL expression for the database's current time, in milliseconds since 1970."""

    def transaction(self) -> AbstractContextManager[Execute]:
        """Open a transaction, which is rolled back if an exception is raised."""
        ...  # pragma: no cover - a protocol has no body

    def together(self) -> AbstractContextManager[None]:
        """Make the changes of this thread one transaction, which is committed at the end of the context.

        An error of the database rolls back all changes, and the context then raises an error. Any other exception rolls
        back only the change that raised it, and must not leave the context.
        """
        ...  # pragma: no cover - a protocol has no body

    def reading(self) -> AbstractContextManager[Execute]:
        """Yield an executor for statements that only read. Each statement is a separate transaction."""
        ...  # pragma: no cover - a protocol has no body

    def add_parked(self, execute: Execute, row: Row, run_id: str, deadline: datetime | None) -> None:
        """Add a run's request as part of a transaction. Leave an existing request unchanged."""
        ...  # pragma: no cover - a protocol has no body

    def settle_parked(
        self, execute: Execute, state: Settled, at: datetime, which: str, values: tuple[str | int, ...]
    ) -> int:
        """Settle pending requests as part of a transaction.

        Args:
            execute: Executes statements in the transaction.
            state: New state of the requests.
            at: Time at which the requests are settled.
            which: SQL condition that selects the requests.
            values: Value for each `?` in `which`.

        Returns:
            Number of settled requests.
        """
        ...  # pragma: no cover - a protocol has no body

    def parked_of(self, run_id: str) -> Sequence[Row]:
        """Return all requests of a run, oldest first."""
        ...  # pragma: no cover - a protocol has no body
