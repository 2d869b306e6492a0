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


@pytest.mark.parametrize('command', ['command -v rm', 'command -pV rm'])
def test_an_option_of_command_that_is_not_stepped_over_hides_nothing(command):
    assert decision(command, *blocked('rm'), default=OPEN) == 'block'
    assert decision(command, *unasked('rm')) == 'ask'
