"""Show facts, such as the agent, the folder and the reason, above the content of a request."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any, cast

from tool_approval.core.presentation import BRIEF_ACCESS, EXTRA_ACCESS
from tool_approval.core.request import ApprovalRequest, describe

from .escape import escape, escape_line

_MOST_LEVELS = 5
MOST_EXTRA_ACCESS = 10
"""Maximum number of lines of facts, because people do not read more lines. To see further lines, the approver must open
the whole request."""
LONGEST_NAME = 100
_LONGEST = 600
"""Maximum number of characters in a fact, enough for a sentence or two. A longer text is cut, with a notice."""


def _votes(request: ApprovalRequest) -> str:
    votes = request.votes
    if votes is None:
        return ''
    # The number first: a long list of names is cut.
    names = ', '.join(votes.agreed)
    return f'{len(votes.agreed)} of {votes.needed} people{f": {names}" if names else ""}'


def _review(request: ApprovalRequest) -> str:
    return '' if request.review is None else request.review.sentence


def facts(
    request: ApprovalRequest, *, ascii_only: bool = False, whole: bool = False, brief: bool = False
) -> list[tuple[str, str]]:
    """Return pairs of label and text, escaped and each on one line, in display order.

    Labels are `your edit`, `agent`, `for`, `agreed`, `reviewer`, `worker`, `toolset`, `about`, `why`, `file`, `in`,
    `grants` and `extra access`.
    Each line of extra access has a pair of its own. Facts without a text are left out.

    Args:
        request: The request.
        ascii_only: Whether to escape everything beyond ASCII.
        whole: Whether to show everything in full, as in a pager; see `are_facts_whole`.
        brief: Whether to shorten the lines about extra access. Another view must then show them in full.
    """

    def text(value: object) -> str:
        plain = fact_text(value)
        return escape_line(plain if whole else _cut(plain, _LONGEST), ascii_only=ascii_only, mark_end=True)

    def place(name: str) -> str:
        path = fact_text(shown.get(name))
        plain = text(path)
        # Attack: an old file is called `notes (new)`, or a name continues like the text after it (test_facts.py).
        is_plain = not any(char in path for char in ' "') and not path.endswith('(new)')
        return plain if is_plain else f'"{plain.replace(chr(34), escape(chr(34)))}"'

    worker = request.metadata.get('worker')
    shown = _metadata(request)
    file = place('path')
    access = brief_access(request) if brief else extra_access(request)
    found = [
        ('your edit', text(_rejected(request))),
        ('agent', _agent(request, ascii_only=ascii_only, whole=whole)),
        ('for', text(request.facts.requester)),
        ('agreed', text(_votes(request))),
        ('reviewer', text(_review(request))),
        ('worker', '' if worker == request.facts.caller else text(worker)),
        ('toolset', text(request.facts.toolset_id)),
        ('about', '' if is_automatic(request) else text(request.attributed_description)),
        ('why', text(request.reason)),
        ('file', f'{file} (new)' if file and shown.get('is_new') is True else file),
        ('in', place('cwd')),
        ('grants', _grants(request, ascii_only=ascii_only)),
        *(('extra access', text(line)) for line in access[: None if whole else MOST_EXTRA_ACCESS]),
    ]
    return [(label, plain) for label, plain in found if plain]


def is_usual(request: ApprovalRequest) -> bool:
    """Return whether the tool has set `is_usual` in the presentation's metadata; see `ApprovalPresentation`.

    Always return `False` for a description from a configuration, because the tool did not write it.
    """
    return request.described_by is None and _metadata(request).get('is_usual') is True


def _metadata(request: ApprovalRequest) -> Mapping[str, Any]:
    return {} if request.presentation is None else request.presentation.metadata


def extra_access(request: ApprovalRequest) -> list[str]:
    """Return the presentation's lines about extra access, with a notice in place of each line that cannot be shown."""
    given: object = _metadata(request).get(EXTRA_ACCESS)
    lines = [] if given is None else cast('list[object]', given) if isinstance(given, list | tuple) else [given]
    return [line if isinstance(line, str) and line.strip() else 'a value that cannot be shown' for line in lines]


def brief_access(request: ApprovalRequest) -> list[str]:
    """Return the lines of `extra_access`. A line that begins with the tool's short form is replaced by that form."""
    lines, given = extra_access(request), cast('object', _metadata(request).get(BRIEF_ACCESS))
    briefs = cast('list[object]', given) if isinstance(given, list) else []
    # Attack: the brief line says something other than the full line (test_facts.py).
    return [
        brief if isinstance(brief, str) and brief and line.startswith(brief.removesuffix(')')) else line
        for line, brief in zip_longest(lines, briefs[: len(lines)])
    ]


def _rejected(request: ApprovalRequest) -> str:
    edit = request.rejected_edit
    return '' if edit is None else f'was not accepted, so the call is asked about again: {edit.problem}'


def summary(request: ApprovalRequest) -> str:
    """Return the description without the tool's name, and without `Run: ` before a command."""
    description = request.attributed_description
    if request.presentation is not None and request.presentation.type == 'command':
        return description.removeprefix('Run: ')
    begin = f'{request.tool_name}('
    return description[len(begin) : -1] if description.startswith(begin) and description.endswith(')') else description


def are_facts_whole(request: ApprovalRequest) -> bool:
    """Return whether `facts` and `name_of` show all facts and names of a request in full."""
    names: list[object] = [request.tool_name, request.facts.caller]
    for level in request.lineage:
        names += [level.agent_name, level.tool_name]
    texts = [
        request.metadata.get('worker'),
        request.facts.toolset_id,
        request.reason,
        _rejected(request),
        _votes(request),
        _review(request),
    ]
    extra = extra_access(request)
    texts += [*(fact_text(_metadata(request).get(key)) for key in ('path', 'cwd')), *extra]
    return (
        len(request.lineage) <= _MOST_LEVELS
        and len(extra) <= MOST_EXTRA_ACCESS
        and not any(isinstance(name, str) and len(name) > LONGEST_NAME for name in names)
        and not any(isinstance(text, str) and len(text) > _LONGEST for text in texts)
        and (len(request.attributed_description) <= _LONGEST or is_automatic(request))
    )


def _grants(request: ApprovalRequest, *, ascii_only: bool) -> str:
    """Return all capabilities that an approval grants, and their duration, as a text; empty if there are none."""
    names = ', '.join(name_of(each, ascii_only=ascii_only, whole=True) for each in request.missing_capabilities)
    # Without a run, later calls cannot be matched to this one.
    span = 'this call' if request.run_id is None or request.hides_arguments else 'calls of this tool until the run ends'
    return f'{names}, for {span}' if names else ''


def fact_text(value: object) -> str:
    """Return a string or a path as text, and an empty string for other values."""
    if isinstance(value, os.PathLike):
        return str(cast('os.PathLike[Any]', value))
    return value if isinstance(value, str) else ''


def name_of(name: str | None, *, ascii_only: bool = False, whole: bool = False) -> str:
    """Return a name on one line. Names other than plain words are quoted, and long names are cut unless `whole`."""
    if name is None:
        return 'an unnamed agent'
    shown = escape_line(name if whole else _cut(name, LONGEST_NAME), ascii_only=ascii_only, also='"')
    is_word = name.replace('-', '').replace('.', '').replace(':', '').replace('/', '').isidentifier()
    return shown if is_word and len(name) <= LONGEST_NAME else f'"{shown}"'


def _agent(request: ApprovalRequest, *, ascii_only: bool, whole: bool) -> str:
    def named(name: str | None) -> str:
        return name_of(name, ascii_only=ascii_only, whole=whole)

    caller = request.facts.caller
    parts = [] if caller is None else [named(caller)]
    levels = request.lineage[::-1]
    if levels and not parts:
        parts.append(named(None))
    most = len(levels) if whole else _MOST_LEVELS
    parts += [f'called by {named(level.agent_name)} through {named(level.tool_name)}' for level in levels[:most]]
    if len(levels) > most:
        parts.append(f'and {len(levels) - most:,} more callers')
    return ', '.join(parts)


def is_automatic(request: ApprovalRequest) -> bool:
    """Return whether the description only repeats the arguments or the presented content."""
    if is_usual(request):
        return True
    presentation = request.presentation
    if presentation is not None and presentation.type == 'command':
        # Compare only as much of a long content as the description can repeat.
        words = ' '.join(presentation.content[: 2 * len(request.description) + 1000].split())
        begin, colon, shown = request.description.partition(': ')
        if begin == 'Run' and colon and words.startswith(shown.removesuffix('...')):
            return True
    if not request.description.startswith(f'{request.tool_name}('):
        return False
    try:
        return request.description == describe(request.tool_name, request.payload)
    except Exception:  # noqa: BLE001 - any object may be among the arguments, and its `repr` may do anything
        return False


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    kept = longest * 3 // 4
    return f'{text[:kept]} [... {len(text) - longest:,} more characters ...] {text[kept - longest :]}'
