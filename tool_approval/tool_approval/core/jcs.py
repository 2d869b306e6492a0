"""Write a value as JSON in the form of RFC 8785, in which any other program can compute the same digest."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, Final, cast

from .errors import NotCanonicalError

LARGEST_INTEGER: Final = 2**53 - 1
"""Largest integer that every JSON parser reads without rounding (RFC 7493, section 2.2)."""


def public_json(value: object) -> str:
    """Return a JSON value in the form of RFC 8785 (JSON Canonicalization Scheme).

    Nothing is rounded: a value that other programs cannot read exactly has no such form.

    Args:
        value: Mappings with string keys, lists, tuples, strings, numbers, booleans and `None`, nested as needed.

    Raises:
        NotCanonicalError: The value contains an integer beyond `LARGEST_INTEGER`; two numbers that differ in Python's
            JSON and are the same here, such as `1` beside `1.0`; NaN or an infinity; a lone surrogate; or it is nested
            too deeply, or has no JSON form.
    """
    try:
        text = _COMMON.encode(value) if _is_common(value) else _text(value, {})
        text.encode()
    except UnicodeEncodeError:
        raise NotCanonicalError('a text contains a lone surrogate') from None
    except RecursionError:
        raise NotCanonicalError('a value is nested too deeply') from None
    return text


def public_digest(tool_name: str, payload: object) -> tuple[str | None, str | None]:
    """Return the digest of a logged call that needs no key, or the reason why there is none.

    Args:
        tool_name: Name of the tool.
        payload: Payload as it is logged.

    Returns:
        SHA-256 of the RFC 8785 form of `{"payload": ..., "tool_name": ...}`, 64 hexadecimal digits, and `None`; or
        `None` and the reason.
    """
    try:
        text = public_json({'payload': payload, 'tool_name': tool_name})
    except NotCanonicalError as error:
        return None, error.problem
    return hashlib.sha256(text.encode()).hexdigest(), None


_COMMON = json.JSONEncoder(sort_keys=True, ensure_ascii=False, check_circular=False, separators=(',', ':'))


def _is_common(value: Any) -> bool:
    """Return whether Python's own encoder writes the value in this form, in a tenth of the time: most values."""
    kind = cast('type[object]', type(value))
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str or not key.isascii() or (type(item) not in _PLAIN and not _is_common(item)):
                return False
        return True
    if kind is list:
        return all(map(_is_common, value))
    return kind in _PLAIN or (kind is int and abs(value) <= LARGEST_INTEGER)


_PLAIN = frozenset({str, bool, type(None)})


def _text(value: object, written: dict[str, str]) -> str:
    items: Any = value
    match value:
        case None | bool():
            return json.dumps(value)
        case str():
            return json.dumps(value, ensure_ascii=False)
        case int() | float():
            return _number(value, written)
        case Mapping():
            # Section 3.2.3 sorts by UTF-16 code units, in which some characters beyond U+FFFF come before others below.
            keys = sorted(items, key=_units)
            return '{' + ','.join(f'{_text(key, written)}:{_text(items[key], written)}' for key in keys) + '}'
        case list() | tuple():
            return '[' + ','.join(_text(item, written) for item in items) + ']'
        case _:
            raise NotCanonicalError('a value cannot be represented in JSON')


def _units(key: object) -> bytes:
    if not isinstance(key, str):
        raise NotCanonicalError(f'a key is of type {type(key).__name__}, not str')
    return key.encode('utf-16-be')


def _number(value: float, written: dict[str, str]) -> str:
    if isinstance(value, int):
        if abs(value) > LARGEST_INTEGER:
            raise NotCanonicalError('an integer is larger than 2^53 - 1')
        text = str(value)
    else:
        text = _float(value)
    # Attack: the log of `1` is changed to `1.0`, or the other way round, which many programs cannot tell apart.
    if written.setdefault(text, repr(value)) != repr(value):
        raise NotCanonicalError('two different numbers have the same form in RFC 8785')
    return text


def _float(value: float) -> str:
    """Return a number as ECMAScript writes it (ECMA-262, `Number::toString`); both have the shortest digits."""
    if not math.isfinite(value):
        raise NotCanonicalError('a number is not finite')
    if value == 0:
        return '0'
    sign, digits, exponent = _digits(value)
    point = len(digits) + exponent  # position of the decimal point after the first digit
    if 0 < point <= 21:
        whole = digits if point >= len(digits) else f'{digits[:point]}.{digits[point:]}'
        return f'{sign}{whole}{"0" * (point - len(digits))}'
    if -6 < point <= 0:
        return f'{sign}0.{"0" * -point}{digits}'
    fraction = f'.{digits[1:]}' if len(digits) > 1 else ''
    return f'{sign}{digits[0]}{fraction}e{point - 1:+d}'


def _digits(value: float) -> tuple[str, str, int]:
    """Return sign, digits without zeros at the ends, and the power of ten by which the digits are multiplied."""
    mantissa, _, power = repr(value).partition('e')
    whole, _, fraction = mantissa.lstrip('-').partition('.')
    digits = whole + fraction
    kept = digits.rstrip('0')
    exponent = int(power or 0) - len(fraction) + len(digits) - len(kept)
    return '-' if value < 0 else '', kept.lstrip('0'), exponent
