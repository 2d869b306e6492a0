"""Ask about functions and toolsets that have a check of their own but no `ApprovalToolset` around them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import wraps
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ApprovalRequired
from pydantic_ai.toolsets import FunctionToolset, ToolsetTool

from tool_approval.core.gate import CHANGED, Prepared, was_asked
from tool_approval.core.request import ApprovalContext
from tool_approval.core.tool_checks import approving, ask_check, has_check, judging
from tool_approval.core.verdict import ApprovalResult, make_request

from .arguments import function_of
from .requests import conventional, executing
from .results import find_binding, is_enclosed_by_handler, refuse


@dataclass(repr=False, kw_only=True)
class JudgedContext(RunContext[Any]):
    """`RunContext` of a call that a wrapping toolset has already judged. Only one tool may run with this context."""

    judged: object = None
    """The wrapping toolset's judgement of the call. If a gate judged the call, the judgement is a `Prepared`."""
    judged_call: tuple[str | None, str | None] = (None, None)
    """Ids of the judged run and call. Another call that reuses the context has a different id."""
    taken: threading.Lock = field(default_factory=threading.Lock)
    """Lock that a tool acquires before it uses `judged`. Copies of the context, made by wrappers, share the lock."""


def judged_context(ctx: RunContext[Any], judged: object) -> RunContext[Any]:
    """Return the context in which a judged call executes.

    A context of another type, such as that of a durable activity, is returned unchanged.
    """
    if type(ctx) not in (RunContext, JudgedContext):
        return ctx
    of_host = {each.name: getattr(ctx, each.name) for each in fields(RunContext) if each.init}
    return JudgedContext(**of_host, judged=judged, judged_call=(ctx.run_id, ctx.tool_call_id))


def is_enclosed(ctx: RunContext[Any]) -> bool:
    """Whether a handler or another `ApprovalToolset` encloses the execution of a call."""
    found = _judged(ctx)
    return is_enclosed_by_handler(ctx) or (found is not None and isinstance(found.judged, Prepared))


def _judged(ctx: RunContext[Any]) -> JudgedContext | None:
    """Return the context if it was made for the call being executed and no tool has used it yet."""
    if not isinstance(ctx, JudgedContext) or ctx.taken.locked():
        return None
    return ctx if ctx.judged_call == (ctx.run_id, ctx.tool_call_id) else None


_host_call_tool = FunctionToolset.call_tool


@wraps(_host_call_tool)
async def _call_tool(
    self: FunctionToolset[Any], name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
) -> Any:
    found = _judged(ctx)
    judged = found.judged if found is not None and found.taken.acquire(blocking=False) else None
    checks = [function_of(tool), self if callable(getattr(self, 'check_approval', None)) else None]
    if isinstance(judged, Prepared):
        # A wrapper may have changed the arguments after the judgement.
        checks = [] if judged.call.values == tool_args else checks
    elif judged is not None:
        checks = checks[1:]  # only a gate asks the check of a toolset
    checks = [each for each in checks if has_check(each)]
    if not checks:
        return await _host_call_tool(self, name, tool_args, ctx, tool)
    with judging():
        call, problem = executing(ctx, name, tool_args, tool=tool)
        if problem is not None:
            refuse(problem, 'refused')
        args, shown, facts = dict(call.values), call.arguments.shown, call.facts
        context = ApprovalContext(tool_name=call.tool_name, args=shown, metadata=facts.as_metadata())
        verdict = ApprovalResult.pre_approved()
        for each in checks:
            own = await ask_check(each, context.for_check(), framework_context=ctx) or verdict
            verdict = max(verdict, own, key=_strictness)
        if verdict.is_blocked:
            refuse(verdict.reason or f'The tool {name!r} is blocked.', 'refused')
        if verdict.is_needs_approval and not ctx.tool_call_approved:
            details = {'hides_arguments': call.arguments.is_altered, 'lineage': facts.lineage}
            request = make_request(context, verdict, tool_call_id=ctx.tool_call_id, **details)
            raise ApprovalRequired(metadata=conventional(request))
        binding = find_binding(ctx)
        # The host itself defers a declared tool, so its approval is not bound to the check's `bound_to`.
        is_bound = verdict.is_needs_approval and tool.tool_def.kind != 'unapproved'
        if is_bound and binding is not None and not binding.declares(verdict.bound_to):
            refuse(CHANGED, 'refused')
        declared: Mapping[str, Any] = verdict.bound_to if is_bound and binding is not None else {}
        with approving(args if ctx.tool_call_approved and was_asked(binding) else None, declared):
            return await _host_call_tool(self, name, args, ctx, tool)


def _strictness(verdict: ApprovalResult) -> int:
    return ('pre_approved', 'needs_approval', 'blocked').index(verdict.status)


# No hook of the host reaches the ordinary tools of every agent, and the decorator must leave the function as it is.
# Without this patch, an agent that does not use tool_approval runs a decorated function without asking.
FunctionToolset.call_tool = _call_tool
