"""Runs a tool function under approval, for code that has no framework."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from .arguments import CallArguments, materialised, read_arguments, restored
from .controller import ApprovalController
from .errors import ApprovalBlocked, ApprovalDenied, NotCanonicalError
from .request import ApprovalContext, ApprovalRequest
from .tool_checks import approving, judging
from .verdict import ApprovalResult, make_request


async def execute_tool(
    func: Callable[..., Any],
    name: str,
    args: Mapping[str, Any],
    controller: ApprovalController,
    context_metadata: Mapping[str, Any] | None = None,
    *,
    default: str = 'none',
) -> Any:
    """Run `func(**args)` if it may run.

    Args:
        func: A function, or an object that can be called, with logic of its own or without.
        name: The name the model calls it by.
        args: Argument values by parameter name. They are copied before anybody is asked.
        controller: Who decides.
        context_metadata: What the framework knows: `run_id`, `session_id`, `caller` and more.
        default: What holds for a function about which nothing is said; a bare one runs, unless this is `required`.

    Returns:
        What `func` returns, awaited if need be.

    Raises:
        ApprovalBlocked: Policy refuses the call. Nothing has run.
        ApprovalDenied: It was denied, with the note as reason, or changed after it was approved. Nothing has run.
        AuditError: The refusal could not be written down. Nothing has run.
        StoreError: Remembered approvals cannot be trusted or kept. Nothing has run.
        Exception: Whatever `func` raises.
    """
    with judging():
        return await _execute(func, name, args, controller, context_metadata, default)


async def _execute(
    func: Callable[..., Any],
    name: str,
    args: Mapping[str, Any],
    controller: ApprovalController,
    context_metadata: Mapping[str, Any] | None,
    default: str,
) -> Any:
    metadata = dict(context_metadata or {})
    arguments, read = _read(args)
    context = ApprovalContext(tool_name=name, args=read.shown, metadata=metadata)
    verdict = await controller.judge(context, logic=[func], default=default)
    if verdict.is_pre_approved:
        return await _call(func, arguments)
    request = make_request(context, verdict, hides_arguments=read.is_altered)
    request = request.model_copy(update={'bound_to': controller.bound_to(read, verdict.bound_to)})
    if verdict.is_blocked:
        _refuse(controller, request, verdict)
    approved = _digest(controller, request)
    decision = await controller.request_approval(request)
    if not decision.approved:
        raise ApprovalDenied(name, decision.note or 'no reason was given')
    if decision.override_args is not None:
        try:
            arguments, read = _read(restored(decision.override_args, read.shown, arguments))
        except ValueError as error:
            controller.record_outcome(request, 'refused')
            raise ApprovalDenied(name, f"the approver's arguments cannot be used: {error}") from None
        bound_to = controller.bound_to(read, verdict.bound_to)
        request = request.model_copy(update={'args': read.shown, 'bound_to': bound_to})
        approved = _digest(controller, request)
        context = context.model_copy(update={'args': request.args})
    # The tool is asked again: about changed arguments, and whether what it bound the approval to still holds.
    verdict = await controller.judge(context, logic=[func], default=default)
    if verdict.is_blocked:
        controller.record_outcome(request, 'refused')
        _refuse(controller, request, verdict)
    arguments, read = _read(arguments)
    if not controller.is_bound(approved, name, read.shown, controller.bound_to(read, verdict.bound_to)):
        # Attack: the caller, or the tool's own check, holds the same nested objects (test_attacks.py).
        controller.record_outcome(request, 'refused')
        raise ApprovalDenied(name, 'the call changed after it was approved')
    try:
        with approving(None if decision.decided_by == 'policy' else arguments):
            result = await _call(func, arguments)
    except BaseException as error:
        controller.record_outcome(request, 'failed', error=error)
        raise
    controller.record_outcome(request, 'executed')
    return result


def _digest(controller: ApprovalController, request: ApprovalRequest) -> str:
    try:
        return controller.digest(request.tool_name, request.args, request.bound_to)
    except NotCanonicalError:
        return ''  # the controller denies it, and nothing has this digest


def _refuse(controller: ApprovalController, request: ApprovalRequest, verdict: ApprovalResult) -> None:
    reason = verdict.reason or 'blocked'
    controller.record_block(request, reason)
    raise ApprovalBlocked(request.tool_name, reason)


async def _call(func: Callable[..., Any], args: dict[str, Any]) -> Any:
    result = func(**args)
    return await result if inspect.isawaitable(result) else result


def _read(args: Mapping[str, Any]) -> tuple[dict[str, Any], CallArguments]:
    try:
        arguments = materialised(args)
        return arguments, read_arguments(arguments)
    except NotCanonicalError:
        # Left as it is, the controller finds it cannot be judged and denies it.
        return dict(args), CallArguments(shown=dict(args), is_altered=False, bound={})
