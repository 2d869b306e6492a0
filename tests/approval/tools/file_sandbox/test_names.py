import tomllib
from pathlib import Path

import pytest
from tool_approval.tools.file_sandbox.names import check_text, fold, has_suffix, is_control

from tests.tables import table

from .world import context

GROUPS = tomllib.loads(Path(__file__).with_name('names.toml').read_text())['group']


def given(field):
    """The names of a field in all groups, each with the reason of its group."""
    return [(name, group['reason']) for group in GROUPS for name in group.get(field, ())]


@table(('character', 'reason'), [*given('refused_characters'), ('\ud800', 'It is half of a character.')])
def test_invisible_characters_are_refused_and_named(character, reason):
    with pytest.raises(PermissionError, match=f'U\\+{ord(character):04X}'):
        check_text(f'notes/a{character}.txt')


@table(('name', 'reason'), given('refused'))
def test_an_invisible_character_without_a_purpose_is_refused(name, reason):
    with pytest.raises(PermissionError, match='invisible'):
        check_text(name)


@table(
    ('name', 'reason'),
    [*given('accepted'), ('ä' * 2045, 'With a folder and a suffix, it has as many bytes as a path may have.')],
)
def test_unusual_names_are_accepted(name, reason):
    check_text(name)
    check_text(f'a/{name}.txt')


@pytest.mark.parametrize('path', ['', 'a' * 4097, 'ä' * 2049, '\ud800' * 5000])
def test_a_path_that_no_system_call_takes_is_refused(path):
    with pytest.raises(PermissionError):
        check_text(path)


@pytest.mark.parametrize(
    'name', ['.git', '.GIT', '.Git', '.ｇｉｔ', '.g\u200cit', '.git.', '.git ', 'GIT~1', 'APPROVALS.YAML']
)
def test_names_that_a_lenient_file_system_takes_for_a_control_file_are_one(name):
    assert is_control(['a', name, 'b'])


@pytest.mark.parametrize('name', ['.gitignore', 'git', '.github', '.gitattributes', 'approvals.md', 'approval.yaml'])
def test_similar_names_are_not_control_files(name):
    assert not is_control([name])


def test_folding_keeps_what_differs_apart():
    assert len({fold(name) for name in ('a', 'b', 'ä', 'a.b', 'a/b')}) == 5


@pytest.mark.parametrize(
    ('name', 'is_allowed'),
    [
        ('a.txt', True),
        ('a.exe.txt', True),
        ('a.tar.gz', True),
        ('a.gz', False),
        ('.txt', False),
        ('..txt', False),
        ('a.TXT', False),
        ('a.txt ', False),
        ('a.txt.', False),
        ('a.txt~', False),
        ('txt', False),
        ('a', False),
    ],
)
def test_the_last_suffix_decides(name, is_allowed):
    assert has_suffix(name, ('.txt', '.tar.gz')) is is_allowed
    assert has_suffix(name, None)


COMPOSED, DECOMPOSED = 'caf\u00e9.txt', 'cafe\u0301.txt'


@pytest.fixture
def accent(world):
    """The path of a file that is stored with a decomposed name."""
    path = world.ws / 'notes' / DECOMPOSED
    path.write_text('stored\n')
    if (world.ws / 'notes' / COMPOSED).exists():
        pytest.skip('this file system itself takes both forms for one name; Linux runs this test')
    return path


def test_a_name_means_the_file_that_is_stored_in_another_unicode_form(world, accent):
    given = f'notes/{COMPOSED}'
    (world.ws / 'notes' / 'cafe\u0301s').mkdir()

    assert world.do('read_file', given) == 'stored\n'
    assert world.do('edit_file', given, old_text='stored', new_text='edited').startswith(
        f'Replaced notes:{DECOMPOSED} '
    )
    assert world.do('write_file', 'notes/caf\u00e9s/a.txt', content='') == 'Wrote notes:cafe\u0301s/a.txt (0 bytes).'
    assert world.do('move', given, 'notes/plain.txt') == f'Moved notes:{DECOMPOSED} to notes:plain.txt.'
    assert not accent.exists()
    assert not (world.ws / 'notes' / COMPOSED).exists()


def test_the_approver_sees_the_name_that_is_used(world, accent):
    tools = world.tools({'paths': {'notes': {'root': 'notes', 'mode': 'rw', 'write_approval': True}}})
    call = context('write_file', path=f'notes/{COMPOSED}', content='new\n')

    request = tools.check_approval(call)

    assert request.description == f'Write notes:{DECOMPOSED}'
    assert request.payload == {'root': 'notes', 'path': DECOMPOSED}
    assert tools.present(request).metadata['path'] == f'notes:{DECOMPOSED}'
    assert tools.run('write_file', dict(call.args)) == f'Replaced notes:{DECOMPOSED} (4 bytes).'
    assert accent.read_text() == 'new\n'


def test_an_exact_name_precedes_another_form_of_it(world, accent):
    (world.ws / 'notes' / COMPOSED).write_text('composed\n')

    assert world.do('read_file', f'notes/{COMPOSED}') == 'composed\n'
    assert world.do('read_file', f'notes/{DECOMPOSED}') == 'stored\n'


def test_a_name_that_could_mean_several_files_is_refused(world):
    for stored in ('a\u0323\u0302', '\u1ead', '\u00e2\u0323'):
        (world.ws / 'notes' / stored).write_text('')
    if (world.ws / 'notes' / '\u1ea1\u0302').exists():
        pytest.skip('this file system itself takes all forms for one name; Linux runs this test')

    with pytest.raises(PermissionError, match='several names there look like the given one; rename all but one'):
        world.do('read_file', 'notes/\u1ea1\u0302')


def test_a_new_name_stays_as_it_was_given(world):
    assert world.do('write_file', f'notes/{COMPOSED}', content='') == f'Wrote notes:{COMPOSED} (0 bytes).'


def test_a_command_means_exactly_the_name_that_it_has(world, accent):
    """The kernel does not look for other forms, so a command must not be judged by the rules of another directory."""
    (world.ws / 'notes' / 'e\u0301').symlink_to(world.ws / 'free')
    paths = {
        'notes': {'root': 'notes', 'mode': 'rw', 'write_approval': True},
        'free': {'root': 'free', 'mode': 'rw', 'write_approval': False},
    }
    (world.ws / 'free').mkdir()
    sandbox = world.sandbox({'paths': paths})
    stored, other = 'notes/e\u0301/a', 'notes/\u00e9/a'

    assert [sandbox.needs_write_approval(path) for path in (stored, other)] == [False, True]
    assert [sandbox.root_of(path) for path in (stored, other)] == ['free', 'notes']
    assert sandbox.decide('write_file', other).files == ('free:a',)
