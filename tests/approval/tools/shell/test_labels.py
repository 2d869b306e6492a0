"""What each word of a command is taken for."""

import pytest
from tool_approval.tools.shell import unlisted
from tool_approval.tools.shell.grammar import parse
from tool_approval.tools.shell.labels import label
from tool_approval.tools.shell.reading import CommandReader

from tests.tables import table

from .parts import decision, unasked


def labelled(command):
    """The labels of a command, as a person reads them."""
    [read] = CommandReader(parse(command)).commands
    return [str(each) for each in label(read.words).labels]


@table(
    ('command', 'expected'),
    [
        ('grep -rn x a b', 'program flag operand(text) operand(read) operand(read)'),
        ('grep -A3 -e x a', 'program option(text) option value(text) operand(read)'),
        ('grep -nA3 x', 'program option(text) operand(text)'),
        ('grep --color=auto --color x', 'program option(text) flag operand(text)'),
        ('head -20 a', 'program flag operand(read)'),
        ('sort -- -o', 'program end operand(read)'),
        ('git --no-pager log -n5', 'program flag sub_command option(text)'),
        ('git t x', 'program unknown_sub_command unknown_sub_command'),
        (r'find a -name x -exec cat {} \;', 'program operand(read) option value(text) flag command command command'),
        ('pytest --cov -q', 'program flag flag'),
        ('pytest --cov src', 'program option value(text)'),
        ('python -m pytest -q', 'program option command command'),
        ('timeout -s KILL 5 ls -l', 'program option value(text) operand(text) command command'),
        ('env - A=1 ls', 'program flag assignment command'),
        ('nobody-knows-it a -b', 'program unknown_program unknown_program'),
    ],
)
def test_a_word_has_its_label(command, expected):
    assert ' '.join(labelled(command)) == expected


KINDS = {
    ('_ASKS', 'unknown_program'): ('./tool', './tool a'),
    ('_ASKS', 'unknown_sub_command'): ('git', 'git t'),
    ('_ASKS', 'unknown_option'): ('sort', 'sort --brand-new a'),
    ('_ASKS', 'unlisted_operand'): ('hostid', 'hostid a'),
    ('_ASKS', 'missing_operand'): ('python', 'python'),
    ('_ASKS', 'refused_value'): ('pytest', 'pytest -p evil'),
    ('_ASKS', 'unknown_word'): ('sort', 'sort $a'),
    ('_ASKS', 'response_file'): ('pytest', 'pytest @a'),
    ('_UNSAFE_KINDS', 'write'): ('tee', 'tee a'),
    ('_UNSAFE_KINDS', 'code'): ('git', 'git -c a=b log'),
    ('_UNSAFE_KINDS', 'context'): ('git', 'git -C a log'),
    ('_UNSAFE_KINDS', 'script'): ('split', 'split --filter=ls a'),
    ('_UNSAFE_KINDS', 'command'): ('sort', 'sort --compress-program=ls a'),
    ('_UNSAFE_KINDS', 'rest'): ('python', 'python -mls a.py'),
}


@pytest.mark.parametrize(('table_name', 'kind'), KINDS)
def test_a_label_that_is_ignored_is_found_out(monkeypatch, table_name, kind):
    pattern, command = KINDS[table_name, kind]
    before = decision(command, *unasked(pattern, 'ls'))
    known = getattr(unlisted, table_name)
    monkeypatch.setattr(unlisted, table_name, {name: why for name, why in known.items() if name != kind})

    assert before == 'ask'
    assert decision(command, *unasked(pattern, 'ls')) == 'allow'


def test_every_label_that_asks_is_ignored_once():
    assert {(name, kind) for name in ('_ASKS', '_UNSAFE_KINDS') for kind in getattr(unlisted, name)} == set(KINDS)
