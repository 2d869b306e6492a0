"""A rule's cases: which one applies to the arguments of a call."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_approval.core.arguments import HIDDEN
from tool_approval.core.conditions import received
from tool_approval.core.request import ApprovalContext
from tool_approval.testing import RecordingUI

from tests.approval.parts import ListSink
from tool_approval import (
    ApprovalConfigError,
    ApprovalController,
    ApprovalPolicy,
    ApprovalRefused,
    execute_tool,
    requires_approval,
)

REFUND = {
    'approval': 'required',
    'cases': [
        {'when': {'amount': {'below': 50}}, 'approval': 'none'},
        {'when': {'amount': {'above': 500}}, 'approval': 'blocked'},
    ],
}


def found(cases, args, *, approval='required'):
    return ApprovalPolicy({'t': {'approval': approval, 'cases': cases}}).rule_for('t', args)


def outcome(condition, value):
    """`applies`, `not`, or `strictest`."""
    case = {'when': {'x': condition}, 'approval': 'none'}
    other = {'when': {'y': {'is': 'never'}}, 'approval': 'blocked'}
    return {'none': 'applies', 'required': 'not', 'blocked': 'strictest'}[
        found([case, other], {'x': value, 'y': ''}).approval
    ]


@pytest.mark.parametrize(
    ('args', 'approval', 'case'),
    [
        ({'amount': 49}, 'none', 1),
        ({'amount': 49.99}, 'none', 1),
        ({'amount': 50}, 'required', None),
        ({'amount': 500}, 'required', None),
        ({'amount': 500.01}, 'blocked', 2),
        ({'amount': -1}, 'none', 1),
        # None of these may slip below a limit.
        ({'amount': '600'}, 'blocked', 2),
        ({'amount': '10'}, 'blocked', 2),
        ({'amount': True}, 'blocked', 2),
        ({'amount': None}, 'blocked', 2),
        ({'amount': float('nan')}, 'blocked', 2),
        ({'amount': float('inf')}, 'blocked', 2),
        ({'amount': [10]}, 'blocked', 2),
        ({'amount': {'value': 10}}, 'blocked', 2),
        ({'amount': HIDDEN}, 'blocked', 2),
        ({}, 'blocked', 2),
        ({'Amount': 10}, 'blocked', 2),
    ],
)
def test_the_first_case_whose_conditions_hold_applies_or_the_strictest(args, approval, case):
    rule = ApprovalPolicy({'refund': REFUND}).rule_for('refund', args)

    assert (rule.approval, rule.case) == (approval, case)


@pytest.mark.parametrize(
    ('condition', 'value', 'expected'),
    [
        ({'at_most': 5}, 5, 'applies'),
        ({'at_most': 5}, 5.0000001, 'not'),
        ({'at_least': 0.1}, 0.1, 'applies'),
        ({'above': 0.3}, 0.1 + 0.2, 'applies'),
        ({'above': 2**53}, 2**53 + 1, 'applies'),
        ({'below': 10**400}, 10**400 - 1, 'applies'),
        ({'above': 1, 'below': 3}, 2, 'applies'),
        ({'above': 1, 'below': 3}, 3, 'not'),
        ({'is': 'EUR'}, 'EUR', 'applies'),
        ({'is': 'EUR'}, 'eur', 'not'),
        ({'is': 'EUR'}, None, 'not'),
        ({'is': 'EUR'}, 1, 'strictest'),
        ({'is': 'EUR'}, HIDDEN, 'strictest'),
        ({'is': 1}, 1.0, 'applies'),
        ({'is': 1}, True, 'strictest'),
        ({'is': True}, True, 'applies'),
        ({'is': True}, 1, 'strictest'),
        ({'is': None}, None, 'applies'),
        ({'is': None}, 0, 'not'),
        ({'in': ['a', 'b']}, 'b', 'applies'),
        ({'in': ['a', 'b']}, 'c', 'not'),
        ({'in': ['a', 2]}, 'c', 'strictest'),
        ({'in': ['a', 2]}, 2, 'applies'),
        ({'matches': 'docs/*'}, 'docs/a/b.md', 'applies'),
        ({'matches': 'docs/*'}, 'DOCS/a', 'not'),
        ({'matches': 'a*'}, 'a\nb', 'applies'),
        ({'matches': '*'}, 5, 'strictest'),
        ({'present': True}, 0, 'applies'),
        ({'present': True}, None, 'not'),
        ({'present': False}, None, 'applies'),
        ({'present': False}, '', 'not'),
        ({'present': True, 'below': 5}, None, 'not'),
        ({'present': True, 'below': 5}, '1', 'strictest'),
    ],
)
def test_a_condition_compares_values_of_one_kind(condition, value, expected):
    assert outcome(condition, value) == expected


def test_all_conditions_of_a_case_must_hold_and_each_must_be_comparable():
    case = {'when': {'currency': {'is': 'EUR'}, 'amount': {'below': 50}}, 'approval': 'none'}
    blocked = {'when': {'currency': {'is': 'XXX'}}, 'approval': 'blocked'}

    assert found([case], {'currency': 'EUR', 'amount': 1}).approval == 'none'
    assert found([case], {'currency': 'USD', 'amount': 1}).approval == 'required'
    assert found([case, blocked], {'currency': 'USD', 'amount': '1'}).approval == 'blocked'


def test_a_value_inside_another_is_named_with_a_dot():
    case = {'when': {'transfer.amount': {'below': 50}}, 'approval': 'none'}

    assert found([case], {'transfer': {'amount': 1}}).approval == 'none'
    assert found([case], {'transfer': {'amount': 99}}).approval == 'required'
    # The model adds an argument that has the name of the condition.
    assert found([case], {'transfer.amount': 1, 'transfer': {'amount': 99}}).approval == 'required'
    assert found([case], {'transfer.amount': 1, 'amount': 99}).reason is not None
    assert found([case], {'transfer': 'amount'}).reason == '`transfer.amount` is missing or cannot be compared'


def test_without_approval_the_rule_leaves_other_calls_to_the_tool():
    free = {'when': {'x': {'is': 1}}, 'approval': 'none'}

    assert found([free], {'x': 1}, approval=None).approval == 'none'
    assert found([free], {'x': 2}, approval=None).approval is None
    assert found([free], {'x': '1'}, approval=None).approval is None


def test_of_two_equal_globs_the_one_with_the_stricter_case_applies():
    strict = {'approval': 'none', 'cases': [{'when': {'x': {'above': 500}}, 'approval': 'required'}]}
    for rules in ({'a*': {'approval': 'none'}, '*z': strict}, {'a*': strict, '*z': {'approval': 'none'}}):
        policy = ApprovalPolicy(rules)

        assert [policy.rule_for('az', {'x': x}).approval for x in (1, 600, '1')] == ['none', 'required', 'required']


def test_a_case_of_a_glob_that_blocks_holds_beside_a_more_exact_rule():
    blocked = {'when': {'to': {'matches': '*@rival.example'}}, 'approval': 'blocked'}
    policy = ApprovalPolicy({'*': {'cases': [blocked]}, 'send': {'approval': 'none'}})

    assert policy.rule_for('send', {'to': 'ada@home.example'}).approval == 'none'
    rule = policy.rule_for('send', {'to': 'eve@rival.example'})
    assert (rule.approval, rule.decided_by, rule.case) == ('blocked', '*', 1)


values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.lists(st.integers())
conditions = st.one_of(
    st.fixed_dictionaries({st_key: st.integers(-5, 5)}) for st_key in ('below', 'above', 'at_least', 'at_most')
) | st.fixed_dictionaries({'is': st.integers(-5, 5) | st.text(max_size=1)})
cases = st.lists(
    st.fixed_dictionaries(
        {'when': st.fixed_dictionaries({'x': conditions}), 'approval': st.sampled_from(['none', 'required', 'blocked'])}
    ),
    min_size=1,
    max_size=4,
)


@given(cases, values)
def test_nothing_runs_unasked_that_no_case_names(some, value):
    rule = found(some, {'x': value})

    if rule.approval == 'none':
        assert rule.case is not None
        assert some[rule.case - 1]['approval'] == 'none'
        assert isinstance(value, int | float | str)
        assert not isinstance(value, bool)
    if value is None or isinstance(value, bool | list):
        strictest = max(['required', *(case['approval'] for case in some)], key=['none', 'required', 'blocked'].index)
        # Null is not equal to a number or a text, which is known.
        assert rule.approval == (strictest if value is not None or 'is' not in str(some) else rule.approval)


@pytest.mark.parametrize(
    ('lines', 'problem'),
    [
        ('when: {amount: {below: "50"}}', 'refund.cases.0.when.amount.below: not a number'),
        ('when: {amount: {below: yes}}', 'refund.cases.0.when.amount.below: not a number'),
        ('when: {amount: {below: null}}', 'refund.cases.0.when.amount.below: not a number'),
        ('when: {amount: {belwo: 50}}', 'unknown key; did you mean `below`?'),
        ('when: {amount: {equal: 50}}', 'unknown key'),
        ('when: {amount: {iss: 50}}', 'unknown key; did you mean `is`?'),
        ('when: {amount: {is: [1]}}', 'not a string, a number, true, false or null'),
        ('when: {amount: {in: 5}}', 'not a list of values'),
        ('when: {amount: {in: []}}', 'not a list of values'),
        ('when: {amount: {in: [[1]]}}', 'not a string, a number, true, false or null'),
        ('when: {amount: {}}', 'a condition needs a key with a value, such as `below: 50`'),
        ('when: {amount: {present: null}}', 'a condition needs a key with a value, such as `below: 50`'),
        ('when: {amount: {present: no, below: 5}}', 'an argument that is not present has no value to compare'),
        ('when: {amount: 50}', 'must be a mapping'),
        ('when: {}', 'the value is empty'),
    ],
)
def test_a_mistake_in_a_case_names_its_line(lines, problem):
    pytest.importorskip('yaml')
    text = f'tools:\n  refund:\n    approval: required\n    cases:\n      - approval: none\n        {lines}\n'

    with pytest.raises(ApprovalConfigError) as caught:
        ApprovalPolicy.from_yaml(text, source='rules.yaml')

    assert problem in str(caught.value)
    assert caught.value.line == 6


def test_a_case_says_whether_it_needs_approval():
    with pytest.raises(ApprovalConfigError, match=r'cases\.0: a case needs `approval` or `approvers`'):
        ApprovalPolicy({'t': {'cases': [{'when': {'x': {'is': 1}}}]}})


def refund(amount: float, memo: str = '') -> str:
    return f'{amount} refunded'


def attempt(args, *, ui, policy=None, function=refund):
    controller = ApprovalController(policy={'refund': REFUND} if policy is None else policy, ui=ui)
    try:
        return asyncio.run(execute_tool(function, 'refund', args, controller, default='required'))
    except ApprovalRefused as error:
        return str(error)


def test_a_call_is_asked_about_runs_or_is_blocked_by_its_arguments():
    ui = RecordingUI(True)

    assert attempt({'amount': 20}, ui=ui) == '20 refunded'
    assert ui.requests == []
    assert attempt({'amount': 200}, ui=ui) == '200 refunded'
    assert [request.args['amount'] for request in ui.requests] == [200]
    assert attempt({'amount': 600}, ui=ui) == "Blocked 'refund': This call of 'refund' is blocked by policy."
    assert attempt({'amount': '20'}, ui=ui) == (
        "Blocked 'refund': This call of 'refund' is blocked by policy: "
        'the value of `amount` is missing or cannot be compared.'
    )


def test_the_approver_reads_why_a_call_is_asked_about():
    ui = RecordingUI(False)
    cases = [{'when': {'amount': {'below': 50}}, 'approval': 'none', 'description': 'Small.'}]
    policy = {'refund': {'approval': 'required', 'description': 'Pay back', 'cases': cases}}

    attempt({'amount': '20'}, ui=ui, policy=policy)

    [request] = ui.requests
    assert request.description == 'Pay back'
    assert request.reason == (
        'The value of `amount` is missing or cannot be compared, so the strictest case of the rule applies.'
    )


def test_a_case_has_a_description_of_its_own():
    ui = RecordingUI(True)
    cases = [{'when': {'amount': {'above': 50}}, 'approval': 'required', 'description': 'A large refund'}]

    attempt({'amount': 60}, ui=ui, policy={'refund': {'approval': 'required', 'description': 'Any', 'cases': cases}})

    assert [request.description for request in ui.requests] == ['A large refund']


def test_an_edit_into_a_blocked_case_does_not_run():
    from tool_approval import ApprovalDecision

    ui = RecordingUI(ApprovalDecision(approved=True, override_args={'amount': 900}))

    assert 'blocked by policy' in attempt({'amount': 200}, ui=ui)


@pytest.mark.parametrize(
    ('answer', 'told', 'questions'),
    [(True, '20 refunded', 1), (False, '20 refunded', 0), (None, 'TypeError', 0), ('yes', 'TypeError', 0)],
)
def test_the_decorator_takes_a_condition(answer, told, questions):
    @requires_approval(when=lambda args: answer)
    def checked(amount: float) -> str:
        return f'{amount} refunded'

    ui = RecordingUI(True)

    assert told in attempt({'amount': 20}, ui=ui, policy={}, function=checked)
    assert len(ui.requests) == questions


def test_a_condition_of_the_decorator_that_fails_blocks_the_call():
    def fails(args):
        raise KeyError('amount')

    @requires_approval(when=fails)
    def checked(amount: float) -> str:
        return f'{amount} refunded'

    ui = RecordingUI(True)

    assert 'failed (KeyError)' in attempt({'amount': 20}, ui=ui, policy={}, function=checked)
    assert ui.requests == []


def test_the_policy_judges_a_request_and_a_call_alike():
    policy = ApprovalPolicy({'refund': REFUND})
    context = ApprovalContext(tool_name='refund', args={'amount': 20})

    assert asyncio.run(policy.judge(context)).is_pre_approved
    assert policy.rule_for('refund').approval == 'blocked', 'without arguments, the strictest case'


def test_a_number_that_is_none_does_not_pass_a_condition_of_the_decorator():
    @requires_approval(when=lambda args: args['amount'] >= 50)
    def checked(amount: float) -> str:
        return f'{amount} refunded'

    ui = RecordingUI(True)

    assert attempt({'amount': float('nan')}, ui=ui, policy={}, function=checked).startswith(
        "Blocked 'refund': the arguments are invalid"
    )
    assert attempt({'amount': 5}, ui=ui, policy={}, function=checked) == '5 refunded'
    assert ui.requests == []


@pytest.mark.parametrize('rule', [{}, {'refund': {'approval': 'none'}}])
@pytest.mark.parametrize('options', [{}, {'payload': lambda args: {'amount': args['amount']}}])
def test_excluded_arguments_are_not_logged_for_a_call_that_runs_unasked(rule, options):
    when = (lambda args: False) if not rule else None

    @requires_approval(exclude_keys=['pin'], when=when, **options)
    def checked(amount: float, pin: str) -> str:
        return 'done'

    log = ListSink()
    controller = ApprovalController(policy=rule, audit=log)
    asyncio.run(execute_tool(checked, 'refund', {'amount': 1, 'pin': 'hunter2'}, controller, default='required'))

    assert [entry['event'] for entry in log.all] == ['unasked', 'outcome']
    assert log.all[0]['payload']['amount'] == 1
    assert 'hunter2' not in str(log.all)


def test_the_tool_receives_a_part_of_what_is_shown():
    shown = {'t': {'amount': 600, 'dry_run': True}, 'items': [{'a': 1, 'b': 2}], 'extra': 1}

    assert received(shown, None) == shown
    assert received(shown, {'t': {'amount': 600}, 'items': [{'a': 1}]}) == {'t': {'amount': 600}, 'items': [{'a': 1}]}
    # An approver's edit, too, is judged by what the tool receives.
    assert received({'t': {'amount': 5, 'dry_run': True}}, {'t': {'amount': 600}}) == {'t': {'amount': 5}}
