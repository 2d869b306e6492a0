"""Compute a short digest that differs for different requests, even if the screen does not show the difference."""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from hashlib import blake2b
from secrets import token_bytes
from typing import Any, Final, cast

from tool_approval.core.arguments import ARGUMENTS
from tool_approval.core.request import ApprovalRequest

_KEY: Final = token_bytes(32)
"""Key of the digests. Without the key, readers of a screen or a log cannot find a secret by computing the digests of
likely secrets (test_display.py)."""

_MANY = 1_000
"""Maximum number of arguments to serialise one by one. If a call has more arguments, they are serialised together."""

_LONG = 10_000
"""Maximum number of characters in a value to serialise. A longer value is hashed, because `repr` would be slower."""


def left_out_keys(request: ApprovalRequest) -> frozenset[str]:
    """Return the names of the arguments that the payload omits; none if the payload does not consist of arguments."""
    args, payload = request.args, request.payload
    if len(payload) >= len(args) or any(key not in args or not is_same(args[key], payload[key]) for key in payload):
        return frozenset()
    return frozenset(args) - frozenset(payload)


def visible_args(request: ApprovalRequest) -> Mapping[str, Any]:
    """Return the arguments that are not hidden."""
    hidden = left_out_keys(request)
    return {key: value for key, value in request.args.items() if key not in hidden} if hidden else request.args


def request_digest(request: ApprovalRequest) -> str:
    """Return a digest of everything in the request, as 16 hexadecimal digits.

    If the tool hides arguments, the digest is keyed, so each process computes a different digest for the same request.
    """
    key = _KEY if left_out_keys(request) else b''
    facts: dict[str, object] = {name: getattr(request, name) for name in type(request).model_fields}
    if not request.hides_arguments:
        # The arguments are included already, and their keyed digest differs between processes.
        facts['bound_to'] = {name: value for name, value in request.bound_to.items() if name != ARGUMENTS}
    del facts['args_schema']  # the same for every call of the tool
    # If these fields are unused, the digest is the same as in versions without these fields.
    for name in ('described_by', 'hides_arguments', 'answers', 'rejected_edit', 'votes', 'review', 'approvers'):
        if not facts[name]:
            del facts[name]
    args = dict(request.args)
    facts['args'] = _short(args) if len(args) > _MANY else {name: _short(value) for name, value in args.items()}
    if request.payload == request.args:
        facts['payload'] = ...  # never an argument's value, and faster than serialising the arguments twice
    try:
        text = repr(facts)
    except Exception:  # noqa: BLE001 - any object may be among the arguments, and its `repr` may do anything
        text = '\n'.join(_parts(facts))
    return blake2b(text.encode(errors='backslashreplace'), digest_size=8, key=key).hexdigest()


def _short(value: object) -> object:
    """Replace a long value by its hash, which is faster to compute than its `repr`."""
    if isinstance(value, str):
        data = value.encode(errors='surrogatepass') if len(value) >= _LONG else b''
    elif isinstance(value, dict | list | tuple):
        try:
            # In version 0, the output does not depend on other references to a value.
            data = marshal.dumps(cast('Any', value), 0)
        except ValueError:  # an object of another type somewhere within, or nested too deeply
            return cast('object', value)
    else:
        return value
    if len(data) < _LONG:
        return cast('object', value)
    return (type(cast('object', value)).__name__, len(data), blake2b(data, digest_size=32).digest())


def is_same(one: object, other: object) -> bool:
    """Return whether two values of a call have the same type and are equal; `False` if they cannot be compared."""
    try:
        return type(one) is type(other) and one == other
    except Exception:  # noqa: BLE001 - as above
        return False


def _parts(value: object) -> list[str]:
    """Describe a value for which `repr` fails, for example because the value is nested too deeply, or contains a faulty
    object or a very long integer.
    """
    parts: list[str] = []
    waiting: list[object] = [value]
    seen: set[int] = set()
    while waiting:
        part = waiting.pop()
        if not isinstance(part, Mapping | list | tuple):
            parts.append(_one(part))
            continue
        items: list[object] = []
        if isinstance(part, Mapping):
            for pair in cast('Mapping[object, object]', part).items():
                items.extend(pair)
        else:
            items.extend(cast('list[object]', part))
        parts.append(f'{type(cast("object", part)).__name__} {len(items)}')
        if id(cast('object', part)) not in seen:
            seen.add(id(cast('object', part)))
            waiting.extend(items)
    return parts


def _one(value: object) -> str:
    try:
        return f'{value:#x}' if type(value) is int else repr(value)
    except Exception:  # noqa: BLE001 - as above
        return f'a {type(value).__name__}'
