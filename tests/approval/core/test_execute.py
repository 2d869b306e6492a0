import asyncio
import functools
import inspect
import re
from datetime import date
from typing import Any

import pytest
from pydantic import SecretStr
from tool_approval.testing import RecordingUI, ScriptedUI, approve_all, deny_all

from tests.approval.parts import ListSink, run_tool
from tool_approval import (
    ApprovalBlocked,
    ApprovalController,
    ApprovalDecision,
    ApprovalDenied,
    ApprovalMemory,
    ApprovalRequest,
    ApprovalResult,
    AuditError,
    requires_approval,
)

MODES = ('interactive', 'approve_all', 'strict')


@requires_approval()
def delete(path):
    return f'deleted {path}'


@requires_approval()
async def delete_later(path):
    return f'deleted {path} later'


def read(path):
    return f'content of {path}'


class Checked:
    """A tool whose own logic is given."""

    __name__ = 'checked'

    def __init__(self, check):
        self.check_approval = check
        self.ran = []

    def __call__(self, **args):
        self.ran.append(args)
        return 'ran'


def never(ctx):
    raise PermissionError('not outside of notes/')


@pytest.mark.parametrize('mode', MODES)
def test_a_bare_function_runs_in_every_mode(mode):
    assert run_tool(read, {'path': 'a'}, ApprovalController(mode)) == 'content of a'


def test_bare_function_asks_if_the_default_is_required():
    with pytest.raises(ApprovalDenied, match='no approver to ask'):
        run_tool(read, {'path': 'a'}, ApprovalController(), default='required')


@pytest.mark.parametrize('mode', MODES)
def test_a_call_that_needs_no_approval_runs_in_every_mode(mode):
    tool, sink = Checked(lambda ctx: None), ListSink()

    assert run_tool(tool, {'path': 'a'}, ApprovalController(mode, ui=deny_all(), audit=sink)) == 'ran'
    assert [(entry['event'], entry.get('outcome')) for entry in sink.all] == [
        ('unasked', None),
        ('outcome', 'executed'),
    ]


class Full:
    def record(self, entry):
        raise AuditError('log', 'the disk is full')


def test_a_call_that_cannot_be_logged_does_not_run():
    tool = Checked(lambda ctx: None)

    with pytest.raises(ApprovalDenied, match='could not be written to the audit log'):
        run_tool(tool, {'path': 'a'}, ApprovalController(audit=Full()))


@pytest.mark.parametrize(('function', 'result'), [(delete, 'deleted a'), (delete_later, 'deleted a later')])
def test_an_approved_function_runs_sync_or_async(function, result):
    assert run_tool(function, {'path': 'a'}, ApprovalController(ui=approve_all())) == result


def test_a_denied_function_does_not_run_and_its_error_holds_the_note():
    tool = Checked(lambda ctx: ApprovalRequest(tool_name='checked', args=ctx.args))

    with pytest.raises(ApprovalDenied, match="Denied 'checked': not today") as raised:
        run_tool(tool, {'path': 'a'}, ApprovalController(ui=deny_all('not today')))

    assert tool.ran == []
    assert isinstance(raised.value, PermissionError)
    assert (raised.value.tool_name, raised.value.reason) == ('checked', 'not today')


@pytest.mark.parametrize(
    ('controller', 'reason'),
    [
        (ApprovalController(ui=RecordingUI(False)), 'no reason was given'),
        (ApprovalController('strict'), 'Strict mode: calls that need approval'),
    ],
    ids=['denied without a note', 'strict mode'],
)
def test_refusal_states_its_reason(controller, reason):
    with pytest.raises(ApprovalDenied, match=reason):
        run_tool(delete, {'path': 'a'}, controller)


def test_approve_all_runs_without_asking():
    assert run_tool(delete, {'path': 'a'}, ApprovalController('approve_all')) == 'deleted a'


@pytest.mark.parametrize('mode', MODES)
def test_a_block_of_the_tools_own_refuses_in_every_mode_and_is_written_down(mode):
    tool, sink, ui = Checked(never), ListSink(), approve_all()

    with pytest.raises(ApprovalBlocked, match=r"Blocked 'checked': not outside of notes/"):
        run_tool(tool, {'path': '/etc'}, ApprovalController(mode, ui=ui, audit=sink))

    assert (tool.ran, ui.requests) == ([], [])
    assert [(entry['event'], entry['decided_by']) for entry in sink.entries] == [('blocked', ['policy'])]


def test_refusal_that_cannot_be_logged_is_an_error_and_nothing_runs():
    class Full:
        def record(self, entry):
            raise AuditError('log', 'the disk is full')

    tool = Checked(never)

    with pytest.raises(AuditError):
        run_tool(tool, {}, ApprovalController(audit=Full()))

    assert tool.ran == []


def test_the_approvers_arguments_are_what_executes():
    sink = ListSink()
    ui = RecordingUI(ApprovalDecision(approved=True, override_args={'path': 'b'}))
    controller = ApprovalController(ui=ui, audit=sink)

    assert run_tool(delete, {'path': 'a'}, controller) == 'deleted b'
    assert [entry['digest'] for entry in sink.entries] == [controller.digest('delete', {'path': 'b'})] * 2


def test_an_edit_leaves_other_arguments_as_the_caller_passed_them():
    seen = []

    @requires_approval()
    def remind(on: date, note: str) -> None:
        seen.append((on, note))

    args = {'on': date(2026, 1, 2), 'note': 'old'}
    ui = RecordingUI(ApprovalDecision(approved=True, override_args={'on': '2026-01-02', 'note': 'new'}))
    run_tool(remind, args, ApprovalController(ui=ui))
    other = RecordingUI(ApprovalDecision(approved=True, override_args={'on': '2026-01-03', 'note': 'old'}))
    with pytest.raises(ApprovalDenied, match='the value of on would be read as another type'):
        run_tool(remind, args, ApprovalController(ui=other))

    assert seen == [(date(2026, 1, 2), 'new')]


def test_the_outcome_is_written_down_after_the_decision():
    sink = ListSink()

    run_tool(delete, {'path': 'a'}, ApprovalController(ui=approve_all(), audit=sink))

    assert [entry['event'] for entry in sink.entries] == ['decision', 'outcome']
    assert sink.outcomes() == ['executed']
    assert sink.entries[0]['digest'] == sink.entries[1]['digest']


@pytest.mark.parametrize('error', [ValueError('hunter22'), KeyboardInterrupt()])
def test_a_tool_that_raises_has_failed_and_the_error_passes(error):
    sink = ListSink()

    @requires_approval()
    def fails():
        raise error

    with pytest.raises(type(error)):
        run_tool(fails, {}, ApprovalController(ui=approve_all(), audit=sink))

    assert [(entry['outcome'], entry['error']) for entry in sink.entries[1:]] == [('failed', type(error).__name__)]


def test_a_tool_that_is_cancelled_has_failed():
    sink = ListSink()

    @requires_approval()
    async def waits():
        asyncio.current_task().cancel()
        await asyncio.Event().wait()

    with pytest.raises(asyncio.CancelledError):
        run_tool(waits, {}, ApprovalController(ui=approve_all(), audit=sink))

    assert sink.outcomes() == ['failed']


def test_context_metadata_reaches_the_tool_the_ui_and_the_log():
    seen, sink, ui = [], ListSink(), approve_all()
    lineage = [{'agent_name': 'root', 'run_id': 'r0', 'tool_name': 'research', 'tool_call_id': 'c0'}]
    metadata = {'run_id': 'r1', 'session_id': 'chat', 'caller': 'helper', 'lineage': lineage}

    def check(ctx):
        seen.append(dict(ctx.metadata))
        return ApprovalRequest(tool_name='checked', args=ctx.args)

    run_tool(Checked(check), {}, ApprovalController(ui=ui, audit=sink), context_metadata=metadata)

    [asked] = ui.requests
    assert seen[0] == metadata
    assert (asked.run_id, asked.session_id, asked.metadata['caller']) == ('r1', 'chat', 'helper')
    assert [level.agent_name for level in asked.lineage] == ['root']
    assert [(entry['run_id'], entry['session_id'], entry['lineage']) for entry in sink.entries] == [
        ('r1', 'chat', lineage)
    ] * 2


def test_a_batch_of_the_framework_is_a_group():
    ui = approve_all()

    run_tool(delete, {'path': 'a'}, ApprovalController(ui=ui), context_metadata={'batch_id': 'batch 1'})

    assert ui.requests[0].group_id == 'batch 1'


def test_an_identical_call_is_not_asked_about_twice():
    ui = ScriptedUI(['s', 'n'])
    controller = ApprovalController(ui=ui)

    assert [run_tool(delete, {'path': 'a'}, controller) for _ in range(2)] == ['deleted a'] * 2
    with pytest.raises(ApprovalDenied):
        run_tool(delete, {'path': 'b'}, controller)
    ui.assert_done()


def test_a_tool_is_given_its_arguments_and_nothing_else():
    tool = Checked(lambda ctx: ApprovalRequest(tool_name='checked', args=ctx.args))
    contexts = []
    check = tool.check_approval
    tool.check_approval = lambda ctx: contexts.append(ctx) or check(ctx)

    run_tool(tool, {'path': 'a'}, ApprovalController('approve_all', memory=ApprovalMemory()))

    assert tool.ran == [{'path': 'a'}]
    assert {tuple(sorted(type(context).model_fields)) for context in contexts} == {
        ('args', 'metadata', 'tool_name', 'used')
    }
    assert contexts[0].metadata == {}


def test_arguments_without_a_json_form_are_denied():
    ran = []

    @requires_approval()
    def keep(thing):
        ran.append(thing)

    with pytest.raises(ApprovalDenied, match='are invalid'):
        run_tool(keep, {'thing': object()}, ApprovalController('approve_all'))

    assert ran == []


def test_arguments_with_a_json_form_reach_the_function_as_they_are(tmp_path):
    ui = approve_all()
    kept = []

    @requires_approval()
    def keep(path):
        kept.append(path)

    run_tool(keep, {'path': tmp_path}, ApprovalController(ui=ui))

    assert kept == [tmp_path]
    assert ui.requests[0].args == {'path': str(tmp_path)}


# The tool is asked again, because what the approver saw must still be true.
def test_approval_is_void_once_what_it_is_bound_to_changes():
    content, sink = {'a.txt': 'harmless'}, ListSink()
    tool = Checked(
        lambda ctx: ApprovalRequest(tool_name='checked', args=ctx.args, bound_to={'content': content[ctx.args['path']]})
    )

    def approves_while_it_changes(request):
        content['a.txt'] = 'something else'
        return True

    controller = ApprovalController(ui=RecordingUI(approves_while_it_changes), audit=sink)

    with pytest.raises(ApprovalDenied, match='changed after it was approved'):
        run_tool(tool, {'path': 'a.txt'}, controller)
    assert tool.ran == []
    assert sink.outcomes() == ['refused']

    assert run_tool(tool, {'path': 'a.txt'}, controller) == 'ran'


def test_call_that_the_tool_blocks_after_the_approval_does_not_run():
    verdicts = [ApprovalResult.needs_approval(), ApprovalResult.blocked('too late')]
    tool, sink = Checked(lambda ctx: verdicts.pop(0)), ListSink()

    with pytest.raises(ApprovalBlocked, match='too late'):
        run_tool(tool, {}, ApprovalController(ui=approve_all(), audit=sink))

    assert tool.ran == []
    assert [entry.get('outcome', entry.get('note')) for entry in sink.entries] == [None, 'refused', 'too late']


def test_binding_must_hold_also_after_changed_arguments():
    seen = {'content': 'old'}
    ran = []

    def write(path):
        ran.append(path)

    write.check_approval = lambda ctx: ApprovalRequest(tool_name='write', args=ctx.args, bound_to=dict(seen))

    def change(request):
        seen['content'] = 'new'
        return ApprovalDecision(approved=True, override_args={'path': 'b'})

    with pytest.raises(ApprovalDenied, match='changed after it was approved'):
        run_tool(write, {'path': 'a'}, ApprovalController(ui=RecordingUI(change)))

    assert ran == []


def test_changed_arguments_run_with_what_the_tool_declares_for_them():
    ran = []

    def write(path):
        ran.append(path)

    write.check_approval = lambda ctx: ApprovalRequest(
        tool_name='write', args=ctx.args, bound_to={'inode': len(ctx.args['path'])}
    )
    change = ApprovalDecision(approved=True, override_args={'path': 'longer'})

    run_tool(write, {'path': 'a'}, ApprovalController(ui=RecordingUI(change)))

    assert ran == ['longer']


def test_an_iterator_reaches_the_function_after_it_was_judged():
    ran, ui = [], RecordingUI(True)

    def act(names):
        ran.append(list(names))

    run_tool(act, {'names': iter(['a', 'b'])}, ApprovalController(ui=ui), default='required')

    assert ui.requests[0].args == {'names': ['a', 'b']}
    assert ran == [['a', 'b']]


def test_secrets_are_hidden_bound_and_kept_when_the_approver_edits():
    ran: list[str] = []

    def sign_in(user: str, password: SecretStr) -> None:
        ran.append(f'{user} {password.get_secret_value()}')

    def run(*answers: Any) -> None:
        controller = ApprovalController(ui=ScriptedUI(list(answers)))
        run_tool(sign_in, {'user': 'u', 'password': SecretStr('x')}, controller, default='required')

    run('s')
    run(ApprovalDecision(approved=True, override_args={'user': 'other', 'password': '[hidden]'}))
    with pytest.raises(ApprovalDenied, match='hidden value'):
        run(ApprovalDecision(approved=True, override_args={'user': '[hidden]'}))

    assert ran == ['u x', 'other x']


def test_arguments_of_an_approver_that_cannot_be_used_leave_no_approval_open_in_the_log():
    sink = ListSink()

    def sign_in(password: SecretStr) -> None:
        raise AssertionError

    answer = ApprovalDecision(approved=True, override_args={'user': '[hidden]'})
    controller = ApprovalController(ui=ScriptedUI([answer]), audit=sink)

    with pytest.raises(ApprovalDenied, match='hidden value'):
        run_tool(sign_in, {'password': SecretStr('x')}, controller, default='required')

    decision, outcome = sink.entries
    assert (decision['approved'], outcome['outcome']) == (True, 'refused')
    assert outcome['digest'] == decision['digest']


def changing(*edits):
    return ScriptedUI([ApprovalDecision(approved=True, override_args=edit) for edit in edits])


@pytest.mark.parametrize(
    ('edit', 'problem'),
    [
        ({'pth': 'b'}, "argument:? '(path|pth)'"),
        ({'path': 'b', 'pth': 'b'}, "unexpected keyword argument 'pth'"),
        ({}, "argument: 'path'"),
    ],
)
@pytest.mark.parametrize('function', [delete, delete_later])
def test_an_edit_that_does_not_fit_the_parameters_is_asked_about_again(function, edit, problem):
    ui = changing(edit, {'path': 'c'})

    assert run_tool(function, {'path': 'a'}, ApprovalController(ui=ui)).startswith('deleted c')
    rejected = ui.requests[1].rejected_edit
    assert rejected.args == edit
    assert re.search(problem, rejected.problem)
    ui.assert_done()


def test_an_edit_that_never_fits_is_a_denial_and_neither_the_check_nor_the_function_sees_it():
    tool = Checked(lambda ctx: ApprovalRequest(tool_name=ctx.tool_name, args={'path': ctx.args['path']}))
    tool.__signature__ = inspect.signature(delete)

    with pytest.raises(ApprovalDenied, match="The approver's arguments are invalid"):
        run_tool(
            tool,
            {'path': 'a'},
            ApprovalController(ui=RecordingUI(ApprovalDecision(approved=True, override_args={'pth': 'b'}))),
        )
    assert tool.ran == []


@pytest.mark.parametrize('signature', ['unreadable', None])
def test_an_edit_reaches_a_function_whose_parameters_are_unknown(signature):
    tool = Checked(lambda ctx: ApprovalRequest(tool_name=ctx.tool_name, args=ctx.args))
    tool.__signature__ = signature

    assert run_tool(tool, {'path': 'a'}, ApprovalController(ui=changing({'pth': 'b'}))) == 'ran'
    assert tool.ran == [{'pth': 'b'}]


def test_an_edit_must_fit_the_parameters_of_the_wrapper_and_not_of_the_wrapped_function():
    @functools.wraps(delete)
    def with_folder(**args):
        return delete(f'folder/{args["name"]}')

    assert run_tool(with_folder, {'name': 'a'}, ApprovalController(ui=changing({'name': 'b'}))) == 'deleted folder/b'


@pytest.mark.parametrize('args', [['a'], 'a', None, 1])
def test_arguments_that_are_no_mapping_are_refused_by_name(args):
    ui = approve_all()

    with pytest.raises(TypeError, match=f'`args` must be a mapping .*, not a value of type {type(args).__name__}'):
        run_tool(delete, args, ApprovalController(ui=ui))
    assert ui.requests == []
