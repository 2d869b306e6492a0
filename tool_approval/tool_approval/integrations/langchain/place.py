"""Where a call stands: what the host's configuration tells about run, conversation and agent, and about the tool."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from pydantic import BaseModel, PydanticUserError

from tool_approval.core.canonical import canonical_json
from tool_approval.core.errors import NotCanonicalError


def find_place(
    config: RunnableConfig | None, *, caller: str | None = None, run_id: str | None = None
) -> dict[str, Any]:
    """The metadata of an `ApprovalContext`: `run_id`, `session_id` and `caller`, where they are known.

    Args:
        config: What the host runs with. `configurable.thread_id`, else `configurable.session_id`, is the session.
        caller: The agent's name, in place of the one the host tells.
        run_id: The agent run's id. Without one: the configuration's, and inside of a graph that of the single step,
            so that what is remembered for a session ends with the call.
    """
    told = config or {}
    configurable = cast('Mapping[str, object]', told.get('configurable') or {})
    metadata = cast('Mapping[str, object]', told.get('metadata') or {})
    step = _text(metadata.get('langgraph_checkpoint_ns'))
    # Inside of another agent's tool the host hands down the outer agent's name, and an unnamed agent would use what
    # was approved for the agent above it (test_unnamed_agent_in_a_tool_shares_nothing).
    named = _text(metadata.get('lc_agent_name')) if '|' not in (step or '') else None
    place = {
        'run_id': run_id or _text(told.get('run_id')) or step,
        'session_id': _text(configurable.get('thread_id')) or _text(configurable.get('session_id')),
        'caller': caller or named,
    }
    return {key: value for key, value in place.items() if value is not None}


def definition_digest(tool: BaseTool) -> str | None:
    """64 hexadecimal digits of what the model is told of the tool; `None` if its schema cannot be written down."""
    schema = tool.tool_call_schema
    try:
        # Some types have no JSON schema, and pydantic says so with errors of several kinds.
        told = schema.model_json_schema() if isinstance(schema, type) and issubclass(schema, BaseModel) else schema
        return hashlib.sha256(canonical_json([tool.name, tool.description, told]).encode()).hexdigest()
    except (NotCanonicalError, TypeError, ValueError, PydanticUserError):
        return None


def own_logic(tool: BaseTool) -> Iterator[object]:
    """What may say itself whether a call needs approval: the tool, and the functions behind it."""
    yield tool
    for name in ('func', 'coroutine'):
        function: object = getattr(tool, name, None)
        if function is not None:
            yield function


def _text(value: object) -> str | None:
    # The host takes numbers and UUIDs for ids, too.
    return str(value) if value is not None and value != '' else None
