"""Judge each call of a toolset by a controller's policy."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ApprovalRequired, UserError
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from tool_approval.core.config import Default
from tool_approval.core.controller import ApprovalController
from tool_approval.core.gate import Allowed, ExecutionLedger, Gate, Refused
from tool_approval.core.tool_checks import judging

from .arguments import call_arguments, checks_of
from .guard import is_enclosed, judged_context
from .requests import Session, conventional, executing
from .results import execute_once, find_binding, refuse


@dataclass
class ApprovalToolset(WrapperToolset[Any]):
    """A toolset whose calls are judged before they run, and deferred if they need approval.

    Each call is judged separately. If calls of a response need approval, the handler gets them together. Without a
    handler, they go into the run's output. If the inner toolset marks a tool as needing approval, the mark is ignored,
    so that `approval: none` can apply. A blocked call is refused without asking, even if it was approved before.
    """

    controller: ApprovalController = field(kw_only=False)
    """Controller whose policy judges the calls. Give the same controller to the handler."""
    default: Default = 'required'
    """Verdict for calls that neither the policy nor the tool's own check decides. Secure unless changed."""
    session: Session = field(default=None, kw_only=True)
    """Conversation for which approvals are remembered."""
    tells_changes: bool = field(default=True, kw_only=True)
    """Whether the model is informed of arguments that an approver changed. For calls that an `approval_handler`
    executes, the handler's own option applies."""
    ledger: ExecutionLedger | None = field(default=None, kw_only=True)
    """Keeps approved calls from executing twice. An `approval_handler` that executes calls needs its own ledger."""

    def __post_init__(self) -> None:
        """Reject invalid arguments now, not in the middle of a run.

        Raises:
            UserError: `wrapped` is not a toolset, `controller` is not an `ApprovalController`, or `default` is neither
                `required` nor `none`.
        """
        if not isinstance(self.wrapped, AbstractToolset):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f'`ApprovalToolset` wraps a toolset, not {type(self.wrapped).__name__}.')
        if not isinstance(self.controller, ApprovalController):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f'`ApprovalToolset` takes an `ApprovalController`, not {type(self.controller).__name__}.')
        if self.default not in ('required', 'none'):
            raise UserError(f"`default` must be 'required' or 'none', not {self.default!r}.")

    @property
    def id(self) -> str | None:
        """Id of the inner toolset. Durable agents need toolsets that have an id."""
        return self.wrapped.id

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the inner toolset's tools, none of them marked as needing approval."""
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
            ApprovalRequired: The call needs approval. The exception's metadata describes the request.
            ToolFailed: The call is refused.
        """
        call, blocked = executing(ctx, name, tool_args, session=self.session, tool=tool)
        call = call._replace(
            facts=call.facts if call.facts.toolset_id is not None else call.facts._replace(toolset_id=self.id),
            checks=list(checks_of(self.wrapped, tool)),
            is_enclosed=is_enclosed(ctx),
        )
        args = dict(call.values)
        gate = Gate(self.controller, default=self.default, tells_changes=self.tells_changes)
        with judging():
            prepared = await gate.prepare(call, blocked=blocked)
            if ctx.tool_call_approved:
                if blocked is None:
                    # Attack: a check changes the nested arguments that it is given, and the approver is then shown
                    # these.
                    arguments = call_arguments(ctx, ctx.tool_call_id, args)
                    prepared = prepared._replace(call=call._replace(arguments=arguments))
                settled = gate.confirm(prepared, find_binding(ctx))
            elif prepared.verdict.is_blocked:
                settled = gate.block(prepared)
            elif prepared.verdict.is_pre_approved:
                settled = Allowed(call=call, request=None, binding=None)
            else:
                raise ApprovalRequired(metadata=conventional(prepared.request))
            if isinstance(settled, Refused):
                refuse(settled.reason, 'refused')
            judged = judged_context(ctx, prepared)
            ledger = self.ledger if ctx.tool_call_approved and not call.is_enclosed else None
            return await execute_once(
                ledger, gate, settled, lambda: self.wrapped.call_tool(name, args, judged, tool), ctx=ctx
            )
