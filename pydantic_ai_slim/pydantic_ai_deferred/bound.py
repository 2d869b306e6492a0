"""What the loop layer keeps while one run lasts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import ToolDefinition

from .nesting import RunScope
from .precedence import Choice
from .snapshot import ValidatedArgs
from .streaming import DeclaredTools
from .threads import HandlerThreads


@dataclass(eq=False)
class BoundRun:
    """The state that the capabilities of one run share. What is kept by `tool_call_id` is of the current response."""

    scope: RunScope
    """Whom the run asks, and what it offers to nested runs."""
    choice: Choice
    """What was settled for the run before it started."""
    declared: DeclaredTools = field(default_factory=DeclaredTools)
    """The declared tools of the current step."""
    validated: dict[str, ValidatedArgs] = field(default_factory=dict[str, ValidatedArgs])
    """The validated arguments of calls."""
    asked: set[str] = field(default_factory=set[str])
    """The approvals the handler was asked for."""
    executing: dict[str, ToolCallPart] = field(default_factory=dict[str, ToolCallPart])
    """The calls that execute now, unless somebody else than our handler approved them."""
    threads: HandlerThreads = field(default_factory=HandlerThreads)
    """Where a handler is called that may block."""
    deferred_again: list[ToolCallPart] = field(default_factory=list[ToolCallPart])
    """The calls that deferred again after they were approved."""

    def forget_response(self) -> None:
        """Before the model is asked for the next response: ids may repeat in it."""
        self.validated.clear()
        self.asked.clear()
        self.deferred_again.clear()

    def note_arguments(self, call: ToolCallPart, args: Mapping[str, Any], definition: ToolDefinition) -> None:
        """Keep what the tool would get for `call`, for the snapshot."""
        self.validated[call.tool_call_id] = ValidatedArgs(call, args, definition.parameters_json_schema)
