"""The rows of durable runs and of the executions of their calls, and how a database keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, Literal, cast

from tool_approval.inbox.store import Execute, whole

RunStatus = Literal['queued', 'waiting', 'done', 'failed', 'cancelled']
"""Status of a run. `queued` includes runs that are executing. The last three statuses are final."""

ExecutionState = Literal['approved', 'reserved', 'executing', 'done', 'failed', 'refused', 'unknown']
"""State of the execution of a call."""

MOVES: Mapping[ExecutionState, frozenset[ExecutionState]] = MappingProxyType(
    {
        'approved': frozenset[ExecutionState]({'reserved', 'refused'}),
        'reserved': frozenset[ExecutionState]({'executing', 'approved', 'refused'}),
        'executing': frozenset[ExecutionState]({'done', 'failed', 'unknown', 'approved'}),
        'unknown': frozenset[ExecutionState]({'done', 'failed', 'unknown'}),
        'done': frozenset[ExecutionState](),
        'failed': frozenset[ExecutionState](),
        'refused': frozenset[ExecutionState](),
    }
)
"""Allowed next states for each state of an execution. The worker that holds the execution makes each change in one
atomic step."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRow:
    """One durable run. The texts are ASCII, and the store does not interpret them."""

    id: str
    """Id of the run."""
    agent: str
    """Name of the agent. Only workers that have the agent can execute the run. For a nested run, the name of the agent
    above and the agent's own name, separated by `/`."""
    state: str
    """Input of the next segment, as JSON."""
    created_at: datetime | None
    """Time of creation, in UTC, in whole milliseconds; `None` if the stored time is damaged."""
    changed_at: datetime | None
    """Time at which the run was last parked, resumed or ended; `None` if the stored time is damaged."""
    status: RunStatus = 'queued'
    """Status of the run."""
    segment: int = 0
    """Number of the current segment, or of the next segment while the run waits."""
    outcome: str | None = None
    """Output or error as JSON, or `None` until the run has ended."""
    parent: str | None = None
    """For a nested run, the id of the run that waits for its end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExecutionRow:
    """One attempt to execute one approved call."""

    key: str
    """Key of the call."""
    attempt: int
    """Number of the attempt, from 1."""
    run_id: str
    """Id of the run that made the call."""
    tool_name: str
    """Name of the tool."""
    tool_call_id: str
    """Id of the call in the run."""
    idempotency_key: str
    """Key that the tool may pass to a remote service, so that the service executes this attempt only once."""
    changed_at: datetime | None
    """Time of the last change of state; `None` if the stored time is damaged."""
    state: ExecutionState = 'approved'
    """State of the execution."""
    owner: str | None = None
    """Worker that holds the execution or, if the execution has ended, held it last. `None` for an execution that waits
    for a worker, or whose call was tried again."""
    result: str | None = None
    """Outcome as JSON."""
    started_at: datetime | None = None
    """Time at which the attempt began to execute; `None` before that, and if the stored time is damaged."""

    @property
    def is_unsettled(self) -> bool:
        """Whether the outcome is unknown, and the call was neither tried again nor given up."""
        return self.state == 'unknown' and self.owner is not None and self.result is None


RUN_COLUMNS = 'id, agent, status, segment, state, outcome, created_at, changed_at, parent'
"""Columns of the table `runs`, in the order of `run_of`."""

EXECUTION_COLUMNS = (
    'key, attempt, run_id, tool_name, tool_call_id, state, owner, idempotency_key, result, changed_at, started_at'
)
"""Columns of the table `executions`, in the order of `execution_of`."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment_of(number: object) -> datetime | None:
    """Return a stored time, or `None` if another program has damaged it. No decision depends on these times."""
    try:
        return _EPOCH + timedelta(milliseconds=cast('int', number))
    except (TypeError, OverflowError):
        return None


def milliseconds_of(moment: datetime) -> int:
    """Return a time in the form in which it is stored."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def insert_run(execute: Execute, row: RunRow) -> bool:
    """Add a run. Return `False`, and change nothing, if a run with this id exists."""
    added = execute(
        f'INSERT INTO runs ({RUN_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING',
        (
            row.id,
            row.agent,
            row.status,
            row.segment,
            row.state,
            row.outcome,
            milliseconds_of(whole(row.created_at)),
            milliseconds_of(whole(row.changed_at)),
            row.parent,
        ),
    )
    return added.rowcount == 1


def run_of(values: tuple[Any, ...]) -> RunRow:
    """Return the run whose columns were read."""
    run_id, agent, status, segment, state, outcome, created_at, changed_at, parent = values
    return RunRow(
        id=run_id,
        agent=agent,
        status=status,
        segment=segment,
        state=state,
        outcome=outcome,
        created_at=moment_of(created_at),
        changed_at=moment_of(changed_at),
        parent=parent,
    )


def execution_of(values: tuple[Any, ...]) -> ExecutionRow:
    """Return the execution whose columns were read."""
    key, attempt, run_id, tool_name, call_id, state, owner, idempotency_key, result, changed_at, started_at = values
    return ExecutionRow(
        key=key,
        attempt=attempt,
        run_id=run_id,
        tool_name=tool_name,
        tool_call_id=call_id,
        state=state,
        owner=owner,
        idempotency_key=idempotency_key,
        result=result,
        changed_at=moment_of(changed_at),
        started_at=moment_of(started_at),
    )


def insert_execution(execute: Execute, row: ExecutionRow) -> bool:
    """Add an execution. Return `False`, and change nothing, if the attempt already exists."""
    added = execute(
        f'INSERT INTO executions ({EXECUTION_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL) '
        'ON CONFLICT DO NOTHING',
        (
            row.key,
            row.attempt,
            row.run_id,
            row.tool_name,
            row.tool_call_id,
            row.state,
            row.owner,
            row.idempotency_key,
            row.result,
            milliseconds_of(whole(row.changed_at)),
        ),
    )
    return added.rowcount == 1
