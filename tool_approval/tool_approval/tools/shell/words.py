"""Convert syntax nodes into words. A word's value is the part that is known before the shell runs the command."""

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
    """An argument or option that needs approval."""

    word: str
    """The word as written in the command."""
    why: str
    """Reason to require approval, such as `is not listed as a safe option`. Messages show the reason after the word."""


Growth = Literal['none', 'alike', 'any']
"""Whether a word may expand to several words. `alike` means words that begin the same way, such as the file names that
match a glob. `any` means arbitrary words, such as those in an unquoted variable."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command."""

    raw: str
    """The word as written."""
    value: str
    """Value of the word. If the word is not fixed, this is the part before the first unknown piece."""
    is_fixed: bool = True
    """Whether the word always expands to exactly `value`."""
    growth: Growth = 'none'
    """Whether the word may expand to several words or to no word."""

    @property
    def can_be_option(self) -> bool:
        """Whether the program may read the word as an option, after bash has expanded the word."""
        # Attack: `x=' -o y'; sort a$x` writes `y` (test_cases.py).
        is_open = not self.is_fixed and (self.growth == 'any' or self.value == '')
        return is_open or self.value.startswith('-')


def fixed(text: str) -> Word:
    """Return a fixed word with this text."""
    return Word(text, text)


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirection to or from a file, not to another descriptor."""

    target: Word
    """The file."""
    is_write: bool
    """Whether the redirection writes to the file or creates it."""


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """A simple command: a program with its arguments, assignments and redirections."""

    words: tuple[Word, ...]
    """The program and its arguments; empty for assignments or redirections without a program."""
    raw: str
    """The command as written."""
    assignments: tuple[str, ...] = ()
    """Names of the variables that the command sets, for the program or for the shell."""
    redirects: tuple[Redirect, ...] = ()
    """Redirections of the command."""
    is_fed: bool = False
    """Whether the standard input of the command is a pipe, a file, or text in the command."""

    def of(self, words: Sequence[Word]) -> SimpleCommand:
        """Return the command that this wrapper runs. The command has the given words and the wrapper's input."""
        return SimpleCommand(tuple(words), ' '.join(word.raw for word in words), is_fed=self.is_fed)


WORDS: Final = frozenset({
    'word', 'number', 'raw_string', 'ansi_c_string', 'string', 'translated_string', 'simple_expansion', 'expansion',
    'command_substitution', 'process_substitution', 'arithmetic_expansion', 'brace_expression', 'concatenation',
    'variable_name', 'test_operator', 'special_variable_name',
})  # fmt: skip
"""Types of syntax nodes that are words or pieces of words."""
NAME: Final = re.compile(r'[A-Za-z_][A-Za-z0-9_]*')
_BARE: Final = re.compile(r'(?:[^\s\\\'"`$&|;<>()]|\\[^\n])*')
"""Matches an unquoted piece of a word in which the grammar and bash read every character in the same way."""
_BARE_ESCAPE: Final = re.compile(r'\\(.)')
_DOUBLE: Final = re.compile(rb'(?:[^"\\`$]|\\[^\n]|\$(?![\w\x80-\xff{(\[@*#?$!-]))*')
"""Literal text in double quotes."""
_DOUBLE_ESCAPE: Final = re.compile(r'\\([$`"\\])')
_PLAIN: Final = r'[\w ./:,+%^*?-]'
_EXPANSION: Final = re.compile(
    r'\$(?:[A-Za-z_]\w*|[0-9@*#?$!-])|'
    r'\$\{(?:[0-9@*#?]|#?[A-Za-z_]\w*(?:\[(?:[0-9]+|[@*])\])?|(?:[A-Za-z_]\w*|[0-9])'
    rf'(?::?[-+]{_PLAIN}*|##?{_PLAIN}+|%%?{_PLAIN}+|//?{_PLAIN}+?/{_PLAIN}*|: ?-?[0-9]+(?::-?[0-9]+)?|\^\^?|,,?))\}}',
    re.ASCII,
)
"""Expansions that run no code, whatever the value of the variable. `@P`, `!` and assignments are excluded. Subscripts
and lengths must be plain numbers, because bash evaluates them as arithmetic. Only plain text may follow an
operator such as `:-`. Attack: `${x:-$(touch x)}`, `${a[$(touch x)]}`, `${PATH:=.}` (test_cases.py)."""
_ALL_ARGUMENTS: Final = r'\$@|\$\{@\}|\$\{\w+\[@\]\}'
"""Expansions that give several words even in double quotes."""
_NUMBER: Final = r'\$[#?$!]|\$\{#.*\}'
"""Expansions whose value is a number or empty. Bash never splits these values."""
_ARITHMETIC: Final = r'\$\(\([0-9\s+*/%()<>=&|!~^-]*\)\)'
"""Arithmetic on plain numbers. Bash also evaluates the values of variables, which can contain commands."""
_RANGE: Final = r'\{\w+\.\.\w+\}'
_RAW: Final = r"'[^']*'"
_ANSI: Final = re.compile(r"\$'(?:[^\\']|\\.)*'", re.DOTALL)
_ANSI_ESCAPE: Final = re.compile(
    r'\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|(.))', re.DOTALL
)
_ANSI_LETTERS: Final = dict(zip('abeEfnrtv\\\'"?', '\a\b\x1b\x1b\f\n\r\t\v\\\'"?', strict=True))


def _ansi_character(found: re.Match[str]) -> str:
    r"""Return the character for an escape in `$'...'`, or NUL if the character is uncertain. NUL ends the word in bash.

    An escape for a byte above ASCII may be only part of a character. The effect of `\c` depends on the version of bash.
    """
    byte, short, long, octal, letter = found.groups()
    if letter is not None:
        return _ANSI_LETTERS.get(letter, '\0')
    number = int(octal, 8) if octal else int(byte or short or long, 16)
    return chr(number) if number < (0xD800 if short or long else 0x80) else '\0'


def _is_glob(bare: str) -> bool:
    return re.search(r'[*?[]', _BARE_ESCAPE.sub('', bare)) is not None


def _lists(bare: str) -> bool:
    """Return whether an unquoted piece may contain a brace list such as `{a,b}`."""
    plain = _BARE_ESCAPE.sub('', bare)
    return '{' in plain and (',' in plain or '..' in plain)


@dataclass(frozen=True)
class WordReader:
    """Converts syntax nodes into words."""

    parsed: Parsed
    """The parsed command."""
    problem: Callable[[str], None]
    """Function that is called with a description of each unsupported piece."""
    inside: Callable[[Node], None]
    """Function that is called with the node of each command substitution and process substitution."""

    def read(self, node: Node) -> Word:
        """Return the word for a syntax node."""
        word = self._piece(node)
        if word.raw.startswith('#'):
            self.problem('a word that begins with `#`')
        # A home directory never begins with a dash, so `~` is never an option.
        return Word(word.raw, '/', is_fixed=False, growth=word.growth) if word.raw.startswith('~') else word

    def _piece(self, node: Node) -> Word:
        """Convert a node, which is a whole word or a piece of a word, to a `Word`."""
        text = self.parsed.text(node)
        growth: Growth = 'none'
        match node.type:
            case 'word' | 'number' | 'test_operator' | 'variable_name' | 'extglob_pattern':
                return self._bare(text)
            case 'raw_string' if re.fullmatch(_RAW, text):
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
                growth = 'none' if re.fullmatch(_NUMBER, text) else 'any'
            case 'arithmetic_expansion' if re.fullmatch(_ARITHMETIC, text):
                pass
            case 'brace_expression' if re.fullmatch(_RANGE, text):
                growth = 'alike'
            case _:
                self.problem(node.type.replace('_', ' '))
                self._expansions(node)
                growth = 'any'
        return Word(text, '', is_fixed=False, growth=growth)

    def _bare(self, text: str) -> Word:
        if not _BARE.fullmatch(text):
            self.problem('a word with special characters')
            return Word(text, '', is_fixed=False, growth='any')
        if not _is_glob(text) and not _lists(text):
            return Word(text, _BARE_ESCAPE.sub(r'\1', text))
        known = re.match(r'(?:[^*?\[{\\]|\\.)*', text)
        return Word(text, _BARE_ESCAPE.sub(r'\1', known[0] if known else ''), is_fixed=False, growth='alike')

    def _string(self, node: Node, text: str) -> Word:
        inner = [child for child in node.named_children if child.type != 'string_content']
        literals = self.parsed.literals(node.start_byte + 1, inner, node.end_byte - 1, _DOUBLE)
        if literals is None or len(text) < 2 or text[0] + text[-1] != '""':
            self.problem('a string in double quotes')
        pieces = [self._piece(child) for child in inner]
        is_several = any(re.fullmatch(_ALL_ARGUMENTS, piece.raw) for piece in pieces)
        value = _DOUBLE_ESCAPE.sub(r'\1', literals[0]) if literals else ''
        return Word(text, value, literals is not None and not inner, 'any' if is_several else 'none')

    def _concatenation(self, node: Node, text: str) -> Word:
        if not all(child.is_named for child in node.children) or not are_joined(node.children):
            self.problem('a word with special characters')
        pieces = [self._piece(child) for child in node.named_children]
        unknown = next((at for at, piece in enumerate(pieces) if not piece.is_fixed), len(pieces))
        value = ''.join(piece.value for piece in pieces[: unknown + 1])
        growths = {piece.growth for piece in pieces}
        # A brace list is split into pieces, so check them joined. Each item becomes a word of its own.
        # Attack: `x=-oy; sort {"$x",a}` writes `y` (test_cases.py).
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
