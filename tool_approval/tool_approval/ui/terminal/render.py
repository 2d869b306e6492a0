"""The question as it is written to a terminal: a pure function of the request and the terminal's size.

It puts strings together instead of using a library for it: what must hold is exact (no character that is not meant, no
row that is too wide, the question last), and 1 MB of arguments has to be drawn at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tool_approval.answering import may_approve_together, place_in_response
from tool_approval.core.decision import ApprovalDecision
from tool_approval.core.request import ApprovalRequest
from tool_approval.display import (
    KEYS,
    Display,
    cell_width,
    changes,
    display,
    escape_line,
    facts,
    name_of,
    offered_keys,
    remember_choices,
    request_digest,
    warnings_of,
)
from tool_approval.display.digest import left_out_keys
from tool_approval.display.fact_texts import is_usual, summary
from tool_approval.display.questions import session_choice
from tool_approval.display.warnings import turns

from .layout import NARROWEST, Layout, fitted

TOO_NARROW = f'Too narrow to ask.\nWiden the window to\n{NARROWEST} columns; q denies\nand stops the run. '
"""What is drawn in a window in which the terminal would break the rows, and their ends would stand without a frame."""

_IN_SIGHT: Mapping[str, str] = {'y': 'approve', 'n': 'deny', 's': 'this session', 'v': 'view all', '?': 'more'}
"""The keys beside the question, at most four at once: `v` is one where something is cut, and `s` where nothing is."""

_IN_TITLE = ('tool', 'file', 'in', 'request', 'agent')
"""What the first row says as far as it fits, the most important first; the last two at its end."""

_BELOW = ('grants', 'extra access')
"""What an approval gives beyond the call, and so is read last."""


def render_request(
    request: ApprovalRequest,
    *,
    width: int = 80,
    height: int = 24,
    color: bool = True,
    ascii_only: bool = False,
    keys: Sequence[str] | None = None,
    position: tuple[int, int] | None = None,
    before: ApprovalRequest | None = None,
) -> str:
    """What is written before the answer is read: a box that shows the request, and the keys in its bottom edge.

    Whatever is in the request, no character of it does anything but draw itself, every row of it stands behind the
    frame, and the last row, which alone begins with the corner of the bottom edge, is the question.

    Args:
        request: What is asked about.
        width: Columns of the terminal. Where there are fewer than 24, nothing of the request is drawn: the window is
            asked to be made wider, and no key that approves may be taken for an answer.
        height: Rows of the terminal. A higher box has the tool's name beside the keys too.
        color: Whether to use colours. Without them there is no escape sequence at all.
        ascii_only: Whether to draw with ASCII alone, and to escape everything else.
        keys: The keys that are offered, from `KEYS`; `offered_keys(request)` unless given. `s` is dropped where that
            leaves it out.
        position: This is request i of n, from 1; what the controller says in `request.metadata` unless given.
        before: The request as it was made, where the person has changed its arguments: what differs is shown.

    Returns:
        Rows ended by newlines, and the last without one, so that the cursor stands after it.
    """
    if width < NARROWEST:
        return TOO_NARROW
    layout = Layout(width, color, ascii_only)
    shown = display(request, ascii_only=ascii_only, changes_only=True)
    allowed = offered_keys(request, is_whole=shown.is_whole)
    keys = allowed if keys is None else [key for key in keys if key in allowed]
    rows = _box(request, shown, layout, position=position, before=before)
    in_sight = {key: does for key, does in _IN_SIGHT.items() if key in keys and (key != 'v' or not shown.is_whole)}
    below, question = _question(request, layout, '', in_sight)
    if len(rows) + len(below) + 1 > height:
        below, question = _question(request, layout, name_of(request.tool_name, ascii_only=ascii_only), in_sight)
        note = f'{len(rows) + len(below) + 2:,} rows: read from the top.'
        below = [*layout.labelled('!', note, style='strong'), *below]
    return '\n'.join([*rows, *below, question])


def render_whole(request: ApprovalRequest, *, width: int = 80, color: bool = True, ascii_only: bool = False) -> str:
    """Everything in the request, nothing cut, for a pager: rows ended by newlines, no question.

    Where there are fewer than 24 columns, nothing of it is drawn, as in `render_request`.
    """
    if width < NARROWEST:
        return f'{TOO_NARROW.rstrip()}\n'
    layout = Layout(width, color, ascii_only)
    shown = display(request, whole=True, ascii_only=ascii_only)
    rows = _box(request, shown, layout, is_all=True)
    return '\n'.join([*rows, layout.edge(layout.glyphs.bottom, request_digest(request)), ''])


def render_more(request: ApprovalRequest, width: int, *, keys: Sequence[str], ascii_only: bool = False) -> list[str]:
    """The rows that `?` opens below what is asked about: all keys, what need not be read each time, and the mark.

    The mark differs where requests differ in anything, also in what is not shown.
    """
    layout = Layout(max(width, NARROWEST), color=False, ascii_only=ascii_only)
    covered = dict(remember_choices(request, ascii_only=ascii_only))[session_choice(request)[0]]
    does = {**KEYS, 's': f'{KEYS["s"]}: {covered}'}
    labelled = [(f'{key} ', does[key]) for key in KEYS if key in keys and key != '?']
    labelled += [(f'{label}:', text) for label, text in _facts(request, layout, is_more=True)]
    labelled.append(('mark:', f'{request_digest(request)} (differs where requests differ in anything)'))
    return [row for label, text in labelled for row in layout.labelled(label, text)]


def _facts(request: ApprovalRequest, layout: Layout, *, is_more: bool, is_all: bool = False) -> list[tuple[str, str]]:
    """What is told of a request beside its content: behind `?`, or else in the box."""
    apart = ('toolset', 'why') if is_usual(request) else ('toolset',)
    shown = facts(request, ascii_only=layout.ascii_only, whole=is_all, brief=not is_all)
    if is_more:
        more = facts(request, ascii_only=layout.ascii_only)
        return [fact for fact in more if fact[0] in apart or (fact[0] == 'extra access' and fact not in shown)]
    return [(label, text) for label, text in shown if label not in apart or is_all]


def _box(
    request: ApprovalRequest,
    shown: Display,
    layout: Layout,
    *,
    position: tuple[int, int] | None = None,
    before: ApprovalRequest | None = None,
    is_all: bool = False,
) -> list[str]:
    """The rows of the box but the last."""
    ascii_only = layout.ascii_only
    found = _facts(request, layout, is_more=False, is_all=is_all)
    name = name_of(request.tool_name, ascii_only=ascii_only, whole=is_all)
    rows = _title(layout, {'tool': name, 'request': _place(request, position), **dict(found)})
    below: list[str] = []
    for label, text in found:
        if label not in _IN_TITLE:
            (below if label in _BELOW else rows).extend(layout.labelled(f'{label}:', text))
    rows += layout.quoted(shown.lines)
    if before is not None:
        rows += layout.quoted(changes(before, request, ascii_only=ascii_only))
    rows += below
    for warning in warnings_of(request, ascii_only=ascii_only):
        rows += layout.labelled('!', f'Warning: {warning}', style='odd')
    if not shown.is_whole:
        rows += layout.labelled('!', 'Not all of it is shown here.', style='strong')
    if not is_all and (not shown.is_whole or left_out_keys(request)):
        # Attack: two requests that differ only in what is left out look alike (test_render.py).
        rows += layout.labelled('mark:', request_digest(request))
    return rows


def _title(layout: Layout, titles: Mapping[str, str]) -> list[str]:
    """The first row, and one for each of `_IN_TITLE` that does not fit into it."""
    words = {'in': 'in {}', 'request': 'request {}'}
    left, right, rows = list[str](), list[str](), list[str]()
    room = layout.width - len('╭─ ')
    for label in _IN_TITLE:
        text = titles.get(label, '')
        said = words.get(label, '{}').format(text)
        side, gap = (right, '   ') if label in _IN_TITLE[3:] else (left, ' ')
        # Attack: a path where a name is expected is taken for the tool's, or turns the row around (test_render.py).
        is_misleading = (side is left and not left and label != 'tool') or turns(text)
        if text and not is_misleading and cell_width(said + gap) <= room:
            side.append(said)
            room -= cell_width(said + gap)
        elif text:
            rows += layout.labelled(f'{label}:', text)
    return [layout.edge(layout.glyphs.top, ' '.join(left), '   '.join(reversed(right))), *rows]


def _place(request: ApprovalRequest, position: tuple[int, int] | None) -> str:
    if position is not None:
        request = request.changed(request.facts._replace(position=position[0], batch_size=position[1]))
    place = place_in_response(request)
    return '' if place is None else f'{place[0]} of {place[1]}'


def _question(request: ApprovalRequest, layout: Layout, name: str, keys: Mapping[str, str]) -> tuple[list[str], str]:
    """The bottom edge with `keys`, with the tool's name if it has to be said again, and rows for what does not fit."""
    lead = f'{layout.glyphs.bottom}{layout.glyphs.line} '
    if not keys:
        return [], lead.rstrip()
    named = f'{lead}{name}: ' if name else lead
    rows = [] if cell_width(named) + len('/'.join(keys)) + 2 <= layout.width else layout.labelled('tool:', name)
    kind, brief = session_choice(request)
    effects = {**keys, 's': f'{brief} this session'} if 's' in keys and brief else keys
    row, is_complete = _keys_row(layout, lead if rows else named, effects, keys)
    if 's' in keys and not (brief and is_complete):
        covered = brief or dict(remember_choices(request, ascii_only=layout.ascii_only))[kind]
        rows += layout.labelled('s:', f'{covered}, this session')
    return rows, row


def _keys_row(layout: Layout, lead: str, *tellings: Mapping[str, str]) -> tuple[str, bool]:
    """The first of the tellings that fits behind `lead`, else the keys alone; and whether it is the first."""
    for telling in tellings:
        if cell_width(lead + '   '.join(f'{key} {does}' for key, does in telling.items())) + 2 <= layout.width:
            text = '   '.join(f'{layout.paint(key, "strong")} {does}' for key, does in telling.items())
            return f'{lead}{text} ', telling is tellings[0]
    return f'{lead}{"/".join(tellings[0])} ', False


GROUP_KEYS = {'A': 'approve all', 'N': 'deny all', 'o': 'one by one', '?': 'more', 'q': 'stop the run'}
"""The keys where several requests are asked about together; none of them answers a single one. `q` is behind `?`."""

_GROUP_KEYS_BRIEFLY = {'A': 'all', 'N': 'none', 'o': 'each', '?': 'more'}


def group_keys(requests: Sequence[ApprovalRequest]) -> list[str]:
    """Those that are offered: nothing is approved together unless all of it was shown."""
    return [key for key in GROUP_KEYS if key != 'A' or may_approve_together(requests)]


def render_group(requests: Sequence[ApprovalRequest], *, width: int, height: int, color: bool, ascii_only: bool) -> str:
    """What is written before the answer to a group is read: every request, and the keys; see `render_request`.

    Where that is higher than the terminal, a list of the requests stands above the keys, so that both fit into it.
    """
    if width < NARROWEST:
        return TOO_NARROW
    boxes = [
        render_request(request, width=width, height=height, color=color, ascii_only=ascii_only, keys=())
        for request in requests
    ]
    rows = '\n'.join(boxes).split('\n')
    if len(rows) >= height:
        room = max(1, height - 8)
        rows += ['', f'{len(requests)} requests, all shown above:']
        for number, request in enumerate(requests[:room], start=1):
            text = escape_line(f'{request.tool_name}: {summary(request)}', ascii_only=ascii_only)
            rows.append(fitted(f'  {number}  {text}', width - 1))
        if len(requests) > room:
            rows.append(f'  and {len(requests) - room} more')
    keys = group_keys(requests)
    if 'A' not in keys:
        rows.append('Some are not shown whole, so decide one by one; v shows all of each.')
    in_sight = {key: GROUP_KEYS[key] for key in keys if key != 'q'}
    lead = f'{len(requests)} requests: '[: width - len('A/N/o/?  ')]
    briefly = {key: _GROUP_KEYS_BRIEFLY[key] for key in in_sight}
    return '\n'.join([*rows, _keys_row(Layout(width, color, ascii_only), lead, in_sight, briefly)[0]])


def outcome_text(request: ApprovalRequest, decision: ApprovalDecision, *, ascii_only: bool) -> str:
    """What was decided, as the words that follow the name of the person; escaped."""
    verb = 'approved' if decision.approved else 'denied'
    if decision.override_args is not None:
        verb = 'changed and approved'
    if decision.approved and decision.remember != 'none':
        span = 'for this session' if decision.remember == 'session' else 'always'
        covered = dict(remember_choices(request, ascii_only=ascii_only))[decision.remember_option]
        name = escape_line(request.tool_name, ascii_only=ascii_only)
        return f'{verb} {span}: {covered}' if name in covered else f'{verb} {name} {span}: {covered}'
    note = f' ({decision.note})' if decision.note else ''
    return escape_line(f'{verb} {request.tool_name}{note}: {summary(request)}', ascii_only=ascii_only)
