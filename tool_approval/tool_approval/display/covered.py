"""Which arguments a presentation leaves out, so that they are shown beside it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from tool_approval.presentation import ApprovalPresentation

from .diffs import MOST_LINES, read_diff
from .facts import fact_text

_SHORTEST = 8
"""Chosen: a shorter line stands somewhere in most diffs by chance."""

_MOST_COMPARED = 20
"""Chosen: so many arguments are looked for in a diff; the others stand beside it."""

_EDITED = frozenset({'content', 'old_text', 'new_text', 'text'})
"""Arguments of editing tools, of which one line may be all that is changed."""

_FACTS = {'path': 'path', 'dest': 'path', 'cwd': 'cwd'}
"""By argument: the fact that says the same."""

_APART = '\0'
"""Between the sides of hunks, so that nothing is found across two of them."""

_SIDES = (('removed', 'context'), ('added', 'context'))


def uncovered(presentation: ApprovalPresentation, args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that a presentation does not show.

    Shown are those that are its content, or the fact of the same meaning. One that only occurs somewhere in the content
    is none of them. Attack: a model writes the target of a call into its content, and the target is left out
    (test_display.py).
    """
    whole: object = presentation.metadata.get('full_content')
    texts = [presentation.content, whole] if isinstance(whole, str) else [presentation.content]
    bodies = {text.removesuffix('\n') for text in texts}
    facts = {key: fact_text(presentation.metadata.get(fact)) for key, fact in _FACTS.items()}
    sides = _APART.join(_sides(texts[-1])) if presentation.type == 'diff' else ''
    compared = frozenset(islice(args, _MOST_COMPARED))

    def is_shown(key: str, value: object) -> bool:
        if not isinstance(value, str) or not value.strip():
            return False
        if value.removesuffix('\n') in bodies or value == facts.get(key):
            return True
        return key in compared and _is_in_diff(key, value, sides)

    return {key: value for key, value in args.items() if not is_shown(key, value)}


def _is_in_diff(key: str, value: str, sides: str) -> bool:
    body = value.removesuffix('\n')
    if '\n' not in body and (key not in _EDITED or len(body.strip()) < _SHORTEST):
        return False
    return _APART not in body and f'\n{body}\n' in sides


def _sides(diff: str) -> list[str]:
    """The lines before and the lines after of each hunk, a newline before and after each."""
    found: list[str] = []
    hunk: list[tuple[str, str]] = []
    rows = list(read_diff(diff.split('\n') if diff.count('\n') < MOST_LINES else []))
    for kind, text, _ in [*rows, ('hunk', '', None)]:
        if kind == 'hunk':
            found += [''.join([f'\n{line}' for of, line in hunk if of in kinds]) + '\n' for kinds in _SIDES]
            hunk = []
        hunk.append((kind, text))
    return found
