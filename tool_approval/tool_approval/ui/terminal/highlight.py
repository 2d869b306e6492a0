"""Mark keywords, strings and comments in the content of a file, if Pygments is installed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from time import monotonic
from typing import Any, Literal

from tool_approval.display import DisplayLine, Span
from tool_approval.display.escape import TAB

_MOST_CHARACTERS = 5_000
"""Maximum number of characters to read, about two screens. A model can write content for which a lexer takes long."""

_LONGEST_S = 0.1
"""Maximum number of seconds, checked after each token."""


def highlight(lines: Sequence[DisplayLine], language: str) -> Sequence[DisplayLine]:
    """Return the lines with marks for their language, or unchanged if the language is unknown or Pygments is missing.

    No text is changed, and escapes are drawn as before. Lines after a cut are not marked, because the cut part decides
    what they mean.
    """
    code = list(takewhile(lambda line: line.kind == 'code', lines))
    if sum(len(line.text) + 1 for line in code) > _MOST_CHARACTERS:
        return lines
    try:
        marks = _marks([line.text for line in code], language)
    except Exception:  # noqa: BLE001 - Pygments is missing, or its lexer fails
        return lines
    return [*(replace(line, marks=tuple(of)) for line, of in zip(code, marks, strict=True)), *lines[len(code) :]]


def _marks(texts: Sequence[str], language: str) -> list[list[Span]]:
    from pygments.lexers import find_lexer_class_by_name
    from pygments.token import Comment, Keyword, String

    roles: list[tuple[Any, Literal['comment', 'keyword', 'literal']]] = [
        (Comment, 'comment'), (Keyword, 'keyword'), (String, 'literal'),
    ]  # fmt: skip
    marks: list[list[Span]] = [[] for _ in texts]
    row, at = 0, 0
    lexer = find_lexer_class_by_name(language)(stripnl=False, ensurenl=False)
    ends_at = monotonic() + _LONGEST_S
    for kind, value in lexer.get_tokens('\n'.join(texts).replace(TAB, ' ')):
        for number, part in enumerate(value.split('\n')):
            row, at = (row + 1, 0) if number else (row, at)
            end = at + len(part)
            marks[row] += [Span(at, end, role) for token, role in roles if part and kind in token]
            at = end
        if monotonic() > ends_at:
            break
    return marks
