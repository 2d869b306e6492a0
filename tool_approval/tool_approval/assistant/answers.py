"""Answers that were prepared, in place of a person: for `--answers`, and for what comes through a pipe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tool_approval.core.decision import ApprovalDecision, ApprovalMode
from tool_approval.core.request import ApprovalRequest
from tool_approval.ui.terminal import render_request

from .screen import Screen

NARROWEST = 24
"""Columns that the box of a question needs."""

WIDEST = 100
"""Chosen: columns of a question in a file or a pipe."""


class PreparedAnswers:
    """An approval UI that shows each question as the terminal does, and gives the next answer.

    `y` approves, `s` approves for the session; everything else denies, and so does the end of the answers.
    """

    one_at_a_time = True
    """So that the order of the answers is that of the questions."""

    def __init__(self, answers: Iterator[str], screen: Screen) -> None:
        """Take the answers as they are needed.

        Args:
            answers: One for each question.
            screen: Where the questions are shown.
        """
        self._answers = answers
        self._screen = screen

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Show the question, and answer it."""
        # Of a narrower one nothing would be drawn, and an answer would approve what nobody was shown.
        width = max(NARROWEST, min(self._screen.columns + 1, WIDEST))
        question = render_request(request, width=width, height=24, color=False, ascii_only=self._screen.ascii_only)
        self._screen.write_now(f'\n{question}')
        answer = next(self._answers, None)
        if answer is None:
            self._screen.write_now('(no answer is left: denied)\n')
            return ApprovalDecision(approved=False, note='No answer was left.', decided_by='prepared answers')
        is_approved = answer in ('y', 's')
        self._screen.write_now(f'{answer if is_approved else "n"}\n')
        return ApprovalDecision(
            approved=is_approved, remember='session' if answer == 's' else 'none', decided_by='prepared answers'
        )

    def choose_group(self, requests: Sequence[ApprovalRequest], *, mode: ApprovalMode) -> list[ApprovalDecision]:
        """Show the questions of a group, and answer one after the other."""
        return [self.choose(request, mode=mode) for request in requests]
