"""A session at the terminal: one turn after the other, and Ctrl-C stops a turn and nothing else."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable

from tool_approval.core.memory import ApprovalMemory
from tool_approval.display import escape_line

from .conversation import Conversation
from .failing import told_error
from .signals import take_turn

EXIT_FAILED = 1
"""The last turn failed."""
EXIT_STOPPED = 130
"""The person stopped the last turn; what shells give for Ctrl-C."""

_COMMAND = re.compile(r'/[a-z]+(?:\s|$)')

HELP = """\
  /approvals   what is remembered; /forget N forgets one
  /help        this
  /quit        leave, as does Ctrl-D
  Ctrl-C stops what the agent does.
"""


def hold_session(
    conversation: Conversation,
    prompts: Iterable[str],
    *,
    memory: ApprovalMemory,
    write: Callable[[str], object],
    after_turn: Callable[[], object] = lambda: None,
    obeys: bool = True,
    debug: bool = False,
) -> int:
    """Take a turn for each prompt.

    Args:
        conversation: Takes the turns.
        prompts: What the person says; between turns it may wait for the person.
        memory: What is remembered.
        write: Takes what is shown.
        after_turn: Called when a turn has ended, however it did.
        obeys: Whether a word after a `/` at the beginning is for us, and not for the agent.
        debug: Whether the error of a turn is raised.

    Returns:
        The exit status: 0, or how the last turn ended.
    """
    status = 0
    with asyncio.Runner() as runner:
        for prompt in prompts:
            if obeys and _COMMAND.match(prompt):
                if prompt.split() == ['/quit']:
                    break
                _obey(prompt.split(), memory, write)
                continue
            try:
                end = runner.run(take_turn(conversation, prompt))
                status = 0 if end == 'done' else EXIT_STOPPED
                if end == 'stopped':
                    write('Stopped.\n')
            except Exception as error:
                if debug:
                    raise
                status = EXIT_FAILED
                write(f'The run failed: {told_error(error)}\n')
            finally:
                after_turn()
    return status


def _obey(words: list[str], memory: ApprovalMemory, write: Callable[[str], object]) -> None:
    approvals = memory.list_approvals()
    match words:
        case ['/approvals']:
            for number, approval in enumerate(approvals, start=1):
                # The session's come first.
                span = 'always' if number > len(memory) else 'session'
                write(f'  {number}. {span}  {escape_line(approval.tool_name)}: {escape_line(approval.label)}\n')
            if not approvals:
                write('  Nothing is remembered.\n')
        case ['/forget', number] if number.isdecimal() and 1 <= int(number) <= len(approvals):
            memory.revoke(approvals[int(number) - 1].id)
            write(f'  Forgotten: {escape_line(approvals[int(number) - 1].label)}\n')
        case ['/forget', *_]:
            write(f'  /forget takes one of the numbers that /approvals shows, of which there are {len(approvals)}.\n')
        case ['/help', *_]:
            write(HELP)
        case _:
            write(f'  There is no {escape_line(words[0])}. There is:\n{HELP}')
