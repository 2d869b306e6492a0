import pytest
from tool_approval.tools.file_sandbox.names import check_text, fold, has_suffix, is_control


@pytest.mark.parametrize(
    'character',
    [
        *('\0', '\n', '\r', '\t', '\x1b', '\x7f', '\x85', '\u200b', '\u202e', '\u2066', '\ufeff', '\u2028', '\ud800'),
        *('\u3164', '\u2800', '\u115f', '\u1160', '\u034f', '\u17b4', '\u17b5', '\U000e0100'),
        *('\ufe00', '\ufe0f', '\ue000', '\u0378'),
    ],
)
def test_characters_that_nobody_sees_are_refused_and_named(character):
    with pytest.raises(PermissionError, match=f'U\\+{ord(character):04X}'):
        check_text(f'notes/a{character}.txt')


@pytest.mark.parametrize('path', ['', 'a' * 4097, 'ä' * 2049, '\ud800' * 5000])
def test_a_path_that_no_system_call_takes_is_refused(path):
    with pytest.raises(PermissionError):
        check_text(path)


@pytest.mark.parametrize(
    'path', ['a', 'ä' * 2048, 'a b.txt', '日本語', 'e\u0301', "a'b", '~x', '$HOME', '%2e', 'a:b', '😀', '❤\ufe0f.txt']
)
def test_other_paths_are_taken_as_they_are(path):
    check_text(path)


@pytest.mark.parametrize(
    'name', ['.git', '.GIT', '.Git', '.ｇｉｔ', '.g\u200cit', '.git.', '.git ', 'GIT~1', 'APPROVALS.YAML']
)
def test_names_that_a_lenient_file_system_takes_for_a_control_file_are_one(name):
    assert is_control(['a', name, 'b'])


@pytest.mark.parametrize('name', ['.gitignore', 'git', '.github', '.gitattributes', 'approvals.md', 'approval.yaml'])
def test_other_names_are_no_control_files(name):
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
