"""Turns a request, or a presentation alone, into lines that any UI can draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest

from tool_approval.core.presentation import ApprovalPresentation
from tool_approval.core.request import ApprovalRequest

from .arguments import Tree
from .covered import uncovered
from .cut import more, quote
from .diffs import quote_diff
from .digest import left_out_keys
from .escape import escape_line
from .facts import LONGEST_NAME, are_facts_whole
from .lines import DisplayLine, LineKind
from .structure import structure_of

ROOM = 100
"""Chosen, in lines of 100 characters: some screens. More is read in a pager."""

COMMAND_ROOM = 400
"""Chosen: a command is shown whole far beyond what anybody types or a rule can judge."""

DIFF_ROOM = 250
"""Chosen: what a tool shortens to 200 lines fits."""

_MOST_HIDDEN = 20
"""Chosen: so many arguments that a tool keeps from being shown are named."""

_EVERYTHING = 1 << 40
_KINDS: Mapping[str, LineKind] = {'command': 'command', 'file_content': 'code', 'structured': 'code'}


@dataclass(frozen=True, kw_only=True)
class Display:
    """What is shown of a request."""

    lines: Sequence[DisplayLine]
    """In order."""
    is_whole: bool
    """Whether nothing was cut, here or by the tool. Where something was, no approval may be remembered."""


def display(
    subject: ApprovalRequest | ApprovalPresentation, *, whole: bool = False, ascii_only: bool = False
) -> Display:
    """The lines of a request or a presentation, everything in them escaped, and whether they are all there is.

    A request without a presentation shows its arguments; one with a presentation shows it, and the arguments that
    are neither its content nor its facts. Arguments that a tool keeps from being shown are named without their values.

    Args:
        subject: What to show.
        whole: Whether to show everything, as a pager does, and not only the beginning and the end of what is long.
        ascii_only: Whether to escape everything beyond ASCII.
    """
    if isinstance(subject, ApprovalPresentation):
        return _presented(subject, whole=whole, ascii_only=ascii_only)
    hidden = left_out_keys(subject)
    shown: list[DisplayLine] = []
    is_whole = whole or (are_facts_whole(subject) and not subject.hides_arguments)
    args = subject.args
    if hidden:
        args = {key: value for key, value in args.items() if key not in hidden}
    if subject.presentation is not None:
        presented = _presented(subject.presentation, whole=whole, ascii_only=ascii_only)
        shown += presented.lines
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
        shown.append(DisplayLine(kind='heading', text=f'"{name}": not shown, as the tool wants it'))
    if len(hidden) > most or any(len(key) > longest for key in hidden):
        shown.append(DisplayLine(kind='cut', text=f'[{len(hidden):,} arguments are not shown; some names are cut]'))
        is_whole = False
    if not shown:
        shown.append(DisplayLine(kind='meta', text='(no arguments)'))
    if subject.hides_arguments:
        shown.append(
            DisplayLine(kind='meta', text='(some arguments are hidden, or altered by the tool: approve once only)')
        )
    return Display(lines=shown, is_whole=is_whole)


def display_lines(
    subject: ApprovalRequest | ApprovalPresentation, *, whole: bool = False, ascii_only: bool = False
) -> Sequence[DisplayLine]:
    """The lines of `display`."""
    return display(subject, whole=whole, ascii_only=ascii_only).lines


def is_shown_whole(request: ApprovalRequest) -> bool:
    """Whether nothing of a request is cut when it is shown."""
    return display(request).is_whole


def _presented(presentation: ApprovalPresentation, *, whole: bool, ascii_only: bool) -> Display:
    text, room, is_whole = presentation.content, _room(presentation), True
    full: object = presentation.metadata.get('full_content')
    shown: list[DisplayLine] = []
    if isinstance(full, str) and full != text:
        if whole or _begins(text, full):
            # Cut here again, so that what is said of the rest is not what a text may say itself.
            room = min(room, max(20, text.count('\n')))
            text = full
        else:
            count = full.count('\n') + 1
            shown.append(DisplayLine(kind='cut', text=f'shortened by the tool: {more(count, len(full))} in the whole'))
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


def _room(presentation: ApprovalPresentation) -> int:
    return {'command': COMMAND_ROOM, 'diff': DIFF_ROOM}.get(presentation.type, ROOM)


def _begins(shown: str, full: str) -> bool:
    """Whether `shown` is the beginning of `full` and a line that says so, as `truncate_for_display` makes it."""
    begin, newline, notice = shown.rpartition('\n')
    return newline != '' and notice.startswith('... [') and full.startswith(begin)
