"""Compare what a tool would get after an approver's edit with what the approver saw and changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, cast, get_origin

from pydantic import RootModel

from .arguments import HIDDEN, CallArguments, in_clear, leaves
from .canonical import canonical_json, whole_characters
from .errors import LONGEST_SHOWN, printable
from .fields import (
    NOTHING,
    Parameter,
    Part,
    Spot,
    by_json_key,
    is_array,
    is_mapping,
    is_object,
    named_parts,
    parts_of,
    place_in,
)

Path: TypeAlias = tuple[str | int, ...]


def unwanted_effect(
    changed: dict[str, Any], before: Spot, was: CallArguments, values: Mapping[str, Any], now: CallArguments
) -> str | None:
    """Return why an edit cannot be used, or `None` if exactly the leaves that the approver changed are changed.

    Args:
        changed: All arguments after the edit, as in `was.shown`.
        before: The arguments before the edit.
        was: The same arguments in JSON form.
        values: Values that the tool would get.
        now: The same values in JSON form.
    """
    problem = _other_leaf(was.shown, _masked(was.shown, changed), now.shown, before, ())
    if problem is None:
        # Arguments are shown with values that validation drops, and without secrets.
        held = in_clear(before.value)
        problem = _other_leaf(held, _wanted(held, was.shown, changed), in_clear(values), before, ())
        problem = None if problem is None else problem.partition(':')[0]  # without the value
    return problem or _other_type(dict(before.value), dict(values), was.shown, changed, ())


def is_same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are the same. The values `1`, `1.0` and `true` differ."""
    if one is NOTHING or other is NOTHING:
        return one is other
    return one == other and canonical_json(one) == canonical_json(other)


def _other_leaf(shown: Any, wanted: Any, now: Any, spot: Spot, path: Path) -> str | None:
    """Compare leaf by leaf: `shown` before the edit, `wanted` by the approver, and `now`, what the tool would get."""
    if is_object(shown) and is_object(wanted) and is_object(now) and not _is_secret(shown):
        for name in dict.fromkeys([*shown, *wanted, *now]):
            leaf = (*path, name)
            gets = now.get(name, NOTHING)
            if name in shown and name in wanted:
                problem = _other_leaf(shown[name], wanted[name], gets, spot.within(name), leaf)
            elif name in shown:
                is_left = gets is not NOTHING and not is_same(gets, _left(shown[name], spot, name))
                problem = f'the value of {dotted_path(leaf)} would not be removed' if is_left else None
            elif name in wanted:
                problem = None if _covers(wanted[name], gets) else _without_effect(leaf, gets)
            else:
                problem = f'the edit would also set {dotted_path(leaf)}'
            if problem is not None:
                return problem
        return None
    if is_array(shown) and is_array(wanted) and is_array(now) and len(shown) == len(wanted) == len(now):
        for index, each in enumerate(zip(shown, wanted, now, strict=True)):
            problem = _other_leaf(*each, spot.within(index), (*path, index))
            if problem is not None:
                return problem
        return None
    if is_same(shown, wanted):
        return None if is_same(wanted, now) else f'the edit would also change {dotted_path(path)}'
    return None if _covers(wanted, now) else _without_effect(path, now)


def _left(had: Any, spot: Spot, name: str) -> Any:
    """Return the value that a removed field may have: its default, or a value that was not given."""
    part = (spot.parts or {}).get(name)
    if part is None:
        return NOTHING
    if place_in(spot.given, part.parameter.places) is None:
        return had
    default = part.parameter.default
    return NOTHING if default is NOTHING else in_clear({name: default})[name]


def _covers(wanted: Any, now: Any) -> bool:
    """Return whether `now` is `wanted`. In parts that the approver wrote anew, defaults may have been added."""
    if is_object(wanted) and is_object(now):
        return all(_covers(item, now.get(name, NOTHING)) for name, item in wanted.items())
    if is_array(wanted) and is_array(now):
        return len(wanted) == len(now) and all(_covers(*each) for each in zip(wanted, now, strict=True))
    # An item that was not changed, of a list with items that were.
    return is_same(wanted, now) or (wanted == HIDDEN and _is_secret(now))


def _is_secret(held: Any) -> bool:
    return is_object(held) and list(held) == [HIDDEN]


def _masked(shown: Any, changed: Any) -> Any:
    """Return `changed` with every new secret hidden, as it will be shown."""
    return HIDDEN if shown == HIDDEN else _merged(_masked, shown, changed)


def _wanted(held: Any, shown: Any, changed: Any) -> Any:
    """Return `changed` with secrets in the form of `in_clear`, and without unchanged values that validation dropped."""
    if _is_secret(held):
        return held if changed == HIDDEN else {HIDDEN: changed}
    if is_object(held) and is_object(shown) and is_object(changed):
        changed = {
            name: item for name, item in changed.items() if name in held or not is_same(item, shown.get(name, NOTHING))
        }
    return _merged(_wanted, held, shown, changed)


def _merged(function: Callable[..., Any], *values: Any) -> Any:
    """Apply `function` to the parts that all values have. Other parts are those of the last value."""
    last = values[-1]
    if all(map(is_object, values)):
        return {
            name: function(*(value[name] for value in values)) if all(name in value for value in values) else item
            for name, item in last.items()
        }
    if all(map(is_array, values)) and len(set(map(len, values))) == 1:
        return [function(*each) for each in zip(*values, strict=True)]
    return last


def _other_type(before: Any, after: Any, shown: Any, changed: Any, path: Path) -> str | None:
    """Find a value that looks as wanted, but has another Python type than before, because a union is read anew."""
    if type(shown) is not type(changed):
        return None
    one, other = _children(before), _children(after)
    if type(before) is not type(after) and not _is_told_apart(one, other, shown, changed):
        return f'the value of {dotted_path(path)} would be read as another type'
    if is_array(shown) and len({len(shown), len(changed), len(one), len(other)}) == 1:
        names: Any = range(len(shown))
    else:
        names = [name for name in shown if name in changed] if is_object(shown) else []
    found = (
        _other_type(one[name].value, other[name].value, shown[name], changed[name], (*path, name))
        for name in names
        if name in one and name in other
    )
    return next((problem for problem in found if problem is not None), None)


def _children(value: Any) -> Mapping[Any, Part]:
    while isinstance(value, RootModel):
        value = cast('RootModel[Any]', value).root
    if is_mapping(value):
        return named_parts(by_json_key(value))
    if isinstance(value, list | tuple):
        items = cast('list[Any]', value)
        return {index: Part(item, Parameter(())) for index, item in enumerate(items)}
    return parts_of(value) or {}


def _is_told_apart(one: Mapping[Any, Part], other: Mapping[Any, Part], shown: Any, changed: Any) -> bool:
    """Return whether the approver changed the field by which validation chooses between two models of a union."""
    return is_object(shown) and any(
        name in other
        and get_origin(part.annotation) is get_origin(other[name].annotation) is Literal
        and changed.get(name) != shown.get(name)
        for name, part in one.items()
    )


def _without_effect(path: Path, now: Any) -> str:
    problem = f'the edit of {dotted_path(path)} does not take effect'
    if now is NOTHING or HIDDEN in leaves(now):
        return problem
    text = whole_characters(canonical_json(now))
    return f'{problem}: the tool would get {text[:LONGEST_SHOWN]}{"..." if len(text) > LONGEST_SHOWN else ""}'


def dotted_path(path: Path) -> str:
    """Format a path for people, for example as `spec.hosts.0`."""
    return '.'.join(printable(str(step)) for step in path)
