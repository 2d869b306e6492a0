"""Lay out a request for a chat: quoted text is in code fences, which it cannot close."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from .escape import escape_line
from .fact_texts import LONGEST_NAME
from .lines import OURS, DisplayLine, LineKind

_LONGEST_PIECE = 900
"""Lines are split into pieces of at most this many characters, because short pieces fill sections better."""

_SIGNS: dict[LineKind, str] = {'added': '+', 'removed': '-', 'hunk': '@'}
_FENCE = re.compile('`{3,}')

Line = tuple[bool, str]
"""A flag, and a text that is not yet escaped for the chat's markup. The flag is `False` if the text is quoted."""


def inline_code(text: str) -> str:
    """Render untrusted text as one line of inline code. The text cannot close the inline code."""
    cut = text if len(text) <= LONGEST_NAME else f'{text[:LONGEST_NAME]}...'
    return f'`{escape_line(cut, also="`", mark_end=True)}`' if cut else '`(empty)`'


def drawn(lines: Iterable[DisplayLine]) -> Iterator[Line]:
    """Yield the lines of a request, with a mark before each quoted line."""
    for line in lines:
        if line.kind in OURS:
            yield True, line.text
        elif line.kind == 'command':
            yield False, f'{"$" if line.is_first else ">"} {line.text}'
        else:
            yield False, f'{_SIGNS.get(line.kind, "|")} {line.text}'


def sections(
    lines: Iterable[Line], *, room: int, ours: Mapping[str, str] | None = None, quoted: Mapping[str, str] | None = None
) -> list[str]:
    """Divide lines among sections, and return the sections' texts.

    Quoted lines are in code fences that the quoted text cannot close.

    Args:
        lines: The lines in order.
        room: Maximum number of characters of a section, in UTF-16 units. Fences may take 200 more.
        ours: Escapes of the chat's markup, by character, for lines that are not quoted.
        quoted: The same for lines in fences.
    """
    done: list[str] = []
    pieces: list[Line] = []
    size = 0
    for is_ours, line in lines:
        for piece in _pieces(_without_fences(line), (ours if is_ours else quoted) or {}):
            # Switching between quoted and other lines adds fences.
            cost = _size(piece) + (1 if pieces and pieces[-1][0] is is_ours else 12)
            if size + cost > room:
                done.append(_rendered(pieces))
                pieces, size = [], 0
            pieces.append((is_ours, piece))
            size += cost
    if pieces:
        done.append(_rendered(pieces))
    return done


def cut(texts: Sequence[str], most: int, note: str) -> tuple[list[str], bool]:
    """Return at most `most` sections, and whether all sections were kept. The last section is always kept, because the
    end of the text may matter most. `note` stands for the others; in it, `{}` becomes a text such as `2 more parts`.
    """
    if len(texts) <= most:
        return list(texts), True
    left_out = len(texts) - most
    told = note.format(f'{left_out:,} more part{"s" if left_out > 1 else ""}')
    return [*texts[: most - 1], told, texts[-1]], False


def _rendered(pieces: Sequence[Line]) -> str:
    parts: list[str] = []
    for is_ours, group in groupby(pieces, key=lambda piece: piece[0]):
        body = '\n'.join(text for _, text in group)
        parts.append(body if is_ours else f'```\n{body}\n```')
    return '\n'.join(parts)


def _without_fences(line: str) -> str:
    # Attack: quoted text closes its fence, and the rest looks like a text of this package
    # (test_fenced.py: test_nothing_quoted_leaves_its_fence).
    return _FENCE.sub(lambda run: '<U+0060>' * len(run[0]), line)


def _pieces(line: str, escapes: Mapping[str, str]) -> Iterator[str]:
    """Escape a line for the chat, and split it into pieces without breaking an escape."""
    piece, size = '', 0
    for char in line:
        escaped = escapes.get(char, char)
        size += _size(escaped)
        if size > _LONGEST_PIECE:
            yield piece
            # Marks the piece as a continuation.
            piece, size = '… ', 2 + _size(escaped)
        piece += escaped
    yield piece


def _size(text: str) -> int:
    # Chats do not document how they count; this counts UTF-16 units.
    return len(text) + sum(char > '\uffff' for char in text)
