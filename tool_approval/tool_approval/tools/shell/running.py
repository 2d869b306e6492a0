"""Run a command in a process group of its own, and leave nothing of it behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import subprocess
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from .processes import MARKER, descendants, kill_group, kill_strays


class BoundedOutput:
    """The beginning and the end of a stream of bytes."""

    def __init__(self, max_bytes: int) -> None:
        """Keep at most `max_bytes`: half from the beginning, half from the end."""
        self._head_room = max_bytes // 2
        self._tail_room = max_bytes - max_bytes // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take more of the stream."""
        self.total += len(data)
        room = self._head_room - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if not data:
            return
        self._tail.append(data[-self._tail_room :])
        self._tail_bytes += len(self._tail[-1])
        while self._tail_bytes - len(self._tail[0]) >= self._tail_room:
            self._tail_bytes -= len(self._tail.popleft())

    @property
    def is_cut(self) -> bool:
        """Whether something in the middle is missing."""
        return self.total > self._head_room + self._tail_room

    def text(self) -> str:
        """What was kept, with a line in the middle that says how much was left out.

        Bytes that are no UTF-8 become U+FFFD; output with NUL bytes in it is told by size alone.
        """
        tail = b''.join(self._tail)[-self._tail_room :] if self._tail_room else b''
        if b'\0' in self._head or b'\0' in tail:
            return f'[binary output, {self.total} bytes]'
        if not self.is_cut:
            return (bytes(self._head) + tail).decode(errors='replace')
        left_out = self.total - len(self._head) - len(tail)
        head, end = bytes(self._head).decode(errors='replace'), tail.decode(errors='replace')
        return f'{head}\n... [{left_out} bytes left out] ...\n{end}'


_GRACE_S: Final = 1.0
"""Chosen: how long a command may take to end after SIGTERM."""
_CHUNK: Final = 65_536
"""Bytes read at a time: what a pipe holds."""


@dataclass(frozen=True, kw_only=True)
class ShellResult:
    """What came of a command."""

    exit_status: int | None
    """What it returned, negative for the signal that ended it; `None` if it could not be started."""
    stdout: str
    """Its output, the middle left out where there was too much."""
    stderr: str
    """Its error output, likewise."""
    is_timed_out: bool = False
    """Whether it was ended because it took too long."""
    timeout_s: float = 0
    """How long it was allowed to take, in seconds."""
    problem: str | None = None
    """Why it could not be started."""
    strays: int = 0
    """How many processes had left the group and were ended one by one."""
    notes: tuple[str, ...] = ()
    """What the OS sandbox has to say of it, for the model and the person, a sentence each."""

    def for_model(self) -> str:
        """All of it as one text."""
        if self.problem is not None:
            return f'The command was not run: {self.problem}'
        lines = [self.stdout.rstrip('\n')] if self.stdout else []
        lines += [f'[stderr]\n{self.stderr.rstrip()}'] if self.stderr else []
        if self.is_timed_out:
            lines.append(f'[ended: it took longer than {self.timeout_s:g} s]')
        elif self.exit_status:
            lines.append(f'[exit status {self.exit_status}]')
        lines += [f'[{note}]' for note in self.notes]
        return '\n'.join(lines) or '[no output]'


async def run_command(
    argv: Sequence[str], *, cwd: str, env: Mapping[str, str], timeout_s: float, max_bytes: int
) -> ShellResult:
    """Run a program and wait for its end, or its timeout.

    It has no standard input, no descriptor of this process, and a session of its own. When this returns or is
    cancelled, its group has been killed, and what left the group as far as it can be found.

    Args:
        argv: The program and its arguments.
        cwd: Where it runs.
        env: All of its environment.
        timeout_s: How long it may take, in seconds.
        max_bytes: How much of each output is kept.

    Raises:
        asyncio.CancelledError: The wait was cancelled, and the command ended.
    """
    marker = secrets.token_hex(16)
    try:
        process = _start(argv, cwd, {**env, MARKER: marker})
    except (OSError, ValueError) as error:
        problem = 'the working directory is gone or cannot be entered' if not os.path.isdir(cwd) else _why(error)
        return ShellResult(exit_status=None, stdout='', stderr='', problem=problem)
    running = _Running(process, marker, max_bytes)
    is_timed_out = False
    try:
        is_timed_out = not await running.ended(timeout_s)
        if is_timed_out:
            await running.stop()
    except asyncio.CancelledError:
        await running.stop()
        raise
    finally:
        running.close()
    return ShellResult(
        exit_status=process.returncode,
        stdout=running.stdout.text(),
        stderr=running.stderr.text(),
        is_timed_out=is_timed_out,
        timeout_s=timeout_s,
        strays=running.strays,
    )


def _start(argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    # Not asyncio's process: nobody may reap it before its group is dead.
    return subprocess.Popen(
        list(argv),
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        close_fds=True,
        start_new_session=True,
    )


def _why(error: Exception) -> str:
    return f'the shell could not be started ({type(error).__name__})'


class _Running:
    """A process, the pipes it writes to, and its end."""

    def __init__(self, process: subprocess.Popen[bytes], marker: str, max_bytes: int) -> None:
        self._process = process
        self._marker = marker
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.create_future()
        self.stdout = BoundedOutput(max_bytes)
        self.stderr = BoundedOutput(max_bytes)
        self.strays = 0
        self._seen: dict[int, str] = {}
        assert process.stdout is not None and process.stderr is not None, 'both are pipes'
        self._pipes = {process.stdout.fileno(): self.stdout, process.stderr.fileno(): self.stderr}
        for pipe in self._pipes:
            os.set_blocking(pipe, False)
            self._loop.add_reader(pipe, self._read, pipe)
        self._watch = os.pidfd_open(process.pid) if hasattr(os, 'pidfd_open') else None
        if self._watch is not None:
            self._loop.add_reader(self._watch, self._ended)
        else:
            self._waiter = self._loop.run_in_executor(None, process.wait)
            self._waiter.add_done_callback(lambda _: self._ended())

    def _ended(self) -> None:
        if self._watch is not None:
            self._loop.remove_reader(self._watch)
        self._end.set_result(None)

    def _read(self, pipe: int) -> bool:
        """Take what there is; whether there may be more."""
        try:
            data = os.read(pipe, _CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            data = b''
        if not data:
            self._loop.remove_reader(pipe)
            return False
        self._pipes[pipe].add(data)
        return True

    async def ended(self, timeout_s: float) -> bool:
        """Wait until the process has ended; whether it has, in time. It is not reaped."""
        done, _ = await asyncio.wait([self._end], timeout=timeout_s)
        return bool(done)

    async def stop(self) -> None:
        """Ask the group to end, and give it a moment. `close` ends whatever is left."""
        # Looked at while their parents live: afterwards nothing connects them with this command.
        self._seen = descendants(self._process.pid)
        kill_group(self._process.pid, signal.SIGTERM)
        await self.ended(_GRACE_S)

    def close(self) -> None:
        """Kill what is left, take what it wrote, and let go of everything. It never waits long."""
        # Not reaped yet, so the group's number cannot be somebody else's.
        kill_group(self._process.pid, signal.SIGKILL)
        self.strays = kill_strays(self._marker, below=self._process.pid, seen=self._seen)
        self._process.wait()
        if self._watch is not None:
            self._loop.remove_reader(self._watch)
            os.close(self._watch)
        for pipe in self._pipes:
            # At most as much as a pipe holds: nobody is left to write more, or nobody is listened to.
            for _ in range(32):
                if not self._read(pipe):
                    break
            self._loop.remove_reader(pipe)
        for stream in (self._process.stdout, self._process.stderr):
            with contextlib.suppress(OSError):
                assert stream is not None, 'both are pipes'
                stream.close()
