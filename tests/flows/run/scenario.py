"""A developer's work with `tool-approval run`: a real repository, a scripted model, the OS sandbox, and questions."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tool_approval.os_sandbox import UnconfinedBackend, choose_backend

from .server import Step
from .talk import Talk

QUESTIONS = ('╰─ ', *(f'{count} requests: ' for count in range(2, 10)))
"""How the row of the cursor begins while the person is asked."""

HIDDEN_CURSOR = '\x1b[?25l'


def call(tool: str, **args: Any) -> Step:
    """A response of the model with one call."""
    return {'calls': [[tool, args]]}


def shell(command: str, **args: Any) -> Step:
    """A response of the model with one command."""
    return call('run_shell', command=command, **args)


def says(text: str) -> Step:
    """A response of the model without calls, which ends its turn."""
    return {'text': text}


class Scenario:
    """One repository and the conversations about it."""

    def __init__(self, talk: Talk) -> None:
        if sys.platform != 'linux' or isinstance(choose_backend(require=False), UnconfinedBackend):
            pytest.skip('bubblewrap is missing or may not be used; see make install-system')
        self.talk = talk
        self.path = talk.cwd

    def write(self, files: Mapping[str, str]) -> None:
        """Write files, by their paths in the repository; what contains `#!` at its beginning is executable."""
        for name, text in files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755 if text.startswith('#!') else 0o644)

    def repository(self, files: Mapping[str, str]) -> None:
        """Make the directory a git repository with one commit of these files."""
        self.git('init', '--quiet', '--initial-branch=main')
        self.git('config', 'user.name', 'Ada')
        self.git('config', 'user.email', 'ada@example.com')
        self.write(files)
        self.git('add', '--all')
        self.git('commit', '--quiet', '--message=Begin')

    def git(self, *arguments: str) -> str:
        """Run git as the person, outside of the sandbox, and give what it prints."""
        environment = {'PATH': '/usr/bin:/bin', 'HOME': str(self.talk.home), 'GIT_CONFIG_NOSYSTEM': '1'}
        command = ['git', '-C', str(self.path), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout

    def play(
        self,
        prompt: str,
        *steps: Step,
        questions: Sequence[tuple[str, str]] = (),
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Give one prompt, answer the questions, and see that the program ended well and that no other was asked.

        Args:
            prompt: The message of the person.
            steps: The responses of the model; if the last has calls, one that says `Done.` follows.
            questions: The questions, in order: a text on the screen, and the key to press then. A question that takes
                several keys, such as one that is remembered, is several entries.
            options: More options of the command.
            environment: Variables beside, or in place of, those of `Talk`, such as `VIRTUAL_ENV` and `PATH`.

        Returns:
            The results of the calls, as the model was given them.
        """
        script = [*steps, *([says('Done.')] if steps[-1].get('calls') else [])]
        given = dict(environment or {})
        screen = self.talk.start(
            *options, prompt, steps=script, is_confined=True, columns=110, lines=50, wrap=(), **given
        )
        since = 0

        def is_asked(begins: str = '') -> bool:
            # The cursor was hidden for a question that follows another.
            is_new = HIDDEN_CURSOR in screen.sent[since:]
            return is_new and screen.is_ready and screen.row.startswith(begins or QUESTIONS)

        for shown, key in questions:
            screen.wait(lambda shown=shown: screen.has_ended or is_asked() or is_asked(shown), f'a question: {shown}')
            assert not screen.has_ended, f'{shown!r} was not asked:\n{screen.scrolled}'
            # In the last box; a question about what to remember has none of its own, and a long one begins above.
            box = ''.join(screen.text.rpartition('╭─ ')[1:])
            assert shown in box, f'something else than {shown!r} was asked:\n{screen.text}'
            since = len(screen.sent)
            screen.type(key)
        screen.wait(lambda: screen.has_ended or is_asked(), 'the end')
        assert screen.has_ended, f'one question too many:\n{screen.text}'
        assert screen.end() == 0, screen.scrolled
        assert self.talk.server.steps == [], f'the model has {len(self.talk.server.steps)} steps left'
        return self.talk.server.told(-1, 'tool')
