"""Right at the tools: what a handler approved executes inside its `around_execute`, and raised deferrals are noted."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.toolsets import ToolsetTool, WrapperToolset

from .bound import BoundRun
from .handler import ExecutionWrapper, on_loop, wraps_execution
from .nesting import around_tool


@dataclass
class ToolGate(WrapperToolset[Any]):
    """The innermost wrapper around a run's tools.

    A toolset, not the capability's `wrap_tool_execute`: on newer hosts other capabilities may still change the
    arguments inside of that hook, and a handler has to see what really runs.
    """

    run: BoundRun
    """The run whose tools they are."""

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Execute the tool, inside the handler if it was asked about this call."""
        call = self.run.executing.get(ctx.tool_call_id or '')
        handler = self.run.scope.handler
        if call is not None and ctx.tool_call_approved and wraps_execution(handler):
            return await self._inside(handler, call, name, tool_args, ctx, tool)
        try:
            return await self.wrapped.call_tool(name, tool_args, ctx, tool)
        except (ApprovalRequired, CallDeferred):
            if call is not None:
                # What the tool was about to do, whatever hooks have made of the model's arguments.
                self.run.note_arguments(call, tool_args, tool.tool_def)
            raise

    async def _inside(
        self,
        handler: ExecutionWrapper,
        call: ToolCallPart,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],
    ) -> Any:
        here = asyncio.get_running_loop()
        with around_tool() as inside_tool:

            async def execute(args: dict[str, Any]) -> Any:
                with inside_tool():
                    return await self.wrapped.call_tool(name, args, ctx, tool)

            async def run(args: dict[str, Any]) -> Any:
                return await on_loop(here, lambda: execute(args))

            return await on_loop(self.run.scope.loop, lambda: handler.around_execute(ctx, call, tool_args, run))
