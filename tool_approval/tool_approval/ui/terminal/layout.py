"""Lay out rows of fixed width, with a gutter that marks quoted text.

Colours are readable on light and dark backgrounds, and no information depends on them alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tool_approval.display import DisplayLine, LineKind, Span, cell_width, wrap

NARROWEST = 24
"""Minimum width of a terminal, in columns. A narrower row has no room for the digest or the longest escape."""

_WIDEST_ESCAPE = len('<U+10FFFF>')

Style = Literal['plain', 'frame', 'title', 'strong', 'added', 'removed', 'odd', 'literal', 'comment']

_CODES: dict[Style, str] = {
    'plain': '', 'frame': '2', 'title': '1', 'strong': '1', 'added': '32', 'removed': '31', 'odd': '1;35',
    'literal': '36', 'comment': '3',
}  # fmt: skip
"""Parameters of Select Graphic Rendition (ECMA-48, section 8.3.117). Yellow and blue are not used: yellow is too faint
on white, and blue on black."""

_SPAN_STYLES: dict[str, Style] = {
    'escape': 'odd', 'key': 'strong', 'keyword': 'strong', 'literal': 'literal', 'comment': 'comment',
}  # fmt: skip
_LINE_STYLES: dict[LineKind, Style] = {'added': 'added', 'removed': 'removed', 'cut': 'strong', 'hunk': 'strong'}


@dataclass(frozen=True, kw_only=True)
class Glyphs:
    """Characters of the frame and the gutter, each one column wide."""

    top: str
    side: str
    bottom: str
    line: str
    quote: str
    """Character that precedes quoted text."""
    again: str
    """Character that precedes each continuation row of a line."""
    cut: str
    """Character that precedes a notice about text that was left out."""


_UNICODE = Glyphs(top='╭', side='│', bottom='╰', line='─', quote='┊', again='↪', cut='⋮')
_ASCII = Glyphs(top='+', side='|', bottom='+', line='-', quote=':', again='\\', cut='*')


@dataclass(frozen=True)
class Layout:
    """Lays out the rows of a box."""

    width: int
    """Columns of the terminal, at least `NARROWEST`."""
    color: bool
    """Whether to use colours."""
    ascii_only: bool
    """Whether to draw only with ASCII."""

    @property
    def glyphs(self) -> Glyphs:
        """Characters of the frame and the gutter."""
        return _ASCII if self.ascii_only else _UNICODE

    def paint(self, text: str, style: Style) -> str:
        """Return the text in a style, with a reset at the end."""
        code = _CODES[style]
        return f'\x1b[{code}m{text}\x1b[0m' if self.color and code and text else text

    def edge(self, corner: str, left: str, right: str = '') -> str:
        """Return the first or last row of the box: `╭─ left          right`."""
        gap = ' ' * (self.width - 3 - cell_width(left) - cell_width(right)) if right else ''
        title = self.paint(left if right else left.rstrip(), 'title')
        return f'{self.paint(corner + self.glyphs.line, "frame")} {title}{gap}{right}'.rstrip()

    def labelled(self, label: str, text: str, *, style: Style = 'plain') -> list[str]:
        """Return the rows of a text. The label precedes the first row, and a mark precedes each continuation row."""
        return self._rows(f'{label} ', ' ', text, style, 'frame', ())

    def quoted(self, lines: Sequence[DisplayLine]) -> list[str]:
        """Return the rows of displayed lines, with marks that show the kind of each line."""
        digits = max((len(str(line.number)) for line in lines if line.number is not None), default=0)
        if digits + len('|  : ') > self.width - _WIDEST_ESCAPE:
            digits = 0
        rows: list[str] = []
        for line in lines:
            if line.kind == 'meta':
                rows += self._rows('', ' ', line.text, 'plain', 'plain', ())
                continue
            number = '' if line.number is None or not digits else str(line.number)
            column = f'{number:>{digits}} ' if digits else ''
            sign, after = self._signs(line)
            style = _LINE_STYLES.get(line.kind, 'plain')
            gutter_style = 'frame' if style == 'plain' else style
            again = f'{" " * len(column)}{after}'
            rows += self._rows(f'{column}{sign} ', again, line.text, style, gutter_style, line.spans)
        return rows

    def _signs(self, line: DisplayLine) -> tuple[str, str]:
        """Return the marks before the first row of a line and before its continuation rows."""
        match line.kind:
            case 'command':
                return ('$' if line.is_first else '>'), ' '
            case 'added':
                return '+', '+'
            case 'removed':
                return '-', '-'
            case kind:
                sign = self.glyphs.cut if kind == 'cut' else self.glyphs.quote
                return sign, sign

    def _rows(
        self, gutter: str, again: str, text: str, style: Style, gutter_style: Style, spans: Sequence[Span]
    ) -> list[str]:
        edge = self.paint(self.glyphs.side, 'frame')
        rows: list[str] = []
        waiting = list(spans)[::-1]
        for start, end in wrap(text, self.width - len(again) - 3, self.width - len(gutter) - 2):
            before = f'{again}{self.glyphs.again}' if rows else gutter
            row = f'{edge} {self.paint(before, gutter_style)}{self._spanned(text, start, end, style, waiting)}'
            rows.append(row if start < end else f'{edge} {self.paint(before.rstrip(), gutter_style)}'.rstrip())
        return rows

    def _spanned(self, text: str, start: int, end: int, style: Style, waiting: list[Span]) -> str:
        """Return the styled part of a text from `start` to `end`, and remove the finished spans from `waiting`."""
        parts: list[str] = []
        at = start
        while waiting and waiting[-1].start < end:
            span = waiting[-1]
            begin, stop = max(span.start, at), min(span.end, end)
            parts += [
                self.paint(text[at:begin], style),
                self.paint(text[begin:stop], _SPAN_STYLES.get(span.role, style)),
            ]
            at = stop
            if span.end > end:
                break
            waiting.pop()
        return ''.join([*parts, self.paint(text[at:end], style)])


def continued(text: str, columns: int, *, indent: str, ascii_only: bool) -> list[str]:
    """Break a line into rows, and put `indent` and a mark before each continuation row.

    Without an indent, a continuation row could look like another choice, or like the question (test_prompt.py).
    """
    again = f'{indent}{(_ASCII if ascii_only else _UNICODE).again}'
    parts = wrap(text, max(10, columns - len(again)), max(10, columns))
    # Rows too narrow for an escape are cut; nothing can be approved in such a window.
    return [fitted(f'{again if start else ""}{text[start:end]}', columns) for start, end in parts]


def fitted(text: str, columns: int) -> str:
    """Return the text, cut with an ellipsis to fit into `columns`."""
    if cell_width(text) <= columns:
        return text
    text = text[: 2 * columns]
    while text and cell_width(text) > columns - 3:
        text = text[:-1]
    return f'{text}...'
