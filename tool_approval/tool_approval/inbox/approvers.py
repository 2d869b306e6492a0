"""Define approvers, and the rules for who may answer the requests of a tool."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import translate

from pydantic import BaseModel, ConfigDict, Field, field_validator

from tool_approval.core.decision import is_reserved
from tool_approval.core.errors import check_type

LONGEST_NAME = 200
"""Maximum length of an id or a name, in characters. The user ids of directory services are shorter."""


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


class ApproverRule(BaseModel):
    """Users and groups that may answer a request. A rule without users and groups lets no approver answer."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    users: frozenset[str] = frozenset()
    """Ids of approvers; see `Approver.id`."""
    groups: frozenset[str] = frozenset()
    """Names of groups whose members may answer."""

    def lists(self, approver: Approver) -> bool:
        """Return whether the rule lists the approver, by id or by one of their groups."""
        return approver.id in self.users or not self.groups.isdisjoint(approver.groups)


class ApproverRules:
    """Approver rules by tool name. The most specific matching rule applies."""

    def __init__(self, rules: Mapping[str, ApproverRule]) -> None:
        """Read the rules.

        Args:
            rules: Rules by tool name or glob. An exact name takes precedence over a glob, and a glob with more literal
                characters over one with fewer. If several globs have equally many literal characters, all their rules
                must list the approver. If no rule matches a tool, its requests cannot be answered.

        Raises:
            TypeError: A value is not an `ApproverRule`.
        """
        for name, rule in rules.items():
            check_type(f'approvers[{name!r}]', rule, 'an `ApproverRule`', ApproverRule)
        self._exact = dict(rules)
        self._globs = [(re.compile(translate(pattern)), _literals(pattern), rule) for pattern, rule in rules.items()]

    def for_tool(self, tool_name: str) -> tuple[ApproverRule, ...]:
        """Return one or more rules for a tool. Each of these rules must list the approver."""
        if tool_name in self._exact:
            return (self._exact[tool_name],)
        found = [(weight, rule) for pattern, weight, rule in self._globs if pattern.fullmatch(tool_name)]
        most = max((weight for weight, _ in found), default=0)
        return tuple(rule for weight, rule in found if weight == most) or (ApproverRule(),)


def _literals(pattern: str) -> int:
    return len(re.sub(r'\[!?+\]?+[^\]]*+\]|[*?]', '', pattern))
