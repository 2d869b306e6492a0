"""Know the place of every tool call, and let declared tools defer themselves while a response streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ToolFailed
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ToolsetTool, WrapperToolset

from .nesting import Run, execute

SKIPPED = 'Not executed: the run had reached its final result.'
"""Text recorded as the result of a deferred call that did not run because the run had reached its final output."""


def declared_tools(tools: Mapping[str, ToolsetTool[Any]]) -> dict[str, ToolsetTool[Any]]:
    """Return the tools that are declared as deferred."""
    return {name: tool for name, tool in tools.items() if tool.tool_def.defer}


def as_function(tool: ToolsetTool[Any]) -> ToolsetTool[Any]:
    """Return a declared tool as a function, which a stream does not end at. `call_tool` refuses to call it unasked."""
    return replace(tool, tool_def=replace(tool.tool_def, kind='function'))


def _defer(ctx: RunContext[Any], definition: ToolDefinition) -> None:
    if definition.kind == 'external':
        raise CallDeferred
    if definition.kind == 'unapproved' and not ctx.tool_call_approved:
        raise ApprovalRequired


@dataclass
class PlacingToolset(WrapperToolset[Any]):
    """Innermost wrapper of a run's tools, which knows the place of every call."""

    _: KW_ONLY
    runs: Mapping[str | None, Run]
    """Runs of the capability, by id."""

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Execute the tool. Runs that it starts are nested in this run."""
        run = self.runs[ctx.run_id]
        # Attack: a toolset around this one calls a tool itself, or a call is made while a response streams, and the
        # host does not see its kind (test_a_toolset_around_ours_cannot_skip_the_question,
        # test_a_declared_tool_that_is_called_while_a_response_streams_is_asked_about).
        _defer(ctx, run.declared.get(name, tool).tool_def)
        try:
            return await execute(run, ctx, name, lambda: self.wrapped.call_tool(name, tool_args, ctx, tool))
        except (ApprovalRequired, CallDeferred):
            if run.has_output:  # of a stream; the host would leave the call open
                raise ToolFailed(SKIPPED) from None
            raise
