"""What a person should be told about the characters of a request before reading it."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar, cast

from tool_approval.request import ApprovalRequest

from .digest import left_out_keys
from .escape import HIDDEN, escape, escape_line
from .facts import fact_text, is_automatic
from .lookalikes import look_alikes

_T = TypeVar('_T')

_NAMED = 4
"""Chosen: so many characters of a kind are named."""

_MOST_VALUES = 5_000
"""Chosen: nobody is shown all of a request with more."""

_LOOKED_AT = 40_000
"""Chosen, in characters: more than fits on the screens of one question. Of a longer text only its beginning and its end
are looked through, and that is told."""

_MOST_CHARACTERS = 4_000
"""Chosen, different ones of one text: more than any text has that somebody wrote."""

_GAPS = (' ' * 60, '\n' * 20)
_TURNING = frozenset('\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069')

_SENTENCES = {
    'control': 'control characters, which would steer the terminal',
    'turning': 'characters that change the order of what is read',
    'invisible': 'invisible characters',
    'blank': 'unusual blanks',
    'unknown': 'characters that have no agreed shape',
    'mark': 'marks that are drawn over other characters',
}

_CONTROL_NAMES = {
    '\x00': 'NUL', '\x07': 'BELL', '\x08': 'BACKSPACE', '\x0b': 'VERTICAL TAB', '\x0c': 'FORM FEED',
    '\r': 'CARRIAGE RETURN', '\x1b': 'ESCAPE', '\x7f': 'DELETE', '\x85': 'NEXT LINE',
    '\x90': 'DEVICE CONTROL STRING', '\x9b': 'CONTROL SEQUENCE', '\x9d': 'OPERATING SYSTEM COMMAND',
}  # fmt: skip


def warnings_of(request: ApprovalRequest, *, ascii_only: bool = False) -> list[str]:
    """Sentences about characters that are not what they seem, escaped, the most dangerous first; often none."""
    odd: dict[str, dict[str, list[str]]] = {kind: {} for kind in _SENTENCES}
    alike: dict[str, None] = {}
    is_turned = is_gapped = is_cut = False
    seen: set[str] = set()
    for number, (whole, is_strict) in enumerate(_all_texts(request)):
        if number == _MOST_VALUES:
            is_cut = True
            break
        if whole in seen:
            continue
        seen.add(whole)
        is_gapped = is_gapped or any(gap in whole for gap in _GAPS)
        if whole.isascii() and whole.replace('\n', '').replace('\t', '').isprintable():
            continue
        is_cut = is_cut or len(whole) > _LOOKED_AT
        text = _ends(whole)
        chars = frozenset(text)
        if len(chars) > _MOST_CHARACTERS:
            # The lowest are those that steer, hide, turn, and pass for Latin ones.
            chars = frozenset(map(chr, sorted(map(ord, chars))[:_MOST_CHARACTERS]))  # numbers are sorted faster
            is_cut = True
        for char in sorted(chars):
            kind = _kind(char, text)
            if kind is not None:
                odd[kind].setdefault(char, []).append(text)
            is_turned = is_turned or unicodedata.bidirectional(char) in ('R', 'AL')
        alike.update(dict.fromkeys(look_alikes(text, chars, is_strict=is_strict)))
    told = [
        f'{sentence}: {_listed([f"{_name(char)}{_times(char, where)}" for char, where in _first(found)], len(found))}'
        for kind, sentence in _SENTENCES.items()
        if (found := odd[kind])
    ]
    if alike:
        named = [f'{escape_line(char, ascii_only=ascii_only)} is {_name(char)}' for char, _ in _first(alike)]
        told.append(f'look-alikes: {_listed(named, len(alike))}')
    if is_turned:
        told.append('right-to-left letters: a terminal may show their lines in another order')
    if is_gapped:
        told.append('a long gap: read on to the end of each text')
    if is_cut:
        told.append('too long to be looked through: characters in the middle may be other than they seem')
    return told


def _ends(text: str) -> str:
    return text if len(text) <= _LOOKED_AT else f'{text[: _LOOKED_AT // 2]}\n{text[-_LOOKED_AT // 2 :]}'


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


def _kind(char: str, text: str) -> str | None:
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
            return 'mark' if _is_loose(char, text) else None
        case _:
            return 'invisible' if HIDDEN.match(char) else None


def _is_loose(mark: str, text: str) -> bool:
    """Whether one of the first places of a mark is not in a word of its own script."""
    at = -1
    for _ in range(20):  # chosen: enough to see a habit
        at = text.find(mark, at + 1)
        if at < 0:
            return False
        if escape_line(text[max(0, at - 4) : at + 1]).endswith(escape(mark)):
            return True
    return False


def _all_texts(request: ApprovalRequest) -> Iterator[tuple[str, bool]]:
    """Texts that are shown, and whether each of them is a name, a path or a command; an empty one for other values."""
    yield request.tool_name, True
    for level in request.lineage:
        yield level.tool_name, True
        yield level.agent_name or '', True
    metadata = request.metadata
    yield from ((value, True) for key in ('caller', 'toolset_id') if isinstance(value := metadata.get(key), str))
    if not is_automatic(request):
        yield request.description, False
    yield request.reason or '', False
    yield from ((option.label, False) for option in request.remember_options)
    presentation = request.presentation
    if presentation is not None:
        whole: object = presentation.metadata.get('full_content')
        text = whole if isinstance(whole, str) else presentation.content
        yield text, presentation.type == 'command' or '\n' not in text
        yield from ((fact_text(presentation.metadata.get(key)), True) for key in ('path', 'cwd'))
    hidden = left_out_keys(request)
    shown = {key: value for key, value in request.args.items() if key not in hidden} if hidden else request.args
    yield from _within(shown, 0)


def _within(value: object, depth: int) -> Iterator[tuple[str, bool]]:
    if isinstance(value, str):
        yield value, '\n' not in value.removesuffix('\n')
    elif depth < 20 and isinstance(value, Mapping):
        for key, item in cast('Mapping[Any, Any]', value).items():
            if isinstance(key, str):
                yield key, True
            yield from _within(item, depth + 1)
    elif depth < 20 and isinstance(value, list | tuple):
        for item in cast('Sequence[object]', value):
            yield from _within(item, depth + 1)
    else:
        yield '', False
