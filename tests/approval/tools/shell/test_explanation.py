import pytest

from .parts import OPEN, blocked, judge, unasked


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
            {'text': 'y', 'kind': 'redirection', 'decision': 'ask', 'rule': None, 'reason': 'the file is written'},
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

    assert part.reason == 'the option is not listed as safe (`--out=x`)'


def test_what_is_not_understood_is_said():
    explanation = judge(default=OPEN).explain('echo ${a@P}')

    assert explanation.deciding.kind == 'syntax'
    assert explanation.deciding.reason == 'not understood: expansion is not understood'


def test_a_wrapper_and_what_it_runs_are_parts_of_their_own():
    explanation = judge(*unasked('ls')).explain('timeout 5 ls -l')

    assert [(part.text, part.rule) for part in explanation.parts] == [('timeout 5 ls -l', None), ('ls -l', 'ls')]


def test_an_empty_command_has_a_part_too():
    explanation = judge(default=OPEN).explain('')

    assert explanation.decision == 'ask'
    assert explanation.deciding.reason == 'there is nothing to run, so no rule is about it'


@pytest.mark.parametrize(
    ('command', 'reason'),
    [
        ('pytest "$t"', 'it is not known before it runs, and may be an option (`"$t"`)'),
        ('pytest @f', 'options or values are read from the file (`@f`)'),
        ('pytest --pdb', 'the option is not listed as safe (`--pdb`)'),
        ('echo a | xargs pytest',
            'it is not known before it runs, and may be an option (what `xargs` or the like adds)'),
    ],
)  # fmt: skip
def test_what_was_given_is_said_and_not_what_the_table_has(command, reason):
    assert judge(*unasked('pytest', 'echo')).explain(command).deciding.reason == reason


def test_a_rule_that_does_not_hold_for_these_paths_is_named():
    rule = {'pattern': 'pytest', 'approval': False, 'sandbox_paths': ['out']}
    decide = judge(rule, roots={'out': '/here/out'}).explain

    reason = 'the rule `pytest` holds only below `out`, and it is not certain that it reads nothing else'
    assert decide('pytest no').deciding.reason == decide('pytest').deciding.reason == reason
