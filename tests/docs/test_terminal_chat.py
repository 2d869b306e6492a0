"""The handler that `how-to/streaming.md` gives for the host's terminal chat, in a real pseudo-terminal."""

import sys
from pathlib import Path

import pexpect
import pyte
import pytest

from .blocks import ROOT, blocks_of


class Terminal:
    """A program in a terminal of 80 columns and 24 lines, and what its screen shows."""

    def __init__(self, script: Path, home: Path) -> None:
        self._screen = pyte.Screen(80, 24)
        self._stream = pyte.Stream(self._screen)
        # The last one keeps prompt_toolkit from waiting for a terminal that answers where its cursor is.
        environment = {'TERM': 'xterm', 'HOME': str(home), 'PROMPT_TOOLKIT_NO_CPR': '1'}
        self._program: pexpect.spawn[str] = pexpect.spawn(
            sys.executable, [str(script)], dimensions=(24, 80), encoding='utf-8', timeout=30, env=environment
        )

    def wait_for(self, text: str) -> str:
        """Read until the screen shows `text`, and give what it shows."""
        while text not in (shown := '\n'.join(line.rstrip() for line in self._screen.display)):
            try:
                self._stream.feed(self._program.read_nonblocking(4096, timeout=30))
            except (pexpect.EOF, pexpect.TIMEOUT):
                pytest.fail(f'the screen never showed {text!r}, but:\n{shown}')
        return shown

    def type(self, line: str) -> None:
        self._program.send(f'{line}\r')

    def close(self) -> None:
        self._program.close(force=True)


@pytest.mark.parametrize(('answer', 'outcome'), [('y', 'old.log is gone'), ('n', 'it is kept'), ('', 'it is kept')])
def test_the_chat_shows_the_whole_question_and_takes_the_answer(answer: str, outcome: str, tmp_path: Path) -> None:
    blocks = blocks_of(ROOT / 'docs' / 'how-to' / 'streaming.md')
    script = tmp_path / 'chat.py'
    script.write_text(f'{blocks[0].source}\n{blocks[-1].source}\nchat()\n')
    terminal = Terminal(script, tmp_path)

    try:
        terminal.wait_for('pydantic-ai')
        terminal.type('Tidy up.')
        question = terminal.wait_for('Allow it? [y/n]')
        terminal.type(answer)
        terminal.wait_for(f'Result: {outcome}')
    finally:
        terminal.close()

    assert "The agent wants to call delete_file with {'path': 'old.log'}." in question
