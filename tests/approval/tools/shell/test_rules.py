import pytest

from .parts import OPEN, blocked, decision, judge, unasked


@pytest.mark.parametrize(
    'command', ['git statusx', 'git status-x', 'gits status', 'git', 'xgit status', 'git -c a=b status']
)
def test_a_pattern_is_a_prefix_of_words(command):
    assert decision(command, *unasked('git status')) == 'ask'


def test_the_first_rule_that_matches_decides():
    rules = [*unasked('git stash'), {'pattern': 'git'}]

    assert decision('git stash list', *rules) == 'allow'
    assert decision('git stash list', *reversed(rules)) == 'ask'


def test_a_block_further_down_does_not_undo_what_a_rule_above_decides():
    assert decision('git push origin', *unasked('git push origin'), *blocked('git push')) == 'allow'
    assert decision('git push other', *unasked('git push origin'), *blocked('git push')) == 'block'


@pytest.mark.parametrize(
    ('default', 'expected'),
    [({}, 'ask'), (OPEN, 'allow'), ({'allowed': False}, 'block'), ({'allowed': False, 'approval': False}, 'block')],
)
def test_the_default_counts_where_no_rule_matches(default, expected):
    assert decision('unknown a', default=default) == expected


def test_a_default_that_blocks_blocks_one_part_of_many():
    assert decision('ls; unknown', *unasked('ls'), default={'allowed': False}) == 'block'


def test_the_strictest_part_wins():
    rules = [*unasked('ls'), {'pattern': 'cp'}, *blocked('rm')]

    assert decision('ls; cp a b', *rules) == 'ask'
    assert decision('ls; cp a b; rm a', *rules) == 'block'


@pytest.mark.parametrize('command', ['git stash push -m a', 'git log push', 'echo git push', 'git commit -m push'])
def test_a_block_is_about_the_sub_command_alone(command):
    assert decision(command, *blocked('git push'), *unasked('git', 'echo'), default=OPEN) == 'allow'


@pytest.mark.parametrize('path', ['/bin/ls', '/usr/bin/ls', '/usr/local/bin/ls'])
def test_a_program_of_the_system_goes_by_its_name(path):
    assert decision(path, *unasked('ls')) == 'allow'


@pytest.mark.parametrize('path', ['./ls', 'bin/ls', '/tmp/ls', '/home/a/ls', '/usr/bin/../../tmp/ls', '/bin/../tmp/ls'])
def test_a_file_of_the_same_name_elsewhere_is_another_program(path):
    assert decision(path, *unasked('ls')) == 'ask'


def test_a_wrapper_is_still_guarded_by_its_own_rule():
    assert decision('env ls', *blocked('env'), *unasked('ls')) == 'block'
    assert decision('bash -c ls', {'pattern': 'bash'}, *unasked('ls')) == 'ask'


def test_what_is_not_known_may_be_what_is_blocked():
    explanation = judge(*blocked('git push'), default=OPEN).explain('git $a')

    assert explanation.decision == 'ask'
    assert any(part.rule == 'git push' for part in explanation.parts)


def test_ten_thousand_rules_are_ordered_as_ten_are():
    rules = [{'pattern': f'program{n}x', 'approval': False} for n in range(10_000)]
    decides = judge(*rules, *blocked('rm'), {'pattern': 'rm', 'approval': False})

    assert decides.explain('program77x; program9999x').decision == 'allow'
    assert decides.explain('program77x; rm a').decision == 'block'
