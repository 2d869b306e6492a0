"""Read the answers to the questions of a run from its requests in the store, and count the votes of several people."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tool_approval.core.asking import passing_on
from tool_approval.core.count import Count
from tool_approval.core.decision import ApprovalDecision, ApprovalMode
from tool_approval.core.request import ApprovalRequest
from tool_approval.durable.store import derived_id
from tool_approval.inbox.entry import read_entry
from tool_approval.inbox.store import Row

if TYPE_CHECKING:
    from .agent import DurableAgent

_log = logging.getLogger('tool_approval')


class Answers:
    """UI that gives a controller the answers that arrived while no process waited."""

    one_at_a_time = False
    heeds_approvers = True
    only_reads = True

    def __init__(self, answers: Mapping[str, ApprovalDecision]) -> None:
        self._answers = answers

    async def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Return the recorded answer. Without an answer, the method raises, and the call is denied."""
        return self._answers[str(request.tool_call_id)]


class Missing(Exception):
    """An answer is missing. `request` asks for it, in a question whose id is derived from `of`."""

    def __init__(self, request: ApprovalRequest, of: Sequence[object]) -> None:
        super().__init__('an answer is missing')
        self.request, self.of = request, of


class _Votes:
    """UI that gives a `Count` the votes in the store, and raises `Missing` for the first that is missing."""

    one_at_a_time = False
    heeds_approvers = True
    only_reads = True

    def __init__(
        self, durable: DurableAgent[Any, Any], run_id: str, rows: Mapping[str, Row], of: Sequence[object]
    ) -> None:
        self._durable, self._run_id, self._rows, self._of = durable, run_id, rows, of

    async def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        agreed = [] if request.votes is None else list(request.votes.agreed)
        # A vote counts for the arguments as they were changed last, and the question names the people who have agreed.
        of = [*self._of, self._durable.controller.digest_of(request), agreed] if agreed else self._of
        row = self._rows.get(derived_id(self._durable.key, self._run_id, of))
        if row is None or row.state == 'pending':
            raise Missing(request, of)
        return answer_in(self._durable, row)


async def counted(
    durable: DurableAgent[Any, Any],
    run_id: str,
    request: ApprovalRequest,
    of: Sequence[object],
    rows: Mapping[str, Row],
    at: datetime,
) -> ApprovalDecision | Missing:
    """Return the decision of several people, or the vote that is missing. The votes are the requests in the store.

    Args:
        durable: The agent.
        run_id: Id of the run.
        request: The request.
        of: Values that determine the id of the question about the first vote.
        rows: The requests of the run, by id.
        at: The time.
    """
    while True:
        first = rows.get(derived_id(durable.key, run_id, of))
        since = at if first is None else first.posted_at or at
        votes = _Votes(durable, run_id, rows, of)
        count = Count(durable.ui.needed(request), votes, now=lambda since=since: since)
        try:
            with passing_on(Missing):
                decision = await count.choose(request, mode='interactive')
        except Missing as missing:
            return missing
        until = durable.controller.expires(decision)
        if until is None or durable.controller.now() <= until:
            return decision
        # The approval expired while a question about another call was open.
        of = [*of, until.isoformat()]


def answer_in(durable: DurableAgent[Any, Any], row: Row) -> ApprovalDecision:
    """Return the decision in a settled request, or a denial if it cannot be trusted."""
    try:
        entry = read_entry(row)
    except ValueError:
        _log.error('A stored request cannot be read: another program changed it, or a later version wrote it')
        return denied('The stored request cannot be read, so the call was denied.')
    if entry.answer is not None:
        if not hmac.compare_digest(entry.answer.digest, entry.digest):
            return denied('The answer did not match the request, so the call was denied.')
        request = durable.controller.addressed(entry.request)
        if entry.state == 'approved' and not durable.ui.may_approve(request, entry.answer.decision.decided_by):
            # Attack: the approval would be remembered before the check at execution refuses it, and later let other
            # calls run (test_agent.py: test_what_who_is_no_longer_listed_wanted_remembered_is_not).
            tool_name = entry.request.tool_name
            return denied(f'The approver of this call may no longer approve {tool_name!r}, so the call was not run.')
    return durable.ui.decision_of(entry)


def denied(note: str) -> ApprovalDecision:
    """Return a denial that no person made."""
    return ApprovalDecision(approved=False, note=note, decided_by=('ui',))
