"""Reads a structured presentation, where its text is JSON and a tree shows all that the text says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from tool_approval.core.presentation import ApprovalPresentation

from .arguments import DEEPEST


def structure_of(presentation: ApprovalPresentation, text: str) -> dict[str, Any] | list[Any] | None:
    """The mapping or the list that a structured presentation has as its text; `None` where the text itself is shown.

    Attack: of a name that is given twice the tree would show one value, and of a number that a float cannot hold
    another one than is sent (test_structure.py).

    Args:
        presentation: What is shown.
        text: Its content, or its full content.
    """
    if presentation.type != 'structured' or presentation.language not in (None, 'json'):
        return None
    try:
        value: object = json.loads(
            text, object_pairs_hook=_mapping, parse_float=_number, parse_int=_number, parse_constant=_number
        )
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict | list) or not value or _is_deeper(cast('object', value), DEEPEST):
        return None
    return cast('dict[str, Any] | list[Any]', value)


def _mapping(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError('a name is given twice')
    return made


def _number(text: str) -> int | float:
    value = int(text) if text.removeprefix('-').isdecimal() else float(text)
    if json.dumps(value) != text:
        raise ValueError('the number would be shown as another one')
    return value


def _is_deeper(value: object, levels: int) -> bool:
    """Whether a value has more levels of mappings and lists than so many."""
    if isinstance(value, dict):
        value = list(cast('dict[str, object]', value).values())
    if not isinstance(value, list) or not value:
        return False
    return levels == 0 or any(_is_deeper(each, levels - 1) for each in cast('list[object]', value))
