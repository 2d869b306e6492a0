"""What a UI draws: one line after the other, already escaped, without colours or frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .escape import ESCAPE

LineKind = Literal['meta', 'cut', 'heading', 'text', 'code', 'command', 'added', 'removed', 'context', 'hunk', 'value']
"""`meta` and `cut` are this project's own words; all other kinds quote what a model or a tool wrote, and a UI must draw
them so that they cannot be taken for its own."""

OURS: frozenset[LineKind] = frozenset({'meta', 'cut'})
"""The kinds that are this project's own words; a UI draws all others as quoted."""


@dataclass(frozen=True)
class Span:
    """A part of a line's text that is drawn differently."""

    start: int
    """Index of its first character."""
    end: int
    """Index after its last character."""
    role: Literal['escape', 'key', 'string', 'keyword']
    """What it is."""


@dataclass(frozen=True, kw_only=True)
class DisplayLine:
    """One line to draw."""

    kind: LineKind
    """What it is."""
    text: str
    """Escaped: no character in it does anything but draw itself."""
    number: int | None = None
    """Its number in the file or text it is of, from 1; a removed line's in the old file."""
    is_first: bool = True
    """Of a `command`: whether the command begins here."""
    marks: tuple[Span, ...] = ()
    """Parts found while the line was made, in order and apart from each other."""

    @property
    def spans(self) -> Sequence[Span]:
        """The parts to draw differently: what was found while the line was made, and its escapes, in order."""
        if self.kind in OURS:
            return self.marks
        escapes = [Span(*match.span(), 'escape') for match in ESCAPE.finditer(self.text)]
        apart = [mark for mark in self.marks if all(mark.end <= e.start or e.end <= mark.start for e in escapes)]
        return sorted([*escapes, *apart], key=lambda span: span.start)
