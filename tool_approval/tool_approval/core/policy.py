"""Who says whether approval is needed: blocked by anyone, then the configuration, the tool, the default."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from .config import InForce, PolicyConfig, ToolRule, ToolRules, parse_config, read_config
from .request import ApprovalContext, ApprovalRequest, CallFacts
from .tool_checks import ask_check
from .verdict import ApprovalResult


class ApprovalPolicy:
    """The configured rules, and how they meet what a tool says itself.

    The first that speaks wins: blocked by anyone; the configuration of the tool; the tool's own logic; its
    `@requires_approval`; the default.
    """

    def __init__(
        self,
        tools: Mapping[str, Mapping[str, Any] | ToolRule | None] | None = None,
        *,
        default: str | None = None,
        auto_grant: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Configure in code; `from_yaml` reads a file's text.

        Args:
            tools: `{name or glob: {'approval': 'required' | 'none' | 'blocked', 'description': ...}}`. An exact name
                beats a glob, the glob with more literal characters beats the other, a tie goes to the stricter;
                `blocked` from any match wins.
            default: `required` or `none`: what holds for a tool about which nothing is said, and `required` where
                `None`. The stricter of this and of what the code around a tool chose holds.
            auto_grant: Capabilities granted without asking, by isolation profile.

        Raises:
            ApprovalConfigError: An unknown key or value.
        """
        self._use(read_config({'tools': tools, 'default': default, 'auto_grant': auto_grant}), None)

    @classmethod
    def from_config(cls, config: PolicyConfig, *, source: str | None = None) -> ApprovalPolicy:
        """Of a configuration that was read already.

        Args:
            config: The configuration.
            source: The file it was read from; questions name it beside a description of its own.
        """
        policy = cls.__new__(cls)
        policy._use(config, source)
        return policy

    @classmethod
    def from_yaml(cls, text: str, *, source: str | None = None) -> ApprovalPolicy:
        """Of a document in YAML or JSON with the keys `default`, `tools` and `auto_grant`.

        Args:
            text: The document.
            source: The file it comes from, for errors and for questions.

        Raises:
            ApprovalConfigError: A mistake in it; the error names key, file and line.
            MissingExtraError: PyYAML is not installed.
        """
        return cls.from_config(parse_config(text, source=source), source=source)

    def _use(self, config: PolicyConfig, source: str | None) -> None:
        self.config = config
        self.source = source or 'the configuration'
        """What questions call it where they show a description of its own."""
        # Bounded, as a model may invent names. Chosen: more tools than anybody offers a model.
        self._rule_for = lru_cache(maxsize=4096)(ToolRules(config.tools).find)
        self._rules = {name: rule.model_dump(exclude_none=True) for name, rule in config.tools.items()}

    def rule_for(self, tool_name: str) -> InForce:
        """What is in force for a tool; an empty rule if nothing is configured for it."""
        return self._rule_for(tool_name)

    async def judge(
        self,
        context: ApprovalContext,
        *,
        logic: Sequence[object] = (),
        framework_context: object = None,
        default: str | None = None,
        facts: CallFacts | None = None,
    ) -> ApprovalResult:
        """Blocked, pre-approved or in need of approval.

        Args:
            context: The call.
            logic: The objects that may have logic of their own, the weightier first: a toolset before the function
                with its decorator.
            framework_context: Passed on to `needs_approval`.
            default: What the code around the tool chose; the stricter of this and the policy's own holds.
            facts: What is known of the call; read from the context's metadata if `None`.
        """
        rule = self.rule_for(context.tool_name)
        own: ApprovalResult | None = None
        facts = CallFacts.of(context.metadata) if facts is None else facts
        blocked = self._configured_block(context.tool_name, rule, facts)
        if blocked is not None:
            return blocked
        for tool in logic:
            verdict = await ask_check(tool, context, framework_context=framework_context, config=self._rules)
            if verdict is not None and verdict.is_blocked:
                return verdict
            own = verdict if own is None else _completed(own, verdict)
        return self.settle(context.tool_name, own, default=default)

    def settle(self, tool_name: str, own: ApprovalResult | None, *, default: str | None = None) -> ApprovalResult:
        """Return what holds for a call, given what its tool says of it.

        Args:
            tool_name: The tool.
            own: The tool's own verdict; `None` if it has none.
            default: As for `judge`.
        """
        rule = self.rule_for(tool_name)
        if (blocked := self._configured_block(tool_name, rule, CallFacts())) is not None:
            return blocked
        if own is not None and own.is_blocked:
            return own
        if rule.approval == 'none':
            return ApprovalResult.pre_approved()
        if rule.approval == 'required':
            asked = own if own is not None and own.is_needs_approval else ApprovalResult.needs_approval()
            return self._described(asked, rule)
        if own is not None:
            return self._described(own, rule)
        if 'required' not in (said := {self.config.default, default}) and 'none' in said:
            return ApprovalResult.pre_approved()
        return self._described(ApprovalResult.needs_approval(), rule)

    def judge_request(self, request: ApprovalRequest, granted: Collection[str] = ()) -> ApprovalResult:
        """What the configuration says of a request that was raised already, by a tool that needs approval.

        Its metadata is read too: `approval_policy` may be `blocked`, and all capabilities it lacks may be granted to
        its `isolation_profile`.

        Args:
            request: The request.
            granted: Capabilities that an approver has granted to its tool before.
        """
        rule = self.rule_for(request.tool_name)
        blocked = self._configured_block(request.tool_name, rule, request.facts)
        if blocked is not None:
            return blocked
        if rule.approval == 'none' or (rule.approval is None and self._is_granted(request, granted)):
            return _RUNS
        return self._described(_ASKS, rule)

    def _described(self, verdict: ApprovalResult, rule: InForce) -> ApprovalResult:
        if rule.description is None or not verdict.is_needs_approval:
            return verdict
        return replace(verdict, description=rule.description, described_by=self.source)

    def _configured_block(self, tool_name: str, rule: InForce, facts: CallFacts) -> ApprovalResult | None:
        if rule.approval == 'blocked':
            return ApprovalResult.blocked(f'The tool {tool_name!r} is blocked by policy.')
        if facts.is_blocked:
            return ApprovalResult.blocked(facts.block_reason or f'The tool {tool_name!r} blocked this call.')
        return None

    def _is_granted(self, request: ApprovalRequest, granted: Collection[str]) -> bool:
        missing = request.missing_capabilities
        profile = request.facts.isolation_profile
        granted_unasked = [] if profile is None else self.config.auto_grant.get(profile, [])
        return bool(missing) and all(each in granted or each in granted_unasked for each in missing)


_ASKS, _RUNS = ApprovalResult.needs_approval(), ApprovalResult.pre_approved()


def _completed(own: ApprovalResult, other: ApprovalResult | None) -> ApprovalResult:
    # A toolset that asks and says no more leaves what is shown, remembered and written to the function's decorator:
    # without that, what the function excludes would be in the log.
    if other is None or not own.is_needs_approval or not other.is_needs_approval or own.payload is not None:
        return own
    described = own if own.description else other
    return replace(own, payload=other.payload, description=described.description, described_by=described.described_by)
