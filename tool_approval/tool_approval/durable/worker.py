"""Show that a worker process is alive, and continue the durable runs of its agent."""

from __future__ import annotations

import json
import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from tool_approval.core.errors import ApprovalError
from tool_approval.inbox.inbox import KEEP_HISTORY
from tool_approval.inbox.keeper import PRUNE_S
from tool_approval.inbox.store import Changes

from .engine import Engine
from .ledger import Ledger
from .rows import RunRow
from .store import DurableStore

AT_ONCE = 100
"""Maximum number of runs to find in one check. The next check finds the remaining runs."""

WATCH_S = 0.25
"""Seconds between two checks for changes that a store does not announce. Answers and new runs end the wait
immediately."""

SWEEP_S = 2.0
"""Seconds between two checks of all parked runs, to find passed deadlines and missed changes. A check of ten thousand
runs takes a few milliseconds."""

LONGEST_PAUSE_S = 2.0
"""Maximum seconds before the worker notices that a store is available again."""

BEGUN_AT_ONCE = 16
"""Number of segments that a worker begins together. More would only wait for each other, and for the database."""

NEXT_S = 0.5
"""Maximum seconds until the worker begins the next segments, even if the previous ones have not ended, because a model
or a tool may take minutes."""

ROOM_S = 0.02
"""Seconds between two checks of whether the worker can begin the next segments."""

_log = logging.getLogger('tool_approval')


class Sweep:
    """Checks the store repeatedly, in a separate thread.

    If a process receives an answer, it only stores the answer. Every living worker finds the runs that can continue,
    the deadlines that have passed, and the runs of dead workers. Several workers may check at the same time.
    """

    def __init__(
        self,
        store: DurableStore,
        engine: Engine,
        ledger: Ledger,
        *,
        agents: Sequence[str],
        is_readable: Callable[[RunRow], bool],
        lease_s: float,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare the checks. `start` then starts the thread.

        Args:
            store: The store of the runs, which only this object uses and closes.
            engine: Engine that runs the segments.
            ledger: Ledger whose `tick` sends a heartbeat and finds dead workers.
            agents: The agents whose runs this process executes, as in `RunRow.agent`.
            is_readable: Function that returns whether this version can continue a run.
            lease_s: Seconds without a heartbeat after which a worker is treated as dead.
            now: Clock that returns the time of day, for records and for pruning.
            clock: Monotonic clock in seconds.
        """
        self._store = store
        self._engine = engine
        self._ledger = ledger
        self._agents = agents
        self._is_readable = is_readable
        self._beat_s = lease_s / 3
        self._now = now
        self._clock = clock
        self._beat_at = clock()
        self._sweep_at = clock()
        self._prune_at = clock()
        self._next_at = clock()
        self._found: set[tuple[str, int]] = set()
        self._seen: set[tuple[str, int]] = set()
        self._given_up: set[tuple[str, int]] = set()
        self._failures = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name='tool-approval-durable', daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Stop the thread. When this worker's lease has expired, other workers resume its runs."""
        self._ended.set()
        self._thread.join()
        self._store.close()

    def hurry(self) -> None:
        """Check all runs as soon as possible: a nested run has ended, which a store does not announce."""
        self._sweep_at = self._clock()

    def look(self, changed: Changes | None = None) -> None:
        """Check the store once.

        Args:
            changed: Changes since the last check; `None` to check all runs.

        Raises:
            InboxError: The store cannot be used.
        """
        if self._clock() >= self._beat_at:
            self._beat_at = self._clock() + self._beat_s
            for dead in self._ledger.tick(self._engine.workers()):
                _log.warning('A worker of durable runs has died; the workers of its agent resume its runs')
                self._engine.take_up(dead)
                self._store.forget_worker(dead)
            for key, status in self._engine.given_up().items():
                if key not in self._given_up:
                    self._fail(*key, status)
                    self._given_up.add(key)
        if self._clock() >= self._prune_at:
            self._prune_at = self._clock() + PRUNE_S
            before = self._now() - KEEP_HISTORY
            self._store.prune(before)
            self._engine.prune(before)
        if len(self._found) >= BEGUN_AT_ONCE:
            # There is enough to begin. Changes are found afterwards.
            self._sweep_at = self._clock()
        elif changed != Changes() or self._clock() >= self._sweep_at:
            self._find(changed)
        if self._found and (self._engine.running < BEGUN_AT_ONCE or self._clock() >= self._next_at):
            self._next_at = self._clock() + NEXT_S
            self._begin()

    def _find(self, changed: Changes | None) -> None:
        """Find the runs that can continue."""
        # A run is ready until its segment has begun. Until then, it is also among those that this worker has seen.
        limit = len(self._seen) + AT_ONCE
        if changed is None or len(changed.settled) > AT_ONCE or self._clock() >= self._sweep_at:
            self._sweep_at = self._clock() + SWEEP_S
            self._store.expire()
            ready = self._store.ready(self._agents, limit)
            self._seen.intersection_update(ready)
        else:
            ready = self._store.ready_after(self._agents, limit, changed.settled)
        if len(ready) >= limit:
            # There may be more. Otherwise, many answers at once would wait for one sweep after the other.
            self._sweep_at = self._clock()
        self._found.update(each for each in ready if each not in self._seen)

    def _begin(self) -> None:
        """Begin some of the runs that were found, unless another worker has begun them meanwhile."""
        # Not the oldest first, because another worker would begin the same ones.
        chosen = random.sample(sorted(self._found), min(BEGUN_AT_ONCE, len(self._found)))
        rows = self._store.still_ready(self._agents, chosen)
        self._engine.begin([(row.id, row.segment) for row in rows if self._is_readable(row)])
        self._found.difference_update(chosen)
        self._seen.update(chosen)

    def _fail(self, run_id: str, segment: int, status: str) -> None:
        """End a run if the engine gave up on its current segment."""
        row = self._store.get_run(run_id)
        if row is None or row.segment != segment or row.status not in ('queued', 'waiting'):
            return
        _log.error('The engine gave up on a segment of a durable run: %s', status)
        told = f'the engine gave up on segment {segment} ({status}): it was cancelled or restarted too often'
        outcome = json.dumps({'error': 'SegmentGivenUp', 'message': told})
        self._store.finish(run_id, segment, 'failed', outcome, at=self._now())

    def _run(self) -> None:
        changed: Changes | None = None
        while not self._ended.is_set():
            if self._engine.is_broken:
                # Without a heartbeat, other workers take up the runs.
                _log.critical('The event loop of durable runs has ended: this process executes no more runs')
                return
            try:
                self.look(changed)
                pause_s = 0.0 if self._clock() >= self._sweep_at else min(WATCH_S, self._beat_s / 4)
                pause_s = ROOM_S if self._found else pause_s
                changed = self._store.inbox_store.watch(pause_s)
            except Exception as error:  # noqa: BLE001 - without this thread no run would go on
                changed = None
                self._failures += 1
                if self._failures == 1:
                    # The text of our own errors contains no arguments.
                    problem = str(error) if isinstance(error, ApprovalError) else type(error).__name__
                    _log.error('Durable runs wait: %s', problem)
                self._ended.wait(min(LONGEST_PAUSE_S, 0.1 * 2 ** min(self._failures, 10)))
            else:
                if self._failures:
                    self._failures = 0
                    _log.warning('Durable runs go on')
