"""Convert a value to its one canonical JSON form, and compute digests of that form.

Two values have the same form if and only if they are the same JSON value. Keys are sorted, and tuples become lists. The
values `1`, `1.0`, `true` and `"1"` have four different forms. Values without a canonical form are rejected.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, NoReturn, cast

from .errors import NotCanonicalError

EXACT = 'exact'
"""Value of `kind` in remembered approvals that cover only calls with exactly the same payload."""


def canonical_json(value: object) -> str:
    """Return the canonical JSON form of `value`.

    Args:
        value: Mappings with string keys, lists, tuples, strings, integers, finite floats, booleans and `None`, nested
            as needed.

    Returns:
        JSON without white space, with keys sorted by code point, floats in `repr` form, and only necessary escapes.

    Raises:
        NotCanonicalError: The value is nested too deeply, or contains itself, NaN, an infinity, an integer of over 4300
            digits (Python's limit), a lone surrogate, a non-string key, or a value that JSON cannot represent.
    """
    try:
        if type(value) not in LEAVES:
            _check_keys(value)
        text = _ENCODER.encode(value)
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError:
        raise NotCanonicalError('a text contains a lone surrogate') from None
    except RecursionError:
        raise NotCanonicalError('a value is nested too deeply, or contains itself') from None
    except (TypeError, ValueError) as error:
        if isinstance(error, NotCanonicalError):
            raise
        raise NotCanonicalError(_problem(error)) from None
    return text


def decode_arguments(arguments: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """Decode the arguments of a call from any form in which a host delivers them.

    Args:
        arguments: A mapping, a JSON object as text, or `None`. Empty text, which some models send, means no arguments.

    Returns:
        Argument values by parameter name.

    Raises:
        NotCanonicalError: The text is not a JSON object, has a duplicate key, or contains a number that is not finite.
            Decoded arguments may still have no canonical form, for example if a text contains a lone surrogate.
    """
    if arguments is None:
        return {}
    if not isinstance(arguments, str):
        return dict(arguments)
    if not arguments.strip():
        return {}
    try:
        decoded: object = json.loads(
            arguments, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite
        )
    except RecursionError:
        raise NotCanonicalError('nested too deeply') from None
    except ValueError as error:
        if isinstance(error, NotCanonicalError):
            raise
        raise NotCanonicalError('the text is not JSON') from None
    if not isinstance(decoded, dict):
        raise NotCanonicalError('the arguments are not a JSON object')
    return cast('dict[str, Any]', decoded)


def copied(value: Any) -> Any:
    """Return a deep copy of a value that has a canonical form."""
    items: Any = value
    if not items and type(value) is dict:
        return {}
    if type(value) is dict or isinstance(value, Mapping):
        return {key: item if type(item) in LEAVES else copied(item) for key, item in items.items()}
    return [copied(item) for item in items] if isinstance(value, list | tuple) else items


def whole_characters(text: str) -> str:
    """Replace lone surrogates. File names may contain them, but files, logs and models reject them."""
    return text.encode(errors='replace').decode()


def fingerprint(tool_name: str, kind: str, payload: Mapping[str, Any], *, key: bytes) -> str:
    """Return the id of a remembered approval. Ids are equal if and only if tool, kind and payload are equal.

    Args:
        tool_name: Name of the tool.
        kind: `exact`, or the kind of a wider `RememberOption`.
        payload: Values that are equal in all requests that the approval covers.
        key: Secret key of any length. Without the key, payloads cannot be guessed from their fingerprints.

    Returns:
        64 hexadecimal digits.

    Raises:
        NotCanonicalError: The payload has no canonical form.
        ValueError: The key is empty.
    """
    return hash_text(canonical_json([tool_name, kind, payload]), key=key, purpose=b'fingerprint')


def digest(tool_name: str, args: Mapping[str, Any], bound_to: Mapping[str, Any], *, key: bytes) -> str:
    """Return the digest that an approval is bound to.

    Args:
        tool_name: Name of the tool.
        args: All validated arguments, including default values, in JSON form.
        bound_to: Other values that must not change, such as the working directory or the content shown to the approver.
        key: Secret key of any length.

    Returns:
        64 hexadecimal digits.

    Raises:
        NotCanonicalError: A value has no canonical form.
        ValueError: The key is empty.
    """
    return hash_text(canonical_json([tool_name, args, bound_to]), key=key)


def hash_text(text: str, *, key: bytes, purpose: bytes = b'digest') -> str:
    """Return the keyed hash of a canonical text: 64 hexadecimal digits.

    Raises:
        ValueError: The key is empty.
    """
    if not key:
        raise ValueError('the key must not be empty: without a secret, anybody can compute the digest')
    if len(key) > blake2b.MAX_KEY_SIZE:
        key = blake2b(key).digest()
    return blake2b(text.encode(), digest_size=32, key=key, person=purpose).hexdigest()


def _as_dict(value: object) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(cast('Mapping[str, Any]', value))
    raise TypeError


_ENCODER = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, allow_nan=False, check_circular=False, separators=(',', ':'), default=_as_dict
)


LEAVES = frozenset({str, int, float, bool, type(None)})
"""Types of JSON values other than objects and arrays. Most values are of these types and need no further check."""

TEXT = frozenset({str})


def _check_keys(value: object) -> None:
    # The encoder would turn the keys 1, True and None into the strings "1", "true" and "null".
    items: Any = value
    kind = type(value)
    # The exact type comes first, because `isinstance` is slow for abstract types.
    if kind is dict or (kind is not list and isinstance(value, Mapping)):
        for key, item in items.items():
            if type(key) is not str and not isinstance(key, str):
                raise NotCanonicalError(f'a key is of type {type(key).__name__}, not str')
            if type(item) not in LEAVES:
                _check_keys(item)
    elif (kind is list or isinstance(value, list | tuple)) and not LEAVES.issuperset(map(type, items)):
        for item in items:
            if type(item) not in LEAVES:
                _check_keys(item)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    decoded = dict(pairs)
    if len(decoded) != len(pairs):
        raise NotCanonicalError('an object has a duplicate key')
    return decoded


def _no_constant(name: str) -> NoReturn:
    raise NotCanonicalError(f'{name} is not a JSON number')


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise NotCanonicalError('a number is too large')
    return number


def _problem(error: Exception) -> str:
    # The encoder's messages name a type or a float, never a string.
    return (
        'a number is too long or not finite'
        if isinstance(error, ValueError)
        else 'a value cannot be represented in JSON'
    )
