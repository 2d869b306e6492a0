"""Ask about functions that have a check of their own, where no `ApprovalToolset` encloses them."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, cast

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ApprovalRequired, UserError
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, ToolsetTool

from tool_approval.core.arguments import materialised
from tool_approval.core.errors import NotCanonicalError
from tool_approval.core.request import ApprovalContext
from tool_approval.core.tool_checks import approving, ask_check, has_check, judging
from tool_approval.core.verdict import ApprovalResult, make_request

from .arguments import call_arguments
from .binding import CHANGED, declared_by, find_binding, was_asked
from .requests import Frame, conventional, tool_facts
from .results import refuse


@contextmanager
def already_judged(ctx: RunContext[Any] | None) -> Generator[None]:
    """Enclose the execution of a call that a toolset around the function has judged already."""
    token = _judged.set(_key(ctx))
    try:
        yield
    finally:
        _judged.reset(token)


def _key(ctx: RunContext[Any] | None) -> tuple[str | None, str | None]:
    return (None, None) if ctx is None else (ctx.run_id, ctx.tool_call_id)


_judged: ContextVar[tuple[str | None, str | None] | None] = ContextVar('tool_approval_judged_call', default=None)
_host_call_tool = FunctionToolset.call_tool


@wraps(_host_call_tool)
async def _call_tool(
    self: FunctionToolset[Any], name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
) -> Any:
    is_judged = _judged.get() == _key(ctx)
    _judged.set(None)  # it lets one call run
    function = next(logic_of(None, tool), None)
    if is_judged or not has_check(function):
        return await _host_call_tool(self, name, tool_args, ctx, tool)
    with judging():
        try:
            tool_args = materialised(tool_args)
            verdict = await _judge(function, _offered_name(function, name, ctx), tool_args, ctx)
        except NotCanonicalError as error:
            reason = f'The arguments of {name!r} cannot be judged ({error.problem}), so the call was not run.'
            return refuse(reason, 'refused')
        if verdict.is_blocked:
            return refuse(verdict.reason or f'The tool {name!r} is blocked.', 'refused')
        binding = find_binding(ctx)
        is_changed = binding is not None and declared_by(binding) != verdict.bound_to
        # The host defers a declared tool itself, so its approval is bound to nothing that the check says.
        if is_changed and verdict.is_needs_approval and tool.tool_def.kind != 'unapproved':
            return refuse(CHANGED, 'refused')
        with approving(tool_args if ctx.tool_call_approved and was_asked(binding) else None):
            return await _host_call_tool(self, name, tool_args, ctx, tool)


def _offered_name(function: object, name: str, ctx: RunContext[Any]) -> str:
    """The name that the model calls the function by: a toolset around it may have renamed the tool."""
    tools = (ctx.tool_manager.tools if ctx.tool_manager is not None else None) or {}
    names = [offered for offered, tool in tools.items() if next(logic_of(None, tool), None) is function]
    return name if name in names or not names else names[0]


async def _judge(function: object, name: str, tool_args: dict[str, Any], ctx: RunContext[Any]) -> ApprovalResult:
    """What the check of a function says of a call: whether it is blocked, or may run.

    Raises:
        ApprovalRequired: The approver has to be asked first.
        NotCanonicalError: The arguments cannot be judged.
    """
    frame = Frame.of(ctx)
    arguments = call_arguments(ctx, ctx.tool_call_id, tool_args)
    metadata = {**frame.metadata(), **tool_facts(ctx, name)}
    context = ApprovalContext(tool_name=name, args=arguments.shown, metadata=metadata)
    verdict = await ask_check(function, context, framework_context=ctx) or ApprovalResult.pre_approved()
    if verdict.is_needs_approval and not ctx.tool_call_approved:
        request = make_request(
            context,
            verdict,
            tool_call_id=ctx.tool_call_id,
            hides_arguments=arguments.is_altered,
            **frame.fields(),
        )
        raise ApprovalRequired(metadata=conventional(request))
    return verdict


# No hook of the host reaches the ordinary tools of every agent, and the decorator has to leave the function as it is:
# without this, an agent that knows nothing of tool_approval runs a decorated function unasked.
FunctionToolset.call_tool = _call_tool


_MAX_DEPTH = 100
"""How many toolsets may wrap each other. Chosen: far more than anyone nests, and reached at once by a cycle."""


def logic_of(toolset: AbstractToolset[Any] | None, tool: ToolsetTool[Any]) -> Iterator[object]:
    """The toolsets from `toolset` inwards, then the function.

    Args:
        toolset: The outermost toolset to ask; `None` leaves the toolsets out.
        tool: The tool, as that toolset offers it.

    Raises:
        UserError: The toolsets wrap each other without end.
    """
    current: object = toolset
    for _ in range(_MAX_DEPTH):
        inside: object = None
        if isinstance(current, AbstractToolset):
            yield current
            inside = getattr(cast(object, current), 'wrapped', None)
            # A combined toolset records with the tool which of its parts the tool comes from.
            current = getattr(tool, 'source_toolset', None) if inside is None else inside
        if inside is None:
            source: object = getattr(tool, 'source_tool', None)
            # A test double has every attribute: only the host's own type is followed.
            if not isinstance(source, ToolsetTool):
                break
            tool = cast('ToolsetTool[Any]', source)
    else:
        raise UserError(f'The toolsets around a tool wrap each other without end: {type(toolset).__name__}.')
    function = getattr(getattr(getattr(tool, 'call_func', None), '__self__', None), 'function', None)
    if function is not None:
        yield function
