"""Several requests, shown together and asked about together."""

from __future__ import annotations

from collections.abc import Sequence

from tool_approval.core.request import ApprovalRequest
from tool_approval.display import escape_line, is_shown_whole

from .area import fitted
from .layout import NARROWEST
from .render import TOO_NARROW, render_request

GROUP_KEYS = {'A': 'approve all', 'o': 'one by one', 'N': 'deny all', 'q': 'stop the run', '?': 'help'}
"""The keys where several requests are asked about together; none of them answers a single one."""


def group_keys(requests: Sequence[ApprovalRequest]) -> list[str]:
    """Those that are offered: nothing is approved together unless all of it was shown."""
    return [key for key in GROUP_KEYS if key != 'A' or all(map(is_shown_whole, requests))]


def render_group(requests: Sequence[ApprovalRequest], *, width: int, height: int, color: bool, ascii_only: bool) -> str:
    """What is written before the answer to a group is read: every request, a list of them, the keys, the question.

    Args:
        requests: What is asked about.
        width: Columns of the terminal; see `render_request` for few.
        height: Rows of the terminal; the list, the keys and the question fit.
        color: Whether to use colours.
        ascii_only: Whether to draw with ASCII alone.
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
    rows += _wrapped([f'[{key}] {GROUP_KEYS[key]}' for key in keys], width)
    return '\n'.join([*rows, f'Approve all {len(requests)}? ' if 'A' in keys else 'Go on? '])


def _wrapped(words: list[str], width: int) -> list[str]:
    rows = ['']
    for word in words:
        if rows[-1] and len(rows[-1]) + 2 + len(word) > width:
            rows.append('')
        rows[-1] += f'  {word}' if rows[-1] else word
    return rows
