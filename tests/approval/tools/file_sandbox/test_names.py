import pytest
from tool_approval.tools.file_sandbox.names import check_text, fold, has_suffix, is_control

from tests.tables import table


@table(
    'character',
    [
        *('\0', '\n', '\r', '\t', '\x1b', '\x7f', '\x85', '\u200b', '\u202e', '\u2066', '\ufeff', '\u2028', '\ud800'),
        *('\u3164', '\u2800', '\u115f', '\u1160', '\u034f', '\u17b4', '\u17b5', '\U000e0100'),
        *('\ufe00', '\ufe0f', '\ue000', '\u0378'),
    ],
)
def test_invisible_characters_are_refused_and_named(character):
    with pytest.raises(PermissionError, match=f'U\\+{ord(character):04X}'):
        check_text(f'notes/a{character}.txt')


@pytest.mark.parametrize('path', ['', 'a' * 4097, 'ä' * 2049, '\ud800' * 5000])
def test_a_path_that_no_system_call_takes_is_refused(path):
    with pytest.raises(PermissionError):
        check_text(path)


@pytest.mark.parametrize(
    'path', ['a', 'ä' * 2048, 'a b.txt', '日本語', 'e\u0301', "a'b", '~x', '$HOME', '%2e', 'a:b', '😀', '❤\ufe0f.txt']
)
def test_unusual_but_valid_paths_are_accepted(path):
    check_text(path)


@table(
    'name',
    [
        *(
            '♻\ufe0f',
            '➕\ufe0f',
            '1\ufe0f\u20e3',
            '#\ufe0f\u20e3',
            'ℹ\ufe0f',
            '‼\ufe0f',
            '⁉\ufe0f',
            '〰\ufe0f',
            '↔\ufe0f',
        ),
        *('👩\u200d💻', '❤\ufe0f\u200d🔥', '👩🏽\u200d💻', '🏳\ufe0f\u200d🌈', '🇩🇪'),
        *('\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645', '\u0915\u094d\u200d\u0937', '\u0915\u094d\u200c\u0937'),
    ],
)
def test_emoji_and_words_that_need_an_invisible_character_are_names(name):
    check_text(f'a/{name}.txt')


@table(
    'name',
    [
        *('a\u200cb', 'a\u200db', 'a\ufe0f', '1\ufe0f', 'é\ufe0f', '\ufe0f1\u20e3', '+\ufe0f'),
        *('👩\u200d', '\u200d👩', '👩\u200d\u200d💻', '👩\u200da', 'a\u200d👩', '❤\ufe0f\ufe0f', '❤\ufe0e\ufe0f'),
        *('\u06cc\u200c', '\u200c\u06cc', '\u06cc\u200c\u200c\u062e', '\u06cc\u200c1', '\u062f\u200c\u062e'),
        *('\u06cc\u200d\u062e', '\u0915\u200c\u0937', '\u0915\u094d\u200d', '\u0915\u094d\u200d\u0a15'),
    ],
)
def test_an_invisible_character_anywhere_else_is_refused(name):
    with pytest.raises(PermissionError, match='invisible'):
        check_text(name)


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
