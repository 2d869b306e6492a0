"""What a handler is shown: a copy of the requests, in the model's order, with the arguments the tools would get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from pydantic import BaseModel, RootModel
from pydantic_ai import DeferredToolRequests
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_core import PydanticSerializationError, to_jsonable_python


def take_snapshot(
    requests: DeferredToolRequests,
    *,
    messages: Sequence[ModelMessage],
    validated: Mapping[str, ValidatedArgs],
) -> DeferredToolRequests:
    """Copy `requests` so that nothing a handler does to them changes what executes.

    Args:
        requests: The host's own objects; left alone.
        messages: The history of the run, which ends with the response that made the calls.
        validated: The validated arguments by `tool_call_id`, for the calls the host has validated.

    Returns:
        The same calls and metadata. Each list is in the order of the model's response (the host lists raised
        deferrals before declared ones). Arguments are a dictionary in JSON form where the host has validated them,
        and the model's own otherwise.
    """

    def copied(calls: list[ToolCallPart]) -> list[ToolCallPart]:
        ordered = _in_order(calls, messages) if len(calls) > 1 else calls
        return [_copy_call(call, validated.get(call.tool_call_id)) for call in ordered]

    # `replace`, not a new object: a rebuild would lose the host's private record of which calls are questions.
    return replace(
        requests,
        calls=copied(requests.calls),
        approvals=copied(requests.approvals),
        metadata=cast('dict[str, dict[str, Any]]', copy_containers(requests.metadata)),
    )


_PLAIN = frozenset({str, int, float, bool, type(None)})
"""Types whose values are their own JSON form."""


class SnapshotArgs(dict[str, Any]):
    """The arguments of one call in JSON form, and `validated`, the values the tool would get."""

    validated: Mapping[str, Any]
    """By parameter name. These are the tool's own objects: do not change them."""


class ValidatedArgs:
    """The arguments of one call after validation, kept until a handler has to be shown them."""

    def __init__(self, call: ToolCallPart, args: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
        """Keep `args` (by parameter name, defaults filled in), the call, and the JSON schema of its tool."""
        self._call = call
        self._args = args
        self._schema = schema

    def as_json(self, call: ToolCallPart) -> SnapshotArgs | None:
        """The arguments in the shape the model gives them; `None` if they have no JSON form, or are of another call.

        They have every field of a model, also one that its own serialisation would leave out or alter; only secret
        types stay masked. Ids repeat, across responses and in tools that call others, so an id alone does not say
        whose they are.
        """
        if call is not self._call and call != self._call:
            return None
        shown = self._shown()
        if shown is None:
            return None
        args = SnapshotArgs(shown)
        args.validated = self._args
        return args

    def _shown(self) -> Mapping[str, Any] | None:
        if all(type(value) in _PLAIN for value in self._args.values()):  # most are, and what follows is slow
            return self._args
        try:
            args = to_jsonable_python(_with_all_fields(self._args), fallback=repr)
            given = self._call.args_as_dict()
        except (PydanticSerializationError, ValueError, RecursionError, AssertionError):
            return None
        if len(args) == 1:
            [(name, value)] = args.items()
            if isinstance(value, dict) and self._is_unpacked(name, cast('dict[str, Any]', value), given):
                return cast('dict[str, Any]', value)
        return args

    def _is_unpacked(self, name: str, fields: dict[str, Any], given: dict[str, Any]) -> bool:
        # The model calls a function whose only parameter is a model with that model's fields; after validation they
        # are under the parameter's name. A parameter that is a mapping looks much the same.
        if name in given:
            return name in fields and fields[name] == given[name]
        if name in self._schema.get('properties', {}) and isinstance(self._args[name], Mapping):
            return False
        return given.keys() <= fields.keys()


def _with_all_fields(value: Any) -> Any:
    # Attack: `Field(exclude=True)` or a serialiser keeps a command from the handler, which approves what it cannot see.
    if type(value) in _PLAIN:
        return value
    if isinstance(value, RootModel):
        return _with_all_fields(cast('RootModel[Any]', value).root)
    if isinstance(value, BaseModel):
        held = vars(value)
        own = {name: (field.serialization_alias or name) for name, field in type(value).model_fields.items()}
        items = [*((alias, held[name]) for name, alias in own.items() if name in held)]
        items += (value.model_extra or {}).items()
        if len(dict(items)) < len(items):
            raise ValueError('two fields have the same name in JSON, and one would hide the other')
        return {name: _with_all_fields(item) for name, item in items}
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _with_all_fields(getattr(value, each.name, None)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {key: _with_all_fields(item) for key, item in cast('Mapping[Any, Any]', value).items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_with_all_fields(item) for item in cast('list[Any]', value)]
    return value


def copy_containers(value: object) -> object:
    """Copy nested dictionaries, lists, tuples and sets; keep everything else as it is.

    Unlike `copy.deepcopy` this cannot fail on what a tool may put into metadata (locks, connections, clients).
    """
    match value:
        case dict():
            return {key: copy_containers(item) for key, item in cast('dict[object, object]', value).items()}
        case list():
            return [copy_containers(item) for item in cast('list[object]', value)]
        case tuple() if type(cast(object, value)) is tuple:
            return tuple(copy_containers(item) for item in cast('tuple[object, ...]', value))
        case set():
            return set(cast('set[object]', value))
        case _:
            return value


def _copy_call(call: ToolCallPart, validated: ValidatedArgs | None) -> ToolCallPart:
    args = validated.as_json(call) if validated is not None else None
    if args is None:
        args = cast('str | dict[str, Any] | None', copy_containers(call.args))
    details = cast('dict[str, Any] | None', copy_containers(call.provider_details))
    return replace(call, args=args, provider_details=details)


def _in_order(calls: list[ToolCallPart], messages: Sequence[ModelMessage]) -> list[ToolCallPart]:
    response = next((message for message in reversed(messages) if isinstance(message, ModelResponse)), None)
    made = response.tool_calls if response is not None else []
    positions = {call.tool_call_id: position for position, call in enumerate(made)}
    return sorted(calls, key=lambda call: positions.get(call.tool_call_id, len(positions)))
