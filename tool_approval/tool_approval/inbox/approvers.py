"""Find the rules for who may answer the requests of a tool."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import translate

from tool_approval.core.approvers import ApproverRule
from tool_approval.core.config import count_literals
from tool_approval.core.errors import check_type


class ApproverRules:
    """Approver rules by tool name. The most specific matching rule applies."""

    def __init__(self, rules: Mapping[str, ApproverRule]) -> None:
        """Read the rules.

        Args:
            rules: Rules by tool name or glob. An exact name takes precedence over a glob, and a glob with more literal
                characters over one with fewer. If several globs have equally many literal characters, all their rules
                must list the approver. If no rule matches a tool, its requests cannot be answered.

        Raises:
            TypeError: A value, or that of `escalate.to`, is not an `ApproverRule`.
        """
        for name, rule in rules.items():
            check_type(f'approvers[{name!r}]', rule, 'an `ApproverRule`', ApproverRule)
            later = rule.escalate
            while later is not None:
                check_type(f'approvers[{name!r}].escalate.to', later.to, 'an `ApproverRule`', ApproverRule)
                later = later.to.escalate
        self._exact = dict(rules)
        self._globs = [
            (re.compile(translate(pattern)), count_literals(pattern), rule) for pattern, rule in rules.items()
        ]

    def for_tool(self, tool_name: str) -> tuple[ApproverRule, ...]:
        """Return one or more rules for a tool. Each of these rules must list the approver."""
        if tool_name in self._exact:
            return (self._exact[tool_name],)
        found = [(weight, rule) for pattern, weight, rule in self._globs if pattern.fullmatch(tool_name)]
        most = max((weight for weight, _ in found), default=0)
        return tuple(rule for weight, rule in found if weight == most) or (ApproverRule(),)
