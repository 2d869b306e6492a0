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


def test_a_word_that_only_begins_like_the_pattern_is_not_approved():
    assert decision('git status', *unasked('git status')) == 'allow'
    assert decision('git status$a', *unasked('git status')) == 'ask'


@pytest.mark.parametrize('command', ['runs "rm$a"', 'runs rm$a b'])
def test_an_argument_that_may_be_something_blocked_is_asked_about(command):
    assert decision(command, *blocked('rm'), default=OPEN) == 'ask'


@pytest.mark.parametrize('command', ['runs git status', 'runs "git status; ls"'])
def test_an_argument_that_is_another_sub_command_than_the_blocked_is_not_asked_about(command):
    assert decision(command, *blocked('git push'), default=OPEN) == 'allow'


@pytest.mark.parametrize('command', ['git --unknown push', 'git --unknown value push', 'git -c a=b --unknown push'])
def test_an_option_that_nobody_knows_may_or_may_not_take_the_next_word(command):
    assert decision(command, *blocked('git push'), default=OPEN) == 'block'


def test_options_in_front_of_nothing_are_no_sub_command():
    assert decision('unknown -a -b', *blocked('unknown push'), default=OPEN) == 'allow'


def test_a_blocked_letter_is_found_among_others():
    assert decision('git push -uf a', *blocked('git push -f'), default=OPEN) == 'block'
    assert decision('git push a -u', *blocked('git push -f'), default=OPEN) == 'allow'
