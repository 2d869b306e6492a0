"""Symbolic links and hard links."""

import os

import pytest
from tool_approval.tools.file_sandbox import FileSandbox, FileToolError

from .world import BASE


def test_a_link_within_a_root_is_read_through(world):
    (world.ws / 'notes/l.txt').symlink_to('sub/b.txt')
    (world.ws / 'notes/folder').symlink_to('sub')

    assert world.decide('read_file', 'notes/l.txt') == 'allow'
    assert world.do('read_file', 'notes/folder/b.txt') == 'b\n'
    assert world.do('list_files', 'notes/folder') == 'notes:sub:\nb.txt (2 bytes)'


def test_a_link_is_written_through_and_stays_a_link(world):
    (world.ws / 'notes/l.txt').symlink_to('sub/b.txt')

    assert world.do('write_file', 'notes/l.txt', content='new') == 'Replaced notes:sub/b.txt (3 bytes).'
    assert (world.ws / 'notes/l.txt').is_symlink()
    assert (world.ws / 'notes/sub/b.txt').read_text() == 'new'


def test_deleting_a_link_keeps_its_target(world):
    (world.ws / 'cache/l').symlink_to('c.dat')
    (world.ws / 'cache/folder').symlink_to(world.top / 'outside')

    assert world.do('delete', 'cache/l') == 'Deleted cache:l.'
    assert world.do('delete', 'cache/folder') == 'Deleted cache:folder.'
    assert (world.ws / 'cache/c.dat').exists()
    assert (world.top / 'outside/secret.txt').exists()


def test_deleting_a_directory_deletes_links_and_not_what_they_lead_to(world):
    (world.ws / 'cache/d/e').mkdir(parents=True)
    (world.ws / 'cache/d/e/out').symlink_to(world.top / 'outside')
    (world.ws / 'cache/d/file').symlink_to(world.top / 'outside/secret.txt')

    world.do('delete', 'cache/d')

    assert not (world.ws / 'cache/d').exists()
    assert (world.top / 'outside/secret.txt').exists()
    assert (world.top / 'outside/dir').exists()


def test_links_on_the_way_to_the_working_directory_and_to_a_root_elsewhere_are_followed(world):
    (world.top / 'link').symlink_to('ws')
    (world.top / 'far').symlink_to('outside')
    sandbox = FileSandbox({'paths': {**BASE['paths'], 'far': {'root': '../far'}}}, world.top / 'link')

    assert sandbox.decide('read_file', 'notes/a.txt').outcome == 'allow'
    assert sandbox.decide('read_file', str(world.top / 'link/notes/a.txt')).outcome == 'allow'
    assert sandbox.decide('read_file', '../outside/secret.txt').files == ('far:secret.txt',)
    assert sandbox.decide('read_file', str(world.top / 'far/secret.txt')).files == ('far:secret.txt',)


def test_a_root_named_by_its_absolute_place_is_the_same(world):
    (world.top / 'link').symlink_to('ws')
    config = {'paths': {'notes': {'root': str(world.top / 'link/notes')}}}

    assert FileSandbox(config, world.top / 'link').decide('read_file', 'notes/a.txt').outcome == 'allow'


@pytest.mark.parametrize(
    ('operation', 'arguments'),
    [('write_file', {'content': 'new'}), ('edit_file', {'old_text': 'SECRET', 'new_text': 'new'})],
)
def test_changing_a_file_leaves_its_other_names_as_they_are(world, operation, arguments):
    os.link(world.top / 'outside/secret.txt', world.ws / 'cache/h')

    world.do(operation, 'cache/h', **arguments)

    assert (world.top / 'outside/secret.txt').read_text() == 'SECRET\n'
    assert (world.ws / 'cache/h').read_text().startswith('new')


def test_replacing_by_copy_and_move_leaves_other_names_as_they_are(world):
    for name in ('h', 'i'):
        os.link(world.top / 'outside/secret.txt', world.ws / 'cache' / name)

    world.do('copy', 'cache/c.dat', 'cache/h')
    world.do('move', 'cache/c.dat', 'cache/i')

    assert (world.top / 'outside/secret.txt').read_text() == 'SECRET\n'
    assert (world.ws / 'cache/i').read_text() == 'c\n'


def test_a_link_is_no_file_to_edit_or_copy_when_it_dangles(world):
    (world.ws / 'cache/l').symlink_to('missing')

    with pytest.raises(FileToolError, match='cache:missing: it does not exist'):
        world.do('read_file', 'cache/l')
