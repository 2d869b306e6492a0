"""Quote a text or a unified diff in limited space: keep the beginning and the end, and count the lines left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from .escape import escape_line, is_plain
from .lines import DisplayLine, LineKind


def shares(needs: Sequence[int], room: int) -> list[int]:
    """Divide `room` among texts. Short texts get all the room that they need, and long texts share the rest equally."""
    if sum(needs) <= room:
        return list(needs)
    granted = [0] * len(needs)
    left = max(room, 0)
    by_need = sorted(range(len(needs)), key=needs.__getitem__)
    for done, index in enumerate(by_need):
        granted[index] = min(needs[index], left // (len(needs) - done))
        left -= granted[index]
    return granted


_SAMPLE = 1_000
"""Number of characters in the sample from which the length of an escaped text is estimated."""

LINE: int = 100
"""Number of characters that count as one line. A longer line counts as several, as it takes several screen rows."""


@dataclass(frozen=True)
class Piece:
    """Part of a text."""

    text: str
    """Text without its final newline."""
    number: int
    """Number of the piece's first line in the whole text, counted from 1."""
    left_out: str = ''
    """Description of the part left out before this piece, or an empty string."""


def lines_needed(text: str) -> int:
    """Return how many lines of 100 characters a text needs."""
    return text.count('\n') + 1 + _columns(text) // LINE


def _columns(text: str) -> int:
    """Return the length of the escaped text, estimated from a sample if the text is long."""
    sample = text[:_SAMPLE]
    return _width_of(sample) * len(text) // len(sample) if sample else 0


@lru_cache(maxsize=256)
def _width_of(sample: str) -> int:
    """Return the length of the escaped sample. Results are cached, because samples recur."""
    line = sample.replace('\n', '')
    return len(sample) if is_plain(line) else len(escape_line(line))


def pieces(text: str, room: int) -> list[Piece]:
    """Return the whole text if it fits. Otherwise, return its beginning and its end.

    About a quarter of `room` is kept for the end, so that an attacker cannot hide the dangerous part there.

    Args:
        text: Any number of lines.
        room: Number of available lines of 100 characters. The minimum is 2.
    """
    if lines_needed(text) <= room:
        return [Piece(text, 1)]
    tail_room = max(1, room // 4)
    head = _head(text, max(1, room - tail_room))
    tail = text[len(head) :]
    tail = tail[len(tail) - len(_head(tail[::-1], tail_room)) :]
    hidden = text[len(head) : len(text) - len(tail)]
    left_out = more(hidden.count('\n'), len(hidden))
    number = text.count('\n', 0, len(text) - len(tail)) + 1
    return [Piece(head.removesuffix('\n'), 1), Piece(tail.removeprefix('\n'), number + tail.startswith('\n'), left_out)]


def more(lines: int, characters: int) -> str:
    """Describe the part left out: `[847 more lines, 51,200 more characters]`."""
    of_lines = f'{lines:,} more line{"s" if lines > 1 else ""}, ' if lines else ''
    return f'[{of_lines}{characters:,} more characters]'


def _head(text: str, room: int) -> str:
    text = text[: room * LINE]
    text = text[: room * LINE * len(text) // max(1, _columns(text))]
    end = -1
    for _ in range(room):
        end = text.find('\n', end + 1)
        if end < 0:
            return text
    return text[: end + 1]


def quote(text: str, kind: LineKind, room: int, *, numbered: bool, ascii_only: bool) -> tuple[list[DisplayLine], bool]:
    """Return the lines of a text, and whether they are complete."""

    def drawn(line: str, index: int, is_first: bool) -> DisplayLine:
        escaped = escape_line(line, ascii_only=ascii_only, mark_end=True)
        return DisplayLine(kind=kind, text=escaped, number=index + 1 if numbered else None, is_first=is_first)

    return _quoted(text, room, drawn)


def _quoted(text: str, room: int, drawn: Callable[[str, int, bool], DisplayLine]) -> tuple[list[DisplayLine], bool]:
    """Call `drawn` with each line, the line's index and whether the line is the first, and return the results."""
    shown: list[DisplayLine] = []
    parts = pieces(text, room)
    for piece in parts:
        if piece.left_out:
            shown.append(DisplayLine(kind='cut', text=piece.left_out))
        for index, line in enumerate(piece.text.split('\n'), piece.number - 1):
            shown.append(drawn(line, index, index == 0 and not piece.left_out))
    return shown, len(parts) == 1


MOST_LINES = 10_000
"""Maximum length of a diff in lines. The lines of a longer diff are not classified, because few of them would fit."""

_HUNK = re.compile(r'@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@')

Row = tuple[LineKind, str, int | None]
"""Kind of a diff line, text without the `+` or `-`, and line number."""


def read_diff(lines: Sequence[str]) -> Iterator[Row]:
    """Classify each line of a diff, using the line counts that the hunk headers state.

    A removed line whose text begins with `--`, or an added line whose text begins with `++`, looks like a file header.
    Therefore, whether a line belongs to a hunk depends only on the line counts in the hunk headers.
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
    """Return the lines of a diff, and whether they are complete."""
    body = text.removesuffix('\n')
    lines = body.split('\n') if body.count('\n') < MOST_LINES else []
    rows = list(read_diff(lines))

    def drawn(line: str, index: int, is_first: bool) -> DisplayLine:
        kind, without_sign, number = rows[index] if rows else ('text', line, None)
        if rows and line != lines[index]:
            # If a line was cut into parts, only the first part has the sign.
            has_sign = lines[index].startswith(line) and len(without_sign) < len(lines[index])
            without_sign = line[1:] if has_sign else line
        escaped = escape_line(without_sign, ascii_only=ascii_only, mark_end=True)
        return DisplayLine(kind=kind, text=escaped, number=number)

    return _quoted(body, room, drawn)
