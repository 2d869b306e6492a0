"""The questions that the page on the terminal shows are those that are drawn."""

import asyncio
import re
import subprocess
from pathlib import Path

import pytest
from tool_approval.integrations.pydantic_ai import FileToolset
from tool_approval.os_sandbox import BubblewrapBackend
from tool_approval.settings import load_settings, open_workspace
from tool_approval.testing import RecordingUI
from tool_approval.tools.file_sandbox import FileTools
from tool_approval.ui.terminal import render_request

from tests.system import needs_git
from tool_approval import ApprovalController, execute_tool

from .blocks import ROOT

PAGE = ROOT / 'docs' / 'how-to' / 'terminal.md'


@pytest.fixture
def drawn(tmp_path: Path) -> str:
    """The questions about an edit and a commit in a project that extends presets."""
    (tmp_path / 'approvals.yaml').write_text('extends: [default]\n')
    (tmp_path / 'greeting.py').write_text("\n\n\ndef greet(name):\n    return 'Hello ' + name\n")
    subprocess.run(['git', 'init', '--quiet', str(tmp_path)], check=True)
    loaded = load_settings(tmp_path / 'approvals.yaml', directory=tmp_path, named=True)
    workspace = open_workspace(loaded, backend=BubblewrapBackend())
    ui = RecordingUI(lambda request: False)
    files = FileTools(workspace.files)
    presenters = FileToolset(workspace.files).presenters
    controller = ApprovalController(policy=workspace.policy, ui=ui, presenters=presenters)
    edit = {'path': 'greeting.py', 'old_text': "return 'Hello ' + name", 'new_text': "return f'Hello, {name}!'"}
    for tool, name, args in (
        (files['edit_file'], 'edit_file', edit),
        (workspace.shell, 'run_shell', {'command': 'git commit -am "Greet by name"'}),
    ):
        with pytest.raises(PermissionError):
            asyncio.run(execute_tool(tool, name, args, controller))
    # A path of the test's is longer than the page's, and is not to be broken.
    boxes = [render_request(request, width=300, color=False) for request in ui.requests]
    return '\n'.join(boxes).replace(str(tmp_path), '/home/ada/shop')


@needs_git
@pytest.mark.usefixtures('own_home')
def test_the_page_shows_the_questions_that_are_drawn(drawn: str) -> None:
    shown = re.findall('^╭─.*?^╰─.*?$', PAGE.read_text(), re.DOTALL | re.MULTILINE)
    # The agent, at the end of a first row, is known in a run.
    shown = [re.sub('   +(editor|operator|assistant)$', '', box, flags=re.MULTILINE) for box in shown]

    assert shown == re.findall('^╭─.*?^╰─.*?(?= *$)', drawn, re.DOTALL | re.MULTILINE)
    assert len(shown) == 2
