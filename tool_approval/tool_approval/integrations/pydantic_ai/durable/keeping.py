"""Keep the deferred calls of an agent's run, and execute the decided ones in a later run of the agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from pydantic_ai import DeferredToolRequests, RunContext
from pydantic_ai.exceptions import ApprovalRequired
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

from tool_approval.core.calls import Allowed, Call, GateResult, Prepared
from tool_approval.core.gate import Gate
from tool_approval.core.request import ApprovalContext
from tool_approval.core.tool_checks import ask_check
from tool_approval.integrations.pydantic_ai.approvals import Approvals
from tool_approval.integrations.pydantic_ai.guard import ApprovalToolset
from tool_approval.integrations.pydantic_ai.requests import conventional

from .nested import cannot_wait
from .state import Stop

if TYPE_CHECKING:
    from .segment import Segment


class ToolChanged(Exception):
    """A tool's definition changed after its call was approved. No deferred call has run, except external calls."""

    def __init__(self, ctx: RunContext[Any]) -> None:
        super().__init__('a tool was changed')
        self.ctx = ctx


class Keeper:
    """Keeps the deferred calls of one run of the agent, and leaves them unanswered, so that the run ends.

    When a later run resumes these calls, it wraps their execution.
    """

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.stop: Stop | None = None
        """Point at which the run stopped with deferred calls, or `None` if it has not stopped."""

    def guard(self, toolset: AbstractToolset[Any], approvals: Approvals) -> ApprovalToolset:
        """See `Keeping`."""
        return _SegmentToolset(toolset, approvals, segment=self.segment)

    async def keep(self, ctx: RunContext[Any], requests: DeferredToolRequests) -> None:
        """See `Keeping`."""
        self.stop = await self.segment.prepared(ctx, requests)

    def refuse(self, ctx: RunContext[Any], requests: DeferredToolRequests) -> NoReturn:
        """See `Keeping`."""
        # Attack: the run inside the tool would have another id after a crash, so its approved call would run twice
        # (test_nested.py: test_a_plain_agent_inside_a_tool_is_refused_before_its_call).
        raise cannot_wait(ctx, requests)

    async def execute(self, action: Callable[[], Awaitable[Any]]) -> Any:
        """Execute an approved call, unless its run was cancelled."""
        return await self.segment.once(action)


@dataclass
class _SegmentToolset(ApprovalToolset):
    segment: Segment = field(kw_only=True)

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
        # None of the calls of a response runs if any tool called in it has changed since the decision.
        if ctx.tool_call_approved and not self._approvals.is_nested and self.segment.is_changed(ctx):
            raise ToolChanged(ctx)
        return await super().guarded(name, tool_args, ctx, tool, run_tool, checks=checks)

    async def _settled(self, gate: Gate, prepared: Prepared, ctx: RunContext[Any]) -> GateResult:
        settled = await super()._settled(gate, prepared, ctx)
        if not ctx.tool_call_approved and isinstance(settled, Allowed) and await _asks(prepared.call):
            # A rule frees the call, and it still executes at most once: the next segment executes it as a step.
            raise ApprovalRequired(metadata=conventional(prepared.request))
        return settled


async def _asks(call: Call) -> bool:
    context = ApprovalContext(
        tool_name=call.tool_name, args=call.arguments.shown, metadata=call.facts.as_metadata(), used=call.arguments.used
    )
    verdicts = [await ask_check(each, context, framework_context=call.framework_context) for each in call.checks]
    return any(verdict is not None and verdict.is_needs_approval for verdict in verdicts)
