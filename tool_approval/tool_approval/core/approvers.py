"""Say who must approve a call: which people and groups, how many of them, and who is asked later."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError, field_serializer, field_validator

from .bounds import Duration, in_words
from .decision import is_reserved

LONGEST_NAME = 200
"""Maximum length of an id or a name, in characters. The user ids of directory services are shorter."""

_AT_ONCE = timedelta()


class Approver(BaseModel):
    """The person who answers a request. The caller of `Inbox.decide` must have authenticated the person."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    id: str = Field(min_length=1, max_length=LONGEST_NAME)
    """Unique id of the person's account, not a name they can choose. Stored as `decided_by`."""
    name: str | None = Field(default=None, max_length=LONGEST_NAME)
    """Display name. Untrusted text: escape it."""
    groups: frozenset[str] = frozenset()
    """The person's groups, as far as the channel knows them."""

    @field_validator('id')
    @classmethod
    def _is_a_person(cls, value: str) -> str:
        # Attack: an approver takes the name of a rule, and the log says that the policy approved
        # (test_approvers.py: test_approver_id_that_is_the_name_of_a_rule_is_refused).
        if is_reserved(value):
            raise ValueError(f'{value!r} cannot be the id of an approver: it is the name of a rule; use another id')
        return value


def _read_others(value: object) -> object:
    if isinstance(value, Mapping):  # a stored request
        try:
            return ApproverRule.model_validate(value)
        except ValidationError:
            raise ValueError('not the name of an entry') from None
    if not isinstance(value, ApproverRule) and not (isinstance(value, str) and value):
        raise ValueError('not the name of an entry')
    return value


class Escalation(BaseModel):
    """Other people who may answer, too, after a time without a decision."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    after: Duration
    """Time since the call was first asked about."""
    to: Annotated[Any, PlainValidator(_read_others)]
    """The others: an `ApproverRule`, of which only the people, the groups and the escalation count. In settings, the
    name of an entry under `approvers`."""


class Timeout(BaseModel):
    """The end of the wait for a decision."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    after: Duration
    """Time since the call was first asked about."""
    then: Literal['deny']
    """The call is denied."""


class ApproverRule(BaseModel):
    """The people who may approve a call, and how many of them must. Without users and groups, no one may."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    users: frozenset[str] = frozenset()
    """Ids of approvers; see `Approver.id`."""
    groups: frozenset[str] = frozenset()
    """Names of groups whose members may answer."""
    count: int = Field(default=1, ge=1, strict=True)
    """Number of different people who must approve. One denial decides."""
    escalate: Escalation | None = None
    """Other people who may answer, too, after a time. Their votes and those of the others add up."""
    timeout: Timeout | None = None
    """Time after which the call is denied; `None` leaves the time to the UI."""

    @field_serializer('users', 'groups', when_used='json')
    def _in_order(self, names: frozenset[str]) -> list[str]:
        return sorted(names)

    def is_as_strict_as(self, other: ApproverRule) -> bool:
        """Return whether all approvals under this rule would have been enough under another one, at any time."""
        mine, others = self.everyone, other.everyone
        is_later = self.escalate is None or (other.escalate is not None and self.others_after == other.others_after)
        return is_later and self.count >= other.count and mine.users <= others.users and mine.groups <= others.groups

    def lists(self, approver: Approver, waited: timedelta = _AT_ONCE) -> bool:
        """Return whether the rule lists the approver, by id or by one of their groups.

        Args:
            approver: The person.
            waited: Time since the call was first asked about.
        """
        if approver.id in self.users or not self.groups.isdisjoint(approver.groups):
            return True
        later = self.escalate
        return later is not None and waited >= later.after and later.to.lists(approver, waited - later.after)

    def may_list(self, name: str) -> bool:
        """Return whether the rule lists a person at any time. The members of groups are unknown."""
        everyone = self.everyone
        return name in everyone.users or bool(everyone.groups)

    @property
    def everyone(self) -> ApproverRule:
        """All people and groups who may answer at once or later."""
        if self.escalate is None:
            return self
        others = self.escalate.to.everyone
        return ApproverRule(users=self.users | others.users, groups=self.groups | others.groups)

    @property
    def others_after(self) -> list[timedelta]:
        """Times since the call was first asked about after which others may answer, too, in order."""
        found: list[timedelta] = []
        rule, waited = self, _AT_ONCE
        while rule.escalate is not None:
            waited += rule.escalate.after
            found.append(waited)
            rule = rule.escalate.to
        return found

    @property
    def names(self) -> list[str]:
        """The people and groups who may answer at once, in words."""
        return [*sorted(self.users), *(f'group {name}' for name in sorted(self.groups))]

    @property
    def text(self) -> str:
        """The whole rule in words."""
        names = ', '.join(self.names) or 'no one'
        parts = [f'{self.count} of {names}' if self.count > 1 else names]
        later = self.escalate
        while later is not None:
            names = ', '.join(later.to.names) or 'no one'
            parts.append(f'after {in_words(later.after)} also {names}')
            later = later.to.escalate
        ends = [] if self.timeout is None else [f'denied after {in_words(self.timeout.after)}']
        return '; '.join([*parts, *ends])


def votes_needed(rules: tuple[ApproverRule, ...] | None) -> int:
    """Return how many people must approve so that every rule has enough of them."""
    return max((rule.count for rule in rules or ()), default=1)


def timeouts_of(rules: tuple[ApproverRule, ...] | None) -> list[timedelta]:
    """Return the times after which the rules deny a call."""
    return [rule.timeout.after for rule in rules or () if rule.timeout is not None]


def why_not_enough(rules: tuple[ApproverRule, ...], people: tuple[str, ...], *, needed: int) -> str | None:
    """Return why an approval of these people, each a different one, does not do what the rules say, or `None`."""
    if rules and len(people) < needed:
        return f'{len(people)} of {needed} people approved, by name'
    if not all(rule.may_list(each) for rule in rules for each in people):
        return 'someone approved who may not'
    return None
