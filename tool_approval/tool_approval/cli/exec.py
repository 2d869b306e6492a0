"""Implement `tool-approval exec`: run one command with the rules of `run`, confined, and pass on what it prints."""

from __future__ import annotations

import argparse
import asyncio
import codecs
import re
import shlex
import signal
import sys
from collections.abc import Coroutine
from contextlib import ExitStack
from typing import Any, Final, TextIO

from tool_approval.core.errors import ApprovalError
from tool_approval.core.execute import execute_tool
from tool_approval.core.request import ApprovalContext, ApprovalRequest
from tool_approval.settings.confinement import ConfinedShell
from tool_approval.settings.workspace import RUN_SHELL
from tool_approval.tools.shell import ShellResult

from .guarded import open_chosen
from .output import NOBODY_READS, Output, UsageError, shown

TIMED_OUT: Final = 124
"""Exit status if the command was ended at its time limit, as of the program `timeout`."""
NOT_RUN: Final = 125
"""Exit status if the command was not run: it was denied or blocked, or it could not be confined."""
BY_SIGNAL: Final = 128
"""Added to the number of the signal that ended a command, as shells do."""
_FOR_MODELS: Final = re.compile(r'Call again with access=\[([^\]]*)\]; the user is asked\.')


def run(options: argparse.Namespace, output: Output) -> int:
    """Run the command.

    Returns: The exit status of the command, or one of the statuses above.
    """
    try:
        return _run(options, output)
    except (ApprovalError, UsageError) as error:
        output.note(str(error))
        return NOT_RUN


def _run(options: argparse.Namespace, output: Output) -> int:
    # One word is a line for bash; several words are one command.
    command = options.words[0] if len(options.words) == 1 else shlex.join(options.words)
    access = [each for each in (options.access or '').split(',') if each]
    with ExitStack() as stack:
        guarded = open_chosen(options, stack, output)
        shell = guarded.workspace.shell
        args: dict[str, Any] = {'command': command, **({'access': access} if access else {})}
        call = execute_tool(
            _Command(shell), RUN_SHELL, args, guarded.controller, {'caller': 'exec'}, default='required'
        )
        done = asyncio.run(_passed_on(call, shell))
    if isinstance(done, int):
        return done
    for note in done.notes:
        output.note(_FOR_MODELS.sub(lambda found: f'Run it again with --access {_names(found[1])}.', note))
    if done.problem is not None:
        output.note(f'the command was not run: {done.problem}')
        return NOT_RUN
    if done.is_timed_out:
        output.note(f'the command was ended after {done.timeout_s:g} seconds')
        return TIMED_OUT
    status = done.exit_status or 0
    return status if status >= 0 else BY_SIGNAL - status


def _names(listed: str) -> str:
    return listed.replace("'", '').replace(' ', '')


class _Command:
    """The shell tool, with the result in place of a text for a model."""

    def __init__(self, shell: ConfinedShell) -> None:
        self._shell = shell

    def check_approval(self, ctx: ApprovalContext) -> ApprovalRequest | None:
        return self._shell.check_approval(ctx)

    async def __call__(self, command: str, access: list[str] | None = None) -> ShellResult:
        return await self._shell.run(command, access)


async def _passed_on(call: Coroutine[Any, Any, ShellResult], shell: ConfinedShell) -> ShellResult | int:
    """Run the command, and return its result, or the exit status if this process had to end.

    Raises:
        ApprovalError: The command was denied or blocked.
    """
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(call)
    ended: list[int] = []

    def end(status: int) -> None:
        ended.append(status)
        task.cancel()

    # The command must not outlive this process, which a client ends at its own time limit.
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end, BY_SIGNAL + number)
    streams = {1: _Stream(sys.stdout), 2: _Stream(sys.stderr)}

    def passing(number: int, data: bytes) -> None:
        if not ended and not streams[number].write(data):
            end(NOBODY_READS)

    shell.on_output = passing
    try:
        return await task
    except asyncio.CancelledError:
        if not ended:
            raise
        return ended[0]


class _Stream:
    """Standard output or standard error of this process."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder('utf-8')('replace')

    def write(self, data: bytes) -> bool:
        """Write the output of a command at once, and return whether anybody may read it.

        To a terminal, control characters are written as code points: an unapproved command could otherwise
        draw a question, or change what the terminal does.
        """
        if self._stream is None:
            return True
        try:
            if self._stream.isatty():
                self._stream.write(self._escaped(self._decoder.decode(data)))
                self._stream.flush()
            else:
                self._stream.buffer.write(data)
                self._stream.buffer.flush()
        except OSError:
            return False
        return True

    def _escaped(self, text: str) -> str:
        return re.sub(r'[^\n\t]+', lambda found: shown(found[0], self._stream), text)
