"""Asks a person about requests until each is decided."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from functools import partial

from tool_approval.core.decision import ApprovalDecision, Remember
from tool_approval.core.errors import StoreError
from tool_approval.core.memory import ApprovalMemory
from tool_approval.core.protocols import RememberedApproval
from tool_approval.core.request import ApprovalRequest
from tool_approval.display import escape_line, offered_keys, remember_choices

from .changing import Present, change
from .dialogue import Dialogue, page
from .keyboard import Stopped
from .line import read_line
from .render import group_keys, outcome_line, outcome_text, render_group, render_request, render_whole
from .tty import TerminalClosed, Withdrawn

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


HELP = {
    'y': 'approve this call, once',
    'n': 'deny it',
    'd': 'deny it with a note, which the model and the log get',
    's': 'approve it, and the same again in this session',
    'a': 'approve it, and the same again until you revoke it',
    'e': 'change its arguments; you are asked about the changed call',
    'v': 'view all of it, page by page',
    'l': 'list what is remembered, and revoke it',
    'q': 'deny it and stop the run, as Ctrl-C does',
}
"""What each key does."""

GROUP_HELP = {
    'A': 'approve all of them, after one more question',
    'o': 'decide one by one',
    'N': 'deny all of them',
    'q': 'deny all of them and stop the run, as Ctrl-C does',
}
"""What each key does where several requests are asked about together."""


class Prompt:
    """Asks on one terminal, which is in raw mode."""

    def __init__(
        self,
        dialogue: Dialogue,
        *,
        person: str,
        memory: ApprovalMemory | None,
        present: Present,
        environment: Mapping[str, str],
        color: bool,
    ) -> None:
        """Prepare.

        Args:
            dialogue: With whom.
            person: Their name.
            memory: What is listed; nothing can be if `None`.
            present: Makes what is shown of a call that was changed.
            environment: Names the editor.
            color: Whether to use colours.
        """
        self._dialogue = dialogue
        self._person = person
        self._memory = memory
        self._present = present
        self._environment = environment
        self._color = color
        self._ascii_only = dialogue.terminal.is_plain

    def ask_all(self, requests: Sequence[ApprovalRequest]) -> list[ApprovalDecision] | None:
        """Ask about one request, or about a group: all together, or one by one.

        Returns:
            A decision for each, or `None` if the run is to be stopped.

        Raises:
            Withdrawn: Nobody waits any more.
            TerminalClosed: The terminal is gone.
        """
        about = self._names(requests)
        try:
            decision = None if len(requests) == 1 else self._ask_together(requests)
            return [self._ask(request) for request in requests] if decision is None else [decision] * len(requests)
        except Stopped:
            self._say(f'stopped the run; denied {about}', is_good=False)
            return None
        except Withdrawn:
            with contextlib.suppress(Withdrawn, TerminalClosed):
                self._say(f'was not waited for any longer; denied {about}', is_good=False)
            raise

    def _ask(self, request: ApprovalRequest) -> ApprovalDecision:
        asked, hint = request, ''
        self._draw(asked)
        while True:
            key = self._dialogue.key(
                {key: HELP[key] for key in self._keys(asked, is_changed=asked is not request) if key in HELP}, hint
            )
            hint = ''
            decision: ApprovalDecision | None = None
            match key:
                case 'y':
                    changes = None if asked is request else asked.args
                    decision = ApprovalDecision(approved=True, override_args=changes)
                case 'n':
                    decision = ApprovalDecision(approved=False)
                case 'd':
                    decision = self._noted()
                case 's' | 'a':
                    decision = approve_for(self._dialogue, asked, 'session' if key == 's' else 'always')
                case 'e':
                    asked, hint = change(
                        self._dialogue, request, asked, present=self._present, environment=self._environment
                    )
                    self._draw(asked, before=request if asked is not request else None)
                case 'v':
                    self._view(asked)
                case 'l' if self._memory is not None:
                    hint = revoke_some(self._dialogue, self._memory)
                case _:
                    raise Stopped
            if decision is not None:
                self._say(outcome_text(asked, decision, ascii_only=self._ascii_only), is_good=decision.approved)
                return self._signed(decision)

    def _ask_together(self, requests: Sequence[ApprovalRequest]) -> ApprovalDecision | None:
        """One decision for all, or `None` where each is to be decided for itself."""
        render = partial(render_group, requests, color=self._color, ascii_only=self._ascii_only)
        self._dialogue.draw(lambda columns, lines: render(width=columns, height=lines))
        help = {key: GROUP_HELP[key] for key in group_keys(requests) if key in GROUP_HELP}
        all_of_them = f'all {len(requests)}: {self._names(requests)}'
        while True:
            match self._dialogue.key(help):
                case 'A':
                    question = f'Approve all {len(requests)}? Press A once more; Esc goes back. '
                    if self._dialogue.choose([], question, ['A']) is not None:
                        self._say(f'approved {all_of_them}', is_good=True)
                        return self._signed(ApprovalDecision(approved=True))
                case 'N':
                    self._say(f'denied {all_of_them}', is_good=False)
                    return self._signed(ApprovalDecision(approved=False))
                case 'o':
                    self._dialogue.area.show(question='')
                    return None
                case _:
                    raise Stopped

    def _draw(self, request: ApprovalRequest, *, before: ApprovalRequest | None = None) -> None:
        keys = self._keys(request, is_changed=before is not None)
        render = partial(
            render_request, request, color=self._color, ascii_only=self._ascii_only, keys=keys, before=before
        )
        self._dialogue.draw(lambda columns, lines: render(width=columns, height=lines))

    def _view(self, request: ApprovalRequest) -> None:
        dialogue = self._dialogue
        whole = partial(render_whole, request, color=self._color, ascii_only=self._ascii_only)
        page(dialogue.terminal, dialogue.keyboard, lambda columns: whole(width=columns).split('\n')[:-1])
        dialogue.area.show()

    def _noted(self) -> ApprovalDecision | None:
        dialogue = self._dialogue
        dialogue.area.show('Deny with a note. Enter sends it; Esc goes back.', question='')
        note = read_line(dialogue.terminal, dialogue.keyboard, 'Note: ')
        dialogue.area.show()
        return None if note is None else ApprovalDecision(approved=False, note=note.strip() or None)

    def _keys(self, request: ApprovalRequest, *, is_changed: bool) -> list[str]:
        """Those that answer `request`: one that was changed is not remembered, and there may be nothing to list."""
        left_out = {'l'} if self._memory is None else set[str]()
        if is_changed:
            left_out |= {'s', 'a'}
        return [key for key in offered_keys(request) if key not in left_out]

    def _say(self, text: str, *, is_good: bool) -> None:
        """Leave one line, escaped, in place of the question."""
        columns, _ = self._dialogue.terminal.size
        text = f'{escape_line(self._person, ascii_only=self._ascii_only)} {text}'
        line = outcome_line(text, is_good=is_good, columns=columns, ascii_only=self._ascii_only, color=self._color)
        self._dialogue.area.end(line)

    def _names(self, requests: Sequence[ApprovalRequest]) -> str:
        names = dict.fromkeys(request.tool_name for request in requests)
        return escape_line(', '.join(names), ascii_only=self._ascii_only)

    def _signed(self, decision: ApprovalDecision) -> ApprovalDecision:
        return decision.model_copy(update={'decided_by': self._person})
