"""Ask other people too after a time without an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from .decision import ApprovalDecision, ApprovalMode
from .errors import check_type
from .first_of import FirstOf
from .protocols import ApprovalUI
from .request import ApprovalRequest


class Escalating:
    """An approval UI that asks another UI too, if there is no answer after a time.

    The first question stays open, so from then on the first answer of either UI counts, as with `FirstOf`. If the first
    UI fails before, the other UI is asked when the time has passed. Inside a `Count`, the time begins anew with each
    vote.
    """

    one_at_a_time = False
    """Whether only one question may be open at a time."""
    heeds_approvers = True
    """Whether only the people whom `request.approvers` lists can approve."""

    def __init__(
        self,
        ui: ApprovalUI,
        *,
        after: timedelta,
        to: ApprovalUI,
        wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Create from the UI that is asked first, and the UI that is asked later.

        Args:
            ui: UI that is asked at once.
            after: Time after which `to` is asked too.
            to: UI that is asked then.
            wait: Function that waits for a number of seconds.

        Raises:
            ValueError: The time is not positive.
            TypeError: A UI has no `choose`, or `after` is not a `timedelta`.
        """
        check_type('after', after, 'a `timedelta`', timedelta)
        if not after > timedelta():
            raise ValueError(f'`after` must be positive, not {after!r}')
        self._ui = FirstOf(ui, to)
        self._first = len(FirstOf(ui).uis)
        self._after_s = after.total_seconds()
        self._wait = wait
        self.groups_responses = self._ui.groups_responses
        """Whether one of the UIs asks about all requests of a response as one group."""

    async def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Ask about one request."""
        [decision] = await self.choose_group([request], mode=mode)
        return decision

    async def choose_group(self, requests: Sequence[ApprovalRequest], *, mode: ApprovalMode) -> list[ApprovalDecision]:
        """Ask about a group, and return a decision for each request, in order."""

        async def passed() -> None:
            await self._wait(self._after_s)

        due = asyncio.create_task(passed())

        async def begin(number: int) -> None:
            if number >= self._first:
                await asyncio.shield(due)

        try:
            return await self._ui.ask(requests, mode=mode, begin=begin)
        finally:
            due.cancel()

    def asks(self, request: ApprovalRequest) -> list[str]:
        """Return the people and groups whom the UIs ask, at once or later, as far as the UIs know them."""
        return self._ui.asks(request)

    def may_approve(self, request: ApprovalRequest, approvers: Sequence[str]) -> bool:
        """Return whether these people may still approve a request at one of the UIs."""
        return self._ui.may_approve(request, approvers)
