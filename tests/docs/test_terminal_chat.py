"""The handler that `how-to/streaming.md` gives for the host's terminal chat, in a real pseudo-terminal."""

import sys
from pathlib import Path

import pexpect
import pytest

from .blocks import ROOT, blocks_of


@pytest.mark.parametrize(('answer', 'outcome'), [('y', 'old.log is gone'), ('n', 'it is kept'), ('', 'it is kept')])
def test_the_chat_asks_and_takes_the_answer(answer: str, outcome: str, tmp_path: Path) -> None:
    blocks = blocks_of(ROOT / 'docs' / 'how-to' / 'streaming.md')
    script = tmp_path / 'chat.py'
    script.write_text(f'{blocks[0].source}\n{blocks[-1].source}\nchat()\n')
    # The last one keeps prompt_toolkit from waiting for a terminal that answers where its cursor is.
    environment = {'TERM': 'xterm', 'HOME': str(tmp_path), 'PROMPT_TOOLKIT_NO_CPR': '1'}
    program: pexpect.spawn[str] = pexpect.spawn(
        sys.executable, [str(script)], dimensions=(24, 80), encoding='utf-8', timeout=60, env=environment
    )

    # The host's live display draws all the time, so what is written is read, and not what the screen shows last.
    try:
        program.expect_exact('pydantic-ai')
        program.send('Tidy up.\r')
        program.expect_exact('The agent wants to call delete_file')
        program.expect_exact('allow it?')
        program.send(f'{answer}\r')
        program.expect_exact(outcome)
    finally:
        program.close(force=True)
