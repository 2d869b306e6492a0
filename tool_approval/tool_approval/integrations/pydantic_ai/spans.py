"""Let the spans `execute_tool` be one for each call that runs, and none for a call that does not run.

The host opens such a span before the guard is asked, so the span of a call that does not run gets another name.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Literal, cast

from opentelemetry.trace import Span, get_current_span
from pydantic_ai import RunContext

NotExecuted = Literal['ask_about_tool', 'refuse_tool', 'answer_tool']
"""Operation in place of the execution of a call: the call is deferred to an approver, it is refused, or a person has
answered in its place."""

_OPERATION, _TOOL, _CALL = 'gen_ai.operation.name', 'gen_ai.tool.name', 'gen_ai.tool.call.id'


def not_executed(ctx: RunContext[Any], tool_name: str, operation: NotExecuted) -> None:
    """Name the host's span of a call for what happens in place of the execution.

    Nothing is changed if the current span is not the host's for this call: the host is not instrumented, the span is
    not recorded, or another capability has opened a span within it.

    Args:
        ctx: The run that makes the call.
        tool_name: Name by which the model calls the tool.
        operation: The operation in place of the execution.
    """
    span = get_current_span()
    # Only spans that are recorded have attributes.
    found: object = getattr(span, 'attributes', None)
    attributes = cast('Mapping[str, object]', found if isinstance(found, Mapping) else {})
    expected = 'execute_tool', tool_name, ctx.tool_call_id
    # A toolset may call another tool within the call of one, and that call does execute.
    if (attributes.get(_OPERATION), attributes.get(_TOOL), attributes.get(_CALL)) == expected:
        name = f'{operation} {tool_name}'
        span.update_name(name)
        span.set_attributes({_OPERATION: operation, 'logfire.msg': name})


def execution_span(ctx: RunContext[Any], tool_name: str, tool_call_id: str | None) -> AbstractContextManager[Span]:
    """Open the span of an external call that runs here. The host opens none for such a call."""
    return ctx.tracer.start_as_current_span(
        f'execute_tool {tool_name}',
        attributes={_OPERATION: 'execute_tool', _TOOL: tool_name, _CALL: tool_call_id or ''},
    )
