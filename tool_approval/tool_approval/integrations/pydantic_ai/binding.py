"""Ties an approval to just the call it was given for, from the decision to the execution."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, cast

from pydantic_ai import RunContext

from tool_approval.core.arguments import ARGUMENTS, CallArguments
from tool_approval.core.controller import ApprovalController
from tool_approval.core.decision import ApprovalDecision
from tool_approval.core.request import ApprovalRequest

BINDING_KEY = 'tool_approval'
"""Where the binding travels: in `DeferredToolResults.metadata`, which the host hands to the tool, and stop and resume
keeps."""

GRANTED_KEY = 'granted_capabilities'
"""Where a tool finds, beside the binding, which capabilities its approval grants."""

CHANGED = 'The call changed after it was approved, so it was not run.'
"""What the model is told when what would run is not what was approved."""

watched: ContextVar[tuple[str | None, str | None] | None] = ContextVar('tool_approval_watched', default=None)
"""The run and the call that a handler encloses: an `ApprovalToolset` inside leaves the log and the notice to it. A run
nested in the call may use the same call id."""


def bind(
    controller: ApprovalController,
    request: ApprovalRequest,
    decision: ApprovalDecision,
    changed: CallArguments | None = None,
) -> dict[str, Any]:
    """The metadata that a tool is given with its approval.

    Args:
        controller: Who decided.
        request: What was decided.
        decision: The approval.
        changed: What the tool makes of the approver's arguments, where these replace the request's.

    Returns:
        The binding under `tool_approval`: `digest` of what may run, `decided`, the digest that the log has of the
        decision, `bound_to`, `has_changed_arguments`, `by_policy`. And what the tool asked to be granted, as
        `granted_capabilities`.
    """
    args = request.args if decision.override_args is None else decision.override_args
    decided = controller.digest(request.tool_name, args, request.bound)
    bound_to = request.bound_to if changed is None else controller.bound_to(changed, request.bound_to)
    bound = request.model_copy(update={'bound_to': bound_to}).bound
    binding = {
        'digest': decided if changed is None else controller.digest(request.tool_name, changed.shown, bound),
        'decided': decided,
        'bound_to': dict(bound_to),
        'has_changed_arguments': decision.override_args is not None,
        'by_policy': decision.decided_by == 'policy',
    }
    granted = request.missing_capabilities
    return {BINDING_KEY: binding, **({GRANTED_KEY: list(granted)} if granted else {})}


def find_binding(ctx: RunContext[Any]) -> Mapping[str, Any] | None:
    """The binding of the call that executes, with what it is granted, or `None` if another handler approved it."""
    given: object = ctx.tool_call_metadata
    metadata = cast('Mapping[str, object]', given if isinstance(given, Mapping) else {})
    binding = metadata.get(BINDING_KEY)
    if not isinstance(binding, Mapping):
        return None
    return {**cast('Mapping[str, Any]', binding), GRANTED_KEY: metadata.get(GRANTED_KEY)}


def approved_digest(binding: Mapping[str, Any] | None) -> str | None:
    """The digest that the log has of the decision, or `None` if there is no sound binding."""
    digest: object = binding.get('decided') if binding is not None else None
    return digest if isinstance(digest, str) else None


def was_asked(binding: Mapping[str, Any] | None) -> bool:
    """Whether an approver, a mode or memory approved the call, and not a rule alone.

    Without a binding, whoever let the host run the call approved it.
    """
    return binding is None or binding.get('by_policy') is False


def declared_by(binding: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the tool declared, of all that the approval is bound to; `None` if the binding is malformed."""
    bound_to: object = binding.get('bound_to')
    if not isinstance(bound_to, Mapping):
        return None
    items = cast('Mapping[str, Any]', bound_to).items()
    return {name: value for name, value in items if name != ARGUMENTS}


def is_approved(
    controller: ApprovalController,
    binding: Mapping[str, Any],
    tool_name: str,
    arguments: CallArguments,
    bound_to: Mapping[str, Any] | None = None,
) -> bool:
    """Whether what is about to run is what was approved.

    Args:
        controller: Who bound it.
        binding: What it made.
        tool_name: The tool.
        arguments: What it is about to run with.
        bound_to: What the tool declares now; what it declared then if `None`.
    """
    digest, declared = binding.get('digest'), declared_by(binding)
    if not isinstance(digest, str) or declared is None:
        return False
    now = declared if bound_to is None else bound_to
    if ARGUMENTS in binding['bound_to']:
        now = controller.bound_to(arguments, now)
    granted = binding.get(GRANTED_KEY)
    if granted is not None:
        now = {**now, GRANTED_KEY: granted}
    forms = [arguments.shown] if arguments.fields is None else [arguments.shown, arguments.fields]
    return any(controller.is_bound(digest, tool_name, form, now) for form in forms)
