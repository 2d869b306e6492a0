"""Disturb durable runs, and look for an effect too many: `python -m benchmarks.durable --faults`.

Runs start nested runs. Workers are killed and frozen, the database takes no writes for some seconds, runs are
cancelled, and approvers answer, answer late or not at all. Afterwards, what approvers read, what is stored and what ran
must agree. The agent of the schedule is in this module; `--agent module:function` disturbs another, which the function
makes from a store's URL.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib import import_module
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypeAlias, cast

import psycopg
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai_deferred import Agent
from tool_approval.core.calls import ExecutedCall
from tool_approval.durable import DurableStore, ExecutionRow, RunRow, open_store
from tool_approval.durable.ledger import Ledger
from tool_approval.inbox import AnswerRefused, Approver, Inbox, InboxEntry, InboxError, InboxUI, InboxUnavailable, Row
from tool_approval.inbox.entry import read_entry
from tool_approval.integrations.pydantic_ai import Approvals
from tool_approval.integrations.pydantic_ai.durable import DurableAgent

from benchmarks.inbox import SPAWN
from tool_approval import ApprovalDecision

LEASE_S = 1.5
"""Short, so that a frozen worker is often taken for dead."""

FAULT_S = (0.5, 7.0)
"""How long a fault of the store lasts. SQLite waits for a lock for 5 seconds."""

LIMIT_S = 600.0
"""Seconds within which every run must have ended."""

OURS = 'benchmarks.durable.faults:payments'

Call: TypeAlias = tuple[str, str]
"""The id of a run, and that of a call in it."""


def payments(url: str) -> DurableAgent[Any, str]:
    """Make the agent of the schedule: a payment beside two nested runs with a payment each, and then one more."""
    clerk = _payer(url, 'clerk', [[_pay(1)]])
    asks = [ToolCallPart('ask', {'prompt': 'pay'}, tool_call_id=each) for each in 'ab']
    return _payer(url, 'payments', [[_pay(1), *asks], [_pay(2)]], clerk.as_tool('ask'))


def _pay(number: int) -> ToolCallPart:
    return ToolCallPart('pay', {'number': number}, tool_call_id=str(number))


def _payer(
    url: str, name: str, responses: Sequence[Sequence[ToolCallPart]], *toolsets: AbstractToolset[Any]
) -> DurableAgent[Any, str]:
    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        done = sum(isinstance(each, ModelResponse) for each in messages)
        return ModelResponse(parts=[*responses[done]] if done < len(responses) else [TextPart('paid')])

    ui = InboxUI(Inbox(open_store(url).inbox_store), timeout=25)
    capabilities = [DBOSDurability(), Approvals(ui=ui)]
    agent = Agent(FunctionModel(respond), name=name, toolsets=toolsets, capabilities=capabilities)

    @agent.tool_plain
    async def pay(number: int) -> str:
        await asyncio.sleep(random.choice((0.0, 0.02, 0.3)))
        return f'paid {number}'

    return DurableAgent(agent, store=url)


def maker(name: str) -> Callable[[str], DurableAgent[Any, Any]]:
    """Return the function that makes an agent, given its module and its name."""
    module, _, function = name.partition(':')
    return getattr(import_module(module), function)


@contextmanager
def read_only(dsn: str) -> Generator[None]:
    """Let a server take no writes for a while, as during a switch to another."""
    with psycopg.connect(dsn, autocommit=True) as database:
        database.execute('SET default_transaction_read_only = off')
        database.execute('ALTER SYSTEM SET default_transaction_read_only = on')
        database.execute('SELECT pg_reload_conf()')
        try:
            yield
        finally:
            database.execute('ALTER SYSTEM RESET default_transaction_read_only')
            database.execute('SELECT pg_reload_conf()')


@contextmanager
def locked(path: str) -> Generator[None]:
    """Let an SQLite file take no writes for a while, as if a process were stopped in the middle of one."""
    with closing(sqlite3.connect(path, timeout=1, isolation_level=None)) as database:
        # A frozen worker may have the lock already. It goes on only after this process has returned.
        with suppress(sqlite3.OperationalError):
            database.execute('BEGIN IMMEDIATE')
        try:
            yield
        finally:
            if database.in_transaction:
                database.execute('ROLLBACK')


def note(effects: str, call: ExecutedCall) -> None:
    """Write down that a call is about to have its effect."""
    with open(effects, 'a', encoding='utf-8') as file:
        file.write(json.dumps([call.run_id, call.tool_call_id]) + '\n')


def worker(url: str, name: str, effects: str) -> None:
    """Execute runs, and note each effect right before it happens."""
    execute = Ledger.execute

    async def noted(self: Ledger, call: ExecutedCall, run: Callable[[], Awaitable[Any]], **options: Any) -> Any:
        async def effect() -> Any:
            note(effects, call)
            return await run()

        return await execute(self, call, effect, **options)

    # State of the process, which does nothing else: any agent's effects are noted in this way.
    Ledger.execute = noted

    async def serve() -> None:
        async with maker(name)(url).worker(polling=0.2, lease=LEASE_S):
            await asyncio.Event().wait()

    try:
        asyncio.run(serve())
    except InboxUnavailable as error:  # the store takes no writes: the next worker tries again
        print(f'a worker could not start: {error}', file=sys.stderr)


@dataclass
class Told:
    """The disturbances, and the replies that the approvers read."""

    answers: dict[str, str] = field(default_factory=dict[str, str])
    """The state that the approver read, by the id of each request whose answer was confirmed."""
    refused: set[str] = field(default_factory=set[str])
    """Requests whose answer was refused."""
    done: Counter[str] = field(default_factory=Counter[str])
    """Number of disturbances, by kind."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """The rows that are stored in the end, and the effects."""

    runs: Sequence[RunRow]
    requests: Sequence[Row]
    executions: Sequence[ExecutionRow]
    effects: Mapping[Call, int]
    left: int
    """Rows that are left after everything was pruned."""


def call_of(row: Row) -> Call | None:
    """Return the run and the call that a request is about, if the request can be read."""
    with suppress(ValueError):
        entry = read_entry(row)
        return row.owner, entry.request.tool_call_id or ''
    return None


def problems(told: Told, found: Found) -> list[str]:
    """Return everything that must not have happened."""
    wrong = [*_of_runs(found), *_of_requests(told, found), *_of_effects(found)]
    if found.left:
        wrong.append(f'{found.left} rows are left after everything was pruned')
    return wrong


def _of_runs(found: Found) -> Iterator[str]:
    for run in found.runs:
        if run.status in ('queued', 'waiting'):
            yield f'run {run.id} has not ended: {run.status}'
        if run.status == 'failed':
            yield f'run {run.id} has failed: {run.outcome}'


def _of_requests(told: Told, found: Found) -> Iterator[str]:
    for row in found.requests:
        if call_of(row) is None:
            yield f'request {row.id} cannot be read'
        if row.state == 'pending':
            yield f'a request of run {row.owner} is still open'
        if told.answers.get(row.id, row.state) != row.state:
            yield f'an approver of run {row.owner} read {told.answers[row.id]}, but {row.state} is stored'


def _of_effects(found: Found) -> Iterator[str]:
    asked = Counter(call_of(row) for row in found.requests)
    approved = Counter(call_of(row) for row in found.requests if row.state == 'approved')
    for call, effects in found.effects.items():
        if call in asked and effects > approved[call]:
            yield f'call {call[1]} of run {call[0]} had {effects} effects, but {approved[call]} approvals'
    cancelled = {run.id: run.changed_at for run in found.runs if run.status == 'cancelled'}
    for row in found.executions:
        ended_at = cancelled.get(row.run_id)
        if row.state == 'done' and not found.effects.get((row.run_id, row.tool_call_id)):
            yield f'call {row.tool_call_id} of run {row.run_id} is done, but had no effect'
        if ended_at and row.started_at and row.started_at > ended_at:
            yield f'call {row.tool_call_id} of run {row.run_id} began after the run was cancelled'


class Schedule:
    """One run of the schedule on a store."""

    def __init__(self, store: str, place: str, url: str, name: str, runs: int, seed: int, folder: Path) -> None:
        """Keep the settings."""
        self._kind = store
        self._place = place
        self._url = url
        self._name = name
        self._runs = runs
        self._random = random.Random(seed)
        self._effects = folder / f'effects-{store}'
        self._effects.touch()
        self._workers: list[BaseProcess] = []
        self._frozen: dict[int, float] = {}
        self._ignored: set[str] = set()
        self.told = Told()

    async def run(self) -> Found:
        """Start the runs, disturb them until they have ended, and return what is left."""
        durable = maker(self._name)(self._url)
        ids = [f'run-{number}' for number in range(self._runs)]
        for run_id in ids:
            await durable.start('go', run_id=run_id)
        self._workers = [self._worker() for _ in range(2)]
        until = time.monotonic() + LIMIT_S
        try:
            with Inbox(open_store(self._url).inbox_store) as inbox:
                faults = asyncio.create_task(self._faults())
                try:
                    while time.monotonic() < until:
                        with suppress(InboxError):
                            if not await self._step(inbox, durable.store, ids):
                                break
                        await asyncio.sleep(0.1)
                finally:
                    faults.cancel()
                    with suppress(asyncio.CancelledError):
                        await faults
        finally:
            for each in self._workers:
                each.kill()
                each.join()
        return self._found(durable.store, ids)

    def _worker(self) -> BaseProcess:
        process = SPAWN.Process(target=worker, args=(self._url, self._name, str(self._effects)), daemon=True)
        process.start()
        return process

    async def _step(self, inbox: Inbox, store: DurableStore, ids: Sequence[str]) -> bool:
        """Disturb and answer. Return whether a run has not ended."""
        self._disturb()
        for entry in await inbox.open():
            if entry.id not in self._ignored and self._random.random() < 0.3:
                await self._answer(inbox, entry)
        if self._random.random() < 0.02:
            unlucky = self._random.choice(ids[: -(-len(ids) // 10)])  # no more than a tenth
            self.told.done['cancelled'] += await asyncio.to_thread(store.cancel, unlucky, at=datetime.now(UTC))
        rows = [await asyncio.to_thread(store.get_run, each) for each in ids]
        return any(row is not None and row.status in ('queued', 'waiting') for row in rows)

    def _disturb(self) -> None:
        now = time.monotonic()
        for index, process in enumerate(self._workers):
            pid = process.pid
            assert pid is not None, 'it was started'
            if not process.is_alive():
                self._frozen.pop(pid, None)
                self._workers[index] = self._worker()
            elif pid in self._frozen:
                if now >= self._frozen[pid]:
                    del self._frozen[pid]
                    os.kill(pid, signal.SIGCONT)
            elif self._random.random() < 0.005:
                os.kill(pid, signal.SIGKILL)
                self.told.done['killed'] += 1
            elif self._random.random() < 0.02:
                os.kill(pid, signal.SIGSTOP)
                self._frozen[pid] = now + self._random.uniform(0.2, 3 * LEASE_S)
                self.told.done['frozen'] += 1

    async def _answer(self, inbox: Inbox, entry: InboxEntry) -> None:
        if self._random.random() < 0.03:
            self._ignored.add(entry.id)
            return
        decision = ApprovalDecision(approved=self._random.random() < 0.8)
        try:
            settled = await inbox.decide(entry.id, decision, by=Approver(id='ada'), digest=entry.digest)
        except AnswerRefused:
            self.told.refused.add(entry.id)
        except InboxError:
            self.told.done['unconfirmed'] += 1
        else:
            self.told.answers[entry.id] = settled.state

    async def _faults(self) -> None:
        while True:
            await asyncio.sleep(self._random.uniform(5, 20))
            self.told.done['faults'] += 1
            with locked(self._place) if self._kind == 'SQLite' else read_only(self._place):
                await asyncio.sleep(self._random.uniform(*FAULT_S))

    def _found(self, store: DurableStore, ids: Sequence[str]) -> Found:
        lines = self._effects.read_text(encoding='utf-8').splitlines()
        effects = Counter(cast('Call', tuple(json.loads(line))) for line in lines)
        runs = [row for each in ids if (row := store.get_run(each)) is not None]
        runs += [row for each in ids for row in store.nested_in(each)]
        ids = [row.id for row in runs]
        requests = [row for each in ids for row in store.requests_of(each)]
        executions = [row for each in ids for row in store.executions_of(each)]
        later = datetime.now(UTC) + timedelta(days=1)
        store.prune(later)
        store.inbox_store.prune(later)
        left = sum(
            (store.get_run(each) is not None) + len(store.requests_of(each)) + len(store.executions_of(each))
            for each in ids
        )
        return Found(runs=runs, requests=requests, executions=executions, effects=effects, left=left)


def disturb(store: str, place: str, url: str, name: str, runs: int, seed: int, folder: Path) -> int:
    """Run the schedule, print what happened, and return the number of problems."""
    schedule = Schedule(store, place, url, name, runs, seed, folder)
    begin = time.monotonic()
    found = asyncio.run(schedule.run())
    told, states = schedule.told, Counter(row.state for row in found.executions)
    wrong = problems(told, found)
    print(
        f'{store}, seed {seed}: {runs} runs and {len(found.runs) - runs} nested runs '
        f'({_counts(Counter(run.status for run in found.runs))}), '
        f'{sum(found.effects.values())} effects, executions: {_counts(states)}; '
        f'requests: {_counts(Counter(row.state for row in found.requests))}; '
        f'{len(told.answers)} answers confirmed, {len(told.refused)} refused; {_counts(told.done)}; '
        f'{time.monotonic() - begin:.0f} s'
    )
    for each in wrong:
        print(f'  {each}', file=sys.stderr)
    return len(wrong)


def _counts(counter: Counter[Any]) -> str:
    return ', '.join(f'{count} {name}' for name, count in sorted(counter.items())) or 'none'
