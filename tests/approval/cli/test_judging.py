"""The judge says what the tools of a workspace say, and never what was said of another call."""

import errno

import pytest
from tool_approval.cli.judging import CallJudge
from tool_approval.os_sandbox import UnconfinedBackend
from tool_approval.settings import load_settings, open_workspace
from tool_approval.tools.file_sandbox import FileTools
from tool_approval.tools.file_sandbox.rules import PathTarget

from tool_approval import ApprovalContext

COMMANDS = [
    'git status',
    'rm x',
    'ls',
    'cat notes/a.txt',
    'cat cache/x',
    'echo x > cache/x',
    'echo x > notes/a.txt',
    '',
]
PATHS = [
    'notes/a.txt',
    'cache/a',
    'notes/a.sh',
    '../x',
    'approvals.yaml',
    '.git/config',
    '',
    'notes',
    'a\0b',
    'x' * 5000,
]


@pytest.fixture
def loaded(work):
    return load_settings('approvals.yaml', directory=work, named=True)


def said(tool, name, args):
    try:
        request = tool.check_approval(ApprovalContext(tool_name=name, args=args))
    except PermissionError:
        return 'block'
    return 'allow' if request is None else 'ask'


def test_judge_agrees_with_the_tools_of_an_agent(loaded, work):
    judge = CallJudge(loaded, work)
    workspace = open_workspace(loaded, backend=UnconfinedBackend())
    calls = [('run_shell', {'command': each}) for each in COMMANDS]
    calls += [(tool, {'path': path}) for tool in ('read_file', 'write_file', 'delete', 'list_files') for path in PATHS]
    calls += [(tool, {'path': one, 'dest': other}) for tool in ('move', 'copy') for one in PATHS for other in PATHS]

    judged = [judge.judge(tool, args).deciding.decision for tool, args in calls]

    tools = {'run_shell': workspace.shell}
    files = FileTools(workspace.files)
    assert judged == [said(tools.get(tool, files), tool, args) for tool, args in calls]
    assert set(judged) == {'allow', 'ask', 'block'}


def test_unreadable_file_is_refused_as_by_the_tool(loaded, work, monkeypatch):
    judge = CallJudge(loaded.settings, work)

    def fail(target):
        raise OSError(errno.EIO, 'Input/output error')

    monkeypatch.setattr(PathTarget, 'state', fail)
    calls = [('delete', 'notes/a.txt'), ('read_file', 'notes/a.txt'), ('make_directory', 'notes/new')]

    judged = [judge.judge(tool, {'path': path}) for tool, path in calls]

    assert [each.deciding.decision for each in judged] == ['block', 'allow', 'ask']
    assert judged[0].deciding.reason == 'notes:a.txt cannot be read, so the approver could not see it.'
