"""Ask the approver about requests until each is decided."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

from tool_approval.answering import decision_on
from tool_approval.core.decision import ApprovalDecision, Remember
from tool_approval.core.errors import StoreError
from tool_approval.core.first_of import answered_elsewhere
from tool_approval.core.memory import ApprovalMemory
from tool_approval.core.protocols import RememberedApproval
from tool_approval.core.request import ApprovalRequest
from tool_approval.display import escape_line, offered_keys, remember_choices
from tool_approval.display.fact_texts import summary
from tool_approval.display.questions import session_choice

from .changing import Present, change
from .dialogue import Dialogue, page
from .keyboard import Stopped
from .layout import continued, fitted
from .line import read_line
from .render import GROUP_KEYS, group_keys, outcome_text, render_group, render_more, render_request, render_whole
from .tty import TerminalClosed, Withdrawn

PER_PAGE = 9
"""Maximum number of remembered approvals to list at once, one for each digit key."""

_GREEN, _RED, _PLAIN = '\x1b[32m', '\x1b[31m', '\x1b[0m'


class Prompt:
    """Asks questions on a terminal in raw mode."""

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
        """Configure the prompt.

        Args:
            dialogue: Draws the questions and reads the keys.
            person: Name of the approver.
            memory: Memory whose approvals the approver can list with the key `l`. With `None`, the key is not offered.
            present: Function that adds a presentation to a changed call.
            environment: Environment variables that name the editor.
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
        """Ask about one request, or about several requests, which can be answered together or one by one.

        Returns:
            A decision for each request, or `None` if the approver stops the run.

        Raises:
            Withdrawn: The answer is no longer needed.
            TerminalClosed: The terminal was closed.
        """
        names = escape_line(', '.join(dict.fromkeys(each.tool_name for each in requests)), ascii_only=self._ascii_only)
        try:
            decision = None if len(requests) == 1 else self._ask_together(requests, f'all {len(requests)}: {names}')
            decisions = [self._ask(each) for each in requests] if decision is None else [decision] * len(requests)
        except Stopped:
            self._say(f'stopped the run. Denied: {names}', is_good=False)
            return None
        except Withdrawn:
            with contextlib.suppress(Withdrawn, TerminalClosed):
                self._say_why(requests, names)
            raise
        return [each.model_copy(update={'decided_by': (self._person,)}) for each in decisions]

    def _ask(self, request: ApprovalRequest) -> ApprovalDecision:
        asked, hint = request, ''
        keys = self._draw(asked)
        while True:
            key = self._dialogue.key(keys, partial(render_more, asked, keys=keys, ascii_only=self._ascii_only), hint)
            hint = ''
            decision: ApprovalDecision | None = None
            match key:
                case 'y':
                    edited = None if asked is request else asked.payload
                    decision = decision_on(request, approved=True, override_args=edited)
                case 'n':
                    decision = decision_on(request, approved=False)
                case 'd' | 'x':
                    decision = self._noted(request, 'none' if key == 'd' else 'session')
                case 'w':
                    decision, hint = self._responded(request)
                case 's':
                    kind, _ = session_choice(asked)
                    decision = decision_on(request, approved=True, remember='session', remember_option=kind)
                case 'r' | 'a':
                    decision = self._remembered(asked, 'session' if key == 'r' else 'always')
                case 'e':
                    asked, hint = change(
                        self._dialogue, request, asked, present=self._present, environment=self._environment
                    )
                    keys = self._draw(asked, before=None if asked is request else request)
                case 'v':
                    self._view(asked)
                case 'l' if self._memory is not None:
                    hint = self._revoke(self._memory)
                case _:
                    raise Stopped
            if decision is not None:
                text = outcome_text(asked, decision, ascii_only=self._ascii_only)
                self._say(text, is_good=decision.approved, is_whole=decision.remember != 'none')
                return decision

    def _ask_together(self, requests: Sequence[ApprovalRequest], all_of_them: str) -> ApprovalDecision | None:
        """Ask one question about all requests; return `None` if the approver wants to decide one by one."""
        self._dialogue.draw(partial(render_group, requests, color=self._color, ascii_only=self._ascii_only))
        keys = group_keys(requests)
        while True:
            match self._dialogue.key(keys, lambda _: [f'  {key}  {GROUP_KEYS[key]}' for key in keys]):
                case 'A':
                    question = f'Approve all {len(requests)}? Press A once more; Esc goes back. '
                    if self._dialogue.choose([], question, ['A']) is not None:
                        self._say(f'approved {all_of_them}', is_good=True)
                        return ApprovalDecision(approved=True)
                case 'N':
                    self._say(f'denied {all_of_them}', is_good=False)
                    return ApprovalDecision(approved=False)
                case 'o':
                    self._dialogue.show(question='')
                    return None
                case _:
                    raise Stopped

    def _draw(self, request: ApprovalRequest, *, before: ApprovalRequest | None = None) -> list[str]:
        """Draw a request and, if `before` is given, the changes from `before`. Return the offered keys."""
        left_out = ('l' if self._memory is None else '') + ('' if before is None else 'srax')
        keys = [key for key in offered_keys(request) if key not in left_out]
        self._dialogue.draw(
            partial(render_request, request, color=self._color, ascii_only=self._ascii_only, keys=keys, before=before)
        )
        return keys

    def _view(self, request: ApprovalRequest) -> None:
        dialogue = self._dialogue
        whole = partial(render_whole, request, color=self._color, ascii_only=self._ascii_only)
        page(dialogue.terminal, dialogue.keyboard, lambda columns: whole(width=columns).split('\n')[:-1])
        dialogue.show()

    def _noted(self, request: ApprovalRequest, remember: Remember) -> ApprovalDecision | None:
        dialogue = self._dialogue
        lines = ['Deny with a note. Enter sends it; Esc goes back.']
        if remember == 'session':
            covered = remember_choices(request, ascii_only=self._ascii_only)[0][1]
            last = 'The note may be empty. Enter denies; Esc goes back.'
            lines = ['Deny now and, until the session ends, without asking:', f'  {covered}', last]
        dialogue.show(*lines, question='')
        note = read_line(dialogue.terminal, dialogue.keyboard, 'Note: ')
        dialogue.show()
        return None if note is None else decision_on(request, approved=False, note=note.strip(), remember=remember)

    def _responded(self, request: ApprovalRequest) -> tuple[ApprovalDecision | None, str]:
        """Ask for the result of the call; without a text, return to the question, with a line to show."""
        dialogue = self._dialogue
        dialogue.show('The model reads your text as the result; the tool does not run. Esc goes back.', question='')
        response = read_line(dialogue.terminal, dialogue.keyboard, 'Result: ')
        dialogue.show()
        if response is None:
            return None, ''
        if not response.strip():
            return None, 'An empty text is not sent.'
        return decision_on(request, approved=False, response=response.strip()), ''

    def _remembered(self, request: ApprovalRequest, remember: Remember) -> ApprovalDecision | None:
        """Ask which calls the approval covers; return `None` to go back to the question."""
        choices = remember_choices(request, ascii_only=self._ascii_only)
        numbers = {str(number): kind for number, (kind, _) in enumerate(choices, start=1)}
        lines = [f'  {number}  {label}' for number, (_, label) in enumerate(choices, start=1)]
        heading = f'Approve {"for this session" if remember == "session" else "always"}:'
        last = f' to {len(choices)}' if len(choices) > 1 else ''
        key = self._dialogue.choose([heading, *lines], f'Press 1{last}; Esc goes back. ', numbers)
        if key is None:
            return None
        return decision_on(request, approved=True, remember=remember, remember_option=numbers[key])

    def _revoke(self, memory: ApprovalMemory) -> str:
        """List remembered approvals, revoke the chosen ones, and return the hint to show afterwards."""
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
                key = self._dialogue.choose(above, "Press an approval's number to revoke it; Esc goes back. ", keys)
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

    def _say_why(self, requests: Sequence[ApprovalRequest], names: str) -> None:
        """Replace the question with a line that says why the answer is no longer needed."""
        answers = [(each, answer) for each in requests if (answer := answered_elsewhere(each)) is not None]
        if not answers:
            self._say(f'is no longer asked. Denied: {names}', is_good=False)
        for request, answer in answers:
            verb = 'approved' if answer.approved else 'denied'
            text = f'{verb} {request.tool_name} elsewhere: {summary(request)}'
            self._say(
                escape_line(text, ascii_only=self._ascii_only),
                is_good=answer.approved,
                person=' and '.join(answer.decided_by) or 'another person',
            )

    def _say(self, text: str, *, is_good: bool, is_whole: bool = False, person: str | None = None) -> None:
        """Replace the question with an outcome, cut to one row unless `is_whole`. `is_good` chooses the mark."""
        mark = ('+' if is_good else 'x') if self._ascii_only else ('\N{CHECK MARK}' if is_good else '\N{BALLOT X}')
        painted = f'{_GREEN if is_good else _RED}{mark}{_PLAIN}' if self._color else mark
        text = f'{escape_line(person or self._person, ascii_only=self._ascii_only)} {text}'
        room = self._dialogue.terminal.size[0] - 4
        rows = continued(text, room, indent='  ', ascii_only=self._ascii_only) if is_whole else [fitted(text, room)]
        self._dialogue.end(f'{painted} {rows[0]}', *rows[1:])


def _line(approval: RememberedApproval, *, is_lasting: bool = False) -> str:
    by = f', by {" and ".join(approval.approved_by)}' if approval.approved_by else ''
    span = 'denied' if approval.is_denial else 'always' if is_lasting else 'session'
    left = '' if approval.left is None else f' ({approval.left.text(datetime.now(UTC))})'
    return escape_line(f'{span}  {approval.tool_name}: {approval.label}{left}{by}')
