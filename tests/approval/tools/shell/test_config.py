import pytest
from pydantic import ValidationError
from tool_approval.core.errors import ApprovalConfigError
from tool_approval.tools.shell import ShellConfig, ShellRule, ShellTool

from tests.tables import table


def test_by_default_every_command_is_asked_about():
    config = ShellConfig()

    assert (config.default.allowed, config.default.approval, config.rules) == (True, True, ())
    assert (config.network, config.timeout_s) == (False, 600)


def test_a_rule_says_nothing_but_its_pattern_and_asks():
    rule = ShellRule(pattern='git  push')

    assert (rule.words, rule.allowed, rule.approval) == (('git', 'push'), True, True)


@table(
    'config',
    [
        {'rule': []}, {'default': {'allow': True}}, {'rules': [{'pattern': 'a', 'approve': False}]}, {'rules': [{}]},
        {'rules': [{'pattern': ''}]}, {'rules': [{'pattern': ' '}]}, {'rules': [{'pattern': 'rm *'}]}, {'timeout_s': 0},
        {'rules': [{'pattern': 'a\nb'}]}, {'rules': [{'pattern': 'a\u00a0b'}]}, {'rules': [{'pattern': 'a\u200bb'}]},
        {'rules': [{'pattern': 'a', 'allowed': 'no'}]}, {'rules': [{'pattern': 'a', 'approval': 0}]},
        {'timeout_s': True},
        {'timeout_s': float('inf')}, {'timeout_s': '5'}, {'rules': {'pattern': 'a'}}, {'network': 'no'},
        {'timeout_s': -1},
    ],
)  # fmt: skip
def test_invalid_configuration_is_refused(config):
    with pytest.raises(ValidationError):
        ShellConfig.model_validate(config)


def test_a_configuration_does_not_change():
    config = ShellConfig.model_validate({'rules': [{'pattern': 'a', 'match': ['a b']}]})

    with pytest.raises(ValidationError):
        config.rules[0].pattern = 'b'  # pyright: ignore[reportAttributeAccessIssue] - that is the case

    assert config.rules[0].match == ('a b',)


@pytest.mark.parametrize(
    ('rules', 'problem'),
    [
        (
            [{'pattern': 'git status', 'match': ['git log']}],
            r'shell\.rules\.0\.match: the rule does not apply to `git log`',
        ),
        ([{'pattern': 'git'}, {'pattern': 'git push', 'match': ['git push']}], r'shell\.rules\.1\.match'),
        ([{'pattern': 'git', 'not_match': ['git push']}], r'rules\.0\.not_match: the rule applies to `git push`'),
        ([{'pattern': 'git', 'match': ['$a']}], r'shell\.rules\.0\.match'),
    ],
)
def test_an_example_that_the_rule_does_not_keep_is_a_mistake(rules, problem):
    with pytest.raises(ApprovalConfigError, match=problem):
        ShellTool({'rules': rules})


def test_examples_that_hold_are_accepted():
    rule = {
        'pattern': 'git status',
        'approval': False,
        'match': ['git status -s'],
        'not_match': ['git statusx', 'git log'],
    }

    assert ShellTool({'rules': [rule]}).config.rules[0].not_match == ('git statusx', 'git log')
