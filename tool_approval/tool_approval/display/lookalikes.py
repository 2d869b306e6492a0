"""Find characters that look like others, such as a Cyrillic letter in an English word."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from functools import lru_cache
from typing import Final, Literal, get_args

from .escape import script_of

_ALIKE_SIGNS: Final = re.compile(
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
"""Endings of the Unicode names of characters that look like ASCII punctuation."""

_UNLIKE_SIGNS: Final = re.compile(
    r'\b(?:INVERTED|PLUS-MINUS|REVERSED (?:QUESTION|TILDE)|CIRCLED|SQUARED?|QUAD|TONE|ARROW|HARPOON|WITH|ABOVE|BELOW'
    r'|OVER|OR|NOT|TOP|BOTTOM|TRIANGLE|WHITE|DOUBLE (?:ANGLE|DANDA)|TURNSTILE|SUPERSCRIPT|SUBSCRIPT|MUSICAL'
    r'|SIGNWRITING|BLOCK)\b'
)
"""Exceptions to `_ALIKE_SIGNS`: a character whose name has such a word does not look like ASCII punctuation."""

_SIGN_PICTURES: Final = re.compile(
    'BOX DRAWINGS (?:LIGHT|HEAVY|DOUBLE) (?:HORIZONTAL|VERTICAL)$|ASTERISK|SOLIDUS|(?:VERTICAL|BROKEN) BAR|ORNAMENT'
)
"""Names of symbols that look like ASCII punctuation. The Unicode category of these symbols also contains emoji."""

_OTHER_SIGNS: Final = frozenset(
    '\u01c0\u01c2\u01c3\u2d51\ua778\ua78b\ua78c'  # letters that are drawn as | = ! & '
    '\u02be\u02bf\u05c0\u05c3\u0609\u066a\u066b\u066d\u16ec\u1735\u2027\u2052\u214b\u2731\u2a74\ufe30\u00b8'
    '\u2025\u2026\u23d0\u2571\u2572\u2039\u203a\u223c\u223d\u2795\u2796\u2cc6\ua60e\u1803\u0701\u0702\u0703\u0704\u06d4'
    '\u2202\u212e\u2228\u222a\u22a4\u2373\u2374\u237a'  # for letters: d e v U T i p a
)
"""Look-alikes that cannot be recognised by their Unicode names."""

_TYPOGRAPHY: Final = frozenset(
    '\u00b7\u00d7\u2010\u2011\u2013\u2014\u2015\u2018\u2019\u201a\u201c\u201d\u201e\u2026\u2032\u2033\u2039\u203a'
)
"""Characters common in longer texts: middle dots, dashes, curly quotes, ellipses, primes."""

EAST_ASIAN: Final = (
    '\u1100-\u11ff\u2e80-\ua4cf\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff'
)
"""Ranges of East Asian characters, for use in a character class."""

STROKES: Final = (
    '\u3007\u30a8\u30c8\u30cb\u30ce\u30cf\u30ed\u30fc\u3147\u3161\u3163'
    '\u4e00\u4e28\u4e36\u4e3f\u4e59\u4e85\u4e8c\u5341\u535c\u53e3\u5de5'
)
"""East Asian letters of one or two strokes, which look like `/`, `=`, `O` or `I` next to Latin letters."""

LONE_STROKES: Final = re.compile(f'(?<![{EAST_ASIAN}])[{STROKES}]+(?![{EAST_ASIAN}])')
"""Matches letters of `STROKES` that are not next to East Asian characters."""


@lru_cache(maxsize=4096)
def is_sign(char: str) -> bool:
    """Return whether a non-ASCII character looks like ASCII punctuation, or is a symbol that looks like a letter."""
    if char in _OTHER_SIGNS:
        return True
    category = unicodedata.category(char)
    if category[0] not in 'PS' and category != 'Lm':
        return False
    name = unicodedata.name(char, '')
    if category == 'So' and (_SIGN_PICTURES.search(name) is None or unicodedata.east_asian_width(char) == 'W'):
        return False
    return _ALIKE_SIGNS.search(name) is not None and _UNLIKE_SIGNS.search(name) is None


def is_typography(char: str) -> bool:
    """Return whether a look-alike is common in longer texts. Examples: dashes, table frames, East Asian punctuation."""
    return char in _TYPOGRAPHY or '\u2500' <= char <= '\u257f' or unicodedata.east_asian_width(char) in 'WF'


_WIDE_LETTER: Final = (
    '\u3005-\u3007\u3041-\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff'
)

_WIDE_SIGNS: Final = (
    '\u3001\u3002\u3008-\u3011\u3014-\u3019\u301c\u30fb'
    '\uff01\uff05\uff08\uff09\uff0c\uff1a\uff1b\uff1f\uff3b\uff3d\uffe5\uff61-\uff65'
)
"""East Asian punctuation, except look-alikes of the characters that begin options and paths. Look-alikes of quotation
marks, hash and backslash are excluded, too. They could make executed text look like a quotation or a comment."""

# Attack: a comma or full stop within an address, `example。com` (test_texts.py). So both sides may only have East
# Asian letters, blanks and quotation marks.
_PUNCTUATION: Final = re.compile(
    f"""(?<![^\\s"'{_WIDE_LETTER}])(?:(?<=[{_WIDE_LETTER}])[{_WIDE_SIGNS}]+|[{_WIDE_SIGNS}]+(?=[{_WIDE_LETTER}]))"""
    f"""(?![^\\s"'{_WIDE_LETTER}])"""
)

_UNLIKE_LETTERS: Final = '\u0394\u0398\u039b\u039e\u03a6\u03a8\u03a9\u03b4\u03b8\u03bb\u03be\u03c6\u03c8'
"""Greek letters that do not look like Latin letters."""

_SMALL_LETTERS: Final = '\u03b2-\u03b8\u03bb\u03bc\u03be\u03c0\u03c3\u03c4\u03c6-\u03c9'
"""Small Greek letters that are not mistaken for Latin letters if they stand alone, as in a formula."""

_SYMBOLS: Final = '\u2102\u210d\u2115\u2119\u211a\u211d\u2124\u2460-\u2473'
"""Symbols for sets of numbers, and circled numbers."""

_BEFORE: Final = r'(?<![\w\-./:@~$])'
_AFTER: Final = r'(?![\w\-/@~]|[.:]\S)'
_NAMES: Final = '|'.join(
    (
        f'[{_SYMBOLS}]',
        f'[{_UNLIKE_LETTERS}](?:[A-Za-z]?[0-9]{{0,3}})',
        f'[{_SMALL_LETTERS}]_[A-Za-z0-9]{{1,12}}',
        '(?<=[0-9] )\u2212(?= [0-9])',
    )
)
_FORMULA: Final = re.compile(f'{_BEFORE}(?:{_NAMES}){_AFTER}')
_FORMULA_OF_PROSE: Final = re.compile(f'{_BEFORE}(?:{_NAMES}|[\u03b1\u03b3]){_AFTER}')
_ANY_FORMULA: Final = re.compile(f'[{_SYMBOLS}{_UNLIKE_LETTERS}{_SMALL_LETTERS}\u03b1\u03b3\u2212]')


class Care(IntEnum):
    """How strictly characters are checked. A higher value is stricter."""

    PROSE = 0
    """Text for people, or the content of a file. Look-alikes of punctuation are accepted as typography."""
    LINES = 1
    """Either several lines, which may be prose or code, or a single line that can only be prose."""
    CODE = 2
    """A name, a path, a command or any other line, in which every character matters."""


FOREIGN: Final = frozenset({
    'ARMENIAN', 'CANADIAN', 'CARIAN', 'CHEROKEE', 'COPTIC', 'CYRILLIC', 'DESERET', 'GEORGIAN', 'GLAGOLITIC', 'GOTHIC',
    'GREEK', 'LISU', 'LYCIAN', 'LYDIAN', 'OLD', 'OSAGE', 'RUNIC', 'TIFINAGH', 'VAI', 'WARANG',
})  # fmt: skip
"""Scripts with letters that look like Latin letters. The names are those that `script_of` returns."""

LATIN_SHAPES: Final = frozenset(
    'АВЕЅІЈКМНОРСТУХаеѕіјорсухһԁԛԝԌԍҮүӏӀѴѵЗзЬьб'  # Cyrillic
    'ΑΒΕΖΗΙΚΜΝΟΡΤΥΧανοικρυγϲϳϹ'  # Greek
    'ՍՏՕօոսցհյզգԼԾ'  # Armenian
    'ᎪᏴᏟᎠᎬᏀᎻᎫᏦᏞᎷᏢᏒᏚᎢᏙᎳᏃᎥᏂᏏᏊ'  # Cherokee
    'ⲀⲂⲈⲎⲒⲔⲘⲚⲞⲢⲤⲦⲨⲬⲟⲣⲥ'  # Coptic
    'ᐯᑌᑎᑕᑭᑯᒍᒥᒧᒪᒿᓀᓂᖇᖴᗅᗞᗪᗩᗯᗰᗷᕼ᙭ᐟᐠᑊᛁ'  # Canadian syllabics
    'ꓐꓑꓓꓔꓖꓗꓙꓚꓝꓞꓟꓠꓡꓢꓣꓦꓧꓨꓪꓫꓬꓮꓰꓲꓳꓴ'  # Lisu
)
"""Letters that look the same as Latin letters."""

_UNUSUAL_LATIN: Final = re.compile(
    '[\u0131\u017f\u0180-\u0183\u01bf-\u01c3\u0237\u0250-\u02af\u1d00-\u1dbf\u2c60-\u2c7f\ua720-\ua7ff\uab30-\uab6f]'
)


_OPTION: Final = re.compile(r'(?<!\S)[\u2010-\u2015\u2796\uff0d]+(?=[A-Za-z])')
"""A dash in place of an option's hyphen."""

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
"""Why a character may be mistaken for another.

- `same`: a variant of one ASCII character, such as a full-width letter, a mathematical letter or the Kelvin sign.
- `sign`: looks like ASCII punctuation, or is a symbol that looks like a letter.
- `typography`: looks like ASCII punctuation but is common in longer texts, or looks like several ASCII characters.
- `letter`: a letter of a script in which some letters look Latin, or a Latin letter that no common alphabet uses.
- `other letter`: a letter of another script that is not East Asian.
- `digit`: a digit of another script.
- `stroke`: an East Asian letter of one or two strokes."""

Traits = Mapping[Trait, frozenset[str]]


def traits_of(chars: Iterable[str]) -> Traits:
    """Return the characters that may be mistaken for other characters, grouped by trait."""
    found: dict[Trait, set[str]] = {trait: set() for trait in get_args(Trait)}
    for char in chars:
        trait = _trait(char)
        if trait is not None:
            found[trait].add(char)
    return {trait: frozenset(of) for trait, of in found.items()}


def look_alikes(text: str, chars: frozenset[str], traits: Traits, care: Care) -> list[str]:
    """Return a sorted list of the characters that a reader of `text` may mistake for other characters.

    If all letters with the trait `letter` look Latin, all of them are returned. Otherwise, those in words that also
    have Latin letters are returned. Unless `care` is `PROSE`, the result also has the letters of a Latin-looking word
    that a sign such as a dot joins to Latin text. `chars` are the text's characters. `traits` may contain more.
    """
    if _ANY_FORMULA.search(text):
        # In code, a name that looks like a Latin letter at a glance is kept.
        text = (_FORMULA if care is Care.CODE else _FORMULA_OF_PROSE).sub(' ', text)
        chars &= frozenset(text)
    found = set(chars & traits['same'])
    if care >= Care.LINES:
        found |= chars & traits['sign']
    typography = chars & traits['typography']
    if care is Care.CODE:
        found |= typography.intersection(_PUNCTUATION.sub('', text) if typography else '')
    elif care is Care.LINES:
        found |= _matched(_OPTION, text, typography)
    letters = chars & traits['letter']
    if letters <= LATIN_SHAPES or (care is Care.CODE and all(map(_is_latin_shape, letters))):
        found |= letters
        letters = frozenset[str]()
    digits = chars & traits['digit']
    if digits and care is Care.CODE:
        scripts = {script_of(char) for char in chars if char.isalpha()}
        found |= {digit for digit in digits if scripts.isdisjoint(re.split('[ -]', unicodedata.name(digit, '')))}
    if (letters or digits) and _ASCII_IN_WORD.search(text):
        found |= _mixed(text, letters, digits)
        if letters and care >= Care.LINES:
            found |= _disguised(text, care)
    if care is Care.CODE:
        found |= _matched(_SHORT, text, chars & traits['other letter'])
        found |= _matched(LONE_STROKES, text, chars & traits['stroke'])
    return sorted(found)


def _mixed(text: str, letters: Collection[str], digits: Collection[str]) -> set[str]:
    """Find `letters` in words that have Latin letters, and `digits` in words that have ASCII letters or digits."""
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
    """Return the letters of each Latin-looking word next to Latin text, even if a sign such as a dot is between."""
    # Attack: an unrelated letter elsewhere, such as in a comment, makes the text look foreign (test_warnings.py).
    is_code = care is Care.CODE
    before, after = (_TOUCHES_BEFORE, _TOUCHES_AFTER) if is_code else (_LATIN_BEFORE, _LATIN_AFTER)
    found: set[str] = set()
    for word in _BEYOND.finditer(text):
        is_joined = before.search(text[max(0, word.start() - 4) : word.start()]) or after.match(text, word.end())
        if is_joined and all(map(_is_latin_shape, word[0])):
            found.update(word[0])
    return found


def _matched(pattern: re.Pattern[str], text: str, chars: Collection[str]) -> set[str]:
    """Return the characters of `chars` that occur in matches of the pattern."""
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
    if _UNUSUAL_LATIN.match(char) or script_of(char) in FOREIGN:
        return 'letter'
    return None if script_of(char) in ('LATIN', 'MODIFIER', 'FEMININE', 'MASCULINE', 'MICRO') else 'other letter'


def _of_compatible(char: str, category: str) -> Trait | None:
    """Return the trait of a variant of ASCII characters or of a Latin-looking letter; `None` for other characters."""
    if unicodedata.decomposition(char).startswith(('<super>', '<sub>')):
        return None
    plain = unicodedata.normalize('NFKC', char)
    if plain.isascii() and len(plain) == 1:
        # Full-width punctuation is ordinary in Chinese and Japanese texts.
        is_usual = not plain.isalnum() and unicodedata.east_asian_width(char) in 'FW'
        return 'typography' if is_usual else 'same'
    if plain.isascii() and category in ('Ll', 'Lu', 'Nl', 'Po'):
        return 'typography'
    return 'same' if plain != char and len(plain) == 1 and _is_latin_shape(plain) else None
