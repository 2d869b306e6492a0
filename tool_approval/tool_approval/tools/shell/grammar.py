"""Parse a command with tree-sitter, within limits of size and time."""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from tool_approval.core.errors import MissingExtraError

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_BYTES: Final = 8_192
"""Maximum size of a command in bytes, to limit the time for parsing."""
MAX_PARSE_S: Final = 0.020
"""Maximum seconds for parsing. Some inputs of 8 kB take a second to parse."""
MAX_DEPTH: Final = 60
"""Maximum depth of a syntax tree, far below Python's recursion limit."""
_MAX_PIPES: Final = 200
"""Maximum number of commands in a pipeline. The time for parsing grows with the square of the number of
commands, and parsing cannot be interrupted."""
_CHUNK: Final = 64
"""Number of bytes that the parser gets at a time. The clock is checked before each chunk."""


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """A parsed command."""

    source: bytes
    """Text of the command in UTF-8."""
    root: Node | None = None
    """Root of the syntax tree; `None` if the command was not parsed."""
    problem: str | None = None
    """Reason why the command cannot be parsed; `None` if it was parsed."""

    def text(self, node: Node) -> str:
        """Return the source text of a node."""
        return self.source[node.start_byte : node.end_byte].decode(errors='replace')

    def literals(self, start: int, inner: Sequence[Node], end: int, plain: re.Pattern[bytes]) -> list[str] | None:
        """Return the pieces of a text between its expansions, or `None` if bash might not read a piece literally.

        Args:
            start: Offset of the first byte of the text.
            inner: Expansions inside the text.
            end: Offset after the last byte of the text.
            plain: Pattern of text that bash reads literally.
        """
        ends = [start, *(node.end_byte for node in inner)]
        texts = [self.source[a:b] for a, b in zip(ends, [*(node.start_byte for node in inner), end], strict=True)]
        is_plain = all(map(plain.fullmatch, texts)) and not any(text.endswith(b'$') for text in texts[:-1])
        # If a string is not terminated, its last character may be cut in half (test_cases.py).
        return [text.decode(errors='replace') for text in texts] if is_plain else None


def strange_character(command: str) -> str | None:
    """Return the first invisible character, or the first character that looks like a blank but is not a blank for bash.

    Many parsers treat a carriage return as a separator, but bash does not. With a bidirectional override, the displayed
    command differs from the one that runs (test_cases.py).
    """
    if command.isascii() and command.isprintable():
        return None
    for char in command:
        if char not in ' \n\t' and (unicodedata.category(char)[0] in 'CZ' or char in _INVISIBLE):
            return f'U+{ord(char):04X}'
    return None


_INVISIBLE: Final = frozenset('\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800')
"""Invisible characters that Unicode classifies as letters, marks or symbols."""


def parse(command: str, *, clock: Callable[[], float] = time.thread_time) -> Parsed:
    """Parse a command.

    Args:
        command: The text for bash.
        clock: Monotonic time in seconds.

    Returns:
        The syntax tree, or the reason why there is no tree. If the command has a syntax error, the result has both the
        tree and a reason.

    Raises:
        MissingExtraError: tree-sitter or its grammar is not installed.
    """
    try:
        import tree_sitter_bash
        from tree_sitter import Language, Parser
    except ImportError as error:
        raise MissingExtraError(error.name or 'tree_sitter', extra='shell') from None
    if (strange := strange_character(command)) is not None:
        return Parsed(source=b'', problem=f'the character {strange}')
    source = command.encode()
    if len(source) > MAX_BYTES:
        return Parsed(source=source, problem=f'the command is longer than {MAX_BYTES} bytes')
    if source.count(b'|') > _MAX_PIPES:
        return Parsed(source=source, problem=f'the command has more than {_MAX_PIPES} pipes')
    deadline = clock() + MAX_PARSE_S
    is_late = False

    def read(offset: int, _: object) -> bytes:
        nonlocal is_late
        is_late = is_late or clock() > deadline
        # The parser can only be stopped by withholding the rest of the text.
        return b'' if is_late else source[offset : offset + _CHUNK]

    root = Parser(Language(tree_sitter_bash.language())).parse(read).root_node
    if is_late or clock() > deadline:
        return Parsed(source=source, problem=f'parsing the command takes longer than {MAX_PARSE_S * 1000:.0f} ms')
    if _is_deeper(root, MAX_DEPTH):
        return Parsed(source=source, problem='the command is nested too deeply')
    return Parsed(source=source, root=root, problem='the command has a syntax error' if root.has_error else None)


def _is_deeper(node: Node, depth: int) -> bool:
    return depth < 0 or any(_is_deeper(child, depth - 1) for child in node.children)


def are_joined(nodes: Sequence[Node]) -> bool:
    """Return whether each node begins at the end of the previous one."""
    return all(before.end_byte == after.start_byte for before, after in pairwise(nodes))


_DELIMITER: Final = re.compile(rb'\'([A-Za-z_][\w.-]*)\'|"([A-Za-z_][\w.-]*)"|([A-Za-z_]\w*)')
_DOCUMENT: Final = re.compile(rb'(?:[^\\`$]|\\[^\n]|\$(?![\w\x80-\xff{(\[@*#?$!-]))*')
"""Literal text in a here-document. A `$` that does not begin an expansion is literal."""


def is_plain_heredoc(node: Node, parsed: Parsed) -> bool:
    """Return whether bash and the grammar agree on the text of a here-document. Bash and the grammar disagree on
    delimiters in mixed quotes, on continued lines and on several here-documents in one line (test_cases.py). More
    commands may follow the here-document.

    Args:
        node: The `heredoc_redirect`.
        parsed: The whole command.
    """
    source, found = parsed.source, {child.type: child for child in node.children}
    if not found.keys() >= {'heredoc_start', 'heredoc_body', 'heredoc_end'}:
        return False
    start, body, end = found['heredoc_start'], found['heredoc_body'], found['heredoc_end']
    delimiter = _DELIMITER.fullmatch(source[start.start_byte : start.end_byte])
    head, line_break, _ = source[start.end_byte :].partition(b'\n')
    # Quotes and substitutions may continue on the next line, and a comment may hide part of the line.
    if delimiter is None or not line_break or head[:1] not in (b'', b' ') or re.search(rb'[\\\'"`#$(){}]|<<', head):
        return False
    first = start.end_byte + len(head) + 1
    tabs = rb'\t*' if source[: start.start_byte].rstrip(b' \t').endswith(b'<<-') else b''
    name = re.escape(delimiter[delimiter.lastindex or 0])
    last = re.compile(rb'^%b(%b)$' % (tabs, name), re.MULTILINE).search(source, first)
    is_same = last is not None and last.span(1) == (end.start_byte, end.end_byte)
    if last is None or not is_same or body.start_byte < first - 1 or body.end_byte > end.start_byte:
        return False
    if delimiter[3] is None:
        return True
    inner = [child for child in body.children if child.type != 'heredoc_content']
    # Attack: a line that ends with a backslash, or a backquote that is closed after the document.
    is_cut = re.search(rb'\\\n|`', source[first : last.start()])
    return not is_cut and parsed.literals(first, inner, last.start(), _DOCUMENT) is not None
