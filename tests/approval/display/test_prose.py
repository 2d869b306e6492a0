"""Where typography is nothing special, and where it would make what is run seem to be none."""

import pytest
from tool_approval.display import warnings_of
from tool_approval.display.texts import apart, is_prose

from tests.tables import table
from tool_approval import ApprovalPresentation, ApprovalRequest


def of_command(text):
    presented = ApprovalPresentation(type='command', content=text)
    return warnings_of(ApprovalRequest(tool_name='shell', args={'command': text}, presentation=presented))


@pytest.mark.parametrize(
    'text',
    [
        'It\u2019s fine \u2014 really \u201cok\u201d\u2026',
        'R\u00e9union \u00e0 15h \u2013 salle \u21165',
        'a table of 3\u00d74, 2\u00d7 faster',
        'pages 15\u201317 (fix(api): done)!',
        '\u201eja\u201c und \u2018no\u2019',
        '\u05d1Python 3',
    ],
)
def test_a_sentence_is_prose_and_its_typography_raises_no_warning(text):
    assert is_prose(text)
    assert [told for told in warnings_of(ApprovalRequest(tool_name='t', args={'x': text})) if 'look' in told] == []


@table(
    'text',
    [
        'rm \u2018a b\u2019',
        'go \u2013rf x',
        'a\u2013b c',
        'well \u201cok',
        'it \u2018is',
        'open report\u2014final.txt',
        'go \u2018a\u2019; b',
        'x | y\u2026',
        'see /etc\u2026 now',
        'say \u201c$x\u201d now',
        'It\u2019s `x`',
        'It\u2019s  two',
        'It\u2019s',
        'It\u2019s ' + 'long ' * 800,
        'visit example\u3002com',
        'It\u2019s \u4e28 sh',
    ],
)
def test_what_a_program_may_read_is_none_and_its_typography_is_named(text):
    assert not is_prose(text)
    assert 'look-alikes' in warnings_of(ApprovalRequest(tool_name='t', args={'x': text}))[0]


@pytest.mark.parametrize('key', ['path', 'name', 'command', 'Target'])
def test_a_sentence_that_is_a_name_is_looked_at_as_one(key):
    assert 'EN DASH' in warnings_of(ApprovalRequest(tool_name='t', args={key: 'my report \u2013 final'}))[0]


@pytest.mark.parametrize(
    'text',
    [
        'git commit -m "fix: don\u2019t crash"',
        'git commit -am "\u00e4ndern \u2013 Stra\u00dfe"',
        "cd /src && git commit -m 'feat: add \u201csmart quotes\u201d'",
        'git commit -m "wait\u2026" -m "a \u00b7 b \u2795 c (#12)"',
        'gh pr create --title "It\u2019s done" --body="so\u2014yes"',
        'git commit -m "\u4fee\u590d\u201c\u767b\u5f55\u201d\u95ee\u9898"',
        'git commit -m "\u05d1Python"',
        "echo 'l\u2019\u00e9t\u00e9 \u00e0 Paris'",
        "git commit -m 'x' ; ls 'a'",
    ],
)
def test_the_message_of_a_command_may_have_typography(text):
    rest, messages = apart(text)

    assert messages != []
    assert rest.count('""') == len(messages)
    assert [told for told in of_command(text) if not told.startswith('right-to-left')] == []


@table(
    'text',
    [
        'git commit -m "a" \u2013rf',
        'git commit -m "a \u2013rf b"',
        'git commit -m "a\u201d #b" ; rm -rf x #\u201c"',
        'git commit -m "a\u2019; rm x\u2019"',
        'git commit -m "\u2018$(rm x)\u2019"',
        'git commit -m "a \\" ; echo " \u2018; rm \u2018 "',
        'git commit -m "a\u2019b" \\" c',
        'git commit -m "a\u2019b" # "',
        "git commit -m 'it\u2019s' '",
        'git commit -m "$(git commit -m "it\u2019s")"',
        'git commit -m "it\u2019s\nb"',
        'git commit -m "it\u2019s"\nls',
        'rm -m "it\u2019s me"',
        'rm "my report \u2013 final"',
        "echo a \u2018; rm x; echo \u2019b'",
        'echo "rm \u2013rf x" | sh',
        'echo "ls \u4e28 sh"',
        "echo $'it\u2019s'",
        'git commit ' + 'a' * 1_000 + ' -m "it\u2019s"',
        'git commit -m "it\u2019s" ' + 'a' * 4_000,
    ],
)
def test_anything_else_in_a_command_is_named(text):
    assert any('look-alikes' in told for told in of_command(text))


def test_letters_of_a_message_are_looked_at_too():
    told = of_command('git commit -m "p\u0430ypal \u2215"')

    assert 'U+0430' in told[0]
    assert 'U+2215' in told[0]
