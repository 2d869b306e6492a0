"""The handler: all deferred calls of a response are decided by a controller, inside the run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ToolCallPart

from tool_approval.core.arguments import materialised
from tool_approval.core.controller import ApprovalController
from tool_approval.core.errors import NotCanonicalError
from tool_approval.core.own_logic import approving
from tool_approval.core.request import ApprovalRequest

from .arguments import call_arguments
from .batch import Batch
from .binding import CHANGED, approved_digest, find_binding, is_approved, was_asked, watched
from .external import External
from .frame import Frame, Session
from .results import Refusal, outcome_of, refuse, with_notice

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
