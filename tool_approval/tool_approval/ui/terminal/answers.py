"""The one line that tells afterwards what was decided."""

from __future__ import annotations

from tool_approval.core.decision import ApprovalDecision
from tool_approval.core.request import ApprovalRequest
from tool_approval.display import escape_line, remember_choices

from .area import fitted

_GREEN, _RED, _PLAIN = '\x1b[32m', '\x1b[31m', '\x1b[0m'


def told(request: ApprovalRequest, decision: ApprovalDecision, *, ascii_only: bool) -> str:
    """What was decided, as the words that follow the name of the person; escaped.

    Args:
        request: What was asked about.
        decision: What was decided.
        ascii_only: Whether to escape everything beyond ASCII.
    """
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


def outcome_line(text: str, *, is_good: bool, columns: int, ascii_only: bool, color: bool) -> str:
    """A line of its own, shorter than `columns`, with a mark before the text.

    Args:
        text: Escaped.
        is_good: Whether something may run.
        columns: Of the terminal.
        ascii_only: Whether the mark is ASCII.
        color: Whether the mark has a colour.
    """
    mark = ('+' if is_good else 'x') if ascii_only else ('\N{CHECK MARK}' if is_good else '\N{BALLOT X}')
    shown = fitted(text, columns - 4)
    return f'{_GREEN if is_good else _RED}{mark}{_PLAIN} {shown}' if color else f'{mark} {shown}'
