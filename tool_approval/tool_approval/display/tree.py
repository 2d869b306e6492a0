"""Draw arguments as an indented tree, similar to YAML.

A string is drawn in quotation marks or as numbered lines, and any other value as JSON. The first and the last quotation
mark enclose the string, so quotation marks within the string need no escape.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, cast

from tool_approval.core.presentation import ApprovalPresentation

from .escape import escape_line
from .lines import DisplayLine, Span
from .quote import lines_needed, quote, shares

_NAME = re.compile(r'[A-Za-z_][\w.-]*', re.ASCII)

DEEPEST = 12
"""Maximum depth of values to draw. Deeper indentation would leave no room."""


class Tree:
    """Draws values in a limited number of lines."""

    def __init__(self, *, ascii_only: bool) -> None:
        """Start without lines."""
        self.lines: list[DisplayLine] = []
        self.is_whole = True
        self._ascii_only = ascii_only

    def draw(self, values: Mapping[str, Any] | Sequence[Any], room: int) -> None:
        """Draw the items of a mapping or a sequence.

        Args:
            values: Mapping of names to values, or sequence of values.
            room: Available lines, each of 100 characters. Values that do not fit are cut, usually in the middle.
        """
        self._container(values, 0, room)

    def _value(self, label: str, value: object, depth: int, room: int) -> None:
        if isinstance(value, str):
            self._text(label, value, depth, room)
        elif isinstance(value, Mapping | list | tuple) and value and depth < DEEPEST:
            self._line(label, '', depth)
            self._container(cast('Mapping[Any, Any] | Sequence[Any]', value), depth + 1, room - 1)
        else:
            self._line(label, self._plain(cast('object', value)), depth)

    def _container(self, values: Mapping[Any, Any] | Sequence[Any], depth: int, room: int) -> None:
        count = len(values)
        tail = 0 if count <= room else max(1, room // 4)
        head = max(0, room - 1 - tail) if tail else count
        left_out = count - head - tail
        first, last = self._items(values, 0, head), self._items(values, count - tail, count)
        granted = iter(shares([_need(value, room) for _, value in (*first, *last)], room - (left_out > 0)))
        for label, value in first:
            self._value(label, value, depth, next(granted))
        if left_out:
            self._cut(f'[{left_out:,} more item{"s" if left_out > 1 else ""}]')
        for label, value in last:
            self._value(label, value, depth, next(granted))

    def _items(self, values: Mapping[Any, Any] | Sequence[Any], start: int, stop: int) -> list[tuple[str, object]]:
        """Return pairs of label and value."""
        if isinstance(values, Mapping):
            return [(self._label(key), value) for key, value in islice(values.items(), start, stop)]
        return [(f'{number}.', value) for number, value in enumerate(values[start:stop], start + 1)]

    def _text(self, label: str, text: str, depth: int, room: int) -> None:
        if '\n' not in text and (lines_needed(text) <= room or room < 3):
            if lines_needed(text) > room:
                self._line(label, f'"{self._escaped(text[: 60 * room])}', depth, is_text=True)
                self._cut(f'[{len(text) - 60 * room:,} more characters]')
            else:
                self._line(label, f'"{self._escaped(text)}"{"" if text else " (empty)"}', depth, is_text=True)
            return
        body = text.removesuffix('\n')
        count = body.count('\n') + 1
        ending = '' if body != text else ', no newline at the end'
        self._line(label, f'{count:,} line{"s" if count > 1 else ""}{ending}', depth, is_heading=True)
        if room < 3:
            return self._cut(f'[{count:,} more lines, {len(text):,} more characters]')
        lines, is_whole = quote(body, 'code', room - 1, numbered=True, ascii_only=self._ascii_only)
        self.lines += lines
        self.is_whole = self.is_whole and is_whole
        return None

    def _plain(self, value: object) -> str:
        if isinstance(value, Mapping | list | tuple):
            if value:
                self.is_whole = False
                return '[nested too deeply to be shown]'
            return '{}' if isinstance(value, Mapping) else '[]'
        try:
            text = json.dumps(value) if isinstance(value, bool | int | float | None) else repr(value)
        except Exception:  # noqa: BLE001 - any object may be among the arguments, and its `repr` may do anything
            text = f'a value of type {type(value).__name__} that cannot be shown'
            self.is_whole = False
        if len(text) > 1000:
            text = f'{text[:1000]} [{len(text) - 1000:,} more characters]'
            self.is_whole = False
        return self._escaped(text)

    def _label(self, key: object) -> str:
        if not isinstance(key, str):
            # Attack: `1` and `"1"`, or `None` and `"null"`, in one mapping. Only keys that are not strings are in
            # parentheses (test_display.py).
            return f'({type(key).__name__} {self._plain(key)}):'
        if len(key) > 200:
            self.is_whole = False
            return f'"{self._escaped(key[:200], chr(34))}" [{len(key) - 200:,} more characters]:'
        if _NAME.fullmatch(key):
            return f'{key}:'
        return f'"{self._escaped(key, chr(34))}":'

    def _escaped(self, text: str, also: str = '') -> str:
        return escape_line(text, ascii_only=self._ascii_only, also=also)

    def _line(self, label: str, shown: str, depth: int, *, is_text: bool = False, is_heading: bool = False) -> None:
        start = 2 * depth
        marks = [Span(start, start + len(label), 'key')]
        text = f'{" " * start}{label}{" " if shown else ""}{shown}'
        if is_text:
            marks.append(Span(start + len(label) + 1, len(text), 'string'))
        self.lines.append(DisplayLine(kind='heading' if is_heading else 'value', text=text, marks=tuple(marks)))

    def _cut(self, text: str) -> None:
        self.lines.append(DisplayLine(kind='cut', text=text))
        self.is_whole = False


def _need(value: object, enough: int, depth: int = 0) -> int:
    """Return how many lines a value needs. Counting stops when the number is larger than `enough`."""
    if isinstance(value, str):
        return lines_needed(value) + ('\n' in value)
    if not isinstance(value, Mapping | list | tuple) or not value or depth > DEEPEST:
        return 1
    if isinstance(value, Mapping):
        value = list(cast('Mapping[object, object]', value).values())
    need = 1
    for part in cast('Sequence[object]', value):
        need += _need(part, enough, depth + 1)
        if need > enough:
            break
    return need


def structure_of(presentation: ApprovalPresentation, text: str) -> dict[str, Any] | list[Any] | None:
    """Parse the text of a structured presentation into a mapping or a list; return `None` to show the text itself.

    `text` is the presentation's `content`, or the `full_content` from which the tool made a shorter `content`.

    A mapping with a duplicate name is shown as text, because a tree would show only one of the values. The text
    is also shown if it has a number that Python would write differently, for example `1e5` (test_structure.py).
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
        raise ValueError('a name occurs twice')
    return made


def _number(text: str) -> int | float:
    value = int(text) if text.removeprefix('-').isdecimal() else float(text)
    if json.dumps(value) != text:
        raise ValueError('the number would be shown as a different number')
    return value


def _is_deeper(value: object, levels: int) -> bool:
    """Return whether a value has more than `levels` levels of mappings and lists."""
    if isinstance(value, dict):
        value = list(cast('dict[str, object]', value).values())
    if not isinstance(value, list) or not value:
        return False
    return levels == 0 or any(_is_deeper(each, levels - 1) for each in cast('list[object]', value))
