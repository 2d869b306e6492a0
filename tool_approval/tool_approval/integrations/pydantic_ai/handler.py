"""The handler: all deferred calls of a response are decided by a controller, inside the run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ToolCallPart

from tool_approval.core.arguments import ARGUMENTS, CallArguments, materialised, restored
from tool_approval.core.canonical import decode_arguments
from tool_approval.core.controller import ApprovalController
from tool_approval.core.decision import ApprovalDecision
from tool_approval.core.errors import NotCanonicalError
from tool_approval.core.request import ApprovalContext, ApprovalRequest
from tool_approval.core.tool_checks import approving, ask_check
from tool_approval.core.verdict import ApprovalResult, make_request

from .arguments import call_arguments, find_tool, given_arguments, is_unpacked, validated
from .binding import CHANGED, approved_digest, bind, find_binding, is_approved, was_asked, watched
from .guard import logic_of
from .requests import REQUEST_KEY, Frame, Session, request_of, tool_facts
from .results import External, Refusal, approval, carry_out, failure, outcome_of, refuse, unfit, with_notice

Run: TypeAlias = Callable[[dict[str, Any]], Awaitable[Any]]


def approval_handler(
    controller: ApprovalController,
    external: External | None = None,
    *,
    session: Session = None,
    tells_changes: bool = True,
) -> ApprovalHandler:
    """A `deferred_tool_handler` that lets `controller` decide.

    Give it to `pydantic_ai_deferred.Agent` or to one of its runs, or to the host's own
    `HandleDeferredToolCalls(approval_handler(...))`: there, only tools of an `ApprovalToolset` are bound to what was
    approved, and only of those an outcome is written down.

    Args:
        controller: Decides. It may be shared by any number of agents and runs.
        external: What carries out external calls, and answers questions, by tool name.
        session: The conversation approvals are remembered for.
        tells_changes: Whether the model is told that an approver changed arguments, and to what.

    Raises:
        UserError: What is given as controller is none.
    """
    if not isinstance(controller, ApprovalController):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserError(f'`approval_handler` takes an `ApprovalController`, not {type(controller).__name__}.')
    return ApprovalHandler(controller=controller, external=external or {}, session=session, tells_changes=tells_changes)


@dataclass(frozen=True, eq=False, kw_only=True)
class ApprovalHandler:
    """Made by `approval_handler`."""

    controller: ApprovalController
    """Decides."""
    external: External
    """What carries out external calls, by tool name."""
    session: Session = None
    """The conversation approvals are remembered for."""
    tells_changes: bool = True
    """Whether the model is told that an approver changed arguments."""

    async def __call__(self, ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        """Answer every deferred call of a response.

        Raises:
            StoreError: Remembered approvals cannot be trusted, or kept. None of `requests` has run.
        """
        frame = Frame.of(ctx, self.session)
        return await Batch(self.controller, requests, external=self.external, frame=frame, ctx=ctx).answer()

    async def around_execute(self, ctx: RunContext[Any], call: ToolCallPart, args: dict[str, Any], run: Run) -> Any:
        """Run what was approved, and only that; write down what came of it."""
        binding = find_binding(ctx)
        try:
            args = materialised(args)
            arguments = call_arguments(ctx, call.tool_call_id, args)
        except NotCanonicalError:
            arguments = None
        request = self._executing(ctx, call, {} if arguments is None else arguments.shown, binding)
        # The decision's own, so that the log has them in a pair: a model may have been shown in another form.
        digest = approved_digest(binding)
        if binding is None or arguments is None or not is_approved(self.controller, binding, call.tool_name, arguments):
            self.controller.record_outcome(request, 'refused', digest=digest)
            return refuse(CHANGED, 'refused')
        token = watched.set((ctx.run_id, call.tool_call_id))
        try:
            with approving(args if was_asked(binding) else None):
                result = await run(args)
        except BaseException as error:
            outcome = outcome_of(error)
            failure = error if outcome == 'failed' else None
            self.controller.record_outcome(request, outcome, error=failure, digest=digest)
            raise
        finally:
            watched.reset(token)
        if isinstance(result, Refusal):
            self.controller.record_outcome(request, outcome_of(result), digest=digest)
            return result
        self.controller.record_outcome(request, 'executed', digest=digest)
        if self.tells_changes and binding.get('has_changed_arguments') is True:
            return with_notice(result, request.args)
        return result

    def _executing(
        self, ctx: RunContext[Any], call: ToolCallPart, args: Mapping[str, Any], binding: Mapping[str, Any] | None
    ) -> ApprovalRequest:
        return executing_request(Frame.of(ctx, self.session), call.tool_name, call.tool_call_id, args, binding)


def executing_request(
    frame: Frame,
    tool_name: str,
    tool_call_id: str | None,
    args: Mapping[str, Any],
    binding: Mapping[str, Any] | None,
) -> ApprovalRequest:
    """What identifies the call that executes, in the log."""
    return ApprovalRequest(
        tool_name=tool_name,
        args=args,
        description=tool_name,
        payload={},
        tool_call_id=tool_call_id,
        bound_to=binding.get('bound_to', {}) if binding is not None else {},
        metadata={'caller': frame.caller},
        **frame.fields(),
    )


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
            verdict = await ask_check(function, context, framework_context=self.ctx)
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
