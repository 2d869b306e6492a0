"""A person at the terminal decides."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import sys
import threading
from collections.abc import Mapping, Sequence

from tool_approval.core.decision import ApprovalDecision, ApprovalMode
from tool_approval.core.memory import ApprovalMemory
from tool_approval.core.protocols import Presenter
from tool_approval.core.request import ApprovalRequest
from tool_approval.core.threads import in_thread
from tool_approval.display import escape_line

from .changing import Presenting
from .dialogue import Dialogue
from .keyboard import QUIET_S, Keyboard
from .prompt import Prompt
from .tty import TTY, NoTerminal, Terminal, TerminalClosed, is_dumb, restored_at_signals

LEAVING_S = 10.0
"""Chosen: a question that is withdrawn is gone within milliseconds, or as soon as an editor was ended."""


class TerminalUI:
    """Asks at the controlling terminal, for `ApprovalController(ui=TerminalUI())`.

    The answer is read from the terminal itself, also where standard input is a file or a pipe. Where there is no
    terminal, or it goes away, everything is denied, and a line on standard error says so. Only a key that is pressed by
    itself, after the question was drawn, answers it. The keys are described in the documentation's page on the
    terminal.

    `q` and Ctrl-C stop the run: `choose` raises `KeyboardInterrupt`, which ends it and passes through everything.
    """

    one_at_a_time = True
    """There is one keyboard."""

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
        """Touch nothing yet.

        Args:
            memory: The controller's: what is remembered can be listed and revoked then.
            presenters: The controller's: what is shown of a call whose arguments the person has changed. Without one,
                the plain arguments are.
            person: Who sits there, for the log; the user's name on this machine if `None`.
            device: The terminal.
            environment: Names the editor (`VISUAL`, `EDITOR`), the terminal (`TERM`) and whether colours are unwanted
                (`NO_COLOR`); the process's if `None`.
            quiet_s: How long nothing may be typed, in seconds, after a question was drawn and before a key answers it.
            groups_responses: Whether all calls of one response are asked about together, whatever group they name.
        """
        self.groups_responses = groups_responses
        self._memory = memory
        self._presenters = dict(presenters or {})
        self._person = _user() if person is None else person
        self._device = device
        self._environment = os.environ if environment is None else environment
        self._quiet_s = quiet_s

    async def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Ask about one request.

        Raises:
            KeyboardInterrupt: The person stops the run.
        """
        [decision] = await self._ask([request])
        return decision

    async def choose_group(self, requests: Sequence[ApprovalRequest], *, mode: ApprovalMode) -> list[ApprovalDecision]:
        """Show all requests of a group, and ask about them together or, if the person wants it, one by one.

        Returns:
            A decision for each, in order.

        Raises:
            KeyboardInterrupt: The person stops the run.
        """
        return await self._ask(requests)

    async def _ask(self, requests: Sequence[ApprovalRequest]) -> list[ApprovalDecision]:
        # What the run has said so far stands above the question.
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError, OSError, ValueError):
                stream.flush()
        try:
            terminal = Terminal(self._device, is_dumb=is_dumb(self._environment))
        except NoTerminal as error:
            return _denied(requests, f'Nobody could be asked, so the call was denied: {error}.')
        has_ended = threading.Event()
        answers: list[list[ApprovalDecision] | None] = []
        present = Presenting(self._presenters, terminal)
        try:
            with restored_at_signals(terminal):
                # In a thread, as a person may stay in an editor, and the event loop may be busy meanwhile.
                await in_thread(
                    lambda: answers.append(self._dialogue(terminal, present, requests)), on_end=has_ended.set
                )
        except asyncio.CancelledError:
            terminal.wake()
            has_ended.wait(LEAVING_S)
            # The person may have answered in this very moment.
            if not answers:
                raise
        finally:
            terminal.close()
        [decisions] = answers
        if decisions is None:
            raise KeyboardInterrupt
        return decisions

    def _dialogue(
        self, terminal: Terminal, present: Presenting, requests: Sequence[ApprovalRequest]
    ) -> list[ApprovalDecision] | None:
        """The decisions, or `None` if the run is to be stopped."""
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
            return _denied(requests, f'Nobody could be asked any more, so the call was denied: {error}.')


def _denied(requests: Sequence[ApprovalRequest], note: str) -> list[ApprovalDecision]:
    for request in requests:
        with contextlib.suppress(AttributeError, OSError, ValueError):
            print(
                escape_line(f'Denied {request.tool_name}: {request.attributed_description}. {note}'),
                file=sys.stderr,
                flush=True,
            )
    return [ApprovalDecision(approved=False, note=note, decided_by='ui')] * len(requests)


def _user() -> str:
    # Not from the environment, which anybody can set.
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f'user {os.getuid()}'
