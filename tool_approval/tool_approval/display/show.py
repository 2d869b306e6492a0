"""Turn a request, or only a presentation, into lines that any UI can draw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from heapq import nsmallest
from itertools import islice
from typing import Any, cast

from tool_approval.core.presentation import EXTRA_ACCESS, ApprovalPresentation
from tool_approval.core.request import ApprovalRequest

from .digest import is_same, left_out_keys, visible_args
from .escape import escape_line
from .fact_texts import LONGEST_NAME, are_facts_whole, fact_text
from .lines import DisplayLine, LineKind
from .quote import MOST_LINES, quote, quote_diff, read_diff
from .tree import Tree, structure_of

_SHORTEST_LINE = 8
"""One-line arguments shorter than this are not looked for in a diff, because they may occur there by chance."""

_MOST_COMPARED = 20
"""Maximum number of arguments whose values are looked up in a diff. Further arguments are shown below the diff."""

_EDITED = frozenset(
    {'content', 'text'} | {f'{of}{what}' for of in ('old', 'new') for what in ('', '_text', '_str', '_string')}
)
"""Names of arguments that editing tools use, and whose values a diff may show completely."""

_CONTENTS = ('command', 'content', 'patch', 'diff', 'text', 'new_text')
"""If several arguments equal the content, only the first of them in this order counts as shown."""

_FACT_ARGUMENTS = {'path': 'path', 'dest': 'path', 'cwd': 'cwd'}
"""Maps the name of an argument to the name of the corresponding fact."""

_APART = '\0'
"""Separates hunks, so that no match extends over two hunks."""

_SIDES = (('removed', 'context'), ('added', 'context'), ('context',))

_REPLACED = tuple((f'old{what}', f'new{what}') for what in ('', '_text', '_str', '_string'))
"""Arguments of editing tools: the replaced text and its replacement."""


def uncovered(presentation: ApprovalPresentation, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that a presentation does not show.

    An argument counts as shown if it equals one of these: the content, a text that the diff replaces or inserts, or
    the corresponding fact of the presentation, such as the path. Arguments with default values need not be shown. An
    argument that only occurs somewhere within the content does not count as shown. Otherwise, a model could hide the
    target of a call by writing the target into the content (test_display.py).
    """
    bodies = _bodies_of(presentation)
    sides = _sides_of(bodies[-1]) if presentation.type == 'diff' else ('', '', '')
    shown = {
        _content_of([key for key, value in args.items() if _body_of(value) in bodies]),
        *_facts_of(presentation, args),
        *_defaults_of(presentation, args),
        *_replaced_in(args, sides),
        *(key for key in islice(args, _MOST_COMPARED) if _is_in_diff(key, args[key], sides)),
    }
    return {key: value for key, value in args.items() if key not in shown}


def _bodies_of(presentation: ApprovalPresentation) -> list[str]:
    """Return a list with the content and, if the content was shortened, the full content."""
    whole: object = presentation.metadata.get('full_content')
    texts = [presentation.content, whole] if isinstance(whole, str) else [presentation.content]
    return [text.removesuffix('\n') for text in texts]


def _body_of(value: object) -> str | None:
    return value.removesuffix('\n') if isinstance(value, str) and value.strip() else None


def _content_of(equal: list[str]) -> str | None:
    # Attack: a second argument with the same value, such as a command to run on failure, would not be shown.
    return equal[0] if len(equal) == 1 else next((key for key in _CONTENTS if key in equal), None)


def _facts_of(presentation: ApprovalPresentation, args: Mapping[str, Any]) -> Iterator[str]:
    said: set[str] = set()
    for key, fact in _FACT_ARGUMENTS.items():
        text = fact_text(presentation.metadata.get(fact))
        if fact not in said and _body_of(args.get(key)) is not None and args[key] == text:
            said.add(fact)
            yield key
    # A command's request for extra access: an approval grants only the access that the fact shows.
    asked: object = args.get('access', '')
    given: object = presentation.metadata.get(EXTRA_ACCESS)
    is_said = asked is None or (isinstance(asked, list) and (not asked or (isinstance(given, list) and given != [])))
    if presentation.type == 'command' and is_said:
        yield 'access'


def _defaults_of(presentation: ApprovalPresentation, args: Mapping[str, Any]) -> Iterator[str]:
    defaults: object = presentation.metadata.get('defaults')
    for key, value in cast('Mapping[object, object]', defaults).items() if isinstance(defaults, Mapping) else ():
        if isinstance(key, str) and key in args and is_same(args[key], value):
            yield key


def _replaced_in(args: Mapping[str, Any], sides: tuple[str, str, str]) -> tuple[str, ...]:
    """Return the names of the old and the new text from `_REPLACED` if the diff only replaces one with the other."""
    before, after, _ = sides
    for names in _REPLACED:
        old, new = map(args.get, names)
        # Attack: a text that does not occur, or a replacement that changes nothing, appears in no diff
        # (test_arguments.py).
        if isinstance(old, str) and isinstance(new, str) and old and old != new and _APART not in old + new:
            return names if old in before and before.replace(old, new) == after else ()
    return ()


def _is_in_diff(key: str, value: object, sides: tuple[str, str, str]) -> bool:
    body = _body_of(value)
    if key not in _EDITED or body is None or ('\n' not in body and len(body.strip()) < _SHORTEST_LINE):
        return False
    before, after, unchanged = (_APART not in body and f'\n{body}\n' in side for side in sides)
    return (before or after) and not unchanged


def _sides_of(diff: str) -> tuple[str, str, str]:
    """Return three texts that cover all hunks: the old version, the new version, and the unchanged lines."""
    found: list[list[str]] = [[], [], []]
    hunk: list[tuple[str, str]] = []
    rows = list(read_diff(diff.split('\n') if diff.count('\n') < MOST_LINES else []))
    for kind, text, _ in [*rows, ('hunk', '', None)]:
        if kind == 'hunk':
            for side, kinds in zip(found, _SIDES, strict=True):
                side.append(''.join([f'\n{line}' for of, line in hunk if of in kinds]) + '\n')
            hunk = []
        hunk.append((kind, text))
    before, after, unchanged = map(_APART.join, found)
    return before, after, unchanged


ROOM = 100
"""Maximum number of lines to show: a few screens. Lines of over 100 characters count as several. A pager shows more."""

COMMAND_ROOM = 400
"""Maximum number of lines shown for a command. Commands that people type are shorter and are shown in full."""

DIFF_ROOM = 250
"""Maximum number of lines shown for a diff. If a tool has shortened the diff to 200 lines, all of them fit."""

_MOST_HIDDEN = 20
"""Maximum number of hidden arguments whose names are listed."""

_EVERYTHING = 1 << 40
_ROOMS: Mapping[str, int] = {'command': COMMAND_ROOM, 'diff': DIFF_ROOM}
_KINDS: Mapping[str, LineKind] = {'command': 'command', 'file_content': 'code', 'structured': 'code'}


@dataclass(frozen=True, kw_only=True)
class Display:
    """A request as shown."""

    lines: Sequence[DisplayLine]
    """Lines in order."""
    is_whole: bool
    """Whether no text was cut here or by the tool. If any text was cut, an approval must not be remembered."""


def display(
    subject: ApprovalRequest | ApprovalPresentation,
    *,
    whole: bool = False,
    ascii_only: bool = False,
    changes_only: bool = False,
) -> Display:
    """Return the escaped lines of a request or a presentation, and whether they are complete.

    A request without a presentation shows its arguments. A request with a presentation shows the presentation, and all
    arguments that the presentation does not cover. The names of hidden arguments are shown, but not their values.

    Args:
        subject: Request or presentation to show.
        whole: Whether to show everything, as in a pager, instead of the beginning and the end of long texts.
        ascii_only: Whether to escape everything beyond ASCII.
        changes_only: Whether to leave out the headers and the unchanged lines of a diff that the tool made. A diff that
            is an argument keeps all its lines, because they determine what is changed.
    """
    if isinstance(subject, ApprovalPresentation):
        return _presented(subject, whole=whole, ascii_only=ascii_only)
    hidden = left_out_keys(subject)
    shown: list[DisplayLine] = []
    is_whole = whole or (are_facts_whole(subject) and not subject.hides_arguments)
    args = visible_args(subject)
    if subject.presentation is not None:
        presented = _presented(subject.presentation, whole=whole, ascii_only=ascii_only)
        is_own = changes_only and _is_own_diff(subject.presentation, subject.args)
        path = fact_text(subject.presentation.metadata.get('path'))
        shown += _changed_lines(presented.lines, path) if is_own else presented.lines
        is_whole = is_whole and presented.is_whole
        args = uncovered(subject.presentation, args)
    if args:
        if shown:
            shown.append(DisplayLine(kind='meta', text='arguments:'))
        tree = Tree(ascii_only=ascii_only)
        tree.draw(args, _EVERYTHING if whole else ROOM)
        shown += tree.lines
        is_whole = is_whole and tree.is_whole
    most, longest = (len(hidden), _EVERYTHING) if whole else (_MOST_HIDDEN, LONGEST_NAME)
    for key in sorted(hidden) if whole else nsmallest(most, hidden):
        name = escape_line(key[:longest], ascii_only=ascii_only, also='"')
        shown.append(DisplayLine(kind='heading', text=f'"{name}": hidden by the tool'))
    if len(hidden) > most or any(len(key) > longest for key in hidden):
        shown.append(DisplayLine(kind='cut', text=f'[{len(hidden):,} arguments are hidden; some names are cut]'))
        is_whole = False
    if not shown:
        shown.append(DisplayLine(kind='meta', text='(no arguments)'))
    if subject.hides_arguments:
        shown.append(
            DisplayLine(
                kind='meta', text='(the tool hides or alters some arguments: the approval cannot be remembered)'
            )
        )
    return Display(lines=shown, is_whole=is_whole)


def is_shown_whole(request: ApprovalRequest) -> bool:
    """Return whether `display` shows a request in full."""
    return display(request).is_whole


def _presented(presentation: ApprovalPresentation, *, whole: bool, ascii_only: bool) -> Display:
    text, room, is_whole = presentation.content, _ROOMS.get(presentation.type, ROOM), True
    full: object = presentation.metadata.get('full_content')
    shown: list[DisplayLine] = []
    if isinstance(full, str) and full != text:
        if whole or _begins(text, full):
            # Shorten the full text here, because the notice in the shortened text could be false.
            room = min(room, max(20, text.count('\n')))
            text = full
        else:
            count = full.count('\n') + 1
            size = f'{count:,} line{"s" if count > 1 else ""}, {len(full):,} characters'
            shown.append(DisplayLine(kind='cut', text=f'shortened by the tool; the full text has {size}'))
            is_whole = False
    elif presentation.metadata.get('is_summary'):
        is_whole = False
    if not text.strip():
        shown.append(DisplayLine(kind='meta', text=f'(blank: {len(text):,} characters)' if text else '(empty)'))
    if whole:
        room = _EVERYTHING
    structure = structure_of(presentation, text)
    if structure is not None:
        tree = Tree(ascii_only=ascii_only)
        tree.draw(structure, room)
        lines, is_all = tree.lines, tree.is_whole
    elif presentation.type == 'diff':
        lines, is_all = quote_diff(text, room, ascii_only=ascii_only)
    else:
        is_content = presentation.type == 'file_content'
        body = text if presentation.type == 'command' else text.removesuffix('\n')
        kind = _KINDS.get(presentation.type, 'text')
        lines, is_all = quote(body, kind, room, numbered=is_content, ascii_only=ascii_only)
        if is_content and not text.endswith('\n'):
            shown.append(DisplayLine(kind='meta', text='(no newline at the end)'))
    return Display(lines=[*lines, *shown], is_whole=is_whole and is_all)


def _begins(shown: str, full: str) -> bool:
    """Return whether `shown` looks like a result of `truncate_for_display`: the beginning of `full`, then a notice."""
    begin, newline, notice = shown.rpartition('\n')
    return newline != '' and notice.startswith('... [') and full.startswith(begin)


def _is_own_diff(presentation: ApprovalPresentation, args: Mapping[str, Any]) -> bool:
    """Return whether the presentation is a diff that the tool made, and not a diff that is an argument of the call.

    An argument can be a patch that a model wrote. The unchanged lines of such a patch must be shown, because they
    determine where the patch is applied (test_arguments.py).
    """
    bodies = _bodies_of(presentation)
    return presentation.type == 'diff' and not any(_body_of(value) in bodies for value in args.values())


def _changed_lines(lines: Sequence[DisplayLine], path: str) -> Sequence[DisplayLine]:
    """Remove the headers and unchanged lines from a diff of the file at `path`. If none is changed, keep all lines."""
    first = next((index for index, line in enumerate(lines) if line.kind == 'hunk'), 0)
    names = [line.text for line in lines[max(0, first - 2) : first]]
    is_named = names in ([f'--- {path}', f'+++ {path}'], [f'--- {path}', '+++ /dev/null'])
    rest = [line for line in lines[first:] if line.kind not in ('context', 'hunk')]
    has_changes = any(line.kind in ('added', 'removed') for line in rest)
    return [*lines[: first - 2 if is_named else first], *rest] if has_changes else lines


_MOST_COMPARED_LINES = 500
"""Maximum number of lines to compare, so that the comparison does not delay the question."""

_MOST_CHANGES = 40
"""Maximum number of removed and added lines to show. They fill about two screens."""


def changes(before: ApprovalRequest, after: ApprovalRequest, *, ascii_only: bool = False) -> Sequence[DisplayLine]:
    """Return the lines that differ between the arguments of two requests, as `removed` and `added`, below a heading."""
    old, new = (_argument_lines(request, ascii_only=ascii_only) for request in (before, after))
    if max(len(old), len(new)) > _MOST_COMPARED_LINES:
        return [DisplayLine(kind='meta', text='you have changed arguments that are too long to compare')]
    steps = SequenceMatcher(None, [line.text for line in old], [line.text for line in new]).get_opcodes()
    shown: list[DisplayLine] = []
    for step, i, j, k, n in steps:
        if step != 'equal':
            shown += [DisplayLine(kind='removed', text=line.text) for line in old[i:j]]
            shown += [DisplayLine(kind='added', text=line.text) for line in new[k:n]]
    cut = (
        [DisplayLine(kind='cut', text=f'[{len(shown) - _MOST_CHANGES:,} more lines]')] if shown[_MOST_CHANGES:] else []
    )
    return [DisplayLine(kind='meta', text='you have changed:'), *shown[:_MOST_CHANGES], *cut]


def _argument_lines(request: ApprovalRequest, *, ascii_only: bool) -> Sequence[DisplayLine]:
    """Return only the lines of the visible arguments."""
    args_alone = ApprovalRequest(tool_name='', args=visible_args(request))
    return display(args_alone, whole=True, ascii_only=ascii_only).lines
