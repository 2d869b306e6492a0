"""What an approval is to be remembered for, and what is remembered already."""

from __future__ import annotations

from tool_approval.core.decision import ApprovalDecision, Remember
from tool_approval.core.errors import StoreError
from tool_approval.core.memory import ApprovalMemory
from tool_approval.core.protocols import RememberedApproval
from tool_approval.core.request import ApprovalRequest
from tool_approval.display import escape_line, remember_choices

from .dialogue import Dialogue

PER_PAGE = 9
"""As many as there are keys to name them."""


def approve_for(dialogue: Dialogue, request: ApprovalRequest, remember: Remember) -> ApprovalDecision | None:
    """Let a person say what an approval is remembered for, where there is a choice; `None`: back to the question."""
    choices = remember_choices(request, ascii_only=dialogue.terminal.is_plain)
    if len(choices) == 1:
        return ApprovalDecision(approved=True, remember=remember)
    numbers = {str(number): kind for number, (kind, _) in enumerate(choices, start=1)}
    lines = [f'  {number}  {label}' for number, (_, label) in enumerate(choices, start=1)]
    heading = f'Approve {"for this session" if remember == "session" else "always"}:'
    key = dialogue.choose([heading, *lines], f'Press 1 to {len(choices)}; Esc goes back. ', numbers)
    return None if key is None else ApprovalDecision(approved=True, remember=remember, remember_option=numbers[key])


def revoke_some(dialogue: Dialogue, memory: ApprovalMemory) -> str:
    """Show what is remembered, and let a person take it back; the line to show when they come back."""
    hint, start = '', 0
    while True:
        try:
            approvals = memory.list_approvals()
            start = start if start < len(approvals) else 0
            shown = approvals[start : start + PER_PAGE]
            if not shown:
                return hint or 'Nothing is remembered.'
            lines = [
                f'  {number}  {_line(each, is_lasting=start + number > len(memory))}'
                for number, each in enumerate(shown, start=1)
            ]
            has_more = len(approvals) > PER_PAGE
            heading = f'Remembered ({len(approvals)}):' + (' press m for more' if has_more else '')
            keys = [*(str(number) for number in range(1, len(shown) + 1)), *(['m'] if has_more else [])]
            above = [heading, *lines, *([hint] if hint else [])]
            key = dialogue.choose(above, 'Press a number to revoke; Esc goes back. ', keys)
            if key is None:
                return ''
            if key == 'm':
                start, hint = start + PER_PAGE, ''
                continue
            chosen = shown[int(key) - 1]
            memory.revoke(chosen.id)
            hint = f'Revoked: {_line(chosen)}'
        except StoreError as error:
            return escape_line(str(error))


def _line(approval: RememberedApproval, *, is_lasting: bool = False) -> str:
    by = f', by {approval.approved_by}' if approval.approved_by else ''
    span = 'always' if is_lasting else 'session'
    return escape_line(f'{span}  {approval.tool_name}: {approval.label}{by}')
