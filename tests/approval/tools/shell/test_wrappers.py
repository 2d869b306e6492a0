import pytest

from .parts import OPEN, blocked, decision, judge, unasked


@pytest.mark.parametrize('wrapper', ['timeout', 'nice', 'xargs'])
def test_an_option_of_a_wrapper_that_is_not_known_is_asked_about(wrapper):
    explanation = judge(*unasked('ls'), default=OPEN).explain(f'{wrapper} "$a" ls')

    assert explanation.decision == 'ask'
    assert any(part.reason == 'an option of a wrapper is not known' for part in explanation.parts)


def test_eval_takes_two_dashes_for_the_end_of_its_options():
    assert decision('eval -- ls', *unasked('ls')) == 'allow'
    assert decision('eval -- rm a', *blocked('rm'), default=OPEN) == 'block'


@pytest.mark.parametrize('option', ["-c 'rm a'", "--command='rm a'", "--command 'rm a'"])
def test_what_another_user_is_to_run_is_judged(option):
    assert decision(f'su a {option}', *blocked('rm'), default=OPEN) == 'block'


@pytest.mark.parametrize('command', ['command -pv rm', 'command -pV rm'])
def test_an_option_of_command_that_is_not_stepped_over_hides_nothing(command):
    assert decision(command, *blocked('rm'), default=OPEN) == 'block'
    assert decision(command, *unasked('rm')) == 'ask'


def test_to_ask_where_a_program_is_runs_nothing():
    assert decision('command -v node', *unasked('command -v')) == 'allow'
    assert decision('command -v node') == decision('command -V node') == 'allow'
    assert decision('command -v $x') == 'ask'
    assert decision('command -v rm', *blocked('rm'), default=OPEN) == 'allow'
    assert decision('command foo rm', *blocked('rm'), default=OPEN) == 'ask'


@pytest.mark.parametrize(
    'command',
    [
        'timeout 5$x ls', 'timeout 5* ls', 'nice -n $x ls', 'nice -n $(echo 5) ls', 'stdbuf -o $x ls', 'env LC_ALL=$x ls',
        'env LC_ALL=a$(echo 1) ls', 'env -u a$x ls', 'env -u {A,B} ls', 'xargs -a $x cat', 'xargs -n 1"$@" cat', 'xargs -P$x cat',
    ],
)  # fmt: skip
def test_where_words_in_front_of_the_command_may_multiply_it_is_asked(command):
    """Attack: `x='5 touch y'; timeout $x ls` runs `touch`."""
    assert decision(command, *unasked('ls', 'cat', 'echo', 'xargs', 'env')) == 'ask'


@pytest.mark.parametrize(
    'command', ['timeout "5$x" ls', 'nice -n "$x" ls', 'env LC_ALL="$x" ls', 'env LC_ALL=$((1 + 1)) ls']
)
def test_a_quoted_value_in_front_of_the_command_stays_one_word(command):
    assert decision(command, *unasked('ls')) == 'allow'


@pytest.mark.parametrize(
    'command',
    [
        "xargs -I '' cat f",
        'xargs -I "$x" cat f',
        'xargs -I "a$x" cat f',
        'xargs -I $x cat f',
        "xargs --replace= cat '{}'",
    ],
)
def test_a_mark_that_is_empty_or_not_known_may_be_any_word(command):
    assert decision(command, *unasked('xargs', 'cat')) == ('allow' if '--replace' in command else 'ask')


@pytest.mark.parametrize(
    'shell', ['ksh93', 'bash5.2', 'bash-static', 'zsh-5.9', 'posh', 'osh', 'xonsh', 'lksh', 'oksh', '/opt/bash5', 'bash-5.2-static']
)  # fmt: skip
def test_a_shell_of_any_version_is_one(shell):
    assert decision(f"{shell} -c 'rm v'", *blocked('rm'), default=OPEN) == 'block'
    assert decision(f'{shell} -c "r\'\'m v"', *blocked('rm'), default=OPEN) == 'block'
    assert decision(f'echo x | {shell}', *blocked('rm'), default=OPEN) == 'ask'
    assert decision(f'{shell} -c ls', *unasked('ls')) == 'ask'


@pytest.mark.parametrize('command', ['./timeout 5 ls', './bash -c ls', '/tmp/env ls', './nice ls'])
def test_a_wrapper_that_lies_anywhere_is_a_program_like_any_other(command):
    """Attack: a file that the agent wrote, by the name of a wrapper."""
    assert decision(command, *unasked('ls')) == 'ask'
    assert decision(f'/usr/bin/{command.rpartition("/")[2]}', *unasked('ls')) == 'allow'
