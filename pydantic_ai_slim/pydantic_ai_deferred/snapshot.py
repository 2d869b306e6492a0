"""Copy the requests for a handler: calls in the model's order, with the arguments that the tools would get."""

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
    """Copy `requests`, so that a handler's changes to the copy do not change the calls that execute.

    Args:
        requests: The host's own objects, which are not changed.
        messages: The history of the run, ending with the response that made the calls.
        validated: The validated arguments by `tool_call_id`, for the calls that the host has validated.

    Returns:
        A copy with the same calls and metadata. Each list is in the order of the model's response. (The host's own
        lists begin with the calls whose tools raised an exception to defer them.) Validated arguments are a dictionary
        in JSON form, if they have one. Other arguments are what the model sent.
    """

    def copied(calls: list[ToolCallPart]) -> list[ToolCallPart]:
        ordered = _in_order(calls, messages) if len(calls) > 1 else calls
        return [_copy_call(call, validated.get(call.tool_call_id)) for call in ordered]

    # `replace`, because a new object would lose the host's private record of which calls are questions.
    return replace(
        requests,
        calls=copied(requests.calls),
        approvals=copied(requests.approvals),
        metadata=cast('dict[str, dict[str, Any]]', copy_containers(requests.metadata)),
    )


_PLAIN = frozenset({str, int, float, bool, type(None)})
"""Types whose values stay the same in JSON."""


class SnapshotArgs(dict[str, Any]):
    """Arguments of one call in JSON form. `validated` has the values that the tool would get."""

    validated: Mapping[str, Any]
    """Values passed to the tool, by parameter name. The values are the tool's own objects: do not change them."""


class ValidatedArgs:
    """Validated arguments of one call, kept until a handler is asked about the call."""

    def __init__(self, call: ToolCallPart, args: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
        """Keep the call, `args` (by parameter name, with defaults filled in) and the JSON schema of the tool."""
        self._call = call
        self._args = args
        self._schema = schema

    def as_json(self, call: ToolCallPart) -> SnapshotArgs | None:
        """Return the arguments as JSON values, or `None` if they have no JSON form or belong to another call.

        Every field of a pydantic model is included, even if its serialization omits or alters the field; only secret
        types stay masked. The whole call is compared, because a later response or a tool that calls other tools may
        repeat an id.
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
        if all(type(value) in _PLAIN for value in self._args.values()):  # the common case; the rest is slow
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
        # If a function's only parameter is a pydantic model, the call has the fields of that model, and validation puts
        # them under the parameter's name. A parameter that is a mapping looks almost the same.
        if name in given:
            return name in fields and fields[name] == given[name]
        if name in self._schema.get('properties', {}) and isinstance(self._args[name], Mapping):
            return False
        return given.keys() <= fields.keys()


def _with_all_fields(value: Any) -> Any:
    # Attack: `Field(exclude=True)` or a serializer hides a command from the handler, which then approves it unseen.
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
            raise ValueError('two fields have the same name in JSON')
        return {name: _with_all_fields(item) for name, item in items}
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _with_all_fields(getattr(value, each.name, None)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {key: _with_all_fields(item) for key, item in cast('Mapping[Any, Any]', value).items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_with_all_fields(item) for item in cast('list[Any]', value)]
    return value


def copy_containers(value: object) -> object:
    """Copy nested dictionaries, lists, tuples and sets, and keep all other objects.

    Unlike `copy.deepcopy`, this function cannot fail on objects in metadata, such as locks, connections and clients.
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
