"""Ask for approval in a conversation. Ctrl-C at a question stops the turn."""

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
from tool_approval.core.protocols import Presenter, UIAbilities
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
"""Maximum number of event loop passes for which the UI waits for a cancelled run. A nested run needs five passes."""

WIDEST = 100
"""Maximum width, in columns, of a question that is written to a file or pipe."""


class PreparedAnswers:
    """An approval UI that shows questions as the terminal does, and takes answers from a list.

    `y` approves, and `s` approves for the session if the request offers that. A missing answer or any other letter
    denies the call.
    """

    one_at_a_time = True
    """Whether to ask one question at a time. Always true, because prepared answers are in the order of the questions.
    """

    def __init__(self, answers: Iterator[str], screen: Screen) -> None:
        """Show questions on `screen`, and take the answers from `answers`."""
        self._answers = answers
        self._screen = screen

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Show a question, and return the next answer."""
        # A narrower box shows nothing, and the answer would approve a call that was not shown.
        width = max(NARROWEST, min(self._screen.columns + 1, WIDEST))
        question = render_request(request, width=width, height=24, color=False, ascii_only=self._screen.ascii_only)
        self._screen.write_now(f'\n{question}')
        answer = next(self._answers, None)
        note = 'No prepared answer is left for this question.' if answer is None else None
        try:
            remember, (kind, _) = 'session' if answer == 's' else 'none', session_choice(request)
            decision = decision_on(
                request, approved=answer in ('y', 's'), note=note, remember=remember, remember_option=kind
            )
        except NotOffered:
            decision = decision_on(request, approved=False)
        given = answer if decision.approved else 'n'
        self._screen.write_now('(no answers left: denied)\n' if answer is None else f'{given}\n')
        return decision.model_copy(update={'decided_by': ('prepared answers',)})

    def choose_group(self, requests: Sequence[ApprovalRequest], *, mode: ApprovalMode) -> list[ApprovalDecision]:
        """Show the questions of a group one after another, and answer each from the list."""
        return [self.choose(request, mode=mode) for request in requests]


AskedUI: TypeAlias = TerminalUI | PreparedAnswers | FirstOf
MakeAsked: TypeAlias = Callable[[ApprovalMemory, Mapping[str, Presenter]], AskedUI]
"""Function that creates the UI from the memory and a mapping of tool names to presenters."""


def ask_at_terminal(memory: ApprovalMemory, presenters: Mapping[str, Presenter]) -> TerminalUI:
    """Return a UI that asks the user at the terminal."""
    return TerminalUI(memory=memory, presenters=presenters)


def ask_at_terminal_or_in(inbox: Inbox) -> MakeAsked:
    """Return a function that makes a UI. The UI asks in `inbox` and, if there is a terminal, also at the terminal."""

    def make_ui(memory: ApprovalMemory, presenters: Mapping[str, Presenter]) -> FirstOf:
        try:
            Terminal().close()
        except NoTerminal:
            return FirstOf(InboxUI(inbox))
        return FirstOf(ask_at_terminal(memory, presenters), InboxUI(inbox))

    return make_ui


class ConversationUI:
    """Asks for approval through another UI. If the user interrupts a question, only the turn stops, not the program."""

    one_at_a_time = True
    """Whether to ask one question at a time. Always true, because all questions use the same keyboard."""

    def __init__(self, inner: AskedUI, view: TurnView) -> None:
        """Ask through `inner`. While a question is open, `view` shows only the question."""
        self._inner = inner
        self._view = view
        self.heeds_approvers = UIAbilities.of(inner).heeds_approvers
        """Whether only the people whom `request.approvers` lists can approve."""
        self.groups_responses = isinstance(inner, TerminalUI | FirstOf)
        """Whether to ask about all requests of a response at once. Prepared answers are always used one by one."""

    async def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Ask about one request."""
        return await self._asked([request], lambda: self._inner.choose(request, mode=mode))

    async def choose_group(self, requests: Sequence[ApprovalRequest], *, mode: ApprovalMode) -> list[ApprovalDecision]:
        """Ask about a group of requests."""
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
            # Wait until the cancellation has reached the run that asks. If `RunCancelled` were raised earlier, the
            # cancellation would come later, and interrupt the cleanup of the tools in between.
            with contextlib.suppress(asyncio.CancelledError):
                for _ in range(_ARRIVES_WITHIN):
                    await asyncio.sleep(0)
            raise RunCancelled from None
        finally:
            self._view.go_on()
