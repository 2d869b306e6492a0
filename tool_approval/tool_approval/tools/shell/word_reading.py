"""Reads words of the tree, and believes the grammar only where its pieces read the same way to bash."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from .grammar import Parsed, Syntax
from .words import ANSI, BARE, BRACED, DOUBLE, SIMPLE, SINGLE, Growth, Word, is_pattern, unescape_ansi

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
        if is_fixed and is_pattern(bare):
            first = re.match(r'[^*?\[{]*', value)
            return _Piece(first[0] if first else '', False, False, 'alike')
        growth: Growth = 'any' if 'any' in growths else 'alike' if 'alike' in growths else 'none'
        return _Piece(value, is_fixed, is_bare, growth)

    def _expansions(self, node: Syntax) -> None:
        for child in node.children:
            if child.kind in ('command_substitution', 'process_substitution'):
                self._inside(child)
            else:
                self._expansions(child)
