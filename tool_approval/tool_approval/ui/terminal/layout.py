"""Rows of a fixed width: a gutter that says whose words follow, and text that is broken where the row ends.

Nothing is told by a colour alone, and no colour vanishes on a light or a dark background.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tool_approval.display import DisplayLine, LineKind, Span, cell_width, wrap

NARROWEST = 24
"""Chosen, in columns: behind the frame and the widest mark there is room for the widest escape, which is never broken,
and in the bottom edge for the digest."""

_WIDEST_ESCAPE = len('<U+10FFFF>')

Style = Literal['plain', 'frame', 'title', 'strong', 'added', 'removed', 'odd']

_CODES: dict[Style, str] = {
    'plain': '', 'frame': '2', 'title': '1', 'strong': '1', 'added': '32', 'removed': '31', 'odd': '1;35',
}  # fmt: skip
"""Select Graphic Rendition, ECMA-48 section 8.3.117: of the eight colours, those that all common themes keep apart from
both backgrounds. Yellow vanishes on white, blue on black; faint is for the frame alone."""

_SPAN_STYLES: dict[str, Style] = {'escape': 'odd', 'key': 'strong', 'keyword': 'strong'}
_LINE_STYLES: dict[LineKind, Style] = {'added': 'added', 'removed': 'removed', 'cut': 'strong', 'hunk': 'strong'}


@dataclass(frozen=True, kw_only=True)
class Glyphs:
    """What the frame and the gutter are drawn with; each is one column wide."""

    top: str
    side: str
    bottom: str
    line: str
    quote: str
    """Before what somebody else wrote."""
    again: str
    """Before what belongs to the row above."""
    cut: str
    """Before what says that something is left out."""


_UNICODE = Glyphs(top='╭', side='│', bottom='╰', line='─', quote='┊', again='↪', cut='⋮')
_ASCII = Glyphs(top='+', side='|', bottom='+', line='-', quote=':', again='\\', cut='*')


@dataclass(frozen=True)
class Layout:
    """Makes rows."""

    width: int
    """Columns of the terminal, at least `NARROWEST`."""
    color: bool
    """Whether to use colours at all."""
    ascii_only: bool
    """Whether to draw with ASCII alone."""

    @property
    def glyphs(self) -> Glyphs:
        """What the frame and the gutter are drawn with."""
        return _ASCII if self.ascii_only else _UNICODE

    def paint(self, text: str, style: Style) -> str:
        """The text in a style, which ends before the row does."""
        code = _CODES[style]
        return f'\x1b[{code}m{text}\x1b[0m' if self.color and code and text else text

    def edge(self, corner: str, left: str, right: str = '') -> str:
        """The first or the last row of the box: `╭─ left          right`."""
        gap = ' ' * (self.width - 3 - cell_width(left) - cell_width(right)) if right else ''
        return f'{self.paint(corner + self.glyphs.line, "frame")} {self.paint(left, "title")}{gap}{right}'.rstrip()

    def labelled(self, label: str, text: str, *, style: Style = 'plain') -> list[str]:
        """Rows of our own: a label and what it stands before, which never begins a row."""
        return self._rows(f'{label} ', ' ', text, style, 'frame', ())

    def quoted(self, lines: Sequence[DisplayLine]) -> list[str]:
        """Rows of lines, each behind the mark of its kind."""
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
        """The marks before a line, and before what of it is broken into the next rows."""
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
        """The part of a text from `start` to `end`; spans that end with it are taken from the end of `waiting`."""
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
    """A line in rows of so many columns, all but the first behind `indent` and a mark.

    Attack: what goes on at the beginning of a row looks like another choice, or the question (test_prompt.py).
    """
    again = f'{indent}{(_ASCII if ascii_only else _UNICODE).again}'
    parts = wrap(text, max(10, columns - len(again)), max(10, columns))
    # In the narrowest windows, where nothing can be approved, no row has room for an escape.
    return [fitted(f'{again if start else ""}{text[start:end]}', columns) for start, end in parts]


def fitted(text: str, columns: int) -> str:
    """The text, or its beginning and an ellipsis, in so many columns."""
    if cell_width(text) <= columns:
        return text
    text = text[: 2 * columns]
    while text and cell_width(text) > columns - 3:
        text = text[:-1]
    return f'{text}...'
