"""All deferred calls of one response: requests in, decisions, results out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.messages import ToolCallPart

from tool_approval.core.arguments import ARGUMENTS, CallArguments, materialised, restored
from tool_approval.core.canonical import decode_arguments
from tool_approval.core.controller import ApprovalController
from tool_approval.core.decision import ApprovalDecision
from tool_approval.core.errors import NotCanonicalError
from tool_approval.core.own_logic import approving, ask_own_logic
from tool_approval.core.request import ApprovalContext, ApprovalRequest
from tool_approval.core.verdict import ApprovalResult, make_request

from .arguments import call_arguments, find_tool, given_arguments, is_unpacked, validated
from .binding import bind
from .external import External, carry_out, unfit
from .frame import Frame, tool_facts
from .logic import logic_of
from .requests import REQUEST_KEY, request_of
from .results import approval, failure


class Batch:
    """All deferred calls of one response."""

    def __init__(
        self,
        controller: ApprovalController,
        requests: DeferredToolRequests,
        *,
        external: External,
        frame: Frame,
        ctx: RunContext[Any] | None,
    ) -> None:
        """Prepare.

        Args:
            controller: Decides.
            requests: The calls.
            external: What carries out external calls, by tool name.
            frame: What is known of the run.
            ctx: The run that waits for the answer; `None` where it has ended.
        """
        self.controller = controller
        self.requests = requests
        self.external = external
        self.frame = frame
        self.ctx = ctx
        self.results = DeferredToolResults()

    async def answer(self) -> DeferredToolResults:
        """Decide everything, then do what is done here."""
        approvals = [(call, await self._approval(call)) for call in self.requests.approvals]
        externals = [(call, self._request(call)) for call in self.requests.calls]
        to_ask, to_do = await self._externals_to_ask(externals)
        asked = [*(request for _, request in approvals), *(request for _, request in to_ask)]
        decisions = await self.controller.request_approvals(asked)
        for (call, request), decision in zip(approvals, decisions, strict=False):
            self._settle(call, request, decision)
        for (call, request), decision in zip(to_ask, decisions[len(approvals) :], strict=True):
            if decision.approved:
                to_do.append((call, request, decision))
            else:
                self.results.calls[call.tool_call_id] = failure(decision.note or 'The call was denied.')
        # Nothing is started before every decision of the batch is made.
        await asyncio.gather(*(self._do(*each) for each in to_do))
        return self.results

    def _request(self, call: ToolCallPart, args: Mapping[str, Any] | None = None) -> ApprovalRequest:
        metadata = self.requests.metadata.get(call.tool_call_id)
        return request_of(call, metadata, self.frame, tool_facts(self.ctx, call.tool_name), args)

    async def _approval(self, call: ToolCallPart) -> ApprovalRequest:
        """The request for an approval; of a bare tool, with what its function says of the call."""
        tool = find_tool(self.ctx, call.tool_name)
        if tool is None:
            return self._request(call)
        if REQUEST_KEY in self.requests.metadata.get(call.tool_call_id, {}):
            return self._bound(call)
        request = self._whole(call)
        context = ApprovalContext(tool_name=call.tool_name, args=request.args, metadata=request.metadata)
        for function in logic_of(None, tool):
            verdict = await ask_own_logic(function, context, framework_context=self.ctx)
            if verdict is not None and verdict.is_needs_approval:
                request = _told(request, context, verdict)
            elif verdict is not None and verdict.is_blocked:
                blocked = {'approval_policy': 'blocked', 'approval_reason': verdict.reason}
                request = request.model_copy(update={'metadata': {**request.metadata, **blocked}})
        return request

    def _whole(self, call: ToolCallPart) -> ApprovalRequest:
        """The request of a bare tool, with everything that the tool gets."""
        given = call.args if isinstance(call.args, Mapping) else None
        try:
            values, arguments = self._arguments(call)
        except ValueError as error:
            # Attack: what cannot be read may hold a secret, and would be shown as the model gave it
            # (test_arguments_that_cannot_be_judged_are_refused_before_anybody_is_asked).
            problem = error.problem if isinstance(error, NotCanonicalError) else error
            reason = f'The arguments of {call.tool_name!r} cannot be judged ({problem}), so the call was not run.'
            request = self._request(call, {})
            blocked = {'approval_policy': 'blocked', 'approval_reason': reason}
            return request.model_copy(update={'metadata': {**request.metadata, **blocked}})
        shown = arguments.shown
        if arguments.fields is not None and is_unpacked(values, given):
            shown = arguments.fields
        request = self._request(call, shown)
        bound_to = self.controller.bound_to(arguments, request.bound_to)
        return request.model_copy(update={'hides_arguments': arguments.is_altered, 'bound_to': bound_to})

    def _bound(self, call: ToolCallPart) -> ApprovalRequest:
        """The request that a tool has made. Only a toolset with a controller can bind it to the arguments itself."""
        request = self._request(call)
        if ARGUMENTS in request.bound_to:
            return request
        try:
            _, arguments = self._arguments(call)
        except ValueError:
            return request
        return request.model_copy(update={'bound_to': self.controller.bound_to(arguments, request.bound_to)})

    def _arguments(self, call: ToolCallPart) -> tuple[Mapping[str, Any], CallArguments]:
        """What a tool of this run will get, and how to show and to bind it.

        Raises:
            ValueError: They do not fit the tool, or have no JSON form.
        """
        # The loop layer hands over what the host has validated; the host's own capability does not.
        values = cast('Mapping[str, Any] | None', getattr(call.args, 'validated', None))
        if values is None:
            values = materialised(validated(self.ctx, call.tool_name, call.args))
        elif any(isinstance(value, Iterator) for value in values.values()):
            # It can be read only once, and has been, for the snapshot or by the tool's own check.
            given = given_arguments(self.ctx, call.tool_call_id)
            values = materialised(validated(self.ctx, call.tool_name, given))
        return values, call_arguments(self.ctx, call.tool_call_id, values)

    def _settle(self, call: ToolCallPart, request: ApprovalRequest, decision: ApprovalDecision) -> None:
        """Answer an approval, bound to what the tool will get."""
        if decision.approved and decision.override_args is not None:
            try:
                known = (
                    decode_arguments(call.args) if self.ctx is None else given_arguments(self.ctx, call.tool_call_id)
                )
                given = restored(decision.override_args, request.args, known)
                values = materialised(validated(self.ctx, call.tool_name, given))
                changed = call_arguments(self.ctx, call.tool_call_id, values)
            except ValueError as error:
                decision = ApprovalDecision(
                    approved=False, note=f"The approver's arguments cannot be used: {error}. The call was not run."
                )
                refused = request.model_copy(update={'args': decision.override_args})
                self.controller.record_outcome(refused, 'refused')
            else:
                self.results.metadata[call.tool_call_id] = bind(self.controller, request, decision, changed)
                decision = decision.model_copy(update={'override_args': given})
        elif decision.approved:
            self.results.metadata[call.tool_call_id] = bind(self.controller, request, decision)
        self.results.approvals[call.tool_call_id] = approval(decision)
        answered_by: object = getattr(self.results, 'answered_by', None)
        if isinstance(answered_by, dict) and decision.decided_by:
            answered_by[call.tool_call_id] = decision.decided_by

    async def _externals_to_ask(
        self, externals: list[tuple[ToolCallPart, ApprovalRequest]]
    ) -> tuple[
        list[tuple[ToolCallPart, ApprovalRequest]], list[tuple[ToolCallPart, ApprovalRequest, ApprovalDecision]]
    ]:
        """Which external calls somebody is asked about, and which are done without; the others are answered."""
        to_ask: list[tuple[ToolCallPart, ApprovalRequest]] = []
        to_do: list[tuple[ToolCallPart, ApprovalRequest, ApprovalDecision]] = []
        for call, request in externals:
            context = ApprovalContext(tool_name=call.tool_name, args=request.args, metadata=request.metadata)
            verdict = await self.controller.judge(context, logic=[self.external.get(call.tool_name)], default='none')
            if verdict.is_blocked:
                reason = verdict.reason or 'The call is blocked.'
                self.controller.record_block(_told(request, context, verdict), reason)
                self.results.calls[call.tool_call_id] = failure(reason)
            elif call.tool_name not in self.external:
                self._refuse(call, request, f'Nothing here can carry out {call.tool_name!r}.')
            elif (problem := unfit(self.ctx, call.tool_name, request.args)) is not None:
                self._refuse(call, request, f'The arguments of {call.tool_name!r} cannot be used: {problem}.')
            elif verdict.is_pre_approved:
                self.controller.record_pre_approval(request)
                to_do.append((call, request, ApprovalDecision(approved=True, decided_by='policy')))
            else:
                to_ask.append((call, _told(request, context, verdict)))
        return to_ask, to_do

    def _refuse(self, call: ToolCallPart, request: ApprovalRequest, reason: str) -> None:
        self.controller.record_block(request, reason)
        self.results.calls[call.tool_call_id] = failure(reason)

    async def _do(self, call: ToolCallPart, request: ApprovalRequest, decision: ApprovalDecision) -> None:
        args = request.args
        if decision.override_args is not None:
            args = decision.override_args
            request = request.model_copy(update={'args': args})
            problem = unfit(self.ctx, call.tool_name, args)
            if problem is not None:
                self.controller.record_outcome(request, 'refused')
                self.results.calls[call.tool_call_id] = failure(f"The approver's arguments cannot be used: {problem}.")
                return
        with approving(None if decision.decided_by == 'policy' else args):
            result, is_done = await carry_out(self.ctx, self.external, call.tool_name, args)
        self.controller.record_outcome(request, 'executed' if is_done else 'failed')
        self.results.calls[call.tool_call_id] = result


def _told(request: ApprovalRequest, context: ApprovalContext, verdict: ApprovalResult) -> ApprovalRequest:
    """The request with what the function itself says of its call: what is shown, remembered and written down."""
    own = make_request(context, verdict)
    told: dict[str, Any] = {
        'payload': own.payload,
        'presentation': own.presentation,
        'remember_options': own.remember_options,
        'group_id': own.group_id,
    }
    if verdict.description is not None or verdict.payload is not None:
        told |= {'description': own.description, 'described_by': own.described_by}
    if verdict.reason is not None:
        told['reason'] = verdict.reason
    return request.model_copy(update=told)
