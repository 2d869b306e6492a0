import pytest
from tool_approval.tools.shell.names import alternatives, spellings

from .parts import OPEN, blocked, decision, judge


@pytest.mark.parametrize(
    ('default', 'expected'),
    [({}, 'ask'), (OPEN, 'allow'), ({'allowed': False}, 'block'), ({'allowed': False, 'approval': False}, 'block')],
)
def test_the_default_counts_where_no_rule_matches(default, expected):
    assert decision('unknown a', default=default) == expected


def test_unknown_word_may_be_the_blocked_one():
    explanation = judge(*blocked('git push'), default=OPEN).explain('git $a')

    assert explanation.decision == 'ask'
    assert any(part.rule == 'git push' for part in explanation.parts)


def test_ten_thousand_rules_are_ordered_as_ten_are():
    rules = [{'pattern': f'program{n}x', 'approval': False} for n in range(10_000)]
    decides = judge(*rules, *blocked('rm'), {'pattern': 'rm', 'approval': False})

    assert decides.explain('program77x; program9999x').decision == 'allow'
    assert decides.explain('program77x; rm a').decision == 'block'


def test_the_words_of_a_pattern_come_first():
    assert alternatives(('npm', 'publish'))[0] == ('npm', 'publish')
    assert alternatives(('rm',)) == (('rm',),)
    assert spellings('git', 'status') == ('status',)
    assert spellings('ip', '-s') == ('-s',)
