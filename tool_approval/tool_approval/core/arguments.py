"""Read the arguments of a call in JSON form, including values that the tool's own serialisers omit."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import is_dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias, cast

from pydantic import BaseModel, RootModel
from pydantic_core import PydanticSerializationError, ValidationError, to_jsonable_python

from .canonical import LEAVES, TEXT, canonical_json, copied
from .errors import NotCanonicalError
from .fields import Parameter, named_parts, renamed

HIDDEN: Final = '[hidden]'
"""Replaces values of secret types, such as pydantic's `SecretStr`, wherever arguments are shown or logged."""

ARGUMENTS: Final = 'tool_approval_arguments'
"""Key in a request's `bound_to` for the digest of `CallArguments.bound`."""

TYPES: Final = 'tool_approval_types'
"""Key in a request's `bound_to` for `CallArguments.types`."""

Reread: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Function that takes the arguments of an edit, and returns them as the tool gets them. It raises `ValueError`, with
the reason, if the tool cannot take the edit."""


class CallArguments(NamedTuple):
    """The arguments of one call."""

    shown: dict[str, Any]
    """Arguments as the approver, the policy and the log see them: the values that the tool receives, and the model's
    values that validation dropped. Secrets are `[hidden]`. If a call has secrets, dropped values are hidden too,
    because they may contain a secret in another form."""
    is_altered: bool
    """Whether the tool's own JSON form omits or alters a value that the model gave. Added defaults and plain type
    conversions are not treated as alterations."""
    bound: dict[str, Any]
    """For keyed digests only: the arguments that the model gave, as `given` (`None` if unknown), and the arguments that
    the tool receives, as `received`. Secrets are in clear text. `bound` is empty if `shown` has all these values."""
    fields: dict[str, Any] | None = None
    """Fields of the only argument, if that argument is a model or a dataclass; otherwise `None`. The form is the same
    as in `shown`. Hosts pass these fields to the tool's function."""
    used: dict[str, Any] | None = None
    """Part of `shown` that the tool receives; `None` if it receives all. Conditions compare no other values."""
    has_secrets: bool = False
    """Whether a value is of a secret type."""
    bound_text: str = ''
    """Canonical form of `bound`; empty if `bound` is empty."""
    types: Mapping[str, list[list[Any]]] = MappingProxyType({})
    """Types that the JSON form does not show, by argument, and by field if `fields` is not `None`. Each entry is a list
    of `[path, type]`, where the path leads to a value in the argument. Arguments of JSON types have no entry."""


def read_arguments(
    values: Mapping[str, Any],
    given: Mapping[str, Any] | None = None,
    *,
    parameters: Mapping[str, Parameter] | None = None,
) -> CallArguments:
    """Read the arguments of a call.

    Models and dataclasses are read attribute by attribute, so `Field(exclude=True)` and serialisers hide nothing.

    Args:
        values: Values passed to the tool, by parameter name.
        given: The model's arguments as JSON, in the form that the tool validates; `None` if unknown.
        parameters: How validation fills in each parameter. A parameter that is not listed is given under its own name.

    Raises:
        NotCanonicalError: A value has no canonical JSON form.
    """
    return _guarded(lambda: _read(values, given, parameters))


def _read(
    values: Mapping[str, Any], given: Mapping[str, Any] | None, parameters: Mapping[str, Parameter] | None
) -> CallArguments:
    secrets: list[Any] = []

    def note(secret: Any) -> Any:
        secrets.append(secret)
        return secret

    if _is_plain(values):
        opened, shown = values, copied(values)
        received = own = shown
    else:
        opened = _opened(values, note)
        shown = _jsonable(_opened(values, lambda _: HIDDEN) if secrets else opened)
        received = _jsonable(_opened(values, _revealed)) if secrets else shown
        own = _jsonable(dict(values))
    # Most frequent case: the tool receives exactly what the model gave.
    is_same = opened is values and (given is None or given == values)
    # An alias is another name for a value that is shown, and not a value that validation dropped.
    named = given if is_same or given is None else renamed(given, values, named_parts(values, parameters))
    is_altered = not is_same and (bool(secrets) or _is_altered(shown if named is None else named, opened, own))
    used = None
    if named is not None and is_altered:
        with_left_out = _with_left_out(shown, named, is_hidden=bool(secrets))
        used, shown = (shown, with_left_out) if with_left_out != shown else (None, shown)
    fields = None
    if not is_same and len(values) == 1 and not isinstance(next(iter(values.values())), Mapping):
        [only] = shown.values() if len(shown) == 1 else [None]
        fields = cast('dict[str, Any]', only) if isinstance(only, dict) else None
    bound = {} if given is None and not secrets else {'given': given, 'received': received}
    # Values without a canonical form are rejected here, before hashing.
    text = canonical_json(shown)
    if is_same and bound:
        bound_text = f'{{"given":{text},"received":{text}}}'
    else:
        bound_text = canonical_json(bound) if bound else ''
    return CallArguments(
        shown=shown,
        is_altered=is_altered,
        used=used,
        fields=fields,
        bound=bound,
        has_secrets=bool(secrets),
        bound_text=bound_text,
        types={} if opened is values or secrets else _types(values, fields),
    )


def as_read(override_args: Mapping[str, Any] | None, reread: Reread | None) -> Mapping[str, Any] | None:
    """Return the arguments of an edit as the tool gets them; `None` if there are none, or the tool cannot take them."""
    if override_args is None or reread is None:
        return None
    try:
        return reread(override_args)
    except ValueError:
        return None


def as_json(values: Mapping[str, Any], *, in_clear: bool = False) -> dict[str, Any]:
    """Return arguments as JSON values: dates as text, models as objects with all fields, secrets as `[hidden]`.

    Args:
        values: Argument values by parameter name.
        in_clear: Whether to return secrets in clear text, in the form in which a model gives them.

    Returns:
        A deep copy.

    Raises:
        NotCanonicalError: A value has no canonical JSON form.
    """
    made = _guarded(lambda: _jsonable(_opened(values, _in_clear if in_clear else lambda _: HIDDEN)))
    canonical_json(made)
    return made


def in_clear(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values as JSON, with `{'[hidden]': text}` for each secret. Compare the result; do not show or log it.

    Raises:
        NotCanonicalError: A value has no canonical JSON form.
    """
    return _guarded(lambda: _jsonable(_opened(values, _told)))


def materialised(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with lists in place of iterators, which can be read only once.

    Raises:
        NotCanonicalError: An iterator fails.
    """
    return {
        name: _listed(cast('Iterator[Any]', value))
        if type(value) not in LEAVES and isinstance(value, Iterator)
        else value
        for name, value in values.items()
    }


def restored(changed: Any, shown: Any, given: Any) -> Any:
    """Restore the model's values in place of `[hidden]`, in arguments that an approver edited.

    Args:
        changed: Arguments after the edit.
        shown: Arguments before the edit; see `CallArguments.shown`.
        given: Arguments from the model.

    Raises:
        ValueError: The edit moved a hidden value to another place.
    """
    if changed == HIDDEN and shown == HIDDEN and given is not None:
        return given
    if isinstance(changed, Mapping) and isinstance(shown, Mapping) and isinstance(given, Mapping):
        there, had = cast('Mapping[str, Any]', shown), cast('Mapping[str, Any]', given)
        items = cast('Mapping[str, Any]', changed).items()
        return {name: restored(value, there.get(name), had.get(name)) for name, value in items}
    if isinstance(changed, list) and isinstance(shown, list) and isinstance(given, list):
        parts = cast('list[list[Any]]', [changed, shown, given])
        if len(set(map(len, parts))) == 1:
            return [restored(*each) for each in zip(*parts, strict=True)]
    if HIDDEN in leaves(changed):
        raise ValueError('the edit moved a hidden value to another place')
    return cast(Any, changed)


def _is_plain(value: object) -> bool:
    """Return whether a value consists only of JSON types, so that it needs no conversion."""
    kind = type(value)
    items: Any = value
    if kind is dict:
        if not TEXT.issuperset(map(type, items)):
            return False
        items = items.values()
    elif kind is not list:
        return kind in LEAVES
    return LEAVES.issuperset(map(type, items)) or all(map(_is_plain, items))


def _opened(value: Any, secret: Callable[[Any], Any]) -> Any:
    """Turn models and dataclasses into dictionaries of their fields, and collections into lists."""
    if type(value) in LEAVES:
        return value
    if _is_secret(value):
        return secret(value)
    if isinstance(value, Enum):
        return _opened(value.value, secret)
    if isinstance(value, RootModel):
        return _opened(cast('RootModel[Any]', value).root, secret)
    attributes = fields_of(value)
    if attributes is not None:
        return {name: _opened(item, secret) for name, item in attributes.items()}
    if isinstance(value, Mapping):
        return _opened_mapping(cast('Mapping[Any, Any]', value), secret)
    if isinstance(value, AbstractSet):
        # A sorted tuple marks a set, whose order differs between processes and does not come from the model.
        return tuple(sorted((_opened(item, secret) for item in cast('AbstractSet[Any]', value)), key=repr))
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview):
        items = cast('Sequence[Any]', value)
        return [item if type(item) in LEAVES else _opened(item, secret) for item in items]
    if isinstance(value, Iterator):
        raise NotCanonicalError('a value contains an iterator, which can be read only once')
    return cast(Any, value)


def _opened_mapping(value: Mapping[Any, Any], secret: Callable[[Any], Any]) -> dict[str, Any]:
    # Attack: a secret used as a key is shown in clear text, or bound by its mask.
    if any(type(key) is not str and _is_secret(key) for key in value):
        raise NotCanonicalError('a secret is used as a key')
    # Attack: `1` and `"1"` have the same JSON form, and one would hide the other.
    names = [key if isinstance(key, str) else next(iter(_jsonable({key: None}))) for key in value]
    if len(set(names)) < len(names):
        raise NotCanonicalError('two keys have the same JSON form')
    return {name: _opened(item, secret) for name, item in zip(names, value.values(), strict=True)}


def fields_of(value: Any) -> dict[str, Any] | None:
    """Return the fields of a model or dataclass by their JSON names; `None` for other values.

    Raises:
        NotCanonicalError: Two fields have the same name.
    """
    if isinstance(value, BaseModel):
        held = vars(value)
        named = type(value).model_fields.items()
        own = [(field.serialization_alias or name, held[name]) for name, field in named if name in held]
        items = [*own, *(value.model_extra or {}).items()]
        fields = dict(items)
        # Attack: a harmless field hides another with the same `serialization_alias`.
        if len(fields) < len(items):
            raise NotCanonicalError('two fields have the same name in JSON')
        return fields
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value) if hasattr(value, each.name)}
    return None


def _types(values: Mapping[str, Any], fields: Mapping[str, Any] | None) -> dict[str, list[list[Any]]]:
    inner = (fields_of(next(iter(values.values()))) if fields is not None else None) or {}
    found = {name: list(_hidden_types(value, [])) for name, value in {**inner, **values}.items()}
    return {name: types for name, types in found.items() if types}


def _hidden_types(value: Any, path: list[Any]) -> Iterator[list[Any]]:
    if type(value) in LEAVES:
        return
    if type(value) not in (dict, list):
        yield [path, f'{type(value).__module__}.{type(value).__qualname__}']
    fields = fields_of(value)
    if isinstance(value, RootModel):
        yield from _hidden_types(cast('RootModel[Any]', value).root, [*path, ''])
    elif isinstance(value, Mapping) or fields is not None:
        items = cast('Mapping[Any, Any]', value if fields is None else fields)
        for name, item in items.items():
            yield from _hidden_types(item, [*path, str(name)])
    elif isinstance(value, AbstractSet):
        members = cast('AbstractSet[Any]', value)
        yield [path, sorted({f'{type(each).__module__}.{type(each).__qualname__}' for each in members})]
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview):
        for number, item in enumerate(cast('Sequence[Any]', value)):
            yield from _hidden_types(item, [*path, number])


def _is_secret(value: Any) -> bool:
    return callable(getattr(value, 'get_secret_value', None)) and not isinstance(value, type)


def _in_clear(secret: Any) -> Any:
    value = secret.get_secret_value()
    return value.hex() if isinstance(value, bytes) else _opened(value, _in_clear)


def _revealed(secret: Any) -> Any:
    value = secret.get_secret_value()
    return {HIDDEN: value.hex() if isinstance(value, bytes) else _opened(value, _revealed)}


def _told(secret: Any) -> Any:
    value = secret.get_secret_value()
    return {HIDDEN: value.decode(errors='backslashreplace') if isinstance(value, bytes) else _opened(value, _told)}


def _is_altered(given: Any, value: Any, own: Any) -> bool:
    """Return whether `own`, the tool's JSON form of `value`, omits or alters part of `given`.

    `value` contains Python objects, so that type conversions can be distinguished from alterations.
    """
    if isinstance(given, Mapping):
        if not isinstance(value, Mapping) or not isinstance(own, Mapping):
            return True
        parts, own_parts = cast('Mapping[str, Any]', value), cast('Mapping[str, Any]', own)
        return any(
            name not in parts or name not in own_parts or _is_altered(item, parts[name], own_parts[name])
            for name, item in cast('Mapping[str, Any]', given).items()
        )
    if isinstance(value, tuple):
        forms = [given, _jsonable(value), own]
        return (
            not all(isinstance(form, list) for form in forms) or len({frozenset(map(repr, form)) for form in forms}) > 1
        )
    if isinstance(given, list):
        if not isinstance(value, list) or not isinstance(own, list):
            return True
        items = cast('list[list[Any]]', [given, value, own])
        return len(set(map(len, items))) > 1 or any(
            # Most frequent case first, because the recursive calls are slow.
            not (type(part) in LEAVES and item == part == form) and _is_altered(item, part, form)
            for item, part, form in zip(*items, strict=True)
        )
    if isinstance(value, dict | list) or (value if type(value) in LEAVES else _jsonable(value)) != own:
        return True
    is_same_type = isinstance(value, str) and isinstance(given, str)
    are_numbers = isinstance(value, int | float) and isinstance(given, int | float)
    return (is_same_type or are_numbers) and value != given


def _with_left_out(shown: Any, given: Any, *, is_hidden: bool) -> Any:
    """Return `shown` together with the parts that only `given` has."""
    if isinstance(shown, dict) and isinstance(given, Mapping):
        visible = cast('dict[str, Any]', shown)
        had = cast('Mapping[str, Any]', given)
        own = {name: _with_left_out(item, had.get(name), is_hidden=is_hidden) for name, item in visible.items()}
        # Attack: the model gives a secret under a name or in a form that differs from the tool's
        # (test_what_validation_left_out_beside_a_secret_may_be_that_secret).
        return {**own, **{name: HIDDEN if is_hidden else copied(had[name]) for name in had if name not in visible}}
    if isinstance(shown, list) and isinstance(given, list):
        items, others = cast('list[Any]', shown), cast('list[Any]', given)
        if len(items) == len(others):
            return [_with_left_out(*each, is_hidden=is_hidden) for each in zip(items, others, strict=True)]
    return cast(Any, shown)


def leaves(value: Any) -> Iterator[Any]:
    """Yield all values in mappings and lists, at any depth."""
    if isinstance(value, Mapping):
        value = list(cast('Mapping[str, Any]', value).values())
    if isinstance(value, list):
        for item in cast('list[Any]', value):
            yield from leaves(item)
    else:
        yield value


def _listed(value: Iterator[Any]) -> list[Any]:
    try:
        return list(value)
    except ValidationError:  # pydantic validates the items of an `Iterable` as they are read
        raise NotCanonicalError('an item does not match the type that the tool declares') from None
    except Exception as error:  # noqa: BLE001 - an iterator of the tool's own may fail in any way
        raise NotCanonicalError(f'an iterator raised {type(error).__name__}') from None


def _jsonable(value: Any) -> Any:
    return to_jsonable_python(value, inf_nan_mode='constants')


def _guarded(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (PydanticSerializationError, UnicodeDecodeError):
        raise NotCanonicalError('a value cannot be represented in JSON') from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, NotCanonicalError):
            raise
        raise NotCanonicalError('a value is nested too deeply, or contains itself') from None
