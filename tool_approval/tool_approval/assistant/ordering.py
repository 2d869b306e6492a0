"""Run the calls of a response in its order, also where some wait for an approval and others do not.

The host runs what needs no approval first, and the rest when that was approved: a file that is read after an edit in
the same response would be read before it. So a call that comes after one that waits, waits too, without a question of
its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.exceptions import ApprovalRequired
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from tool_approval.core.controller import ApprovalController
from tool_approval.integrations.pydantic_ai import ApprovalToolset
from tool_approval.integrations.pydantic_ai.handler import ApprovalHandler, Run
from tool_approval.integrations.pydantic_ai.results import refuse

_Key = tuple[str | None, str | int | None]
_Run = Callable[[RunContext[Any]], Awaitable[Any]]

NEEDS_APPROVAL_NOW = 'This call needs approval now, after the calls before it. Make it again.'


@dataclass(frozen=True, eq=False)
class CallOrder:
    """The handler of a conversation, and what its toolsets share. One run at a time."""

    handler: ApprovalHandler
    """Decides about the calls that need approval."""
    waiting: set[_Key] = field(default_factory=set[_Key], init=False)
    """The calls that wait for others alone, by run and id. They are judged when they run, as all are."""
    let_through: set[_Key] = field(default_factory=set[_Key], init=False)
    """The calls that run now."""
    deferred_at: set[_Key] = field(default_factory=set[_Key], init=False)
    """The responses that have a call that waits, by run and step."""

    def guarded(self, toolset: AbstractToolset[Any], controller: ApprovalController) -> AbstractToolset[Any]:
        """The toolset under the controller's policy and in order; each of its calls has to run alone."""
        inner = _Ordered(toolset, order=self, is_outer=False)
        return _Ordered(ApprovalToolset(inner, controller), order=self, is_outer=True)

    async def __call__(self, ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        """Answer every deferred call of a response."""
        ids = [call.tool_call_id for call in requests.approvals if (ctx.run_id, call.tool_call_id) in self.waiting]
        asked = [call for call in requests.approvals if call.tool_call_id not in ids]
        results = await self.handler(ctx, replace(requests, approvals=asked))
        results.approvals.update(dict.fromkeys(ids, True))
        return results

    async def around_execute(self, ctx: RunContext[Any], call: ToolCallPart, args: dict[str, Any], run: Run) -> Any:
        """Run what was approved; what waited for that is judged by its toolset."""
        if (ctx.run_id, call.tool_call_id) in self.waiting:
            return await run(args)
        return await self.handler.around_execute(ctx, call, args, run)

    async def run_outer(self, ctx: RunContext[Any], run: _Run) -> Any:
        """Have a call judged, and run unless it waits; note the response of one that waits for an approval."""
        key = (ctx.run_id, ctx.tool_call_id)
        has_waited = key in self.waiting and ctx.tool_call_approved
        if ctx.tool_call_approved:
            self.let_through.add(key)
        try:
            if has_waited:
                self.waiting.discard(key)
                # Attack: waiting approves nothing, whatever id a model gives its calls.
                ctx = replace(ctx, tool_call_approved=False)
            return await run(ctx)
        except ApprovalRequired:
            if has_waited:
                return refuse(NEEDS_APPROVAL_NOW, 'refused')
            self.deferred_at.add((ctx.run_id, ctx.run_step))
            raise
        finally:
            self.let_through.discard(key)

    async def run_inner(self, ctx: RunContext[Any], run: _Run) -> Any:
        """Run a call that needs no approval, or let it wait for one of its response that does."""
        key = (ctx.run_id, ctx.tool_call_id)
        if key not in self.let_through and (ctx.run_id, ctx.run_step) in self.deferred_at:
            self.waiting.add(key)
            raise ApprovalRequired
        return await run(ctx)


@dataclass
class _Ordered(WrapperToolset[Any]):
    """Around the toolset that judges calls, or inside of it, reached by what needs no approval, or has it."""

    order: CallOrder = field(kw_only=True)
    is_outer: bool = field(kw_only=True)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        run = self.order.run_outer if self.is_outer else self.order.run_inner
        return await run(ctx, lambda ctx: self.wrapped.call_tool(name, tool_args, ctx, tool))
