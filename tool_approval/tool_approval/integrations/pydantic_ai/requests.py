"""Deferred calls in, requests out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_ai import DeferredToolRequests
from pydantic_ai.messages import ToolCallPart

from tool_approval.core.canonical import decode_arguments
from tool_approval.core.errors import NotCanonicalError
from tool_approval.core.request import ApprovalRequest

from .frame import Frame

REQUEST_KEY = 'tool_approval_request'
"""Where `ApprovalToolset` puts its request into a deferral's metadata. Only an `ApprovalRequest` object counts there:
what a model sends, or what was read from a file, is never one."""


def build_approval_requests(requests: DeferredToolRequests, frame: Frame | None = None) -> list[ApprovalRequest]:
    """One request for each call that awaits approval, in the same order; external calls are not among them.

    Args:
        requests: What the host hands to a handler, or ends a run with.
        frame: What is known of the run.

    Returns:
        New requests; nothing of `requests` is shared. One whose arguments cannot be read is marked as blocked, so that
        every controller denies it.
    """
    return [request_of(call, requests.metadata.get(call.tool_call_id), frame) for call in requests.approvals]


def request_of(
    call: ToolCallPart,
    metadata: Mapping[str, Any] | None,
    frame: Frame | None = None,
    facts: Mapping[str, Any] | None = None,
    args: Mapping[str, Any] | None = None,
) -> ApprovalRequest:
    """The request for one call.

    Args:
        call: The call, with its arguments as JSON text or as a mapping.
        metadata: What the tool said when it deferred. `approval_description`, `summary`, `reason` or `path`, in this
            order, becomes the description.
        frame: What is known of the run.
        facts: What is known of the tool; it wins over the same keys of `metadata`.
        args: What to show in place of the call's own arguments.
    """
    told = dict(metadata or {})
    made = told.pop(REQUEST_KEY, None)
    placed = {**told, **(frame.metadata() if frame is not None else {}), **(facts or {})}
    fields: dict[str, Any] = {'tool_call_id': call.tool_call_id, **(frame.fields() if frame is not None else {})}
    if isinstance(made, ApprovalRequest) and made.tool_name == call.tool_name:
        if made.session_id is not None and fields.get('session_id') is None:
            # A handler that names no session leaves the one that the toolset names.
            fields['session_id'] = placed['session_id'] = made.session_id
        return made.model_copy(update={**fields, 'metadata': {**made.metadata, **placed}})
    try:
        args = decode_arguments(call.args) if args is None else args
    except NotCanonicalError as error:
        reason = f'The arguments of {call.tool_name!r} cannot be read ({error.problem}), so the call was denied.'
        blocked = {**placed, 'approval_policy': 'blocked', 'approval_reason': reason}
        return ApprovalRequest(tool_name=call.tool_name, description=reason, metadata=blocked, **fields)
    return ApprovalRequest(
        tool_name=call.tool_name,
        args=args,
        description=_first_text(told, 'approval_description', 'summary', 'reason', 'path') or '',
        reason=_first_text(told, 'approval_reason', 'reason'),
        metadata=placed,
        **fields,
    )


def conventional(request: ApprovalRequest) -> dict[str, Any]:
    """What other handlers understand, and the request itself for ours."""
    told = {
        'approval_description': request.attributed_description,
        'approval_reason': request.reason,
        'approval_policy': 'needs_approval',
        'toolset_id': request.metadata.get('toolset_id'),
        'worker': request.metadata.get('caller'),
    }
    return {REQUEST_KEY: request, **{key: value for key, value in told.items() if value is not None}}


def _first_text(metadata: Mapping[str, Any], *keys: str) -> str | None:
    texts = (metadata.get(key) for key in keys)
    return next((text for text in texts if isinstance(text, str) and text), None)
