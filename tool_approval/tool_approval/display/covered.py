"""Which arguments a presentation leaves out, so that they are shown beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tool_approval.presentation import ApprovalPresentation

from .diffs import MOST_LINES, read_diff

_SHORTEST = 8
"""Chosen: a shorter text stands somewhere in most contents by chance."""

_SIDES = (('removed', 'context'), ('added', 'context'))


def uncovered(presentation: ApprovalPresentation, args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments whose values do not stand in a presentation."""
    whole: object = presentation.metadata.get('full_content')
    texts = [presentation.content, whole] if isinstance(whole, str) else [presentation.content]
    facts = [value for value in (presentation.metadata.get('path'), presentation.metadata.get('cwd')) if value]
    sides = _sides(texts[-1]) if presentation.type == 'diff' else []
    return {key: value for key, value in args.items() if not _stands_in(value, texts, facts, sides)}


def _stands_in(value: object, texts: list[str], facts: list[object], sides: list[str]) -> bool:
    if not isinstance(value, str) or not value.strip():
        return False
    body = value.removesuffix('\n')
    if value in facts or value in texts or any(body in side for side in sides):
        return True
    return len(value.strip()) >= _SHORTEST and any(body in text for text in texts)


def _sides(diff: str) -> list[str]:
    """The text before and the text after, as far as a diff shows them."""
    rows = list(read_diff(diff.split('\n') if diff.count('\n') < MOST_LINES else []))
    return ['\n'.join(text for kind, text, _ in rows if kind in kinds) for kinds in _SIDES]
