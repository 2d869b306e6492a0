"""Ask the user at the controlling terminal."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import os
import pwd
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Self

from tool_approval.core.decision import ApprovalDecision, ApprovalMode, is_reserved
from tool_approval.core.memory import ApprovalMemory, check_memory
from tool_approval.core.protocols import Presenter, check_presenters
from tool_approval.core.request import ApprovalRequest
from tool_approval.core.threads import in_thread
from tool_approval.display import escape_line

from .changing import Presenting
from .dialogue import Dialogue
from .keyboard import QUIET_S, Keyboard
from .prompt import Prompt
from .tty import TTY, NoTerminal, Terminal, TerminalClosed, is_dumb, restored_at_signals

LEAVING_S = 10.0
"""Maximum seconds to wait for a withdrawn question to end. Ending a question takes milliseconds, unless an
editor must be ended."""


class TerminalUI:
    """Asks at the controlling terminal. Use it as `ApprovalController(ui=TerminalUI())`.

    The answer is read from the terminal itself, even if standard input is a file or a pipe. If there is no terminal or
    the terminal is closed, all calls are denied, and a line on standard error says so. An answer is a single key that
    is pressed after the question was drawn.

    `q` and Ctrl-C stop the run: `choose` raises `KeyboardInterrupt`.
    """

    one_at_a_time = True
    """Only one question may be open at a time, because there is one keyboard."""

    def __init__(
        self,
        *,
        memory: ApprovalMemory | None = None,
        presenters: Mapping[str, Presenter] | None = None,
        person: str | None = None,
        device: str = TTY,
        environment: Mapping[str, str] | None = None,
        quiet_s: float = QUIET_S,
        groups_responses: bool = False,
    ) -> None:
        """Configure the UI. The terminal is opened for each question.

        Args:
            memory: The controller's memory, so that the approver can list and revoke remembered approvals.
            presenters: Mapping of tool names to presenters, which show a call after the approver edited its arguments.
                Without a presenter, the plain arguments are shown.
            person: Name of the approver for the log; `None` for the user's login name. The names of rules, such as
                `policy`, are refused.
            device: Path of the terminal device.
            environment: Environment variables (`VISUAL`, `EDITOR`, `TERM`, `NO_COLOR`); `None` for the process's
                environment.
            quiet_s: A new question accepts keys after this many seconds without typing.
            groups_responses: Whether to ask about all calls of a response together, even if their groups differ.

        Raises:
            TypeError: `memory` is not a memory, or `presenters` is not a mapping to functions.
            ValueError: `person` is the name of a rule.
        """
        if person is not None and is_reserved(person):
            raise ValueError(f'{person!r} cannot be the name of a person: it is the name of a rule; use another name')
        check_memory(memory)
        check_presenters(presenters)
        self.groups_responses = groups_responses
        self._memory = memory
        self._presenters = dict(presenters or {})
        self._person = _user() if person is None else person
        self._device = device
        self._environment = os.environ if environment is None else environment
        self._quiet_s = quiet_s

    def adopted(self, memory: ApprovalMemory, presenters: Mapping[str, Presenter]) -> Self:
        """Return this UI with the memory and the presenters of `Approvals`, unless others were given."""
        own = copy.copy(self)
        own._memory = memory if self._memory is None else self._memory
        own._presenters = self._presenters or dict(presenters)
        return own

    def asks(self, request: ApprovalRequest) -> list[str]:
        """Return the name of the person at the terminal."""
        return [self._person]

    async def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Ask about one request.

        Raises:
            KeyboardInterrupt: The approver stops the run.
        """
        [decision] = await self._ask([request])
        return decision

    async def choose_group(self, requests: Sequence[ApprovalRequest], *, mode: ApprovalMode) -> list[ApprovalDecision]:
        """Show all requests of a group. The approver can answer the requests together or one by one.

        Returns:
            A decision for each request, in order.

        Raises:
            KeyboardInterrupt: The approver stops the run.
        """
        return await self._ask(requests)

    async def _ask(self, requests: Sequence[ApprovalRequest]) -> list[ApprovalDecision]:
        if all(self._has_no_vote(each) for each in requests):
            note = f'{self._person} has no further vote on this call, so the call was denied.'
            return [ApprovalDecision(approved=False, note=note, decided_by=('ui',))] * len(requests)
        # Earlier output of the run must appear above the question.
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError, OSError, ValueError):
                stream.flush()
        try:
            terminal = Terminal(self._device, is_dumb=is_dumb(self._environment))
        except NoTerminal as error:
            return _denied(requests, f'The approver could not be asked, so the call was denied: {error}.')
        has_ended = threading.Event()
        answers: list[list[ApprovalDecision] | None] = []
        present = Presenting(self._presenters, terminal)
        try:
            with restored_at_signals(terminal):
                # In a thread, because the answer may take long and the event loop must go on.
                await in_thread(
                    lambda: answers.append(self._dialogue(terminal, present, requests)), on_end=has_ended.set
                )
        except asyncio.CancelledError:
            terminal.wake()
            has_ended.wait(LEAVING_S)
            # The approver may have answered at this moment.
            if not answers:
                raise
        finally:
            terminal.close()
        [decisions] = answers
        if decisions is None:
            raise KeyboardInterrupt
        return decisions

    def _has_no_vote(self, request: ApprovalRequest) -> bool:
        votes = request.votes
        return votes is not None and not votes.new((self._person,), requester=request.facts.requester)

    def _dialogue(
        self, terminal: Terminal, present: Presenting, requests: Sequence[ApprovalRequest]
    ) -> list[ApprovalDecision] | None:
        """Ask, and return the decisions; `None` if the approver stops the run."""
        try:
            with terminal.raw():
                prompt = Prompt(
                    Dialogue(terminal, Keyboard(terminal, quiet_s=self._quiet_s)),
                    person=self._person,
                    memory=self._memory,
                    present=present,
                    environment=self._environment,
                    color=not (terminal.is_dumb or self._environment.get('NO_COLOR')),
                )
                return prompt.ask_all(requests)
        except TerminalClosed as error:
            return _denied(requests, f'The approver could no longer be asked, so the call was denied: {error}.')


def _denied(requests: Sequence[ApprovalRequest], note: str) -> list[ApprovalDecision]:
    for request in requests:
        with contextlib.suppress(AttributeError, OSError, ValueError):
            print(
                escape_line(f'Denied {request.tool_name}: {request.attributed_description}. {note}'),
                file=sys.stderr,
                flush=True,
            )
    return [ApprovalDecision(approved=False, note=note, decided_by=('ui',))] * len(requests)


def _user() -> str:
    # Not from the environment, which the caller can set.
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f'user {os.getuid()}'
    return f'user {name}' if is_reserved(name) else name
