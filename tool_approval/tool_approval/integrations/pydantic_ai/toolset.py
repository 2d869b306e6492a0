"""Puts a toolset under a controller's policy, call by call."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ApprovalRequired, UserError
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from tool_approval.core.arguments import CallArguments, materialised
from tool_approval.core.config import Default
from tool_approval.core.controller import ApprovalController
from tool_approval.core.errors import NotCanonicalError
from tool_approval.core.redact import Outcome
from tool_approval.core.request import ApprovalContext, ApprovalRequest
from tool_approval.core.tool_checks import approving, judging
from tool_approval.core.verdict import ApprovalResult, make_request

from .arguments import call_arguments, called_name
from .binding import CHANGED, approved_digest, find_binding, is_approved, was_asked, watched
from .guard import already_judged, logic_of
from .requests import Frame, Session, conventional, tool_facts
from .results import Refusal, outcome_of, refuse, with_notice


@dataclass
class ApprovalToolset(WrapperToolset[Any]):
    """A toolset whose calls are judged before they run, and deferred where somebody has to consent.

    It decides per call, so that all calls of a response that need consent reach the handler, or leave the run,
    together. What the inner toolset declares as deferred it presents as its own, so that `approval: none` holds for it.
    A blocked call never becomes a question: the model is told of the refusal, also where somebody approved the call.
    """

    controller: ApprovalController = field(kw_only=False)
    """Whose policy judges. The same controller as the handler's."""
    default: Default = 'required'
    """What holds for a tool about which nothing is said: secure unless chosen otherwise."""
    session: Session = field(default=None, kw_only=True)
    """The conversation approvals are remembered for."""
    tells_changes: bool = field(default=True, kw_only=True)
    """Whether the model is told that an approver changed arguments, where no `approval_handler` tells it."""

    def __post_init__(self) -> None:
        """Refuse what would otherwise be found out in the middle of a run.

        Raises:
            UserError: What is wrapped is no toolset, or there is no such default.
        """
        if not isinstance(self.wrapped, AbstractToolset):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f'`ApprovalToolset` wraps a toolset, not {type(self.wrapped).__name__}.')
        if self.default not in ('required', 'none'):
            raise UserError(f"`default` must be 'required' or 'none', not {self.default!r}.")

    @property
    def id(self) -> str | None:
        """The inner toolset's: durable agents need one, and it is the same toolset."""
        return self.wrapped.id

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """The inner toolset's tools, with declared approvals taken over."""
        return {
            name: replace(tool, tool_def=replace(tool.tool_def, kind='function'))
            if tool.tool_def.kind == 'unapproved'
            else tool
            for name, tool in (await self.wrapped.get_tools(ctx)).items()
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Run the tool, refuse the call, or defer it.

        Raises:
            ApprovalRequired: Somebody has to consent first; the metadata has the conventional keys.
            ToolFailed: It is refused, on hosts that have this; on others the refusal is the result.
        """
        with judging():
            return await self._judged(name, tool_args, ctx, tool)

    async def _judged(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]) -> Any:
        frame = Frame.of(ctx, self.session)
        # A toolset around this one may have renamed the tool: the policy here has its own names, the approver is shown
        # the one that the model calls.
        called = called_name(ctx, name, tool)
        facts = tool_facts(ctx, called)
        metadata = {**frame.metadata(), 'toolset_id': self.id, **facts}
        try:
            tool_args = materialised(tool_args)
            arguments = call_arguments(ctx, ctx.tool_call_id, tool_args)
        except NotCanonicalError as error:
            reason = f'The arguments of {name!r} cannot be judged ({error.problem}), so the call was not run.'
            request = ApprovalRequest(tool_name=called, tool_call_id=ctx.tool_call_id, **frame.fields())
            self.controller.record_block(request, reason)
            return self._refuse(request, reason, ctx)
        context = ApprovalContext(tool_name=name, args=arguments.shown, metadata=metadata)
        verdict = await self.controller.judge(
            context, logic=list(logic_of(self.wrapped, tool)), framework_context=ctx, default=self.default
        )
        request = make_request(
            context.model_copy(update={'tool_name': called}),
            verdict,
            tool_call_id=ctx.tool_call_id,
            hides_arguments=arguments.is_altered,
            **frame.fields(),
        ).model_copy(update={'bound_to': self.controller.bound_to(arguments, verdict.bound_to)})
        if verdict.is_blocked:
            reason = verdict.reason or f'The tool {name!r} is blocked.'
            self.controller.record_block(request, reason)
            return self._refuse(request, reason, ctx)
        if ctx.tool_call_approved:
            return await self._approved(name, tool_args, ctx, tool, arguments, verdict, request)
        if verdict.is_pre_approved:
            with already_judged(ctx):
                return await self.wrapped.call_tool(name, tool_args, ctx, tool)
        raise ApprovalRequired(metadata=conventional(request))

    async def _approved(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],
        arguments: CallArguments,
        verdict: ApprovalResult,
        request: ApprovalRequest,
    ) -> Any:
        binding = find_binding(ctx)
        if binding is not None and not is_approved(
            self.controller, binding, request.tool_name, arguments, verdict.bound_to
        ):
            return self._refuse(request, CHANGED, ctx)
        try:
            with approving(tool_args if was_asked(binding) else None), already_judged(ctx):
                result = await self.wrapped.call_tool(name, tool_args, ctx, tool)
        except BaseException as error:
            self._record(request, outcome_of(error), approved_digest(binding), error)
            raise
        outcome = outcome_of(result) if isinstance(result, Refusal) else 'executed'
        self._record(request, outcome, approved_digest(binding))
        is_changed = binding is not None and binding.get('has_changed_arguments') is True
        if is_changed and self.tells_changes and watched.get() != (ctx.run_id, ctx.tool_call_id):
            return with_notice(result, arguments.shown)
        return result

    def _refuse(self, request: ApprovalRequest, reason: str, ctx: RunContext[Any]) -> str:
        if ctx.tool_call_approved:
            self._record(request, 'refused', approved_digest(find_binding(ctx)))
        return refuse(reason, 'refused')

    def _record(
        self, request: ApprovalRequest, outcome: Outcome, digest: str | None, error: BaseException | None = None
    ) -> None:
        # A handler around it records whatever comes of the call.
        if watched.get() != (request.run_id, request.tool_call_id):
            failure = error if outcome == 'failed' else None
            self.controller.record_outcome(request, outcome, error=failure, digest=digest)
