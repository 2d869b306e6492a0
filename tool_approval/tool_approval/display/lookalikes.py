"""Characters that pass for others: a Cyrillic letter in an English word, a Greek question mark for a semicolon."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Final, Literal, get_args

from .ordinary import without_formulas, without_punctuation
from .signs import EAST_ASIAN, LONE_STROKES, STROKES, is_sign, is_typography
from .texts import Care

FOREIGN: Final = frozenset({
    'ARMENIAN', 'CANADIAN', 'CARIAN', 'CHEROKEE', 'COPTIC', 'CYRILLIC', 'DESERET', 'GEORGIAN', 'GLAGOLITIC', 'GOTHIC', 'GREEK',
    'LISU', 'LYCIAN', 'LYDIAN', 'OLD', 'OSAGE', 'RUNIC', 'TIFINAGH', 'VAI', 'WARANG',
})  # fmt: skip
"""Scripts, by the first word of their characters' names, that have letters with the shapes of Latin ones."""

LATIN_SHAPES: Final = frozenset(
    'АВЕЅІЈКМНОРСТУХаеѕіјорсухһԁԛԝԌԍҮүӏӀѴѵЗзЬьб'  # Cyrillic
    'ΑΒΕΖΗΙΚΜΝΟΡΤΥΧανοικρυγϲϳϹ'  # Greek
    'ՍՏՕօոսցհյզգԼԾ'  # Armenian
    'ᎪᏴᏟᎠᎬᏀᎻᎫᏦᏞᎷᏢᏒᏚᎢᏙᎳᏃᎥᏂᏏᏊ'  # Cherokee
    'ⲀⲂⲈⲎⲒⲔⲘⲚⲞⲢⲤⲦⲨⲬⲟⲣⲥ'  # Coptic
    'ᐯᑌᑎᑕᑭᑯᒍᒥᒧᒪᒿᓀᓂᖇᖴᗅᗞᗪᗩᗯᗰᗷᕼ᙭ᐟᐠᑊᛁ'  # Canadian syllabics
    'ꓐꓑꓓꓔꓖꓗꓙꓚꓝꓞꓟꓠꓡꓢꓣꓦꓧꓨꓪꓫꓬꓮꓰꓲꓳꓴ'  # Lisu
)
"""Letters that nobody can tell from Latin ones."""

_UNUSUAL_LATIN: Final = re.compile(
    '[\u0131\u017f\u0180-\u0183\u01bf-\u01c3\u0237\u0250-\u02af\u1d00-\u1dbf\u2c60-\u2c7f\ua720-\ua7ff\uab30-\uab6f]'
)


_OPTION: Final = re.compile(r'(?<!\S)[\u2010-\u2015\u2796\uff0d]+(?=[A-Za-z])')
"""A dash where a command has the hyphen of an option."""

_LETTER: Final = r'[^\W\d_A-Za-z]'
_WORD: Final = re.compile(r'\w+')
_LATIN: Final = re.compile('[A-Za-z]')
_ASCII_IN_WORD: Final = re.compile('[A-Za-z0-9]')
_BEYOND: Final = re.compile(f'{_LETTER}{{2,}}')
_SHORT: Final = re.compile(
    f'(?<=[A-Za-z0-9]){_LETTER}{{1,2}}(?!{_LETTER})|(?<!{_LETTER}){_LETTER}{{1,2}}(?=[A-Za-z0-9])'
)
_TOUCHES_BEFORE: Final = re.compile(r'(?:[A-Za-z0-9]|[A-Za-z0-9_][-._/:]{1,3})\Z')
_TOUCHES_AFTER: Final = re.compile(r'[A-Za-z0-9]|[-._/:]{1,3}[A-Za-z0-9_]')
_LATIN_BEFORE: Final = re.compile(r'(?:[A-Za-z]|[A-Za-z_][-._/:]{1,3})\Z')
_LATIN_AFTER: Final = re.compile(r'[A-Za-z]|[-._/:]{1,3}[A-Za-z_]')


Trait = Literal['same', 'sign', 'typography', 'letter', 'other letter', 'digit', 'stroke']
"""Why a character may pass for another.

- `same`: it is another form of one ASCII character: full-width, mathematical, the Kelvin sign.
- `sign`: it has the shape of a sign of ASCII.
- `typography`: the same, but longer texts are full of it; or it is several ASCII characters in one.
- `letter`: it is of a script that has letters with Latin shapes, or a Latin letter of no common alphabet.
- `other letter`: it is of any other script that is not East Asian.
- `digit`: it is a digit of another script.
- `stroke`: it is an East Asian letter of a stroke or two.
"""

Traits = Mapping[Trait, frozenset[str]]


def traits_of(chars: Iterable[str]) -> Traits:
    """The characters that may pass for others, by why."""
    found: dict[Trait, set[str]] = {trait: set() for trait in get_args(Trait)}
    for char in chars:
        trait = _trait(char)
        if trait is not None:
            found[trait].add(char)
    return {trait: frozenset(of) for trait, of in found.items()}


def look_alikes(text: str, chars: frozenset[str], traits: Traits, care: Care) -> list[str]:
    """Characters of a text that pass for others there, by code point.

    Letters count where they stand in one word with Latin letters, or where all letters of such scripts that there are
    look like Latin ones: text that is simply written in another script is none of it. In code, so do words of only such
    letters that are part of something Latin, as of an address.

    Args:
        text: Anything.
        chars: Its characters.
        traits: At least those of its characters that may pass for others.
        care: How carefully to look.
    """
    rest = without_formulas(text, is_code=care is Care.CODE)
    if rest is not text:
        text, chars = rest, chars & frozenset(rest)
    found = set(chars & traits['same'])
    if care >= Care.LINES:
        found |= chars & traits['sign']
    typography = chars & traits['typography']
    if care is Care.CODE:
        found |= typography.intersection(without_punctuation(text) if typography else '')
    elif care is Care.LINES:
        found |= _matched(_OPTION, text, typography)
    letters = chars & traits['letter']
    if letters <= LATIN_SHAPES or (care is Care.CODE and all(map(_is_latin_shape, letters))):
        found |= letters
        letters = frozenset[str]()
    digits = chars & traits['digit']
    if digits and care is Care.CODE:
        scripts = {_script(char) for char in chars if char.isalpha()}
        found |= {digit for digit in digits if not any(word in scripts for word in _words_of_name(digit))}
    if (letters or digits) and _ASCII_IN_WORD.search(text):
        found |= _mixed(text, letters, digits)
        if letters and care >= Care.LINES:
            found |= _disguised(text, care)
    if care is Care.CODE:
        found |= _matched(_SHORT, text, chars & traits['other letter'])
        found |= _matched(LONE_STROKES, text, chars & traits['stroke'])
    return sorted(found)


def _mixed(text: str, letters: Collection[str], digits: Collection[str]) -> set[str]:
    """Letters in one word with Latin ones, and digits in one with Latin letters or digits."""
    either = frozenset(letters) | frozenset(digits)
    found: set[str] = set()
    for match in _WORD.finditer(text):
        word = match[0]
        if word.isascii() or either.isdisjoint(word):
            continue
        is_latin, is_ascii = _LATIN.search(word) is not None, _ASCII_IN_WORD.search(word) is not None
        found.update(char for char in word if (char in letters and is_latin) or (char in digits and is_ascii))
    return found


def _disguised(text: str, care: Care) -> set[str]:
    """Letters of the words that look Latin and are joined to something Latin, whatever else the text has."""
    # Attack: an unrelated letter elsewhere, as in a comment, makes the text look foreign (test_warnings.py).
    is_code = care is Care.CODE
    before, after = (_TOUCHES_BEFORE, _TOUCHES_AFTER) if is_code else (_LATIN_BEFORE, _LATIN_AFTER)
    found: set[str] = set()
    for word in _BEYOND.finditer(text):
        is_joined = before.search(text[max(0, word.start() - 4) : word.start()]) or after.match(text, word.end())
        if is_joined and all(map(_is_latin_shape, word[0])):
            found.update(word[0])
    return found


def _matched(pattern: re.Pattern[str], text: str, chars: Collection[str]) -> set[str]:
    """Those of the characters that stand as a pattern says."""
    if not chars:
        return set()
    return {char for match in pattern.finditer(text) for char in match[0] if char in chars}


def _is_latin_shape(char: str) -> bool:
    return char in LATIN_SHAPES or _UNUSUAL_LATIN.match(char) is not None


@lru_cache(maxsize=4096)
def _trait(char: str) -> Trait | None:
    category = unicodedata.category(char)
    if char.isascii() or category[0] in 'ZCM':
        return None
    same = _of_compatible(char, category)
    if same is not None:
        return same
    if is_sign(char):
        return 'typography' if is_typography(char) else 'sign'
    if category == 'Nd':
        return 'digit'
    if char in STROKES:
        return 'stroke'
    if not char.isalpha() or re.match(f'[{EAST_ASIAN}]', char):
        return 'letter' if char in LATIN_SHAPES else None
    if _UNUSUAL_LATIN.match(char) or _script(char) in FOREIGN:
        return 'letter'
    return None if _script(char) in ('LATIN', 'MODIFIER', 'FEMININE', 'MASCULINE', 'MICRO') else 'other letter'


def _of_compatible(char: str, category: str) -> Trait | None:
    """What another form of other characters is, by those."""
    if unicodedata.decomposition(char).startswith(('<super>', '<sub>')):
        return None
    plain = unicodedata.normalize('NFKC', char)
    if plain.isascii() and len(plain) == 1:
        # Full-width signs are the ordinary ones of Chinese and Japanese texts.
        is_usual = not plain.isalnum() and unicodedata.east_asian_width(char) in 'FW'
        return 'typography' if is_usual else 'same'
    if plain.isascii() and category in ('Ll', 'Lu', 'Nl', 'Po'):
        return 'typography'
    return 'same' if plain != char and len(plain) == 1 and _is_latin_shape(plain) else None


@lru_cache(maxsize=4096)
def _script(char: str) -> str:
    return unicodedata.name(char, '').partition(' ')[0]


@lru_cache(maxsize=4096)
def _words_of_name(char: str) -> list[str]:
    return re.split('[ -]', unicodedata.name(char, ''))
