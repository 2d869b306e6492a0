"""Build results for the host from decisions, refusals and external calls."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cache, partial
from typing import Any, Literal, NamedTuple, NoReturn, TypeAlias, cast

from pydantic import TypeAdapter
from pydantic_ai import RunContext, ToolApproved, ToolDenied, exceptions
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, ToolReturn

from tool_approval.core.binding import Binding
from tool_approval.core.calls import Allowed, ExecutedCall, ExecutionLedger, Kept, Refused
from tool_approval.core.entries import Outcome
from tool_approval.core.errors import UsedUp
from tool_approval.core.gate import Gate
from tool_approval.core.threads import call_sync_or_async

from .arguments import find_tool
from .spans import execution_span

NOTICE_KEY = 'approval_notice'
"""Key under which the notice about changed arguments is added to a result that is not a string."""


BINDING_KEY = 'tool_approval'
"""Key of the binding in `DeferredToolResults.metadata`. The host passes this metadata to the tool, even if the run was
stopped and resumed."""

GRANTED_KEY = 'granted_capabilities'
"""Key of the capabilities that the approval grants. The key is in the same metadata as `BINDING_KEY`."""


def binding_metadata(binding: Binding) -> dict[str, Any]:
    """Return the metadata that a tool is given with its approval."""
    granted = {} if binding.granted is None else {GRANTED_KEY: binding.granted}
    return {BINDING_KEY: binding.as_json(), **granted}


def _metadata(ctx: RunContext[Any]) -> Mapping[str, object]:
    given: object = ctx.tool_call_metadata
    return cast('Mapping[str, object]', given if isinstance(given, Mapping) else {})


def find_response(ctx: RunContext[Any]) -> Any:
    """Return the approver's response in the place of the call being executed, or `None` if there is none."""
    carried = _metadata(ctx).get(BINDING_KEY)
    return cast('Mapping[str, Any]', carried).get('response') if isinstance(carried, Mapping) else None


def find_binding(ctx: RunContext[Any]) -> Binding | None:
    """Return the binding of the call being executed, or `None` if another handler approved it."""
    metadata = _metadata(ctx)
    carried = metadata.get(BINDING_KEY)
    if not isinstance(carried, Mapping):
        return None
    return Binding.of(cast('Mapping[str, Any]', carried), metadata.get(GRANTED_KEY))


async def execute(gate: Gate, allowed: Allowed, run: Callable[[], Awaitable[Any]]) -> Any:
    """Execute a call, log its outcome, and add the notice about changed arguments."""
    with gate.execution(allowed, outcome_of=outcome_of) as execution:
        result = await run()
    return result if execution.notice is None else with_notice(result, execution.notice)


async def execute_once(
    ledger: ExecutionLedger | None,
    gate: Gate,
    allowed: Allowed,
    run: Callable[[], Awaitable[Any]],
    *,
    ctx: RunContext[Any],
    recheck: Callable[[], str | None] | None = None,
) -> Any:
    """Execute a call as `execute` does, but at most once if there is a ledger."""
    try:
        if ledger is None:
            return await execute(gate, allowed, run)
        result = await _once(ledger, gate, allowed, lambda: execute(gate, allowed, run), ctx=ctx, recheck=recheck)
    except UsedUp as over:
        refuse(over.reason, 'refused')
    if not isinstance(result, Kept):
        return result
    if result.state != 'done':
        refuse(result.text or '', 'refused' if result.state == 'refused' else 'failed')
    return _restored(result)


class CallPlace(NamedTuple):
    """Identifies a call for a ledger after the run has ended, when there is no `RunContext`."""

    messages: Sequence[ModelMessage]
    """Message history up to the call."""
    conversation_id: str
    """Id of the conversation."""
    run_id: str | None = None
    """Id of the run, used if there is no conversation."""


async def _once(
    ledger: ExecutionLedger,
    gate: Gate,
    allowed: Allowed,
    run: Callable[[], Awaitable[Any]],
    *,
    ctx: RunContext[Any] | CallPlace,
    recheck: Callable[[], str | None] | None = None,
) -> Any:
    call_id, run_id, occurrence = allowed.call.tool_call_id, ctx.run_id, 0
    for message in ctx.messages:
        if isinstance(message, ModelResponse) and (made := _calls_of(message, call_id)):
            run_id, occurrence = message.run_id or run_id, occurrence + made
    # A context that was made outside of a run has no conversation; there it is the run that made the call.
    name = ctx.conversation_id or run_id or ''
    return await gate.keep(
        ledger,
        ExecutedCall.of(allowed.call, name, occurrence),
        allowed,
        run,
        recheck=recheck,
        dump=_dumped,
        text_of=partial(_text_of, allowed.call.tool_name),
        not_begun=(exceptions.ApprovalRequired, exceptions.CallDeferred),
    )


def _calls_of(message: ModelResponse, call_id: str | None) -> int:
    return sum(isinstance(part, ToolCallPart) and part.tool_call_id == call_id for part in message.parts)


@cache
def _adapter() -> TypeAdapter[ToolReturn[Any]]:
    return TypeAdapter(ToolReturn[Any])


def _dumped(result: object) -> object:
    """Return a result in the form that a ledger stores. For a `ToolReturn`, include the parts not sent to the model."""
    if not isinstance(result, ToolReturn):
        return result
    return {'__tool_return__': _adapter().dump_python(cast('ToolReturn[Any]', result), mode='json')}


def _restored(kept: Kept) -> Any:
    if kept.text is not None:
        return kept.text
    match kept.value:
        # A result that a person gave is used literally.
        case {'__tool_return__': value, **others} if not others and kept.by is None:
            return _adapter().validate_python(value)
        case value:
            return value


def _text_of(tool_name: str, error: Exception) -> str:
    # The text of other errors may quote arguments; the text of these is written for the model.
    is_for_model = isinstance(error, exceptions.ModelRetry | _Failed) or type(error) is exceptions.ToolFailed
    return str(error) if is_for_model else f'The call of {tool_name!r} failed ({type(error).__name__}).'


def approval(settled: Allowed | Refused) -> Literal[True] | ToolApproved | ToolDenied:
    """Return a decision in the host's form. An edit is in the form that the model gives."""
    if isinstance(settled, Refused):
        return ToolDenied(settled.told)
    is_edit = settled.decision is not None and settled.decision.override_args is not None
    return ToolApproved(override_args=dict(settled.call.given or {})) if is_edit else True


def refuse(message: str, outcome: Outcome = 'failed') -> NoReturn:
    """Report a refused call to the model, in place of a tool's result.

    Args:
        message: Text for the model.
        outcome: Outcome to be logged by the handler or by the `ApprovalToolset` that runs the call.

    Raises:
        ToolFailed: Always. The host treats the result as failed, and it uses up no retry.
    """
    refusal = exceptions.ToolFailed(message)
    setattr(refusal, _OUTCOME, outcome)
    raise refusal


def outcome_of(end: object) -> Outcome:
    """Return the outcome to log for a call that ended with an error.

    Only objects made by `refuse` can set the outcome. The attributes of other errors are ignored, whatever their names.
    """
    if type(end) is exceptions.ToolFailed:
        return vars(end).get(_OUTCOME, 'failed')
    if isinstance(end, exceptions.ApprovalRequired | exceptions.CallDeferred):
        return 'deferred'
    return 'failed'


_OUTCOME = '_tool_approval_outcome'


def with_notice(result: Any, notice: str) -> Any:
    """Return a tool's result with a notice of the arguments that the tool really ran with."""
    if isinstance(result, ToolReturn):
        return replace(cast('ToolReturn[Any]', result), return_value=_noted(result.return_value, notice))
    return _noted(result, notice)


def _noted(result: object, notice: str) -> Any:
    if isinstance(result, str):
        return f'{result}\n\n[{notice}]'
    if isinstance(result, Mapping) and NOTICE_KEY not in result:
        return {**cast('Mapping[Any, Any]', result), NOTICE_KEY: notice}
    return {'result': cast(Any, result), NOTICE_KEY: notice}


External: TypeAlias = Mapping[str, Callable[..., Any]]
"""Functions by tool name. Arguments are passed by keyword. If the first parameter is named `ctx`, the function gets the
run's context, or `None` if the run has ended. Coroutine functions run on the event loop, other functions in a separate
thread."""

_log = logging.getLogger('tool_approval')


def unfit(ctx: RunContext[Any] | None, name: str, args: Mapping[str, Any]) -> str | None:
    """Return why arguments do not fit the tool's schema, or `None` if they fit. The reason quotes no value."""
    tool = find_tool(ctx, name)
    if tool is None:
        return None
    from jsonschema import Draft202012Validator, SchemaError

    schema = tool.tool_def.parameters_json_schema
    try:
        Draft202012Validator.check_schema(schema)
        # The library's types do not accept a mapping of any values.
        errors: list[Any] = list(cast(Any, Draft202012Validator(schema)).iter_errors(dict(args)))
    except SchemaError:
        return 'the schema of the tool is invalid'
    if not errors:
        return None
    places = sorted({'.'.join(str(part) for part in each.absolute_path) or 'the whole' for each in errors})
    rules = sorted({str(each.validator) for each in errors})
    return f'the values do not match the schema of the tool: {", ".join(places)} ({", ".join(rules)})'


class _Failed(Exception):
    """An external call that did not run. The argument of the exception is the text for the model."""


async def carry_out_once(
    ledger: ExecutionLedger | None,
    gate: Gate,
    allowed: Allowed,
    ctx: RunContext[Any] | None,
    external: External,
    recheck: Callable[[], str | None] | None = None,
    *,
    place: CallPlace | None = None,
) -> Any:
    """Run one external call and log its outcome. With a ledger, the call runs at most once."""
    call = allowed.call

    async def run() -> Any:
        span = nullcontext() if ctx is None else execution_span(ctx, call.tool_name, call.tool_call_id)
        with span, gate.execution(allowed) as execution:
            result, is_done = await carry_out(ctx, external, call.tool_name, call.values)
            execution.outcome = 'executed' if is_done else 'failed'
        if not is_done:
            raise _Failed(result)
        return result

    try:
        found = ctx if place is None else place
        if ledger is None or found is None:
            return await run()
        result = await _once(ledger, gate, allowed, run, ctx=found, recheck=recheck)
    except _Failed as failed:
        return failed.args[0]
    except UsedUp as over:
        return exceptions.ToolFailed(over.reason)
    if not isinstance(result, Kept):
        return result
    return _restored(result) if result.state == 'done' else exceptions.ToolFailed(result.text or '')


async def carry_out(
    ctx: RunContext[Any] | None, external: External, name: str, args: Mapping[str, Any]
) -> tuple[Any, bool]:
    """Run one external call.

    Returns:
        The result for the model, and whether the call ran. If the function raises, the model gets a failure with the
        exception's type. Only cancellation is raised.
    """
    function = external[name]
    try:
        first = next(iter(inspect.signature(function).parameters), None)
        positional = (ctx,) if first == 'ctx' else ()
        # The model may name an argument as a parameter of `call_sync_or_async` is named.
        return await call_sync_or_async(partial(function, *positional, **args)), True
    except Exception as error:  # noqa: BLE001 - one call that fails must not end the run of the others
        _log.error('The external call of %r failed with %s', name, type(error).__name__)
        return exceptions.ToolFailed(f'The call of {name!r} failed ({type(error).__name__}).'), False
