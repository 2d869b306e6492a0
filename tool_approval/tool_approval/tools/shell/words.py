"""Say what a word of the shell becomes, as far as that can be known without running it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from .grammar import Parsed, Syntax


@dataclass(frozen=True, slots=True)
class UnsafeArgument:
    """An option, or an argument, that is more than data."""

    word: str
    """As it stands in the command."""
    why: str
    """What it may do."""


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
class SimpleCommand:
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

    def of(self, words: Sequence[Word]) -> SimpleCommand:
        """The command that this one runs with its arguments."""
        raw = ' '.join(word.raw for word in words)
        # Attack: `timeout 5 head < /etc/passwd`. The redirection stays with the wrapper (test_sandbox_paths.py).
        is_fed_here = self.is_fed_here and not self.redirects
        return SimpleCommand(tuple(words), raw, is_fed=self.is_fed, is_fed_here=is_fed_here)


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
    rf'(?::?[-+]{_LITERAL}*|##?{_LITERAL}+|%%?{_LITERAL}+|//?{_LITERAL}+?/{_LITERAL}*|: '
    rf'?-?[0-9]+(?::-?[0-9]+)?|\^\^?|,,?))\}}',
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
    return re.search(r'[*?[]', _ESCAPED.sub('', bare)) is not None or lists_words(bare)


def lists_words(bare: str) -> bool:
    """Whether an unquoted stretch may have braces that list words."""
    plain = _ESCAPED.sub('', bare)
    return '{' in plain and (',' in plain or '..' in plain)


_ESCAPED: Final = re.compile(r'\\.')


_ARITHMETIC: Final = re.compile(r'\$\(\([0-9\s+*/%()<>=&|!~^-]*\)\)')
"""Arithmetic on plain numbers. A variable's value is evaluated again, and a subscript in it runs commands."""
_DOUBLE_ESCAPE: Final = re.compile(r'\\([$`"\\])')
_BARE_ESCAPE: Final = re.compile(r'\\(.)')

WORDS: Final = frozenset(
    {
        'word', 'number', 'raw_string', 'ansi_c_string', 'string', 'translated_string', 'simple_expansion',
        'expansion', 'command_substitution', 'process_substitution', 'arithmetic_expansion', 'brace_expression',
        'concatenation', 'variable_name', 'test_operator', 'special_variable_name',
    }
)  # fmt: skip
"""The kinds of nodes that are words, or pieces of one."""

_ALL_ARGUMENTS: Final = re.compile(r'\$@|\$\{@\}|\$\{\w+\[@\]\}')
"""Several words even in double quotes."""
_NUMBER: Final = re.compile(r'\$[#?$!]|\$\{#.*\}')
"""Expansions to a number or nothing, which is never split."""


class _Piece(NamedTuple):
    """A word, or a part of one; the fields are those of `Word`."""

    value: str
    is_fixed: bool
    is_bare: bool
    growth: Growth = 'none'


class WordReader:
    """Reads words; what runs inside of them it hands on."""

    def __init__(self, parsed: Parsed, problem: Callable[[str], None], inside: Callable[[Syntax], None]) -> None:
        """Read from `parsed`.

        Args:
            parsed: The command.
            problem: Told of what is not understood.
            inside: Given each substitution.
        """
        self._parsed = parsed
        self._problem = problem
        self._inside = inside

    def read(self, node: Syntax) -> Word:
        """The word that a node is."""
        value, is_fixed, is_bare, growth = self._piece(node)
        raw = self._parsed.text(node)
        if raw.startswith('#'):
            self._problem('a word begins with `#`')
        if raw.startswith('~'):
            return Word(
                raw, '/', is_fixed=False, growth=growth
            )  # somebody's home directory, or another; never an option
        return Word(raw, value, is_fixed, is_bare, growth)

    def _piece(self, node: Syntax) -> _Piece:
        text = self._parsed.text(node)
        match node.kind:
            case 'word' | 'number' | 'test_operator' | 'variable_name' | 'extglob_pattern':
                return self._bare(text)
            case 'raw_string' if SINGLE.fullmatch(text):
                return _Piece(text[1:-1], True, False)
            case 'ansi_c_string' if ANSI.fullmatch(text):
                value = unescape_ansi(text[2:-1])
                return _Piece(value, True, False) if value is not None else _Piece('', False, False)
            case 'string':
                return self._string(node)
            case 'concatenation':
                return self._concatenation(node)
            case 'command_substitution' | 'process_substitution':
                self._inside(node)
                return _Piece('', False, False, 'any' if node.kind == 'command_substitution' else 'none')
            case 'translated_string':
                self._expansions(node)
                return _Piece('', False, False, 'any')
            case 'simple_expansion' if SIMPLE.fullmatch(text):
                return _Piece('', False, True, 'none' if _NUMBER.fullmatch(text) else 'any')
            case 'expansion' if BRACED.fullmatch(text):
                return _Piece('', False, True, 'none' if _NUMBER.fullmatch(text) else 'any')
            case 'arithmetic_expansion' if _ARITHMETIC.fullmatch(text):
                return _Piece('', False, True)
            case 'brace_expression' if re.fullmatch(r'\{\w+\.\.\w+\}', text):
                return _Piece('', False, True, 'alike')
            case _:
                self._problem(f'{node.kind.replace("_", " ")} is not understood')
                self._expansions(node)
                return _Piece('', False, False, 'any')

    def _bare(self, text: str) -> _Piece:
        if not BARE.fullmatch(text):
            self._problem('a word is not understood')
            return _Piece('', False, False, 'any')
        if is_pattern(text):
            known = re.match(r'(?:[^*?\[{\\]|\\.)*', text)
            return _Piece(_BARE_ESCAPE.sub(r'\1', known[0] if known else ''), False, True, 'alike')
        return _Piece(_BARE_ESCAPE.sub(r'\1', text), True, '\\' not in text)

    def _string(self, node: Syntax) -> _Piece:
        value, is_fixed, at = '', True, node.start + 1
        growth: Growth = 'none'
        expansions = [child for child in node.children if child.is_named and child.kind != 'string_content']
        for child in [*expansions, None]:
            end = child.start if child is not None else node.end - 1
            # Of a text that never ends, the last character may be cut (test_word_reading.py).
            text = self._parsed.source[at:end].decode(errors='replace')
            if not DOUBLE.fullmatch(text) or (child is not None and text.endswith('$')):
                self._problem('a text in double quotes is not understood')
            value += _DOUBLE_ESCAPE.sub(r'\1', text) if is_fixed else ''
            if child is not None:
                self._piece(child)
                is_fixed, at = False, child.end
                growth = 'any' if _ALL_ARGUMENTS.fullmatch(self._parsed.text(child)) else growth
        source = self._parsed.source
        if node.end - node.start < 2 or source[node.start : node.start + 1] + source[node.end - 1 : node.end] != b'""':
            self._problem('a text in double quotes is not understood')
        return _Piece(value, is_fixed, False, growth)

    def _concatenation(self, node: Syntax) -> _Piece:
        value, is_fixed, is_bare, at = '', True, True, node.start
        growths: set[Growth] = set()
        for child in node.children:
            if child.start != at or not child.is_named:
                self._problem('a word is not understood')
            if child.is_named:
                more, more_is_fixed, more_is_bare, more_growth = self._piece(child)
                growths.add(more_growth)
                value += more if is_fixed else ''
                is_fixed, is_bare = is_fixed and more_is_fixed, is_bare and more_is_bare
            at = child.end
        # Braces that list come in pieces: none of them is a pattern by itself.
        bare = ''.join(self._parsed.text(child) for child in node.children if child.kind in ('word', 'number'))
        # Attack: `x=-oy; sort {"$x",a}` writes `y` (test_word_reading.py).
        if lists_words(bare):
            value, is_fixed = value.partition('{')[0], False
            growths.add('alike')
        growth: Growth = 'any' if 'any' in growths else 'alike' if 'alike' in growths else 'none'
        return _Piece(value, is_fixed, is_bare, growth)

    def _expansions(self, node: Syntax) -> None:
        for child in node.children:
            if child.kind in ('command_substitution', 'process_substitution'):
                self._inside(child)
            else:
                self._expansions(child)
