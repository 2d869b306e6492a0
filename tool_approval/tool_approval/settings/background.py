"""Run commands in the background of a conversation, read what they print, and end them."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from tool_approval.core.errors import printable
from tool_approval.core.presentation import BRIEF_ACCESS, EXTRA_ACCESS
from tool_approval.core.request import ApprovalRequest

if TYPE_CHECKING:
    from tool_approval.tools.shell.running import Limits, ShellResult

BACKGROUND: Final = 'background'
"""Argument of a call that runs in the background, and key of the values to which its approval is bound."""
MOST: Final = 4
"""Maximum number of background processes that run at once. Each may use this part of what another command may."""
ONLY_NETWORK: Final = (
    'A background process can be given no access but `network`: it writes only in a /tmp of its own. Call it without '
    '`background`, or without the other access.'
)
NO_HOST: Final = 'A command that runs outside of the sandbox cannot run in the background.'
NOT_HERE: Final = '`background` is not available: no OS sandbox runs here that ends all processes of a command.'
BEFORE_HOST: Final = 'the user was asked about a command that runs outside of the sandbox'
"""Why a background process was ended."""
AT_THE_END: Final = 'the conversation has ended'
BY_THE_MODEL: Final = 'you ended it'

_TOO_MANY: Final = f'{MOST} background processes run already, which is the maximum. End one of them first.'
_AT_ONCE_S: Final = 1.0
"""Seconds to wait for the first output, and for the end of a command that fails at once."""
_PATIENCE_S: Final = 5.0
"""Seconds to wait for the end of a process that was killed. A PID namespace ends in milliseconds."""
_LONGEST_COMMAND: Final = 100


class Run(Protocol):
    """Runs a command to its end."""

    def __call__(self, *, on_output: Callable[[int, bytes], None]) -> Awaitable[ShellResult]:
        """Run it, and call `on_output` with all output as it comes; see `run_command`."""
        ...


class _Process:
    """A command that runs in a thread with an event loop of its own, because no loop runs while the user types."""

    def __init__(self, number: int, command: str, run: Run, max_bytes: int) -> None:
        # Imported here, as in `_hold` and `start`, because a command can be judged without it.
        import asyncio

        from tool_approval.tools.shell.running import BoundedOutput

        self.number = number
        self.why = ''
        self.is_told = False
        """Whether the model knows that the command has ended."""
        self._command = printable(' '.join(command.split()), _LONGEST_COMMAND)
        self._new_output = partial(BoundedOutput, max_bytes)
        self._output = self._new_output()
        self._lock = threading.Lock()
        self._result: ShellResult | None = None
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._task = self._loop.create_task(self._until_its_end(run))
        threading.Thread(target=self._hold, name=f'background-{number}', daemon=True).start()

    async def _until_its_end(self, run: Run) -> None:
        self._result = await run(on_output=self._add)

    def _hold(self) -> None:
        import asyncio

        try:
            with suppress(asyncio.CancelledError):
                self._loop.run_until_complete(self._task)
        finally:
            self._ended.set()
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    def _add(self, stream: int, data: bytes) -> None:
        with self._lock:
            self._output.add(data)

    def wait(self, timeout_s: float) -> None:
        """Wait for the end of the command."""
        self._ended.wait(timeout_s)

    @property
    def has_ended(self) -> bool:
        """Whether the command has ended, with all its processes."""
        return self._ended.is_set()

    def end(self, why: str) -> None:
        """End the command, and wait until it has ended."""
        if not self.has_ended:
            self.why = why
            # The loop may close meanwhile.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._task.cancel)
            self.wait(_PATIENCE_S)

    def take(self) -> str:
        """Return what the command has printed since the last time."""
        with self._lock:
            taken, self._output = self._output, self._new_output()
        return taken.text().rstrip('\n')

    @property
    def state(self) -> str:
        """A sentence about the command."""
        name = f'Background process {self.number} (`{self._command}`)'
        if not self.has_ended:
            return f'{name} has been running for {time.monotonic() - self._began:.0f} s.'
        result = self._result
        if self.why or result is None:
            return f'{name} was ended{self.why and f", because {self.why}"}.'
        if result.problem is not None:
            return f'{name} was not run: {result.problem}'
        if result.is_timed_out:
            return f'{name} was ended after {result.timeout_s:g} s, which is the longest that a command may run.'
        return ' '.join([f'{name} has ended with exit status {result.exit_status}.', *result.notes])


class BackgroundProcesses:
    """The background processes of a conversation. Threads may share the object. They end with it."""

    def __init__(self, max_bytes: int) -> None:
        """Begin without a process. At most `max_bytes` of the output of each are kept until they are read."""
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._count = 0
        self._known: dict[int, _Process] = {}
        weakref.finalize(self, _end, self._known)

    async def start(self, command: str, run: Run) -> ShellResult:
        """Start a command, and return what it prints at once.

        Raises:
            asyncio.CancelledError: This task was cancelled, and the command has been ended.
        """
        import asyncio

        with self._lock:
            if sum(not each.has_ended for each in self._known.values()) >= MOST:
                from tool_approval.tools.shell import ShellResult

                return ShellResult(exit_status=None, stdout='', stderr='', problem=_TOO_MANY)
            # Output that is never read is not kept.
            for each in [each for each in self._known.values() if each.is_told][:-MOST]:
                del self._known[each.number]
            self._count += 1
            process = self._known[self._count] = _Process(self._count, command, run, self._max_bytes)
        try:
            await asyncio.to_thread(process.wait, _AT_ONCE_S)
        except asyncio.CancelledError:
            process.end(AT_THE_END)
            raise
        return self._told(process)

    def read(self, number: int | None, *, ends: bool = False) -> str:
        """Return what a process has printed since the last time, and whether it runs; without a number, a list.

        Args:
            number: Number of the process.
            ends: Whether to end the process first.
        """
        if number is None:
            with self._lock:
                return '\n'.join(each.state for each in self._known.values()) or 'No background process runs.'
        process = self._known.get(number)
        if process is None:
            return f'There is no background process {number}.'
        if ends:
            process.end(BY_THE_MODEL)
        return self._told(process).for_model()

    def _told(self, process: _Process) -> ShellResult:
        has_ended = process.has_ended
        if has_ended:
            process.is_told = True
            self._known.pop(process.number, None)
        from tool_approval.tools.shell import ShellResult

        return ShellResult(exit_status=0, stdout=process.take(), stderr='', notes=(process.state,))

    def news(self) -> tuple[str, ...]:
        """Return a line about each process that has ended and that no result has named yet."""
        with self._lock:
            ended = [each for each in self._known.values() if each.has_ended and not each.is_told]
            for each in ended:
                each.is_told = True
        return tuple(each.state for each in ended)

    def end_all(self, why: str) -> tuple[str, ...]:
        """End all processes, and return a line about each that ran."""
        with self._lock:
            running = [each for each in self._known.values() if not each.has_ended]
        for each in running:
            each.end(why)
        return tuple(each.state for each in running)


def _end(known: Mapping[int, _Process]) -> None:
    for each in [*known.values()]:
        each.end(AT_THE_END)


def in_background(request: ApprovalRequest, *, timeout_s: float) -> ApprovalRequest:
    """Return the question about a command that is to run in the background. Only this exact call can be remembered."""
    line = f'runs in the background, for up to {timeout_s:g} s; writes only in a /tmp of its own'
    bound_to = {**request.bound_to, EXTRA_ACCESS: {**request.bound_to.get(EXTRA_ACCESS, {}), BACKGROUND: True}}
    presentation = request.presentation
    assert presentation is not None, 'the shell tool shows each command'
    lines: dict[str, Any] = {
        name: [line, *presentation.metadata.get(name, ())] for name in (EXTRA_ACCESS, BRIEF_ACCESS)
    }
    return request.model_copy(
        update={
            'payload': {**request.payload, **bound_to},
            'bound_to': bound_to,
            'presentation': presentation.model_copy(update={'metadata': {**presentation.metadata, **lines}}),
            'remember_options': (),
        }
    )


def less(limits: Limits | None) -> Limits | None:
    """Return the limits of a background process, so that all of them together use no more than a command."""
    if limits is None:
        return None
    return replace(limits, processes=limits.processes // MOST, memory_bytes=limits.memory_bytes // MOST, folders=())
