"""Run tool functions that may need approval, in code that uses no agent framework."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from .arguments import CallArguments, materialised, read_arguments
from .calls import Allowed, Call, ExecutedCall, ExecutionLedger, Kept, Refused, Responded
from .canonical import canonical_json
from .controller import ApprovalController
from .edit_effects import is_same
from .edits import Reading, edited
from .errors import ApprovalBlocked, ApprovalDenied, ExecutionNotRepeated, NotCanonicalError, UsedUp
from .gate import CHANGED, Gate
from .request import CallFacts
from .tool_checks import has_check, judging


async def execute_tool(
    func: Callable[..., Any],
    name: str,
    args: Mapping[str, Any],
    controller: ApprovalController,
    context_metadata: Mapping[str, Any] | None = None,
    *,
    default: str = 'none',
    ledger: ExecutionLedger | None = None,
) -> Any:
    """Run `func(**args)` if it is allowed.

    Args:
        func: A function or other callable, with or without an approval check.
        name: Name by which the model calls the function.
        args: Argument values by parameter name. Nested values are not copied: if they change after an approval, the
            call is refused. If the approver's values do not fit the parameters, the approver is asked again.
        controller: Decides whether the call may run.
        context_metadata: Facts from the framework: `run_id`, `session_id`, `caller` and more.
        default: `none` runs a function that has no rule and no check; `required` asks an approver first.
        ledger: Executes the call at most once. With a ledger, `context_metadata` must contain `tool_call_id`, and also
            either `session_id` or `run_id`. Together, these ids identify the call on every attempt.

    Returns:
        The result of `func`, awaited if necessary, or the JSON form of the result if the ledger has recorded it. If the
        approver responded in the function's place, the response.

    Raises:
        ApprovalBlocked: Policy blocks the call. Nothing has run.
        ApprovalDenied: The call was denied (the note has the reason), or it changed after approval. Nothing has run.
        AuditError: The refusal could not be logged. Nothing has run.
        StoreError: Remembered approvals cannot be trusted or stored. Nothing has run.
        TypeError: `args` is not a mapping. Nothing has run.
        ValueError: There is a ledger, but the metadata does not identify the call. Nothing has run.
        ExecutionNotRepeated: According to the ledger, the call failed before, or it is unknown whether the call ran.
        Exception: Any exception of `func`.
    """
    gate = Gate(controller, default=default)
    if not isinstance(args, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - a model's argument
        raise TypeError(
            f'`args` must be a mapping of parameter names to values, not a value of type {type(args).__name__}'
        )
    metadata = dict(context_metadata or {})
    call_id, run_id = metadata.get('tool_call_id'), metadata.get('session_id') or metadata.get('run_id')
    if ledger is not None and not (isinstance(call_id, str) and isinstance(run_id, str) and call_id and run_id):
        raise ValueError('with a ledger, `context_metadata` needs `tool_call_id`, and either `session_id` or `run_id`')

    facts = CallFacts.of(metadata)

    async def execute(allowed: Allowed) -> Any:
        with gate.execution(allowed):
            return await _run(func, allowed.call.values)

    async def run(allowed: Allowed) -> Any:
        if ledger is None:
            return await execute(allowed)
        executed = ExecutedCall.of(allowed.call, str(run_id))

        def recheck() -> str | None:
            # Attack: the caller changes nested arguments that it still references, while the ledger is asked.
            (_, now), then = _read(allowed.call.values), allowed.call.arguments
            is_unchanged = is_same([now.shown, dict(now.bound)], [then.shown, dict(then.bound)])
            return gate.still_holds(allowed) if is_unchanged else CHANGED

        result = await gate.keep(ledger, executed, allowed, lambda: execute(allowed), recheck=recheck)
        return _kept(name, result) if isinstance(result, Kept) else result

    def call_with(given: Mapping[str, Any]) -> Call:
        values, arguments = _read(given)

        def reread(changed: Mapping[str, Any]) -> Call:
            call = call_with(edited(changed, values, Reading(values, arguments), lambda new: Reading(*_read(new))))
            _check_fit(func, call.values)
            return call

        return Call(
            tool_name=name,
            arguments=arguments,
            values=values,
            facts=facts if facts.tool_digest is not None else facts._replace(tool_digest=_definition(func)),
            metadata=metadata,
            tool_call_id=call_id if isinstance(call_id, str) else None,
            checks=[func],
            reread=reread,
        )

    with judging():
        prepared = await gate.prepare(call_with(args))
        if prepared.verdict.is_pre_approved:
            _check_canonical(name, func, prepared.call.arguments.shown)
            return await run(_allowed(name, gate.run_unasked(prepared)))

        async def again(call: Call) -> Call:
            # Attack: the caller or the check changes nested arguments that it still references (test_attacks.py).
            return call_with(call.values)

        settled = await gate.settle(prepared, again, is_kept=ledger is not None)
        if isinstance(settled, Responded):
            return settled.response
        return await _counted(name, run(_allowed(name, settled)))


async def _counted(name: str, running: Awaitable[Any]) -> Any:
    try:
        return await running
    except UsedUp as over:
        raise ApprovalDenied(name, over.reason) from None


def _allowed(name: str, settled: Refused | Allowed) -> Allowed:
    if not isinstance(settled, Refused):
        return settled
    if settled.is_block and settled.decision is None:
        raise ApprovalBlocked(name, settled.reason)
    has_reason = settled.decision is None or settled.decision.note
    raise ApprovalDenied(name, settled.reason if has_reason else 'no reason was given')


def _check_canonical(name: str, func: Callable[..., Any], args: Mapping[str, Any]) -> None:
    # Attack: NaN is not above a limit, so the function's check lets it pass (test_conditions.py).
    try:
        if has_check(func):
            canonical_json(args)
    except NotCanonicalError as error:
        raise ApprovalBlocked(name, f'the arguments are invalid ({error.problem})') from None


def _kept(name: str, kept: Kept) -> Any:
    match kept.state:
        case 'done':
            return kept.value if kept.text is None else kept.text
        case 'refused':
            raise ApprovalDenied(name, kept.text or '')
        case _:
            raise ExecutionNotRepeated(name, kept.state, kept.text or '')


def _definition(func: Callable[..., Any]) -> str:
    """Return a digest of where a function is defined, so that an approval is not remembered for another function."""
    place = [getattr(func, '__module__', None), getattr(func, '__qualname__', type(func).__qualname__)]
    return hashlib.sha256(canonical_json(place).encode()).hexdigest()


def _check_fit(func: Callable[..., Any], args: Mapping[str, Any]) -> None:
    """Check the names of an approver's arguments.

    Raises:
        ValueError: A parameter has no value, or a value has no parameter.
    """
    try:
        # A wrapper may take other arguments than the function that it wraps.
        signature = inspect.signature(func, follow_wrapped=False)
    except (TypeError, ValueError):  # for example a function written in C
        return
    try:
        signature.bind(**args)
    except TypeError as error:
        raise ValueError(str(error)) from None


async def _run(func: Callable[..., Any], args: Mapping[str, Any]) -> Any:
    result = func(**args)
    return await result if inspect.isawaitable(result) else result


def _read(args: Mapping[str, Any]) -> tuple[dict[str, Any], CallArguments]:
    try:
        values = materialised(args)
        return values, read_arguments(values)
    except NotCanonicalError:
        # The controller denies such arguments, because they have no canonical form.
        return dict(args), CallArguments(shown=dict(args), is_altered=False, bound={})
