import tomllib
from pathlib import Path

import pytest

from tests.tables import table

from .parts import OPEN, blocked, judge, unasked

NEEDS = tomllib.loads(Path(__file__).with_name('needs.toml').read_text())['group']


def test_every_part_says_which_rule_decided_and_why():
    explanation = judge(*unasked('git status'), *blocked('rm')).explain('git status; rm x > y')

    assert explanation.as_json() == {
        'decision': 'block',
        'rule': 'rm',
        'reason': 'the rule `rm` blocks it',
        'parts': [
            {
                'text': 'git status',
                'kind': 'command',
                'decision': 'allow',
                'rule': 'git status',
                'reason': 'the rule `git status` allows it',
            },
            {
                'text': 'y',
                'kind': 'redirection',
                'decision': 'ask',
                'rule': None,
                'reason': 'the redirection would write to this file',
            },
            {
                'text': 'rm x > y',
                'kind': 'command',
                'decision': 'block',
                'rule': 'rm',
                'reason': 'the rule `rm` blocks it',
            },
        ],
    }


def test_an_option_from_the_table_is_named():
    [part] = judge(*unasked('sort')).explain('sort --out=x f').parts

    assert part.reason == '`--out=x` is not listed as a safe option'


def test_syntax_that_is_not_understood_is_named():
    explanation = judge(default=OPEN).explain('echo ${a@P}')

    assert explanation.deciding.kind == 'syntax'
    assert explanation.deciding.reason == 'not understood: expansion'


def test_a_wrapper_and_what_it_runs_are_parts_of_their_own():
    explanation = judge(*unasked('ls')).explain('timeout 5 ls -l')

    assert [(part.text, part.rule) for part in explanation.parts] == [('timeout 5 ls -l', None), ('ls -l', 'ls')]


def test_an_empty_command_has_a_part_too():
    explanation = judge(default=OPEN).explain('')

    assert explanation.decision == 'ask'
    assert explanation.deciding.reason == 'there is no command to run'


@pytest.mark.parametrize(
    ('command', 'reason'),
    [
        ('pytest "$t"', '`"$t"` is unknown until the command runs, and may be an option'),
        ('pytest @f', '`@f` may read options or values from a file'),
        ('pytest --pdb', '`--pdb` is not listed as a safe option'),
        ('echo a | xargs pytest',
            ('an argument added by `xargs` or a similar program '
             'is unknown until the command runs, and may be an option')),
    ],
)  # fmt: skip
def test_reason_quotes_the_given_word_and_not_the_data(command, reason):
    assert judge(*unasked('pytest', 'echo')).explain(command).deciding.reason == reason


@pytest.mark.parametrize('wrapper', ['timeout', 'nice', 'xargs'])
def test_an_unknown_option_of_a_wrapper_is_named(wrapper):
    explanation = judge(*unasked('ls'), default=OPEN).explain(f'{wrapper} "$a" ls')

    assert explanation.decision == 'ask'
    assert any(
        part.reason == '`"$a"` is unknown until the command runs, and may be an option' for part in explanation.parts
    )


def test_a_rule_that_does_not_hold_for_these_paths_is_named():
    rule = {'pattern': 'pytest', 'approval': False, 'sandbox_paths': ['out']}
    decide = judge(rule, roots={'out': '/here/out'}).explain

    reason = 'the rule `pytest` applies only to paths in `out`, and this command may use other paths'
    assert decide('pytest no').deciding.reason == decide('pytest').deciding.reason == reason


@table(
    ('command', 'needs', 'reason'),
    [(command, set(each['needs']), each['reason']) for each in NEEDS for command in each['commands'].splitlines()],
)
def test_the_extra_access_of_a_line_is_what_each_of_its_programs_needs(command, needs, reason):
    assert judge().explain(command).needs == needs, reason
