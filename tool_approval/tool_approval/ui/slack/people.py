"""Who has pressed, and whether they may."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping

from tool_approval.inbox import Approver, ApproverRule, InboxEntry, NotAnApprover

from .channel import SlackChannel

REMEMBERED_S = 60.0
"""Chosen: seconds for which it is remembered who is in a user group. Who leaves one can answer for so long."""

_GROUP = re.compile(r'S[A-Z0-9]{2,40}')
"""Ids of Slack's user groups."""

_NOT_LISTED = 'you are not listed for this channel'


class People:
    """Knows the persons behind Slack's user ids."""

    def __init__(
        self,
        channel: SlackChannel,
        rule: ApproverRule,
        ids: Mapping[str, str] | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Let in whom a rule lists.

        Args:
            channel: Where to ask who is in a user group.
            rule: Slack's ids of users and of user groups.
            ids: By Slack's user id, the id that the person has elsewhere. Who is not in it is let in by nothing.
            clock: Seconds that never go back.
        """
        self._channel = channel
        self._rule = rule
        self._ids = ids
        self._clock = clock
        self._members: dict[str, tuple[float, frozenset[str]]] = {}

    async def approver(self, user_id: str, name: str | None, entry: InboxEntry) -> Approver:
        """The person, if they may answer a request.

        Args:
            user_id: Slack's id, from a request that Slack has signed.
            name: What Slack calls the person.
            entry: The request.

        Raises:
            NotAnApprover: They may not; it says why.
            SlackUnavailable: Slack does not say who is in a group.
        """
        tool_name = entry.request.tool_name
        person_id = user_id if self._ids is None else self._ids.get(user_id)
        if person_id is None:
            raise NotAnApprover(user_id, tool_name, _NOT_LISTED)
        # Slack is asked only where the person is not listed by name.
        wanted = frozenset[str]() if user_id in self._rule.users else self._rule.groups
        wanted = wanted.union(*(rule.groups for rule in entry.content.approvers or () if person_id not in rule.users))
        groups = frozenset([group for group in sorted(wanted) if await self._has(group, user_id)])
        if not self._rule.lists(Approver(id=user_id, groups=groups)):
            raise NotAnApprover(user_id, tool_name, _NOT_LISTED)
        approver = Approver(id=person_id, name=name, groups=groups)
        entry.check_approver(approver)
        return approver

    async def _has(self, group: str, user_id: str) -> bool:
        if _GROUP.fullmatch(group) is None:
            return False  # a group of another channel, which Slack knows nothing of
        known = self._members.get(group)
        if known is None or self._clock() - known[0] >= REMEMBERED_S:
            known = (self._clock(), await self._channel.members(group))
            self._members[group] = known
        return user_id in known[1]
