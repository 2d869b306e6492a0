from types import SimpleNamespace

import pytest
from tool_approval.tools.shell.grammar import is_plain_heredoc, parse

from tests.tables import table

from .parts import OPEN, blocked, decision, judge, unasked

READERS = judge(*unasked('ls', 'cat', 'echo', 'pwd', 'head', 'tail', 'wc', 'grep', 'pytest', 'true', 'git status'))
NOT_UNDERSTOOD = [
    ('ls|#c\nls', 'a `#` that may be part of a word'),
    ('(#c\nls)', 'a `#` that may be part of a word'),
    ('\\ ', 'text between two words'),
    ('case a in +(a)) ls;; esac', 'a pattern of `case`'),
    ('ls a $', '$ in a command'),
    ('&> |in=~', 'a program name that may be an assignment'),
    ('a[0] =1', 'an assignment'),
    ('1<<E', 'a redirection'),
    ('cat <\nls', 'a redirection'),
    ('[[ a =~ (b) ]]', ' in a test'),
    ('a=#b', 'a word that begins with `#`'),
    ('echo "a\\\nb"', 'a string in double quotes'),
    ('echo "$a\\\n"', 'a string in double quotes'),
    ('echo a$"', 'a string in double quotes'),
    ('echo a$', 'a word with special characters'),
    ('ls a\\\n#; ls', 'a `#` that may be part of a word'),
    ('if\\\nls; then ls; fi', 'two words without a blank between them'),
    ('!\\\nls', 'two words without a blank between them'),
    ('[ a || ls ]', '`||` in `[`'),
    ('[ a && ls -eq 1 ]', '`&&` in `[`'),
    ('[ a > b ]', '`>` in `[`'),
    ('[ (a) ]', '`(` in `[`'),
]


@pytest.mark.parametrize(('command', 'problem'), NOT_UNDERSTOOD, ids=ascii)
def test_unparsed_command_asks_and_is_named(command, problem):
    explanation = judge(default=OPEN).explain(command)

    assert explanation.decision == 'ask'
    assert any(problem in part.reason for part in explanation.parts), [part.reason for part in explanation.parts]


def test_a_script_in_a_script_is_followed_only_so_deep():
    explanation = judge(*blocked('rm'), default=OPEN).explain('eval ' * 8 + 'rm a')
    deeper = judge(*blocked('rm'), default=OPEN).explain('eval ' * 9 + 'rm a')

    assert explanation.decision == 'block'
    assert deeper.decision == 'ask'
    assert any(part.reason == 'not understood: scripts are nested too deeply' for part in deeper.parts)


def test_wrappers_are_followed_only_so_deep():
    assert decision('nice ' * 100 + 'ls', *unasked('ls')) == 'ask'


def test_half_of_a_character_is_asked_about():
    assert READERS.explain('git status \ud800').decision == 'ask'


@table('command', ['git status', 'ls -la', 'echo a', 'cat f', 'grep a f', 'wc -l f'])
@table('char', [chr(code) for code in (*range(9), *range(11, 32), 127, 0xA0, 0xAD, 0x2028, 0xFEFF)])
@table('place', ['{char}{command}', '{command}{char}', '{command} {char}a'])
def test_invisible_character_asks(command, char, place):
    explanation = READERS.explain(place.format(command=command, char=char))

    assert explanation.decision == 'ask'
    assert 'character' in explanation.deciding.reason


def test_a_document_without_its_parts_is_not_plain():
    assert not is_plain_heredoc(SimpleNamespace(children=[]), parse('cat <<E'))


def test_an_expansion_that_the_grammar_did_not_see_is_asked_about():
    command = 'cat <<E\n$x $(ls) $2>y:-$(ls)} $[1]\nE'

    explanation = judge(*unasked('cat', 'ls')).explain(command)

    assert explanation.decision == 'ask'
    assert any('here-document' in part.reason for part in explanation.parts)
