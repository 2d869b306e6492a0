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

from .layout import NARROWEST, Layout, fitted

TOO_NARROW = f'Too narrow to ask.\nWiden the window to\n{NARROWEST} columns; q denies\nand stops the run. '
"""What is drawn in a window in which the terminal would break the rows, and their ends would stand without a frame."""

_KEYS_FIT = max(len(f'[{key}] {does}') for key, does in KEYS.items())
_PLACE_FITS = len('--request 999999 of 999999---')
"""Columns that are needed to write them out."""
_UNNAMED = 'Approve this call? '
"""Asked where the name does not fit; then it is in the box."""


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
    """What is written before the answer is read: a box that shows the request, the keys, and the question.

    Whatever is in the request, no character of it does anything but draw itself, every row of it stands behind the
    frame, and the last row is the question, with the tool's name.

    Args:
        request: What is asked about.
        width: Columns of the terminal. Where there are fewer than 24, nothing of the request is drawn: the window is
            asked to be made wider, and no key that approves may be taken for an answer.
        height: Rows of the terminal. Where there are few, the keys are written in short.
        color: Whether to use colours. Without them there is no escape sequence at all.
        ascii_only: Whether to draw with ASCII alone, and to escape everything else.
        keys: The keys that are offered, from `KEYS`; `offered_keys(request)` unless given. `s` and `a` are dropped
            where that leaves them out.
        position: This is request i of n, from 1; what the controller says in `request.metadata` unless given.
        before: The request as it was made, where the person has changed its arguments: what differs is shown.

    Returns:
        Rows ended by newlines, and the question without one, so that the cursor stands after it.
    """
    if width < NARROWEST:
        return TOO_NARROW
    layout = Layout(width, color, ascii_only)
    shown = display(request, ascii_only=ascii_only)
    allowed = offered_keys(request, is_whole=shown.is_whole)
    offered = [key for key in KEYS if key in (allowed if keys is None else keys)]
    offered = [key for key in offered if key in allowed or key not in 'sa']
    rows = _box(request, shown, layout, position=position, offered=offered, before=before)
    key_rows = _key_rows({key: KEYS[key] for key in offered}, layout)
    is_short = len(key_rows) > height // 3 or width < _KEYS_FIT
    total = len(rows) + 2 + (0 if is_short else len(key_rows))
    if total > height:
        rows += layout.labelled('!', f'{total + 1:,} rows: read from the top.', style='strong', label_width=2)
    rows.append(_bottom(request, layout))
    asked = _question(name_of(request.tool_name, ascii_only=ascii_only), layout)
    short = f'[{"/".join(offered)}] '
    if not is_short:
        rows += key_rows
    elif cell_width(asked + short) < width:
        asked += short
    else:
        rows.append(short.rstrip())
    return '\n'.join([*rows, layout.paint(asked.rstrip(' '), 'title') + ' '])


def render_whole(request: ApprovalRequest, *, width: int = 80, color: bool = True, ascii_only: bool = False) -> str:
    """Everything in the request, nothing cut, for a pager: rows ended by newlines, no question.

    Where there are fewer than 24 columns, nothing of it is drawn, as in `render_request`.
    """
    if width < NARROWEST:
        return f'{TOO_NARROW.rstrip()}\n'
    layout = Layout(width, color, ascii_only)
    shown = display(request, whole=True, ascii_only=ascii_only)
    return '\n'.join([*_box(request, shown, layout, is_all=True), _bottom(request, layout), ''])


def _bottom(request: ApprovalRequest, layout: Layout) -> str:
    return layout.rule(layout.glyphs.bottom, request_digest(request))


def _box(
    request: ApprovalRequest,
    shown: Display,
    layout: Layout,
    *,
    position: tuple[int, int] | None = None,
    offered: Sequence[str] = (),
    before: ApprovalRequest | None = None,
    is_all: bool = False,
) -> list[str]:
    """The rows of the box but the last."""
    ascii_only = layout.ascii_only
    name = name_of(request.tool_name, ascii_only=ascii_only, whole=is_all)
    place = _place(request, position, layout.width)
    fits = cell_width(name) + cell_width(place) + 8 <= layout.width
    rows = [layout.rule(layout.glyphs.top, name if fits else '', place)]
    told = facts(request, ascii_only=ascii_only, whole=is_all)
    for label, text in told if fits else [('tool', name), *told]:
        rows += layout.labelled(label, text)
    rows += [layout.empty()] * bool(told or not fits)
    rows += layout.quoted(shown.lines)
    if before is not None:
        rows += layout.quoted(changes(before, request, ascii_only=ascii_only))
    below: list[str] = []
    for warning in warnings_of(request, ascii_only=ascii_only):
        below += layout.labelled('!', f'Warning: {warning}', style='odd', label_width=2)
    if not shown.is_whole:
        below += layout.labelled('!', 'Not all of it is shown here.', style='strong', label_width=2)
    below += _covered(request, layout, offered)
    if _question(name, layout) == _UNNAMED:
        below += layout.labelled('tool', name)
    return [*rows, layout.empty(), *below] if below else rows


def _covered(request: ApprovalRequest, layout: Layout, offered: Sequence[str]) -> list[str]:
    """What a remembered approval would cover."""
    label = ', '.join(key for key in offered if key in 'sa')
    if not label:
        return []
    rows: list[str] = []
    choices = remember_choices(request, ascii_only=layout.ascii_only)
    for digit, (_, covered) in enumerate(choices, 1):
        rows += layout.labelled(label if digit == 1 else '', covered if len(choices) == 1 else f'{digit} {covered}')
    return rows


def _place(request: ApprovalRequest, position: tuple[int, int] | None, width: int) -> str:
    if position is not None:
        request = request.changed(request.facts._replace(position=position[0], batch_size=position[1]))
    place = place_in_response(request)
    if place is None:
        return ''
    index, count = place
    return f'request {index} of {count}' if width >= _PLACE_FITS else f'{index}/{count}'


def _question(name: str, layout: Layout) -> str:
    asked = f'Approve {name}? '
    return asked if cell_width(asked) < layout.width else _UNNAMED


def _key_rows(keys: Mapping[str, str], layout: Layout) -> list[str]:
    """Keys with what they do, as many in a row as fit."""
    rows, used = [''], 0
    for key, does in keys.items():
        needed = len(f'[{key}] {does}')
        if used and used + 2 + needed > layout.width:
            rows.append('')
            used = 0
        gap = '  ' if used else ''
        rows[-1] += f'{gap}[{layout.paint(key, "strong")}] {does}'
        used += len(gap) + needed
    return rows


GROUP_KEYS = {'A': 'approve all', 'o': 'one by one', 'N': 'deny all', 'q': 'stop the run', '?': 'help'}
"""The keys where several requests are asked about together; none of them answers a single one."""


def group_keys(requests: Sequence[ApprovalRequest]) -> list[str]:
    """Those that are offered: nothing is approved together unless all of it was shown."""
    return [key for key in GROUP_KEYS if key != 'A' or may_approve_together(requests)]


def render_group(requests: Sequence[ApprovalRequest], *, width: int, height: int, color: bool, ascii_only: bool) -> str:
    """What is written before the answer to a group is read: every request, a list of them, the keys, the question.

    The list, the keys and the question fit into `height` rows. The arguments are those of `render_request`.
    """
    if width < NARROWEST:
        return TOO_NARROW
    boxes = [
        render_request(request, width=width, height=height, color=color, ascii_only=ascii_only, keys=())
        for request in requests
    ]
    rows = [box.rpartition('\n')[0].rstrip('\n') for box in boxes]
    room = max(1, height - 8)
    rows += ['', f'{len(requests)} requests, all shown above:']
    for number, request in enumerate(requests[:room], start=1):
        text = escape_line(f'{request.tool_name}: {request.attributed_description}', ascii_only=ascii_only)
        rows.append(fitted(f'  {number}  {text}', width - 1))
    if len(requests) > room:
        rows.append(f'  and {len(requests) - room} more')
    keys = group_keys(requests)
    if 'A' not in keys:
        rows.append('Some are not shown whole, so decide one by one; v shows all of each.')
    rows += _key_rows({key: GROUP_KEYS[key] for key in keys}, Layout(width, color=False, ascii_only=ascii_only))
    return '\n'.join([*rows, f'Approve all {len(requests)}? ' if 'A' in keys else 'Go on? '])


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
    return escape_line(f'{verb} {request.tool_name}{note}: {request.attributed_description}', ascii_only=ascii_only)
