"""Who may answer what."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import translate

from pydantic import BaseModel, ConfigDict, Field, field_validator

from tool_approval.core.decision import RULES

LONGEST_NAME = 200
"""Chosen: characters of an id, a name or a group. Longer than any that a directory gives out."""


class Approver(BaseModel):
    """The person who answers, as the channel has made sure of. Whoever calls `decide` vouches for it."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    id: str = Field(min_length=1, max_length=LONGEST_NAME)
    """Who it is, unmistakably: an account's id, not a name one can choose. It becomes `decided_by`."""
    name: str | None = Field(default=None, max_length=LONGEST_NAME)
    """What the person is called. Hostile text: escape it."""
    groups: frozenset[str] = frozenset()
    """The groups the person is in, as far as the channel knows."""

    @field_validator('id')
    @classmethod
    def _is_a_person(cls, value: str) -> str:
        # Attack: somebody calls themselves like a rule, and the log says that policy has approved
        # (test_approvers.py: test_nobody_is_called_like_a_rule).
        if value in RULES:
            raise ValueError(f'{value!r} is the name of a rule; call the person otherwise')
        return value


class ApproverRule(BaseModel):
    """Who may answer: these users, and the members of these groups. An empty one lets nobody."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    users: frozenset[str] = frozenset()
    """Ids of persons."""
    groups: frozenset[str] = frozenset()
    """Groups; one of a person's is enough."""

    def lists(self, approver: Approver) -> bool:
        """Whether the person is one of them."""
        return approver.id in self.users or not self.groups.isdisjoint(approver.groups)


class ApproverRules:
    """Rules by tool. The most specific that matches a tool's name holds."""

    def __init__(self, rules: Mapping[str, ApproverRule]) -> None:
        """Read the rules.

        Args:
            rules: By tool name or glob. An exact name beats a glob, the glob with more literal characters beats the
                other. Of a tie all have to list the person. A tool that nothing matches can be answered by nobody.
        """
        self._exact = dict(rules)
        self._globs = [(re.compile(translate(pattern)), _literals(pattern), rule) for pattern, rule in rules.items()]

    def for_tool(self, tool_name: str) -> tuple[ApproverRule, ...]:
        """The rules that all have to list whoever answers for a tool. Never none."""
        if tool_name in self._exact:
            return (self._exact[tool_name],)
        found = [(weight, rule) for pattern, weight, rule in self._globs if pattern.fullmatch(tool_name)]
        most = max((weight for weight, _ in found), default=0)
        return tuple(rule for weight, rule in found if weight == most) or (ApproverRule(),)


def _literals(pattern: str) -> int:
    return len(re.sub(r'\[!?+\]?+[^\]]*+\]|[*?]', '', pattern))
