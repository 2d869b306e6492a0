"""Use the configuration, the tool's own checks and the default to determine whether a call needs approval."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

from .approvers import ApproverRule
from .conditions import received
from .config import (
    InForce,
    LineOf,
    PolicyConfig,
    ToolRule,
    ToolRules,
    check_offers,
    parse_document,
    read_config,
    resolved,
)
from .decision import both_allow
from .request import ApprovalContext, ApprovalRequest, CallFacts
from .tool_checks import ask_check, has_check
from .verdict import ASKS, RUNS, ApprovalResult


class ApprovalPolicy:
    """Combines the configured rules with the tools' own checks.

    Order of precedence: a block from any source; the configured rule; the strictest of the tool's checks; the default.
    """

    def __init__(
        self,
        tools: Mapping[str, Mapping[str, Any] | ToolRule | None] | None = None,
        *,
        default: str | None = None,
        approvers: Mapping[str, ApproverRule | Mapping[str, Any]] | None = None,
        auto_grant: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Configure the policy in code; `from_yaml` reads a document instead.

        Args:
            tools: `{name or glob: {'approval': 'required' | 'none' | 'blocked', 'description': ...}}`. An exact name
                takes precedence over a glob, and a glob with more literal characters over a glob with fewer. Of equally
                specific rules, the stricter one applies. If any matching rule says `blocked`, the call is blocked.
            default: `required` or `none` for tools that have neither a rule nor a check; `None` means `required`. If
                the code that runs a tool has its own default, the stricter of the two defaults applies.
            approvers: The people who must approve, by the names that rules and cases use: `{name: {'users': ...,
                'groups': ..., 'count': ..., 'escalate': {'after': '30m', 'to': name},
                'timeout': {'after': '2h', 'then': 'deny'}}}`.
            auto_grant: For each isolation profile, the capabilities that are granted without asking.

        Raises:
            TypeError: `tools` is the path or the text of a file.
            ApprovalConfigError: A key or value is unknown.
        """
        if isinstance(tools, str | os.PathLike):
            raise TypeError('`tools` must be a mapping of rules; `ApprovalPolicy.from_yaml` reads the text of a file')
        given = {'tools': tools, 'default': default, 'approvers': approvers, 'auto_grant': auto_grant}
        self._use(read_config(given), None)

    @classmethod
    def from_config(
        cls, config: PolicyConfig, *, source: str | None = None, line_of: LineOf = lambda path: None
    ) -> ApprovalPolicy:
        """Make a policy from a configuration that has been read.

        Args:
            config: The configuration.
            source: File of the configuration. Questions show the file's name next to each description from the file.
            line_of: Returns the line number of the value at a key path, for errors that are found later.
        """
        policy = cls.__new__(cls)
        policy._use(config, source, line_of)
        return policy

    @classmethod
    def from_yaml(cls, text: str, *, source: str | None = None) -> ApprovalPolicy:
        """Read a YAML or JSON document with the keys `default`, `tools`, `approvers` and `auto_grant`.

        Args:
            text: The document itself, not the name of its file.
            source: File that the document comes from, named in errors and questions.

        Raises:
            TypeError: `text` is not a string, but the path of a file, for example.
            ApprovalConfigError: The document is invalid; the error names the key, the file and the line.
            MissingExtraError: PyYAML is not installed.
        """
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - many pass a path
            advice = ': read the file with `path.read_text()`' if isinstance(text, os.PathLike) else ''
            raise TypeError(
                f'`text` must be the text of the document, not a value of type {type(text).__name__}{advice}'
            )
        document, line_of = parse_document(text, source=source)
        config = read_config(document, source=source, line_of=line_of)
        return cls.from_config(config, source=source, line_of=line_of)

    def _use(self, config: PolicyConfig, source: str | None, line_of: LineOf = lambda path: None) -> None:
        self.config = config
        self._line_of = line_of
        self.source = source or 'the configuration'
        """Name of the configuration, shown in questions next to descriptions from the configuration."""
        # Bounded, because a model may invent names. The limit exceeds the tools that a model is offered.
        self._tool_rules = ToolRules(config.tools)
        self._approvers = resolved(config.approvers)
        self._rule_for = lru_cache(maxsize=4096)(self._tool_rules.find)
        self._rules = {
            name: rule.model_dump(by_alias=True, exclude_defaults=True) for name, rule in config.tools.items()
        }

    def rule_for(self, tool_name: str, args: Mapping[str, Any] | None = None) -> InForce:
        """Return the rule in force; an empty rule if none is configured.

        Args:
            tool_name: Name of the tool.
            args: Argument values of a call, in JSON form. `None` uses the strictest case of each rule.
        """
        rule = self._rule_for(tool_name)
        return self._tool_rules.find(tool_name, args) if rule.has_cases and args is not None else rule

    def check_arguments(self, tool_name: str, schema: Mapping[str, Any]) -> None:
        """Check that a tool has the arguments that its rule counts or compares in remembered approvals.

        Args:
            tool_name: Name of the tool.
            schema: JSON schema of the tool's arguments. One that allows other arguments is not checked.

        Raises:
            ApprovalConfigError: The tool has no such argument. The error names the key, the file and the line.
        """
        rule, known = self.config.tools.get(tool_name), schema.get('properties')
        if rule is not None and rule.remember and isinstance(known, Mapping) and not schema.get('additionalProperties'):
            names = list(cast('Mapping[str, object]', known))
            check_offers(self.config.tools, tool_name, names, source=self.source, line_of=self._line_of)

    async def judge(
        self,
        context: ApprovalContext,
        *,
        logic: Sequence[object] = (),
        framework_context: object = None,
        default: str | None = None,
        facts: CallFacts | None = None,
    ) -> ApprovalResult:
        """Judge a call as blocked, pre-approved or needing approval.

        Args:
            context: The call.
            logic: Objects that may have approval checks: toolsets and the function. The strictest verdict counts.
            framework_context: Value passed to `needs_approval` as `ctx`.
            default: Default set by the code that runs the tool. The policy's default applies if it is stricter.
            facts: Facts about the call; read from the context's metadata if `None`.
        """
        args = received(context.args, context.used)
        rule = self.rule_for(context.tool_name, args)
        own: ApprovalResult | None = None
        facts = CallFacts.of(context.metadata) if facts is None else facts
        blocked = self._configured_block(context.tool_name, rule, facts)
        if blocked is not None:
            return blocked
        for tool in logic:
            if not has_check(tool):
                continue
            verdict = await ask_check(tool, context, framework_context=framework_context, config=self._rules)
            if verdict is not None and verdict.is_blocked:
                return verdict
            own = verdict if own is None else _completed(own, verdict)
        return self._combined(rule, own, default)

    def settle(
        self, tool_name: str, args: Mapping[str, Any], own: ApprovalResult | None, *, default: str | None = None
    ) -> ApprovalResult:
        """Combine the configuration with the verdict of a tool's own check.

        Args:
            tool_name: Name of the tool.
            args: Argument values of the call, in JSON form.
            own: Verdict of the tool's check; `None` if the tool has no check.
            default: Same as for `judge`.
        """
        rule = self.rule_for(tool_name, args)
        if (blocked := self._configured_block(tool_name, rule, CallFacts())) is not None:
            return blocked
        if own is not None and own.is_blocked:
            return own
        return self._combined(rule, own, default)

    def _combined(self, rule: InForce, own: ApprovalResult | None, default: str | None) -> ApprovalResult:
        if rule.approval == 'none':
            # The log leaves out what the tool's own check leaves out.
            return ApprovalResult.pre_approved(None if own is None else own.payload)
        if rule.approval == 'required':
            asked = own if own is not None and own.is_needs_approval else ASKS
            return self._described(asked, rule)
        if own is not None:
            return self._described(own, rule)
        if 'required' not in (said := {self.config.default, default}) and 'none' in said:
            return RUNS
        return self._described(ASKS, rule)

    def judge_request(self, request: ApprovalRequest, granted: Collection[str] = ()) -> ApprovalResult:
        """Return the configuration's verdict on a request from a tool that needs approval.

        The verdict also depends on two metadata values of the request. If `approval_policy` is `blocked`, the call is
        blocked. For some values of `isolation_profile`, the configuration may grant the missing capabilities.

        Args:
            request: The request.
            granted: Capabilities that an approver has already granted to the tool.
        """
        rule = self.rule_for(request.tool_name, received(request.args, request.used))
        blocked = self._configured_block(request.tool_name, rule, request.facts)
        if blocked is not None:
            return blocked
        if rule.approval == 'none' or (rule.approval is None and self._is_granted(request, granted)):
            return RUNS
        return self._described(ASKS, rule)

    def description_of(self, request: ApprovalRequest) -> str | None:
        """Return the description that the rule in force gives a call, if any."""
        return self.rule_for(request.tool_name, received(request.args, request.used)).description

    def approvers_of(self, request: ApprovalRequest) -> tuple[ApproverRule, ...]:
        """Return the rules for who may approve a call, all of which apply; empty if the UI decides that."""
        names = self.rule_for(request.tool_name, received(request.args, request.used)).approvers
        return tuple([self._approvers[name] for name in names])

    def _described(self, verdict: ApprovalResult, rule: InForce) -> ApprovalResult:
        if not verdict.is_needs_approval:
            return verdict
        if rule.answers is not None:
            verdict = replace(verdict, answers=both_allow(verdict.answers, rule.answers))
        if rule.reason is not None and verdict.reason is None:
            verdict = replace(verdict, reason=f'The value of {rule.reason}, so the strictest case of the rule applies.')
        if rule.description is None:
            return verdict
        return replace(verdict, description=rule.description, described_by=self.source)

    def _configured_block(self, tool_name: str, rule: InForce, facts: CallFacts) -> ApprovalResult | None:
        if rule.approval == 'blocked':
            if rule.case is None:
                return ApprovalResult.blocked(f'The tool {tool_name!r} is blocked by policy.')
            why = f': the value of {rule.reason}' if rule.reason is not None else ''
            return ApprovalResult.blocked(f'This call of {tool_name!r} is blocked by policy{why}.')
        if facts.is_blocked:
            return ApprovalResult.blocked(facts.block_reason or f'The tool {tool_name!r} blocked this call.')
        return None

    def _is_granted(self, request: ApprovalRequest, granted: Collection[str]) -> bool:
        missing = request.missing_capabilities
        profile = request.facts.isolation_profile
        granted_unasked = [] if profile is None else self.config.auto_grant.get(profile, [])
        return bool(missing) and all(each in granted or each in granted_unasked for each in missing)


def _completed(own: ApprovalResult, other: ApprovalResult | None) -> ApprovalResult:
    if own.is_pre_approved and other is not None and (other.is_needs_approval or own.payload is None):
        return other
    if other is None or not own.is_needs_approval or not other.is_needs_approval:
        return own
    own = replace(own, answers=both_allow(own.answers, other.answers))
    # If the toolset's check sets no payload, the payload of the function's decorator is used: otherwise arguments
    # that the decorator excludes would be logged.
    if own.payload is not None:
        return own
    described = own if own.description else other
    return replace(own, payload=other.payload, description=described.description, described_by=described.described_by)
