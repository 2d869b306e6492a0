"""Find where validation reads the value of each field, which aliases decide.

A value is shown under the name of its field. A model may give it under an alias, or inside another argument.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, TypeGuard, cast

from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, RootModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python

Place: TypeAlias = tuple[str | int, ...]
"""Keys and list positions that lead from the given arguments to a value. Usually a single key."""

NOTHING: Final = PydanticUndefined
"""Stands for a missing value, because `None` is a value."""


def is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    """Return whether a value is a mapping."""
    return isinstance(value, Mapping)


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether a JSON value is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Return whether a JSON value is an array."""
    return isinstance(value, list)


class Parameter(NamedTuple):
    """How validation fills in one field or parameter."""

    places: Sequence[Place]
    """Places in which validation looks for the value. The first place that exists wins."""
    default: Any = NOTHING
    """Value if no place exists; `NOTHING` if the field is required, or if its default is made anew each time."""


def parameters_of(fields: Mapping[str, FieldInfo], config: ConfigDict | None = None) -> dict[str, Parameter]:
    """Return how pydantic fills in each field of a model, or each parameter of a function.

    Args:
        fields: pydantic's description of each field, such as `model_fields`.
        config: Configuration of the model.
    """
    return {name: _parameter(name, field, config or {}) for name, field in fields.items()}


def _parameter(name: str, field: FieldInfo, config: ConfigDict) -> Parameter:
    return Parameter(tuple(_places(name, field, config)), field.default)


def _places(name: str, field: FieldInfo, config: ConfigDict) -> Iterator[Place]:
    # In the order in which pydantic looks; source: https://docs.pydantic.dev/latest/concepts/alias/
    alias = field.validation_alias or field.alias
    if alias is None or config.get('validate_by_alias') is False:
        yield (name,)
        return
    for choice in alias.choices if isinstance(alias, AliasChoices) else [alias]:
        yield tuple(choice.path) if isinstance(choice, AliasPath) else (choice,)
    if config.get('populate_by_name') or config.get('validate_by_name'):
        yield (name,)


class Part(NamedTuple):
    """A field of a value, or an item of a collection."""

    value: Any
    """Value of the field."""
    parameter: Parameter
    """How validation filled in the field."""
    annotation: Any = None
    """Declared type of the field, if known."""


def parts_of(value: Any) -> dict[str, Part] | None:
    """Return the fields of a model or dataclass by the names under which they are shown; `None` for other values."""
    if isinstance(value, BaseModel):
        held, config = vars(value), type(value).model_config
        parts = {
            field.serialization_alias or name: Part(held[name], _parameter(name, field, config), field.annotation)
            for name, field in type(value).model_fields.items()
            if name in held
        }
        return parts | named_parts(value.model_extra or {})
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = cast('dict[str, FieldInfo]', getattr(value, '__pydantic_fields__', {}))
        parameters = parameters_of(fields, getattr(value, '__pydantic_config__', None))
        held = {each.name: getattr(value, each.name) for each in dataclasses.fields(value) if hasattr(value, each.name)}
        parts = named_parts(held, parameters)
        return {
            name: part._replace(annotation=fields[name].annotation) if name in fields else part
            for name, part in parts.items()
        }
    return None


def named_parts(values: Mapping[str, Any], parameters: Mapping[str, Parameter] | None = None) -> dict[str, Part]:
    """Return named values as parts. A value whose name is not in `parameters` is given under its own name."""
    known = parameters or {}
    return {name: Part(item, known.get(name) or Parameter(((name,),))) for name, item in values.items()}


def place_in(given: Any, places: Iterable[Place]) -> Place | None:
    """Return the first of the places that exists in `given`, or `None`."""
    return next((place for place in places if taken(given, place) is not NOTHING), None)


def taken(given: Any, place: Place) -> Any:
    """Return the value at a place in `given`, or `NOTHING`."""
    for step in place:
        if is_mapping(given):
            given = given.get(step, NOTHING)
        elif is_array(given) and isinstance(step, int) and -len(given) <= step < len(given):
            given = given[step]
        else:
            return NOTHING
    return given


def renamed(given: Any, value: Any, parts: Mapping[str, Part] | None = None) -> Any:
    """Return `given` with every field under the name under which `value` is shown.

    Args:
        given: The arguments that the model gave, or a part of them.
        value: Result of the validation of `given`.
        parts: The fields of `value`; if `None`, they are read from `value`.

    Returns:
        A new value. Parts of `given` that validation did not read keep their names. If such a part has the name of a
        field, the text ` (not used)` is added to its name.
    """
    if isinstance(value, RootModel):
        return renamed(given, cast('RootModel[Any]', value).root)
    parts = parts_of(value) if parts is None else parts
    if is_mapping(given):
        if parts is not None:
            return _renamed_parts(given, parts)
        if is_mapping(value):
            by_key = by_json_key(value)
            return {key: renamed(item, by_key.get(key)) for key, item in given.items()}
    if is_array(given) and is_aligned(given, value):
        return [renamed(*each) for each in zip(given, cast('Sequence[Any]', value), strict=True)]
    return given


def _renamed_parts(given: Mapping[str, Any], parts: Mapping[str, Part]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    read: list[Place] = []
    for name, part in parts.items():
        place = place_in(given, part.parameter.places)
        if place is not None:
            found[name] = renamed(taken(given, place), part.value)
            read.append(place)
    unread: dict[str, Any] = _without(given, read)
    return found | {f'{name} (not used)' if name in parts else name: item for name, item in unread.items()}


def _without(given: Any, places: Sequence[Place]) -> Any:
    kept: dict[Any, Any] = {}
    for key, item in enumerate(given) if is_array(given) else given.items():
        keys = (key, key - len(given)) if is_array(given) else (key,)
        inside = [place[1:] for place in places if place[0] in keys]
        rest = item
        if inside:
            rest = NOTHING if () in inside else _without(item, inside) or NOTHING
        if rest is not NOTHING:
            kept[key] = rest
    return list(kept.values()) if is_array(given) else kept


def is_aligned(given: Sequence[Any], value: object) -> bool:
    """Return whether a value has an item for each of the given items, in the same order. A set has no order."""
    return isinstance(value, list | tuple) and len(cast('Sequence[Any]', value)) == len(given)


def by_json_key(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a mapping with its keys in the form that they have in JSON."""
    return {
        key if isinstance(key, str) else next(iter(to_jsonable_python({key: None}))): item
        for key, item in value.items()
    }


class Spot(NamedTuple):
    """A part of the arguments of a call, in the three forms in which it is known."""

    given: Any
    """The part as the model gave it; `NOTHING` if it gave none."""
    value: Any
    """The part as the tool received it."""
    shown: Any
    """The part as it was shown."""
    parts: Mapping[str, Part] | None
    """Fields of `value`; `None` if it has none."""

    def places(self, step: str | int) -> Sequence[Place]:
        """Return the places where validation looks for a field: the one that it read, or else all of them."""
        part = None if self.parts is None else self.parts.get(cast(str, step))
        if part is None:
            return ((step,),)
        place = place_in(self.given, part.parameter.places)
        return part.parameter.places if place is None else (place,)

    def within(self, step: str | int, place: Place | None = None) -> Spot:
        """Return the part that is shown under a name or at a position.

        Args:
            step: The name or position.
            place: Where the part is given. The default is the first place where validation looks.
        """
        place = self.places(step)[0] if place is None else place
        held = self.value
        if self.parts is not None:
            part = self.parts.get(cast(str, step))
            value = None if part is None else part.value
        elif is_mapping(held):
            value = by_json_key(held).get(cast(str, step))
        else:
            value = taken(list(cast(Any, held)) if isinstance(held, tuple) else held, (step,))
        while isinstance(value, RootModel):
            value = cast('RootModel[Any]', value).root
        return Spot(taken(self.given, place), value, taken(self.shown, (step,)), parts_of(value))
