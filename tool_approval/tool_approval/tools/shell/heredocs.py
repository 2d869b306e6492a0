"""Whether bash ends a here-document where the grammar does."""

from __future__ import annotations

import re
from typing import Final

from .grammar import Syntax

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
