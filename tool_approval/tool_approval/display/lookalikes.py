"""Characters that pass for others: a Cyrillic letter in an English word, a Greek question mark for a semicolon."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

FOREIGN: Final = frozenset({
    'ARMENIAN', 'CARIAN', 'CHEROKEE', 'COPTIC', 'CYRILLIC', 'DESERET', 'GEORGIAN', 'GLAGOLITIC', 'GOTHIC', 'GREEK',
    'LISU', 'LYCIAN', 'LYDIAN', 'OLD', 'OSAGE', 'RUNIC', 'TIFINAGH', 'VAI', 'WARANG',
})  # fmt: skip
"""Scripts, by the first word of their characters' names, that have letters with the shapes of Latin ones."""

LATIN_SHAPES: Final = frozenset(
    'АВЕЅІЈКМНОРСТУХаеѕіјорсухһԁԛԝԌԍҮүӏӀѴѵЗзЬьб'  # Cyrillic
    'ΑΒΕΖΗΙΚΜΝΟΡΤΥΧανοικρυγϲϳϹ'  # Greek
    'ՍՏՕօոսցհյզգԼԾ'  # Armenian
    'ᎪᏴᏟᎠᎬᏀᎻᎫᏦᏞᎷᏢᏒᏚᎢᏙᎳᏃᎥᏂᏏᏊ'  # Cherokee
    'ⲀⲂⲈⲎⲒⲔⲘⲚⲞⲢⲤⲦⲨⲬⲟⲣⲥ'  # Coptic
    'ꓐꓑꓓꓔꓖꓗꓙꓚꓝꓞꓟꓠꓡꓢꓣꓦꓧꓨꓪꓫꓬꓮꓰꓲꓳꓴ'  # Lisu
)
"""Letters that nobody can tell from Latin ones."""

_SIGNS: Final = re.compile(
    '['
    '\u2010-\u2015\u2043\u2212\u02d7\u06d4\u1806\u2e3a\u2e3b\u2500\u2501\u4e00'  # for -
    '\u2018-\u201f\u2032-\u2037\u00b4\u02b9-\u02bf\u02c8\u02ca\u02cb\u02dd\u02ee\u05f3\u05f4\ua78b\ua78c'  # for ' " `
    '\u2044\u2215\u29f8\u2571\u2216\u29f5\u29f9\u2572\u1735\u2cc6'  # for / and \
    '\u2223\u01c0\u2502\u2503\u05c0\u0964\u23d0\u2758\u2759'  # for |
    '\u2236\ua789\u02d0\u02f8\u0589\u05c3\u0703\u0704\u16ec\ufe30\u1803'  # for :
    '\u037e\u061b\u204f'  # for ;
    '\u2024\u0660\u06f0\u0701\u0702\u2027\u2219\u22c5\ua60e\u3002'  # for .
    '\u060c\u066b\u201a\u00b8\u3001'  # for ,
    '\u2217\u204e\u066d\u2731'  # for *
    '\u02c6\u02dc\u223c\u223d\u2053\u301c\u02c4'  # for ^ and ~
    '\u2039\u203a\u276e\u276f\u02c2\u02c3\u3008\u3009\u2329\u232a\u27e8\u27e9'  # for < and >
    '\u01c3\u2d51\u01c2\u2a74\ua778\u214b\u2768-\u2775\u2795\u2796\u2052\u0609\u066a\u2202'  # for ! = & ( ) { } + - %
    ']'
)
"""Signs with the shapes of those that mean something to a shell."""

_UNUSUAL_LATIN: Final = re.compile(
    '[\u0131\u017f\u0180-\u0183\u01bf-\u01c3\u0237\u0250-\u02af\u1d00-\u1dbf\u2c60-\u2c7f\ua720-\ua7ff\uab30-\uab6f]'
)

_WORD: Final = re.compile(r'[^\W\d_A-Za-z]{2,}')
_TOUCHES_BEFORE: Final = re.compile(r'(?:[A-Za-z0-9]|[A-Za-z0-9_][-._/:]{1,3})\Z')
_TOUCHES_AFTER: Final = re.compile(r'[A-Za-z0-9]|[-._/:]{1,3}[A-Za-z0-9_]')


def look_alikes(text: str, chars: frozenset[str], *, is_strict: bool) -> list[str]:
    """Characters of a text that pass for others there, by code point.

    Letters count where they stand in one word with Latin letters, or where all letters of such scripts that there are
    look like Latin ones: text that is simply written in another script is none of it. In commands, names and paths,
    so do words of only such letters that are part of something Latin, as of an address.

    Args:
        text: Anything.
        chars: Its characters.
        is_strict: Whether signs such as curly quotes and long dashes count, as in commands, names and paths. In longer
            texts they are just typography.
    """
    beyond = {char for char in chars if not char.isascii()}
    found = {char for char in beyond if _is_compatible(char, is_strict) or (is_strict and _SIGNS.match(char))}
    letters = {char for char in beyond if _is_foreign(char)} - found
    if letters <= LATIN_SHAPES or (is_strict and all(map(_UNUSUAL_LATIN.match, letters))):
        found |= letters
    elif letters and any('A' <= char <= 'z' and char.isalpha() for char in chars):
        one = f'[{"".join(map(re.escape, letters))}]'
        mixed = re.compile(f'[A-Za-z][0-9_]*{one}|{one}[0-9_]*[A-Za-z]')
        for words, match in enumerate(mixed.finditer(text)):
            found |= letters.intersection(match[0])
            if words == 100:  # chosen: enough to name a few
                break
        if is_strict:
            found |= _disguised(text)
    return sorted(found)


def _disguised(text: str) -> set[str]:
    """Letters of the words that look Latin and are joined to something Latin, whatever else the text has."""
    # Attack: an unrelated letter elsewhere, as in a comment, makes the text look foreign (test_display.py).
    found: set[str] = set()
    for word in _WORD.finditer(text):
        before = text[max(0, word.start() - 4) : word.start()]
        is_joined = _TOUCHES_BEFORE.search(before) or _TOUCHES_AFTER.match(text, word.end())
        if is_joined and LATIN_SHAPES.issuperset(word[0]):
            found.update(word[0])
    return found


@lru_cache(maxsize=4096)
def _is_compatible(char: str, is_strict: bool) -> bool:
    """Whether it is another form of one ASCII character: full-width, mathematical, the Kelvin sign."""
    if unicodedata.category(char)[0] in 'ZCM':
        return False
    if unicodedata.decomposition(char).startswith(('<super>', '<sub>')):
        return False
    plain = unicodedata.normalize('NFKC', char)
    # Full-width signs are the ordinary ones of Chinese and Japanese texts.
    is_usual = not is_strict and not plain.isalnum() and unicodedata.east_asian_width(char) in 'FW'
    return len(plain) == 1 and plain.isascii() and not is_usual


@lru_cache(maxsize=4096)
def _is_foreign(char: str) -> bool:
    if not char.isalpha():
        return False
    return _UNUSUAL_LATIN.match(char) is not None or unicodedata.name(char, '').partition(' ')[0] in FOREIGN
