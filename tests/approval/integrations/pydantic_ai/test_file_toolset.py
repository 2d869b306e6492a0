"""The file tools in an agent."""

import asyncio
import contextlib
import json
from typing import Any

import pytest
from pydantic_ai import RunContext, RunUsage
from pydantic_ai.exceptions import ApprovalRequired, ToolFailed, UserError
from pydantic_ai.toolsets import FunctionToolset, WrapperToolset
from tool_approval.compat import blocking_approval as compat
from tool_approval.core.calls import denied_because
from tool_approval.core.gate import OTHER_ACCESS
from tool_approval.integrations.pydantic_ai import ApprovalToolset
from tool_approval.integrations.pydantic_ai.file_toolset import FileToolset
from tool_approval.testing import RecordingUI
from tool_approval.tools.file_sandbox import FileSandbox, FileToolError

from tests.loop.scripted import call, scripted
from tool_approval import ApprovalContext, ApprovalController, ApprovalResult

from .agents import REFUSED, Log, changed, told_by

CONFIG = {
    'paths': {
        'notes': {'root': 'notes', 'mode': 'rw', 'suffixes': ['.txt']},
        'cache': {'root': 'cache', 'mode': 'rw', 'write_approval': False},
    }
}

PATH = {'path': 'notes/a.txt'}
WRITE = call('write_file', '1', path='notes/a.txt', content='new')


@pytest.fixture
def base(tmp_path):
    for folder in ('notes', 'cache'):
        (tmp_path / folder).mkdir()
    (tmp_path / 'notes/a.txt').write_text('a\n')
    return tmp_path


def run(toolset: FileToolset, controller: ApprovalController, *calls: Any) -> dict[str, Any]:
    return told_by(ApprovalToolset(toolset, controller), controller, *([each] for each in calls))


def test_all_eight_work_when_approved(base):
    ui = RecordingUI(True)
    toolset = FileToolset(CONFIG, base)

    told = run(
        toolset,
        ApprovalController(ui=ui, presenters=toolset.presenters),
        call('write_file', '1', path='notes/new.txt', content='one'),
        call('edit_file', '2', path='notes/new.txt', old_text='one', new_text='two'),
        call('copy', '3', path='notes/new.txt', dest='cache/copy.txt'),
        call('make_directory', '4', path='notes/deep'),
        call('move', '5', path='notes/new.txt', dest='notes/deep/new.txt'),
        call('read_file', '6', path='notes/deep/new.txt'),
        call('list_files', '7', path='notes/deep'),
        call('delete', '8', path='notes/deep'),
    )

    assert [content for content, _ in told.values()] == [
        'Wrote notes:new.txt (3 bytes).',
        'Replaced notes:new.txt (3 bytes).',
        'Copied notes:new.txt to cache:copy.txt (3 bytes).',
        'Created notes:deep/.',
        'Moved notes:new.txt to notes:deep/new.txt.',
        'two',
        'notes:deep:\nnew.txt (3 bytes)',
        'Deleted notes:deep.',
    ]
    assert [request.tool_name for request in ui.requests] == [
        'write_file',
        'edit_file',
        'make_directory',
        'move',
        'delete',
    ]
    assert ui.requests[1].presentation is not None
    assert ui.requests[1].presentation.type == 'diff'


def test_refusals_and_failures_are_failed_results(base):
    told = run(
        FileToolset(CONFIG, base),
        ApprovalController('approve_all'),
        call('read_file', '1', path='/etc/passwd'),
        call('write_file', '2', path='notes/x.sh', content=''),
        call('read_file', '3', path='notes/none.txt'),
    )

    assert [outcome for _, outcome in told.values()] == ['failed'] * 3
    assert told['2'][0] == 'notes:x.sh has a suffix that is not allowed in notes; use .txt.'
    assert told['3'][0] == 'notes:none.txt: it does not exist'


def test_denied_call_changes_no_file(base):
    told = run(
        FileToolset(CONFIG, base),
        ApprovalController(ui=RecordingUI('not now')),
        call('delete', '1', path='notes/a.txt'),
    )

    assert told == {'1': (denied_because('not now'), 'denied')}
    assert (base / 'notes/a.txt').exists()


@pytest.mark.parametrize('is_blocked', [False, True])
def test_a_call_that_did_not_run_lets_no_direct_call_run(base, is_blocked):
    toolset, arguments = FileToolset(CONFIG, base), PATH

    class Blocking(WrapperToolset[Any]):
        async def needs_approval(self, name: str, args: dict[str, Any]) -> ApprovalResult | None:
            toolset.check_approval(ApprovalContext(tool_name=name, args=args))
            return ApprovalResult.blocked('not here')

    async def main() -> None:
        wrapped = ApprovalToolset(Blocking(toolset) if is_blocked else toolset, ApprovalController())
        ctx = RunContext(deps=None, model=scripted('done'), usage=RunUsage())
        tool = (await wrapped.get_tools(ctx))['delete']
        with contextlib.suppress(ApprovalRequired, ToolFailed):
            await wrapped.call_tool('delete', arguments, ctx, tool)
        with pytest.raises(UserError, match='nothing guards it'):
            await toolset.call_tool('delete', arguments, ctx, tool)
        with pytest.raises(PermissionError, match='nothing was done'):
            toolset.files.run('delete', arguments)

    asyncio.run(main())

    assert (base / 'notes/a.txt').exists()


def test_a_call_that_a_callback_denied_lets_no_direct_call_run(base):
    delete = FileToolset(CONFIG, base).files['delete']

    def remove(path: str) -> str:
        return delete(path=path)

    setattr(remove, 'check_approval', delete.check_approval)  # noqa: B010 - a function has no such attribute
    wrapped = compat.ApprovalToolset(
        FunctionToolset[object]([remove]), lambda request: compat.ApprovalDecision(approved=False)
    )

    async def main() -> None:
        ctx = RunContext(deps=None, model=scripted('done'), usage=RunUsage())
        with pytest.raises(compat.ApprovalDenied):
            await wrapped.call_tool('remove', PATH, ctx, (await wrapped.get_tools(ctx))['remove'])
        with pytest.raises(PermissionError, match='nothing was done'):
            delete(**PATH)

    asyncio.run(main())

    assert (base / 'notes/a.txt').exists()


@pytest.mark.parametrize('is_guarded', [True, False])
@pytest.mark.parametrize('becomes', ['another file', 'a directory'])
def test_call_whose_file_changed_since_its_approval_is_refused_and_logged_once(base, is_guarded, becomes):
    path = base / 'notes/a.txt'

    def change(request: Any) -> bool:
        if becomes == 'a directory':
            path.unlink()
            path.mkdir()
        else:
            path.write_text('another')
        return True

    log = Log()
    controller, toolset = ApprovalController(ui=RecordingUI(change), audit=log), FileToolset(CONFIG, base)

    told = told_by(ApprovalToolset(toolset, controller) if is_guarded else toolset, controller, [WRITE])

    assert log.ended() == [('refused', None)]
    if becomes == 'another file':
        assert told == {'1': REFUSED}
        assert path.read_text() == 'another'


def test_a_path_that_leads_elsewhere_since_it_was_judged_is_refused(base):
    class Bending(WrapperToolset[Any]):
        async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: Any) -> Any:
            (base / 'notes/a.txt').unlink()
            (base / 'notes/a.txt').symlink_to('b.txt')
            return await super().call_tool(name, tool_args, ctx, tool)

    (base / 'notes/b.txt').write_text('b\n')
    log = Log()
    controller = ApprovalController('approve_all', audit=log)

    told = told_by(ApprovalToolset(Bending(FileToolset(CONFIG, base)), controller), controller, [WRITE])

    reason = 'A path has changed since the call was judged, so the call was not run.'
    assert told['1'] == (reason, 'failed')
    assert log.told == [('decision', True, '1'), ('outcome', 'refused', '1')]
    assert (base / 'notes/b.txt').read_text() == 'b\n'


def test_pre_approved_call_stays_within_the_rules_of_the_sandbox(base):
    ui = RecordingUI('never')

    told = run(
        FileToolset(CONFIG, base),
        ApprovalController(policy={'write_file': {'approval': 'none'}}, ui=ui),
        call('write_file', '1', path='notes/a.txt', content='new'),
        call('write_file', '2', path='notes/a.sh', content='new'),
    )

    assert told['1'][0] == 'Replaced notes:a.txt (3 bytes).'
    assert told['2'][1] == 'failed'
    assert ui.requests == []


@pytest.mark.parametrize(
    ('path', 'told', 'written'),
    [
        pytest.param('notes/./a.txt', ('Replaced notes:a.txt (7 bytes).', 'success'), 'changed', id='the file shown'),
        pytest.param('notes/b.txt', (OTHER_ACCESS, 'denied'), 'a\n', id='another file'),
    ],
)
def test_changed_arguments_are_judged_and_run_for_the_file_that_was_shown(base, path, told, written):
    ui = RecordingUI(changed(path=path, content='changed'))

    content, outcome = run(FileToolset(CONFIG, base), ApprovalController(ui=ui), WRITE)['1']

    assert (content.partition('\n')[0], outcome) == told
    assert (base / 'notes/a.txt').read_text() == written
    assert not (base / 'notes/b.txt').exists()


def test_failed_call_of_a_bare_toolset_is_logged_as_failed(base):
    log = Log()
    controller = ApprovalController('approve_all', audit=log)
    deletion = [call('delete', '1', path='notes/none.txt')]

    told_by(FileToolset(CONFIG, base), controller, deletion)

    assert log.told == [('decision', True, '1'), ('outcome', 'failed', '1')]


def test_a_sandbox_can_be_given_and_names_be_prefixed(base):
    toolset = FileToolset(FileSandbox(CONFIG, base), prefix='fs_', id=None)

    told = run(toolset, ApprovalController(), call('fs_read_file', '1', path='notes/a.txt'))

    assert told['1'][0] == 'a\n'
    assert set(toolset.tools) == set(toolset.presenters)
    assert toolset.id is None


def test_the_model_is_told_what_each_tool_takes(base):
    tools = FileToolset(CONFIG, base).tools

    schemas = {name: tool.tool_def.parameters_json_schema for name, tool in tools.items()}

    assert all(tool.tool_def.description for tool in tools.values())
    assert list(schemas['edit_file']['properties']) == ['path', 'old_text', 'new_text', 'replace_all']
    assert schemas['edit_file']['required'] == ['path', 'old_text', 'new_text']
    assert 'self' not in json.dumps(schemas)


def test_changed_content_is_shown_and_a_changed_path_is_told_to_be_refused(base):
    toolset = FileToolset(CONFIG, base)
    present = toolset.presenters['write_file']
    call = ApprovalContext(tool_name='write_file', args={'path': 'notes/a.txt', 'content': 'new\n'})
    request = toolset.check_approval(call)

    def presented(**args):
        return present(request.model_copy(update={'args': {**request.args, **args}}))

    assert '+other' in presented(content='other\n').content
    for other in ('notes/b.txt', 'cache/b'):  # what is asked about, and what would run without approval
        with pytest.raises(PermissionError, match='a call with another path is refused'):
            presented(path=other)
    (base / 'notes/a.txt').write_text('changed meanwhile\n')
    with pytest.raises(FileToolError, match='the content has changed'):
        presented()
