"""Build requests for deferred calls, from what the framework knows about a call."""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from pydantic_ai import DeferredToolRequests, RunContext
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, ToolCallPart, UserPromptPart
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ToolsetTool
from pydantic_ai_deferred import lineage

from tool_approval.core.arguments import materialised
from tool_approval.core.calls import NO_ARGUMENTS, Call, cannot_be_judged
from tool_approval.core.canonical import canonical_json, decode_arguments
from tool_approval.core.errors import NotCanonicalError
from tool_approval.core.request import ApprovalRequest, CallFacts, LineageEntry, describe
from tool_approval.display.fact_texts import extra_access

from .arguments import called_name, find_tool, given_arguments, made_call, read_with

Session: TypeAlias = str | Callable[[RunContext[Any]], str | None] | None
"""Conversation for which approvals are remembered: its name, or a function that returns the name for a run. `None` uses
`ctx.deps.session_id` if the deps have one, else the outermost run's id."""

REQUEST_KEY = 'tool_approval_request'
"""Key under which `ApprovalToolset` puts the request into a deferral's metadata. Only an `ApprovalRequest` object is
accepted. Data from a model or a file is never an `ApprovalRequest` object."""


def build_approval_requests(requests: DeferredToolRequests, facts: CallFacts | None = None) -> list[ApprovalRequest]:
    """Return a request for each call that awaits approval, in the order of the calls. External calls are left out.

    Args:
        requests: The deferred calls that a handler received or a run returned.
        facts: Known facts of the run.

    Returns:
        New requests; changing them does not affect `requests`. If the arguments of a call cannot be read, its request
        is marked as blocked, so that every controller denies it.
    """
    return [request_of(call, metadata_of(requests, call.tool_call_id), facts) for call in requests.approvals]


def metadata_of(requests: DeferredToolRequests, call_id: str) -> Mapping[str, Any] | None:
    """Return the metadata of one call, or `None`: other programs leave out what is empty."""
    metadata: Mapping[str, Mapping[str, Any] | None] | None = requests.metadata
    return None if metadata is None else metadata.get(call_id)  # pyright: ignore[reportUnnecessaryComparison]


def request_of(
    call: ToolCallPart,
    metadata: Mapping[str, Any] | None,
    known: CallFacts | None = None,
    tool: Mapping[str, Any] | None = None,
    args: Mapping[str, Any] | None = None,
) -> ApprovalRequest:
    """Return the request for one call.

    Args:
        call: The call, with its arguments as JSON text or as a mapping.
        metadata: The metadata that the tool gave when it deferred the call. The description is the first of
            `approval_description`, `summary`, `reason` and `path` that is a nonempty string.
        known: Known facts of the run, which override `metadata`.
        tool: Facts about the tool, as returned by `tool_facts`. Like `known`, these facts override `metadata`.
        args: Arguments to show in place of the arguments in `call`.
    """
    given = dict(metadata or {})
    made = given.pop(REQUEST_KEY, None)
    if isinstance(made, ApprovalRequest) and made.tool_name == call.tool_name:
        is_ours = given.keys() <= _OURS and given.get('approval_policy') == 'needs_approval'
        is_ours = is_ours and given.get('toolset_id') == made.facts.toolset_id
        request, metadata = made, {**made.metadata, **given}
        # Most frequent case: nothing was added to the metadata, so that it says what is known.
        facts = made.facts if is_ours else CallFacts.of(metadata)
    else:
        request = _bare_request(call, given, args)
        facts, metadata = request.facts, request.metadata
    place: dict[str, Any] = {}
    if known is not None:
        # If the handler names no session, the toolset's session stays.
        place = {'run_id': known.run_id, 'session_id': known.session_id or request.session_id, 'lineage': known.lineage}
        requester = known.requester or facts.requester
        facts = facts._replace(caller=known.caller, requester=requester, **place, **(tool or {}))
        metadata = {**metadata, **facts.as_metadata()}
    return request.changed(facts, tool_call_id=call.tool_call_id, metadata=metadata, **place)


def _bare_request(call: ToolCallPart, metadata: dict[str, Any], args: Mapping[str, Any] | None) -> ApprovalRequest:
    description = _first_text(metadata, 'approval_description', 'summary', 'reason', 'path')
    reason = _first_text(metadata, 'approval_reason', 'reason')
    try:
        args = decode_arguments(call.args) if args is None else args
    except NotCanonicalError as error:
        description = f'The arguments of {call.tool_name!r} are invalid ({error.problem}), so the call was denied.'
        metadata |= {'approval_policy': 'blocked', 'approval_reason': description}
        args, reason = {}, None
    return ApprovalRequest.of_call(
        call.tool_name,
        args,
        CallFacts.of(metadata)._replace(run_id=None, session_id=None, caller=None, requester=None),
        description=description or describe(call.tool_name, args),
        reason=reason,
        tool_call_id=call.tool_call_id,
        metadata=metadata,
    )


def conventional(request: ApprovalRequest) -> dict[str, Any]:
    """Return metadata that contains the request for our own handler, and the keys that other handlers read."""
    access = extra_access(request)
    values = {
        'approval_description': request.attributed_description,
        'approval_reason': '\n'.join([*filter(None, [request.reason]), *map('extra access: {}'.format, access)])
        or None,
        'approval_policy': 'needs_approval',
        'toolset_id': request.facts.toolset_id,
        'worker': request.facts.caller,
    }
    return {REQUEST_KEY: request, **{key: value for key, value in values.items() if value is not None}}


_OURS = frozenset({'approval_description', 'approval_reason', 'approval_policy', 'toolset_id', 'worker'})


def _first_text(metadata: Mapping[str, Any], *keys: str) -> str | None:
    texts = (metadata.get(key) for key in keys)
    return next((text for text in texts if isinstance(text, str) and text), None)


Requester: TypeAlias = str | Callable[[RunContext[Any]], str | None] | None
"""Id of the person the agent works for, or a function that takes the run's context and returns it."""


def facts_of(
    ctx: RunContext[Any], session: Session = None, tool_name: str | None = None, *, requester: Requester = None
) -> CallFacts:
    """Return the facts that the host knows about a call.

    Args:
        ctx: The run that makes the call.
        session: The conversation for which approvals are remembered.
        tool_name: Name by which the model calls the tool. If `None`, the facts about the tool are left out.
        requester: Id of the person the agent works for.

    Raises:
        UserError: The session or the requester is not a string, whether given, returned by a function or read from
            `deps.session_id`.
    """
    if session is None:
        session_id = session_of_deps(ctx.deps)
    else:
        session_id = _text(session(ctx) if callable(session) else session, 'session')
    agent = ctx.agent
    above = [level for level in lineage() if level.run_id != ctx.run_id]
    return CallFacts(
        run_id=ctx.run_id,
        session_id=session_id,
        caller=agent.name if agent is not None else None,
        requester=_text(requester(ctx) if callable(requester) else requester, 'requester', names='requester'),
        lineage=tuple(
            LineageEntry(
                agent_name=level.agent_name,
                run_id=level.run_id,
                tool_name=level.tool_name,
                tool_call_id=level.tool_call_id,
            )
            # While a tool executes, its own call is the innermost level; the levels above belong to other runs.
            for level in above
        ),
        # A model has written the prompt of an agent inside a tool.
        said=() if above else tuple(_said(ctx.messages)),
        **({} if tool_name is None else tool_facts(ctx, tool_name)),
    )


def _said(messages: Sequence[ModelMessage]) -> Iterator[str]:
    for message in messages:
        # Attack: a tool returns content that the host sends to the model as a prompt of the user, beside the result
        # (test_reviewer.py).
        parts = message.parts if message.kind == 'request' else ()
        # Most messages are responses and results, and each call looks at all messages.
        if parts and parts[0].part_kind in _PROMPTS and all(part.part_kind in _PROMPTS for part in parts):
            for part in parts:
                content = part.content if isinstance(part, UserPromptPart) else ()
                yield from (
                    [content] if isinstance(content, str) else [each for each in content if isinstance(each, str)]
                )


_PROMPTS = ('user-prompt', 'system-prompt')


def executing(
    ctx: RunContext[Any],
    name: str,
    args: dict[str, Any],
    *,
    tool: ToolsetTool[Any],
    session: Session = None,
    requester: Requester = None,
    toolset_id: str | None = None,
    checks: Sequence[object] = (),
    is_enclosed: bool = False,
) -> tuple[Call, str | None]:
    """Return the call that is about to execute, and the reason if the call cannot be judged (otherwise `None`).

    Args:
        ctx: The run that makes the call.
        name: The tool's name in the toolset that executes it.
        args: The arguments that the tool gets, by parameter name.
        tool: Used to find the name by which the model calls the tool, and the facts about the tool.
        session: The conversation for which approvals are remembered.
        requester: Id of the person the agent works for.
        toolset_id: Id of the toolset, if the tool does not know it.
        checks: See `Call.checks`.
        is_enclosed: See `Call.is_enclosed`.
    """
    # A wrapping toolset may have renamed the tool: policy uses the toolset's names, and the approver sees the model's.
    made = made_call(ctx, ctx.tool_call_id)
    called = called_name(ctx, name, tool, made)
    facts = facts_of(ctx, session, called, requester=requester)
    if facts.toolset_id is None and toolset_id is not None:
        facts = facts._replace(toolset_id=toolset_id)
    arguments, problem = NO_ARGUMENTS, None
    try:
        args = materialised(args)
        arguments = read_with(args, given_arguments(made))
    except NotCanonicalError as error:
        problem = cannot_be_judged(name, error.problem)
    call = Call(
        tool_name=called,
        judged_as=name,
        arguments=arguments,
        values=args,
        facts=facts,
        tool_call_id=ctx.tool_call_id,
        checks=checks,
        framework_context=ctx,
        is_enclosed=is_enclosed,
        args_schema=tool.tool_def.parameters_json_schema,
    )
    return call, problem


def session_of_deps(deps: object) -> str | None:
    """Return the conversation's id in `deps.session_id`, or `None` if the id is missing or empty.

    Raises:
        UserError: The value is not a string.
    """
    return _text(getattr(deps, 'session_id', None), 'deps.session_id')


def _text(given: object, name: str, *, names: str = 'session') -> str | None:
    if given is not None and not isinstance(given, str):
        raise UserError(f'`{name}` must be a string, not {type(given).__name__}, because it names the {names}.')
    return given or None


def tool_facts(ctx: RunContext[Any] | None, name: str) -> dict[str, Any]:
    """Return the facts that the host knows about a tool.

    Args:
        ctx: The run.
        name: The tool.

    Returns:
        `toolset_id`, and `tool_digest` (of name, description and schema). The result is empty if the tool is unknown.
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
        # Cached, because each step of a run builds its definitions again. `marshal` distinguishes 1 from True, unlike a
        # comparison of the values.
        return _digest_of(marshal.dumps(parts, 2))
    except ValueError:  # a value that is not plain
        return None


@lru_cache(maxsize=1024)
def _digest_of(data: bytes) -> str:
    return hashlib.sha256(canonical_json(marshal.loads(data)).encode()).hexdigest()
