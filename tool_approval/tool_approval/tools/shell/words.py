"""Read what a word of the shell becomes, as far as that is known before it runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from .grammar import Parsed, are_joined

if TYPE_CHECKING:
    from tree_sitter import Node


@dataclass(frozen=True, slots=True)
class UnsafeArgument:
    """An option, or an argument, that is more than data."""

    word: str
    """As it is written in the command."""
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
    growth: Growth = 'none'
    """Whether it may become several words, or none."""

    @property
    def can_be_option(self) -> bool:
        """Whether the program may take it, or a word that it becomes, for an option."""
        # Attack: `x=' -o y'; sort a$x` writes `y` (test_word_reading.py).
        is_open = not self.is_fixed and (self.growth == 'any' or self.value == '')
        return is_open or self.value.startswith('-')


def fixed(text: str) -> Word:
    """A word of exactly this text."""
    return Word(text, text)


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirection to or from a file; duplicating a descriptor is not one."""

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


WORDS: Final = frozenset({
    'word', 'number', 'raw_string', 'ansi_c_string', 'string', 'translated_string', 'simple_expansion', 'expansion',
    'command_substitution', 'process_substitution', 'arithmetic_expansion', 'brace_expression', 'concatenation',
    'variable_name', 'test_operator', 'special_variable_name',
})  # fmt: skip
"""The kinds of nodes that are words, or pieces of one."""
NAME: Final = re.compile(r'[A-Za-z_][A-Za-z0-9_]*')
_BARE: Final = re.compile(r'(?:[^\s\\\'"`$&|;<>()]|\\[^\n])*')
"""What an unquoted stretch may consist of: whatever else is in it, bash reads otherwise than the grammar did."""
_BARE_ESCAPE: Final = re.compile(r'\\(.)')
_DOUBLE: Final = re.compile(rb'(?:[^"\\`$]|\\[^\n]|\$(?![\w\x80-\xff{(\[@*#?$!-]))*')
"""What is literal in a text in double quotes."""
_DOUBLE_ESCAPE: Final = re.compile(r'\\([$`"\\])')
_PLAIN: Final = r'[\w ./:,+%^*?-]'
_EXPANSION: Final = re.compile(
    r'\$(?:[A-Za-z_]\w*|[0-9@*#?$!-])|'
    r'\$\{(?:[0-9@*#?]|#?[A-Za-z_]\w*(?:\[(?:[0-9]+|[@*])\])?|(?:[A-Za-z_]\w*|[0-9])'
    rf'(?::?[-+]{_PLAIN}*|##?{_PLAIN}+|%%?{_PLAIN}+|//?{_PLAIN}+?/{_PLAIN}*|: ?-?[0-9]+(?::-?[0-9]+)?|\^\^?|,,?))\}}',
    re.ASCII,
)
"""The expansions that run nothing, whatever the variable holds: no `@P`, no `!`, no assignment, and arithmetic, which a
subscript and a length are, only on plain numbers. Behind an operator there is plain text, so there is one way to read
it. Attack: `${x:-$(touch x)}`, `${a[$(touch x)]}`, `${PATH:=.}` (test_honest_commands.py)."""
_ALL_ARGUMENTS: Final = re.compile(r'\$@|\$\{@\}|\$\{\w+\[@\]\}')
"""Several words even in double quotes."""
_NUMBER: Final = re.compile(r'\$[#?$!]|\$\{#.*\}')
"""Expansions to a number or nothing, which is never split."""
_ARITHMETIC: Final = re.compile(r'\$\(\([0-9\s+*/%()<>=&|!~^-]*\)\)')
"""Arithmetic on plain numbers. A variable's value is evaluated again, and a subscript in it runs commands."""
_RANGE: Final = re.compile(r'\{\w+\.\.\w+\}')
_RAW: Final = re.compile(r"'[^']*'")
_ANSI: Final = re.compile(r"\$'(?:[^\\']|\\.)*'", re.DOTALL)
_ANSI_ESCAPE: Final = re.compile(
    r'\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|(.))', re.DOTALL
)
_ANSI_LETTERS: Final = dict(zip('abeEfnrtv\\\'"?', '\a\b\x1b\x1b\f\n\r\t\v\\\'"?', strict=True))


def _ansi_character(found: re.Match[str]) -> str:
    r"""What an escape in `$'...'` becomes; NUL, which ends the word for bash, where that is not certain.

    Bytes beyond ASCII make no character of their own, and what `\c` does depends on the version.
    """
    byte, short, long, octal, letter = found.groups()
    if letter is not None:
        return _ANSI_LETTERS.get(letter, '\0')
    number = int(octal, 8) if octal else int(byte or short or long, 16)
    return chr(number) if number < (0xD800 if short or long else 0x80) else '\0'


def _is_glob(bare: str) -> bool:
    return re.search(r'[*?[]', _BARE_ESCAPE.sub('', bare)) is not None


def _lists(bare: str) -> bool:
    """Whether an unquoted stretch may have braces that list words."""
    plain = _BARE_ESCAPE.sub('', bare)
    return '{' in plain and (',' in plain or '..' in plain)


@dataclass(frozen=True)
class WordReader:
    """Reads words."""

    parsed: Parsed
    """The command."""
    problem: Callable[[str], None]
    """Called with what is not understood."""
    inside: Callable[[Node], None]
    """Called with each substitution, which runs commands."""

    def read(self, node: Node) -> Word:
        """The word that a node is."""
        word = self._piece(node)
        if word.raw.startswith('#'):
            self.problem('a word begins with `#`')
        # The home directory of a user is never an option.
        return Word(word.raw, '/', is_fixed=False, growth=word.growth) if word.raw.startswith('~') else word

    def _piece(self, node: Node) -> Word:
        """A word, or a part of one."""
        text = self.parsed.text(node)
        growth: Growth = 'none'
        match node.type:
            case 'word' | 'number' | 'test_operator' | 'variable_name' | 'extglob_pattern':
                return self._bare(text)
            case 'raw_string' if _RAW.fullmatch(text):
                return Word(text, text[1:-1])
            case 'ansi_c_string' if _ANSI.fullmatch(text):
                value = _ANSI_ESCAPE.sub(_ansi_character, text[2:-1])
                return Word(text, value) if '\0' not in value else Word(text, '', is_fixed=False)
            case 'string':
                return self._string(node, text)
            case 'concatenation':
                return self._concatenation(node, text)
            case 'command_substitution' | 'process_substitution':
                self.inside(node)
                growth = 'any' if node.type == 'command_substitution' else 'none'
            case 'simple_expansion' | 'expansion' if _EXPANSION.fullmatch(text):
                growth = 'none' if _NUMBER.fullmatch(text) else 'any'
            case 'arithmetic_expansion' if _ARITHMETIC.fullmatch(text):
                pass
            case 'brace_expression' if _RANGE.fullmatch(text):
                growth = 'alike'
            case _:
                self.problem(f'{node.type.replace("_", " ")} is not understood')
                self._expansions(node)
                growth = 'any'
        return Word(text, '', is_fixed=False, growth=growth)

    def _bare(self, text: str) -> Word:
        if not _BARE.fullmatch(text):
            self.problem('a word is not understood')
            return Word(text, '', is_fixed=False, growth='any')
        if not _is_glob(text) and not _lists(text):
            return Word(text, _BARE_ESCAPE.sub(r'\1', text))
        known = re.match(r'(?:[^*?\[{\\]|\\.)*', text)
        return Word(text, _BARE_ESCAPE.sub(r'\1', known[0] if known else ''), is_fixed=False, growth='alike')

    def _string(self, node: Node, text: str) -> Word:
        inner = [child for child in node.named_children if child.type != 'string_content']
        literals = self.parsed.literals(node.start_byte + 1, inner, node.end_byte - 1, _DOUBLE)
        if literals is None or len(text) < 2 or text[0] + text[-1] != '""':
            self.problem('a text in double quotes is not understood')
        pieces = [self._piece(child) for child in inner]
        is_several = any(_ALL_ARGUMENTS.fullmatch(piece.raw) for piece in pieces)
        value = _DOUBLE_ESCAPE.sub(r'\1', literals[0]) if literals else ''
        return Word(text, value, literals is not None and not inner, 'any' if is_several else 'none')

    def _concatenation(self, node: Node, text: str) -> Word:
        if not all(child.is_named for child in node.children) or not are_joined(node.children):
            self.problem('a word is not understood')
        pieces = [self._piece(child) for child in node.named_children]
        unknown = next((at for at, piece in enumerate(pieces) if not piece.is_fixed), len(pieces))
        value = ''.join(piece.value for piece in pieces[: unknown + 1])
        growths = {piece.growth for piece in pieces}
        # Braces that list come in pieces: none of them is a pattern by itself. Each part of the list is a word.
        # Attack: `x=-oy; sort {"$x",a}` writes `y` (test_word_reading.py).
        is_list = _lists(
            ''.join(self.parsed.text(child) for child in node.children if child.type in ('word', 'number'))
        )
        if is_list:
            value = value.partition('{')[0]
            growths.add('alike')
        growth: Growth = 'any' if 'any' in growths else 'alike' if 'alike' in growths else 'none'
        return Word(text, value, unknown == len(pieces) and not is_list, growth)

    def _expansions(self, node: Node) -> None:
        for child in node.children:
            if child.type in ('command_substitution', 'process_substitution'):
                self.inside(child)
            else:
                self._expansions(child)
