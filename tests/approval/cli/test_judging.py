"""The judge says what the tools of a workspace say, and never what was said of another call."""

import pytest
from tool_approval.cli.calls import Call
from tool_approval.cli.judging import Judge
from tool_approval.os_sandbox import UnconfinedBackend
from tool_approval.settings import load_settings, open_workspace
from tool_approval.tools.file_sandbox import FileTools

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


def test_it_agrees_with_the_tools_that_an_agent_is_given(loaded, work):
    judge = Judge(loaded.settings, work, source=loaded.source)
    workspace = open_workspace(loaded, backend=UnconfinedBackend())
    calls = [('run_shell', {'command': each}) for each in COMMANDS]
    calls += [(tool, {'path': path}) for tool in ('read_file', 'write_file', 'delete', 'list_files') for path in PATHS]
    calls += [(tool, {'path': one, 'dest': other}) for tool in ('move', 'copy') for one in PATHS for other in PATHS]

    judged = [judge.judge(Call(tool=tool, args=args)).decision for tool, args in calls]

    tools = {'run_shell': workspace.shell}
    files = FileTools(workspace.files)
    assert judged == [said(tools.get(tool, files), tool, args) for tool, args in calls]
    assert set(judged) == {'allow', 'ask', 'block'}


def test_a_path_that_changes_while_it_is_judged_is_refused(loaded, work, monkeypatch):
    judge = Judge(loaded.settings, work)
    check = FileTools.check_approval

    def check_and_change(self, ctx):
        request = check(self, ctx)
        (work / 'notes/a.txt').rename(work / 'cache/a.txt')
        (work / 'notes/a.txt').symlink_to('../../outside')
        return request

    monkeypatch.setattr(FileTools, 'check_approval', check_and_change)

    judgement = judge.judge(Call(tool='read_file', args={'path': 'notes/a.txt'}))

    assert judgement.decision == 'block'
