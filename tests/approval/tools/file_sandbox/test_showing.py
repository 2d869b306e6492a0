"""What a person is shown."""

import os

import pytest
from tool_approval.tools.file_sandbox import FileToolError, showing

from .world import BASE, context

ASKING = {
    'paths': {
        name: {**each, 'approval': {'write': 'required', 'read': 'required'}} for name, each in BASE['paths'].items()
    }
}
for each in ASKING['paths'].values():
    each.pop('write_approval', None)
    each.pop('read_approval', None)


def show(world, name, **args):
    tools = world.tools(ASKING)
    return tools.present(tools.check_approval(context(name, **args)))


def test_an_overwrite_is_shown_as_a_diff(world):
    (world.ws / 'notes/a.txt').write_text('one\ntwo\nthree')

    shown = show(world, 'write_file', path='notes/a.txt', content='one\n2\nthree\n')

    metadata = {'path': 'notes/a.txt', 'is_usual': True}
    assert (shown.type, shown.language, shown.metadata) == ('diff', 'diff', metadata)
    assert (
        shown.content
        == """\
--- notes/a.txt
+++ notes/a.txt
@@ -1,3 +1,3 @@
 one
-two
-three
\\ No newline at end of file
+2
+three
"""
    )


def test_an_edit_is_shown_as_a_diff(world):
    shown = show(world, 'edit_file', path='notes/a.txt', old_text='a', new_text='b')

    assert shown.content == '--- notes/a.txt\n+++ notes/a.txt\n@@ -1 +1 @@\n-a\n+b\n'
    assert shown.metadata == {'path': 'notes/a.txt', 'is_usual': True, 'defaults': {'replace_all': False}}


def test_a_new_file_is_shown_with_its_language(world):
    shown = show(world, 'write_file', path='cache/x.py', content='print()\n')

    assert (shown.type, shown.content, shown.language) == ('file_content', 'print()\n', 'python')
    assert shown.metadata == {'path': 'cache/x.py', 'is_new': True, 'is_usual': True}


def test_only_line_feeds_end_lines(world):
    (world.ws / 'notes/a.txt').write_bytes(b'a\x0cb\r\n')

    shown = show(world, 'write_file', path='notes/a.txt', content='a\x0cc\r\n')

    assert shown.content.endswith('-a\x0cb\r\n+a\x0cc\r\n')


@pytest.mark.parametrize(
    ('name', 'arguments', 'content'),
    [
        ('read_file', {'path': 'priv/p.txt'}, 'Reads priv:p.txt'),
        ('list_files', {'path': 'priv'}, 'Lists the names in priv:'),
        ('make_directory', {'path': 'cache/d'}, 'Creates the directory cache:d'),
        ('move', {'path': 'cache/c.dat', 'dest': 'priv/x'}, 'Moves cache:c.dat (2 bytes) to priv:x'),
        (
            'move',
            {'path': 'notes/sub', 'dest': 'priv/x'},
            'Moves the directory notes:sub/ and everything in it to priv:x',
        ),
        ('copy', {'path': 'ref/r.md', 'dest': 'priv/x'}, 'Copies ref:r.md (2 bytes) to priv:x'),
        ('copy', {'path': 'ref/x.md', 'dest': 'priv/x'}, 'Copies ref:x.md (missing) to priv:x'),
        ('delete', {'path': 'cache/none'}, 'Deletes cache:none (missing)'),
        ('delete', {'path': 'cache/link'}, 'Deletes the link cache:link, not its target'),
        ('delete', {'path': 'cache/bytes'}, 'Deletes cache:bytes (2 bytes)'),
        ('delete', {'path': 'notes/sub'}, 'Deletes the directory notes:sub/ and everything in it (1 entries):\nb.txt'),
        (
            'edit_file',
            {'path': 'cache/none', 'old_text': 'a', 'new_text': 'b'},
            ('The edit would change nothing: cache:none (missing) is not text that can be edited.'),
        ),
        (
            'edit_file',
            {'path': 'cache/c.dat', 'old_text': 'x', 'new_text': 'b'},
            (
                'The edit would change nothing in cache:c.dat:'
                ' `old_text` does not occur in the file; it must match exactly, including blanks and line ends.'
            ),
        ),
        (
            'write_file',
            {'path': 'cache/bytes', 'content': 'x'},
            'Replaces cache:bytes (2 bytes) with 1 bytes in 1 lines:\nx',
        ),
        (
            'copy',
            {'path': 'cache/bytes', 'dest': 'cache/c.dat'},
            ('Copies cache:bytes (2 bytes) to cache:c.dat, which replaces cache:c.dat (2 bytes)'),
        ),
    ],
)
def test_operation_without_a_diff_is_shown_as_a_sentence(world, name, arguments, content):
    (world.ws / 'cache/link').symlink_to(world.top / 'outside/secret.txt')
    (world.ws / 'cache/bytes').write_bytes(b'\xff\0')

    shown = show(world, name, **arguments)

    assert (shown.type, shown.content) == ('text', content)


def test_file_replaced_by_a_move_or_copy_is_shown_as_a_diff(world):
    shown = show(world, 'copy', path='ref/r.md', dest='notes/a.txt')

    assert shown.content == (
        'Copies ref:r.md (2 bytes) to notes:a.txt, which is replaced\n'
        '--- notes/a.txt\n+++ notes/a.txt\n@@ -1 +1 @@\n-a\n+r\n'
    )


def test_deletion_is_shown(world):
    assert show(world, 'delete', path='notes/a.txt').content == '--- notes/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n'


def test_an_empty_file_that_goes_does_not_stay_as_it_is(world):
    for name in ('notes/empty.txt', 'notes/void.txt'):
        (world.ws / name).touch()

    assert show(world, 'delete', path='notes/empty.txt').content == 'Deletes notes:empty.txt (0 bytes)'
    moved = show(world, 'move', path='notes/empty.txt', dest='notes/void.txt').content
    assert moved == 'Moves notes:empty.txt (0 bytes) to notes:void.txt, which is replaced'


@pytest.mark.parametrize(('path', 'name'), [('l/a.txt', 'notes:a.txt'), ('notes/../notes/a.txt', 'notes:a.txt')])
def test_a_path_that_leads_elsewhere_than_it_says_is_told_by_where_it_leads(world, path, name):
    (world.ws / 'l').symlink_to('notes')

    assert show(world, 'write_file', path=path, content='x').metadata['path'] == name
    assert show(world, 'write_file', path=str(world.ws / 'notes/a.txt'), content='x').metadata['path'] == name


def test_file_with_rules_of_its_own_is_not_usual(world):
    os.link(world.ws / 'notes/a.txt', world.ws / 'notes/b.txt')

    assert 'is_usual' not in show(world, 'write_file', path='notes/a.txt', content='x').metadata


def test_write_without_a_change_is_shown_as_a_sentence(world):
    assert show(world, 'write_file', path='notes/a.txt', content='a\n').content == 'notes:a.txt stays as it is.'


@pytest.mark.parametrize('old', ['x\n' * 4000, 'x' * 150_000])
def test_change_too_long_for_a_diff_is_summarised(world, old):
    (world.ws / 'notes/a.txt').write_text(old)
    new = old.replace('x', 'y')

    shown = show(world, 'write_file', path='notes/a.txt', content=new)

    assert shown.type == 'text'
    assert shown.metadata == {'path': 'notes/a.txt', 'full_content': new, 'is_summary': True, 'is_usual': True}
    first, second, *_ = shown.content.split('\n')
    assert first.startswith(f'Changes notes:a.txt, which is too long for a diff. Old size: {len(old)} bytes in ')
    assert second.startswith('y')
    assert len(shown.content) < 9000


def test_a_long_text_that_goes_is_summed_up(world):
    (world.ws / 'notes/a.txt').write_text('x\n' * 6000)

    shown = show(world, 'delete', path='notes/a.txt')

    assert shown.content == 'Deletes notes:a.txt, which is too long for a diff. Old size: 12000 bytes in 6000 lines'


def test_file_too_long_to_read_is_shown_by_its_size(world):
    (world.ws / 'cache/x').write_text('x' * 1_000_001)

    assert show(world, 'delete', path='cache/x').content == 'Deletes cache:x (1000001 bytes)'


def test_a_long_list_of_what_goes_is_cut(world, monkeypatch):
    monkeypatch.setattr(showing, 'LISTED', 2)
    (world.ws / 'cache/d').mkdir()
    for name in 'abc':
        (world.ws / 'cache/d' / name).touch()

    assert show(world, 'delete', path='cache/d').content.split('\n')[1:] == ['a', 'b', '... [1 more]']


def test_names_in_a_directory_cannot_forge_a_line(world):
    (world.ws / 'cache/d').mkdir()
    (world.ws / 'cache/d/a\nb').touch()

    assert show(world, 'delete', path='cache/d').content.split('\n')[1:] == [r'a\nb']


def test_nothing_is_shown_of_a_file_that_changed_since_the_check(world):
    tools = world.tools()
    request = tools.check_approval(context('write_file', path='notes/a.txt', content='new'))
    (world.ws / 'notes/a.txt').write_text('another')

    with pytest.raises(FileToolError, match='the content has changed'):
        tools.present(request)


def test_nothing_is_shown_of_a_place_that_a_link_leads_from_by_now(world):
    tools = world.tools()
    request = tools.check_approval(context('read_file', path='priv/p.txt'))
    (world.ws / 'priv/p.txt').unlink()
    os.symlink('../notes/a.txt', world.ws / 'priv/p.txt')

    with pytest.raises(FileToolError, match='the content has changed'):
        tools.present(request)
