"""Runs a tool function under approval, for code that has no framework."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from .arguments import CallArguments, materialised, read_arguments, restored
from .controller import ApprovalController
from .errors import ApprovalBlocked, ApprovalDenied, NotCanonicalError
from .gate import Allowed, Call, Gate, GateResult, Refused
from .request import CallFacts
from .tool_checks import judging


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
    gate = Gate(controller, default=default)
    metadata = dict(context_metadata or {})

    def call_with(given: Mapping[str, Any]) -> Call:
        values, arguments = _read(given)

        def reread(changed: Mapping[str, Any]) -> Call:
            return call_with(restored(changed, arguments.shown, values))

        return Call(
            tool_name=name,
            arguments=arguments,
            values=values,
            facts=CallFacts.of(metadata),
            metadata=metadata,
            checks=[func],
            reread=reread,
        )

    with judging():
        prepared = await gate.prepare(call_with(args))
        if prepared.verdict.is_pre_approved:
            return await _run(func, prepared.call.values)
        [settled] = await gate.decide_all([prepared])
        if not isinstance(settled, Refused):
            # The tool is asked again: about changed arguments, and whether what it bound the approval to still holds.
            again = await gate.prepare(settled.call)
            # Attack: the caller, or the tool's own check, holds the same nested objects (test_attacks.py).
            settled = gate.confirm(again._replace(call=call_with(settled.call.values)), settled.binding)
        allowed = _allowed(name, settled)
        with gate.execution(allowed):
            return await _run(func, allowed.call.values)


def _allowed(name: str, settled: GateResult) -> Allowed:
    if not isinstance(settled, Refused):
        return settled
    if settled.is_block and settled.decision is None:
        raise ApprovalBlocked(name, settled.reason)
    has_reason = settled.decision is None or settled.decision.note
    raise ApprovalDenied(name, settled.reason if has_reason else 'no reason was given')


async def _run(func: Callable[..., Any], args: Mapping[str, Any]) -> Any:
    result = func(**args)
    return await result if inspect.isawaitable(result) else result


def _read(args: Mapping[str, Any]) -> tuple[dict[str, Any], CallArguments]:
    try:
        values = materialised(args)
        return values, read_arguments(values)
    except NotCanonicalError:
        # Left as it is, the controller finds it cannot be judged and denies it.
        return dict(args), CallArguments(shown=dict(args), is_altered=False, bound={})
