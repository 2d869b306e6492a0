"""Calls that are carried out elsewhere: checked, then done by a function of the application."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

from pydantic_ai import RunContext

from tool_approval.core.threads import call

from .arguments import find_tool
from .results import failure

External: TypeAlias = Mapping[str, Callable[..., Any]]
"""By tool name: called with the arguments as keywords, and with `ctx` first if its first parameter is called that
(`None` where the run has ended).
Coroutine functions run on the event loop, others in a thread of their own."""

_log = logging.getLogger('tool_approval')


def unfit(ctx: RunContext[Any] | None, name: str, args: Mapping[str, Any]) -> str | None:
    """Why arguments do not fit the schema that the model was given, or `None` if they do. No value is quoted."""
    tool = find_tool(ctx, name)
    if tool is None:
        return None
    from jsonschema import Draft202012Validator, SchemaError

    schema = tool.tool_def.parameters_json_schema
    try:
        Draft202012Validator.check_schema(schema)
        # The library's types know no mapping of anything.
        errors: list[Any] = list(cast(Any, Draft202012Validator(schema)).iter_errors(dict(args)))
    except SchemaError:
        return 'the tool has no valid schema'
    if not errors:
        return None
    places = sorted({'.'.join(str(part) for part in each.absolute_path) or 'the whole' for each in errors})
    rules = sorted({str(each.validator) for each in errors})
    return f'they do not fit its schema ({", ".join(places)}: {", ".join(rules)})'


async def carry_out(
    ctx: RunContext[Any] | None, external: External, name: str, args: Mapping[str, Any]
) -> tuple[Any, bool]:
    """Do one external call.

    Returns:
        The result for the model, and whether it was done. What the function raises is told to the model as a failure,
        by its type; only cancellation passes.
    """
    function = external[name]
    try:
        first = next(iter(inspect.signature(function).parameters), None)
        positional = (ctx,) if first == 'ctx' else ()
        return await call(function, *positional, **args), True
    except Exception as error:  # noqa: BLE001 - one call that fails must not end the run of the others
        _log.error('The external call of %r failed with %s', name, type(error).__name__)
        return failure(f'The call of {name!r} failed ({type(error).__name__}).'), False
