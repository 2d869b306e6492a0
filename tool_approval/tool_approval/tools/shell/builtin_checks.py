"""Builtins of the shell that look harmless: which of their words evaluate something, or set a variable."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from .environment import is_harmless
from .hits import Hit
from .words import Word


def unsafe_test(words: Sequence[Word]) -> Hit | None:
    """What a subscript may hide in, and an operator that is not known."""
    arithmetic = ('-eq', '-ne', '-lt', '-le', '-gt', '-ge')
    may_expand = words[0].value == '[[' or _is_one_test(words)
    for at, word in enumerate(words[1:], start=1):
        if not word.is_fixed and not may_expand:
            return Hit(word.raw, 'it is not known before it runs, and may be an operator')
        if word.is_fixed and word.value in ('-v', '-R') and not _asks_for_variable(words):
            return Hit(word.raw, 'it evaluates a subscript, which may run a command')
        # To `test` and `[` a side is a number or a mistake; only `[[` evaluates it (test_honest_commands.py asks bash).
        if words[0].value == '[[' and word.is_fixed and word.value in arithmetic:
            sides = [*words[at - 1 : at], *words[at + 1 : at + 2]]
            if not all(side.is_fixed and re.fullmatch(r'[+-]?\d{1,18}', side.value) for side in sides):
                return Hit(word.raw, 'it evaluates arithmetic, which may run a command')
    return None


def _asks_for_variable(words: Sequence[Word]) -> bool:
    """Whether the whole test is `-v` with a plain name, which has no subscript."""
    inner = [word.value if word.is_fixed else '' for word in words[1:]]
    return (
        len(inner) in (2, 3)
        and inner[0] == '-v'
        and re.fullmatch(r'[A-Za-z_]\w*', inner[1]) is not None
        and inner[2:] in ([], [']'], [']]'])
    )


_UNARY: Final = frozenset(f'-{letter}' for letter in 'abcdefghknprstuwxzGLNOS')


def _is_one_test(words: Sequence[Word]) -> bool:
    """Whether there is one test whose operator is fixed: with two or three words POSIX says which one that is."""
    inner = list(words[1:])
    if words[0].value == '[' and inner and inner[-1].value == ']' and inner[-1].is_fixed:
        inner.pop()
    if any(word.growth != 'none' for word in inner):
        return False
    if inner and inner[0].is_fixed and inner[0].value == '!':
        inner = inner[1:]
    fixed_ones = [word.value if word.is_fixed else None for word in inner]
    match fixed_ones:
        case [str() as operator, _]:
            return operator in _UNARY
        case [_, '=' | '==' | '!=' | '-eq' | '-ne' | '-lt' | '-le' | '-gt' | '-ge' | '-nt' | '-ot' | '-ef', _]:
            return True
        case _:
            return False


def unsafe_set(words: Sequence[Word]) -> Hit | None:
    """An option that changes how the shell reads commands."""
    found = next((word for word in words[1:] if word.value not in _SET_SAFE), None)
    return Hit(found.raw, 'it changes how the shell works') if found is not None else None


_SET_SAFE: Final = frozenset({'-e', '-u', '-eu', '-ue', '-o', 'pipefail', '-euo', '-eo', '-f', 'errexit', 'nounset'})


def unsafe_printf(words: Sequence[Word]) -> Hit | None:
    """`-v`, and `%n` in a template, with which a variable is set."""
    first = words[1] if len(words) > 1 else None
    if first is not None and first.can_be_option and first.value != '--':
        return Hit(first.raw, '`-v` sets a variable, and evaluates its subscript')
    template = next((word for word in words[1:] if word.value != '--'), None)
    # `%%` prints one. Where the signs come in odd numbers, the last one is left over.
    if template is not None and (not template.is_fixed or _SETTING.search(template.value.replace('%%', ''))):
        return Hit(template.raw, '`%n` sets a variable')
    return None


_SETTING: Final = re.compile(r'%[^a-zA-Z%]*[hlLjqtz]*n')


def unsafe_read(words: Sequence[Word]) -> Hit | None:
    """Attack: `read 'a[$(touch x)]'`, and `read PATH`. Names are those that may be assigned to unasked."""
    has_name, takes_next = False, False
    for word in words[1:]:
        if not word.is_fixed:
            return Hit(word.raw, 'it is not known before it runs, and may be the name of any variable')
        if takes_next:
            takes_next = False
        elif word.value in ('-p', '-d'):
            takes_next = True
        elif re.fullmatch(r'[a-z]\w*', word.value) and is_harmless(word.value, is_exported=False):
            has_name = True
        elif not re.fullmatch(r'-[rs]+', word.value):
            return Hit(word.raw, 'it sets a variable that may change what runs, or evaluates a subscript')
    return None if has_name else Hit(words[0].raw, 'it sets a variable that is not named')
