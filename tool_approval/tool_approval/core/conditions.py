"""Compare the values of a call's arguments with the conditions of a rule."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from fnmatch import translate
from typing import Annotated, Any, Final, Self, TypeAlias, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from .arguments import HIDDEN
from .bounds import as_number

_MISSING: Final = object()


def _number(value: object) -> object:
    if as_number(value) is None:
        raise ValueError('not a number')
    return value


def _scalar(value: object) -> object:
    if value is not None and not isinstance(value, str | bool) and as_number(value) is None:
        raise ValueError('not a string, a number, true, false or null')
    return value


def _scalars(values: object) -> object:
    if not isinstance(values, list | tuple) or not values:
        raise ValueError('not a list of values')
    return tuple(map(_scalar, cast('list[object]', values)))


_Number: TypeAlias = Annotated[Any, AfterValidator(_number)]


class Condition(BaseModel):
    """A condition on one argument. Every key that is given must hold."""

    model_config = ConfigDict(frozen=True, extra='forbid', strict=True, validate_by_name=False)

    below: _Number = None
    """The value is a number less than this one."""
    at_most: _Number = None
    """The value is a number less than or equal to this one."""
    above: _Number = None
    """The value is a number greater than this one."""
    at_least: _Number = None
    """The value is a number greater than or equal to this one."""
    equal: Annotated[Any, AfterValidator(_scalar)] = Field(default=None, alias='is')
    """The value is this string, number, truth value or null."""
    one_of: Annotated[Any, AfterValidator(_scalars)] = Field(default=None, alias='in')
    """The value is one of these."""
    matches: str | None = None
    """The value is a string that this glob matches. Upper and lower case differ."""
    present: bool | None = None
    """Whether the argument is given, and is not null."""

    @model_validator(mode='after')
    def _says_something(self) -> Self:
        given = self.model_fields_set
        if not given or any(getattr(self, name) is None for name in given - {'equal'}):
            raise ValueError('a condition needs a key with a value, such as `below: 50`')
        if self.present is False and len(given) > 1:
            raise ValueError('an argument that is not present has no value to compare')
        return self

    def holds(self, value: object) -> bool | None:
        """Return whether the condition holds for a value, or `None` if the value cannot be compared."""
        if self.present is not None and self.present is (value is _MISSING or value is None):
            return False
        said = [self._compared(name, value) for name in self.model_fields_set if name != 'present']
        return None if None in said else False not in said

    def _compared(self, name: str, value: object) -> bool | None:
        if value is _MISSING or value == HIDDEN:
            return None
        match name:
            case 'equal':
                return _is_equal(value, self.equal)
            case 'one_of':
                said = [_is_equal(value, each) for each in self.one_of]
                return True if True in said else None if None in said else False
            case 'matches':
                return re.match(translate(str(self.matches)), value) is not None if isinstance(value, str) else None
            case _:
                return _is_ordered(name, as_number(value), as_number(getattr(self, name)))


def _is_ordered(name: str, number: Decimal | None, bound: Decimal | None) -> bool | None:
    if number is None or bound is None:
        return None
    return {
        'below': number < bound,
        'at_most': number <= bound,
        'above': number > bound,
        'at_least': number >= bound,
    }[name]


def _is_equal(value: object, expected: object) -> bool | None:
    if value is None or expected is None:
        return value is expected
    number, bound = as_number(value), as_number(expected)
    if number is not None and bound is not None:
        return number == bound
    # Attack: `'600'` is neither equal to 600 nor different from it (test_conditions.py).
    return value == expected if type(value) is type(expected) else None


def received(args: Mapping[str, Any], used: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return the part of a call's arguments that the tool receives.

    Attack: the model adds a field that validation drops, and that a condition compares (test_conditions.py).

    Args:
        args: Arguments as the approver sees them.
        used: Arguments of the same form that the tool receives, which say what is dropped; `None` if nothing is.
    """
    return args if used is None else _within(args, used)


def _within(value: Any, used: object) -> Any:
    if isinstance(value, Mapping) and isinstance(used, Mapping):
        known = cast('Mapping[str, object]', used)
        items = cast('Mapping[str, object]', value).items()
        return {name: _within(item, known[name]) for name, item in items if name in known}
    if isinstance(value, list) and isinstance(used, list):
        pairs = zip(cast('list[object]', value), cast('list[object]', used), strict=False)
        return [_within(*pair) for pair in pairs]
    return cast(Any, value)


def hold(conditions: Mapping[str, Condition], args: Mapping[str, Any]) -> tuple[bool, str | None]:
    """Return whether all conditions hold.

    Args:
        conditions: Conditions by argument. `transfer.amount` is the value `amount` in the argument `transfer`.
        args: Values of the call's arguments, in JSON form.

    Returns:
        Whether all hold; and the name of an argument whose value is missing or cannot be compared, or `None`.
    """
    said = {name: condition.holds(_value(args, name)) for name, condition in conditions.items()}
    unknown = next((name for name, holds in said.items() if holds is None), None)
    return unknown is None and all(said.values()), unknown


def _value(args: Mapping[str, Any], name: str) -> object:
    # Attack: the model adds an argument whose name has a dot (test_conditions.py). So no name with a dot is looked up.
    found: object = args
    for part in name.split('.'):
        if not isinstance(found, Mapping):
            return _MISSING
        found = cast('Mapping[str, object]', found).get(part, _MISSING)
    return found
