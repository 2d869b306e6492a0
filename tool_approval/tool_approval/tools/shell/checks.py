"""Check arguments that cannot be judged by a list of safe options alone."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from typing import Final

from .scripts import is_plain_awk, is_plain_sed
from .words import UnsafeArgument, Word

UNKNOWN_OPTION: Final = 'is unknown until the command runs, and may be an option'


def unsafe_test(words: Sequence[Word]) -> UnsafeArgument | None:
    """Return an unknown operator of `test`, or an argument that may contain a subscript."""
    may_expand = words[0].value == '[[' or _is_one_test(words)
    for word in words[1:]:
        if not word.is_fixed and not may_expand:
            return UnsafeArgument(word.raw, 'is unknown until the command runs, and may be an operator')
        if word.is_fixed and word.value in ('-v', '-R'):
            return UnsafeArgument(word.raw, 'evaluates a subscript, which may run a command')
        # `test` and `[` accept only numbers here; `[[` evaluates the operands (test_bash_itself.py asks bash).
        if words[0].value == '[[' and word.is_fixed and word.value in _ARITHMETIC:
            return UnsafeArgument(word.raw, 'evaluates arithmetic, which may run a command')
    return None


_ARITHMETIC: Final = frozenset({'-eq', '-ne', '-lt', '-le', '-gt', '-ge'})
_BINARY: Final = _ARITHMETIC | {'=', '==', '!=', '-nt', '-ot', '-ef'}
_UNARY: Final = frozenset(f'-{letter}' for letter in 'abcdefghknprstuwxzGLNOS')


def _is_one_test(words: Sequence[Word]) -> bool:
    """Return whether the words are a single test, as defined by POSIX: one known operator with one or two operands."""
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
        case [_, str() as operator, _]:
            return operator in _BINARY
        case _:
            return False


def is_device(word: Word) -> bool:
    """Return whether the path refers to the standard input of the program.

    Attack: `python3 //dev/./stdin`, `python3 /proc/self/fd/0`.
    """
    return word.value == '-' or _DEVICE.match(posixpath.normpath(word.value)) is not None


_DEVICE: Final = re.compile(r'/*(?:/|(?:\.\./)+)(?:dev|proc)(?:/|$)')


def _tar(words: Sequence[Word]) -> UnsafeArgument | None:
    """Refuse archives on other machines, and unsafe option letters that have no leading dash."""
    letters = words[1].value if len(words) > 1 else ''
    if len(words) > 1 and not words[1].is_fixed:
        return UnsafeArgument(words[1].raw, UNKNOWN_OPTION)
    # Attack: `tar xf- a.tar`. Without a leading dash, the first word consists of option letters.
    if not letters.startswith('-') and (bad := re.search(r'[IFxruAcdgUPTML]|[^A-Za-z]', letters)):
        return UnsafeArgument(
            letters, f'contains `{bad[0]}`, which may unpack, compare, write, change or run something'
        )
    if any(word.value == '--force-local' for word in words):
        return None
    for word in words[1:]:
        # Attack: `tar tf host:x` runs rsh. A name with `/` before its `:` is a local file.
        name = word.value.partition('=')[2] if word.value.startswith('--') else word.value
        if re.match(r'[^/:]+:', name) or (not word.is_fixed and name and '/' not in name):
            return UnsafeArgument(word.raw, 'may be on another machine, which tar reaches by running another program')
    return None


CODE: Final[dict[str, Callable[[str], bool]]] = {'sed': is_plain_sed, 'awk': is_plain_awk}
"""Functions by checker name. `True` means that code runs no program and writes no file."""
CHECKS: Final[dict[str, Callable[[Sequence[Word]], UnsafeArgument | None]]] = {
    'test': unsafe_test,
    'tar': _tar,
}
"""Functions by checker name. Each function returns the first word that requires approval, or `None`."""
