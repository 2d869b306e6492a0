"""Render text in Slack's markup so that quoted text cannot become a mention, a link or formatting."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from tool_approval.display import OURS, DisplayLine, LineKind, escape_line

LONGEST_SECTION = 3000
"""Maximum number of characters in the text of a `section` block. Source: Slack's reference."""

_ROOM = 2_800
"""Maximum number of content characters in a section. The rest of the section is for fences and a label."""

_LONGEST_PIECE = 900
"""Lines are split into pieces of at most this many characters, because short pieces fill sections better."""

LONGEST_NAME = 80
"""Number of characters after which a name is cut off."""

# Source: Slack's "Formatting text for app surfaces": only these three begin a mention, a link or an entity.
_ENTITIES = {'&': '&amp;', '<': '&lt;', '>': '&gt;'}
_SIGNS: dict[LineKind, str] = {'added': '+', 'removed': '-', 'hunk': '@'}
_FENCE = re.compile('`{3,}')

Line = tuple[bool, str]
"""A flag, and a text that is not yet escaped for Slack. The flag is `False` if the text is quoted."""


def plain(text: str) -> str:
    """Escape text for Slack. Formatting characters such as `*` still have an effect."""
    return ''.join(_ENTITIES.get(char, char) for char in text)


def code(text: str) -> str:
    """Render untrusted text as one line of inline code. The text cannot close the inline code."""
    cut = text if len(text) <= LONGEST_NAME else f'{text[:LONGEST_NAME]}...'
    return f'`{plain(escape_line(cut, also="`", mark_end=True))}`' if cut else '`(empty)`'


def drawn(lines: Iterable[DisplayLine]) -> Iterator[Line]:
    """Yield the lines of a request, with a mark before each quoted line."""
    for line in lines:
        if line.kind in OURS:
            yield True, line.text
        elif line.kind == 'command':
            yield False, f'{"$" if line.is_first else ">"} {line.text}'
        else:
            yield False, f'{_SIGNS.get(line.kind, "|")} {line.text}'


def sections(lines: Iterable[Line]) -> list[str]:
    """Divide lines among sections, and return the sections' texts. Each text is within Slack's limit.

    Quoted lines are in code fences that the quoted text cannot close.
    """
    done: list[str] = []
    pieces: list[Line] = []
    size = 0
    for is_ours, line in lines:
        for piece in _pieces(_without_fences(line)):
            # Switching between quoted and other lines adds fences.
            cost = _size(piece) + (1 if pieces and pieces[-1][0] is is_ours else 12)
            if size + cost > _ROOM:
                done.append(_rendered(pieces))
                pieces, size = [], 0
            pieces.append((is_ours, piece))
            size += cost
    if pieces:
        done.append(_rendered(pieces))
    return done


def cut(texts: Sequence[str], most: int) -> tuple[list[str], bool]:
    """Return at most `most` sections, and whether all sections were kept. The last section is always kept, because the
    end of the text may matter most.
    """
    if len(texts) <= most:
        return list(texts), True
    left_out = len(texts) - most
    note = f'_[... {left_out:,} more part{"s" if left_out > 1 else ""} not shown here; press View full request]_'
    return [*texts[: most - 1], note, texts[-1]], False


def _rendered(pieces: Sequence[Line]) -> str:
    parts: list[str] = []
    for is_ours, group in groupby(pieces, key=lambda piece: piece[0]):
        body = '\n'.join(text for _, text in group)
        parts.append(body if is_ours else f'```\n{body}\n```')
    return '\n'.join(parts)


def _without_fences(line: str) -> str:
    # Attack: quoted text closes its fence, and the rest looks like a text of this package
    # (test_mrkdwn.py: test_nothing_quoted_leaves_its_fence).
    return _FENCE.sub(lambda run: '<U+0060>' * len(run[0]), line)


def _pieces(line: str) -> Iterator[str]:
    """Escape a line for Slack, and split it into pieces without breaking an entity."""
    piece, size = '', 0
    for char in line:
        entity = _ENTITIES.get(char, char)
        size += _size(entity)
        if size > _LONGEST_PIECE:
            yield piece
            # Marks the piece as a continuation.
            piece, size = '… ', 2 + _size(entity)
        piece += entity
    yield piece


def _size(text: str) -> int:
    # Slack does not document how it counts; this counts UTF-16 units.
    return len(text) + sum(char > '\uffff' for char in text)
