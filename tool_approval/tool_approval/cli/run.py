"""Implement `tool-approval run`: run an agent in the current directory, with the rules of approvals.yaml."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING

from tool_approval.assistant.errors import one_line_errors
from tool_approval.assistant.prompts import Prompts
from tool_approval.ui.terminal.tty import TTY

from .output import Output, UsageError

if TYPE_CHECKING:
    from .session import Session

MODEL_VARIABLE = 'TOOL_APPROVAL_MODEL'
"""Environment variable with the default of the option `--model`."""

WHAT_TO_DO = 'say what to do, and press Enter; /help shows more, Ctrl-D leaves'


def run(options: argparse.Namespace, output: Output) -> int:
    """Run the conversation with the agent.

    Raises:
        UsageError: No prompt or no model is given.
        ApprovalError: The agent cannot be started; the message gives the reason.
    """
    options.model = options.model or os.environ.get(MODEL_VARIABLE)
    if options.model is None and options.agent is None:
        raise UsageError(f'no model is named; use --model NAME, or set {MODEL_VARIABLE}')
    names = {name for name in (options.save, options.resume) if name is not None}
    if len(names) > 1 or (names and options.resume_last):
        raise UsageError('--save, --resume and --continue name different conversations')
    options.is_talk = options.prompt is None and sys.stdin.isatty()
    with one_line_errors(debug=options.debug), ExitStack() as stack:
        if options.is_talk:
            return _talk(options, output, stack)
        session = _open(options, stack)
        session.begin(output)
        return session.hold([_whole_prompt(options.prompt)])


def _open(options: argparse.Namespace, stack: ExitStack) -> Session:
    # Imports Pydantic AI, which takes longer than a user wants to wait for the prompt.
    return import_module('.session', __package__).Session(options, stack)


def _talk(options: argparse.Namespace, output: Output, stack: ExitStack) -> int:
    prompts = Prompts(_device())
    if options.agent is None:
        output.note(WHAT_TO_DO)
        first, session = _ask_while_opening(prompts, partial(_open, options, stack), output)
    else:
        # The user's own module is imported first, and in the main thread, as its author may expect.
        session = _open(options, stack)
        session.note(output)
        output.note(WHAT_TO_DO)
        first = prompts.ask()
    if session is None or first in (None, '/quit'):
        return 0
    session.begin(output)
    prompts.history[:0] = session.prompts
    status = session.hold(chain([first], prompts))
    session.leave(output)
    return status


def _ask_while_opening(
    prompts: Prompts, open_session: Callable[[], Session], output: Output
) -> tuple[str | None, Session | None]:
    """Open a session while the user types, and return the first message and the session; `(None, None)` if the user
    leaves.
    """
    opening: list[Future[Session]] = []
    noted: list[Session] = []

    def above() -> Callable[[], object] | None:
        # Start after the prompt is drawn: otherwise both would compete for the processor.
        if not opening:
            opening.append(executor.submit(open_session))
        if noted or not opening[0].done():
            return None
        noted.append(opening[0].result())  # raises if opening failed
        return partial(noted[0].note, output)

    with ThreadPoolExecutor(1) as executor:
        first = prompts.ask(above)
        if first in (None, '/quit'):
            return None, None
        session = opening[0].result()
    if not noted:
        session.note(output)
    return first, session


def _device() -> str:
    try:
        return os.ttyname(sys.stdin.fileno())
    except OSError:  # in a container, the name may be missing
        return TTY


def _whole_prompt(given: str | None) -> str:
    prompt = given if given is not None else sys.stdin.read()
    if not prompt.strip():
        raise UsageError('there is no prompt; give it as an argument, or on standard input')
    return prompt
