"""Show durable runs to people, and let them cancel a run or settle a call whose outcome is unknown."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias, TypeGuard

from pydantic import AwareDatetime, BaseModel, ConfigDict

from tool_approval.core.errors import ApprovalError
from tool_approval.display import escape_line
from tool_approval.inbox import Approver, InboxEntry, InboxStore
from tool_approval.inbox.entry import read_entry
from tool_approval.inbox.store import ParkingStore

from .ledger import Ledger
from .rows import ExecutionRow, ExecutionState, RunRow, RunStatus
from .store import DurableStore


class SteeringRefused(ApprovalError):
    """A run cannot be shown or changed as requested. Nothing was changed."""


class UnknownRun(SteeringRefused):
    """There is no run with that id. The run never existed, or was deleted after its end."""

    def __init__(self) -> None:
        """Set the message."""
        super().__init__('there is no such run in the inbox')


class RunEnded(SteeringRefused):
    """The run has ended."""

    def __init__(self, status: RunStatus) -> None:
        """Set the message, which says how the run ended."""
        self.status = status
        super().__init__(f'the run has already ended: its status is {status}')


class NotUnknown(SteeringRefused):
    """The outcome of the call is no longer unknown, or was never unknown."""

    def __init__(self) -> None:
        """Set the message."""
        super().__init__('the run has no unsettled call with this id; the call may be settled already')


class NobodyMay(SteeringRefused):
    """The requests of the run do not say who may cancel the run or settle its calls."""

    def __init__(self) -> None:
        """Set the message. It suggests `tool-approval runs`, a command that does not check approvers."""
        super().__init__('it is unknown who may change this run; to change it, use `tool-approval runs`')


class _View(BaseModel):
    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class AskedView(_View):
    """A request of a run."""

    id: str
    """Id of the request in the inbox."""
    state: str
    """State of the request: `pending` while it is open."""
    tool_name: str
    """Name by which the model calls the tool."""
    tool_call_id: str | None
    """Id of the call in the run."""
    approvers: str
    """Description of who may answer. The text is untrusted."""
    posted_at: AwareDatetime
    """Time of the question, in UTC."""
    expires_at: AwareDatetime | None
    """Time at which the request expires, in UTC, or `None`."""


class ExecutionView(_View):
    """One attempt to execute a call."""

    key: str
    """Key of the call."""
    attempt: int
    """Number of the attempt, from 1."""
    state: ExecutionState
    """State of the attempt: `unknown` if its worker died during the call."""
    tool_name: str
    """Name of the tool."""
    tool_call_id: str
    """Id of the call in the run."""
    started_at: AwareDatetime | None
    """Time at which the attempt began to execute, in UTC."""
    changed_at: AwareDatetime | None
    """Time of the last change of state, in UTC, or `null` if the stored time is damaged."""
    is_unsettled: bool
    """Whether the outcome is unknown, and the call was neither tried again nor given up."""


class RunSummary(_View):
    """A durable run. All texts except `why` come unchanged from the application or the model."""

    id: str
    """Id of the run."""
    agent: str
    """Name of the run's agent. For a nested run, the names from the first agent down, separated by `/`."""
    status: RunStatus
    """Status of the run. `queued` includes runs that are executing."""
    created_at: AwareDatetime | None
    """Time at which the run was started, in UTC, or `null` if the stored time is damaged."""
    changed_at: AwareDatetime | None
    """Time at which the run was last parked, resumed or ended, in UTC, or `null` if the stored time is damaged."""
    parent: str | None
    """For a nested run, the id of the run that waits for its end."""


class RunView(RunSummary):
    """A durable run, with its requests and executions."""

    why: str
    """Reason why the run does not continue, as a sentence without a full stop."""
    outcome: str | None
    """Output or error as JSON text, or `None` until the run has ended."""
    requests: tuple[AskedView, ...]
    """Requests of the run, oldest first."""
    executions: tuple[ExecutionView, ...]
    """Executions of the run's calls, with the attempts of each call in order."""
    nested: tuple[RunSummary, ...]
    """Runs that are nested in the run, at any depth, oldest first."""


@dataclass(frozen=True, kw_only=True)
class RunDetails:
    """A run, with its requests and executions, as last read."""

    run: RunRow
    """The run itself."""
    requests: Sequence[InboxEntry]
    """Requests of the run, oldest first."""
    below: Sequence[InboxEntry]
    """Requests of the nested runs."""
    unreadable: int
    """Number of requests, of the run and its nested runs, that cannot be read."""
    executions: Sequence[ExecutionRow]
    """Executions of the run's calls."""
    nested: Sequence[RunRow]
    """Runs that are nested in the run, at any depth, oldest first."""

    @property
    def open(self) -> Sequence[InboxEntry]:
        """Requests of the run and its nested runs that wait for an answer."""
        return [entry for entry in (*self.requests, *self.below) if entry.state == 'pending']

    @property
    def why(self) -> str:
        """Reason why the run does not continue, as a sentence without a full stop."""
        at = time_text(self.run.changed_at)
        since = f'since {at}'
        if has_ended(self.run):
            return f'The run ended at {at}: {self.run.status}'
        if self.unreadable:
            return f'The run has been waiting {since}; {self.unreadable} of its requests cannot be read'
        if self.open:
            return f'The run has been waiting for {len(self.open)} answer{"s" * (len(self.open) > 1)} {since}'
        if unfinished := sum(not has_ended(each) for each in self.nested):
            return f'The run has been waiting for {unfinished} nested run{"s" * (unfinished > 1)} {since}'
        if self.run.status == 'waiting':
            return 'The run has its answers, and continues as soon as a worker resumes it'
        return f'Since {at}, the run has been executing, or waiting for a worker that serves its agent and version'

    @property
    def view(self) -> RunView:
        """Return the details as data for programs."""
        return RunView(
            **summary_of(self.run).model_dump(),
            why=self.why,
            outcome=self.run.outcome,
            requests=tuple(
                AskedView(
                    id=entry.id,
                    state=entry.state,
                    tool_name=entry.request.tool_name,
                    tool_call_id=entry.request.tool_call_id,
                    approvers=approvers_of(entry),
                    posted_at=entry.posted_at,
                    expires_at=entry.content.expires_at,
                )
                for entry in self.requests
            ),
            executions=tuple(ExecutionView.model_validate(row, from_attributes=True) for row in self.executions),
            nested=tuple(map(summary_of, self.nested)),
        )

    def check_may_cancel(self, by: Approver) -> None:
        """Raise an error unless this person may answer all open requests or, if none is open, all requests of the run
        and its nested runs, which are cancelled too.

        Raises:
            NotAnApprover: The person is not allowed to answer some of these requests. The message states the reason.
            NobodyMay: The run has no request, or has a request that cannot be read.
        """
        # Attack: who may answer nothing but the calling run would withdraw questions that others are asked
        # (test_steering.py: test_who_may_not_answer_a_nested_run_may_not_cancel_the_run_above).
        self._check(self.open or [*self.requests, *self.below], by)

    def unsettled(self, key: str, attempt: int) -> ExecutionRow:
        """Return the attempt if its outcome is unknown.

        Raises:
            NotUnknown: The attempt does not exist, or its outcome is known or already settled.
        """
        return only([row for row in self.executions if (row.key, row.attempt) == (key, attempt)])

    def check_may_settle(self, row: ExecutionRow, by: Approver) -> None:
        """Check that the person may answer all of the run's requests for the tool in `row`.

        Raises:
            NotAnApprover: The person is not allowed to answer some of these requests. The message states the reason.
            NobodyMay: The run has no request for that tool, or has a request that cannot be read.
        """
        # Executions are stored with escaped tool names.
        self._check([each for each in self.requests if escape_line(each.request.tool_name) == row.tool_name], by)

    def _check(self, entries: Sequence[InboxEntry], by: Approver) -> None:
        # Attack: only requests say who may answer. Without a readable one, any visitor could end runs that others are
        # asked about (test_steering.py: test_without_a_request_that_says_who_nobody_may).
        if not entries or self.unreadable:
            raise NobodyMay
        for entry in entries:
            entry.check_approver(by)


def time_text(moment: datetime | None) -> str:
    """Return a time for people."""
    return 'a time that is damaged' if moment is None else f'{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC'


def has_ended(run: RunRow) -> bool:
    """Whether a run has ended."""
    return run.status not in ('queued', 'waiting')


def keeps_runs(store: InboxStore) -> TypeGuard[ParkingStore]:
    """Whether the store of an inbox also keeps durable runs."""
    return isinstance(store, ParkingStore)


def summary_of(run: RunRow) -> RunSummary:
    """Return a run without its details."""
    return RunSummary.model_validate(run, from_attributes=True)


def approvers_of(entry: InboxEntry) -> str:
    """Describe who may answer a request. The text is untrusted, and must be escaped."""
    content = entry.content
    rules = [
        [*sorted(rule.users), *(f'members of {group}' for group in sorted(rule.groups))] or ['no one']
        for rule in content.approvers or ()
    ]
    names = ', who must also be '.join(', '.join(each) for each in rules) or 'everyone who has access'
    is_barred = content.forbid_self_approval and content.requester is not None
    return f'{names}, but not {content.requester}' if is_barred else names


def read_run(store: DurableStore, run_id: str) -> RunDetails:
    """Return a run with its requests and executions. This call blocks.

    Raises:
        UnknownRun: There is no run with this id.
        InboxError: The store cannot be read.
    """
    # Do not pass ids that no store can hold, such as a null character in PostgreSQL.
    run = store.get_run(run_id) if run_id.isprintable() else None
    if run is None:
        raise UnknownRun
    requests, unreadable = _entries(store, run_id)
    nested = store.nested_in(run_id)
    below = [_entries(store, each.id) for each in nested]
    return RunDetails(
        run=run,
        requests=requests,
        below=[entry for entries, _ in below for entry in entries],
        unreadable=unreadable + sum(count for _, count in below),
        executions=executions_of(store, run_id),
        nested=nested,
    )


def _entries(store: DurableStore, run_id: str) -> tuple[Sequence[InboxEntry], int]:
    """Return the requests of a run, and the number of those that cannot be read."""
    rows = store.requests_of(run_id)
    entries: list[InboxEntry] = []
    for row in rows:
        with suppress(ValueError):
            entries.append(read_entry(row))
    return entries, len(rows) - len(entries)


def cancel_run(store: DurableStore, run_id: str, by: Approver | None = None, *, at: datetime) -> RunDetails:
    """Cancel a run and its nested runs, and withdraw their open requests. This call blocks.

    A call that is executing is not stopped.

    Args:
        store: The store of the run.
        run_id: The id of the run.
        by: The person who cancels the run, or `None` for the owner of the store.
        at: The current time.

    Returns:
        The cancelled run.

    Raises:
        UnknownRun: There is no run with this id.
        RunEnded: The run has ended.
        NotAnApprover: The person is not allowed to cancel the run.
        NobodyMay: The run does not say who may cancel it.
        InboxError: The store cannot be used.
    """
    found = read_run(store, run_id)
    if by is not None and not has_ended(found.run):
        found.check_may_cancel(by)
    if not store.cancel(run_id, at=at):
        raise RunEnded(read_run(store, run_id).run.status)
    return read_run(store, run_id)


def executions_of(store: DurableStore, run_id: str) -> Sequence[ExecutionRow]:
    """Return the executions of any run, even one that was stopped and resumed by hand. This call blocks."""
    return store.executions_of(escape_line(run_id))


def only(rows: Sequence[ExecutionRow]) -> ExecutionRow:
    """Return the only unsettled execution in `rows`.

    Raises:
        NotUnknown: `rows` does not contain exactly one unsettled execution.
    """
    found = [row for row in rows if row.is_unsettled]
    if len(found) != 1:
        raise NotUnknown
    return found[0]


Verdict: TypeAlias = Literal['result', 'again', 'give_up']
"""A person's decision about a call with an unknown outcome: to report the result, run the call again, or give it up."""


async def settle_call(
    store: DurableStore,
    row: ExecutionRow,
    verdict: Verdict,
    result: object = None,
    *,
    by: str,
) -> None:
    """Settle a call whose outcome is unknown. The store withdraws the question about it, so that its run can continue.

    Args:
        store: The store of the run.
        row: The call, as last read.
        verdict: The person's decision.
        result: The result, a JSON value, if `verdict` is `result`.
        by: The person's id.

    Raises:
        NotUnknown: The outcome of the call is no longer unknown.
        InboxError: The store cannot be used.
    """
    with Ledger(store, beats=False) as ledger:
        match verdict:
            case 'result':
                is_settled = await ledger.settle(row, result, by)
            case 'again':
                is_settled = await ledger.again(row, by)
            case _:
                is_settled = await ledger.give_up(row, by)
    if not is_settled:
        raise NotUnknown
