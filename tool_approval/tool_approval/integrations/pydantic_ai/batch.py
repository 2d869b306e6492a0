"""Decide all deferred calls of a response together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext, ToolDenied
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ToolCallPart, ToolReturn

from tool_approval.core.arguments import CallArguments, materialised, restored
from tool_approval.core.binding import Binding
from tool_approval.core.calls import (
    Allowed,
    Call,
    ExecutionLedger,
    GateResult,
    Prepared,
    Refused,
    Responded,
    cannot_be_judged,
)
from tool_approval.core.canonical import copied, decode_arguments
from tool_approval.core.controller import ApprovalController
from tool_approval.core.decision import ALL_ANSWERS, both_allow
from tool_approval.core.errors import NotCanonicalError
from tool_approval.core.gate import Gate
from tool_approval.core.request import ApprovalContext, ApprovalRequest, CallFacts
from tool_approval.core.tool_checks import has_check
from tool_approval.core.verdict import ASKS, ApprovalResult, make_request

from .arguments import call_arguments, edited_arguments, find_tool, hooked, is_unpacked, own_checks, validated
from .guard import guarded_name
from .requests import REQUEST_KEY, metadata_of, request_of, tool_facts
from .results import CallPlace, External, approval, binding_metadata, carry_out_once, unfit


class Batch:
    """All deferred calls of one response."""

    def __init__(
        self,
        controller: ApprovalController,
        requests: DeferredToolRequests,
        *,
        external: External,
        facts: CallFacts,
        ctx: RunContext[Any] | None,
        ledger: ExecutionLedger | None = None,
        place: CallPlace | None = None,
    ) -> None:
        """Keep the calls until `answer` or `prepare` is called.

        Args:
            controller: Controller that decides.
            requests: The calls.
            external: Functions that execute external calls, by tool name.
            facts: Known facts of the run.
            ctx: The run that waits for the answer, or `None` if that run has ended.
            ledger: Ledger that keeps each external call of a waiting run from executing twice.
            place: If the run has ended and `ctx` is `None`, the ledger identifies the calls by this place.
        """
        self.place = place
        self.ledger = ledger
        self.gate = Gate(controller, default='none')
        self.requests = requests
        self.external = external
        self.facts = facts
        self.ctx = ctx
        self.results = DeferredToolResults()
        self._known: dict[str, _Known] = {}

    async def answer(self) -> DeferredToolResults:
        """Decide all calls, then run the allowed external calls."""
        to_do = await self.decide(await self.prepare())
        # No call starts before every decision of the batch is made.
        await asyncio.gather(*(self.carry_out(each) for each in to_do))
        return self.results

    async def prepare(self) -> list[Prepared]:
        """Return the requests of all calls: first the calls that await approval, then the external calls."""
        approvals = [await self._approval(call) for call in self.requests.approvals]
        return [*approvals, *[await self._external(call) for call in self.requests.calls]]

    async def decide(self, calls: Sequence[Prepared]) -> list[Allowed]:
        """Decide the calls that `prepare` returned, and answer all of them except the allowed external calls.

        Returns:
            The external calls to run.
        """
        settled = await self.gate.decide_all(calls)
        count = len(self.requests.approvals)
        for prepared, each in zip(calls[:count], settled, strict=False):
            self._answer(prepared.request, each)
        external = [await self._confirmed(each) for each in settled[count:]]
        externals = zip(calls[count:], external, strict=True)
        return [allowed for each in externals if (allowed := self._allowed(*each)) is not None]

    async def _confirmed(self, settled: GateResult) -> GateResult:
        """Let the check of an approved external call's function judge the call again, right before it runs."""
        # Attack: what the function declares changes while the approver is asked.
        if not isinstance(settled, Allowed) or settled.request is None or not settled.call.checks:
            return settled
        now = await self.gate.prepare(settled.call)
        return self.gate.confirm(now, settled.binding, is_kept=self.ledger is not None)

    def _request(self, call: ToolCallPart, args: Mapping[str, Any] | None = None) -> ApprovalRequest:
        metadata = metadata_of(self.requests, call.tool_call_id)
        known = self._of_tool(call.tool_name)
        request = request_of(call, metadata, self.facts, known.facts, args)
        if known.args_schema is None or request.args_schema is known.args_schema:
            return request
        return request.changed(args_schema=known.args_schema)

    def _of_tool(self, name: str) -> _Known:
        """Return what is known about a tool. Calls of one response have the same tools."""
        known = self._known.get(name)
        if known is None:
            tool = find_tool(self.ctx, name)
            known = self._known[name] = (
                _Known(tool_facts(self.ctx, name))
                if tool is None
                else _Known(
                    tool_facts(self.ctx, name),
                    own_checks(tool.toolset, tool),
                    guarded_name(tool),
                    tool.tool_def.parameters_json_schema,
                )
            )
        return known

    async def _approval(self, call: ToolCallPart) -> Prepared:
        """Return the request that the guard made, or a new one for a call that something else deferred."""
        tool = find_tool(self.ctx, call.tool_name)
        if tool is None or self.ctx is None:
            return self._prepared(call, self._request(call))
        if REQUEST_KEY in (metadata_of(self.requests, call.tool_call_id) or {}):
            return self._prepared(call, self._request(call))
        try:
            values, arguments = await self._arguments(self.ctx, call)
        except ValueError as error:
            # Attack: arguments that cannot be read may contain a secret, and would be shown as the model gave them
            # (test_arguments_that_cannot_be_judged_are_refused_before_anybody_is_asked).
            problem = error.problem if isinstance(error, NotCanonicalError) else str(error)
            return self._prepared(call, _blocked(self._request(call, {}), cannot_be_judged(call.tool_name, problem)))
        given = call.args if isinstance(call.args, Mapping) else None
        is_model = arguments.fields is not None and is_unpacked(values, given)
        request = self._request(call, arguments.fields if is_model else arguments.shown)
        bound_to = self.gate.controller.bound_to(arguments, request.bound_to)
        used = arguments.used
        if is_model and used is not None:
            [used] = used.values()
        request = request.changed(hides_arguments=arguments.is_altered, bound_to=bound_to, used=used)
        # Attack: other code deferred the call, so that the tool's check was not asked what to log, and which answers it
        # allows.
        checks = self._of_tool(call.tool_name).checks
        if not checks:
            return self._prepared(call, request)
        context = ApprovalContext(
            tool_name=call.tool_name,
            args=copied(request.args),
            metadata=request.metadata,
            used=request.used,
        )
        verdict = await self.gate.controller.policy.judge(
            context, logic=checks, framework_context=self.ctx, default='none', facts=request.facts
        )
        if verdict.is_blocked:
            return self._prepared(call, _blocked(request, verdict.reason))
        if verdict.is_needs_approval:
            declared = {**request.bound_to, **verdict.bound_to}
            request = _with_verdict(request, context, verdict).changed(bound_to=declared)
        return self._prepared(call, request)

    def _prepared(self, call: ToolCallPart, request: ApprovalRequest) -> Prepared:
        def reread(changed: Mapping[str, Any]) -> Call:
            if self.ctx is None or find_tool(self.ctx, call.tool_name) is None:
                given = restored(changed, request.args, decode_arguments(call.args))
            else:
                given = edited_arguments(self.ctx, call, changed, request.args)
            values = materialised(validated(self.ctx, call.tool_name, given))
            arguments = call_arguments(self.ctx, call.tool_call_id, values)
            return deferred._replace(arguments=arguments, values=values, given=given)

        # Changed arguments are judged by the checks of the tool, as its guard finds them.
        known = self._of_tool(call.tool_name)
        deferred = _call_of(
            request,
            reread,
            checks=known.checks,
            framework_context=self.ctx,
            judged_as=known.judged_as,
            args_schema=known.args_schema,
        )
        return Prepared(call=deferred, verdict=ASKS, request=request)

    async def _arguments(self, ctx: RunContext[Any], call: ToolCallPart) -> tuple[Mapping[str, Any], CallArguments]:
        """Return the values for the tool, and the JSON form that approvers see. Approvals are bound to the JSON form.

        Raises:
            ValueError: The arguments do not fit the tool, or have no JSON form.
        """
        values = materialised(await hooked(ctx, call))
        return values, call_arguments(ctx, call.tool_call_id, values)

    def _answer(self, request: ApprovalRequest, settled: GateResult) -> None:
        """Answer a call that awaits approval. An approval is bound to the values that the tool will get."""
        call_id, decision = str(request.tool_call_id), settled.decision
        if isinstance(settled, Allowed) and settled.binding is not None:
            self.results.metadata[call_id] = binding_metadata(settled.binding)
        if isinstance(settled, Responded):
            self._respond(request, settled)
        else:
            self.results.approvals[call_id] = approval(settled)
        answered_by: object = getattr(self.results, 'answered_by', None)
        if isinstance(answered_by, dict) and decision is not None and decision.decided_by:
            answered_by[call_id] = ', '.join(decision.decided_by)

    def _respond(self, request: ApprovalRequest, settled: Responded) -> None:
        """Give the approver's response to the model, as the result of a call that awaits approval."""
        call_id = str(request.tool_call_id)
        if self.ctx is None:
            self.results.calls[call_id] = ToolReturn(settled.response)
        elif REQUEST_KEY in (metadata_of(self.requests, call_id) or {}):
            # Inside a run, the host takes only approvals and denials here, so the guard of the execution answers.
            self.results.approvals[call_id] = True
            self.results.metadata[call_id] = binding_metadata(Binding.of_response(settled.response))
        else:
            # Nothing of ours surrounds the execution, so only a denial keeps the tool from running.
            self.results.approvals[call_id] = ToolDenied(settled.text)

    def restore(self, call: ToolCallPart, request: ApprovalRequest, verdict: ApprovalResult) -> Prepared:
        """Rebuild the result of `prepare` for a call that another process may have prepared."""
        if any(call is each for each in self.requests.approvals):
            return self._prepared(call, request)
        return self._prepared_external(request, verdict)

    async def _external(self, call: ToolCallPart) -> Prepared:
        request, function = self._request(call), self.external.get(call.tool_name)
        context = ApprovalContext(
            tool_name=call.tool_name, args=request.args, metadata=request.metadata, used=request.used
        )
        verdict = await self.gate.controller.policy.judge(
            context, logic=[function], default='none', facts=request.facts
        )
        judged = _with_verdict(request, context, verdict)
        answers = ALL_ANSWERS if judged.answers is None else judged.answers
        if function is None:
            answers = both_allow(answers, ('respond',))
            if not verdict.is_blocked:
                verdict = self._answered_by_a_person(call, verdict, can_respond=bool(answers))
        judged = judged.changed(answers=answers)
        if not verdict.is_blocked and (problem := unfit(self.ctx, call.tool_name, request.args)) is not None:
            verdict = ApprovalResult.blocked(cannot_be_judged(call.tool_name, problem))
        judged = judged.changed(bound_to={**judged.bound_to, **verdict.bound_to})
        return self._prepared_external(judged, verdict)

    def _answered_by_a_person(
        self, call: ToolCallPart, verdict: ApprovalResult, *, can_respond: bool
    ) -> ApprovalResult:
        """Return the verdict on an external call that no function executes: only a person can give its result."""
        rule = self.gate.controller.policy.rule_for(call.tool_name)
        kind: Any = getattr(self.requests, 'kind', None)  # newer hosts
        is_question = kind is not None and kind(call.tool_call_id) == 'question'
        if can_respond and (is_question or verdict.is_needs_approval or rule.answers is not None):
            return ApprovalResult.needs_approval()
        return ApprovalResult.blocked(_no_function(call.tool_name))

    def _prepared_external(self, request: ApprovalRequest, verdict: ApprovalResult) -> Prepared:
        # Attack: the approver changes arguments to some that the function's own check blocks.
        function = self.external.get(request.tool_name)
        checks = [function] if has_check(function) else []
        others = {name: value for name, value in request.bound_to.items() if name not in verdict.bound_to}

        def reread(changed: Mapping[str, Any]) -> Call:
            if (problem := unfit(self.ctx, request.tool_name, changed)) is not None:
                raise ValueError(problem)
            return call_with(changed)

        def call_with(args: Mapping[str, Any]) -> Call:
            changed = request.changed(args=args)
            return _call_of(changed, reread, checks=checks, metadata=request.metadata, bound_to=others)

        return Prepared(call=call_with(request.args), verdict=verdict, request=request)

    def _allowed(self, prepared: Prepared, settled: GateResult) -> Allowed | None:
        """Return the call if it may be executed; otherwise answer the call with a failure, and return `None`."""
        call_id = str(prepared.request.tool_call_id)
        if isinstance(settled, Responded):
            self.results.calls[call_id] = ToolReturn(settled.response)
            return None
        if isinstance(settled, Refused):
            self.results.calls[call_id] = ToolFailed(settled.told)
            return None
        if prepared.request.tool_name not in self.external:  # a rule lets it run, and it can only be answered
            self.results.calls[call_id] = ToolFailed(_no_function(prepared.request.tool_name))
            return None
        if settled.request is not None:
            return settled
        ran = self.gate.run_unasked(prepared, settled.binding)
        return self._allowed(prepared, ran) if isinstance(ran, Refused) else ran

    async def carry_out(self, allowed: Allowed) -> None:
        """Run one external call, and answer the call with the result."""
        result = await carry_out_once(self.ledger, self.gate, allowed, self.ctx, self.external, place=self.place)
        self.results.calls[str(allowed.call.tool_call_id)] = result


class _Known(NamedTuple):
    """Facts about a tool of the run; empty for an unknown tool."""

    facts: Mapping[str, Any]
    checks: Sequence[object] = ()
    judged_as: str | None = None
    args_schema: Mapping[str, Any] | None = None


def _call_of(request: ApprovalRequest, reread: Callable[[Mapping[str, Any]], Call], **known: Any) -> Call:
    return Call(
        tool_name=request.tool_name,
        arguments=CallArguments(shown=dict(request.args), is_altered=False, bound={}),
        values=request.args,
        facts=request.facts,
        tool_call_id=request.tool_call_id,
        reread=reread,
        **known,
    )


def _no_function(tool_name: str) -> str:
    return f'No function is configured for external calls of {tool_name!r}.'


def _blocked(request: ApprovalRequest, reason: str | None) -> ApprovalRequest:
    return request.changed(request.facts._replace(is_blocked=True, block_reason=reason))


def _with_verdict(request: ApprovalRequest, context: ApprovalContext, verdict: ApprovalResult) -> ApprovalRequest:
    """Return a copy of the request with the verdict's texts, presentation, payload and options for remembering."""
    own = make_request(context, verdict)
    changes: dict[str, Any] = {
        'payload': own.payload,
        'presentation': own.presentation,
        'remember_options': own.remember_options,
        'group_id': own.group_id,
        'answers': own.answers,
    }
    if verdict.description is not None or verdict.payload is not None:
        changes |= {'description': own.description, 'described_by': own.described_by}
    if verdict.reason is not None:
        changes['reason'] = verdict.reason
    return request.changed(**changes)
