"""Which arguments a presentation leaves out, so that they are shown beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from tool_approval.core.presentation import ApprovalPresentation

from .diffs import MOST_LINES, read_diff
from .facts import fact_text

_SHORTEST = 8
"""Chosen: a shorter line stands somewhere in most diffs by chance."""

_MOST_COMPARED = 20
"""Chosen: so many arguments are looked for in a diff; the others stand beside it."""

_EDITED = frozenset(
    {'content', 'text'} | {f'{of}{what}' for of in ('old', 'new') for what in ('', '_text', '_str', '_string')}
)
"""Arguments of editing tools, of which a part of the diff may be all that is changed."""

_CONTENTS = ('command', 'content', 'patch', 'diff', 'text', 'new_text')
"""Where several arguments are the content, the first of these is what is shown."""

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
    sides = _APART.join(_sides(texts[-1])) if presentation.type == 'diff' else ''
    shown = {
        _content_of([key for key, value in args.items() if _body(value) in bodies]),
        *_facts_of(presentation, args),
        *(key for key in islice(args, _MOST_COMPARED) if _is_in_diff(key, args[key], sides)),
    }
    return {key: value for key, value in args.items() if key not in shown}


def _body(value: object) -> str | None:
    return value.removesuffix('\n') if isinstance(value, str) and value.strip() else None


def _content_of(equal: list[str]) -> str | None:
    # Attack: a second argument with the same value, such as what is to be run on failure, vanishes with the first.
    return equal[0] if len(equal) == 1 else next((key for key in _CONTENTS if key in equal), None)


def _facts_of(presentation: ApprovalPresentation, args: Mapping[str, Any]) -> Iterator[str]:
    said: set[str] = set()
    for key, fact in _FACTS.items():
        told = fact_text(presentation.metadata.get(fact))
        if fact not in said and _body(args.get(key)) is not None and args[key] == told:
            said.add(fact)
            yield key


def _is_in_diff(key: str, value: object, sides: str) -> bool:
    body = _body(value)
    if key not in _EDITED or body is None or ('\n' not in body and len(body.strip()) < _SHORTEST):
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
