"""Run the calls of a response in order, even if only some of them need approval.

Pydantic AI first runs the calls that need no approval, then the approved calls. For example, the model edits
a file and then reads it. If only the edit needs approval, the read runs first and returns the old content. Therefore,
if a call waits for approval, all later calls of the response wait as well.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.exceptions import ApprovalRequired
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from tool_approval.integrations.pydantic_ai import Approvals
from tool_approval.integrations.pydantic_ai.results import refuse

_Key = tuple[str | None, str | int | None]
_Run = Callable[[RunContext[Any]], Awaitable[Any]]

NEEDS_APPROVAL_NOW = 'Now that the earlier calls have run, this call needs approval. Make the call again.'


@dataclass(frozen=True, eq=False)
class CallOrder:
    """Handler for a conversation whose runs never overlap. The conversation's toolsets share the handler's state."""

    approvals: Approvals
    """Guards the tools, and decides the calls that need approval."""
    starts: Callable[[str | None], object] = lambda call_id: None
    """Called with the id of each call when it begins to run."""
    waiting: set[_Key] = field(default_factory=set[_Key], init=False)
    """The run id and the call id of each call that waits for other calls, not for approval. The policy judges each call
    when the call runs."""
    let_through: set[_Key] = field(default_factory=set[_Key], init=False)
    """Calls that are running."""
    deferred_at: set[_Key] = field(default_factory=set[_Key], init=False)
    """The run id and the step number of each response in which a call waits."""

    def guarded(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """Return a toolset that applies the policy, and runs the calls of a response in order."""
        inner = _Ordered(toolset, order=self, is_outer=False)
        return _Ordered(self.approvals.guard(inner), order=self, is_outer=True)

    async def __call__(self, ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        """Answer all deferred calls of a response."""
        ids = [call.tool_call_id for call in requests.approvals if (ctx.run_id, call.tool_call_id) in self.waiting]
        asked = [call for call in requests.approvals if call.tool_call_id not in ids]
        results = await self.approvals(ctx, replace(requests, approvals=asked))
        results.approvals.update(dict.fromkeys(ids, True))
        return results

    async def run_outer(self, ctx: RunContext[Any], run: _Run) -> Any:
        """Judge a call, and run it unless it must wait. If the call waits for approval, later calls wait too."""
        key = (ctx.run_id, ctx.tool_call_id)
        has_waited = key in self.waiting and ctx.tool_call_approved
        if ctx.tool_call_approved:
            self.let_through.add(key)
        try:
            if has_waited:
                self.waiting.discard(key)
                # Attack: waiting must not count as approval, whatever id the model gives its calls.
                ctx = replace(ctx, tool_call_approved=False)
            return await run(ctx)
        except ApprovalRequired:
            if has_waited:
                refuse(NEEDS_APPROVAL_NOW, 'refused')
            self.deferred_at.add((ctx.run_id, ctx.run_step))
            raise
        finally:
            self.let_through.discard(key)

    async def run_inner(self, ctx: RunContext[Any], run: _Run) -> Any:
        """Run a call that needs no approval, or defer the call if an earlier call of the same response is waiting."""
        key = (ctx.run_id, ctx.tool_call_id)
        if key not in self.let_through and (ctx.run_id, ctx.run_step) in self.deferred_at:
            self.waiting.add(key)
            raise ApprovalRequired
        self.starts(ctx.tool_call_id)
        return await run(ctx)


@dataclass
class _Ordered(WrapperToolset[Any]):
    """Wraps the `ApprovalToolset` if `is_outer`, otherwise its inner toolset, which gets only calls that may run."""

    order: CallOrder = field(kw_only=True)
    is_outer: bool = field(kw_only=True)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        run = self.order.run_outer if self.is_outer else self.order.run_inner
        return await run(ctx, lambda ctx: self.wrapped.call_tool(name, tool_args, ctx, tool))
