"""Run agents durably: a run that waits for an approver needs no process, and any worker can continue it.

A run consists of segments, each a workflow of the engine. The engine records model requests and decisions. A segment
ends when an approver must be asked. The store keeps the requests and the state for the next segment. See `Segment.run`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from hashlib import blake2b
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from pydantic import TypeAdapter
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelRequest, UserPromptPart
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai_deferred import Agent

from tool_approval.core.approvers import LONGEST_NAME
from tool_approval.core.errors import ApprovalError
from tool_approval.core.threads import call_sync_or_async
from tool_approval.display import escape_line
from tool_approval.durable import RunRow, open_store
from tool_approval.durable.engine import DBOSEngine, Engine, engine_url, may_pass
from tool_approval.durable.ledger import Ledger, Reconcile
from tool_approval.durable.worker import Sweep
from tool_approval.inbox import Inbox, InboxUI
from tool_approval.inbox.errors import InboxError, InboxUnavailable
from tool_approval.inbox.keeper import LEASE_S
from tool_approval.inbox.worker import Worker

from .checks import checked_approvals, checked_deps, checked_name
from .nested import DurableAgentToolset, nested_agents
from .segment import DurableRunCancelled, Segment
from .state import RunState, as_json, ended_state, is_readable, now, read_state, write_state

DepsT = TypeVar('DepsT')
OutputT = TypeVar('OutputT')
T = TypeVar('T')

Factory: TypeAlias = Callable[..., Any]
"""Function that makes a run's dependencies from JSON values, which are passed as keyword arguments. The function may be
a coroutine function. The function is called in each segment."""

RETRY_S = 1.0
"""Seconds until the second attempt to use a store. The pause doubles with each further attempt."""

LONGEST_RETRY_S = 8.0
"""Longest pause in seconds between two attempts to use a store."""

ALIVE_S = 1.0
"""Seconds between checks of whether this worker can still run segments."""

FOLLOW_S = 0.2
"""Seconds between two checks of a run whose result is awaited."""

_log = logging.getLogger('tool_approval')


class DurableRunFailed(ApprovalError):
    """A durable run failed or was cancelled, so it has no output."""


class DurableAgent(Generic[DepsT, OutputT]):
    """An agent whose runs survive crashes, deploys and long waits for an approver.

    Create the agent in the same way in every process: in those that start runs, and in the workers that execute them.
    """

    def __init__(
        self,
        agent: Agent[DepsT, OutputT],
        *,
        store: str,
        deps: Mapping[str, Factory] | None = None,
        reconcile: Mapping[str, Reconcile] | None = None,
    ) -> None:
        """Combine the parts. Nothing is opened or started before the first use.

        Args:
            agent: Agent that has a name, which must stay the same, and the capabilities `DBOSDurability()` and
                `Approvals`. The `ui` of the `Approvals` is an `InboxUI` with the same `store`, or `None` for an
                `InboxUI` with default settings.
            store: The database of runs and requests: `postgresql://...`, `sqlite:///path`, or the path of an SQLite
                file.
            deps: Factories of dependencies, by the name that is passed to `start`.
            reconcile: Functions, by tool name, that find out after a crash whether an interrupted call was executed.
                See `Ledger`.

        Raises:
            UserError: The agent or its `Approvals` cannot be used for durable runs. The message says what to change.
            ValueError: The URL of the store cannot be parsed.
        """
        self.agent = agent
        self.name = checked_name(agent)
        self.approvals = checked_approvals(agent)
        self.controller = self.approvals.controller
        self.store = open_store(store)
        ui = self.controller.ui
        if ui is not None and not (isinstance(ui, InboxUI) and ui.inbox.store.place == self.store.place):
            raise UserError(
                'The `ui` of the `Approvals` must be `None`, or an `InboxUI` with the `store` of the `DurableAgent`, '
                'because a person may answer a question of a durable run after this process has ended.'
            )
        self.ui = ui or InboxUI(Inbox(open_store(store).inbox_store))
        self._url = store
        self.key = b''
        """Key that question ids are derived from. The key is empty until this process becomes a worker, and is
        then the key of the store."""
        self._factories = dict(deps or {})
        self._thread = Worker(self.store.place)
        self._reconcile = dict(reconcile or {})
        self._engine: DBOSEngine | None = None
        self._ledger: Ledger | None = None
        self._sweep: Sweep | None = None
        self.nested = nested_agents(agent, self.store.place, self.approvals.external)
        """The durable agents among the tools, by tool name."""
        self.external = {**{name: each.start for name, each in self.nested.items()}, **self.approvals.external}
        """Functions that execute external calls, by tool name."""
        below = [member for each in self.nested.values() for member in each.members.items()]
        self.members: Mapping[str, DurableAgent[Any, Any]] = {
            self.name: self,
            **{f'{self.name}/{path}': member for path, member in below},
        }
        """This agent and all durable agents below it, by the name that their runs have in the store."""

    def as_tool(self, name: str, *, description: str | None = None) -> AbstractToolset[Any]:
        """Return a toolset with one tool that runs this agent, for the `toolsets` of another durable agent.

        Each call is a run of its own, and the calling run waits for its end. The tool takes a `prompt`, and returns the
        output of the nested run. The nested run gets the dependencies of the calling run if this agent has a factory of
        the same name, and its session. A worker of the calling agent also executes the nested runs.

        Args:
            name: Name by which the model calls the tool.
            description: Description of the tool for the model.
        """
        return DurableAgentToolset(self, name, description)

    def makes(self, deps: str) -> bool:
        """Whether there is a factory of dependencies with this name."""
        return deps in self._factories

    async def start(
        self,
        prompt: str | Sequence[Any],
        *,
        run_id: str | None = None,
        session: str | None = None,
        deps: tuple[str, Mapping[str, Any]] | None = None,
    ) -> DurableRun[OutputT]:
        """Start a run. A worker executes the run, in this process or another one.

        Args:
            prompt: The user's prompt, as in `Agent.run`.
            run_id: An id for the run. If a run with this id exists, that run is returned and nothing is started.
            session: The conversation for which approvals are remembered; the run itself if `None`.
            deps: The name of a factory, and its arguments as JSON values.

        Raises:
            UserError: The prompt or the dependencies cannot be stored. The message names the field.
            InboxUnavailable: The store cannot be reached. The run may or may not have been started. It is safe to start
                the run again with the same `run_id`.
        """
        run_id = run_id or secrets.token_urlsafe(16)
        if escape_line(run_id) != run_id:
            raise UserError('`run_id` has characters that cannot be printed.')
        if len(run_id) > LONGEST_NAME:
            # The engine's index would reject it, and no later run would begin.
            raise UserError(f'`run_id` has more than {LONGEST_NAME} characters.')
        state = RunState(
            history=[ModelRequest(parts=[UserPromptPart(content=prompt)])],
            session=session,
            deps=checked_deps(self._factories, deps),
        )
        at = now()
        row = RunRow(id=run_id, agent=self.name, state=write_state(state, 'prompt'), created_at=at, changed_at=at)
        await self.do(lambda: self.store.add_run(row))
        return self.get(run_id)

    def get(self, run_id: str) -> DurableRun[OutputT]:
        """Return a `DurableRun` with this id, without checking that the store contains such a run."""
        return DurableRun(self, run_id)

    @asynccontextmanager
    async def worker(self, *, polling: float = 5.0, lease: float = LEASE_S) -> AsyncGenerator[None]:
        """While the context is open, execute this agent's runs on an event loop of the engine.

        Args:
            polling: Seconds between two searches for segments that were taken up from dead workers. Runs and answers do
                not wait for this search.
            lease: If a worker sends no heartbeat for this many seconds, the other workers treat it as dead and resume
                its runs. The value must be the same in all workers.

        Raises:
            ApprovalError: This process is already a worker, or uses DBOS for another purpose.
            InboxUnavailable: The store cannot be used at the moment. Start the worker again.
        """
        if self._engine is not None:
            raise ApprovalError('this process is already a worker of this agent')
        url = engine_url(self._url)
        key = await self.do(self.store.secret)
        ledger = Ledger(open_store(self._url), lease_s=lease, beats=False)
        of_store = blake2b(key, digest_size=8).hexdigest()
        engine = DBOSEngine(
            url, self.name, self._run_segment, worker=ledger.worker_id, polling_s=polling, store=f'{of_store}:'
        )
        store = open_store(self._url)
        sweep = Sweep(store, engine, ledger, agents=[*self.members], is_readable=is_readable, lease_s=lease)
        for each in self.members.values():
            each._serve(engine, ledger, sweep, key)
        try:
            try:
                await asyncio.to_thread(engine.start)
            except Exception as error:
                if may_pass(error):
                    raise InboxUnavailable(self.store.place, 'the tables of DBOS cannot be written') from None
                raise
            sweep.start()
            try:
                yield
            finally:
                await asyncio.to_thread(sweep.close)
        finally:
            await asyncio.to_thread(engine.close)
            await asyncio.to_thread(ledger.close)
            ledger.store.close()
            for each in self.members.values():
                each._engine = each._ledger = each._sweep = None

    def _serve(self, engine: DBOSEngine, ledger: Ledger, sweep: Sweep, key: bytes) -> None:
        """Execute runs in a worker of this agent, or of an agent above it."""
        self.key = key
        self.controller.use_key(key)
        self._engine, self._ledger, self._sweep = engine, ledger.reconciling(self._reconcile), sweep

    def run_worker(self) -> None:
        """Start a worker, and execute agent runs until the process receives SIGTERM or SIGINT.

        Raises:
            ApprovalError: No run can execute here any more, because a model or a tool called `sys.exit()`. Other
                workers resume the runs, and the service manager restarts this process.
        """

        async def serve() -> None:
            ended = asyncio.Event()
            for each in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(each, ended.set)
            async with self.worker():
                while not ended.is_set() and not self.engine.is_broken:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(ended.wait(), ALIVE_S)
                is_broken = self.engine.is_broken
            if is_broken:
                raise ApprovalError('the event loop of durable runs has ended')

        asyncio.run(serve())

    @property
    def engine(self) -> Engine:
        """Engine of this worker."""
        assert self._engine is not None, 'segments run only in workers'
        return self._engine

    @property
    def ledger(self) -> Ledger:
        """Ledger of this worker."""
        assert self._ledger is not None, 'segments run only in workers'
        return self._ledger

    async def _run_segment(self, run_id: str, number: int) -> None:
        """Run a segment for the engine. After a crash, the segment runs again from its beginning. Errors of the run are
        recorded, not raised.
        """
        row = await self.patiently(lambda: self.store.resume(run_id, number, at=now()))
        if row is None:
            return
        status: Literal['done', 'failed'] = 'failed'
        state: RunState | None = None
        try:
            if (member := self.members.get(row.agent)) is None:
                raise ApprovalError(f'the agent of the run is no longer among the tools of this agent: {row.agent!r}')
            state = read_state(row)
            output = await Segment(member, row, number, state).run()
            if output is None:
                return
            status, outcome = 'done', output
        except DurableRunCancelled:
            return
        except (Exception, asyncio.CancelledError) as error:  # users must see any error that ends a run
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise  # the worker ends, not the run
            _log.error('A durable run of %r failed with %s', self.name, type(error).__name__)
            outcome = as_json({'error': type(error).__name__, 'message': str(error)})
        ended = None if state is None else ended_state(row, state)
        await self.patiently(lambda: self.store.finish(run_id, number, status, outcome, state=ended, at=now()))
        if row.parent is not None and self._sweep is not None:
            self._sweep.hurry()

    async def do(self, action: Callable[[], T]) -> T:
        """Run `action`, which uses the store, in the store's thread."""
        return await self._thread.run(action)

    async def patiently(self, action: Callable[[], T]) -> T:
        """Run `action`, which uses the store, and retry until the store can be used."""
        return await self.persistently(lambda: self.do(action))

    async def persistently(self, action: Callable[[], Awaitable[T]]) -> T:
        """Retry `action` until the store can be used. Meanwhile the run waits, because the error is not one of the run.

        A person may have to repair the store, so no error of the store ends the wait.
        """
        pause_s = RETRY_S
        while True:
            try:
                return await action()
            except InboxError as error:
                if pause_s == RETRY_S:
                    _log.error('A durable run of %r waits: %s', self.name, error)
                await asyncio.sleep(pause_s)
                pause_s = min(LONGEST_RETRY_S, 2 * pause_s)

    async def make_deps(self, state: RunState) -> Any:
        """Return the dependencies of a segment."""
        if state.deps is None:
            return None
        name, arguments = state.deps
        return await call_sync_or_async(self._factories[name], **arguments)


class DurableRun(Generic[OutputT]):
    """A run of a `DurableAgent`, in any process."""

    def __init__(self, durable: DurableAgent[Any, OutputT], run_id: str) -> None:
        """`DurableAgent.start` and `DurableAgent.get` create this object."""
        self.id = run_id
        """The run's id."""
        self._durable = durable

    async def status(self) -> RunRow:
        """Return the run's current row.

        Raises:
            ApprovalError: There is no such run.
            InboxUnavailable: The store cannot be reached.
        """
        row = await self._durable.do(lambda: self._durable.store.get_run(self.id))
        if row is None:
            raise ApprovalError('there is no such run, or it was deleted')
        return row

    async def result(self) -> OutputT:
        """Wait for the run's output, even while the store is unavailable.

        Raises:
            DurableRunFailed: The run failed, or was cancelled.
            ApprovalError: There is no such run.
        """
        while True:
            with suppress(InboxUnavailable):
                row = await self.status()
                if row.status == 'done':
                    return _output(self._durable.agent, row.outcome or 'null')
                if row.status in ('failed', 'cancelled'):
                    raise DurableRunFailed(_problem(row))
            await asyncio.sleep(FOLLOW_S)

    async def cancel(self) -> bool:
        """Cancel the run: withdraw its questions, and execute no further call. A call that is executing is not stopped.

        Returns:
            Whether this call ended the run.

        Raises:
            InboxUnavailable: The store cannot be reached.
        """
        return await self._durable.do(lambda: self._durable.store.cancel(self.id, at=now()))


def _output(agent: Agent[Any, OutputT], written: str) -> OutputT:
    output_type: Any = agent.output_type
    return (
        TypeAdapter[Any](output_type).validate_json(written) if isinstance(output_type, type) else json.loads(written)
    )


def _problem(row: RunRow) -> str:
    if row.status == 'cancelled':
        return 'the run was cancelled'
    told = json.loads(row.outcome or '{}')
    return f'the run failed ({told.get("error")}): {told.get("message")}'
