"""Parse a command with tree-sitter, within limits, into plain nodes."""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tool_approval.core.errors import MissingExtraError

if TYPE_CHECKING:
    from tree_sitter import Node as _Node

MAX_BYTES: Final = 8_192
"""A longer command is asked about unparsed: nobody writes one, and parsing it takes an attacker's time."""
MAX_PARSE_S: Final = 0.020
"""How long parsing may take. Some inputs of 8 kB take the grammar a second."""
MAX_DEPTH: Final = 60
"""Chosen: deeper than anybody nests, and far from Python's recursion limit."""
_MAX_PIPES: Final = 200
"""Chosen: the time the grammar takes for a pipeline grows with the square of its length, and it cannot be stopped."""
_CHUNK: Final = 64
"""Bytes handed to the parser at a time; between two of them the clock is looked at."""


@dataclass(frozen=True, slots=True)
class Syntax:
    """A node of the tree: what the grammar calls a stretch of the command."""

    kind: str
    """The grammar's name for it; of an operator, the operator itself."""
    start: int
    """Where it begins, as an offset in bytes."""
    end: int
    """Where it ends."""
    is_named: bool
    """Whether it is more than an operator or a keyword."""
    children: list[Syntax] = field(default_factory=list['Syntax'])
    """Its parts, in order."""


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """What the parser makes of a command."""

    source: bytes
    """The command in UTF-8."""
    root: Syntax | None = None
    """The tree, where there is one."""
    problem: str | None = None
    """Why the command is not understood, if it is not."""

    def text(self, node: Syntax) -> str:
        """The stretch of the command that a node stands for."""
        return self.source[node.start : node.end].decode(errors='replace')


def strange_character(command: str) -> str | None:
    """The first character that a person cannot see, or that others take for a blank while bash does not.

    Carriage return is a blank to many a parser and part of the word to bash; a bidirectional override shows a person
    another command than the one that runs (test_attacks.py).
    """
    if command.isascii() and command.isprintable():
        return None
    for char in command:
        if char in ' \n\t':
            continue
        if unicodedata.category(char) in ('Cc', 'Cf', 'Cs', 'Cn', 'Co', 'Zs', 'Zl', 'Zp'):
            return f'U+{ord(char):04X}'
        if char in _INVISIBLE:
            return f'U+{ord(char):04X}'
    return None


_INVISIBLE: Final = frozenset('\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800')
"""Letters and marks by category, without a glyph."""


def parse(command: str, *, clock: Callable[[], float] = time.thread_time) -> Parsed:
    """Parse a command.

    Args:
        command: The text that bash would be given.
        clock: Seconds that never go back.

    Returns:
        The tree, or why there is none. A tree with an error in it is given with the problem.

    Raises:
        MissingExtraError: tree-sitter or its grammar is not installed.
    """
    try:
        import tree_sitter_bash
        from tree_sitter import Language, Parser
    except ImportError as error:
        raise MissingExtraError(error.name or 'tree_sitter', extra='shell') from None
    if (strange := strange_character(command)) is not None:
        return Parsed(source=b'', problem=f'it contains the character {strange}')
    source = command.encode()
    if len(source) > MAX_BYTES:
        return Parsed(source=source, problem=f'it is longer than {MAX_BYTES} bytes')
    if source.count(b'|') > _MAX_PIPES:
        return Parsed(source=source, problem=f'it has more than {_MAX_PIPES} pipes')
    deadline = clock() + MAX_PARSE_S
    is_late = False

    def read(offset: int, _: object) -> bytes:
        nonlocal is_late
        is_late = is_late or clock() > deadline
        # What comes too late is cut off: the parser has no other brake.
        return b'' if is_late else source[offset : offset + _CHUNK]

    tree = Parser(Language(tree_sitter_bash.language())).parse(read)
    if is_late or clock() > deadline:
        return Parsed(source=source, problem=f'parsing it takes longer than {MAX_PARSE_S * 1000:.0f} ms')
    root = tree.root_node
    plain = _plain(root, 0)
    if plain is None:
        return Parsed(source=source, problem='it is nested too deeply')
    problem = 'it has an error in its syntax' if root.has_error else None
    return Parsed(source=source, root=plain, problem=problem)


def _plain(node: _Node, depth: int) -> Syntax | None:
    if depth > MAX_DEPTH:
        return None
    children: list[Syntax] = []
    if node.child_count:
        for child in node.children:
            plain = _plain(child, depth + 1)
            if plain is None:
                return None
            children.append(plain)
    return Syntax(node.type, node.start_byte, node.end_byte, node.is_named, children)


_TEXT: Final = re.compile(rb'(?:[^\\`$]|\\[^\n]|\$(?![\w{(\[@*#?$!-]))*')
"""What stands between the expansions of a document; `$` before anything else is itself."""
_DELIMITER: Final = re.compile(rb'\'([A-Za-z_][\w.-]*)\'|"([A-Za-z_][\w.-]*)"|([A-Za-z_]\w*)')


def is_plain_heredoc(node: Syntax, source: bytes) -> bool:
    """Whether the text of a here-document is exactly what the grammar took for it.

    What stands below a here-document is commands again. The grammar and bash disagree on delimiters in mixed quotes,
    on continued lines and on several documents in a line (test_attacks.py); such documents are not understood.

    Args:
        node: The `heredoc_redirect`.
        source: The whole command.
    """
    found = {child.kind: child for child in node.children}
    start, body, end = found.get('heredoc_start'), found.get('heredoc_body'), found.get('heredoc_end')
    if start is None or body is None or end is None:
        return False
    delimiter = _DELIMITER.fullmatch(source[start.start : start.end])
    if delimiter is None or source[start.end : start.end + 1] not in (b'\n', b' '):
        return False
    name = next(group for group in delimiter.groups() if group is not None)
    line_end = source.find(b'\n', start.end)
    rest = source[start.end : line_end]
    # Quotes and substitutions may carry the line on, and a comment may hide a part of it.
    if line_end < 0 or re.search(rb'[\\\'"`#$(){}]|<<', rest):
        return False
    has_tabs = source[node.start : start.start].strip(b' \t').endswith(b'<<-')
    at = line_end + 1
    for line in source[at:].split(b'\n'):
        is_end = (line.lstrip(b'\t') if has_tabs else line) == name
        if is_end:
            begins = at + (len(line) - len(name))
            if body.start < line_end or body.end > begins or (end.start, end.end) != (begins, begins + len(name)):
                return False
            return delimiter[3] is None or _is_tiled(body, source[:at], line_end + 1)
        if delimiter[3] is not None and (line.endswith(b'\\') or b'`' in line):
            return False
        at += len(line) + 1
    return False


def _is_tiled(body: Syntax, source: bytes, start: int) -> bool:
    """Whether the grammar saw every expansion in the text."""
    for child in body.children:
        if child.kind == 'heredoc_content':
            continue
        if child.start < start or not _TEXT.fullmatch(source[start : child.start]):
            return False
        start = child.end
    return _TEXT.fullmatch(source[start:]) is not None and not source[start:].endswith(b'$')
