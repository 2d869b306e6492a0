"""The lines of a request as markup: what is quoted stands behind a gutter, in a column that it cannot leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from tool_approval.display import OURS, DisplayLine, LineKind

from .html import Html, element, joined

_SIGNS: Mapping[LineKind, str] = {'added': '+', 'removed': '−', 'cut': '⋮'}
_SPOKEN: Mapping[LineKind, str] = {'added': 'added: ', 'removed': 'removed: ', 'cut': 'left out: '}
"""For people who hear the page: colours and signs say nothing to them."""


_ROOM = 200_000
"""Chosen, in characters: of a request that is shown whole, a page has so many, and at least one line."""

_ROWS = 2_000
"""Chosen: a page has at most so many lines."""


def pages_of(lines: Sequence[DisplayLine]) -> list[range]:
    """The lines of each page, by their index, where all of a request is shown; at least one page."""
    starts, room = [0], _ROOM
    for index, line in enumerate(lines):
        room -= len(line.text)
        if index > starts[-1] and (room < 0 or index - starts[-1] == _ROWS):
            starts.append(index)
            room = _ROOM - len(line.text)
    return [range(start, end) for start, end in pairwise([*starts, len(lines)])]


def content_of(lines: Sequence[DisplayLine], label: str) -> Html:
    """Lines, each in a row of its own.

    Args:
        lines: What to draw.
        label: What they are, for people who hear the page.
    """
    has_numbers = any(line.number is not None for line in lines)
    rows = [_row(line, has_numbers=has_numbers) for line in lines]
    return element('div', *rows, class_='lines', role='group', aria_label=label)


def _row(line: DisplayLine, *, has_numbers: bool) -> Html:
    if line.kind == 'meta':
        return element('p', line.text, class_='row ours meta')
    number = element('span', '' if line.number is None else str(line.number), class_='number') if has_numbers else None
    sign = element('span', _sign(line), class_='sign', aria_hidden='true')
    spoken = _SPOKEN.get(line.kind)
    text = element(
        'span' if line.kind in OURS else 'code',
        None if spoken is None else element('span', spoken, class_='spoken'),
        *_spanned(line),
        class_='text',
    )
    owner = ' ours' if line.kind in OURS else ''
    return element('div', number, sign, text, class_=f'row {line.kind}{owner}')


def _sign(line: DisplayLine) -> str:
    if line.kind == 'command':
        return '$' if line.is_first else '>'
    return _SIGNS.get(line.kind, '│')


def _spanned(line: DisplayLine) -> Sequence[str]:
    parts: list[str] = []
    at = 0
    for span in line.spans:
        parts += [line.text[at : span.start], element('span', line.text[span.start : span.end], class_=span.role)]
        at = span.end
    return [joined(*parts), line.text[at:]]
