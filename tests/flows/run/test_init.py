"""`tool-approval init` in a pseudo-terminal, in a repository that another person has written."""

import os
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from tool_approval.settings import TrustStore, load_settings

from tests.flows.terminal.screen import Screen

COMMAND = [sys.executable, '-P', '-m', 'tool_approval.cli', 'init']


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / '\x1b]0;owned\x07project'
    (made / '.git').mkdir(parents=True)
    return made


@pytest.fixture
def screen(project: Path, tmp_path: Path) -> Generator[Screen]:
    opened = Screen(COMMAND, project, columns=200, XDG_STATE_HOME=str(tmp_path / 'state'))
    yield opened
    opened.close()


def test_three_questions_and_a_key_write_a_file_that_is_trusted(screen: Screen, project: Path, tmp_path: Path) -> None:
    screen.wait_for('May every command use the network?')
    screen.type('\r')
    screen.wait_for('Ask: c = before each change')
    screen.type('?\r')
    screen.wait_for('cannot be undone')
    screen.type('\r')
    screen.wait_for('Who approves calls?')
    screen.type('\r')
    screen.wait_for_question('Write ')
    screen.type('\r')

    status = screen.end()

    loaded = load_settings(directory=project, trust=TrustStore(tmp_path / 'state' / 'tool-approval' / 'trusted.json'))
    assert status == 0
    assert loaded.trusted
    assert loaded.settings.extends == ('default',)
    assert '\x1b]0;owned' not in screen.sent


def test_answers_typed_ahead_do_not_agree(screen: Screen, project: Path) -> None:
    screen.wait_for('May every command use the network?')
    screen.type('\r\r\ry')
    screen.wait_for_question('Write ')
    screen.type('n')

    assert screen.end() == 2
    assert not os.path.lexists(project / 'approvals.yaml')


def test_ctrl_c_at_a_question_writes_nothing(screen: Screen, project: Path) -> None:
    screen.wait_for('May every command use the network?')
    screen.type('\x03')

    assert screen.end() == 130
    assert not os.path.lexists(project / 'approvals.yaml')
