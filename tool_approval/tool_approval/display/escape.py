"""Escape characters that are invisible or unclear, or that affect other characters.

All UIs use the same form of escape, such as `<U+200B>`. A `<` before `U+` in the text is escaped, so `<U+` always
begins an escape. Therefore, escapes never make different texts look the same.

Invisible characters are escaped even where a text needs them, such as within an emoji, or between two letters that
must not be joined. However, if a text needs an invisible character, the character causes no warning and is accepted
in a file name.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final
from unicodedata import is_normalized

ESCAPE: Final = re.compile(r'<U\+[0-9A-F]{4,6}>')
"""Matches the escapes in an escaped text."""

TAB: Final = '\u21e5'
"""Character shown in place of a tab. Blanks follow up to the next multiple of 4 columns. If a text contains this
character, the character is escaped."""

HIDDEN: Final = re.compile(
    # `str.isprintable` accepts these, although they draw nothing or not always the same: fillers, joiners, variation
    # selectors, the blank Braille pattern, object replacement, halves of flags.
    '[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffc'
    '\U00013441\U00013442\U00016fe4\U0001d159\U0001f1e6-\U0001f1ff\U000e0100-\U000e01ef]'
)
"""Printable characters that have no visible shape."""

_MOST_MARKS: Final = 3
"""Maximum number of marks on one letter, enough for all living languages. More marks would overlap other lines."""
_ACCENTS: Final = frozenset(map(chr, (*range(0x300, 0x305), *range(0x306, 0x30D), 0x30F, 0x311, 0x31B)))
_LOWER_ACCENTS: Final = frozenset(map(chr, (*range(0x323, 0x329), 0x32D, 0x330, 0x331, 0x342, 0x345)))
_VOICED: Final = frozenset('\u3099\u309a')


@lru_cache(maxsize=4096)
def escape(char: str) -> str:
    """Return one character as an escape, such as `<U+001B>`."""
    return f'<U+{ord(char):04X}>'


def escape_text(text: str, *, ascii_only: bool = False, mark_end: bool = False) -> str:
    """Escape each line of `text` with `escape_line`, and keep the newlines."""
    return '\n'.join([escape_line(line, ascii_only=ascii_only, mark_end=mark_end) for line in text.split('\n')])


def escape_line(text: str, *, ascii_only: bool = False, mark_end: bool = False, also: str = '') -> str:
    """Return `text` on one line, with escapes for characters that are invisible or unclear, or affect other characters.

    The function escapes control, direction and format characters, invisible characters, unusual blanks, private and
    unassigned code points, lone surrogates, and combining marks that do not belong to the letter before them. Letters
    that are not in normalization form C (Unicode Standard Annex 15), such as an `e` with a separate accent in place of
    `é`, are escaped, too.

    Args:
        text: Any text; a newline is escaped, too.
        ascii_only: Whether to escape everything beyond ASCII, for terminals that draw only ASCII.
        mark_end: Whether to escape a blank at the end, where it is invisible.
        also: More characters to escape, such as a quotation mark.
    """
    shown = text if is_plain(text) and not also else _escaped(text, ascii_only, also)
    return f'{shown[:-1]}<U+0020>' if mark_end and shown.endswith(' ') and text.endswith(' ') else shown


def is_plain(text: str) -> bool:
    """Return whether `text` is ASCII and can be shown without escapes. A blank at the end is not checked."""
    return text.isascii() and text.isprintable() and '<U+' not in text


def _escaped(text: str, ascii_only: bool, also: str) -> str:
    chars = frozenset(text)
    simple = {char for char in chars if _is_simple(char, ascii_only)}.difference('<', also)
    if len(simple) == len(chars) or (
        len(simple) == len(chars) - 1 and '<' in chars.difference(also) and '<U+' not in text
    ):
        return text
    shown: list[str] = []
    column, base, marks, cluster = 0, '', 0, ''
    for index, char in enumerate(text):
        if char in simple:
            shown.append(char)
            column += 1
            base, marks, cluster = char, 0, char
            continue
        if ' ' <= char <= '~':
            is_ambiguous = char == '<' and text.startswith('U+', index + 1)
            piece = escape(char) if is_ambiguous or char in also else char
            base, marks, cluster = char, 0, char
        elif char == '\t' and not ascii_only:
            piece = TAB + ' ' * (3 - column % 4)
            base = ''
        elif (
            ascii_only
            or not _draws_itself(char)
            or base == ''
            or marks == _MOST_MARKS
            or not _is_at_home(char, base, cluster)
        ):
            piece, base = escape(char), ''
        else:
            marks += 1
            cluster += char
            # The last consonant of a Korean syllable joins its vowel.
            piece, base = char, char if _is_jamo(char) else base
        shown.append(piece)
        column += len(piece)
    return ''.join(shown)


@lru_cache(maxsize=8192)
def _is_simple(char: str, ascii_only: bool) -> bool:
    """Return whether a character needs no escape in any context."""
    joins = _is_jamo(char) or unicodedata.category(char).startswith('M')
    return _draws_itself(char) and not joins and (char.isascii() or not ascii_only)


@lru_cache(maxsize=4096)
def _draws_itself(char: str) -> bool:
    return char != TAB and char.isprintable() and HIDDEN.match(char) is None and is_normalized('NFC', char)


@lru_cache(maxsize=4096)
def _is_at_home(mark: str, base: str, cluster: str) -> bool:
    return base.isalpha() and _belongs(mark, base) and is_normalized('NFC', f'{cluster}{mark}')


def _is_jamo(char: str) -> bool:
    return '\u1161' <= char <= '\u11ff' or '\ud7b0' <= char <= '\ud7fb'


@lru_cache(maxsize=4096)
def _belongs(mark: str, base: str) -> bool:
    """Return whether a mark belongs to the script of the letter; `False` for common overlays and enclosures."""
    script = script_of(base)
    if _is_jamo(mark):
        return script == 'HANGUL' and _place(base) + 1 == _place(mark)
    if mark in _ACCENTS or mark in _LOWER_ACCENTS:
        return script in ('LATIN', 'GREEK', 'CYRILLIC')
    if mark in _VOICED:
        return script in ('HIRAGANA', 'KATAKANA')
    return script_of(mark) == script


def _place(jamo: str) -> int:
    """Return 1 for the first consonant of a Korean syllable, 2 for its vowel, 3 for its last consonant, 0 otherwise."""
    names = {'CHOSEONG': 1, 'JUNGSEONG': 2, 'JONGSEONG': 3}
    words = unicodedata.name(jamo, '').split(' ')
    return names.get(words[1], 0) if len(words) > 1 else 0


@lru_cache(maxsize=4096)
def script_of(char: str) -> str:
    """Return the script of a letter or a mark: the first word of its Unicode name."""
    return unicodedata.name(char, '').partition(' ')[0]


_EMOJI: Final = (
    '\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a\u231b\u2328\u23cf\u23e9-\u23f3\u23f8-\u23fa'
    '\u24c2\u25aa\u25ab\u25b6\u25c0\u25fb-\u25fe'
    '\u2600-\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u3030\u303d'
    '\u3297\u3299\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff'
)
"""Characters that a variation selector may follow: the symbol blocks with emoji, except flags and skin tones."""

_PICTURE: Final = '\u26d3\u26f9\u2764\U0001f300-\U0001f3fa\U0001f400-\U0001faff'
_JOINED: Final = f'{_PICTURE}\u2194\u2195\u2620\u2640\u2642\u2695\u2696\u26a7\u2708\u27a1\u2b1b'
_DRESS: Final = '(?:\ufe0f|[\U0001f3fb-\U0001f3ff])?'
_FLAG: Final = '[\U0001f1e6-\U0001f1ff]'

_DUAL: Final = (
    '\u0626\u0628\u062a-\u062e\u0633-\u063a\u0641-\u0647\u0649\u064a\u066e\u066f\u0679-\u0687\u069a-\u06bf\u06c1\u06c2'
    '\u06cc\u06ce\u06d0\u06d1'
)
"""Arabic letters that usually join the next letter. A character that prevents the join has a visible effect."""
_JOINING: Final = (
    f'{_DUAL}\u0622-\u0625\u0627\u0629\u062f-\u0632\u0648\u0671-\u0673\u0688-\u0699\u06c0\u06c3-\u06cb\u06d5'
)


def _indic() -> str:
    """Matches joiners between a sign that suppresses a vowel and the next consonant of the same script."""
    blocks = [*((start, start + 0x39, start + 0x4D) for start in range(0x900, 0xD80, 0x80)), (0xD80, 0xDC6, 0xDCA)]
    return '|'.join(f'{chr(virama)}[\u200c\u200d](?=[{chr(start + 5)}-{chr(last)}])' for start, last, virama in blocks)


# Lookbehinds come after the first character, so that most positions fail at once.
_ORDINARY: Final = re.compile(
    f'(?P<sign>[\u203c\u2049\u2139\u24c2\u3030](?<![\\w.].)\ufe0f(?![\\w.]))'
    f'|[0-9#*]\ufe0f\u20e3'
    f'|[{_PICTURE}]{_DRESS}(?:\u200d[{_JOINED}]{_DRESS})+'
    f'|[{_EMOJI}][\ufe0e\ufe0f]'
    f'|{_FLAG}(?<!{_FLAG}{_FLAG}){_FLAG}(?:{_FLAG}{{2}})*(?!{_FLAG})'
    f'|[{_DUAL}]\u200c(?=[{_JOINING}])'
    f'|{_indic()}'
)
_INVISIBLE: Final = re.compile('[\u200c\u200d\ufe0e\ufe0f\U0001f1e6-\U0001f1ff]')
_DROPPED: Final = re.compile('[\u200c\u200d\u20e3\ufe0e\ufe0f\U0001f1e6-\U0001f1ff]')


def without_ordinary(text: str) -> str:
    """Remove the invisible parts of emoji, and the joiners that some scripts need.

    Emoji of flags, and emoji that may be drawn as punctuation or letters, are removed entirely.
    """
    return _ORDINARY.sub(_rest, text) if _INVISIBLE.search(text) else text


def _rest(sequence: re.Match[str]) -> str:
    return '' if sequence['sign'] else _DROPPED.sub('', sequence[0])
