"""Convert call arguments from the host's form to JSON form. Approvals are bound to the JSON form."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic import BaseModel
from pydantic_ai import RunContext
from pydantic_ai.exceptions import ModelRetry, ToolFailed, UserError
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import ValidationError

from tool_approval.core.arguments import CallArguments, fields_of, materialised, read_arguments
from tool_approval.core.canonical import canonical_json, decode_arguments
from tool_approval.core.edits import Reading, edited
from tool_approval.core.errors import NotCanonicalError
from tool_approval.core.fields import Parameter, parameters_of
from tool_approval.core.tool_checks import has_check


def call_arguments(ctx: RunContext[Any] | None, tool_call_id: str | None, values: Mapping[str, Any]) -> CallArguments:
    """Return the arguments of a call in the current response.

    Args:
        ctx: The run.
        tool_call_id: The call's id, to find the model's arguments. A call made by code is not in the response.
        values: The values that the tool gets, by parameter name.

    Raises:
        NotCanonicalError: A value has no unique JSON form.
    """
    return read_with(values, given_arguments(made_call(ctx, tool_call_id)))


def read_with(values: Mapping[str, Any], given: Mapping[str, Any] | None) -> CallArguments:
    """Return the arguments of a call with the values that the tool gets and the arguments that the model gave.

    Raises:
        NotCanonicalError: A value has no unique JSON form.
    """
    if not is_unpacked(values, given):
        return read_arguments(values, given)
    arguments = read_arguments(values, {next(iter(values)): given})
    # Shown as the model gives them, so that an approver's edit has the same form.
    return arguments if arguments.fields is None else arguments._replace(shown=arguments.fields)


def edited_arguments(
    ctx: RunContext[Any], call: ToolCallPart, changed: Mapping[str, Any], shown: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments that the tool must be given so that it gets an approver's edit; see `edited`.

    Args:
        ctx: The run.
        call: The call.
        changed: The arguments after the edit.
        shown: The arguments before the edit, as they were shown.

    Raises:
        ValueError: The edit does not fit the tool, does not take effect, or would change something else.
    """
    given = given_arguments(made_call(ctx, call.tool_call_id)) or {}

    def validate(new: dict[str, Any]) -> Reading:
        values = materialised(validated(ctx, call.tool_name, _as_python(ctx, call, new)))
        arguments = read_with(values, new)
        if not is_unpacked(values, new) or arguments.fields is None:
            return Reading(values, arguments)
        return Reading(fields_of(next(iter(values.values()))) or {}, arguments)

    try:
        before = validate(given)
    except ValueError:
        before = None
    if before is None or before.arguments.shown != shown:
        # Another capability changed the arguments, or the host has repaired them: the edit replaces all of them.
        before, given = Reading(shown, read_arguments(shown)), dict(shown)
    return _as_python(ctx, call, edited(changed, given, before, validate, parameters=_parameters(ctx, call, given)))


def _as_python(ctx: RunContext[Any], call: ToolCallPart, new: dict[str, Any]) -> dict[str, Any]:
    """Return edited arguments in a form that the host accepts. It validates an edit as Python values.

    A strict date in the JSON text from a model is a text, and as a Python value it has to be a date.
    """
    if not isinstance(call.args, str):
        return new
    tool = find_tool(ctx, call.tool_name)
    assert tool is not None, 'the edit is of a call of this run'
    try:
        tool.args_validator.validate_python(new, context=ctx.validation_context)
        return new
    except ValidationError as error:
        refused = {next(iter(each['loc']), None) for each in error.errors(include_input=False)}
    values = validated(ctx, call.tool_name, canonical_json(new))
    return {name: values.get(name, value) if name in refused else value for name, value in new.items()}


def _parameters(ctx: RunContext[Any], call: ToolCallPart, given: dict[str, Any]) -> dict[str, Parameter]:
    # Of a model that is the function's only parameter: the model gives its fields.
    values = validated(ctx, call.tool_name, _as_python(ctx, call, given))
    [only] = values.values() if is_unpacked(values, given) else [None]
    if not isinstance(only, BaseModel):
        return {}
    kind = type(only)
    places = parameters_of(kind.model_fields, kind.model_config)
    return {field.serialization_alias or name: places[name] for name, field in kind.model_fields.items()}


def find_tool(ctx: RunContext[Any] | None, name: str) -> ToolsetTool[Any] | None:
    """Return the tool that the model knows as `name` in this run, or `None` if the run or its tools are unknown."""
    manager = ctx.tool_manager if ctx is not None else None
    tools = manager.tools if manager is not None else None
    return tools.get(name) if tools is not None else None


def validated(ctx: RunContext[Any] | None, name: str, args: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """Return `args` in the form that the tool gets: validated, with defaults. For an unknown tool, only decode `args`.

    Raises:
        ValueError: The arguments do not fit the tool. The message names the invalid fields, but quotes no value.
    """
    tool, decoded = find_tool(ctx, name), decode_arguments(args)
    if tool is None or ctx is None:
        return decoded
    try:
        # As the host does: a strict tool accepts a date as text from JSON, but not as text from Python.
        if isinstance(args, str) and args.strip():
            return tool.args_validator.validate_json(args, context=ctx.validation_context)
        return tool.args_validator.validate_python(decoded, context=ctx.validation_context)
    except ValidationError as error:
        places = ', '.join('.'.join(map(str, each['loc'])) or 'the whole' for each in error.errors(include_input=False))
        raise ValueError(f'the values do not match the schema of the tool: {places}') from None


async def hooked(ctx: RunContext[Any], call: ToolCallPart) -> dict[str, Any]:
    """Return the arguments of a call that waits for approval, in the form that the tool gets: validated, with defaults,
    and as changed by other capabilities.

    Raises:
        ValueError: The arguments do not fit the tool. The message names the invalid fields, but quotes no value.
    """
    manager = ctx.tool_manager
    assert manager is not None, 'the tool was found'
    try:
        made = await manager.validate_tool_call(call, approved=True, wrap_validation_errors=False)
    except (ValidationError, ModelRetry, ToolFailed):
        return validated(ctx, call.tool_name, call.args)
    return made.validated_args or {}


def called_name(ctx: RunContext[Any], name: str, tool: ToolsetTool[Any], made: ToolCallPart | None) -> str:
    """Return the name by which the model calls `tool`. Toolsets that wrap the tool may have renamed it.

    Args:
        ctx: The run.
        name: The tool's name in its toolset.
        tool: The tool.
        made: The call in the response; see `made_call`.
    """
    found = find_tool(ctx, made.tool_name) if made is not None else None
    if made is not None and _contains(found, tool):
        return made.tool_name
    function, schema = function_of(tool), tool.tool_def.parameters_json_schema
    # A tool may also call another tool, which must not get its name. A renamed tool has the same function and schema;
    # the schema alone may be shared with other tools.
    is_renamed = (
        found is not None and found.tool_def.parameters_json_schema is schema and function_of(found) is function
    )
    if made is not None and is_renamed:
        return made.tool_name
    offered = (ctx.tool_manager.tools if ctx.tool_manager is not None else None) or {}
    names = [each for each, other in offered.items() if function is not None and function_of(other) is function]
    return name if name in names or not names else names[0]


def _contains(outer: object, tool: ToolsetTool[Any]) -> bool:
    while isinstance(outer, ToolsetTool):
        if outer is tool:
            return True
        outer = getattr(cast('ToolsetTool[Any]', outer), 'source_tool', None)
    return False


def checks_of(toolset: AbstractToolset[Any] | None, tool: ToolsetTool[Any]) -> Iterator[object]:
    """Yield all objects that may have a check of their own: `toolset`, the toolsets inside it, and the tool's function.

    Args:
        toolset: The outermost toolset; with `None`, no toolset is yielded.
        tool: The tool, as `toolset` offers it.

    Raises:
        UserError: The toolsets wrap each other in a cycle.
    """
    current: object = toolset
    for _ in range(_MAX_DEPTH):
        inside: object = None
        if isinstance(current, AbstractToolset):
            yield current
            inside = getattr(cast(object, current), 'wrapped', None)
            # A combined toolset records with the tool which of its toolsets the tool comes from.
            current = getattr(tool, 'source_toolset', None) if inside is None else inside
        if inside is None:
            source: object = getattr(tool, 'source_tool', None)
            # A test double has every attribute: only the host's own type is followed.
            if not isinstance(source, ToolsetTool):
                break
            tool = cast('ToolsetTool[Any]', source)
    else:
        raise UserError(f'The toolsets around a tool wrap each other in a cycle: {type(toolset).__name__}.')
    function = getattr(getattr(getattr(tool, 'call_func', None), '__self__', None), 'function', None)
    if function is not None:
        yield function


def own_checks(toolset: AbstractToolset[Any] | None, tool: ToolsetTool[Any]) -> list[object]:
    """Return those of the objects that `checks_of` yields that have a check."""
    return [each for each in checks_of(toolset, tool) if has_check(each)]


_MAX_DEPTH = 100
"""Maximum depth of nested toolsets, far more than anyone needs. Deeper nesting is reported as a cycle."""


def function_of(tool: ToolsetTool[Any]) -> object:
    """Return the function that a tool calls, or `None` if the tool is not from a `FunctionToolset`."""
    return next(checks_of(None, tool), None)


def made_call(ctx: RunContext[Any] | None, tool_call_id: str | None) -> ToolCallPart | None:
    """Return the call of an id in the current response; `None` if code makes the call, or if several have the id."""
    for response in reversed(ctx.messages if ctx is not None else ()):
        if isinstance(response, ModelResponse):
            break
    else:
        return None
    # Each call is looked up several times: do not search all parts of a large response each time.
    if len(response.parts) > _FEW_PARTS and (position := _positions(response).get(tool_call_id)) is not None:
        part = response.parts[position]
        if isinstance(part, ToolCallPart) and part.tool_call_id == tool_call_id:
            return part
    calls = [part for part in response.parts if isinstance(part, ToolCallPart) and part.tool_call_id == tool_call_id]
    return calls[0] if len(calls) == 1 else None


_FEW_PARTS = 16
_indexed: dict[int, tuple[weakref.ref[ModelResponse], int, dict[str | None, int]]] = {}
"""For each large response, by `id(response)`: the number of its parts, and the positions of calls with a unique id."""


def _positions(response: ModelResponse) -> Mapping[str | None, int]:
    key, count = id(response), len(response.parts)
    known = _indexed.get(key)
    if known is None or known[1] != count:
        ids = {index: part.tool_call_id for index, part in enumerate(response.parts) if isinstance(part, ToolCallPart)}
        uses = Counter(ids.values())
        positions: dict[str | None, int] = {each: index for index, each in ids.items() if uses[each] == 1}
        known = _indexed[key] = weakref.ref(response, lambda _: _indexed.pop(key, None)), count, positions
    return known[2]


def given_arguments(made: ToolCallPart | None) -> dict[str, Any] | None:
    """Return the arguments that the model gave for a call in the current response, or `None` if they are unknown."""
    try:
        return None if made is None else decode_arguments(made.args)
    except NotCanonicalError:
        return None


def is_unpacked(values: Mapping[str, Any], given: Mapping[str, Any] | None) -> bool:
    """Whether the arguments are the fields of the function's only parameter, which is a model or typed dictionary."""
    if given is None or len(values) != 1:
        return False
    [(name, value)] = values.items()
    if isinstance(value, str | int | float | None):
        return False
    if isinstance(value, Mapping):
        return bool(given) and name not in given and given.keys() <= cast('Mapping[str, Any]', value).keys()
    fields = fields_of(value)
    # A field may have the parameter's name.
    return fields is not None and (name not in given or (name in fields and not isinstance(given[name], Mapping)))
