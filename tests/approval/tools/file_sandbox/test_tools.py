"""The tools under approval, without a framework."""

import asyncio
import contextvars
import os

import pytest
from tool_approval.testing import RecordingUI, ScriptedUI
from tool_approval.tools.file_sandbox import FileToolError, FileTools

from tool_approval import (
    ApprovalBlocked,
    ApprovalController,
    ApprovalDecision,
    ApprovalDenied,
    ApprovalRequest,
    execute_tool,
)

from .world import context, do

SESSION = ApprovalDecision(approved=True, remember='session')


def execute(tools, controller, name, **args):
    return asyncio.run(execute_tool(tools[name], name, args, controller))


def test_operation_that_needs_no_approval_does_not_ask(world):
    ui = RecordingUI('never')

    told = execute(world.tools(), ApprovalController(ui=ui), 'write_file', path='cache/x', content='new')

    assert told == 'Wrote cache:x (3 bytes).'
    assert ui.requests == []


def test_forbidden_operation_is_blocked_in_every_mode(world):
    for mode in ('interactive', 'approve_all', 'strict'):
        with pytest.raises(ApprovalBlocked, match=r'ref:r\.md cannot be changed: ref is read-only'):
            execute(world.tools(), ApprovalController(mode), 'write_file', path='ref/r.md', content='new')


def test_approved_operation_is_done_and_denied_one_is_not(world):
    tools = world.tools()
    with pytest.raises(ApprovalDenied, match='not now'):
        execute(tools, ApprovalController(ui=RecordingUI('not now')), 'write_file', path='notes/a.txt', content='new')
    assert (world.ws / 'notes/a.txt').read_text() == 'a\n'

    execute(tools, ApprovalController(ui=RecordingUI(True)), 'write_file', path='notes/a.txt', content='new')

    assert (world.ws / 'notes/a.txt').read_text() == 'new'


def test_a_call_that_was_denied_lets_no_direct_call_run(world):
    tools = world.tools()
    arguments = {'path': 'notes/a.txt', 'content': 'new'}

    async def main():
        with pytest.raises(ApprovalDenied):
            await execute_tool(tools['write_file'], 'write_file', arguments, ApprovalController('strict'))
        with pytest.raises(PermissionError, match='Approval was not requested'):
            tools['write_file'](**arguments)

    asyncio.run(main())

    assert (world.ws / 'notes/a.txt').read_text() == 'a\n'


def test_a_request_says_which_file_and_nothing_of_its_content_is_remembered(world):
    request = world.tools().check_approval(context('write_file', path='notes/./sub/b.txt', content='SECRET'))

    assert request.description == 'Write notes:sub/b.txt'
    assert request.reason == 'Changes in notes need approval.'
    assert request.payload == {'root': 'notes', 'path': 'sub/b.txt'}
    assert [(option.kind, option.label, option.payload) for option in request.remember_options] == [
        ('file', 'write_file for notes:sub/b.txt, with any content', request.payload),
        ('directory', 'write_file for everything directly in notes:sub/', {'directories': [['notes', 'sub']]}),
        ('root', 'write_file for everything in notes', {'roots': ['notes']}),
    ]
    assert set(request.bound_to['files']) == {'notes:sub/b.txt'}


@pytest.mark.parametrize(
    ('name', 'path', 'brief'),
    [
        ('write_file', 'notes/a.txt', 'writes to notes/a.txt'),
        ('edit_file', 'notes/a.txt', 'edits of notes/a.txt'),
        ('edit_file', 'notes/a n deny.txt', ''),
    ],
)
def test_one_key_offers_changes_of_the_same_file(world, name, path, brief):
    request = world.tools().check_approval(context(name, path=path, content='x'))

    assert request.remember_options[0].brief == brief
    assert [option.brief for option in request.remember_options[1:]] == ['', '']


def test_an_edit_that_would_change_nothing_is_answered_and_not_asked(world):
    nobody = ApprovalController(ui=ScriptedUI([]))
    tools = world.tools()
    same = {'path': 'notes/a.txt', 'old_text': 'b', 'new_text': 'b'}

    for arguments, why in (
        (same, 'nothing was changed: `old_text` and `new_text` are the same'),
        ({**same, 'new_text': 'c'}, 'nothing was changed: `old_text` does not occur in the file'),
        ({**same, 'path': 'notes/none.txt', 'new_text': 'c'}, 'it does not exist'),
    ):
        with pytest.raises(FileToolError, match=why):
            execute(tools, nobody, 'edit_file', **arguments)

    assert (world.ws / 'notes/a.txt').read_text() == 'a\n'
    with pytest.raises(FileToolError, match='are the same'):
        execute(tools, nobody, 'edit_file', **{**same, 'path': 'cache/c.dat'})


def test_an_edit_that_nobody_was_asked_about_changes_nothing_later(world):
    tools = world.tools()
    arguments = {'path': 'notes/a.txt', 'old_text': 'b', 'new_text': 'c'}
    assert tools.check_approval(context('edit_file', **arguments)) is None
    (world.ws / 'notes/a.txt').write_text('b\n')

    with pytest.raises(PermissionError, match='No approval was needed when the call was judged'):
        tools.run('edit_file', arguments)

    assert (world.ws / 'notes/a.txt').read_text() == 'b\n'


def test_content_of_a_file_cannot_be_guessed_by_edits(world):
    tools = world.tools()
    arguments = {'path': 'priv/p.txt', 'old_text': 'no such text', 'new_text': 'x'}

    assert tools.check_approval(context('read_file', path='priv/p.txt')) is not None
    assert tools.check_approval(context('edit_file', **arguments)) is not None
    # This says nothing of the file.
    assert tools.check_approval(context('edit_file', **{**arguments, 'new_text': 'no such text'})) is None


def test_content_may_be_left_out_where_only_the_decision_is_wanted(world):
    assert isinstance(world.tools().check_approval(context('edit_file', path='notes/a.txt')), ApprovalRequest)


def test_both_ends_of_a_move_are_in_its_request(world):
    request = world.tools().check_approval(context('move', path='cache/c.dat', dest='notes/sub/c.txt'))

    assert request.description == 'Move cache:c.dat to notes:sub/c.txt'
    assert request.payload == {'root': 'cache', 'path': 'c.dat', 'dest_root': 'notes', 'dest_path': 'sub/c.txt'}
    assert request.remember_options[1].payload == {'roots': ['cache', 'notes']}
    assert request.bound_to['files']['notes:sub/c.txt'] == 'missing'


@pytest.mark.parametrize(
    ('option', 'covered', 'asked_again'),
    [
        ('exact', ['notes/sub/b.txt', 'notes/sub/../sub/b.txt'], ['notes/sub/c.txt', 'notes/a.txt', 'priv/b.txt']),
        ('directory', ['notes/sub/c.txt'], ['notes/a.txt', 'notes/sub/deeper/x.txt', 'priv/sub']),
        ('root', ['notes/a.txt', 'notes/sub/deeper/x.txt'], ['priv/b.txt']),
    ],
)
def test_what_is_remembered_covers_new_content_and_no_more_than_was_said(world, option, covered, asked_again):
    ui = ScriptedUI([SESSION.model_copy(update={'remember_option': option}), *['no'] * len(asked_again)])
    controller, tools = ApprovalController(ui=ui), world.tools()
    execute(tools, controller, 'write_file', path='notes/sub/b.txt', content='1')

    for path in covered:
        execute(tools, controller, 'write_file', path=path, content='2')
    assert len(ui.requests) == 1
    for path in asked_again:
        with pytest.raises(ApprovalDenied):
            execute(tools, controller, 'write_file', path=path, content='3')
    with pytest.raises(ApprovalDenied):
        execute(tools, ApprovalController(ui=RecordingUI('no'), memory=controller.memory), 'delete', path='notes/a.txt')


def test_approval_remembered_for_a_file_does_not_cover_a_directory_of_its_name(world):
    controller, tools = ApprovalController(ui=ScriptedUI([SESSION, 'no'])), world.tools()
    execute(tools, controller, 'delete', path='notes/sub/b.txt')
    (world.ws / 'notes/sub/b.txt/deep').mkdir(parents=True)

    with pytest.raises(ApprovalDenied):
        execute(tools, controller, 'delete', path='notes/sub/b.txt')

    assert (world.ws / 'notes/sub/b.txt/deep').exists()


def test_a_file_with_more_names_is_not_covered_by_what_was_remembered_for_its_root(world):
    everywhere = SESSION.model_copy(update={'remember_option': 'root'})
    controller, tools = ApprovalController(ui=ScriptedUI([everywhere, 'no'])), world.tools()
    execute(tools, controller, 'read_file', path='priv/p.txt')
    os.link(world.top / 'outside/secret.txt', world.ws / 'priv/h.txt')

    with pytest.raises(ApprovalDenied):
        execute(tools, controller, 'read_file', path='priv/h.txt')


class Changing:
    """A person during whose thinking something happens."""

    def __init__(self, act):
        self.act = act

    def choose(self, request, *, mode):
        self.act()
        return ApprovalDecision(approved=True)


@pytest.mark.parametrize(
    ('name', 'arguments'),
    [
        ('write_file', {'path': 'notes/a.txt', 'content': 'new'}),
        ('edit_file', {'path': 'notes/a.txt', 'old_text': 'a', 'new_text': 'new'}),
        ('delete', {'path': 'notes/a.txt'}),
        ('move', {'path': 'notes/a.txt', 'dest': 'notes/z.txt'}),
        ('move', {'path': 'cache/c.dat', 'dest': 'notes/a.txt'}),
        ('copy', {'path': 'cache/c.dat', 'dest': 'notes/a.txt'}),
        ('copy', {'path': 'notes/a.txt', 'dest': 'priv/a.txt'}),
    ],
)
def test_a_file_that_changed_since_it_was_shown_makes_the_approval_void(world, name, arguments):
    place = world.ws / 'notes/a.txt'
    tools = world.tools()
    controller = ApprovalController(ui=Changing(lambda: place.write_text('another\n')), presenters=tools.presenters)
    if arguments.get('dest') == 'notes/a.txt':
        (world.ws / 'cache/c.dat').rename(world.ws / 'cache/c.txt')
        arguments = {**arguments, 'path': 'cache/c.txt'}

    with pytest.raises(ApprovalDenied, match='The call changed after it was approved, so it was not run'):
        execute(tools, controller, name, **arguments)

    assert place.read_text() == 'another\n'


def test_a_directory_that_changed_since_it_was_shown_is_not_deleted(world):
    new = world.ws / 'notes/sub/new.txt'
    controller = ApprovalController(ui=Changing(lambda: new.write_text('new')))

    with pytest.raises(ApprovalDenied, match='changed'):
        execute(world.tools(), controller, 'delete', path='notes/sub')

    assert new.exists()


def test_a_link_that_is_bent_after_the_check_leads_nowhere(world):
    tools = world.tools()
    link = world.ws / 'cache/l'
    link.symlink_to('c.dat')
    assert tools.check_approval(context('write_file', path='cache/l', content='new')) is None
    link.unlink()
    link.symlink_to('../notes/a.txt')

    with pytest.raises(PermissionError, match='has changed since the call was judged'):
        tools.run('write_file', {'path': 'cache/l', 'content': 'new'})

    assert (world.ws / 'notes/a.txt').read_text() == 'a\n'


def test_call_that_needs_approval_since_its_check_does_not_run(world):
    tools = world.tools()
    assert tools.check_approval(context('read_file', path='cache/c.dat')) is None
    (world.ws / 'cache/c.dat').unlink()
    os.link(world.top / 'outside/secret.txt', world.ws / 'cache/c.dat')

    with pytest.raises(PermissionError, match='No approval was needed when the call was judged'):
        tools.run('read_file', {'path': 'cache/c.dat'})


def test_without_a_check_only_what_needs_no_approval_runs(world):
    tools = world.tools()

    assert tools.run('read_file', {'path': 'notes/a.txt'}) == 'a\n'
    with pytest.raises(PermissionError, match='Approval was not requested'):
        tools.run('write_file', {'path': 'notes/a.txt', 'content': 'new'})


def test_a_check_lets_one_call_run(world):
    tools = world.tools()
    arguments = {'path': 'notes/a.txt', 'content': 'new'}

    do(tools, 'write_file', **arguments)

    with pytest.raises(PermissionError, match='Approval was not requested'):
        tools.run('write_file', arguments)


@pytest.mark.parametrize('other', [{'content': 'other'}, {'path': 'notes/b.txt'}])
def test_a_check_is_of_just_its_call(world, other):
    tools = world.tools()
    arguments = {'path': 'notes/a.txt', 'content': 'new'}
    tools.check_approval(context('write_file', **arguments))

    with pytest.raises(PermissionError, match='Approval was not requested'):
        tools.run('write_file', {**arguments, **other})
    with pytest.raises(PermissionError, match='Approval was not requested'):
        world.tools().run('write_file', arguments)
    with pytest.raises(PermissionError, match='Approval was not requested'):
        contextvars.Context().run(tools.run, 'write_file', arguments)
    tools.forget()
    with pytest.raises(PermissionError, match='Approval was not requested'):
        tools.run('write_file', arguments)


@pytest.mark.parametrize(
    ('name', 'arguments'),
    [
        ('read_file', {}),
        ('read_file', {'path': 7}),
        ('read_file', {'path': ['a']}),
        ('move', {'path': 'cache/c.dat'}),
        ('move', {'path': 'cache/c.dat', 'dest': 7}),
        ('chmod', {'path': 'cache/c.dat'}),
        ('read_file', {'path': 'cache/c.dat', 'dest': 'cache/x'}),
        ('write_file', {'path': 'cache/x', 'content': float('nan')}),
    ],
)
def test_arguments_that_cannot_be_judged_are_refused(world, name, arguments):
    with pytest.raises(PermissionError):
        world.tools().check_approval(context(name, **arguments))


@pytest.mark.parametrize(
    ('name', 'arguments', 'problem'),
    [
        ('write_file', {'path': 'cache/x'}, "'content' must be a string"),
        ('write_file', {'path': 'cache/x', 'content': b'x'}, "'content' must be a string"),
        ('edit_file', {'path': 'cache/c.dat', 'old_text': 'c', 'new_text': 'd', 'replace_all': 'no'}, 'true or false'),
        ('read_file', {'path': 'cache/c.dat', 'mode': 'rb'}, "no parameter 'mode'"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_before_anything_happens(world, name, arguments, problem):
    tools = world.tools()

    with pytest.raises(PermissionError, match=problem):
        tools.run(name, arguments)
    with pytest.raises(PermissionError, match=problem):
        tools.present(ApprovalRequest(tool_name=name, args=arguments))


def test_a_prefix_stands_before_each_name(world):
    tools = FileTools(world.sandbox(), prefix='fs_')

    assert set(tools.presenters) == set(tools.names)
    assert tools.names[0] == 'fs_read_file'
    assert do(tools, 'fs_read_file', path='notes/a.txt') == 'a\n'
    for name in ('read_file', 'fs_chmod'):
        with pytest.raises(PermissionError, match='There is no file tool'):
            tools.check_approval(context(name, path='notes/a.txt'))
        with pytest.raises(KeyError):
            tools[name]


def test_tool_judges_its_call_under_any_name(world):
    tools = world.tools()

    with pytest.raises(ApprovalBlocked):
        asyncio.run(execute_tool(tools['delete'], 'read_file', {'path': 'ref/r.md'}, ApprovalController('approve_all')))
    with pytest.raises(FileToolError, match='does not exist'):
        execute(tools, ApprovalController(), 'read_file', path='notes/none.txt')


def test_an_unreadable_file_blocks_what_would_have_to_show_it(world, monkeypatch):
    def fail(*place):
        raise OSError(13, 'Permission denied')

    monkeypatch.setattr('tool_approval.tools.file_sandbox.rules.state_of', fail)

    with pytest.raises(PermissionError, match=r'notes:a\.txt cannot be read'):
        world.tools().check_approval(context('write_file', path='notes/a.txt'))
