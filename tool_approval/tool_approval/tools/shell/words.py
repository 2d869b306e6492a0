"""What a word of the shell becomes, as far as that can be known without running it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

Growth = Literal['none', 'alike', 'any']
"""How one word may become several: not at all; several that begin alike, as with a glob; or any others behind it, as
where bash splits the value of a variable that is not quoted."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command."""

    raw: str
    """As it is written."""
    value: str
    """What it becomes; of a word that is not fixed, the part before the first thing that is not known."""
    is_fixed: bool = True
    """Whether it becomes exactly `value`, one word, whatever files and variables there are."""
    is_bare: bool = False
    """Whether nothing of it is quoted: only then may bash take it for a keyword."""
    growth: Growth = 'none'
    """Whether it may become several words, or none."""

    @property
    def can_be_option(self) -> bool:
        """Whether the program may take it, or a word that it becomes, for an option."""
        if self.is_fixed:
            return self.value.startswith('-')
        # Attack: `x=' -o y'; sort a$x` writes `y` (test_word_reading.py).
        return self.growth == 'any' or self.value == '' or self.value.startswith('-')


def fixed(text: str) -> Word:
    """A word of exactly this text."""
    return Word(text, text)


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirection to or from a file; duplicating descriptors is none."""

    target: Word
    """The file."""
    is_write: bool
    """Whether the file is written, or made."""


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command: a program and what it is given."""

    words: tuple[Word, ...]
    """The program and its arguments; empty where there are assignments or redirections alone."""
    raw: str
    """As it is written."""
    assignments: tuple[str, ...] = ()
    """Names of variables set for it, or by it where there is no program."""
    redirects: tuple[Redirect, ...] = ()
    """Its redirections."""
    is_fed: bool = False
    """Whether its standard input is another command's output, a file or a text."""
    is_fed_here: bool = False
    """Whether what feeds it is known to be a pipe, a text, or a file among its own redirections."""

    def of(self, words: Sequence[Word]) -> Command:
        """The command that this one runs with its arguments."""
        raw = ' '.join(word.raw for word in words)
        # Attack: `timeout 5 head < /etc/passwd`. The redirection stays with the wrapper (test_sandbox_paths.py).
        is_fed_here = self.is_fed_here and not self.redirects
        return Command(tuple(words), raw, is_fed=self.is_fed, is_fed_here=is_fed_here)


BARE: Final = re.compile(r'(?:[^\s\\\'"`$&|;<>()]|\\[^\n])*')
"""What an unquoted stretch may consist of: whatever else is in it, bash reads otherwise than the grammar did."""
SINGLE: Final = re.compile(r"'[^']*'")
ANSI: Final = re.compile(r"\$'(?:[^\\']|\\.)*'", re.DOTALL)
DOUBLE: Final = re.compile(r'(?:[^"\\`$]|\\[^\n]|\$(?![\w{(\[@*#?$!-]))*')
"""What stands between the expansions of a text in double quotes."""
NAME: Final = re.compile(r'[A-Za-z_][A-Za-z0-9_]*')
SIMPLE: Final = re.compile(r'\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])')
_LITERAL: Final = r'[\w ./:,+%^*?-]'
BRACED: Final = re.compile(
    r'\$\{(?:[0-9@*#?]|#?[A-Za-z_][A-Za-z0-9_]*(?:\[(?:[0-9]+|[@*])\])?'
    r'|(?:[A-Za-z_][A-Za-z0-9_]*|[0-9])'
    rf'(?::?[-+]{_LITERAL}*|##?{_LITERAL}+|%%?{_LITERAL}+|//?{_LITERAL}+?/{_LITERAL}*|: ?-?[0-9]+(?::-?[0-9]+)?|\^\^?|,,?))\}}',
    re.ASCII,
)
"""The expansions that run nothing, whatever the variable holds: no `@P`, no `!`, no assignment, and arithmetic, which a
subscript and a length are, only on plain numbers. What stands behind an operator is plain text, so there is one way to
read it. Attack: `${x:-$(touch x)}`, `${a[$(touch x)]}`, `${PATH:=.}` (test_honest_commands.py)."""

_ESCAPES: Final = {
    'a': '\a', 'b': '\b', 'e': '\x1b', 'E': '\x1b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v',
    '\\': '\\', "'": "'", '"': '"', '?': '?',
}  # fmt: skip
_ESCAPE: Final = re.compile(
    r'\\(?:x(?P<x>[0-9A-Fa-f]{1,2})|u(?P<u>[0-9A-Fa-f]{1,4})|U(?P<U>[0-9A-Fa-f]{1,8})|(?P<o>[0-7]{1,3})|(?P<c>.))',
    re.DOTALL,
)


def unescape_ansi(text: str) -> str | None:
    r"""What `$'...'` becomes, or `None` where that is not plain text.

    NUL ends the word for bash, bytes beyond ASCII make no character of their own, and `\c` depends on the version.
    """
    problems = False

    def replaced(found: re.Match[str]) -> str:
        nonlocal problems
        if (char := found['c']) is not None:
            problems = problems or char not in _ESCAPES
            return _ESCAPES.get(char, '')
        base = 8 if found['o'] else 16
        number = int(found['o'] or found['x'] or found['u'] or found['U'], base)
        limit = 0x7F if found['o'] or found['x'] else 0x10FFFF
        problems = problems or not 0 < number <= limit or 0xD800 <= number <= 0xDFFF
        return '' if problems else chr(number)

    value = _ESCAPE.sub(replaced, text)
    return None if problems else value


def is_pattern(bare: str) -> bool:
    """Whether an unquoted stretch may become other words: a glob, or braces that list."""
    plain = re.sub(r'\\.', '', bare)
    return any(char in plain for char in '*?[') or ('{' in plain and (',' in plain or '..' in plain))
