"""Requests for deferred calls, with what the framework knows of a call."""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from pydantic_ai import DeferredToolRequests, RunContext
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ToolsetTool

from tool_approval.core.arguments import materialised
from tool_approval.core.canonical import canonical_json, decode_arguments
from tool_approval.core.errors import NotCanonicalError
from tool_approval.core.gate import NO_ARGUMENTS, Call, cannot_be_judged
from tool_approval.core.request import ApprovalRequest, CallFacts, LineageEntry, describe

from .arguments import call_arguments, called_name, find_tool

try:
    from pydantic_ai_deferred import lineage
except ImportError:  # pragma: no cover - the adapter also works without the loop layer, on the host's own capability

    def lineage() -> tuple[Any, ...]:
        """Nothing is known of what is above a run."""
        return ()


Session: TypeAlias = str | Callable[[RunContext[Any]], str | None] | None
"""The conversation approvals are remembered for: a name, or what finds it for a run. `None` takes `ctx.deps.session_id`
where the deps have one, else the outermost run's id."""

REQUEST_KEY = 'tool_approval_request'
"""Where `ApprovalToolset` puts its request into a deferral's metadata. Only an `ApprovalRequest` object counts there:
what a model sends, or what was read from a file, is never one."""


def build_approval_requests(requests: DeferredToolRequests, facts: CallFacts | None = None) -> list[ApprovalRequest]:
    """One request for each call that awaits approval, in the same order; external calls are not among them.

    Args:
        requests: What the host hands to a handler, or ends a run with.
        facts: What is known of the run.

    Returns:
        New requests; nothing of `requests` is shared. One whose arguments cannot be read is marked as blocked, so that
        every controller denies it.
    """
    return [request_of(call, requests.metadata.get(call.tool_call_id), facts) for call in requests.approvals]


def request_of(
    call: ToolCallPart,
    metadata: Mapping[str, Any] | None,
    known: CallFacts | None = None,
    tool: Mapping[str, Any] | None = None,
    args: Mapping[str, Any] | None = None,
) -> ApprovalRequest:
    """The request for one call.

    Args:
        call: The call, with its arguments as JSON text or as a mapping.
        metadata: What the tool said when it deferred. `approval_description`, `summary`, `reason` or `path`, in this
            order, becomes the description.
        known: What is known of the run; it wins over what `metadata` says.
        tool: What is known of the tool, as `tool_facts` returns it; it wins, too.
        args: What to show in place of the call's own arguments.
    """
    given = dict(metadata or {})
    made = given.pop(REQUEST_KEY, None)
    if isinstance(made, ApprovalRequest) and made.tool_name == call.tool_name:
        given = {**made.metadata, **given}
        request = made.changed(CallFacts.of(given), tool_call_id=call.tool_call_id, metadata=given)
    else:
        request = _bare_request(call, given, args)
    if known is None:
        return request
    # A handler that names no session leaves the one that the toolset names.
    place = {'run_id': known.run_id, 'session_id': known.session_id or request.session_id, 'lineage': known.lineage}
    facts = request.facts._replace(caller=known.caller, **place, **(tool or {}))
    return request.changed(facts, metadata={**request.metadata, **facts.as_metadata()}, **place)


def _bare_request(call: ToolCallPart, metadata: dict[str, Any], args: Mapping[str, Any] | None) -> ApprovalRequest:
    description = _first_text(metadata, 'approval_description', 'summary', 'reason', 'path')
    reason = _first_text(metadata, 'approval_reason', 'reason')
    try:
        args = decode_arguments(call.args) if args is None else args
    except NotCanonicalError as error:
        description = f'The arguments of {call.tool_name!r} cannot be read ({error.problem}), so the call was denied.'
        metadata |= {'approval_policy': 'blocked', 'approval_reason': description}
        args, reason = {}, None
    return ApprovalRequest.of_call(
        call.tool_name,
        args,
        CallFacts.of(metadata)._replace(run_id=None, session_id=None, caller=None),
        description=description or describe(call.tool_name, args),
        reason=reason,
        tool_call_id=call.tool_call_id,
        metadata=metadata,
    )


def conventional(request: ApprovalRequest) -> dict[str, Any]:
    """What other handlers understand, and the request itself for ours."""
    values = {
        'approval_description': request.attributed_description,
        'approval_reason': request.reason,
        'approval_policy': 'needs_approval',
        'toolset_id': request.facts.toolset_id,
        'worker': request.facts.caller,
    }
    return {REQUEST_KEY: request, **{key: value for key, value in values.items() if value is not None}}


def _first_text(metadata: Mapping[str, Any], *keys: str) -> str | None:
    texts = (metadata.get(key) for key in keys)
    return next((text for text in texts if isinstance(text, str) and text), None)


def facts_of(ctx: RunContext[Any], session: Session = None, tool_name: str | None = None) -> CallFacts:
    """What the host knows of a call.

    Args:
        ctx: The run that makes it.
        session: The conversation approvals are remembered for.
        tool_name: The tool, as the model calls it; without it, nothing is said of the tool.

    Raises:
        UserError: What is given as session, or returned, is not a text; or the deps' `session_id`, where none is given.
    """
    if session is None:
        session_id = session_of_deps(ctx.deps)
    else:
        session_id = _text(session(ctx) if callable(session) else session, 'session')
    agent = ctx.agent
    return CallFacts(
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
        **({} if tool_name is None else tool_facts(ctx, tool_name)),
    )


def executing(
    ctx: RunContext[Any],
    name: str,
    args: dict[str, Any],
    *,
    session: Session = None,
    tool: ToolsetTool[Any] | None = None,
    tool_call_id: str | None = None,
) -> tuple[Call, str | None]:
    """A call that is about to execute, and why it cannot be judged, where it cannot.

    Args:
        ctx: The run that makes it.
        name: What the toolset that executes it calls the tool.
        args: What the tool gets, by parameter name.
        session: The conversation approvals are remembered for.
        tool: The tool, to find out what the model calls it; without it, `name` is that and nothing is said of the tool.
        tool_call_id: The call's id; that of `ctx` if `None`.
    """
    call_id = ctx.tool_call_id if tool_call_id is None else tool_call_id
    # A toolset around may have renamed the tool: policy has the names of the toolset, the approver is shown the one
    # that the model calls.
    called = name if tool is None else called_name(ctx, name, tool)
    facts = facts_of(ctx, session, None if tool is None else called)
    arguments, problem = NO_ARGUMENTS, None
    try:
        args = materialised(args)
        arguments = call_arguments(ctx, call_id, args)
    except NotCanonicalError as error:
        problem = cannot_be_judged(name, error.problem)
    call = Call(
        tool_name=called,
        judged_as=name,
        arguments=arguments,
        values=args,
        facts=facts,
        tool_call_id=call_id,
        framework_context=ctx,
    )
    return call, problem


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
    parts = [definition.name, definition.description, definition.parameters_json_schema]
    try:
        # Each step of a run has its definitions anew. The form tells 1 from True, unlike a comparison of the values.
        return _digest_of(marshal.dumps(parts, 2))
    except ValueError:  # a value that is not plain
        return None


@lru_cache(maxsize=1024)
def _digest_of(data: bytes) -> str:
    return hashlib.sha256(canonical_json(marshal.loads(data)).encode()).hexdigest()
