"""Let a call run only after several people have approved it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from .approvers import votes_needed
from .canonical import canonical_json, copied
from .decision import AllowedAnswer, ApprovalDecision, ApprovalMode
from .entries import changed_payload
from .first_of import FirstOf, standing_for
from .protocols import ApprovalUI
from .request import ApprovalRequest, Votes, describe

_ANSWERS: tuple[AllowedAnswer, ...] = ('approve', 'edit')
"""Answers to a question of several people, beside `deny`. One person alone can neither respond nor have an approval
remembered, with which the next call would run without the others."""


class Count:
    """An approval UI that needs the approval of several people. It asks all of them at once; one denial decides.

    After each approval, the other people are asked anew, with the names of those who have agreed in `request.votes`. If
    a person changes the arguments, the votes start over: the others are asked about the changed arguments. No person
    can answer in the tool's place, and no approval is remembered.

    The vote of a person counts once. An approval does not count if it has no name, or only the names of the requester
    and of people who have agreed already. Two names that differ only in case are one person. If no UI can give another
    vote, the call is denied.

    Right before the call runs, each of the people must still be allowed to approve it.
    """

    one_at_a_time = False
    """Whether only one question may be open at a time."""
    heeds_approvers = True
    """Whether only the people whom `request.approvers` lists can approve."""

    def __init__(self, count: int, *uis: ApprovalUI, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """Create from the number of people who must agree, and from the UIs that ask them.

        Args:
            count: Number of people. If a rule in `request.approvers` says more, that number counts.
            *uis: The UIs.
            now: Function that returns the time when the call is first asked about.

        Raises:
            ValueError: The count is less than two, or no UI was given.
            TypeError: The count is not an integer, or one of the UIs has no `choose`.
        """
        if type(count) is not int:
            raise TypeError(f'`count` must be a number of people, not {count!r}')
        if count < 2:
            raise ValueError(f'`count` must be at least 2, not {count}; for one person, use the UI itself')
        self._count = count
        self._ui = FirstOf(*uis)
        self._now = now

    async def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Ask until enough people have agreed, or one has denied the call."""
        asked, notes = request.limited(_ANSWERS), list[str]()
        if not asked.allows('approve') and not asked.allows('edit'):
            note = 'This call cannot be approved by several people, because its tool allows no approval.'
            return ApprovalDecision(approved=False, note=note, decided_by=('ui',))
        first = self._none_yet(request)
        votes, is_changed = first, False
        while True:
            shown = asked.detached(votes=votes)
            with standing_for(shown, request):
                decision = await self._ui.choose(shown, mode=mode)
            if not decision.approved:
                return decision
            new = votes.new(decision.people, requester=shown.facts.requester)
            if decision.note is not None:
                notes.append(decision.note)
            args = decision.override_args
            if args is not None and canonical_json(args) != canonical_json(asked.args):
                asked, is_changed, votes = _with(asked, args, request), True, first
            votes = votes.joined(new)
            if votes.missing == 0:
                return ApprovalDecision(
                    approved=True,
                    note='\n'.join(notes) or None,
                    override_args=copied(asked.args) if is_changed else None,
                    decided_by=votes.agreed,
                    decided_at=decision.decided_at,
                )

    def asks(self, request: ApprovalRequest) -> list[str]:
        """Return the people and groups whom the UIs ask, as far as the UIs know them."""
        return self._ui.asks(request)

    def may_approve(self, request: ApprovalRequest, approvers: Sequence[str]) -> bool:
        """Return whether enough people have approved a request, and each of them may still approve it."""
        votes = self._none_yet(request)
        asked = request.changed(votes=votes)
        counted = votes.joined(votes.new(approvers, requester=request.facts.requester))
        is_listed = all(self._ui.may_approve(asked, (each,)) for each in approvers)
        return counted.missing == 0 and len(counted.agreed) == len(approvers) and is_listed

    def _none_yet(self, request: ApprovalRequest) -> Votes:
        return Votes(needed=max(self._count, votes_needed(request.approvers)), since=self._now())


def _with(asked: ApprovalRequest, args: Mapping[str, Any], original: ApprovalRequest) -> ApprovalRequest:
    """Return the question about changed arguments. Its presentation would show the original ones."""
    payload = {**original.payload, **changed_payload(original, args)}
    return asked.changed(
        args=copied(args),
        payload=payload,
        description=describe(asked.tool_name, payload),
        described_by=None,
        presentation=None,
        rejected_edit=None,
    )
