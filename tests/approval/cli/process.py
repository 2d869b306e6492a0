"""Runs the command: in this process for what it says, and as a process for how it behaves as one."""

import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass

from tool_approval.cli import main, output

# As the documentation starts it: without `-P`, Python looks for modules in the working directory first.
COMMAND = [sys.executable, '-P', '-m', 'tool_approval.cli']


@dataclass(frozen=True)
class Finished:
    status: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def lines(self):
        return [json.loads(line) for line in self.out.splitlines()]


class Streams:
    """Standard streams in memory, with standard input that is as long as it is."""

    def __init__(self, monkeypatch, typed='', *, is_terminal=False):
        self.out, self.err = io.TextIOWrapper(io.BytesIO(), 'utf-8'), io.TextIOWrapper(io.BytesIO(), 'utf-8')
        given = typed if isinstance(typed, bytes) else typed.encode()
        stdin = io.TextIOWrapper(io.BytesIO(given), 'utf-8')
        for name, stream in (('stdin', stdin), ('stdout', self.out), ('stderr', self.err)):
            stream.isatty = lambda: is_terminal
            stream.fileno = lambda: 0
            monkeypatch.setattr(sys, name, stream)
        monkeypatch.setattr(output, 'pressed_key', self._press)

    def _press(self, question, *, enter=False):
        """Stands in for the terminal itself, which `tests/flows/run` has."""
        self.out.write(question)
        key = sys.stdin.read(1)
        return 'enter' if key == '\n' else key or None

    def finished(self, status):
        texts = []
        for stream in (self.out, self.err):
            stream.flush()
            texts.append(stream.buffer.getvalue().decode())
        return Finished(status, *texts)


class Typed(io.StringIO):
    """Standard input that is, or is not, a terminal."""

    def __init__(self, text, *, is_terminal=False):
        super().__init__(text)
        self._is_terminal = is_terminal

    def isatty(self):
        return self._is_terminal


def command(*arguments, typed=b'', cwd=None, env=None, stdout=subprocess.PIPE, timeout_s=60):
    """The command as a process of its own."""
    return subprocess.run(
        [*COMMAND, *arguments],
        input=typed,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=timeout_s,
    )


def call(monkeypatch, *arguments, typed='', is_terminal=False):
    """The command in this process."""
    with monkeypatch.context() as patched:
        streams = Streams(patched, typed, is_terminal=is_terminal)
        return streams.finished(main(arguments))
