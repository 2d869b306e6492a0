"""Arguments as the host has them, in the one form approvals are about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic_ai import RunContext
from pydantic_ai.toolsets import ToolsetTool
from pydantic_core import ValidationError

from tool_approval.canonical import as_json


def possible_forms(args: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The forms in which a person may have been shown the call that executes with `args`.

    A function whose only parameter is a model is called with that model's fields, and gets the model under the
    parameter's name. A parameter that is a mapping is no such model: what it contains are other arguments.

    Raises:
        NotCanonicalError: A value has no JSON form, or no single one.
    """
    values = as_json(args)
    if len(args) == 1:
        [given], [value] = args.values(), values.values()
        if isinstance(value, dict) and not isinstance(given, Mapping):
            return [values, cast('dict[str, Any]', value)]
    return [values]


def find_tool(ctx: RunContext[Any] | None, name: str) -> ToolsetTool[Any] | None:
    """The tool of the current run that the model calls `name`, where there is a run and the host tells."""
    manager = ctx.tool_manager if ctx is not None else None
    tools = manager.tools if manager is not None else None
    return tools.get(name) if tools is not None else None


def validated(ctx: RunContext[Any] | None, name: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """What the tool `name` will get for `args`: defaults filled in, in JSON form. `args` where the tool is not known.

    Raises:
        ValueError: They do not fit the tool; the text says where, and quotes no value.
        NotCanonicalError: A value has no JSON form, or no single one.
    """
    tool = find_tool(ctx, name)
    if tool is None or ctx is None:
        return as_json(args)
    try:
        result = tool.args_validator.validate_python(dict(args), context=ctx.validation_context)
    except ValidationError as error:
        places = ', '.join('.'.join(map(str, each['loc'])) or 'the whole' for each in error.errors(include_input=False))
        raise ValueError(f'they do not fit the tool ({places})') from None
    return as_json(cast('dict[str, Any]', result))
