"""Where typography is nothing special, and where it would make what is run seem to be none."""

import pytest
from tool_approval.display import warnings_of
from tool_approval.display.texts import apart, is_prose

from tool_approval import ApprovalPresentation, ApprovalRequest


def of_command(text):
    presented = ApprovalPresentation(type='command', content=text)
    return warnings_of(ApprovalRequest(tool_name='shell', args={'command': text}, presentation=presented))


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


@pytest.mark.parametrize(
    'text',
    ['git commit ' + 'a' * 1_000 + ' -m "it\u2019s"', 'git commit -m "it\u2019s" ' + 'a' * 4_000],
    ids=['before', 'after'],
)
def test_the_message_of_a_very_long_command_is_looked_at_as_the_rest(text):
    assert any('look-alikes' in told for told in of_command(text))


def test_a_very_long_sentence_is_looked_at_as_a_command():
    text = 'It\u2019s ' + 'long ' * 800

    assert not is_prose(text)
    assert 'look-alikes' in warnings_of(ApprovalRequest(tool_name='t', args={'x': text}))[0]


def test_letters_of_a_message_are_looked_at_too():
    told = of_command('git commit -m "p\u0430ypal \u2215"')

    assert 'U+0430' in told[0]
    assert 'U+2215' in told[0]
