"""Run a command in a new process group, and end all processes that the command started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from .processes import (
    GO,
    MARKER,
    STATUS,
    descendants,
    end_namespace,
    kill_group,
    kill_strays,
    shared_memory,
    usage,
    waits,
)


class BoundedOutput:
    """Keeps the beginning and the end of a long output, and drops the middle."""

    def __init__(self, max_bytes: int) -> None:
        """Keep at most `max_bytes`, half from the beginning and half from the end."""
        self._head_room = max_bytes // 2
        self._tail_room = max_bytes - max_bytes // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self.total = 0

    def add(self, data: bytes) -> None:
        """Add the next part of the output."""
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
        """Whether the middle was left out."""
        return self.total > self._head_room + self._tail_room

    def text(self) -> str:
        """Return the kept output. If bytes were left out, a line in the middle says how many. Invalid UTF-8
        becomes U+FFFD. For output with NUL bytes, the text contains only the size.
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
"""Seconds to wait for a command to end after SIGTERM."""
_CHUNK: Final = 65_536
"""Bytes to read at a time: the capacity of a pipe."""


@dataclass(frozen=True, kw_only=True)
class ShellResult:
    """Result of a command."""

    exit_status: int | None
    """Exit status, or the negated signal number if a signal ended the command; `None` if the command did not start."""
    stdout: str
    """Standard output; if it is too long, its middle is left out."""
    stderr: str
    """Standard error; if it is too long, its middle is left out."""
    is_timed_out: bool = False
    """Whether the command was ended at the timeout."""
    timeout_s: float = 0
    """The timeout, in seconds."""
    problem: str | None = None
    """Why the command could not be started."""
    strays: int = 0
    """Number of processes that had left the process group and were killed individually."""
    notes: tuple[str, ...] = ()
    """Notes from the OS sandbox for the model and the user."""

    def for_model(self) -> str:
        """Return the result as one text for the model."""
        if self.problem is not None:
            return f'The command was not run: {self.problem}'
        lines = [self.stdout.rstrip('\n')] if self.stdout else []
        lines += [f'[stderr]\n{self.stderr.rstrip()}'] if self.stderr else []
        if self.is_timed_out:
            lines.append(f'[timed out after {self.timeout_s:g} s]')
        elif self.exit_status:
            lines.append(f'[exit status {self.exit_status}]')
        lines += [f'[{note}]' for note in self.notes]
        return '\n'.join(lines) or '[no output]'


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much a command may use. A command that uses more is ended."""

    processes: int
    """Maximum number of processes and threads."""
    memory_bytes: int
    """Maximum bytes of memory of all processes together, and of files in memory. Other programs' files count, too."""
    folders: tuple[str, ...] = ()
    """Folders to which the command writes. Those that do not exist are left out."""
    disk_bytes: int = 1 << 62
    """Maximum bytes by which the free space of a file system with one of the folders may become less."""
    disk_files: int = 1 << 62
    """Maximum number by which its free places for files may become less."""


_LOOK_AGAIN_S: Final = 0.2
"""Seconds between two looks at what a command uses. In this time, a command can start some thousand processes."""


_FIRST_LOOK_S: Final = 0.002
"""Seconds until the first look whether a command can begin."""
_NOT_OVER: Final = 'A process of the command could not be ended. It may still write to files.'


async def run_command(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    timeout_s: float,
    max_bytes: int,
    limits: Limits | None = None,
    on_output: Callable[[int, bytes], None] | None = None,
    inherited: Collection[int] = (),
) -> ShellResult:
    """Run a program until it ends or the timeout is reached.

    The program runs in a new session. It has no standard input and inherits no other descriptors. When this
    function returns or is cancelled, the process group and all processes found outside of the group have been killed.

    Args:
        argv: The program and its arguments.
        cwd: Working directory of the program.
        env: The complete environment.
        timeout_s: Timeout in seconds.
        max_bytes: Maximum bytes to keep from each output.
        limits: Limits of the program and everything below it; `None` for no limits. With limits, the program is to be a
            confined one of `BubblewrapBackend`: when this function returns, no process of its namespace is left.
        on_output: Function that gets all output as it comes: 1 for standard output or 2 for standard error, and the
            bytes. It must not raise.
        inherited: Descriptors of this process that the program inherits.

    Raises:
        asyncio.CancelledError: The caller was cancelled. The command was ended.
    """
    marker = secrets.token_hex(16)
    status, told = os.pipe() if limits is not None else (None, None)
    waiting, go = os.pipe() if limits is not None else (None, None)
    try:
        process = _start(argv, cwd, {**env, MARKER: marker}, inherited, {STATUS: told, GO: waiting})
    except (OSError, ValueError) as error:
        _close(status, go)
        problem = 'the working directory is gone or cannot be entered' if not os.path.isdir(cwd) else _why(error)
        return ShellResult(exit_status=None, stdout='', stderr='', problem=problem)
    finally:
        _close(told, waiting)
    running = _Running(process, marker, max_bytes, on_output, status)
    is_timed_out = False
    exceeded: str | None = None
    try:
        if limits is not None and go is not None:
            exceeded = await running.exceeded(limits, timeout_s, go)
        # A command that uses too much is killed at once, because it could use more meanwhile.
        is_timed_out = exceeded is None and not await running.ended(timeout_s if limits is None else 0)
        if is_timed_out:
            await running.stop()
    except asyncio.CancelledError:
        await running.stop()
        raise
    finally:
        running.close()
        _close(go)
    notes = [] if exceeded is None else [exceeded]
    if not running.is_over:
        notes.append(_NOT_OVER)
    return ShellResult(
        exit_status=process.returncode,
        stdout=running.stdout.text(),
        stderr=running.stderr.text(),
        is_timed_out=is_timed_out,
        timeout_s=timeout_s,
        strays=running.strays,
        notes=tuple(notes),
    )


def _start(
    argv: Sequence[str],
    cwd: str,
    env: Mapping[str, str],
    inherited: Collection[int],
    named: Mapping[str, int | None],
) -> subprocess.Popen[bytes]:
    """Start a program, which inherits the descriptors of `named`, and gets their numbers in environment variables."""
    given = {name: descriptor for name, descriptor in named.items() if descriptor is not None}
    # Not an asyncio process: asyncio would reap it before its group is killed, which would free the group's id.
    return subprocess.Popen(
        list(argv),
        cwd=cwd,
        env={**env, **{name: str(descriptor) for name, descriptor in given.items()}},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        close_fds=True,
        pass_fds=(*inherited, *given.values()),
        start_new_session=True,
    )


def _close(*descriptors: int | None) -> None:
    for descriptor in descriptors:
        if descriptor is not None:
            os.close(descriptor)


def _why(error: Exception) -> str:
    return f'the shell could not be started ({type(error).__name__})'


def _free(folders: Sequence[str]) -> dict[int, tuple[int, int]]:
    """Map each file system of some folders to its free bytes and its free places for files."""
    found: dict[int, tuple[int, int]] = {}
    for folder in folders:
        with contextlib.suppress(OSError):
            status = os.statvfs(folder)
            found[os.stat(folder).st_dev] = (status.f_bfree * status.f_frsize, status.f_ffree)
    return found


class _Running:
    """A running process and the pipes it writes to."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        marker: str,
        max_bytes: int,
        on_output: Callable[[int, bytes], None] | None,
        status: int | None = None,
    ) -> None:
        self._process = process
        self._status = status
        self._on_output = on_output
        self._marker = marker
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.create_future()
        self.stdout = BoundedOutput(max_bytes)
        self.stderr = BoundedOutput(max_bytes)
        self.strays = 0
        self.is_over = True
        self._seen: dict[int, str] = {}
        self._told = b''
        if status is not None:
            os.set_blocking(status, False)
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
        """Read what is available. Return whether more output may follow."""
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
        if self._on_output is not None:
            self._on_output(1 if self._pipes[pipe] is self.stdout else 2, data)
        return True

    async def ended(self, timeout_s: float) -> bool:
        """Wait, up to a timeout, for the process to end, without reaping it. Return whether the process ended."""
        done, _ = await asyncio.wait([self._end], timeout=timeout_s)
        return bool(done)

    async def exceeded(self, limits: Limits, timeout_s: float, go: int) -> str | None:
        """Wait, up to a timeout, for the process to end. Return which of its limits a command has exceeded, if any.

        Args:
            limits: The limits of the command.
            timeout_s: Timeout in seconds.
            go: Descriptor to which a line is written, so that the command begins, as soon as it ends with this process.
        """
        until = self._loop.time() + timeout_s
        free, shared = _free(limits.folders), shared_memory()
        pause_s, has_begun = _FIRST_LOOK_S, False
        while not await self.ended(max(0, min(pause_s, until - self._loop.time()))):
            if self._loop.time() >= until:
                break
            if not has_begun:
                first = self._first_process()
                has_begun = first is not None and waits(first, self._process.pid)
                if has_begun:
                    with contextlib.suppress(BrokenPipeError):
                        os.write(go, b'\n')
                pause_s = _LOOK_AGAIN_S if has_begun else min(2 * pause_s, _LOOK_AGAIN_S)
                if pause_s < _LOOK_AGAIN_S:
                    continue
            processes, memory = await asyncio.to_thread(usage, self._process.pid)
            if processes > limits.processes:
                return f'The command was ended, because it had more than {limits.processes} processes and threads.'
            # Attack: memory that processes share, or a file in memory, belongs to no process (`test_running.py`).
            if memory + max(0, shared_memory() - shared) > limits.memory_bytes:
                return f'The command was ended, because it used more than {limits.memory_bytes >> 20} MiB of memory.'
            now = _free(limits.folders)
            if any(free[each][0] - left > limits.disk_bytes for each, (left, _) in now.items() if each in free):
                return f'The command was ended, because the disk has lost more than {limits.disk_bytes >> 20} MiB.'
            if any(free[each][1] - left > limits.disk_files for each, (_, left) in now.items() if each in free):
                return f'The command was ended, because the disk has more than {limits.disk_files} new files.'
        return None

    async def stop(self) -> None:
        """Send SIGTERM to the process group, and wait briefly. The method `close` ends the remaining processes."""
        # Collect descendants before their parents end: afterwards, nothing connects them with this command.
        self._seen = descendants(self._process.pid)
        kill_group(self._process.pid, signal.SIGTERM)
        await self.ended(_GRACE_S)

    def close(self) -> None:
        """Kill the remaining processes, read the rest of the output, and close the pipes. Returns quickly."""
        # The process is not reaped yet, so the group's id cannot have been reused.
        kill_group(self._process.pid, signal.SIGKILL)
        self.strays = kill_strays(self._marker, below=self._process.pid, seen=self._seen)
        self._process.wait()
        if self._status is not None:
            first = self._first_process()
            self.is_over = first is None or end_namespace(first)
            os.close(self._status)
        if self._watch is not None:
            self._loop.remove_reader(self._watch)
            os.close(self._watch)
        for pipe in self._pipes:
            # Read at most the capacity of a pipe: the writers are dead, or their output is no longer needed.
            for _ in range(32):
                if not self._read(pipe):
                    break
            self._loop.remove_reader(pipe)
        for stream in (self._process.stdout, self._process.stderr):
            with contextlib.suppress(OSError):
                assert stream is not None, 'both are pipes'
                stream.close()

    def _first_process(self) -> int | None:
        """Return the id of process 1 of the command's PID namespace, as soon as the OS sandbox has written it."""
        assert self._status is not None, 'a command with limits has one'
        with contextlib.suppress(BlockingIOError):
            self._told += os.read(self._status, _CHUNK)
        found = re.search(rb'"child-pid": *(\d+)', self._told)
        return None if found is None else int(found[1])
