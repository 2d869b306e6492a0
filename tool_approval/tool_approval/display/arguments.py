"""Arguments as an indented tree, much as YAML draws it: texts in quotation marks or as numbered lines, all else as JSON.

The quotation marks are the first and the last character of what they enclose, so none inside has to be escaped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from .cut import lines_needed, quote
from .escape import escape_line
from .lines import DisplayLine, Span

_NAME = re.compile(r'[A-Za-z_][\w.-]*', re.ASCII)
Item = tuple[object, object]

_DEEPEST = 12
"""Chosen: deeper values are not drawn, because the indentation would leave no room for them."""


class Tree:
    """Draws values into a limited number of lines."""

    def __init__(self, *, ascii_only: bool) -> None:
        """Begin with no line."""
        self.lines: list[DisplayLine] = []
        self.is_whole = True
        self._ascii_only = ascii_only

    def draw(self, values: Mapping[str, Any], room: int) -> None:
        """Draw the items of a mapping.

        Args:
            values: Anything by name.
            room: Lines of 100 characters there are; what needs more is cut, and the end of everything is kept.
        """
        self._mapping(values, 0, room)

    def _value(self, label: str, value: object, depth: int, room: int) -> None:
        if isinstance(value, str):
            self._text(label, value, depth, room)
        elif isinstance(value, Mapping) and value and depth < _DEEPEST:
            self._line(label, '', depth)
            self._mapping(cast('Mapping[object, object]', value), depth + 1, room - 1)
        elif isinstance(value, list | tuple) and value and depth < _DEEPEST:
            self._line(label, '', depth)
            head, tail = _numbered(cast('Sequence[object]', value), room - 1)
            self._items(head, tail, len(cast('Sequence[object]', value)), depth + 1, room - 1)
        else:
            self._line(label, self._plain(cast('object', value)), depth)

    def _mapping(self, values: Mapping[Any, Any], depth: int, room: int) -> None:
        head, tail = _ends(list(values.items()), room)
        self._items(head, tail, len(values), depth, room)

    def _items(self, head: Sequence[Item], tail: Sequence[Item], count: int, depth: int, room: int) -> None:
        """Items of a mapping with their keys, or of a sequence with their numbers from 1."""
        left_out = count - len(head) - len(tail)
        needs = [_need(value, room) for _, value in (*head, *tail)]
        shares = iter(_shares(needs, room - (left_out > 0)))
        for key, value in head:
            self._value(self._label(key), value, depth, next(shares))
        if left_out:
            self._cut(f'[{left_out:,} more item{"s" if left_out > 1 else ""}]')
        for key, value in tail:
            self._value(self._label(key), value, depth, next(shares))

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
        if isinstance(value, Mapping):
            return '{}' if not value else self._too_deep()
        if isinstance(value, list | tuple):
            return '[]' if not value else self._too_deep()
        try:
            told = json.dumps(value) if isinstance(value, bool | int | float | None) else repr(value)
        except Exception:  # noqa: BLE001 - any object may be among the arguments, and its `repr` may do anything
            told = f'a value of type {type(value).__name__} that cannot be shown'
            self.is_whole = False
        if len(told) > 1000:
            told = f'{told[:1000]} [{len(told) - 1000:,} more characters]'
            self.is_whole = False
        return self._escaped(told)

    def _too_deep(self) -> str:
        self.is_whole = False
        return '[nested too deeply to be shown]'

    def _label(self, key: object) -> str:
        if type(key) is int:
            return f'{key}.'
        name = key if isinstance(key, str) else self._plain(key)
        if len(name) > 200:
            self.is_whole = False
            return f'"{self._escaped(name[:200], chr(34))}" [{len(name) - 200:,} more characters]:'
        if _NAME.fullmatch(name):
            return f'{name}:'
        return f'"{self._escaped(name, chr(34))}":'

    def _escaped(self, text: str, also: str = '') -> str:
        return escape_line(text, ascii_only=self._ascii_only, also=also)

    def _line(self, label: str, told: str, depth: int, *, is_text: bool = False, is_heading: bool = False) -> None:
        start = 2 * depth
        marks = [Span(start, start + len(label), 'key')]
        text = f'{" " * start}{label}{" " if told else ""}{told}'
        if is_text:
            marks.append(Span(start + len(label) + 1, len(text), 'string'))
        self.lines.append(DisplayLine(kind='heading' if is_heading else 'value', text=text, marks=tuple(marks)))

    def _cut(self, told: str) -> None:
        self.lines.append(DisplayLine(kind='cut', text=told))
        self.is_whole = False


def _ends(items: list[Item], room: int) -> tuple[list[Item], list[Item]]:
    """All of the items and nothing, or the first three quarters and the last ones of as many as there are lines."""
    if len(items) <= room:
        return items, []
    tail = max(1, room // 4)
    return items[: max(0, room - 1 - tail)], items[-tail:]


def _numbered(values: Sequence[object], room: int) -> tuple[list[Item], list[Item]]:
    """The same of a sequence, with numbers from 1."""
    if len(values) <= room:
        return list(enumerate(values, 1)), []
    tail = max(1, room // 4)
    head = max(0, room - 1 - tail)
    return list(enumerate(values[:head], 1)), list(enumerate(values[-tail:], len(values) - tail + 1))


def _need(value: object, enough: int, depth: int = 0) -> int:
    """Lines that a value takes, or more than `enough`."""
    if isinstance(value, str):
        return lines_needed(value) + ('\n' in value)
    if not isinstance(value, Mapping | list | tuple) or not value or depth > _DEEPEST:
        return 1
    if isinstance(value, Mapping):
        value = list(cast('Mapping[object, object]', value).values())
    need = 1
    for part in cast('Sequence[object]', value):
        need += _need(part, enough, depth + 1)
        if need > enough:
            break
    return need


def _shares(needs: Sequence[int], room: int) -> list[int]:
    """Lines for each: what it needs where that is little, and an equal share of what is left otherwise."""
    shares = [0] * len(needs)
    left = max(room, 0)
    by_need = sorted(range(len(needs)), key=lambda index: needs[index])
    for done, index in enumerate(by_need):
        shares[index] = min(needs[index], left // (len(needs) - done))
        left -= shares[index]
    return shares
