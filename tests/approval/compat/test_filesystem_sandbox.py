"""Acceptance: `pydantic-ai-filesystem-sandbox` 0.9.0 as published, on this host, in our `ApprovalToolset`."""

import base64
import hashlib
import importlib
import sys
from importlib.metadata import distribution

import pytest
from pydantic_ai import Agent
from tool_approval.compat.blocking_approval import (
    ApprovalBlocked,
    ApprovalController,
    ApprovalDenied,
    ApprovalToolset,
    install_alias,
    uninstall_alias,
)

from tests.loop.scripted import call, returns, scripted

from .wrapped import NO, SESSION, YES, Asked

SANDBOX = 'pydantic_ai_filesystem_sandbox'


@pytest.fixture(scope='module')
def sandbox():
    """The package; it imports the old name of ours, and cannot be changed."""
    install_alias()
    yield importlib.import_module(SANDBOX)
    uninstall_alias()
    for name in [name for name in sys.modules if name.split('.')[0] == SANDBOX]:
        del sys.modules[name]


@pytest.fixture
def inner(sandbox, tmp_path):
    """`/notes` can be read, and written with approval; `/private` is read with approval; nothing else is there."""
    notes, private = tmp_path / 'notes', tmp_path / 'private'
    for folder in (notes, private):
        folder.mkdir()
        (folder / 'old.txt').write_text('old')
    (tmp_path / 'outside.txt').write_text('outside')
    config = sandbox.SandboxConfig(
        mounts=[
            sandbox.Mount(host_path=notes, mount_point='/notes', mode='rw'),
            sandbox.Mount(host_path=private, mount_point='/private', mode='ro', read_approval=True),
        ]
    )
    return sandbox.ApprovableFileSystemToolset(sandbox.Sandbox(config), id='files')


def run(toolset, *responses):
    result = Agent(scripted(*responses, 'done'), toolsets=[toolset]).run_sync('Go.')
    assert result.output == 'done'
    return [content for content, _ in returns(result.all_messages()).values()]


def write(path, content='new', tool_call_id='w'):
    return [call('write_file', tool_call_id, path=path, content=content)]


def read(path):
    return [call('read_file', 'r', path=path)]


def test_the_package_is_the_published_one():
    published = distribution('pydantic-ai-filesystem-sandbox')
    code = [file for file in published.files or [] if file.suffix == '.py']

    assert published.version == '0.9.0'
    assert len(code) == 4
    for file in code:
        digest = hashlib.sha256(file.read_binary()).digest()
        assert base64.urlsafe_b64encode(digest).rstrip(b'=').decode() == file.hash.value


def test_a_write_that_is_approved_is_written(inner, tmp_path):
    asked = Asked(YES)

    (told,) = run(ApprovalToolset(inner, asked), write('/notes/new.txt'))

    assert (tmp_path / 'notes/new.txt').read_text() == 'new'
    assert told == 'Written 3 characters to /notes/new.txt'
    (request,) = asked.requests
    assert request.tool_name == 'write_file'
    assert request.tool_args == {'path': '/notes/new.txt', 'content': 'new'}
    assert request.description == 'Write 3 chars to /notes/new.txt'


def test_a_write_that_is_denied_is_not_written(inner, tmp_path):
    with pytest.raises(ApprovalDenied, match='not today'):
        run(ApprovalToolset(inner, Asked(NO)), write('/notes/old.txt'))

    assert (tmp_path / 'notes/old.txt').read_text() == 'old'


@pytest.mark.parametrize(
    'path', ['/outside.txt', '/notes/../outside.txt', '/notes/../../outside.txt', '/private/old.txt']
)
def test_write_outside_of_the_sandbox_is_blocked_without_a_question(inner, tmp_path, path):
    asked = Asked(YES)

    with pytest.raises(ApprovalBlocked):
        run(ApprovalToolset(inner, asked), write(path))

    assert asked.requests == []
    assert (tmp_path / 'outside.txt').read_text() == 'outside'
    assert (tmp_path / 'private/old.txt').read_text() == 'old'


def test_a_read_that_is_pre_approved_is_not_asked_about(inner):
    asked = Asked(NO)

    (told,) = run(ApprovalToolset(inner, asked), read('/notes/old.txt'))

    assert told.content == 'old'
    assert asked.requests == []


def test_a_read_that_needs_approval_is_asked_about_and_can_be_denied(inner):
    approved, denied = Asked(YES), Asked(NO)

    (told,) = run(ApprovalToolset(inner, approved), read('/private/old.txt'))
    with pytest.raises(ApprovalDenied):
        run(ApprovalToolset(inner, denied), read('/private/old.txt'))

    assert told.content == 'old'
    assert approved.descriptions == denied.descriptions == ['Read from /private/old.txt']


def test_an_approval_for_the_session_covers_the_same_write_and_no_other(inner, tmp_path):
    asked = Asked(SESSION, SESSION, NO)
    controller = ApprovalController(mode='interactive', approval_callback=asked)
    toolset = ApprovalToolset(inner=inner, approval_callback=controller.approval_callback, memory=controller.memory)

    run(
        toolset,
        write('/notes/a.txt'),
        write('/notes/a.txt', tool_call_id='again'),
        write('/notes/b.txt', tool_call_id='b'),
    )
    run(toolset, write('/notes/a.txt'))
    with pytest.raises(ApprovalDenied):
        run(toolset, write('/notes/a.txt', content='newer'))

    assert [request.tool_args['path'] for request in asked.requests] == ['/notes/a.txt', '/notes/b.txt', '/notes/a.txt']
    assert (tmp_path / 'notes/a.txt').read_text() == 'new'


def test_all_its_tools_work_when_approved(inner, tmp_path):
    asked = Asked(YES)

    run(
        ApprovalToolset(inner, asked),
        [call('copy_file', '1', source='/private/old.txt', destination='/notes/copy.txt')],
        [call('edit_file', '2', path='/notes/copy.txt', old_text='old', new_text='edited')],
        [call('move_file', '3', source='/notes/copy.txt', destination='/notes/moved.txt')],
        [call('delete_file', '4', path='/notes/old.txt')],
        [call('list_files', '5', path='/notes')],
    )

    assert asked.names == ['copy_file', 'edit_file', 'move_file', 'delete_file']
    assert [file.name for file in (tmp_path / 'notes').iterdir()] == ['moved.txt']
    assert (tmp_path / 'notes/moved.txt').read_text() == 'edited'


def test_its_plain_toolset_is_asked_about_by_config(sandbox, tmp_path):
    asked = Asked(NO)
    (tmp_path / 'old.txt').write_text('old')
    plain = sandbox.FileSystemToolset.create_default(tmp_path)
    toolset = ApprovalToolset(plain, asked, {'read_file': {'pre_approved': True}})

    (told,) = run(toolset, read('/old.txt'))
    with pytest.raises(ApprovalDenied):
        run(toolset, write('/new.txt'))

    assert told.content == 'old'
    assert asked.names == ['write_file']
    assert not (tmp_path / 'new.txt').exists()


def test_id_and_attributes_of_the_inner_toolset_are_the_wrappers(inner):
    toolset = ApprovalToolset(inner, Asked())

    assert toolset.id == 'files'
    assert toolset.sandbox is inner.sandbox
