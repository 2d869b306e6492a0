"""A conversation with `tool-approval run` in a pseudo-terminal."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.flows.terminal.screen import Screen

from .server import ModelServer, Step

COMMAND = [sys.executable, '-P', '-m', 'tool_approval.cli', 'run']
MODEL = 'openai-chat:scripted'


class Talk:
    """The command on a directory of its own, with a state directory beside it and a model on the loopback."""

    def __init__(self, tmp_path: Path) -> None:
        self.cwd = tmp_path / 'project'
        self.cwd.mkdir()
        self.state = tmp_path / 'state'
        self.home = tmp_path / 'home'
        self.home.mkdir()
        self.server: ModelServer
        self.screen: Screen
        self._open: list[Any] = []

    @property
    def environment(self) -> dict[str, str]:
        return {'HOME': str(self.home), 'XDG_STATE_HOME': str(self.state), **self.server.environment}

    def start(
        self,
        *arguments: str,
        steps: list[Step],
        columns: int = 80,
        lines: int = 40,
        wrap: tuple[str, ...] = (),
        is_confined: bool = False,
        **environment: str,
    ) -> Screen:
        """Start it. It is not confined, unless told so here or by its settings: not every machine can confine."""
        self.server = ModelServer(steps)
        # As a person's shell has it, in which nothing hides the framework's banner.
        unset = ['/usr/bin/env', '-u', 'PYDANTIC_AI_NO_BANNER']
        confinement = [] if is_confined else ['--no-os-sandbox']
        command = [*wrap, *unset, *COMMAND, '--model', MODEL, *confinement, *arguments]
        self.screen = Screen(command, self.cwd, columns=columns, lines=lines, **{**self.environment, **environment})
        self._open += [self.screen, self.server]
        return self.screen

    def run(self, *arguments: str, steps: list[Step], wrap: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        """Run it to its end without a terminal."""
        self.server = ModelServer(steps)
        self._open.append(self.server)
        command = [*wrap, *COMMAND, '--model', MODEL, '--no-os-sandbox', *arguments]
        return subprocess.run(
            command,
            cwd=self.cwd,
            env={'PATH': '/usr/bin:/bin', 'LANG': 'C.UTF-8', **self.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def say(self, text: str) -> None:
        """Wait for the prompt, and type."""
        self.wait_for_prompt()
        self.screen.type(text)
        self.screen.wait_for_question(f'> {text}')
        self.screen.type('\r')

    def wait_for_prompt(self) -> str:
        """Wait until there is no text after the last prompt."""
        return self.screen.wait(lambda: self.screen.lines[-1:] == ['>'], 'an empty prompt')

    def answer(self, question: str, keys: str) -> str:
        """Wait for the question, and press a key; gives the screen before that."""
        shown = self.screen.wait_for_question(question)
        self.screen.type(keys)
        return shown

    def leave(self) -> int:
        self.wait_for_prompt()
        self.screen.type('\x04')
        return self.screen.end()

    def entries(self, *, event: str = 'decision') -> list[dict[str, Any]]:
        """Return the entries of the audit log."""
        log = self.state / 'tool-approval' / 'audit' / 'decisions.jsonl'
        entries = [json.loads(line) for line in log.read_text().splitlines()]
        return [entry for entry in entries if entry['event'] == event]

    def close(self) -> None:
        for each in self._open:
            each.close()
