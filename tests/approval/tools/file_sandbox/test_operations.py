"""What the eight operations do, and what the model is told."""

import errno
import os
import stat

import pytest
from tool_approval.tools.file_sandbox import FileSandbox, FileToolError, perform

from .world import BASE, OVERLAPPING


def test_a_file_is_read_as_it_is(world):
    (world.ws / 'notes/a.txt').write_bytes('\ufeffä\r\n\r'.encode())

    assert world.do('read_file', 'notes/a.txt') == '\ufeffä\r\n\r'


@pytest.mark.parametrize('content', [b'\x89PNG\r\n\x1a\n\0\0', b'\xff\xfe', b'a\0b', b'\xed\xa0\x80'])
def test_binary_file_is_reported_by_type_and_size(world, content):
    (world.ws / 'cache/x').write_bytes(content)

    told = world.do('read_file', 'cache/x')

    kind = 'image/png' if content.startswith(b'\x89PNG') else 'application/octet-stream'
    assert told == f'cache:x: Binary content: {kind} ({len(content)} bytes)'


def test_a_text_that_is_too_long_is_neither_read_nor_written(world):
    sandbox = world.sandbox(max_bytes=10)
    (world.ws / 'cache/x').write_text('0123456789')
    (world.ws / 'cache/y').write_text('0123456789a')

    with sandbox.open('read_file', 'cache/x') as access:
        assert perform(sandbox, access, {}) == '0123456789'
    with (
        sandbox.open('read_file', 'cache/y') as access,
        pytest.raises(FileToolError, match='cache:y: the file has 11 bytes; at most 10 can be read'),
    ):
        perform(sandbox, access, {})
    with (
        sandbox.open('write_file', 'cache/x') as access,
        pytest.raises(FileToolError, match='the text has 12 bytes; at most 10 can be written'),
    ):
        perform(sandbox, access, {'content': 'ä' * 6})
    assert (world.ws / 'cache/x').read_text() == '0123456789'


@pytest.mark.parametrize(
    ('operation', 'dest', 'arguments'),
    [
        ('read_file', None, {}),
        ('list_files', None, {}),
        ('edit_file', None, {'old_text': 'a', 'new_text': 'b'}),
        ('delete', None, {}),
        ('move', 'cache/y', {}),
        ('copy', 'cache/y', {}),
    ],
)
@pytest.mark.parametrize('path', ['cache/missing', 'cache/missing/deeper'])
def test_missing_file_is_reported(world, operation, dest, arguments, path):
    with pytest.raises(FileToolError, match=f'{path.replace("/", ":", 1)}: it does not exist'):
        world.do(operation, path, dest, **arguments)
    assert not (world.ws / 'cache/y').exists()


def test_names_are_listed_with_their_kind(world):
    (world.ws / 'cache/d').mkdir()
    (world.ws / 'cache/l').symlink_to(world.top / 'outside')
    os.mkfifo(world.ws / 'cache/p')
    (world.ws / 'cache/e\x1b[31m').touch()
    open(os.fsencode(world.ws / 'cache') + b'/\xff', 'w').close()

    told = world.do('list_files', 'cache')

    assert told.split('\n') == [
        'cache:',
        'c.dat (2 bytes)',
        'd/',
        r'e\x1b[31m (0 bytes)',
        'l (link)',
        'p (special)',
        r'\udcff (0 bytes)',
    ]
    assert world.do('list_files', 'cache/d') == 'cache:d is empty.'


def test_a_long_list_is_cut(world):
    for number in range(1005):
        (world.ws / f'cache/{number:04}').touch()

    lines = world.do('list_files', 'cache/').split('\n')

    assert len(lines) == 1002
    assert lines[-1] == '... [6 more]'


def test_a_new_file_and_its_directories_are_made(world):
    assert world.do('write_file', 'cache/x/y/z.txt', content='ä\r\n') == 'Wrote cache:x/y/z.txt (4 bytes).'
    assert (world.ws / 'cache/x/y/z.txt').read_bytes() == 'ä\r\n'.encode()
    assert sorted(os.listdir(world.ws / 'cache/x/y')) == ['z.txt']


def test_a_replaced_file_keeps_its_permissions_but_is_no_program_that_sets_the_user(world):
    place = world.ws / 'cache/c.dat'
    place.chmod(0o4750)

    world.do('write_file', 'cache/c.dat', content='new')

    assert stat.S_IMODE(place.stat().st_mode) == 0o750
    assert place.read_text() == 'new'
    assert os.listdir(world.ws / 'cache') == ['c.dat']


def test_half_characters_are_refused(world):
    with pytest.raises(FileToolError, match='surrogates'):
        world.do('write_file', 'cache/x', content='\ud800')
    assert not (world.ws / 'cache/x').exists()


def test_a_piece_is_replaced_exactly_once(world):
    place = world.ws / 'cache/x'
    place.write_text('one\ntwo\none\n')

    assert world.do('edit_file', 'cache/x', old_text='two', new_text='2') == 'Replaced cache:x (10 bytes).'
    with pytest.raises(FileToolError, match='occurs 2 times'):
        world.do('edit_file', 'cache/x', old_text='one', new_text='1')
    with pytest.raises(FileToolError, match='does not occur'):
        world.do('edit_file', 'cache/x', old_text='three', new_text='3')
    with pytest.raises(FileToolError, match='does not occur'):
        world.do('edit_file', 'cache/x', old_text='', new_text='3')
    assert place.read_text() == 'one\n2\none\n'
    world.do('edit_file', 'cache/x', old_text='one', new_text='1', replace_all=True)
    assert place.read_text() == '1\n2\n1\n'


def test_binary_file_is_not_edited(world):
    (world.ws / 'cache/x').write_bytes(b'a\xff')

    with pytest.raises(FileToolError, match='the file is not text'):
        world.do('edit_file', 'cache/x', old_text='a', new_text='b')


def test_directories_are_made(world):
    assert world.do('make_directory', 'cache/x/y') == 'Created cache:x/y/.'
    assert world.do('make_directory', 'cache/x/y/') == 'cache:x/y/ already exists.'
    assert world.do('make_directory', 'cache') == 'cache:/ already exists.'
    assert (world.ws / 'cache/x/y').is_dir()


def test_files_are_moved_and_copied(world):
    assert world.do('copy', 'ref/r.md', 'cache/new/r.md') == 'Copied ref:r.md to cache:new/r.md (2 bytes).'
    assert world.do('move', 'cache/new/r.md', 'notes/r.md') == 'Moved cache:new/r.md to notes:r.md.'
    assert world.do('move', 'notes/r.md', 'notes/a.txt') == 'Moved notes:r.md to notes:a.txt.'
    assert (world.ws / 'notes/a.txt').read_text() == 'r\n'
    assert (world.ws / 'ref/r.md').exists()
    assert os.listdir(world.ws / 'cache/new') == []


def test_directories_are_moved_whole(world):
    assert world.do('move', 'notes/sub', 'cache/deep/sub') == 'Moved notes:sub to cache:deep/sub.'
    assert (world.ws / 'cache/deep/sub/b.txt').read_text() == 'b\n'
    assert not (world.ws / 'notes/sub').exists()


def test_files_and_directories_are_deleted(world):
    (world.ws / 'cache/d/e').mkdir(parents=True)
    (world.ws / 'cache/d/e/x').touch()

    assert world.do('delete', 'cache/d') == 'Deleted cache:d.'
    assert world.do('delete', 'cache/c.dat') == 'Deleted cache:c.dat.'
    assert os.listdir(world.ws / 'cache') == []


def test_a_root_that_does_not_exist_is_not_made(world):
    config = {'paths': {'later': {'root': 'later', 'mode': 'rw', 'write_approval': False}}}

    for operation, arguments in (('write_file', {'content': 'x'}), ('make_directory', {})):
        with pytest.raises(FileToolError, match='the directory later does not exist'):
            world.do(operation, 'later/x', config=config, **arguments)
    with pytest.raises(FileToolError, match='later:x: it does not exist'):
        world.do('read_file', 'later/x', config=config)
    assert not (world.ws / 'later').exists()


def test_meaningless_operations_are_refused(world):
    sandbox = world.sandbox()

    for arguments in (
        ('symlink', 'a', 'b'),
        ('move', 'cache/c.dat'),
        ('read_file', 'cache/c.dat', 'cache/x'),
        ('read_file', 7),
    ):
        assert sandbox.decide(*arguments).outcome == 'block'


def test_system_error_is_reported_without_a_host_path(world, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, 'No space left', str(world.ws))

    monkeypatch.setattr(os, 'fsync', full)

    with pytest.raises(FileToolError) as error:
        world.do('write_file', 'cache/c.dat', content='new')

    assert str(error.value) == 'cache:c.dat: the system refused: no space left on device'
    assert (world.ws / 'cache/c.dat').read_text() == 'c\n'
    assert os.listdir(world.ws / 'cache') == ['c.dat']


def test_messages_name_no_place_on_the_host(world):
    (world.ws / 'notes/l.txt').symlink_to(world.top / 'outside/secret.txt')
    sandbox = FileSandbox({'paths': {**BASE['paths'], 'far': {'root': world.top / 'outside/dir'}}}, world.ws)

    for path in ('notes/l.txt', 'x', 'notes:a.txt', 'far:x', '../outside/secret.txt', 'notes/x.sh', 'ref'):
        assert str(world.top) not in sandbox.decide('write_file', path).reason


def test_path_written_as_in_messages_is_corrected(world):
    config = {'paths': {**OVERLAPPING['paths'], 'far': {'root': '../far', 'mode': 'rw'}}}
    del config['paths']['ws']

    sandbox = world.sandbox(config)

    assert "Write 'notes/sub/a.txt'." in sandbox.decide('read_file', 'notes:sub/a.txt').reason
    assert "Write '../far/a'." in sandbox.decide('read_file', 'far:a').reason


def test_no_descriptor_stays_open(world):
    before = len(os.listdir('/proc/self/fd'))

    for path in ('notes/a.txt', 'x', '\0', 'notes/sub/../sub/b.txt', 'notes/a.txt/x', 'cache/' + 'd/' * 250):
        world.decide('read_file', path)
        world.decide('move', path, 'cache/x/y')
    world.do('write_file', 'cache/p/q/r', content='x')
    world.do('delete', 'cache/p')

    assert len(os.listdir('/proc/self/fd')) == before


@pytest.mark.parametrize(
    ('operation', 'dest', 'arguments', 'expected'),
    [
        ('edit_file', None, {'old_text': 'c', 'new_text': 'd'}, {'cache:c.dat': 'sha256:seen'}),
        ('copy', 'cache/x', {}, {'cache:c.dat': 'sha256:seen'}),
        ('move', 'cache/y', {}, {'cache:y': 'missing'}),
        ('delete', None, {}, {'cache:c.dat': 'sha256:seen'}),
        ('write_file', None, {'content': 'new'}, {'cache:c.dat': 'missing'}),
    ],
)
def test_file_that_changed_since_the_approval_stays(world, operation, dest, arguments, expected):
    (world.ws / 'cache/y').write_text('y')

    with pytest.raises(FileToolError, match='the content has changed in the meantime'):
        world.do(operation, 'cache/c.dat', dest, expected=expected, **arguments)

    assert (world.ws / 'cache/c.dat').read_text() == 'c\n'
    assert (world.ws / 'cache/y').read_text() == 'y'


def test_a_file_to_replace_whose_directory_has_gone_is_not_made(world):
    with pytest.raises(FileToolError, match='cache:gone/x: it does not exist'):
        world.do('delete', 'cache/gone/x', expected={'cache:gone/x': 'sha256:seen'})


def test_a_pipe_that_is_put_in_between_look_and_open_is_refused(world, monkeypatch):
    os.mkfifo(world.ws / 'cache/p')
    found = os.stat(world.ws / 'cache/c.dat')
    sandbox = world.sandbox()

    with sandbox.open('read_file', 'cache/c.dat') as access:
        os.replace(world.ws / 'cache/p', world.ws / 'cache/c.dat')
        monkeypatch.setattr(os, 'stat', lambda *place, **where: found)

        with pytest.raises(FileToolError, match='the system refused'):
            perform(sandbox, access, {})


def test_an_interruption_leaves_no_descriptor_open(world, monkeypatch):
    sandbox = world.sandbox()
    before = len(os.listdir('/proc/self/fd'))

    def interrupt(*place, **where):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, 'stat', interrupt)
    with pytest.raises(KeyboardInterrupt):
        sandbox.decide('read_file', 'cache/c.dat')

    assert len(os.listdir('/proc/self/fd')) == before


def test_a_replacement_that_would_fill_the_memory_is_refused_before_it_is_made(world):
    sandbox = world.sandbox(max_bytes=1000)
    (world.ws / 'cache/x').write_text('a' * 1000)
    arguments = {'old_text': 'a', 'new_text': 'b' * 10**6, 'replace_all': True}

    with (
        sandbox.open('edit_file', 'cache/x') as access,
        pytest.raises(FileToolError, match='cache:x: nothing was changed: the text would be longer than 1000 bytes'),
    ):
        perform(sandbox, access, arguments)

    assert (world.ws / 'cache/x').read_text() == 'a' * 1000


@pytest.mark.parametrize('folder', ['..', '../outside', '{top}', '{top}/outside'])
@pytest.mark.parametrize('rest', ['ws/notes/a.txt', 'ws/notes/new', 'ws/notes/a.txt/x', 'ws/x', 'elsewhere'])
def test_path_out_and_back_does_not_reveal_which_files_exist(world, folder, rest):
    beginning = folder.format(top=world.top)
    place = world.ws / beginning
    (place / 'file').write_text('x')
    (place / 'folder').mkdir()
    (place / 'link').symlink_to('folder')
    back = '../../' if beginning.endswith('outside') else '../'

    told = {
        world.sandbox().decide('read_file', f'{beginning}/{name}/{back}{rest}').reason.replace(name, 'NAME')
        for name in ('file', 'folder', 'link', 'missing')
    }

    assert len(told) == 1
    assert 'The path is outside of the directories' in told.pop()


def test_a_path_may_go_up_where_it_is_known_what_there_is(world):
    (world.top / 'link').symlink_to(f'home/../{world.ws.name}')
    (world.top / 'passed').mkdir()
    (world.top / 'far').symlink_to('./passed/../outside/dir')
    (world.top / 'outside/dir/x').write_text('x')
    config = {'paths': {**BASE['paths'], 'far': {'root': '../far'}}}
    sandbox = FileSandbox(config, world.top / 'link')

    for path in (
        'cache/missing/../c.dat',
        'cache/../notes/a.txt',
        '../ws/notes/a.txt',
        f'../../{world.top.name}/ws/notes/a.txt',
        '../outside/../ws/notes/a.txt',  # on the way to a root
        f'{world.top}/link/notes/a.txt',
        f'{world.top}/link/../ws/notes/a.txt',
        f'{world.top}/far/x',
        '../far/../../ws/notes/a.txt',
        '/../..' + str(world.ws / 'notes/a.txt'),
    ):
        assert sandbox.decide('read_file', path).outcome == 'allow', path
    assert sandbox.decide('write_file', 'cache/missing/../x.dat').outcome == 'allow'


def test_a_root_that_cannot_be_reached_does_not_stand_in_the_way_of_others(world):
    for root in ('x' * 300, '../' + 'x' * 300, '../outside/secret.txt/x', f'{world.top}/loop/x'):
        (world.top / 'loop').unlink(missing_ok=True)
        (world.top / 'loop').symlink_to('loop')
        config = {'paths': {'far': {'root': root}, **BASE['paths']}}

        assert world.decide('read_file', 'notes/a.txt', config=config) == 'allow'
        assert world.decide('read_file', f'{root}/a.txt', config=config) == 'block'


def test_names_below_a_directory_that_is_read_with_consent_are_not_told(world):
    config = {'paths': {'p': {'root': './priv', 'mode': 'rw', 'write_approval': False, 'read_approval': True,
                              'suffixes': ['.txt']}}}  # fmt: skip
    (world.ws / 'priv/d').mkdir(parents=True)
    (world.ws / 'priv/d/merger.pdf').write_text('x')

    reason = world.sandbox(config).decide('delete', 'priv/d').reason

    assert reason == 'Something in p:d has a suffix that is not allowed in p.'
