"""Colours and glyphs. Nothing is told by a colour alone, and none vanishes on a light or a dark background."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Style = Literal['plain', 'frame', 'title', 'strong', 'added', 'removed', 'odd', 'string']

_CODES: dict[Style, str] = {
    'plain': '', 'frame': '2', 'title': '1', 'strong': '1', 'added': '32', 'removed': '31', 'odd': '1;35',
    'string': '32',
}  # fmt: skip
"""Select Graphic Rendition, ECMA-48 section 8.3.117: of the eight colours, those that all common themes keep apart from
both backgrounds. Yellow vanishes on white, blue on black; faint is for the frame alone."""


@dataclass(frozen=True)
class Paint:
    """Puts colours around text, each ended before the row ends."""

    is_on: bool
    """Whether to use colours at all."""

    def __call__(self, text: str, style: Style) -> str:
        """The text in a style."""
        code = _CODES[style]
        return f'\x1b[{code}m{text}\x1b[0m' if self.is_on and code and text else text


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


UNICODE = Glyphs(top='╭', side='│', bottom='╰', line='─', quote='┊', again='↪', cut='⋮')
ASCII = Glyphs(top='+', side='|', bottom='+', line='-', quote=':', again='\\', cut='*')
