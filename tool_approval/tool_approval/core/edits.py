"""Apply an approver's edit leaf by leaf, so that exactly the edited leaves change in what runs.

Validation need not accept the form that is shown, and may change it again: names are those of fields, and values are
converted. An edit therefore replaces single leaves of the arguments that the model gave. The tool validates the result,
which is compared with the edit. An edit that does not take effect, or that has another effect, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

from .arguments import HIDDEN, CallArguments, leaves
from .canonical import canonical_json, copied
from .edit_effects import dotted_path, is_same, unwanted_effect
from .fields import NOTHING, Parameter, Place, Spot, is_aligned, is_array, is_mapping, is_object, named_parts, taken

Path: TypeAlias = tuple[str | int, ...]
"""Names and list positions that lead to a value in the arguments as they are shown."""

_MOST_ATTEMPTS: Final = 32
"""Maximum number of times that one edit is validated. More than one is needed only where the place is uncertain."""


class Reading(NamedTuple):
    """Arguments after the tool's own validation."""

    values: Mapping[str, Any]
    """Values that the tool receives, by parameter name."""
    arguments: CallArguments
    """The same values in JSON form, read together with the arguments that were given."""


def edited(
    changed: Mapping[str, Any],
    given: Mapping[str, Any],
    before: Reading,
    validate: Callable[[dict[str, Any]], Reading],
    *,
    parameters: Mapping[str, Parameter] | None = None,
) -> dict[str, Any]:
    """Return the arguments that a tool must be given so that it receives an approver's edit.

    Only the leaves that the approver changed are replaced. All other leaves keep the form that the model gave, so that
    a validator is not applied to its own result, and a hidden value stays what it is.

    Args:
        changed: All arguments after the edit, in the form of `before.arguments.shown`. A missing leaf is removed, so
            that its default applies. `[hidden]` stands for the hidden value in the same place.
        given: Arguments from the model, in the form that the tool validates. They are not modified.
        before: Result of the validation of `given`.
        validate: The tool's own validation. Raises `ValueError`, with the reason, if the arguments do not fit.
        parameters: How validation fills in each parameter of the tool. A parameter that is not listed is given under
            its own name.

    Returns:
        Arguments in the form of `given`, for which `validate` returns exactly the edited values.

    Raises:
        ValueError: The edit does not fit the tool, does not take effect, or would change something else. The message
            names the reason, and contains no hidden value.
    """
    wanted: dict[str, Any] = copied(changed)
    spot = Spot(given, before.values, before.arguments.shown, named_parts(before.values, parameters))
    changes = list(_changes(spot.shown, wanted))
    if not changes:
        return dict(given)
    problem: ValueError | None = None
    for attempt in islice(_attempts(spot, changes), _MOST_ATTEMPTS):
        try:
            after = validate(attempt)
        except Exception as error:  # noqa: BLE001 - a validator of the tool may raise anything
            named = ValueError(f'the validation of the arguments failed with {type(error).__name__}')
            problem = problem or (error if isinstance(error, ValueError) else named)
            continue
        effect = unwanted_effect(wanted, spot, before.arguments, after.values, after.arguments)
        if effect is None:
            return attempt
        problem = problem or ValueError(effect)
    raise problem or ValueError(f'the value of {dotted_path(changes[0][0])} cannot be edited')


def _changes(shown: Any, changed: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the path and the new value of each leaf that the approver changed; `NOTHING` if the leaf was removed."""
    if is_object(shown) and is_object(changed):
        for name in dict.fromkeys([*shown, *changed]):
            yield from _changes(shown.get(name, NOTHING), changed.get(name, NOTHING), (*path, name))
    elif is_array(shown) and is_array(changed) and len(shown) == len(changed):
        for index, each in enumerate(zip(shown, changed, strict=True)):
            yield from _changes(*each, (*path, index))
    elif not is_same(shown, changed):
        yield path, changed


def _attempts(spot: Spot, changes: Sequence[tuple[Path, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the given arguments with all changes, for each place where validation may look for the changed values."""
    if not changes:
        yield dict(spot.given)
        return
    [(path, new), *others] = changes
    for attempt in _put(spot, path, new):
        yield from _attempts(spot._replace(given=attempt), others)


def _put(spot: Spot, path: Path, new: Any) -> Iterator[Any]:
    """Yield copies of `spot.given` in which the value that is shown at `path` is `new`."""
    if not path:
        yield _spliced(spot.given, spot.shown, new)
    elif is_mapping(spot.given) or (
        is_array(spot.given) and isinstance(path[0], int) and is_aligned(spot.given, spot.value)
    ):
        for place in spot.places(path[0]):
            for inner in _put(spot.within(path[0], place), path[1:], new):
                with suppress(LookupError):
                    yield _set(spot.given, place, inner)
    else:
        # The model gave the part in another form, such as a text or a set in another order, or did not give it.
        whole = _set(spot.shown, path, new)
        if HIDDEN not in leaves(whole):
            named = _as_given(whole, spot._replace(given=NOTHING))
            yield named
            if isinstance(spot.given, str):
                yield canonical_json(named)


def _spliced(given: Any, shown: Any, new: Any) -> Any:
    """Return `new`. Of a list, the items before and after the changed items stay as they were given.

    Raises:
        ValueError: A hidden value was moved to another place.
    """
    before, after, middle = [], [], new
    if is_array(new) and is_array(shown) and is_array(given) and len(shown) == len(given):
        shorter, begin, end = min(len(new), len(shown)), 0, 0
        while begin < shorter and is_same(new[begin], shown[begin]):
            begin += 1
        while end < shorter - begin and is_same(new[-1 - end], shown[-1 - end]):
            end += 1
        before, after, middle = given[:begin], given[len(given) - end :], new[begin : len(new) - end]
    if HIDDEN in leaves(middle):
        raise ValueError('the edit moved a hidden value to another place')
    return [*before, *middle, *after] if is_array(middle) else middle


def _set(node: Any, place: Place, new: Any) -> Any:
    """Return a copy of `node` with `new` at `place`, or without this place if `new` is `NOTHING`.

    Raises:
        LookupError: There is no such place, and it cannot be made.
    """
    if not place:
        return new
    step, rest = place[0], place[1:]
    if node is NOTHING:
        node = [] if isinstance(step, int) else {}
    inner = _set(taken(node, (step,)), rest, new)
    if is_mapping(node):
        items: dict[Any, Any] = {**node, step: inner}
        return {name: item for name, item in items.items() if item is not NOTHING}
    if is_array(node) and isinstance(step, int) and -len(node) <= step <= len(node):
        return [*node[:step], *([] if inner is NOTHING else [inner]), *node[step:][1:]]
    raise LookupError


def _as_given(shown: Any, spot: Spot) -> Any:
    """Return a part with each field in the first place where validation looks for it."""
    if is_array(shown):
        return [_as_given(item, spot.within(index)) for index, item in enumerate(shown)]
    if not is_object(shown):
        return shown
    named: Any = {}
    for name, item in shown.items():
        with suppress(LookupError):
            named = _set(named, spot.places(name)[0], _as_given(item, spot.within(name)))
    return named
