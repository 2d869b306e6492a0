"""Long gaps, behind which the rest of a text is overlooked."""

from __future__ import annotations

import re
from typing import Final

_SCREEN: Final = 80
"""Columns of an ordinary terminal. In a table, what stands behind a gap but within them is seen."""

_HIGH: Final = '\n' * 20
"""Chosen: most of a screen."""

_TAB: Final = 4
"""Columns that a tab is shown as."""

_WIDE: Final = 60
"""Chosen, in columns: as many as no text has between two words."""

_MOST: Final = 2_000
"""Chosen: a text with more long runs of blanks is one of gaps."""

_GAPS: Final = ((' ' * _WIDE, re.compile('[^ ]'), 1), ('\t' * (_WIDE // _TAB), re.compile('[^\t]'), _TAB))
"""What runs of blanks and of tabs have in them, what ends them, and the columns of each character."""


def has_gap(text: str, *, is_code: bool) -> bool:
    """Whether a text goes on after so many blank lines, or in a line after so many blanks, that nobody expects more.

    Indentation and the blanks of a table that fit a screen are none of them.

    Args:
        text: Anything.
        is_code: Whether a program may read it: then there are no tables, and the first line is not indented.
    """
    if _HIGH in text.rstrip('\n'):
        return True
    for least, other, columns in _GAPS:
        at = text.find(least)
        for _ in range(_MOST):
            after = other.search(text, at) if at >= 0 else None
            if after is None:
                break
            if after[0] != '\n' and _is_long(text, at, after.start(), columns, is_code=is_code):
                return True
            at = text.find(least, after.start())
        else:
            return True
    return False


def _is_long(text: str, start: int, end: int, columns: int, *, is_code: bool) -> bool:
    line = text.rfind('\n', 0, start) + 1
    is_indentation = 0 < line == start
    return (is_code and not is_indentation) or start - line + (end - start) * columns > _SCREEN
