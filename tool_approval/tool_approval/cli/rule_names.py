"""Which of the configured tool rules decides; the policy says what is decided, but not by which."""

from __future__ import annotations

from tool_approval.config import PolicyConfig, ToolRule
from tool_approval.policy import ApprovalPolicy


class RuleNames:
    """The names and globs under `tools`, as the policy itself weighs them."""

    def __init__(self, config: PolicyConfig) -> None:
        """Give each rule that decides something its own name as description: the policy hands that on."""
        named = {
            name: ToolRule(approval=rule.approval, description=name)
            for name, rule in config.tools.items()
            if rule.approval is not None
        }
        self._all = ApprovalPolicy.from_config(PolicyConfig(tools=named))
        blocking = {name: rule for name, rule in named.items() if rule.approval == 'blocked'}
        self._blocking = ApprovalPolicy.from_config(PolicyConfig(tools=blocking))

    def deciding(self, tool: str) -> str | None:
        """The name or glob of the rule that decides about a tool; `None` if nothing is configured for it."""
        # A block wins wherever it stands, so it is looked for first.
        return self._blocking.rule_for(tool).description or self._all.rule_for(tool).description
