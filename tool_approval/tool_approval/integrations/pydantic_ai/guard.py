"""The one guard: it judges every call of a toolset, defers it, checks its approval, runs it and logs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, cast

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ApprovalRequired, UserError
from pydantic_ai.messages import ModelResponse
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from tool_approval.core.calls import ExecutionLedger, GateResult, Prepared, Refused, Responded
from tool_approval.core.config import Default
from tool_approval.core.controller import ApprovalController
from tool_approval.core.gate import Gate
from tool_approval.core.tool_checks import judging

from .arguments import call_arguments, own_checks
from .requests import Session, conventional, executing
from .results import find_binding, find_response, refuse
from .seatbelt import guarding, is_guarded, is_same
from .spans import not_executed

if TYPE_CHECKING:
    from .approvals import Approvals

UNBOUND = 'The approval of this call is not bound to it, so the call was not run.'
"""Reason for refusing a call whose approval is not from `Approvals`, or has lost its binding."""

NOT_BY_OTHERS = 'Only an approver of this policy may approve this call, so it was not run.'
"""Reason for refusing a call that other code approved in the same run."""


@dataclass(kw_only=True)
class _Guarded(ToolsetTool[Any]):
    # `checks_of` follows a tool with this name inside another, as in the host's combined toolsets.
    source_tool: ToolsetTool[Any]


class _Declared:
    """Stands for the host's `requires_approval=True`, as the check of a tool."""

    needs_approval = True


_DECLARED = _Declared()


@dataclass
class ApprovalToolset(WrapperToolset[Any]):
    """A toolset whose calls are judged before they run, and deferred if they need approval.

    Each call is judged separately. If calls of a response need approval, the handler gets them together. Without a
    handler, they go into the run's output. A blocked call is refused without asking, even if it was approved before.
    """

    approvals: Approvals | ApprovalController = field(kw_only=False)
    """Approvals that judge the calls, or a controller. Give the same object to the handler."""
    default: Default | None = None
    """Beside a controller: verdict for calls that neither the policy nor the tool's own check decides."""
    session: Session = field(default=None, kw_only=True)
    """Beside a controller: conversation for which approvals are remembered."""
    tells_changes: bool | None = field(default=None, kw_only=True)
    """Beside a controller: whether the model is informed of arguments that an approver changed."""
    ledger: ExecutionLedger | None = field(default=None, kw_only=True)
    """Beside a controller: ledger that keeps approved calls from executing twice."""

    def __post_init__(self) -> None:
        """Reject invalid arguments now, not in the middle of a run.

        Raises:
            UserError: `wrapped` is not a toolset, or the other arguments are invalid.
        """
        from .approvals import as_approvals

        if not isinstance(self.wrapped, AbstractToolset):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f'`ApprovalToolset` wraps a toolset, not {type(self.wrapped).__name__}.')
        names = ('default', 'session', 'tells_changes', 'ledger')
        options = {name: value for name in names if (value := getattr(self, name)) is not None}
        self._approvals = self.approvals = as_approvals(self.approvals, options)
        self.default = self.session = self.tells_changes = self.ledger = None

    @property
    def id(self) -> str | None:
        """Id of the inner toolset. Durable agents need toolsets that have an id."""
        return self.wrapped.id

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the tools as ordinary tools, because the guard defers them itself. External tools stay external."""
        return {name: _guarded(tool) for name, tool in (await self.wrapped.get_tools(ctx)).items()}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Run the tool, refuse the call, or defer it.

        Raises:
            ApprovalRequired: The call needs approval. The exception's metadata describes the request.
            ToolFailed: The call is refused.
        """
        inner = tool.source_tool if isinstance(tool, _Guarded) else tool
        # Attack: a toolset gets a check, or another toolset inside, while a response runs or an approver is asked
        # (test_a_check_that_a_toolset_gets_while_a_response_runs_is_asked).
        checks = own_checks(self.wrapped, inner)

        async def call(args: dict[str, Any]) -> Any:
            return await self.wrapped.call_tool(name, args, ctx, inner)

        return await self.guarded(name, tool_args, ctx, inner, call, checks=checks)

    async def guarded(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],
        run_tool: Callable[[dict[str, Any]], Awaitable[Any]],
        *,
        checks: Sequence[object],
    ) -> Any:
        """Run a tool, refuse the call, or defer it, as `call_tool` does. `run_tool` runs the tool."""
        if ctx.tool_call_approved and (response := find_response(ctx)) is not None:
            not_executed(ctx, tool.tool_def.name, 'answer_tool')
            return response  # of the approver, in the tool's place
        approvals = self._approvals
        gate = approvals.gate
        call, blocked = executing(
            ctx,
            name,
            tool_args,
            tool=tool,
            session=approvals.session,
            requester=approvals.requester,
            toolset_id=self.id,
            checks=[*checks, _DECLARED] if tool.tool_def.kind == 'unapproved' else checks,
            is_enclosed=is_guarded(ctx, gate.controller),
        )
        args = dict(call.values)
        with judging():
            prepared = await gate.prepare(call, blocked=blocked)
            if checks and ctx.tool_call_approved and blocked is None:
                # Attack: a check changes the nested arguments that it is given, and the approver is then shown these.
                again = call_arguments(ctx, ctx.tool_call_id, args)
                prepared = prepared._replace(call=call._replace(arguments=again))
            try:
                settled = await self._settled(gate, prepared, ctx)
            except ApprovalRequired:
                not_executed(ctx, call.tool_name, 'ask_about_tool')
                raise
            if isinstance(settled, Refused):
                not_executed(ctx, call.tool_name, 'refuse_tool')
                refuse(settled.told, 'refused')
            if isinstance(settled, Responded):
                not_executed(ctx, call.tool_name, 'answer_tool')
                return settled.response

            async def run() -> Any:
                with guarding(ctx, args, checks, gate.controller, call.tool_name):
                    return await run_tool(args)

            return await approvals.execute_allowed(ctx, gate, settled, run)

    async def _settled(self, gate: Gate, prepared: Prepared, ctx: RunContext[Any]) -> GateResult:
        verdict = prepared.verdict
        if ctx.tool_call_approved:
            binding, call = find_binding(ctx), prepared.call
            # Attack: a toolset between two guards calls another tool under an approval that has no binding.
            is_judged = call.is_enclosed and is_same(ctx, call.tool_name, call.values)
            if binding is None and verdict.is_needs_approval and not is_judged:
                return await self._approved_by_others(gate, prepared, ctx)
            return gate.confirm(prepared, binding, is_kept=self._approvals.is_kept)
        if verdict.is_blocked:
            return gate.block(prepared)
        if verdict.is_pre_approved:
            return gate.run_unasked(prepared)
        raise ApprovalRequired(metadata=conventional(prepared.request))

    async def _approved_by_others(self, gate: Gate, prepared: Prepared, ctx: RunContext[Any]) -> GateResult:
        response = next((each for each in reversed(ctx.messages) if isinstance(each, ModelResponse)), None)
        # Attack: the binding of an approval that has expired, or is of another call, is dropped between two runs.
        if response is None or response.run_id != ctx.run_id or self._approvals.has_answered(ctx):
            return gate.refuse(prepared, UNBOUND)
        if self._approvals.others == 'ask':
            # The host has read the arguments, so an edit does not fit and is refused.
            return await gate.settle(prepared, is_kept=self._approvals.is_kept)
        if self._approvals.others == 'refuse' or gate.controller.mode == 'strict':
            return gate.refuse(prepared, NOT_BY_OTHERS)
        return gate.run_approved_by_others(prepared, self._approvals.answered_by(ctx))


_OF_THE_HOST = frozenset({'tool-search', 'capability-load'})
"""Kinds of the host's own tools that only reveal other tools, which are guarded themselves."""


def only_reveals(definition: ToolDefinition) -> bool:
    """Return whether a tool is one of the host's own that only reveal other tools. Older hosts do not mark them."""
    return getattr(definition, 'tool_kind', None) in _OF_THE_HOST


def is_outside(tool: ToolsetTool[Any]) -> bool:
    """Return whether no guard surrounds the execution of a tool, because another capability added it further out."""
    return guarded_name(tool) is None


def guarded_name(tool: ToolsetTool[Any]) -> str | None:
    """Return the name by which its guard judges a tool, or `None` if no guard surrounds the execution."""
    inner: object = tool
    while isinstance(inner, ToolsetTool) and not isinstance(inner, _Guarded):
        inner = getattr(cast('object', inner), 'source_tool', None)
    return inner.tool_def.name if isinstance(inner, _Guarded) else None


def is_declared(tool: object) -> bool:
    """Return whether a guarded tool is declared as needing approval."""
    while isinstance(tool, _Guarded):
        tool = tool.source_tool
    return isinstance(tool, ToolsetTool) and cast('ToolsetTool[Any]', tool).tool_def.kind == 'unapproved'


_OF_TOOL = tuple(each.name for each in fields(ToolsetTool) if each.init)


def _guarded(tool: ToolsetTool[Any]) -> _Guarded:
    own = {name: getattr(tool, name) for name in _OF_TOOL}
    if tool.tool_def.kind == 'unapproved':
        own['tool_def'] = replace(tool.tool_def, kind='function')
    return _Guarded(**own, source_tool=tool)
