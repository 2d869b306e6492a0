"""A program in a pseudo-terminal, and what its screen shows."""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pexpect
import pyte
import pytest

PROGRAMS = Path(__file__).parent / 'programs'
PATIENCE_S = 60.0


class Screen:
    """Reads what a program writes until its screen is as expected; it never waits for time to pass."""

    def __init__(
        self, program: list[str], cwd: Path, *, columns: int = 80, lines: int = 40, **environment: str
    ) -> None:
        self._screen = pyte.HistoryScreen(columns, lines, history=2000)
        self._stream = pyte.Stream(self._screen)
        self.is_closed = False
        self.has_ended = False
        self._typed_at = 0
        self.sent = ''
        """All that the program wrote."""
        env = {
            'PATH': os.environ['PATH'],
            'HOME': str(cwd),
            'TERM': 'xterm-256color',
            'LANG': 'C.UTF-8',
            'PYDANTIC_AI_NO_BANNER': '1',
            'COVERAGE_PROCESS_START': os.environ.get('COVERAGE_PROCESS_START', ''),
            **environment,
        }
        self.program: pexpect.spawn[str] = pexpect.spawn(
            program[0], program[1:], dimensions=(lines, columns), encoding='utf-8', cwd=cwd, env=env, timeout=PATIENCE_S
        )

    @property
    def lines(self) -> list[str]:
        """Return what the screen shows, from its first line to the last that is not empty."""
        shown = [line.rstrip() for line in self._screen.display]
        while shown and not shown[-1]:
            shown.pop()
        return shown

    @property
    def text(self) -> str:
        return '\n'.join(self.lines)

    @property
    def scrolled(self) -> str:
        """Return what has scrolled off, and what the screen shows."""
        rows = [
            ''.join(row[column].data for column in range(self._screen.columns)).rstrip()
            for row in self._screen.history.top
        ]
        return '\n'.join([*rows, self.text])

    @property
    def is_ready(self) -> bool:
        """Whether a key that is pressed now is an answer."""
        return not self._screen.cursor.hidden

    @property
    def row(self) -> str:
        """The row of the cursor."""
        return self._screen.display[self._screen.cursor.y]

    @property
    def title(self) -> str:
        """The first row of the last box."""
        return next((line for line in reversed(self.lines) if line.startswith('╭─ ')), '')

    def wait(self, condition: Callable[[], bool], what: str) -> str:
        while not condition():
            if self.has_ended:
                pytest.fail(f'the program ended, and the screen never showed {what!r}, but:\n{self.text}')
            self._read(what)
        return self.text

    def wait_for(self, text: str) -> str:
        """Read until the screen shows `text`."""
        return self.wait(lambda: text in self.text, text)

    def wait_for_question(self, text: str) -> str:
        """Read until the line of the cursor begins with `text`, and is ready for an answer.

        Where `text` is how a box begins, the cursor has to be in its last row, and has to have been shown since the
        last key.
        """

        def is_asked() -> bool:
            if not text.startswith('╭─ '):
                return self.is_ready and self.row.startswith(text)
            is_new = '\x1b[?25h' in self.sent[self._typed_at :]
            return is_new and self.is_ready and self.row.startswith('╰─ ') and self.title.startswith(text)

        return self.wait(is_asked, text)

    def type(self, keys: str) -> None:
        self._typed_at = len(self.sent)
        self.program.send(keys)

    def resize(self, columns: int, lines: int) -> None:
        self._screen.resize(lines, columns)
        self.program.setwinsize(lines, columns)

    def end(self) -> int:
        """Read until the program has ended, and give its exit status; for a signal, minus its number."""
        while True:
            try:
                self._feed(self.program.read_nonblocking(4096, timeout=PATIENCE_S))
            except pexpect.EOF:
                break
        self.program.wait() if self.program.isalive() else None
        status = self.program.exitstatus
        return status if status is not None else -(self.program.signalstatus or 0)

    def hang_up(self) -> int:
        """Close the terminal, wait until the program has ended, and give its exit status as `end` does."""
        self.program.ptyproc.fileobj.close()
        _, status = os.waitpid(self.program.pid, 0)
        self.is_closed = True
        return os.waitstatus_to_exitcode(status)

    def close(self) -> None:
        if self.is_closed:
            self.program.ptyproc.closed = self.program.ptyproc.terminated = True
            return
        if self.program.isalive():
            self.program.kill(signal.SIGKILL)
            self.program.wait()
        self.program.close(force=True)

    def _read(self, what: str) -> None:
        try:
            self._feed(self.program.read_nonblocking(4096, timeout=PATIENCE_S))
        except pexpect.EOF:
            self.has_ended = True
        except pexpect.TIMEOUT:
            pytest.fail(f'the screen never showed {what!r}, but:\n{self.text}')

    def _feed(self, data: str) -> None:
        self.sent += data
        self._stream.feed(data)


class Story:
    """A program in a directory of its own."""

    def __init__(self, tmp_path: Path) -> None:
        self.cwd = tmp_path / 'project'
        self.cwd.mkdir()
        self.log = tmp_path / 'log.jsonl'
        self.screen: Screen

    def start(self, *runs: list[dict[str, Any]], screen: dict[str, Any] | None = None, **script: Any) -> Screen:
        """Run `agent.py`: its script has a list of the model's steps for each run."""
        return self._start('agent.py', screen, {'runs': runs, 'log': str(self.log), **script})

    def ask(self, *requests: dict[str, Any], screen: dict[str, Any] | None = None, **script: Any) -> Screen:
        """Run `ask.py`."""
        return self._start('ask.py', screen, {'requests': requests, **script})

    def _start(self, program: str, screen: dict[str, Any] | None, script: dict[str, Any]) -> Screen:
        command = [sys.executable, str(PROGRAMS / program), json.dumps(script)]
        options = dict(screen or {})
        wrap = options.pop('wrap', lambda command: command)
        self.screen = Screen(wrap(command), self.cwd, **options)
        return self.screen

    def entries(self) -> list[dict[str, Any]]:
        """Return the entries of the log."""
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []
