"""Invisible characters where writing has them: within an emoji, between two letters that are not to be joined.

On a screen they are escaped there too. Only what is told of them, and which names of files are taken, depends on this.
"""

from __future__ import annotations

import re
from typing import Final

_EMOJI: Final = (
    '\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a\u231b\u2328\u23cf\u23e9-\u23f3\u23f8-\u23fa\u24c2'
    '\u25aa\u25ab\u25b6\u25c0\u25fb-\u25fe\u2600-\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u3030\u303d\u3297'
    '\u3299\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff'
)
"""What a variation selector may follow: the blocks of symbols with emoji among them, without flags and skin tones."""

_PICTURE: Final = '\u26d3\u26f9\u2764\U0001f300-\U0001f3fa\U0001f400-\U0001faff'
_JOINED: Final = f'{_PICTURE}\u2194\u2195\u2620\u2640\u2642\u2695\u2696\u26a7\u2708\u27a1\u2b1b'
_DRESS: Final = '(?:\ufe0f|[\U0001f3fb-\U0001f3ff])?'
_FLAG: Final = '[\U0001f1e6-\U0001f1ff]'

_DUAL: Final = (
    '\u0626\u0628\u062a-\u062e\u0633-\u063a\u0641-\u0647\u0649\u064a\u066e\u066f\u0679-\u0687\u069a-\u06bf\u06c1\u06c2\u06cc'
    '\u06ce\u06d0\u06d1'
)
"""Arabic letters that join the next one, so that it is seen where they do not."""
_JOINING: Final = (
    f'{_DUAL}\u0622-\u0625\u0627\u0629\u062f-\u0632\u0648\u0671-\u0673\u0688-\u0699\u06c0\u06c3-\u06cb\u06d5'
)


def _indic() -> str:
    """Between the sign that takes a consonant's vowel and the next consonant of that script."""
    blocks = [*((start, start + 0x39, start + 0x4D) for start in range(0x900, 0xD80, 0x80)), (0xD80, 0xDC6, 0xDCA)]
    return '|'.join(f'{chr(virama)}[\u200c\u200d](?=[{chr(start + 5)}-{chr(last)}])' for start, last, virama in blocks)


# What stands before is looked at behind the first character: so most places are passed at once.
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
    """A text without the parts of emoji that are invisible, and without the joiners that writing needs.

    Emoji that are drawn as signs or letters elsewhere, and flags, are left out as a whole.
    """
    return _ORDINARY.sub(_rest, text) if _INVISIBLE.search(text) else text


def _rest(sequence: re.Match[str]) -> str:
    return '' if sequence['sign'] else _DROPPED.sub('', sequence[0])
