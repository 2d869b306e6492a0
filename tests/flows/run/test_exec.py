"""`tool-approval exec` in a pseudo-terminal: a person is asked, and the command runs or does not."""

import os
import sys
from pathlib import Path

import pytest
from tool_approval.os_sandbox import UnconfinedBackend, choose_backend

from tests.flows.terminal.screen import Screen

COMMAND = [sys.executable, '-P', '-m', 'tool_approval.cli', 'exec']

pytestmark = pytest.mark.skipif(
    isinstance(choose_backend(require=False), UnconfinedBackend),
    reason='no OS sandbox works here; `make install-system` installs bubblewrap',
)


@pytest.mark.parametrize(('key', 'status'), [('y', 0), ('n', 125), ('q', 130)])
def test_a_command_that_needs_access_is_asked_about_at_the_terminal(tmp_path: Path, key: str, status: int) -> None:
    project = tmp_path / 'project'
    project.mkdir()
    screen = Screen(
        [*COMMAND, '--', 'touch made'],
        project,
        XDG_STATE_HOME=str(tmp_path / 'state'),
        PYTHONPATH=os.environ.get('PYTHONPATH', ''),
    )
    try:
        shown = screen.wait_for_question('╭─ run_shell')
        screen.type(key)
        found = screen.end()
    finally:
        screen.close()

    assert 'writes to files in this directory' in shown
    assert found == status
    assert (project / 'made').exists() == (status == 0)
