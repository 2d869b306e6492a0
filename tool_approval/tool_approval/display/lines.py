"""Represent the lines that a UI draws, already escaped and without colours or frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .escape import ESCAPE

LineKind = Literal['meta', 'cut', 'heading', 'text', 'code', 'command', 'added', 'removed', 'context', 'hunk', 'value']
"""Kind of a line. The text of `meta` and `cut` lines comes from this project. All other lines quote a model or a tool.
A UI must draw quoted lines so that an approver cannot mistake them for the UI's own lines."""

OURS: frozenset[LineKind] = frozenset({'meta', 'cut'})
"""Kinds of lines whose text comes from this project. A UI draws lines of all other kinds as quoted text."""


@dataclass(frozen=True)
class Span:
    """A part of a line's text that is drawn differently from the rest."""

    start: int
    """Index of the span's first character in the line."""
    end: int
    """Index after the span's last character in the line."""
    role: Literal['escape', 'key', 'string', 'keyword', 'literal', 'comment']
    """Kind of the part. `keyword`, `literal` and `comment` are parts of code."""


@dataclass(frozen=True, kw_only=True)
class DisplayLine:
    """One line to draw."""

    kind: LineKind
    """Kind of the line."""
    text: str
    """Text with escapes for characters that are invisible or unclear, or that affect other characters."""
    number: int | None = None
    """Number of the line in its file or text, counted from 1. For a removed line, the number in the old file."""
    is_first: bool = True
    """For a line of kind `command`, whether the command begins here."""
    marks: tuple[Span, ...] = ()
    """Parts that were marked when the line was made, in order and without overlap."""

    @property
    def spans(self) -> Sequence[Span]:
        """Parts that are drawn differently from the rest: marks and escapes, from left to right."""
        if self.kind in OURS:
            return self.marks
        escapes = [Span(*match.span(), 'escape') for match in ESCAPE.finditer(self.text)]
        apart = [mark for mark in self.marks if all(mark.end <= e.start or e.end <= mark.start for e in escapes)]
        return sorted([*escapes, *apart], key=lambda span: span.start)
