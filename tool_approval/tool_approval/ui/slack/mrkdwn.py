"""Text in Slack's markup, in which nothing that was quoted can become a mention, a link or a format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from tool_approval.display import OURS, DisplayLine, LineKind, escape_line

LONGEST_SECTION = 3000
"""Source: Slack's reference of the block `section`. Characters of its text."""

_ROOM = 2_800
"""Chosen: leaves room for fences and a label in each section."""

_LONGEST_PIECE = 900
"""Chosen: a line that is longer is broken, so that sections can be filled."""

LONGEST_NAME = 80
"""Chosen, in characters: of a longer name the beginning is shown."""

# Source: Slack's "Formatting text for app surfaces": these three are all that begins a mention, a link or an entity.
_ENTITIES = {'&': '&amp;', '<': '&lt;', '>': '&gt;'}
_SIGNS: dict[LineKind, str] = {'added': '+', 'removed': '-', 'hunk': '@'}
_FENCE = re.compile('`{3,}')

Line = tuple[bool, str]
"""Whether the words are ours, and a line of them, escaped as `display` does but not yet for Slack."""


def plain(text: str) -> str:
    """A text as Slack draws it, character for character; formats such as `*` still count."""
    return ''.join(_ENTITIES.get(char, char) for char in text)


def code(text: str) -> str:
    """Hostile text on one line, as code. Nothing in it ends the code."""
    cut = text if len(text) <= LONGEST_NAME else f'{text[:LONGEST_NAME]}...'
    return f'`{plain(escape_line(cut, also="`", mark_end=True))}`' if cut else '`(empty)`'


def drawn(lines: Iterable[DisplayLine]) -> Iterator[Line]:
    """The lines of a request, each that is quoted behind a sign."""
    for line in lines:
        if line.kind in OURS:
            yield True, line.text
        elif line.kind == 'command':
            yield False, f'{"$" if line.is_first else ">"} {line.text}'
        else:
            yield False, f'{_SIGNS.get(line.kind, "|")} {line.text}'


def sections(lines: Iterable[Line]) -> list[str]:
    """The texts of as many sections as it takes, each within Slack's limit.

    Quoted text is in fences that nothing in it can close; our own words are between them.
    """
    done: list[str] = []
    pieces: list[Line] = []
    size = 0
    for is_ours, line in lines:
        for piece in _pieces(_without_fences(line)):
            # A change between quoted and own lines costs the fences.
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
    """At most so many sections, and whether they are all. The last one always stays: what matters may be at the end."""
    if len(texts) <= most:
        return list(texts), True
    left_out = len(texts) - most
    note = f'_[... {left_out:,} more part{"s" if left_out > 1 else ""} of this are not shown here; press View full]_'
    return [*texts[: most - 1], note, texts[-1]], False


def _rendered(pieces: Sequence[Line]) -> str:
    parts: list[str] = []
    for is_ours, group in groupby(pieces, key=lambda piece: piece[0]):
        body = '\n'.join(text for _, text in group)
        parts.append(body if is_ours else f'```\n{body}\n```')
    return '\n'.join(parts)


def _without_fences(line: str) -> str:
    # Attack: text that closes the fence, and goes on as if it were ours
    # (test_mrkdwn.py: test_nothing_quoted_leaves_its_fence).
    return _FENCE.sub(lambda run: '<U+0060>' * len(run[0]), line)


def _pieces(line: str) -> Iterator[str]:
    """The line escaped for Slack, in pieces that no entity is broken by."""
    piece, size = '', 0
    for char in line:
        entity = _ENTITIES.get(char, char)
        size += _size(entity)
        if size > _LONGEST_PIECE:
            yield piece
            # Broken lines are seen to go on.
            piece, size = '… ', 2 + _size(entity)
        piece += entity
    yield piece


def _size(text: str) -> int:
    # Slack does not say what it counts; this counts a character beyond 16 bits as the two units of UTF-16.
    return len(text) + sum(char > '\uffff' for char in text)
