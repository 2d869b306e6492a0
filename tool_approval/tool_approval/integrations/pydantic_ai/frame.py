"""What the framework knows about a call, for requests, memory and the log."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic_ai import RunContext
from pydantic_ai.exceptions import UserError
from pydantic_ai.tools import ToolDefinition

from tool_approval.core.canonical import canonical_json
from tool_approval.core.errors import NotCanonicalError
from tool_approval.core.request import LineageEntry

from .arguments import find_tool

try:
    from pydantic_ai_deferred import lineage
except ImportError:  # pragma: no cover - the adapter also works without the loop layer, on the host's own capability

    def lineage() -> tuple[Any, ...]:
        """Nothing is known of what is above a run."""
        return ()


Session: TypeAlias = str | Callable[[RunContext[Any]], str | None] | None
"""The conversation approvals are remembered for: a name, or what finds it for a run. `None` takes `ctx.deps.session_id`
where the deps have one, else the outermost run's id."""


@dataclass(frozen=True, kw_only=True)
class Frame:
    """Where a call stands."""

    run_id: str | None
    """The run that makes it."""
    session_id: str | None
    """The conversation, where one is given."""
    caller: str | None
    """The agent's name."""
    lineage: tuple[LineageEntry, ...]
    """The agents and tool calls above, from the outermost run inwards."""

    @classmethod
    def of(cls, ctx: RunContext[Any], session: Session = None) -> Frame:
        """Of the run that `ctx` belongs to.

        Raises:
            UserError: What is given as session, or returned, is no text; or the deps' `session_id`, where none is given.
        """
        if session is None:
            session_id = session_of_deps(ctx.deps)
        else:
            session_id = _text(session(ctx) if callable(session) else session, 'session')
        agent = ctx.agent
        return cls(
            run_id=ctx.run_id,
            session_id=session_id,
            caller=agent.name if agent is not None else None,
            lineage=tuple(
                LineageEntry(
                    agent_name=level.agent_name,
                    run_id=level.run_id,
                    tool_name=level.tool_name,
                    tool_call_id=level.tool_call_id,
                )
                for level in lineage()
                # While a tool executes, its own call is the innermost level; above it are those of other runs.
                if level.run_id != ctx.run_id
            ),
        )

    def metadata(self) -> dict[str, Any]:
        """The frame as the metadata of an `ApprovalContext`."""
        return {'run_id': self.run_id, 'session_id': self.session_id, 'caller': self.caller}

    def fields(self) -> dict[str, Any]:
        """The frame as fields of an `ApprovalRequest`."""
        return {'run_id': self.run_id, 'session_id': self.session_id, 'lineage': self.lineage}


def session_of_deps(deps: object) -> str | None:
    """The conversation that a run's dependencies name in `session_id`, or `None`.

    Raises:
        UserError: It is not a text.
    """
    return _text(getattr(deps, 'session_id', None), 'deps.session_id')


def _text(given: object, name: str) -> str | None:
    if given is not None and not isinstance(given, str):
        raise UserError(f'`{name}` must be a text, not {type(given).__name__}: approvals are remembered for it.')
    return given or None


def tool_facts(ctx: RunContext[Any] | None, name: str) -> dict[str, Any]:
    """What is known of a tool, where the host tells.

    Args:
        ctx: The run.
        name: The tool.

    Returns:
        `toolset_id`, and `tool_digest` of name, description and schema.
    """
    tool = find_tool(ctx, name)
    if tool is None:
        return {}
    definition = tool.tool_def
    facts: dict[str, Any] = {'tool_digest': _digest(definition)}
    toolset_id = getattr(definition, 'toolset_id', None) or tool.toolset.id
    return {**facts, 'toolset_id': toolset_id} if toolset_id is not None else facts


def _digest(definition: ToolDefinition) -> str | None:
    told = [definition.name, definition.description, definition.parameters_json_schema]
    try:
        return hashlib.sha256(canonical_json(told).encode()).hexdigest()
    except NotCanonicalError:
        return None
