"""Ask in a conversation: the question stays the last thing on the screen, and stopping stops the turn."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from tool_approval.answering import NotOffered, decision_on
from tool_approval.core.decision import ApprovalDecision, ApprovalMode
from tool_approval.core.first_of import FirstOf
from tool_approval.core.memory import ApprovalMemory
from tool_approval.core.protocols import Presenter
from tool_approval.core.request import ApprovalRequest
from tool_approval.core.threads import RunCancelled
from tool_approval.display.questions import session_choice
from tool_approval.inbox import Inbox, InboxUI
from tool_approval.ui.terminal import TerminalUI, render_request
from tool_approval.ui.terminal.layout import NARROWEST
from tool_approval.ui.terminal.tty import NoTerminal, Terminal

from .events import TurnView
from .screen import Screen

_ARRIVES_WITHIN = 1000
"""Passes of the event loop. Chosen: each nested run takes five; a run that is not cancelled is not held up."""

WIDEST = 100
"""Chosen: columns of a question in a file or a pipe."""


class PreparedAnswers:
    """An approval UI that shows each question as the terminal does, and gives the next answer.

    `y` approves, `s` approves for the session where that is offered; everything else denies, as does the end of the
    answers.
    """

    one_at_a_time = True
    """So that the order of the answers is that of the questions."""

    def __init__(self, answers: Iterator[str], screen: Screen) -> None:
        """Show each question on `screen`, and take an answer for it."""
        self._answers = answers
        self._screen = screen

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Show the question, and answer it."""
        # In a narrower box nothing is drawn, and an answer would approve what was not shown.
        width = max(NARROWEST, min(self._screen.columns + 1, WIDEST))
        question = render_request(request, width=width, height=24, color=False, ascii_only=self._screen.ascii_only)
        self._screen.write_now(f'\n{question}')
        answer = next(self._answers, None)
        note = 'No answer was left.' if answer is None else None
        try:
            remember, (kind, _) = 'session' if answer == 's' else 'none', session_choice(request)
            decision = decision_on(
                request, approved=answer in ('y', 's'), note=note, remember=remember, remember_option=kind
            )
        except NotOffered:
            decision = decision_on(request, approved=False)
        given = answer if decision.approved else 'n'
        self._screen.write_now('(no answer is left: denied)\n' if answer is None else f'{given}\n')
        return decision.model_copy(update={'decided_by': 'prepared answers'})

    def choose_group(self, requests: Sequence[ApprovalRequest], *, mode: ApprovalMode) -> list[ApprovalDecision]:
        """Show the questions of a group, and answer one after the other."""
        return [self.choose(request, mode=mode) for request in requests]


AskedUI: TypeAlias = TerminalUI | PreparedAnswers | FirstOf
MakeAsked: TypeAlias = Callable[[ApprovalMemory, Mapping[str, Presenter]], AskedUI]
"""Makes whom to ask, given what is remembered and who makes what is shown of calls."""


def ask_at_terminal(memory: ApprovalMemory, presenters: Mapping[str, Presenter]) -> TerminalUI:
    """Ask the person at the terminal."""
    return TerminalUI(memory=memory, presenters=presenters)


def ask_at_terminal_or_in(inbox: Inbox) -> MakeAsked:
    """Ask the person at the terminal, where there is one, and whoever answers what waits in `inbox`."""

    def make_ui(memory: ApprovalMemory, presenters: Mapping[str, Presenter]) -> FirstOf:
        try:
            Terminal().close()
        except NoTerminal:
            return FirstOf(InboxUI(inbox))
        return FirstOf(ask_at_terminal(memory, presenters), InboxUI(inbox))

    return make_ui


class ConversationUI:
    """Asks with another UI: a person who stops the run there stops the turn, and the program goes on."""

    one_at_a_time = True
    """There is one keyboard."""

    def __init__(self, inner: AskedUI, view: TurnView) -> None:
        """Ask with `inner`, while `view` shows nothing else."""
        self._inner = inner
        self._view = view
        self.groups_responses = isinstance(inner, TerminalUI | FirstOf)
        """Whether all requests of a response are one question: a person wants that; prepared answers are one each."""

    async def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Ask about one request."""
        return await self._asked([request], lambda: self._inner.choose(request, mode=mode))

    async def choose_group(self, requests: Sequence[ApprovalRequest], *, mode: ApprovalMode) -> list[ApprovalDecision]:
        """Ask about a group."""
        return await self._asked(requests, lambda: self._inner.choose_group(requests, mode=mode))

    async def _asked(self, requests: Sequence[ApprovalRequest], ask: Callable[[], Any]) -> Any:
        for request in requests:
            self._view.ask(request)
        if self.groups_responses:
            self._view.show_order()
        try:
            with self._view.screen.held():
                answer = ask()
                return await answer if inspect.isawaitable(answer) else answer
        except KeyboardInterrupt:
            self._view.stop()
            # Until the stop has come down from the turn to the run that asks, if it does. Raised before, it would be
            # followed by the cancellation, which cut short what the tools in between do to tidy up.
            with contextlib.suppress(asyncio.CancelledError):
                for _ in range(_ARRIVES_WITHIN):
                    await asyncio.sleep(0)
            raise RunCancelled from None
        finally:
            self._view.go_on()
