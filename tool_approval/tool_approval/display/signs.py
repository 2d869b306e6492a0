"""Signs that pass for those of ASCII: a division slash for a slash, a minus for a hyphen, a ratio for a colon.

Which they are is read from the names that Unicode gives its characters, so each script's comma and each kind of dash is
found without a list of them.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

_ALIKE: Final = re.compile(
    r'(?:'
    r'SOLIDUS|SLASH|BACKSLASH|DIAGONAL|'  # / and \
    r'COLON|RATIO|COMMA|STOP|\bDOT|BULLET OPERATOR|'  # ; : , .
    r'HYPHEN|DASH|MINUS|HORIZONTAL|\bLINE|\bBAR|DIVIDES|DANDA|VERTICAL|'  # - | _
    r'QUOTATION|APOSTROPHE|PRIME|GRAVE ACCENT|ACUTE ACCENT|GERESH|GERSHAYIM|'  # ' " `
    r'ASTERISK|TILDE|CIRCUMFLEX(?: ACCENT)?|CARET|ARROWHEAD|'  # * ~ ^
    r'PARENTHESIS|BRACKET|'  # ( [ { <
    r'EXCLAMATION|QUESTION|EQUALS|AMPERSAND|DOLLAR|PERCENT|PLUS|NUMBER|LESS-THAN|GREATER-THAN|MULTIPLICATION'
    r')(?: (?:SIGN|OPERATOR|MARK|ORNAMENT|SYMBOL|EXTENSION|BULLET))*\Z'
)
"""How the names of such characters end."""

_UNLIKE: Final = re.compile(
    r'\b(?:INVERTED|PLUS-MINUS|REVERSED (?:QUESTION|TILDE)|CIRCLED|SQUARED?|QUAD|TONE|ARROW|HARPOON|WITH|ABOVE|BELOW|OVER|OR|NOT'
    r'|TOP|BOTTOM|TRIANGLE|WHITE|DOUBLE (?:ANGLE|DANDA)|TURNSTILE|SUPERSCRIPT|SUBSCRIPT|MUSICAL|SIGNWRITING|BLOCK)\b'
)
"""Words of names that end so although nobody takes the character for one of ASCII."""

_PICTURES: Final = re.compile(
    'BOX DRAWINGS (?:LIGHT|HEAVY|DOUBLE) (?:HORIZONTAL|VERTICAL)$|ASTERISK|SOLIDUS|(?:VERTICAL|BROKEN) BAR|ORNAMENT'
)
"""Of the pictures, which are of the same category as emoji: those that are drawn as signs."""

_OTHERS: Final = frozenset(
    '\u01c0\u01c2\u01c3\u2d51\ua778\ua78b\ua78c'  # letters that are drawn as | = ! & '
    '\u02be\u02bf\u05c0\u05c3\u0609\u066a\u066b\u066d\u16ec\u1735\u2027\u2052\u214b\u2731\u2a74\ufe30\u00b8'
    '\u2025\u2026\u23d0\u2571\u2572\u2039\u203a\u223c\u223d\u2795\u2796\u2cc6\ua60e\u1803\u0701\u0702\u0703\u0704\u06d4'
    '\u2202\u212e\u2228\u222a\u22a4\u2373\u2374\u237a'  # for letters: d e v U T i p a
)
"""Those whose names say something else."""

_TYPOGRAPHY: Final = frozenset(
    '\u00b7\u00d7\u2010\u2011\u2013\u2014\u2015\u2018\u2019\u201a\u201c\u201d\u201e\u2026\u2032\u2033\u2039\u203a'
)
"""What longer texts are full of: middle dots, dashes, curly quotes, ellipses, primes."""

EAST_ASIAN: Final = (
    '\u1100-\u11ff\u2e80-\ua4cf\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff'
)
"""Ranges of characters, for a set in a pattern."""

STROKES: Final = '\u3007\u30a8\u30c8\u30cb\u30ce\u30cf\u30ed\u30fc\u3147\u3161\u3163\u4e00\u4e28\u4e36\u4e3f\u4e59\u4e85\u4e8c\u5341\u535c\u53e3\u5de5'
"""East Asian letters of a stroke or two, which alone among Latin ones are drawn as - | / = O I and others."""

LONE_STROKES: Final = re.compile(f'(?<![{EAST_ASIAN}])[{STROKES}]+(?![{EAST_ASIAN}])')
"""Finds them there."""


@lru_cache(maxsize=4096)
def is_sign(char: str) -> bool:
    """Whether a character beyond ASCII has the shape of a sign of ASCII."""
    if char in _OTHERS:
        return True
    category = unicodedata.category(char)
    if category[0] not in 'PS' and category != 'Lm':
        return False
    name = unicodedata.name(char, '')
    if category == 'So' and (_PICTURES.search(name) is None or unicodedata.east_asian_width(char) == 'W'):
        return False
    return _ALIKE.search(name) is not None and _UNLIKE.search(name) is None


def is_typography(char: str) -> bool:
    """Whether such a sign is an ordinary one of longer texts: typography, frames of tables, East Asian punctuation."""
    return char in _TYPOGRAPHY or '\u2500' <= char <= '\u257f' or unicodedata.east_asian_width(char) in 'WF'
