"""Render a request as text for a terminal of a given size.

Without a rendering library, the module can rule out control characters and overlong rows, and draw 1 MB quickly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tool_approval.answering import may_approve_together, place_in_response
from tool_approval.core.canonical import EXACT
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

from .highlight import highlight
from .layout import NARROWEST, Layout, fitted

TOO_NARROW = f'Too narrow to ask.\nWiden the window to\n{NARROWEST} columns, or press\nq to deny and stop\nthe run. '
"""Text for a terminal that is too narrow for the frame."""

_IN_SIGHT: Mapping[str, str] = {
    'y': 'approve',
    'w': 'write the result',
    'n': 'deny',
    's': 'this session',
    'v': 'view all',
    '?': 'more',
}
"""Keys that the question row can show, at most four at once. The key `v` is offered only if content is cut, and `s`
only if no content is cut. The key `w` is in the row only if the call cannot be approved."""

_IN_TITLE = ('tool', 'file', 'in', 'request', 'agent')
"""Facts for the first row, most important first. The last two facts are aligned right."""

_BELOW = ('grants', 'extra access')
"""Facts below the content: permissions that an approval grants in addition to the call."""


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
    """Render a request as a box, with the keys in the bottom edge.

    Request text is always inside the frame, and control characters are escaped. The last row asks the question. No
    other row begins with the corner of the bottom edge.

    Args:
        request: Request to show.
        width: Columns of the terminal. With fewer than 24 columns, only a text that asks for a wider window is
            returned. In this case, the caller must not accept a key that approves.
        height: Rows of the terminal. If the box is taller than the terminal, the question repeats the tool's name.
        color: Whether to use colours. Without colours, the text has no escape sequences.
        ascii_only: Whether to draw with ASCII only and escape all other characters.
        keys: Keys to offer, from `KEYS`. With `None`, the keys are those of `offered_keys(request)`. Keys that the
            request does not allow are left out.
        position: 1-based position of the request, and number of requests; `None` uses the values in the request.
        before: Original request, to show which arguments the approver has changed; `None` if there are no changes.

    Returns: Rows separated by newlines. There is no newline at the end, so that the cursor stays after the question.
    """
    if width < NARROWEST:
        return TOO_NARROW
    layout = Layout(width, color, ascii_only)
    shown = display(request, ascii_only=ascii_only, changes_only=True)
    allowed = offered_keys(request, is_whole=shown.is_whole)
    keys = allowed if keys is None else [key for key in keys if key in allowed]
    rows = _box(request, shown, layout, position=position, before=before)
    hidden = {'v' if shown.is_whole else '', 'w' if 'y' in keys else ''}
    in_sight = {key: does for key, does in _IN_SIGHT.items() if key in keys and key not in hidden}
    below, question = _question(request, layout, '', in_sight)
    if len(rows) + len(below) + 1 > height:
        below, question = _question(request, layout, name_of(request.tool_name, ascii_only=ascii_only), in_sight)
        note = f'{len(rows) + len(below) + 2:,} rows do not fit; scroll up to see all.'
        below = [*layout.labelled('!', note, style='strong'), *below]
    return '\n'.join([*rows, *below, question])


def render_whole(request: ApprovalRequest, *, width: int = 80, color: bool = True, ascii_only: bool = False) -> str:
    """Render the whole request for a pager, without a question.

    With fewer than 24 columns, only a text that asks for a wider window is returned.
    """
    if width < NARROWEST:
        return f'{TOO_NARROW.rstrip()}\n'
    layout = Layout(width, color, ascii_only)
    shown = display(request, whole=True, ascii_only=ascii_only)
    rows = _box(request, shown, layout, is_all=True)
    return '\n'.join([*rows, layout.edge(layout.glyphs.bottom, request_digest(request)), ''])


def render_more(request: ApprovalRequest, width: int, *, keys: Sequence[str], ascii_only: bool = False) -> list[str]:
    """Render the rows for the key `?`: all keys, the facts that the box leaves out, and the digest of the request.

    The digests of two requests differ if the requests differ in any value, shown or not.
    """
    layout = Layout(max(width, NARROWEST), color=False, ascii_only=ascii_only)
    choices = dict(remember_choices(request, ascii_only=ascii_only))
    covered = {'s': choices[session_choice(request)[0]], 'x': choices[EXACT]}
    does = {**KEYS, **{key: f'{KEYS[key]}: {text}' for key, text in covered.items()}}
    labelled = [(f'{key} ', does[key]) for key in KEYS if key in keys and key != '?']
    labelled += [(f'{label}:', text) for label, text in _facts(request, layout, is_more=True)]
    labelled.append(('mark:', f'{request_digest(request)} (a different request has a different mark)'))
    return [row for label, text in labelled for row in layout.labelled(label, text)]


def _facts(request: ApprovalRequest, layout: Layout, *, is_more: bool, is_all: bool = False) -> list[tuple[str, str]]:
    """Return labelled facts of a request: those in the box or, if `is_more`, those that the key `?` shows."""
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
    """Return all rows of the box except the bottom edge."""
    ascii_only = layout.ascii_only
    found = _facts(request, layout, is_more=False, is_all=is_all)
    name = name_of(request.tool_name, ascii_only=ascii_only, whole=is_all)
    rows = _title(layout, {'tool': name, 'request': _place(request, position), **dict(found)})
    below: list[str] = []
    for label, text in found:
        if label not in _IN_TITLE:
            (below if label in _BELOW else rows).extend(layout.labelled(f'{label}:', text))
    shown_as = request.presentation
    language = None if shown_as is None or shown_as.type != 'file_content' else shown_as.language
    rows += layout.quoted(highlight(shown.lines, language) if layout.color and language else shown.lines)
    if before is not None:
        rows += layout.quoted(changes(before, request, ascii_only=ascii_only))
    rows += below
    for warning in warnings_of(request, ascii_only=ascii_only):
        rows += layout.labelled('!', f'Warning: {warning}', style='odd')
    if not shown.is_whole:
        rows += layout.labelled('!', 'Some content is not shown.', style='strong')
    if not is_all and (not shown.is_whole or left_out_keys(request)):
        # Attack: two requests that differ only in omitted parts look alike (test_render.py).
        rows += layout.labelled('mark:', request_digest(request))
    return rows


def _title(layout: Layout, titles: Mapping[str, str]) -> list[str]:
    """Return the first row, and one more row for each fact that does not fit into the first row."""
    words = {'in': 'in {}', 'request': 'request {}'}
    left, right, rows = list[str](), list[str](), list[str]()
    room = layout.width - len('╭─ ')
    for label in _IN_TITLE:
        text = titles.get(label, '')
        said = words.get(label, '{}').format(text)
        side, gap = (right, '   ') if label in _IN_TITLE[3:] else (left, ' ')
        # Attack: a path is mistaken for the tool's name, or reverses the text direction of the row (test_render.py).
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
    """Return rows for the texts that the bottom edge has no room for, and the edge itself with `name` and `keys`."""
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
    """Return two values: `lead` with the first of `tellings` that fits, or the keys, and whether `tellings[0]` fits."""
    for telling in tellings:
        if cell_width(lead + '   '.join(f'{key} {does}' for key, does in telling.items())) + 2 <= layout.width:
            text = '   '.join(f'{layout.paint(key, "strong")} {does}' for key, does in telling.items())
            return f'{lead}{text} ', telling is tellings[0]
    return f'{lead}{"/".join(tellings[0])} ', False


GROUP_KEYS = {'A': 'approve all', 'N': 'deny all', 'o': 'one by one', '?': 'more', 'q': 'stop the run'}
"""Keys of a question about several requests. A question about one request offers none of `A`, `N` and `o`. The key `q`
is listed only after `?`."""

_GROUP_KEYS_BRIEFLY = {'A': 'all', 'N': 'none', 'o': 'each', '?': 'more'}


def group_keys(requests: Sequence[ApprovalRequest]) -> list[str]:
    """Return the keys to offer. `A` is offered only if all requests are shown whole."""
    return [key for key in GROUP_KEYS if key != 'A' or may_approve_together(requests)]


def render_group(requests: Sequence[ApprovalRequest], *, width: int, height: int, color: bool, ascii_only: bool) -> str:
    """Render all requests of a group, and then the keys; see `render_request`.

    If the boxes are taller than the terminal, a list of the requests is added above the keys.
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
        rows.append('Some requests are shortened, so press o to decide one by one.')
    in_sight = {key: GROUP_KEYS[key] for key in keys if key != 'q'}
    lead = f'{len(requests)} requests: '[: width - len('A/N/o/?  ')]
    briefly = {key: _GROUP_KEYS_BRIEFLY[key] for key in in_sight}
    return '\n'.join([*rows, _keys_row(Layout(width, color, ascii_only), lead, in_sight, briefly)[0]])


def outcome_text(request: ApprovalRequest, decision: ApprovalDecision, *, ascii_only: bool) -> str:
    """Return the decision as escaped text to write after the approver's name."""
    verb = 'approved' if decision.approved else 'denied'
    if decision.override_args is not None:
        verb = 'changed and approved'
    note = f' ({decision.note})' if decision.note else ''
    if decision.remember != 'none':
        span = 'for this session' if decision.remember == 'session' else 'always'
        covered = dict(remember_choices(request, ascii_only=ascii_only))[decision.remember_option]
        name = escape_line(request.tool_name, ascii_only=ascii_only)
        noted = '' if decision.approved else escape_line(note, ascii_only=ascii_only)
        return f'{verb} {span}{noted}: {covered}' if name in covered else f'{verb} {name} {span}{noted}: {covered}'
    if decision.response is not None:
        verb = 'answered in place of'
    return escape_line(f'{verb} {request.tool_name}{note}: {summary(request)}', ascii_only=ascii_only)
