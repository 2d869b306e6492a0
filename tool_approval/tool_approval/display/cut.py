"""Shortening: the beginning and the end stay, and what is left out between is counted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from .escape import escape_line, is_plain
from .lines import DisplayLine, LineKind

_SAMPLE = 1_000
"""Chosen, in characters: enough to tell how much wider escapes make a text."""

LINE: int = 100
"""Characters that count as one line when room is given out: a long line takes as much of a screen as several."""


@dataclass(frozen=True)
class Piece:
    """Part of a text."""

    text: str
    """Without the newline at its end."""
    number: int
    """The number of its first line, from 1."""
    left_out: str = ''
    """What is left out before it, in words; empty where nothing is."""


def lines_needed(text: str) -> int:
    """How much room a text takes, in lines of 100 characters."""
    return text.count('\n') + 1 + _columns(text) // LINE


def _columns(text: str) -> int:
    """Characters that a text takes when it is escaped; about as many, where it is longer than anything that is shown."""
    sample = text[:_SAMPLE]
    return _width_of(sample) * len(text) // len(sample) if sample else 0


@lru_cache(maxsize=256)
def _width_of(sample: str) -> int:
    """Characters of a sample when it is escaped, line ends not changed. The same is asked several times for a text."""
    line = sample.replace('\n', '')
    return len(sample) if is_plain(line) else len(escape_line(line))


def pieces(text: str, room: int) -> list[Piece]:
    """The whole of a text, or its first three quarters and its end, as far as there is room.

    Nobody who is asked may be shown only the beginning: what matters is then put at the end.

    Args:
        text: Any number of lines.
        room: In lines of 100 characters, at least 2.
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
    """What is left out, in words: `[847 more lines, 51,200 more characters]`."""
    told = [f'{count:,} more {noun}{"s" if count > 1 else ""}' for count, noun in ((lines, 'line'),) if count]
    return f'[{", ".join([*told, f"{characters:,} more characters"])}]'


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
    """The lines of a text, and whether they are all of it."""
    shown: list[DisplayLine] = []
    parts = pieces(text, room)
    for piece in parts:
        if piece.left_out:
            shown.append(DisplayLine(kind='cut', text=piece.left_out))
        for offset, line in enumerate(piece.text.split('\n')):
            number = piece.number + offset if numbered else None
            is_first = not piece.left_out and offset == 0
            escaped = escape_line(line, ascii_only=ascii_only, mark_end=True)
            shown.append(DisplayLine(kind=kind, text=escaped, number=number, is_first=is_first))
    return shown, len(parts) == 1
