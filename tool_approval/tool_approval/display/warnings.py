"""Warn an approver about deceptive characters in a request."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final, TypeVar

from tool_approval.core.request import ApprovalRequest

from .escape import HIDDEN, escape, escape_line, without_ordinary
from .lookalikes import Care, Traits, look_alikes, traits_of
from .quote import shares
from .texts import apart, texts_of

_SCREEN: Final = 80
"""Columns of an ordinary terminal. A reader notices text that begins before this column, even after many blanks."""

_HIGH_GAP: Final = '\n' * 20
"""Shortest sequence of newlines that counts as a gap. Such a sequence fills most of a screen."""

_TAB_COLUMNS: Final = 4
"""Columns per tab."""

_WIDE_GAP: Final = 60
"""Minimum width of a gap in a line, in columns. Spaces between the words of ordinary text are narrower than this."""

_MOST_RUNS: Final = 2_000
"""Maximum number of long runs of blanks to check. If a text has more of them, `has_gap` returns `True`."""

_GAPS: Final = (
    (' ' * _WIDE_GAP, re.compile('[^ ]'), 1),
    ('\t' * (_WIDE_GAP // _TAB_COLUMNS), re.compile('[^\t]'), _TAB_COLUMNS),
)
"""An entry for blanks and one for tabs: shortest gap, pattern for the character after a gap, columns per character."""


def has_gap(text: str, *, is_code: bool) -> bool:
    """Return whether a text continues after a gap at which a reader may stop: many blank lines or many blanks in a row.

    Indentation does not count as a gap. Blanks in a table count as a gap only if the table is wider than a screen.

    Args:
        text: Any text.
        is_code: Whether a program may read the text. If so, blanks in a table or at the text's start can be gaps.
    """
    if _HIGH_GAP in text.rstrip('\n'):
        return True
    for least, other, columns in _GAPS:
        at = text.find(least)
        for _ in range(_MOST_RUNS):
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


_T = TypeVar('_T')

_NAMED = 4
"""Maximum number of different characters that one warning lists."""

_LOOKED_AT = 20_000
"""Maximum number of characters to check in a request. A question usually shows fewer characters. In a longer request,
short texts are checked in full, and long texts only at the beginning and the end. A warning reports this."""

_MOST_CHARACTERS = 3_000
"""Maximum number of different characters to check, not counting ideographs and Korean syllables. Ordinary texts have
fewer."""

_CODE = re.compile(r'<U\+([0-9A-F]+)>')
_USUAL = re.compile('[ -~\u5e00-\u9fff\uac00-\ud7a3]+')
"""Matches characters that are never reported as deceptive. Leaving them out of a large request saves time."""

_TURNING = frozenset('\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069')

_SENTENCES = {
    'control': 'control characters, which could alter the screen',
    'turning': 'characters that change the reading order',
    'invisible': 'invisible characters',
    'blank': 'unusual blanks',
    'unknown': 'characters without a defined shape',
    'mark': 'marks that are drawn over other characters',
}

_CONTROL_NAMES = {
    '\x00': 'NUL', '\x07': 'BELL', '\x08': 'BACKSPACE', '\x0b': 'VERTICAL TAB', '\x0c': 'FORM FEED',
    '\r': 'CARRIAGE RETURN', '\x1b': 'ESCAPE', '\x7f': 'DELETE', '\x85': 'NEXT LINE',
    '\x90': 'DEVICE CONTROL STRING', '\x9b': 'CONTROL SEQUENCE', '\x9d': 'OPERATING SYSTEM COMMAND',
}  # fmt: skip


def warnings_of(request: ApprovalRequest, *, ascii_only: bool = False) -> list[str]:
    """Return warnings about deceptive characters, the most dangerous first. The characters are escaped in the warnings.

    Large requests are checked only in part, to limit the time. If parts are unchecked, the last warning says so.
    """
    texts = texts_of(request)
    parts = _parts([text for text in texts.by_text if not _is_ordinary(text)])
    is_all = texts.is_all and all(len(part) == len(text) for text, part in parts.items())
    parts, ends, has_mark = _without_usual(parts, texts.by_text)
    alphabet, is_whole = _alphabet(parts.values())
    is_all = is_all and is_whole
    kinds = {char: kind for char in alphabet if (kind := _kind(char)) is not None}
    loose = _loose_marks([char for char, kind in kinds.items() if kind == 'mark'], parts.values())
    traits = traits_of(alphabet)
    odd: dict[str, dict[str, list[str]]] = {kind: {} for kind in _SENTENCES}
    alike: dict[str, None] = {}
    for text, part in parts.items():
        chars = frozenset(part) & alphabet
        for char in sorted(chars & kinds.keys()):
            if kinds[char] != 'mark' or char in loose.get(part, ()):
                odd[kinds[char]].setdefault(char, []).append(part)
        alike.update(dict.fromkeys(_look_alikes(part, chars, traits, texts.by_text[text])))
    rows = [
        f'{sentence}: {_listed([f"{_name(char)}{_times(char, where)}" for char, where in _first(found)], len(found))}'
        for kind, sentence in _SENTENCES.items()
        if (found := odd[kind])
    ]
    if alike:
        named = [f'{escape_line(char, ascii_only=ascii_only)} is {_name(char)}' for char, _ in _first(alike)]
        rows.append(f'look-alikes: {_listed(named, len(alike))}')
    if turns(alphabet):
        rows.append('right-to-left letters: a terminal may reorder the characters of lines with such letters')
    if any(has_gap(text, is_code=care is Care.CODE) for text, care in texts.by_text.items()):
        rows.append('a long gap: more text follows')
    if ends:
        rows.append(f'Windows line ends: {ends:,} line{"s end" if ends > 1 else " ends"} with U+000D CARRIAGE RETURN')
    if has_mark:
        rows.append('a byte order mark at the beginning: U+FEFF')
    if not is_all:
        rows.append('too long to check in full: unchecked characters in the middle may be deceptive')
    return rows


def turns(text: Iterable[str]) -> bool:
    """Return whether a text has right-to-left letters. A terminal may show lines with such letters in another order."""
    return any(unicodedata.bidirectional(char) in ('R', 'AL') for char in text)


def _is_ordinary(text: str) -> bool:
    return text.isascii() and text.replace('\n', '').replace('\t', '').isprintable()


def _parts(texts: Sequence[str]) -> dict[str, str]:
    """Return which part of each text to check: the whole text, or its beginning and its end."""
    parts: dict[str, str] = {}
    for text, room in zip(texts, shares([len(text) for text in texts], _LOOKED_AT), strict=True):
        tail = room // 2
        parts[text] = text if len(text) <= room else f'{text[: room - tail - 1]}\n{text[len(text) - tail :]}'
    return parts


def _without_usual(parts: Mapping[str, str], by_text: Mapping[str, Care]) -> tuple[dict[str, str], int, bool]:
    """Apply `without_ordinary` to each part, count Windows line ends, and find a byte order mark."""
    judged: dict[str, str] = {}
    ends, has_mark = 0, False
    for text, part in parts.items():
        rest = without_ordinary(part)
        # For code they matter: a shell adds a carriage return to the last word, and a byte order mark changes a name.
        if by_text[text] is not Care.CODE:
            ends += rest.count('\r\n')
            has_mark = has_mark or rest.startswith('\ufeff')
            rest = rest.replace('\r\n', '\n').removeprefix('\ufeff')
        judged[text] = rest
    return judged, ends, has_mark


def _look_alikes(part: str, chars: frozenset[str], traits: Traits, care: Care) -> list[str]:
    if care is not Care.CODE or part.isascii():
        return look_alikes(part, chars, traits, care)
    rest, messages = apart(part)
    found = look_alikes(rest, chars & frozenset(rest), traits, care)
    for message in messages:
        found += look_alikes(message, chars & frozenset(message), traits, Care.LINES)
    return sorted(found)


def _alphabet(parts: Collection[str]) -> tuple[frozenset[str], bool]:
    """Return the characters that may be deceptive, and whether the result is complete."""
    chars = ''.join(frozenset[str]().union(*parts))
    codes = list(map(ord, _USUAL.sub('', chars)))
    is_all = len(codes) <= _MOST_CHARACTERS
    # Low code points include controls, invisible and direction characters, and most look-alikes of Latin letters.
    return frozenset(map(chr, codes if is_all else sorted(codes)[:_MOST_CHARACTERS])), is_all


def _first(found: Mapping[str, _T]) -> list[tuple[str, _T]]:
    return list(islice(found.items(), _NAMED))


def _listed(named: Sequence[str], count: int) -> str:
    return ', '.join([*named, f'and {count - len(named):,} more'] if count > len(named) else named)


def _times(char: str, texts: Sequence[str]) -> str:
    count = sum(text.count(char) for text in texts)
    return f' ({count:,} times)' if count > 1 else ''


def _name(char: str) -> str:
    name = _CONTROL_NAMES.get(char) or unicodedata.name(char, '')
    return f'U+{ord(char):04X} {name}'.rstrip()


def _kind(char: str) -> str | None:
    if ' ' <= char <= '~' or char in '\n\t':
        return None
    match unicodedata.category(char):
        case 'Cc':
            return 'control'
        case 'Zs' | 'Zl' | 'Zp':
            return 'blank'
        case 'Cs' | 'Co' | 'Cn':
            return 'unknown'
        case 'Cf':
            return 'turning' if char in _TURNING else 'invisible'
        case 'Mn' | 'Mc' | 'Me' if not HIDDEN.match(char):
            return 'mark'
        case _:
            return 'invisible' if HIDDEN.match(char) else None


def _loose_marks(marks: Sequence[str], parts: Collection[str]) -> dict[str, set[str]]:
    """Return, for each part, the combining marks that do not belong to the letter before them."""
    if not marks:
        return {}
    # Letters with marks recur, so each combination is checked only once.
    clusters = re.compile(f'.?[{"".join(map(re.escape, marks))}]+')
    found = {part: frozenset(clusters.findall(part)) for part in parts}
    each = list(frozenset[str]().union(*found.values()))
    shown = escape_line('\n'.join(each)).split(escape('\n'))
    loose = {
        cluster: {chr(int(code, 16)) for code in _CODE.findall(line)}
        for cluster, line in zip(each, shown, strict=True)
        if '<U+' in line
    }
    return {part: set().union(*(loose[cluster] for cluster in of & loose.keys())) for part, of in found.items()}
