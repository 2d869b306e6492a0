"""Measure the width of a text in a terminal, and wrap it."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from .escape import ESCAPE

_FIRST_WIDE = '\u1100'
"""Lowest character that may take more than one column (Unicode Standard Annex 11)."""

_UNIT = re.compile(f'{ESCAPE.pattern}|.', re.DOTALL)


def cell_width(text: str) -> int:
    """Return the maximum number of columns that an escaped text takes.

    Terminals disagree on the width of some characters, so the larger width is used. A result that is too large does no
    harm. If the result were too small, the end of the line would wrap to the next row and look like unquoted text.
    """
    return len(text) if text.isascii() else sum(map(_width, text))


@lru_cache(maxsize=4096)
def _width(char: str) -> int:
    if unicodedata.east_asian_width(char) in 'WF' or char >= '\U0001f000':
        return 2
    category = unicodedata.category(char)
    # Unicode 16 made some older symbols wide, and not all terminals have followed yet.
    if category in ('So', 'No') and char >= '\u2600':
        return 2
    return 1  # also for marks, which some terminals draw in a column of their own


def wrap(text: str, width: int, first_width: int | None = None) -> list[tuple[int, int]]:
    """Break an escaped text into parts that fit and that together are the whole text.

    If there are blanks near the end of a part, the part ends before the blanks. A part never ends within an escape, or
    between a letter and its marks.

    Args:
        text: One line.
        width: Available columns, at least 10, so that an escape fits.
        first_width: Available columns for the first part, if different from `width`.

    Returns:
        Start and end of each part in `text`; at least one part.
    """
    parts: list[tuple[int, int]] = []
    start, room = 0, width if first_width is None else first_width
    while True:
        end = _fitting(text, start, room)
        parts.append((start, end))
        if end >= len(text):
            return parts
        start, room = end, width


def _fitting(text: str, start: int, room: int) -> int:
    line = text[start : start + room + 1]
    is_narrow = line.isascii() or max(line) < _FIRST_WIDE
    may_cut_an_escape = '<' in text[max(0, start + room - 9) : start + room + 1]
    if is_narrow and '<U+' not in line and not may_cut_an_escape:
        if len(line) <= room:
            return start + len(line)
        return _break(text, start, _before_marks(text, start, start + room))
    end, columns = start, 0
    for unit in _UNIT.finditer(text, start):
        columns += _width(unit[0]) if len(unit[0]) == 1 else len(unit[0])  # an escape is ASCII
        if columns > room:
            return _break(text, start, _before_marks(text, start, end))
        end = unit.end()
    return end


def _before_marks(text: str, start: int, end: int) -> int:
    """Return `end`, or the index of a letter if a break at `end` would separate the letter from its marks."""
    at = end
    while at > start and unicodedata.category(text[at]).startswith('M'):
        at -= 1
    return at if at > start else end


def _break(text: str, start: int, end: int) -> int:
    """Return the index of the last run of blanks in the last third of a part, or `end` if there are no blanks there.

    All consecutive blanks move to the next part, because their number would be invisible at the end of a row.
    """
    blank = text.rfind(' ', start + (end - start) * 2 // 3, end + 1)
    while blank > start and text[blank - 1] == ' ':
        blank -= 1
    return blank if blank > start else end
