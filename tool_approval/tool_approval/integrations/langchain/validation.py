"""Validate the arguments of a call exactly as LangChain does when the tool runs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeGuard, cast, get_origin

from langchain.tools import ToolRuntime
from langchain_core.tools import BaseTool, InjectedToolArg, Tool
from pydantic import BaseModel, ValidationError, create_model
from pydantic.fields import FieldInfo

from tool_approval.core.arguments import as_json, in_clear, materialised
from tool_approval.core.canonical import canonical_json
from tool_approval.core.fields import parameters_of

_VARIADIC = frozenset({'args', 'kwargs'})
"""Names of the schema fields for `*args` and `**kwargs`. A field that the call does not contain is not passed on."""


def validated(tool: BaseTool, passed: dict[str, Any], injected: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values for the tool's function, and add the defaults that are made anew each time to `passed`.

    Args:
        tool: The tool.
        passed: Arguments that the model gave.
        injected: Arguments that the host filled in. Those that it fills in later may be missing.

    Returns:
        Values by parameter name, without injected values. Iterators have become lists.

    Raises:
        ValueError: The arguments do not fit the tool. The message names the problem.
    """
    schema = tool.args_schema
    if schema is None:
        _check_signature(tool, passed)
    elif isinstance(schema, dict):
        _refuse([name for name in cast('list[str]', schema.get('required', [])) if name not in passed], 'missing')
    elif is_model(schema):
        by_host = injected_fields(schema)
        missing = frozenset(name for name in by_host if name not in injected)
        return _complete(_without_required(schema, missing) if missing else schema, passed, injected, by_host)
    # Otherwise it is a model of pydantic 1, which validates when the tool runs.
    return materialised(passed)


def injected_fields(schema: object) -> frozenset[str]:
    """Return the fields of a schema that the host fills in. The schema for models cannot be used to find them, because
    it also lacks other fields, such as those with a `validation_alias`.
    """
    fields = schema.model_fields if is_model(schema) else {}
    return frozenset(name for name, field in fields.items() if _is_injected(field))


def _is_injected(field: FieldInfo) -> bool:
    # Source: `_is_injected_arg_type` of LangChain, which is not public.
    kind = get_origin(field.annotation) or field.annotation
    marks = [each if isinstance(each, type) else type(each) for each in field.metadata]
    return (isinstance(kind, type) and issubclass(kind, ToolRuntime)) or any(
        issubclass(mark, InjectedToolArg) for mark in marks
    )


# A class for each schema that is in use: pydantic takes milliseconds to make one.
@lru_cache(maxsize=256)
def _without_required(schema: type[BaseModel], names: frozenset[str]) -> type[BaseModel]:
    """Return the schema with its aliases and validators, in which the named fields may be missing."""
    optional: dict[str, Any] = dict.fromkeys(names, (Any, None))
    return create_model(schema.__name__, __base__=schema, **optional)


def _complete(
    schema: type[BaseModel], passed: dict[str, Any], injected: Mapping[str, Any], by_host: frozenset[str]
) -> dict[str, Any]:
    """Return all values. A default that would be different each time is made now, and added to `passed`."""
    values = _values(schema, passed, injected, by_host)
    made = {
        name: parameter.places[0][0]
        for name, parameter in parameters_of(schema.model_fields, schema.model_config).items()
        if name in values
        and schema.model_fields[name].default_factory is not None
        and all(place[0] not in passed for place in parameter.places)
    }
    if not made or _is_same(values, _values(schema, passed, injected, by_host)):
        return values
    passed |= {str(key): as_json({name: values[name]}, in_clear=True)[name] for name, key in made.items()}
    values = _values(schema, passed, injected, by_host)
    if not _is_same(values, _values(schema, passed, injected, by_host)):
        raise ValueError(f'a default is different each time, so it cannot be shown: {", ".join(made)}')
    return values


def _is_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return canonical_json(in_clear(one)) == canonical_json(in_clear(other))


def _values(
    schema: type[BaseModel], passed: Mapping[str, Any], injected: Mapping[str, Any], by_host: frozenset[str]
) -> dict[str, Any]:
    """Return the values that the host passes to the function; source: `BaseTool._parse_input` of LangChain."""
    given = {**passed, **injected}
    model = _validate(schema, given)
    fields = schema.model_fields
    try:
        # An excluded field is never passed on, and a serialiser of the whole model decides what is.
        names = model.model_dump()
        values = {
            name: getattr(model, name)
            for name in names
            if name not in by_host
            and (
                name in given
                or name in model.model_fields_set
                or (name in fields and name not in _VARIADIC and not fields[name].is_required())
            )
        }
    except Exception as error:  # noqa: BLE001 - a tool's own serialiser may fail in any way
        raise ValueError(f'the values could not be passed on ({type(error).__name__})') from None
    return materialised(values)


def _check_signature(tool: BaseTool, passed: Mapping[str, Any]) -> None:
    """Reject arguments that do not fit the signature. Without a schema, the host does not validate arguments."""
    if isinstance(tool, Tool):
        if len(passed) != 1:
            raise ValueError(f'the tool takes one argument, not {len(passed)}')
        return
    inferred = cast('type[BaseModel]', tool.tool_call_schema)  # made from the signature
    _validate(inferred, passed)
    if 'kwargs' not in inferred.model_fields:
        _refuse([name for name in passed if name not in inferred.model_fields], 'unknown')


def _validate(schema: type[BaseModel], passed: Mapping[str, Any]) -> BaseModel:
    try:
        return schema.model_validate(passed)
    except ValidationError as error:
        problems = [f'{".".join(map(str, each["loc"]))}: {each["msg"]}' for each in error.errors()]
        raise ValueError(f'the values do not match the schema of the tool: {"; ".join(problems)}') from None
    except Exception as error:  # noqa: BLE001 - a tool's own validator may fail in any way
        raise ValueError(f'the values could not be validated ({type(error).__name__})') from None


def _refuse(names: list[str], problem: str) -> None:
    if names:
        raise ValueError(f'the values do not match the schema of the tool: {", ".join(map(str, names))} ({problem})')


def is_model(schema: object) -> TypeGuard[type[BaseModel]]:
    """Return whether a schema is a model of the current pydantic."""
    return isinstance(schema, type) and issubclass(schema, BaseModel)
