import pytest
from pydantic import ValidationError
from tool_approval.inbox import Approver, ApproverRule
from tool_approval.inbox.approvers import ApproverRules

ADMINS = ApproverRule(groups=frozenset({'admins'}))
OPS = ApproverRule(users=frozenset({'ada'}), groups=frozenset({'ops'}))


@pytest.mark.parametrize(
    'rule', ['policy', 'memory', 'mode', 'timeout', 'ui', 'arguments', 'audit', 'other', 'Policy', ' ui ']
)
def test_approver_id_that_is_the_name_of_a_rule_is_refused(rule):
    with pytest.raises(
        ValidationError, match='cannot be the id of an approver: it is the name of a rule; use another id'
    ):
        Approver(id=rule)


@pytest.mark.parametrize('fields', [{'id': ''}, {'id': 'x' * 201}, {'id': 'a', 'name': 'x' * 201}, {'id': 'a\ud800'}])
def test_approver_with_an_invalid_id_or_name_is_refused(fields):
    with pytest.raises(ValidationError):
        Approver(**fields)


def test_a_rule_lists_users_and_members_of_groups():
    assert OPS.lists(Approver(id='ada'))
    assert OPS.lists(Approver(id='bob', groups=frozenset({'ops', 'dev'})))
    assert not OPS.lists(Approver(id='bob', groups=frozenset({'dev'})))
    assert not OPS.lists(Approver(id='ops'))
    assert not OPS.lists(Approver(id='eve', name='ada', groups=frozenset({'ada'})))


def test_empty_rule_lists_no_approver():
    assert not ApproverRule().lists(Approver(id='ada', groups=frozenset({''})))


def test_most_specific_rule_applies_in_any_order():
    rules = {'*': OPS, 'delete_*': ADMINS, 'delete_cache': OPS, 'd*': OPS}

    for each in (rules, dict(reversed(rules.items()))):
        found = ApproverRules(each)
        assert found.for_tool('delete_file') == (ADMINS,)
        assert found.for_tool('delete_cache') == (OPS,)
        assert found.for_tool('read') == (OPS,)


def test_all_rules_of_a_tie_must_list_the_approver():
    found = ApproverRules({'delete_?': OPS, 'delete_*': ADMINS, '[a-z]elete_x': OPS})

    assert set(found.for_tool('delete_y')) == {OPS, ADMINS}


def test_request_without_a_matching_rule_has_no_approver():
    assert ApproverRules({'read': OPS}).for_tool('write') == (ApproverRule(),)
    assert ApproverRules({}).for_tool('write') == (ApproverRule(),)
