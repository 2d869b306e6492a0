"""How many columns of a terminal a text takes, and where it is broken."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from .escape import ESCAPE

_FIRST_WIDE = '\u1100'
"""No character before it takes more than a column (Unicode Standard Annex 11)."""

_UNIT = re.compile(f'{ESCAPE.pattern}|.', re.DOTALL)


def cell_width(text: str) -> int:
    """Columns that an escaped text takes at most.

    Terminals disagree on some characters. The larger figure is taken: a line that is shorter than thought does no harm,
    while the end of a longer one would stand alone in the next line, as if it were not quoted.
    """
    return len(text) if text.isascii() else sum(map(_width, text))


@lru_cache(maxsize=4096)
def _width(char: str) -> int:
    if unicodedata.east_asian_width(char) in 'WF' or char >= '\U0001f000':
        return 2
    category = unicodedata.category(char)
    # Unicode 16 made some of the older symbols wide; terminals follow one by one.
    if category in ('So', 'No') and char >= '\u2600':
        return 2
    return 1  # marks too: some terminals draw them in a column of their own


def wrap(text: str, width: int, first_width: int | None = None) -> list[tuple[int, int]]:
    """Break an escaped text into parts that fit; joined, they are the text.

    It is broken before a blank where there is one near the end, never within an escape or between a letter and its
    marks.

    Args:
        text: One line.
        width: Columns there are, at least 10: an escape has to fit.
        first_width: Columns of the first part, where they are others.

    Returns:
        Where each part begins and ends in `text`; at least one.
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
    """Before the letter whose marks would be broken off; `end` where there is none."""
    at = end
    while at > start and unicodedata.category(text[at]).startswith('M'):
        at -= 1
    return at if at > start else end


def _break(text: str, start: int, end: int) -> int:
    """Before the blanks that are last in the last third, or else where there is no more room.

    Before all of them: at the end of a row nobody sees how many there are.
    """
    blank = text.rfind(' ', start + (end - start) * 2 // 3, end + 1)
    while blank > start and text[blank - 1] == ' ':
        blank -= 1
    return blank if blank > start else end
