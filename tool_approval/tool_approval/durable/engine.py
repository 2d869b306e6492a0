"""Run the segments of durable runs with DBOS, behind a protocol for other engines. Needs the extra `durable`."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar

from tool_approval.core.errors import ApprovalError, MissingExtraError
from tool_approval.storage.private_file import make_private_folder, open_private

try:
    from dbos import DBOS, DBOSConfig, SetWorkflowID
except ImportError:
    raise MissingExtraError('dbos', extra='durable') from None

T = TypeVar('T')

GRACE_S = 10
"""Chosen: most tools end within so many seconds, and a call that is cut off is unknown."""

CONNECTIONS = 8
"""Chosen: at most so many of the engine at once in each process. A PostgreSQL takes 100 by default, in all."""

Segment: TypeAlias = Callable[[str, int], Awaitable[None]]
"""Runs one segment of a run: its id, and the segment's number. It must not raise."""


class Engine(Protocol):
    """Runs segments, and records what they do. All methods but `record` block."""

    def start(self) -> None:
        """Begin to run segments here."""
        ...  # pragma: no cover - a protocol has no body

    def enqueue(self, run_id: str, segment: int) -> None:
        """Have a segment run by a process that knows the agent. A segment is run once, however often it is enqueued."""
        ...  # pragma: no cover - a protocol has no body

    def take_up(self, worker: str) -> None:
        """Have what a dead worker was running run again, from its record, by a process that lives."""
        ...  # pragma: no cover - a protocol has no body

    def workers(self) -> Collection[str]:
        """Return the ids of the workers, alive or dead, that were running segments."""
        ...  # pragma: no cover - a protocol has no body

    def given_up(self) -> Mapping[tuple[str, int], str]:
        """Return the segments that will not be run again though they did not end, by run id and number, and why."""
        ...  # pragma: no cover - a protocol has no body

    @property
    def is_broken(self) -> bool:
        """Whether no segment can run here any more."""
        ...  # pragma: no cover - a protocol has no body

    def prune(self, before: datetime) -> None:
        """Forget the records of segments that ended before a moment."""
        ...  # pragma: no cover - a protocol has no body

    async def record(self, name: str, step: Callable[[], Awaitable[T]]) -> T:
        """Do a step of the current segment; where the record has its result, return that instead."""
        ...  # pragma: no cover - a protocol has no body

    def close(self) -> None:
        """Run no more segments here. Another process takes up those that run."""
        ...  # pragma: no cover - a protocol has no body


APPLICATION = 'tool-approval'
"""The name of our processes for DBOS. With the version it decides whose workflows they take."""

APPLICATION_VERSION = 'runs-1'
"""Fixed, unlike DBOS's own, which changes with the code: a deploy takes up what was started before it. It changes with
the order of a segment's recorded steps."""

SCHEMA = 'tool_approval_dbos'
"""Where the tables of DBOS are in PostgreSQL."""

# DBOS finds a workflow by its name, and is one for a process.
_segments: dict[str, Segment] = {}


_SEGMENT = 'tool_approval.segment'

_GIVEN_UP = ['ERROR', 'CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED']
"""How DBOS calls segments that were begun, and will not be run again though they did not end."""

_PRUNED_AT_ONCE = 500
"""Chosen: so many records are forgotten in one transaction."""


@DBOS.workflow(name=_SEGMENT)
async def _run_segment(agent: str, run_id: str, segment: int) -> None:
    await _segments[agent](run_id, segment)


class DBOSEngine:
    """DBOS, with its tables in an SQLite file or in a schema of a PostgreSQL database. One for a process."""

    def __init__(
        self, url: str, agent: str, run_segment: Segment, *, worker: str, polling_s: float, store: str = ''
    ) -> None:
        """Start nothing yet.

        Args:
            url: SQLAlchemy's URL of the database.
            agent: The name of the agent whose runs this process takes.
            run_segment: Runs a segment.
            worker: The id of this process, which no other has, nor had.
            polling_s: Seconds between two looks for segments to run.
            store: Which store the runs are in. DBOS never forgets an id: in another store, a run of the same id is
                another one.
        """
        self._store = store
        self._url = url
        self._agent = agent
        self._run_segment = run_segment
        self._worker = worker
        self._polling_s = polling_s
        self._queue = f'tool-approval {agent}'
        self._running = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Launch DBOS.

        Raises:
            ApprovalError: This process runs DBOS already, for something else.
        """
        DBOS(
            config=DBOSConfig(
                name=APPLICATION,
                system_database_url=self._url,
                sys_db_pool_size=CONNECTIONS,
                dbos_system_schema=SCHEMA,
                application_version=APPLICATION_VERSION,
                executor_id=self._worker,
                log_level='CRITICAL',
            )
        )
        if DBOS.executor_id != self._worker:
            raise ApprovalError('this process runs DBOS already; give durable runs a worker process of their own')
        _segments[self._agent] = self._run_counted
        DBOS.listen_queues([self._queue])
        DBOS.launch()
        DBOS.register_queue(self._queue, polling_interval_sec=self._polling_s, on_conflict='always_update')

    def enqueue(self, run_id: str, segment: int) -> None:
        """See `Engine`."""
        with SetWorkflowID(self._id(run_id, segment)):
            DBOS.enqueue_workflow(self._queue, _run_segment, self._agent, run_id, segment)

    def take_up(self, worker: str) -> None:
        """See `Engine`."""
        # DBOS has no public call for this without its paid control plane. The extra pins the version, and a test fails
        # where the method changes (test_engine.py).
        DBOS._recover_pending_workflows([worker])  # pyright: ignore[reportPrivateUsage]

    def workers(self) -> Collection[str]:
        """See `Engine`."""
        found = DBOS.list_workflows(name=_SEGMENT, status='PENDING', load_input=False, load_output=False)
        return {each.executor_id for each in found if each.executor_id is not None}

    def given_up(self) -> Mapping[tuple[str, int], str]:
        """See `Engine`. DBOS begins a segment 101 times; `dbos workflow cancel` ends one too."""
        found = DBOS.list_workflows(
            name=_SEGMENT,
            status=_GIVEN_UP,
            workflow_id_prefix=self._store,
            load_input=False,
            load_output=False,
        )
        ids = {each.workflow_id.removeprefix(self._store).rpartition(':'): each.status for each in found}
        return {(run_id, int(number)): status for (run_id, _, number), status in ids.items() if number.isdecimal()}

    @property
    def is_broken(self) -> bool:
        """See `Engine`. `sys.exit()` in a model or in a tool without approval ends the event loop."""
        return self._loop is not None and not self._loop.is_running()

    def prune(self, before: datetime) -> None:
        """See `Engine`."""
        while ended := DBOS.list_workflows(
            name=_SEGMENT,
            status=['SUCCESS', *_GIVEN_UP],
            completed_before=before.isoformat(),
            limit=_PRUNED_AT_ONCE,
            load_input=False,
            load_output=False,
        ):
            DBOS.delete_workflows([each.workflow_id for each in ended])

    async def record(self, name: str, step: Callable[[], Awaitable[T]]) -> T:
        """See `Engine`."""

        async def run() -> T:
            return await step()

        return await DBOS.run_step_async({'name': name}, run)

    def close(self) -> None:
        """See `Engine`. Segments that run may end within ten seconds."""
        DBOS.destroy(workflow_completion_timeout_sec=GRACE_S if self._running and not self.is_broken else 0)
        _segments.pop(self._agent, None)

    def _id(self, run_id: str, segment: int) -> str:
        return f'{self._store}{run_id}:{segment}'

    async def _run_counted(self, run_id: str, segment: int) -> None:
        # Attack: a record of a store that was removed has the decisions of another run of this id
        # (test_engine.py: test_a_segment_of_another_store_is_not_run).
        if DBOS.workflow_id != self._id(run_id, segment):
            return
        self._running += 1
        self._loop = asyncio.get_running_loop()
        try:
            await self._run_segment(run_id, segment)
        finally:
            self._running -= 1


def engine_url(url: str) -> str:
    """The URL of the engine's own tables beside a store: in a file of the same folder, or in the same database.

    Args:
        url: The store's, as for `open_store`.

    Raises:
        OSError: The file is not the user's alone, or cannot be made.
    """
    scheme, separator, rest = url.partition('://')
    if scheme in ('postgresql', 'postgres') and separator:
        return f'postgresql://{rest}'
    store = Path(rest[1:] if separator else url).absolute()
    path = store.with_name(f'{store.stem}.dbos{store.suffix}')
    make_private_folder(path.parent)
    # DBOS unpickles its content: a user who may write it may run code.
    os.close(open_private(path, os.O_RDWR | os.O_CREAT))
    with closing(sqlite3.connect(path)) as database:
        # The file keeps it. Otherwise each look for work waits for all that write, and they for it.
        database.execute('PRAGMA journal_mode = WAL')
    return f'sqlite:///{path}'
