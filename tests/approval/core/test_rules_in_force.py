"""Among several rules, one decides about a tool; test_policy.py tests its decision."""

import pytest
from tool_approval.core.config import InForce, ToolRules

from tool_approval import ToolRule


def find(tool, /, **rules):
    return ToolRules({name: ToolRule(approval=approval) for name, approval in rules.items()}).find(tool)


def test_tool_without_a_rule_has_no_approval_and_no_description():
    assert find('a') == InForce(approval=None, description=None, decided_by=None)


@pytest.mark.parametrize(
    ('rules', 'decided_by'),
    [
        ({'abc': 'none', 'ab*': 'required'}, 'abc'),
        ({'abc': None, 'ab*': 'required', 'a*': 'none'}, 'ab*'),
        ({'a?c': 'none', 'a*c': 'required'}, 'a*c'),
        ({'abc': 'none', 'a*': 'blocked', '*': 'blocked'}, 'a*'),
        ({'abc': 'blocked', 'ab*': 'blocked'}, 'abc'),
        ({'abc': None, 'x*': 'blocked'}, None),
        ({'[ab]bc': 'none', '?bc': 'required', 'a??': 'blocked'}, 'a??'),
    ],
)
def test_the_rule_that_decides_is_named(rules, decided_by):
    found = find('abc', **rules)

    assert found.decided_by == decided_by
    assert found.approval == (None if decided_by is None else rules[decided_by])


def test_a_rule_that_decides_nothing_describes_what_a_glob_decides():
    rules = ToolRules({'abc': ToolRule(description='One.'), 'a*': ToolRule(approval='none', description='All.')})

    assert rules.find('abc') == InForce(approval='none', description='One.', decided_by='a*')
