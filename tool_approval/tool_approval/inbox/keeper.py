"""Run the inbox's background thread, which wakes waiters, sends heartbeats and reports changes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta

from .entry import read_entry
from .errors import InboxError
from .store import InboxStore, Settled
from .worker import Worker

Waiter = asyncio.Future[None]


class Waiting:
    """Futures by request id. They may belong to different event loops, and can be woken from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiters: dict[str, list[Waiter]] = {}

    def add(self, request_id: str) -> Waiter:
        """Add a future of the running loop. The caller must pass the future to `remove` afterwards."""
        waiter: Waiter = asyncio.get_running_loop().create_future()
        with self._lock:
            self._waiters.setdefault(request_id, []).append(waiter)
        return waiter

    def remove(self, request_id: str, waiter: Waiter) -> None:
        """Remove a future."""
        with self._lock:
            waiters = self._waiters[request_id]
            waiters.remove(waiter)
            if not waiters:
                del self._waiters[request_id]

    def ids(self) -> Collection[str]:
        """Return the ids of the awaited requests."""
        with self._lock:
            return list(self._waiters)

    def __len__(self) -> int:
        """Return the number of awaited requests."""
        return len(self._waiters)

    def wake(self, request_ids: Collection[str]) -> None:
        """Wake the waiters of these requests, with one callback for each event loop."""
        by_loop: dict[asyncio.AbstractEventLoop, list[Waiter]] = {}
        with self._lock:
            for request_id in request_ids:
                for waiter in self._waiters.get(request_id, ()):
                    by_loop.setdefault(waiter.get_loop(), []).append(waiter)
        for loop, waiters in by_loop.items():
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(_wake, waiters)


def _wake(waiters: Sequence[Waiter]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)


BEAT_S = 10.0
"""Seconds between heartbeats, and between checks of other processes' heartbeats. A lease lasts three such intervals,
so one heartbeat may fail."""

LEASE_S = 30.0
"""Source: the inbox's design. A process without a heartbeat for this many seconds is considered gone."""


class Leases:
    """Detects processes whose heartbeat number no longer increases.

    A time that another process or a database has written can be wrong, because clocks are sometimes changed. Each
    process therefore measures with its own monotonic clock how long a heartbeat number has been the same.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, lease_s: float = LEASE_S) -> None:
        self._clock = clock
        self._lease_s = lease_s
        self._seen: dict[str, tuple[int, float]] = {}
        self._looked_at: float | None = None

    def gone(self, beats: Mapping[str, int]) -> Mapping[str, int]:
        """Return the owners that sent no heartbeat for a whole lease, with their last heartbeat number. The measurement
        restarts if the last check was more than half a lease ago.
        """
        now = self._clock()
        if self._looked_at is None or now - self._looked_at > self._lease_s / 2:
            # This process was suspended or the store was unavailable, so other processes may have missed heartbeats.
            self._seen.clear()
        self._looked_at = now
        seen = self._seen
        self._seen = {
            owner: seen[owner] if owner in seen and seen[owner][0] == number else (number, now)
            for owner, number in beats.items()
        }
        return {owner: number for owner, (number, since) in self._seen.items() if now - since >= self._lease_s}

    def forget(self) -> None:
        """Restart the measurement after an outage of the store, during which no process could record a heartbeat."""
        self._looked_at = None


WATCH_S = 0.5
"""Maximum seconds that a wait for changes lasts. A change ends the wait early. Closing may take just as long."""

PRUNE_S = 3600.0
"""Seconds between deletions of old history. The history is kept for weeks, so an extra hour does not matter."""

LONGEST_PAUSE_S = 2.0
"""Maximum number of seconds until the inbox notices that a store is available again."""

MOST_READ = 1_000
"""Open requests that are read at once, as `Inbox.open` returns them."""

_ESCALATES = '"escalate":{'
"""Part of the stored content of every request that others may answer after a time."""

Listener = Callable[[frozenset[str] | None], None]
"""Called in the keeper's thread with the ids of changed requests, and of requests that others may answer from now on,
or with `None` if any request may have changed."""

_log = logging.getLogger('tool_approval')


class Keeper:
    """The background thread of an inbox. The thread sleeps while no caller waits or listens."""

    def __init__(
        self,
        store: InboxStore,
        worker: Worker,
        waiting: Waiting,
        *,
        owner: str,
        clock: Callable[[], float],
        now: Callable[[], datetime],
        keep_history: timedelta,
    ) -> None:
        self._store = store
        self._worker = worker
        self._waiting = waiting
        self._owner = owner
        self._clock = clock
        self._now = now
        self._keep_history = keep_history
        self._leases = Leases(clock)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._nudged = threading.Event()
        self._listeners: list[Listener] = []
        self._others_at: dict[str, list[datetime]] = {}
        self._unread_since: datetime | None = None
        self._late: dict[str, Settled] = {}
        self._due_at = 0.0
        self._prune_at = 0.0
        self._beats = 0
        self._failures = 0
        self._is_recheck_due = False
        self.has_posted = False
        """Whether this process has posted requests, for which it must send heartbeats."""

    def start(self) -> None:
        """Start the thread if it is not running."""
        with self._lock:
            if self._thread is None and not self._is_closed:
                self._due_at = self._prune_at = self._clock()
                self._thread = threading.Thread(target=self._run, name='tool-approval-inbox-keeper', daemon=True)
                self._thread.start()

    def nudge(self) -> None:
        """Check for changes now, because a caller is waiting."""
        self._nudged.set()

    def recheck(self) -> None:
        """Check all awaited requests as soon as the store can be reached."""
        self._is_recheck_due = True
        self._nudged.set()

    def settle_later(self, request_id: str, state: Settled) -> None:
        """Settle a request as soon as the store can be reached. No caller waits for this request."""
        with self._lock:
            self._late[request_id] = state
        self._due_at = min(self._due_at, self._clock() + LONGEST_PAUSE_S)
        self._nudged.set()

    def listen(self, listener: Listener) -> None:
        """Report all changes to a listener."""
        with self._lock:
            self._listeners.append(listener)
        self._read_all(self._now())
        self.nudge()

    def stop_listening(self, listener: Listener) -> None:
        """Stop reporting changes to a listener."""
        with self._lock:
            self._listeners.remove(listener)

    def close(self) -> None:
        """Stop the thread."""
        with self._lock:
            self._is_closed = True
            thread = self._thread
        self._nudged.set()
        if thread is not None:
            thread.join(WATCH_S * 4)

    def _run(self) -> None:
        while not self._is_closed:
            self._nudged.clear()
            try:
                self._look()
            except Exception as error:  # noqa: BLE001 - without this thread no waiter would be woken again
                self._failed(error)
                self._nudged.wait(min(LONGEST_PAUSE_S, 0.1 * 2 ** min(self._failures, 10)))
                continue
            if not self._is_watched and not self._is_closed:
                self._nudged.wait(max(0.0, self._due_at - self._clock()))

    @property
    def _is_watched(self) -> bool:
        return len(self._waiting) > 0 or bool(self._listeners)

    def _look(self) -> None:
        if self._clock() >= self._due_at:
            self._due_at = self._clock() + BEAT_S
            self._is_recheck_due = False
            self._worker.submit(self._keep_house, self._done)
        elif self._is_recheck_due:
            self._is_recheck_due = False
            self._worker.submit(self._wake_settled, self._done)
        changed = self._store.watch(WATCH_S if self._is_watched else 0.0)
        now = self._now()
        if changed is None:
            self._worker.submit(self._wake_settled, self._done)
            self._read_all(now)
        else:
            self._waiting.wake(changed.settled)
        with self._lock:
            listeners = list(self._listeners)
        if not listeners:
            return
        self._read_escalations(None if changed is None else changed.added, now)
        ids = None if changed is None else changed.added | changed.settled | self._opened(now)
        if ids is None or ids:
            for listener in listeners:
                listener(ids)

    def _read_all(self, since: datetime) -> None:
        """Read all open requests soon, and report those that others may answer since then."""
        with self._lock:
            self._unread_since = min(since, self._unread_since or since)

    def _read_escalations(self, added: Collection[str] | None, now: datetime) -> None:
        """Have the worker find out when others may answer the new requests, or all open ones, too."""
        with self._lock:
            since, self._unread_since = self._unread_since, None
        if since is None and not added:
            return
        begin = since or now

        def read() -> None:
            rows = self._store.open(MOST_READ) if since is not None else self._store.get(added or ())
            for row in rows:
                if _ESCALATES in row.content:
                    with contextlib.suppress(ValueError):  # it cannot be read, and so not be answered
                        if times := [at for at in read_entry(row).others_at if at > begin]:
                            self._others_at.setdefault(row.id, times)

        def done(_: None, error: BaseException | None) -> None:
            if error is not None:
                self._read_all(begin)
            self._done(None, error)

        self._worker.submit(read, done)

    def _opened(self, now: datetime) -> frozenset[str]:
        """Return the requests that others may answer since the last look."""
        found: set[str] = set()
        for request_id, times in list(self._others_at.items()):
            if times[0] <= now:
                found.add(request_id)
                del times[0]
            if not times:
                del self._others_at[request_id]
        return frozenset(found)

    def _keep_house(self) -> None:
        """Send the heartbeat and clean up the store, in the worker's thread."""
        if self.has_posted:
            self._beats += 1
            self._store.beat(self._owner, self._beats)
        with self._lock:
            late = dict(self._late)
        for request_id, state in late.items():
            self._store.settle(request_id, state, at=self._now())
            with self._lock:
                self._late.pop(request_id, None)
        for owner, number in self._leases.gone(self._store.beats()).items():
            count = self._store.withdraw_all_of(owner, number, at=self._now())
            if count:
                _log.warning('%d requests in the inbox were withdrawn: the process that waited for them is gone', count)
        if self._clock() >= self._prune_at:
            self._store.prune(self._now() - self._keep_history)
            self._prune_at = self._clock() + PRUNE_S
        # Limits the delay of a lost wake-up to one round.
        self._wake_settled()

    def _wake_settled(self) -> None:
        """In the worker's thread, wake the waiters of requests that were settled or deleted."""
        waited_for = self._waiting.ids()
        if waited_for:
            still_open = self._store.pending_of(self._owner)
            self._waiting.wake(set(waited_for).difference(still_open))

    def _done(self, _: None, error: BaseException | None) -> None:
        if error is None:
            if self._failures:
                self._failures = 0
                _log.warning('The inbox in %s is available again', self._store.place)
            return
        self._leases.forget()
        self._failed(error)
        self._is_recheck_due = True
        self._due_at = self._clock() + LONGEST_PAUSE_S

    def _failed(self, error: BaseException) -> None:
        self._failures += 1
        if self._failures == 1:
            # The texts of inbox errors hold no arguments.
            problem = str(error) if isinstance(error, InboxError) else type(error).__name__
            _log.error('%s; still waiting', problem)


async def follow(keeper: Keeper) -> AsyncGenerator[frozenset[str] | None]:
    """Yield changes as `Inbox.changes` describes. A slow consumer gets several changes in one item."""
    loop = asyncio.get_running_loop()
    is_changed = asyncio.Event()
    is_all, ids = True, set[str]()

    def collect(changed: frozenset[str] | None) -> None:
        nonlocal is_all
        is_all = is_all or changed is None
        ids.update(changed or ())
        is_changed.set()

    def tell(changed: frozenset[str] | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(collect, changed)

    keeper.listen(tell)
    try:
        is_changed.set()
        while True:
            await is_changed.wait()
            is_changed.clear()
            batch = None if is_all else frozenset(ids)
            is_all = False
            ids.clear()
            yield batch
    finally:
        keeper.stop_listening(tell)
