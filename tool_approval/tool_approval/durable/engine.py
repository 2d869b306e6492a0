"""Run the segments of durable runs with DBOS, and define a protocol for other engines. The module needs the extra
`durable`.
"""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar

from tool_approval.core.errors import ApprovalError, MissingExtraError
from tool_approval.inbox.stores.sqlite_file import is_passing
from tool_approval.storage.private_file import make_private_folder, open_private

try:
    # DBOS has no public setting for what `start` and the statements below change. The extra pins the version.
    from dbos import DBOS, DBOSConfig, SetWorkflowID, _sys_db, _workflow_commands  # pyright: ignore[reportPrivateUsage]
    from dbos._context import EnterDBOSStepCtx, snapshot_step_context
    from dbos._dbos import (
        _get_dbos_instance,  # pyright: ignore[reportPrivateUsage]
        _get_or_create_dbos_registry,  # pyright: ignore[reportPrivateUsage]
    )
    from dbos._utils import retriable_postgres_exception
except ImportError:
    raise MissingExtraError('dbos', extra='durable') from None

T = TypeVar('T')

_PASSING_STATES = re.compile('25006|58...')
"""Source: PostgreSQL, appendix A: the database is read-only, or the server's system fails."""


def may_pass(error: Exception) -> bool:
    """Return whether an error of the engine's database may pass, so that DBOS repeats the statement."""
    cause = getattr(error, 'orig', None)
    if isinstance(cause, sqlite3.Error):
        return is_passing(cause)
    return (
        retriable_postgres_exception(error)
        or _PASSING_STATES.fullmatch(getattr(cause, 'sqlstate', '') or '') is not None
    )


# State of the process: DBOS waits for a database that cannot be reached, but raises if the disk is full or the database
# is read-only, and every run that executes at this moment would have failed. The extra pins the version.
# (test_outages.py: test_a_fault_of_the_store_parks_runs_and_fails_none)
_sys_db.retriable_postgres_exception = may_pass  # pyright: ignore[reportPrivateImportUsage]

# State of the process: DBOS looks once a second for delayed workflows and for timeouts, neither of which segments have.
_workflow_commands._BACKGROUND_JOBS_INTERVAL_SEC = 10.0  # pyright: ignore[reportPrivateUsage]

GRACE_S = 10
"""Seconds that a stopping worker waits for its running segments. Most tools finish within this time. If a call is
interrupted, its outcome is unknown."""

CONNECTIONS = 8
"""Maximum number of connections that DBOS opens per process. By default, PostgreSQL allows 100 connections in total."""

Segment: TypeAlias = Callable[[str, int], Awaitable[None]]
"""Function that runs one segment of a run, given the run's id and the segment's number. The function must not raise."""


class Engine(Protocol):
    """Runs segments, and records their steps. All methods block, except `record` and `apart`."""

    def start(self) -> None:
        """Start the execution of segments in this process."""
        ...  # pragma: no cover - a protocol has no body

    def begin(self, segments: Sequence[tuple[str, int]]) -> None:
        """Start segments, given their run ids and numbers, here. Each runs once, in the process that was first.

        If an error is raised, some of the segments may have been started.
        """
        ...  # pragma: no cover - a protocol has no body

    def take_up(self, worker: str) -> None:
        """Let a living process resume the segments of a dead worker from their records."""
        ...  # pragma: no cover - a protocol has no body

    def workers(self) -> Collection[str]:
        """Return the ids of all workers of the agent, alive or dead, that were running segments."""
        ...  # pragma: no cover - a protocol has no body

    def given_up(self) -> Mapping[tuple[str, int], str]:
        """Return why some unfinished segments will never run again. Each key is a run id and a segment's number."""
        ...  # pragma: no cover - a protocol has no body

    @property
    def running(self) -> int:
        """Number of segments that this process executes."""
        ...  # pragma: no cover - a protocol has no body

    @property
    def is_broken(self) -> bool:
        """Whether this process can no longer run segments."""
        ...  # pragma: no cover - a protocol has no body

    def prune(self, before: datetime) -> None:
        """Delete the records of segments that ended before a given time."""
        ...  # pragma: no cover - a protocol has no body

    async def record(self, name: str, step: Callable[[], Awaitable[T]]) -> T:
        """Run a step of the current segment, or return its result if the result is already recorded."""
        ...  # pragma: no cover - a protocol has no body

    async def apart(self, action: Callable[[], Awaitable[T]]) -> T:
        """Run an action of the current segment, and record nothing, not even what the action itself records."""
        ...  # pragma: no cover - a protocol has no body

    def close(self) -> None:
        """End the execution of segments in this process. Another process resumes the segments that did not end."""
        ...  # pragma: no cover - a protocol has no body


APPLICATION = 'tool-approval'
"""Application name of our processes in DBOS. A process resumes only workflows with the same name and version."""

APPLICATION_VERSION = 'runs-2'
"""Version for DBOS. It changes only if segments record other steps, or steps in another order. With DBOS's default
version, which changes whenever code changes, a new release could not resume the runs of an older release."""

SCHEMA = 'tool_approval_dbos'
"""PostgreSQL schema of DBOS's tables."""

# State of the process: DBOS finds workflows by name, and has one instance in each process.
_segments: dict[str, Segment] = {}


_SEGMENT = 'tool_approval.segment'

_GIVEN_UP = ['ERROR', 'CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED']
"""States that DBOS gives to segments that were started, did not end, and will not run again."""

_PRUNED_AT_ONCE = 500
"""Maximum number of records to delete in one transaction."""


@DBOS.workflow(name=_SEGMENT)
async def _run_segment(agent: str, run_id: str, segment: int) -> None:
    await _segments[agent](run_id, segment)


class DBOSEngine:
    """Runs segments with DBOS. A process can have only one engine, because DBOS has one instance in each process. The
    tables of DBOS are in a file or a PostgreSQL schema.
    """

    def __init__(
        self, url: str, agent: str, run_segment: Segment, *, worker: str, polling_s: float, store: str = ''
    ) -> None:
        """Keep the settings. `start` launches DBOS.

        Args:
            url: SQLAlchemy URL of the database.
            agent: The name of the agent whose runs this process executes.
            run_segment: Function that runs a segment.
            worker: The id of this process. No other process ever has the same id.
            polling_s: Seconds between two searches for segments that were taken up from dead workers.
            store: Identifier of the store that holds the runs, used as a prefix for workflow ids. The prefix is needed
                because DBOS remembers ids, and a run of another store may have used the same id.
        """
        self._store = store
        self._url = url
        self._agent = agent
        self._version = f'{APPLICATION_VERSION} {agent}'
        self._run_segment = run_segment
        self._worker = worker
        self._polling_s = polling_s
        self.running = 0
        """See `Engine`."""
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Launch DBOS.

        Raises:
            ApprovalError: This process already runs DBOS for another purpose.
        """
        DBOS(
            config=DBOSConfig(
                name=APPLICATION,
                system_database_url=self._url,
                sys_db_pool_size=CONNECTIONS,
                # Otherwise each transaction begins with an empty one. DBOS tries again where a connection is broken.
                db_engine_kwargs={'pool_pre_ping': False},
                dbos_system_schema=SCHEMA,
                # Only a worker of the same agent resumes what a dead worker left.
                application_version=self._version,
                executor_id=self._worker,
                log_level='CRITICAL',
            )
        )
        if DBOS.executor_id != self._worker:
            raise ApprovalError('DBOS already runs in this process; durable runs need a separate worker process')
        _segments[self._agent] = self._run_counted
        # Segments start without a queue, which each worker would have to ask for work ten times a second. Only what was
        # taken up from a dead worker is in a queue.
        DBOS.listen_queues([])
        registry = _get_or_create_dbos_registry()
        registry.get_internal_queue()._polling_interval_sec = self._polling_s  # pyright: ignore[reportPrivateUsage]
        DBOS.launch()

    def begin(self, segments: Sequence[tuple[str, int]]) -> None:
        """See `Engine`. DBOS lets only the process that records the start execute the segment."""

        async def begin_one(run_id: str, segment: int) -> None:
            with SetWorkflowID(self._id(run_id, segment)):
                await DBOS.start_workflow_async(_run_segment, self._agent, run_id, segment)

        async def begin_all() -> list[BaseException | None]:
            return await asyncio.gather(*(begin_one(*each) for each in segments), return_exceptions=True)

        # Not the loop of the caller, who waits here in a thread.
        loop = _get_dbos_instance()._background_event_loop  # pyright: ignore[reportPrivateUsage]
        for error in loop.submit_coroutine(begin_all()):
            if error is not None:
                raise error

    def take_up(self, worker: str) -> None:
        """See `Engine`."""
        # DBOS has a public call for this only with its paid control plane. The extra pins the version, and a test fails
        # if the method changes (test_engine.py).
        DBOS._recover_pending_workflows([worker])  # pyright: ignore[reportPrivateUsage]

    def workers(self) -> Collection[str]:
        """See `Engine`."""
        found = DBOS.list_workflows(
            name=_SEGMENT, status='PENDING', app_version=self._version, load_input=False, load_output=False
        )
        return {each.executor_id for each in found if each.executor_id is not None}

    def given_up(self) -> Mapping[tuple[str, int], str]:
        """See `Engine`. DBOS starts a segment up to 101 times. `dbos workflow cancel` ends a segment, too."""
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
        """See `Engine`. A `sys.exit()` in a model, or in a tool that requires no approval, ends the event loop."""
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

    async def apart(self, action: Callable[[], Awaitable[T]]) -> T:
        """See `Engine`. DBOS records nothing that runs inside a step."""
        step = snapshot_step_context()
        assert step is not None, 'segments are workflows'
        with EnterDBOSStepCtx({'name': 'apart', 'operationType': 'step'}, step):
            return await action()

    def close(self) -> None:
        """See `Engine`. Running segments have ten seconds to finish."""
        DBOS.destroy(workflow_completion_timeout_sec=GRACE_S if self.running and not self.is_broken else 0)
        _segments.pop(self._agent, None)

    def _id(self, run_id: str, segment: int) -> str:
        return f'{self._store}{run_id}:{segment}'

    async def _run_counted(self, run_id: str, segment: int) -> None:
        # Attack: a record from a removed store has the decisions of another run with this id (test_engine.py:
        # test_a_segment_of_another_store_is_not_run).
        if DBOS.workflow_id != self._id(run_id, segment):
            return
        self.running += 1
        self._loop = asyncio.get_running_loop()
        try:
            await self._run_segment(run_id, segment)
        finally:
            self.running -= 1


def engine_url(url: str) -> str:
    """Return the URL of the engine's tables. They are in a file beside the store or in the store's PostgreSQL database.

    Args:
        url: The URL of the store, as in `open_store`.

    Raises:
        OSError: Other users can access the file, or it cannot be created.
    """
    scheme, separator, rest = url.partition('://')
    if scheme in ('postgresql', 'postgres') and separator:
        return f'postgresql://{rest}'
    store = Path(rest[1:] if separator else url).absolute()
    path = store.with_name(f'{store.stem}.dbos{store.suffix}')
    make_private_folder(path.parent)
    # DBOS unpickles the content, so a user who can write the file can run code.
    os.close(open_private(path, os.O_RDWR | os.O_CREAT))
    with closing(sqlite3.connect(path)) as database:
        # Stored in the file. Without it, searches for work and writers wait for each other.
        database.execute('PRAGMA journal_mode = WAL')
    return f'sqlite:///{path}'
