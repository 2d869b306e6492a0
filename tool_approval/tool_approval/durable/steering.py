"""Show people durable runs, and let them steer: cancel one, settle an unknown call."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias, TypeGuard

from pydantic import AwareDatetime, BaseModel, ConfigDict

from tool_approval.core.errors import ApprovalError
from tool_approval.core.threads import in_thread
from tool_approval.display import escape_line
from tool_approval.inbox import Approver, InboxEntry, InboxStore
from tool_approval.inbox.entry import read_entry
from tool_approval.inbox.store import ParkingStore

from .ledger import Ledger
from .store import DurableStore, ExecutionRow, ExecutionState, RunRow, RunStatus


class SteeringRefused(ApprovalError):
    """A run cannot be shown or steered so. Nothing was changed."""


class UnknownRun(SteeringRefused):
    """There is no run of that id: there never was, or it was forgotten after its end."""

    def __init__(self) -> None:
        """Say so."""
        super().__init__('there is no such run in the inbox')


class RunEnded(SteeringRefused):
    """The run has ended."""

    def __init__(self, status: RunStatus) -> None:
        """Say how it ended."""
        self.status = status
        super().__init__(f'the run has ended: it is {status}')


class NotUnknown(SteeringRefused):
    """The outcome of the call is not, or not any more, unknown."""

    def __init__(self) -> None:
        """Say so."""
        super().__init__('no such call of the run is unknown, or it was settled meanwhile')


class NobodyMay(SteeringRefused):
    """No request of the run says who may steer it."""

    def __init__(self) -> None:
        """Say who may nevertheless."""
        super().__init__('no request of the run says who may do that; use `tool-approval runs`')


class _View(BaseModel):
    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class AskedView(_View):
    """A request of a run."""

    id: str
    """Its id in the inbox."""
    state: str
    """`pending` while it is open."""
    tool_name: str
    """The tool, as the model calls it."""
    tool_call_id: str | None
    """The call's id in the run."""
    approvers: str
    """Who may answer, in words. Hostile text."""
    posted_at: AwareDatetime
    """When it was asked, in UTC."""
    expires_at: AwareDatetime | None
    """When the wait is to end, in UTC."""


class ExecutionView(_View):
    """One attempt to execute a call."""

    key: str
    """Which call."""
    attempt: int
    """1 for the first."""
    state: ExecutionState
    """`unknown` where its worker died in the middle."""
    tool_name: str
    """The tool."""
    tool_call_id: str
    """The call's id in the run."""
    started_at: AwareDatetime | None
    """When it began to execute, in UTC."""
    changed_at: AwareDatetime
    """When it last changed its state, in UTC."""
    is_unsettled: bool
    """Whether its outcome is unknown, and it was not settled."""


class RunSummary(_View):
    """A durable run. All its texts are as the application or the model wrote them, but `why`."""

    id: str
    """Its id."""
    agent: str
    """The name of its agent."""
    status: RunStatus
    """`queued` also while it executes."""
    created_at: AwareDatetime
    """When it was started, in UTC."""
    changed_at: AwareDatetime
    """When it was last parked, taken up or ended, in UTC."""


class RunView(RunSummary):
    """A durable run, with what it asked and executed."""

    why: str
    """Why it does not go on, as a sentence without its full stop."""
    outcome: str | None
    """Its output or its error, as JSON text, where it has ended."""
    requests: tuple[AskedView, ...]
    """The oldest first."""
    executions: tuple[ExecutionView, ...]
    """The attempts of one call in their order."""


@dataclass(frozen=True, kw_only=True)
class RunDetails:
    """A run as it was when it was read."""

    run: RunRow
    """The run."""
    requests: Sequence[InboxEntry]
    """Its requests, the oldest first."""
    unreadable: int
    """How many of its requests cannot be read."""
    executions: Sequence[ExecutionRow]
    """The executions of its calls."""

    @property
    def open(self) -> Sequence[InboxEntry]:
        """Its requests that wait for an answer."""
        return [entry for entry in self.requests if entry.state == 'pending']

    @property
    def why(self) -> str:
        """Why it does not go on, as a sentence without its full stop."""
        at = f'{self.run.changed_at:%Y-%m-%d %H:%M:%S} UTC'
        since = f'since {at}'
        if has_ended(self.run):
            return f'It ended at {at}: {self.run.status}'
        if self.unreadable:
            return f'It waits {since}; {self.unreadable} of its requests cannot be read'
        if self.open:
            return f'It waits for {len(self.open)} answer{"s" * (len(self.open) > 1)} {since}'
        if self.run.status == 'waiting':
            return 'It has its answers, and goes on as soon as a worker takes it up'
        return f'It is executed, or waits for a worker, {since}'

    @property
    def view(self) -> RunView:
        """The same for programs."""
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
        )

    def check_may_cancel(self, by: Approver) -> None:
        """Refuse who may not answer each open request of the run; where none is open, each that it has asked.

        Raises:
            NotAnApprover: It says why.
            NobodyMay: There is none, or one that cannot be read.
        """
        self._check(self.open or self.requests, by)

    def unsettled(self, key: str, attempt: int) -> ExecutionRow:
        """The unknown attempt.

        Raises:
            NotUnknown: It is another, or was settled.
        """
        return only([row for row in self.executions if (row.key, row.attempt) == (key, attempt)])

    def check_may_settle(self, row: ExecutionRow, by: Approver) -> None:
        """Refuse who may not answer each request of the run for that tool.

        Raises:
            NotAnApprover: It says why.
            NobodyMay: There is none, or one that cannot be read.
        """
        # The names of calls are kept escaped.
        self._check([each for each in self.requests if escape_line(each.request.tool_name) == row.tool_name], by)

    def _check(self, entries: Sequence[InboxEntry], by: Approver) -> None:
        # Attack: who may answer is said by the requests alone. Without one that can be read, anybody who is let in
        # could end what others are asked about (test_steering.py: test_without_a_request_that_says_who_nobody_may).
        if not entries or self.unreadable:
            raise NobodyMay
        for entry in entries:
            entry.check_approver(by)


def has_ended(run: RunRow) -> bool:
    """Whether a run has ended."""
    return run.status not in ('queued', 'waiting')


def keeps_runs(store: InboxStore) -> TypeGuard[ParkingStore]:
    """Whether the store of an inbox keeps durable runs too."""
    return isinstance(store, ParkingStore)


def summary_of(run: RunRow) -> RunSummary:
    """A run without its details."""
    return RunSummary.model_validate(run, from_attributes=True)


def approvers_of(entry: InboxEntry) -> str:
    """Who may answer a request, in words. Hostile text: escape it."""
    content = entry.content
    rules = [
        [*sorted(rule.users), *(f'members of {group}' for group in sorted(rule.groups))] or ['nobody']
        for rule in content.approvers or ()
    ]
    names = ', who must also be '.join(', '.join(each) for each in rules) or 'everybody who is let in'
    is_barred = content.forbid_self_approval and content.requester is not None
    return f'{names}, but not {content.requester}' if is_barred else names


def read_run(store: DurableStore, run_id: str) -> RunDetails:
    """A run with what it asked and executed. Blocks.

    Raises:
        UnknownRun: There is none of that id.
        InboxError: The store cannot be read.
    """
    # No store is asked for what none can keep, such as a null character in PostgreSQL.
    run = store.get_run(run_id) if run_id.isprintable() else None
    if run is None:
        raise UnknownRun
    requests, unreadable = _entries(store, run_id)
    return RunDetails(run=run, requests=requests, unreadable=unreadable, executions=executions_of(store, run_id))


def _entries(store: DurableStore, run_id: str) -> tuple[Sequence[InboxEntry], int]:
    """The requests of a run, and how many more there are that cannot be read."""
    rows = store.requests_of(run_id)
    entries: list[InboxEntry] = []
    for row in rows:
        with suppress(ValueError):
            entries.append(read_entry(row))
    return entries, len(rows) - len(entries)


def cancel_run(store: DurableStore, run_id: str, by: Approver | None = None, *, at: datetime) -> RunDetails:
    """End a run. Its open requests are withdrawn, and what it executes at that moment is not stopped. Blocks.

    Args:
        store: Where it is.
        run_id: Its id.
        by: Who wants that, where they are not the owner of the store.
        at: Now.

    Returns:
        The run, cancelled.

    Raises:
        UnknownRun: There is none of that id.
        RunEnded: It has ended.
        NotAnApprover: This person may not.
        NobodyMay: It is not known who may.
        InboxError: The store cannot be used.
    """
    found = read_run(store, run_id)
    if by is not None and not has_ended(found.run):
        found.check_may_cancel(by)
    if not store.cancel(run_id, at=at):
        raise RunEnded(read_run(store, run_id).run.status)
    return read_run(store, run_id)


def executions_of(store: DurableStore, run_id: str) -> Sequence[ExecutionRow]:
    """The executions of a run, also of one that was stopped and resumed by hand. Blocks."""
    return store.executions_of(escape_line(run_id))


def only(rows: Sequence[ExecutionRow]) -> ExecutionRow:
    """The unknown one of these.

    Raises:
        NotUnknown: There is none, or more than one.
    """
    found = [row for row in rows if row.is_unsettled]
    if len(found) != 1:
        raise NotUnknown
    return found[0]


Verdict: TypeAlias = Literal['result', 'again', 'give_up']
"""The answer of a person about an unknown call: its result, to run it again, or to give it up."""


async def settle_call(
    store: DurableStore,
    run_id: str,
    row: ExecutionRow,
    verdict: Verdict,
    result: object = None,
    *,
    by: str,
    at: datetime,
) -> None:
    """Settle an unknown call. The question about it is withdrawn, so its run can go on.

    Args:
        store: Where it is.
        run_id: The run.
        row: The call, as it was last seen.
        verdict: The answer of a person about it.
        result: Its result, if it has one. JSON.
        by: The person's id.
        at: Now.

    Raises:
        NotUnknown: It is not unknown any more.
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
    await in_thread(lambda: _withdraw(store, run_id, row, at))


def _withdraw(store: DurableStore, run_id: str, row: ExecutionRow, at: datetime) -> None:
    for entry in _entries(store, run_id)[0]:
        request = entry.request
        of = (escape_line(request.tool_name), escape_line(request.tool_call_id or ''))
        if entry.state == 'pending' and of == (row.tool_name, row.tool_call_id):
            store.inbox_store.settle(entry.id, 'withdrawn', at=at)
