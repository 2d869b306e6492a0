"""The life of a request as a table, and the seam to what keeps requests: a file, a database."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal, Protocol, runtime_checkable

State = Literal['pending', 'approved', 'denied', 'expired', 'withdrawn']
"""What a request in the inbox can be."""

Settled = Literal['approved', 'denied', 'expired', 'withdrawn']
"""What it can become. All four are final."""

MOVES: Mapping[State, frozenset[Settled]] = MappingProxyType(
    {
        'pending': frozenset[Settled]({'approved', 'denied', 'expired', 'withdrawn'}),
        'approved': frozenset[Settled](),
        'denied': frozenset[Settled](),
        'expired': frozenset[Settled](),
        'withdrawn': frozenset[Settled](),
    }
)
"""From each state to those it can become. A store makes each move by one atomic step: it holds or nothing changes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One request as a store keeps it. The texts are ASCII, and mean nothing to a store."""

    id: str
    """The request's."""
    owner: str
    """The process that waits; its heartbeat counts for all its requests."""
    content: str
    """What is shown, at most 4 MiB."""
    posted_at: datetime
    """In UTC, in whole milliseconds."""
    state: State = 'pending'
    """Where in its life it is."""
    settled_at: datetime | None = None
    """When it was settled."""
    answer: str | None = None
    """What was answered, at most 4 MiB; `None` unless it was approved or denied."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Changes:
    """What has happened to the requests of a store; ids."""

    added: frozenset[str] = frozenset()
    """Those that are new."""
    settled: frozenset[str] = frozenset()
    """Those that are no longer open."""


class InboxStore(Protocol):
    """Keeps requests for any number of processes. `tool_approval.testing.check_inbox_store` tests one.

    All methods block, and are called in threads of the inbox's own, never on an event loop: `watch` in one, all others
    in another at the same time. Everything but `close` may raise

    - `InboxUnavailable`: it cannot be reached or written to now. Either nothing was changed, or the whole of it and the
      connection broke before it could say so. The next call tries to reach it anew. A call has done its work or raised
      within ten seconds.
    - `InboxUntrusted`: it is not what it should be, and only a person can change that. Nothing was changed.

    What a method has changed lasts when it returns, unless the machine loses its power.
    """

    place: str
    """Where it is, for people; without secrets."""

    def add(self, row: Row) -> None:
        """Keep a new request. The same id twice raises `InboxUntrusted`."""
        ...  # pragma: no cover - a protocol has no body

    def settle(self, request_id: str, state: Settled, *, at: datetime, answer: str | None = None) -> bool:
        """Make a request `state` if it is still pending, in one atomic step.

        Returns:
            Whether it was this call that did so. If not, nothing was changed.
        """
        ...  # pragma: no cover - a protocol has no body

    def get(self, request_ids: Collection[str]) -> Sequence[Row]:
        """Those of the requests that there are, in any order."""
        ...  # pragma: no cover - a protocol has no body

    def pending_of(self, owner: str) -> Collection[str]:
        """The ids of an owner's open requests."""
        ...  # pragma: no cover - a protocol has no body

    def open(self, limit: int) -> Sequence[Row]:
        """Open requests, the oldest first."""
        ...  # pragma: no cover - a protocol has no body

    def history(self, limit: int, before: datetime | None = None, after: str | None = None) -> Sequence[Row]:
        """Settled requests, the newest first.

        Args:
            limit: How many at most.
            before: Only those settled before this moment.
            after: Only those that follow the settled request of this id in the same order; none if there is no such.
        """
        ...  # pragma: no cover - a protocol has no body

    def beat(self, owner: str, number: int) -> None:
        """Note that an owner is alive. The numbers of one owner grow."""
        ...  # pragma: no cover - a protocol has no body

    def beats(self) -> Mapping[str, int]:
        """The last number of each owner with open requests; 0 for one that has noted none."""
        ...  # pragma: no cover - a protocol has no body

    def withdraw_all_of(self, owner: str, number: int, *, at: datetime) -> int:
        """Make all open requests of an owner `withdrawn`, unless it has noted a later number meanwhile.

        Returns:
            How many there were.
        """
        ...  # pragma: no cover - a protocol has no body

    def watch(self, timeout_s: float) -> Changes | None:
        """Wait until requests are added or settled, by whatever process, or the time has passed.

        Returns:
            What has changed since the last call, each at least once. A request that was added and settled since may be
            among the settled alone. `None` if changes may have been missed: on the first call, and after every
            interruption.
        """
        ...  # pragma: no cover - a protocol has no body

    def prune(self, before: datetime) -> int:
        """Forget the requests that were settled before a moment; how many there were."""
        ...  # pragma: no cover - a protocol has no body

    def close(self) -> None:
        """Let go of files and connections; whoever is in `watch` returns soon. May be called twice."""
        ...  # pragma: no cover - a protocol has no body


class Found(Protocol):
    """What a statement has done, or found."""

    @property
    def rowcount(self) -> int:
        """How many rows it changed."""
        ...  # pragma: no cover - a protocol has no body

    def fetchall(self) -> Sequence[tuple[Any, ...]]:
        """The rows it found."""
        ...  # pragma: no cover - a protocol has no body


class Execute(Protocol):
    """Executes a statement; `?` is the place of a value."""

    def __call__(self, statement: str, values: tuple[Any, ...] = (), /) -> Found:
        """Execute it."""
        ...  # pragma: no cover - a protocol has no body


@runtime_checkable
class ParkingStore(InboxStore, Protocol):
    """A store in a database that also keeps durable runs, and their requests: these are *parked*.

    A parked request belongs to a run and to no process: no lease ends it, and it is kept until its run has ended. See
    `tool_approval.durable`.
    """

    def transaction(self) -> AbstractContextManager[Execute]:
        """Execute statements that hold together: all of them, or none if anything is raised."""
        ...  # pragma: no cover - a protocol has no body

    def reading(self) -> AbstractContextManager[Execute]:
        """Execute statements that change nothing, each for itself."""
        ...  # pragma: no cover - a protocol has no body

    def add_parked(self, execute: Execute, row: Row, run_id: str, deadline: int | None) -> None:
        """In a transaction: keep a request of a run. One that is there already is left as it is."""
        ...  # pragma: no cover - a protocol has no body

    def settle_parked(self, execute: Execute, state: Settled, at: datetime, which: str, value: str | int) -> int:
        """In a transaction: settle those pending requests for which the condition `which` holds, with its value.

        Returns:
            How many there were.
        """
        ...  # pragma: no cover - a protocol has no body

    def parked_of(self, run_id: str) -> Sequence[Row]:
        """All requests of a run, the oldest first."""
        ...  # pragma: no cover - a protocol has no body
