"""Let a remembered approval end: after a time, a number of calls, or when the amounts of the calls reach a total."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation, Overflow
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    field_validator,
    model_validator,
)

_UNITS: Final = {'s': 'seconds', 'm': 'minutes', 'h': 'hours', 'd': 'days'}
_DURATION: Final = re.compile(r'([0-9]{1,9})([smhd])')
_DECIMAL: Final = re.compile(r'[0-9]{1,100}(?:\.[0-9]{1,100})?')
_LONGEST: Final = timedelta(days=3650)
"""Longest duration. Chosen: an approval for more than ten years is one without an end."""

_SMALLEST, _LARGEST = Decimal('1e-30'), Decimal('1e30')
"""Limits of a total. Chosen: amounts of any currency are far within, and a label shows all digits."""

_EXACTLY: Final = Context(prec=2000, traps=[Inexact, InvalidOperation, Overflow])
"""More digits than the sum of all floating-point numbers has. A result that would be rounded raises `Inexact`."""


def as_number(value: object) -> Decimal | None:
    """Return the exact number that a JSON value is written as, or `None` if it is not a finite number."""
    if isinstance(value, float):
        return Decimal(repr(value)) if math.isfinite(value) else None
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else None


def amount_of(value: object) -> Decimal | None:
    """Return a number of zero or more, or `None` for any other value, which no total can count."""
    # Attack: a negative amount, or `'600'`, would make room for others (test_bounds.py).
    number = as_number(value)
    return number if number is not None and number >= 0 else None


def _read_duration(value: object, also: str = '') -> timedelta:
    match value:
        case timedelta():
            duration = value
        case str() if (found := _DURATION.fullmatch(value)) is not None:
            duration = timedelta(**{_UNITS[found[2]]: int(found[1])})
        case _:
            raise ValueError(f'not a duration such as `30m`, `8h` or `2d`{also}')
    if not timedelta() < duration <= _LONGEST:
        raise ValueError('the duration must be more than zero, and at most ten years')
    return duration


def _read_expiry(value: object) -> object:
    return value if value == 'tomorrow' else _read_duration(value, ', and not `tomorrow`')


def _written_expiry(value: object) -> object:
    return f'{math.ceil(value.total_seconds())}s' if isinstance(value, timedelta) else value


Duration = Annotated[
    timedelta, PlainValidator(lambda value: _read_duration(value)), PlainSerializer(_written_expiry, when_used='json')
]
"""A duration. Written as `45s`, `30m`, `8h` or `2d`; at most ten years."""

Expiry = Annotated[
    timedelta | Literal['tomorrow'], PlainValidator(_read_expiry), PlainSerializer(_written_expiry, when_used='json')
]
"""A duration, or the next midnight in UTC. Written as `30m`, `8h`, `2d` or `tomorrow`."""


def _read_amount(value: object) -> Decimal:
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = Decimal(value)
    number = value if isinstance(value, Decimal) and value.is_finite() else as_number(value)
    if number is None:
        raise ValueError('not a number')
    if number <= 0:
        raise ValueError('the total must be more than zero')
    if not _SMALLEST <= number <= _LARGEST:
        raise ValueError('the total is too large or too small')
    return Decimal(f'{number:f}')


_Amount: TypeAlias = Annotated[Any, BeforeValidator(_read_amount)]
"""A `Decimal`, which any exact number may be given as."""


class Bounds(BaseModel):
    """When a remembered approval ends. The first bound that is reached ends it."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    expires: Expiry | None = None
    """Time after the approver's answer."""
    uses: int | None = None
    """Number of calls. The call that the approver was asked about is the first."""
    total: Mapping[str, _Amount] = Field(default_factory=dict[str, Any])
    """By argument, the sum that the argument may reach in all calls. The call that the approver was asked about counts.
    A call whose value is not a number of zero or more needs a new approval."""

    @field_validator('uses', mode='before')
    @classmethod
    def _is_a_number_of_calls(cls, uses: object) -> object:
        if uses is not None and (not isinstance(uses, int) or isinstance(uses, bool)):
            raise ValueError('not a whole number')
        if uses is not None and uses < 1:
            raise ValueError('the number of calls must be at least 1')
        return uses

    @model_validator(mode='after')
    def _ends(self) -> Self:
        if self.expires is None and self.uses is None and not self.total:
            raise ValueError('a bound is missing; give `expires`, `uses` or `total`')
        return self

    @property
    def text(self) -> str:
        """The bounds in words, without values of a call."""
        times = [] if self.uses is None else ['once' if self.uses == 1 else f'{self.uses} times']
        sums = [f'`{name}` up to {written(most)} in total' for name, most in self.total.items()]
        counts = ['counting this call'] if times or sums else []
        return ', '.join([*times, *sums, *counts, *self._end])

    @property
    def _end(self) -> list[str]:
        match self.expires:
            case None:
                return []
            case timedelta() as duration:
                return [f'for {in_words(duration)} after your answer']
            case _:
                return ['until the next midnight (UTC)']


class Left(BaseModel):
    """Rest of a bounded approval: the time, the calls and the amounts that it still covers."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    until: AwareDatetime | None = None
    """Time from which the approval no longer counts; `None` for no limit."""
    uses: Annotated[int, Field(ge=0)] | None = None
    """Number of calls left; `None` for no limit."""
    total: Mapping[str, Annotated[Decimal, Field(ge=0)]] = Field(default_factory=dict[str, Decimal])
    """By argument, the sum that is left."""

    @classmethod
    def of(cls, bounds: Bounds, at: datetime) -> Left:
        """Return what is left at the time of the approver's answer, before any call is counted."""
        match bounds.expires:
            case None:
                until = None
            case timedelta() as duration:
                until = at + duration
            case _:
                day = at.astimezone(UTC) + timedelta(days=1)
                until = day.replace(hour=0, minute=0, second=0, microsecond=0)
        return cls(until=until, uses=bounds.uses, total=dict(bounds.total))

    def after(self, args: Mapping[str, Any], now: datetime) -> Left | None:
        """Return what is left after a call, or `None` if the approval does not cover the call.

        Args:
            args: Argument values of the call, in JSON form.
            now: The time.
        """
        if self.is_over(now):
            return None
        left: dict[str, Decimal] = {}
        for name, sum_left in self.total.items():
            amount = amount_of(args.get(name))
            if amount is None or amount > sum_left:
                return None
            try:
                left[name] = _EXACTLY.subtract(sum_left, amount)
            except DecimalException:
                return None
        return self.model_copy(update={'uses': None if self.uses is None else self.uses - 1, 'total': left})

    def is_over(self, now: datetime) -> bool:
        """Return whether no call at all is covered any more."""
        return self.uses == 0 or (self.until is not None and now >= self.until)

    def text(self, now: datetime) -> str:
        """Say in words what is left."""
        if self.is_over(now):
            return 'ended'
        times = [] if self.uses is None else [f'{self.uses} {"call" if self.uses == 1 else "calls"} left']
        sums = [f'{written(most)} of `{name}` left' for name, most in self.total.items()]
        until = [] if self.until is None else [f'until {self.until.astimezone(UTC):%Y-%m-%d %H:%M} UTC']
        return ', '.join([*times, *sums, *until])


def written(number: Decimal) -> str:
    """Write a number without an exponent."""
    text = f'{number:f}'
    return text.rstrip('0').rstrip('.') if '.' in text else text


def in_words(duration: timedelta) -> str:
    """Write a duration in words, such as `30 minutes`."""
    seconds = math.ceil(duration.total_seconds())
    for unit, size in (('day', 86400), ('hour', 3600), ('minute', 60)):
        if seconds % size == 0:
            number = seconds // size
            return f'{number} {unit}{"" if number == 1 else "s"}'
    return f'{seconds} second{"" if seconds == 1 else "s"}'
