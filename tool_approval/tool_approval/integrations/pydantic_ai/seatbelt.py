"""Refuse functions with a check of their own that an agent would run without a guard."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from typing import Any, cast

from pydantic import BaseModel
from pydantic_ai import RunContext
from pydantic_ai.exceptions import UserError
from pydantic_ai.toolsets import FunctionToolset, ToolsetTool

from tool_approval.core.canonical import LEAVES
from tool_approval.core.gate import CHANGED
from tool_approval.core.tool_checks import has_check

from .arguments import function_of
from .results import refuse


@dataclass(eq=False)
class _Pass:
    call: tuple[str | None, str | None]
    values: object
    judged: Sequence[object]
    by: object
    tool_name: str
    is_used: bool = False


def _call(ctx: RunContext[Any] | None) -> tuple[str | None, str | None]:
    # Tests of a toolset make a call without a run.
    return (None, None) if ctx is None else (ctx.run_id, ctx.tool_call_id)


def frozen(value: Any) -> object:
    """Return a copy of a value for comparison, with types: a change in place shows, and `1` is not `True`."""
    kind = cast('type[object]', type(value))
    if kind in LEAVES:
        return kind, value
    if isinstance(value, BaseModel):
        value = {**vars(value), **(value.model_extra or {})}
    elif is_dataclass(value) and not isinstance(value, type):
        value = {each.name: getattr(value, each.name, None) for each in fields(value)}
    if isinstance(value, Mapping):
        return kind, [(frozen(name), frozen(item)) for name, item in cast('Mapping[Any, Any]', value).items()]
    if isinstance(value, list | tuple):
        return kind, [frozen(item) for item in cast('list[Any]', value)]
    if isinstance(value, set):
        return kind, frozenset(cast('set[Any]', value))
    return kind, value


_pass: ContextVar[_Pass | None] = ContextVar('tool_approval_pass', default=None)


@contextmanager
def guarding(
    ctx: RunContext[Any], values: Mapping[str, Any], judged: Sequence[object], by: object = None, tool_name: str = ''
) -> Generator[None]:
    """Let one call execute, with these values.

    Args:
        ctx: The run that makes the call.
        values: Values that the tool gets.
        judged: The objects whose checks were asked about the call.
        by: The controller that decided it, if any.
        tool_name: Name by which the model calls the tool.
    """
    token = _pass.set(_Pass(_call(ctx), frozen(values), judged, by, tool_name))
    try:
        yield
    finally:
        _pass.reset(token)


def _found(ctx: RunContext[Any]) -> _Pass | None:
    found = _pass.get()
    return found if found is not None and found.call == _call(ctx) else None


def is_guarded(ctx: RunContext[Any], by: object) -> bool:
    """Whether an outer guard of this controller is executing this call."""
    found = _found(ctx)
    return found is not None and found.by is by


def is_same(ctx: RunContext[Any], tool_name: str, values: Mapping[str, Any]) -> bool:
    """Whether the call that an outer guard executes is of this tool, with these values."""
    found = _found(ctx)
    return found is not None and found.tool_name == tool_name and found.values == frozen(values)


_host_call_tool = FunctionToolset.call_tool


@wraps(_host_call_tool)
async def _call_tool(
    self: FunctionToolset[Any], name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
) -> Any:
    found = _found(ctx)
    checks = [each for each in (self, function_of(tool)) if has_check(each)]
    if checks and (found is None or any(all(each is not other for other in found.judged) for each in checks)):
        raise UserError(
            f'{name!r} needs approval, but nothing guards it, so it was not run: add `Approvals(...)` to the '
            '`capabilities` of the agent.'
        )
    if checks and found is not None:
        # A toolset between the guard and the function may change the call, or make it twice.
        if found.is_used or found.values != frozen(tool_args):
            refuse(CHANGED, 'refused')
        found.is_used = True
    # Attack: the function calls another tool under its own call (test_a_call_inside_of_an_approved_one...).
    token = _pass.set(None)
    try:
        return await _host_call_tool(self, name, tool_args, ctx, tool)
    finally:
        _pass.reset(token)


# No hook of the host reaches the tools of every agent, and the decorator must leave the function as it is. Without this
# patch, an agent that does not use tool_approval runs a decorated function without asking.
FunctionToolset.call_tool = _call_tool
