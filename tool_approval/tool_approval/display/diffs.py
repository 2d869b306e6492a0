"""A unified diff as lines that say themselves whether they are added, removed or neither."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .cut import pieces
from .escape import escape_line
from .lines import DisplayLine, LineKind

MOST_LINES = 10_000
"""Chosen: of a longer diff nobody is shown much, and its lines are not told apart."""

_HUNK = re.compile(r'@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@')

Row = tuple[LineKind, str, int | None]
"""Kind, text without the sign, and number."""


def read_diff(lines: Sequence[str]) -> Iterator[Row]:
    """Each line of a diff, by what the counts in its hunks' headers say it is.

    A line that is removed may itself begin with `--`, and one that is added with `++`: by its looks it would be taken
    for the header of another file's diff. Inside a hunk, looks do not count.
    """
    old = new = old_left = new_left = 0
    for line in lines:
        sign = line[:1]
        if sign == '-' and old_left:
            yield 'removed', line[1:], old
            old, old_left = old + 1, old_left - 1
        elif sign == '+' and new_left:
            yield 'added', line[1:], new
            new, new_left = new + 1, new_left - 1
        elif sign == ' ' and old_left and new_left:
            yield 'context', line[1:], new
            old, new, old_left, new_left = old + 1, new + 1, old_left - 1, new_left - 1
        elif hunk := _HUNK.match(line):
            old, new = int(hunk[1]), int(hunk[3])
            old_left, new_left = int(hunk[2] or 1), int(hunk[4] or 1)
            yield 'hunk', line, None
        else:
            yield 'text', line, None


def quote_diff(text: str, room: int, *, ascii_only: bool) -> tuple[list[DisplayLine], bool]:
    """The lines of a diff, and whether they are all of it."""
    body = text.removesuffix('\n')
    lines = body.split('\n') if body.count('\n') < MOST_LINES else []
    rows = list(read_diff(lines))
    shown: list[DisplayLine] = []
    parts = pieces(body, room)
    for piece in parts:
        if piece.left_out:
            shown.append(DisplayLine(kind='cut', text=piece.left_out))
        for index, line in enumerate(piece.text.split('\n'), piece.number - 1):
            kind, without_sign, number = rows[index] if rows else ('text', line, None)
            if rows and line != lines[index]:
                # Of a line that is cut, the first part alone has the sign.
                has_sign = lines[index].startswith(line) and len(without_sign) < len(lines[index])
                without_sign = line[1:] if has_sign else line
            escaped = escape_line(without_sign, ascii_only=ascii_only, mark_end=True)
            shown.append(DisplayLine(kind=kind, text=escaped, number=number))
    return shown, len(parts) == 1
