"""Signs and letters that pass for nothing else where they stand: punctuation of East Asian texts, formulas."""

from __future__ import annotations

import re
from typing import Final

_WIDE_LETTER: Final = (
    '\u3005-\u3007\u3041-\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff'
)

_WIDE_SIGNS: Final = '\u3001\u3002\u3008-\u3011\u3014-\u3019\u301c\u30fb\uff01\uff05\uff08\uff09\uff0c\uff1a\uff1b\uff1f\uff3b\uff3d\uffe5\uff61-\uff65'
"""Without those that, taken for ASCII ones, make what is run seem to be none: quotation marks, a hash, a backslash; and
without what begins options and paths."""

# Attack: the comma or full stop of an address, `example。com` (test_ordinary.py): on neither side is anything else.
_PUNCTUATION: Final = re.compile(
    f"""(?<![^\\s"'{_WIDE_LETTER}])(?:(?<=[{_WIDE_LETTER}])[{_WIDE_SIGNS}]+|[{_WIDE_SIGNS}]+(?=[{_WIDE_LETTER}]))"""
    f"""(?![^\\s"'{_WIDE_LETTER}])"""
)

_UNLIKE: Final = '\u0394\u0398\u039b\u039e\u03a6\u03a8\u03a9\u03b4\u03b8\u03bb\u03be\u03c6\u03c8'
"""Greek letters that look like no Latin ones."""

_SMALL: Final = '\u03b2-\u03b8\u03bb\u03bc\u03be\u03c0\u03c3\u03c4\u03c6-\u03c9'
"""Small Greek letters that, alone, cannot be taken for Latin ones."""

_SYMBOLS: Final = '\u2102\u210d\u2115\u2119\u211a\u211d\u2124\u2460-\u2473'
"""Sets of numbers, and numbers in circles."""

_BEFORE: Final = r'(?<![\w\-./:@~$])'
_AFTER: Final = r'(?![\w\-/@~]|[.:]\S)'
_NAMES: Final = (
    f'[{_SYMBOLS}]|[{_UNLIKE}](?:[A-Za-z]?[0-9]{{0,3}})|[{_SMALL}]_[A-Za-z0-9]{{1,12}}|(?<=[0-9] )\u2212(?= [0-9])'
)
_FORMULA: Final = re.compile(f'{_BEFORE}(?:{_NAMES}){_AFTER}')
_FORMULA_OF_PROSE: Final = re.compile(f'{_BEFORE}(?:{_NAMES}|[\u03b1\u03b3]){_AFTER}')
_ANY: Final = re.compile(f'[{_SYMBOLS}{_UNLIKE}{_SMALL}\u03b1\u03b3\u2212]')


def without_punctuation(text: str) -> str:
    """A text without East Asian punctuation that stands in a text of such a script."""
    return _PUNCTUATION.sub('', text)


def without_formulas(text: str, *, is_code: bool) -> str:
    """A text without the names that formulas give what they are about, where those stand alone.

    Args:
        text: Anything.
        is_code: Whether a program may read it. A name that looks like a Latin letter at a glance then stays.
    """
    return (_FORMULA if is_code else _FORMULA_OF_PROSE).sub(' ', text) if _ANY.search(text) else text
