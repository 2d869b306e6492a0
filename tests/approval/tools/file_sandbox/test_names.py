import tomllib
from pathlib import Path

import pytest
from tool_approval.tools.file_sandbox.names import check_text, fold, has_suffix, is_control

from tests.tables import table

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
