"""Rules say who must approve a call, how many of them, and who is asked later."""

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from tool_approval.core.approvers import Approver, ApproverRule, Escalation
from tool_approval.core.asking import ANYONE
from tool_approval.core.config import ToolRules
from tool_approval.inbox import InboxUI, NotAnApprover
from tool_approval.inbox.approvers import ApproverRules
from tool_approval.settings import effective, load_settings, parse_settings
from tool_approval.testing import RecordingUI, ScriptedUI

from tests.approval.inbox.conftest import make_inbox
from tests.approval.inbox.parts import ADA, BOB, NO, YES, answer, soon
from tests.approval.parts import CheckingLedger, ListSink, request_for
from tool_approval import (
    ApprovalConfigError,
    ApprovalController,
    ApprovalDecision,
    ApprovalMemory,
    ApprovalPolicy,
    ApprovalRefused,
    Count,
    FirstOf,
    execute_tool,
)

pytest.importorskip('yaml')

pytestmark = pytest.mark.anyio

__all__ = ('make_inbox',)

EVE = Approver(id='eve', groups=frozenset({'on-call'}))
SETTINGS = """\
approvers:
  two-leads: {groups: [leads], count: 2, escalate: {after: 30m, to: on-call}, timeout: {after: 2h, then: deny}}
  on-call: {groups: [on-call], users: [zoe]}
tools:
  refund:
    approval: required
    cases:
      - {when: {amount: {below: 50}}, approval: none}
      - {when: {amount: {above: 500}}, approvers: two-leads}
"""


@pytest.fixture
def make_store(tmp_path):
    from tool_approval.inbox.stores import SQLiteStore

    return lambda: SQLiteStore(tmp_path / 'state' / 'inbox.sqlite')


def policy_of(rule, **leads):
    approvers = {'leads': {'users': ['ada', 'bob'], **leads}, 'zoe': {'users': ['zoe']}}
    return ApprovalPolicy({'delete': rule, 'other': {'approval': 'required'}}, approvers=approvers)


BY_LEADS = {'approval': 'required', 'approvers': 'leads'}


class Named(RecordingUI):
    """Gives the same answer in the names of people."""

    def __init__(self, *names, **more):
        super().__init__(ApprovalDecision(approved=True, decided_by=names, **more))


async def decide(ui, policy, *, request=None, **options):
    controller = ApprovalController(ui=ui, policy=policy, **options)
    return await controller.request_approval(request or request_for('a'))


def test_settings_say_who_must_approve_which_call():
    policy = parse_settings(SETTINGS).policy

    def who(**args):
        return [rule.text for rule in policy.approvers_of(request_for(tool_name='refund', args=args))]

    asked = '2 of group leads; after 30 minutes also zoe, group on-call; denied after 2 hours'
    assert (who(amount=20), who(amount=500), who(amount=501)) == ([], [], [asked])
    assert who(amount='600') == [asked]
    assert who() == [asked]


def test_several_rules_apply_to_a_value_that_cannot_be_compared():
    rule = {
        'approvers': 'a',
        'cases': [{'when': {'x': {'is': 1}}, 'approvers': 'b'}, {'when': {'x': {'is': 2}}, 'approval': 'required'}],
    }
    rules = ToolRules(ApprovalPolicy({'t': rule, '*': {'approvers': 'c'}}, approvers=NAMED).config.tools)

    assert [rules.find('t', {'x': value}).approvers for value in (1, 2, 3, 'one')] == [
        ('b',),
        ('a',),
        ('a',),
        ('a', 'b'),
    ]
    assert (rules.find('u').approvers, rules.find('t', {'x': 1}).approval) == (('c',), 'required')


NAMED = {name: {'users': [name]} for name in 'abc'}


@pytest.mark.parametrize(
    ('text', 'line', 'problem'),
    [
        ('tools: {t: {approvers: lead}}\napprovers: {leads: {users: [a]}}', 1, 'did you mean `leads`'),
        ('tools:\n  t:\n    cases:\n    - {when: {x: {is: 1}}, approvers: lead}', 4, '`lead` is not under `approvers`'),
        ('custom_tools:\n  t: {approvers: lead}', 2, 'custom_tools.t.approvers: `lead` is not under'),
        ('approvers:\n  a: {users: [x], escalate: {after: 1h, to: b}}', 2, 'escalate.to: `b` is not under'),
        ('approvers:\n  a: {users: [x], escalate: {after: 1h, to: {users: [b]}}}', 2, 'not the name of an entry'),
        ('approvers:\n  a: {users: [x], escalate: {after: 1h, to: {user: b}}}', 2, 'not the name of an entry'),
        ('approvers:\n  a: {users: [x], escalate: {after: 1h, to: 7}}', 2, 'not the name of an entry'),
        ('approvers:\n  a: {users: [x], escalate: {after: 1h, to: a}}', 2, '`a` escalates to itself'),
        (
            (
                'approvers:\n  a: {users: [x], escalate: {after: 1h, to: b}}\n'
                '  b: {users: [x], escalate: {after: 1h, to: a}}'
            ),
            2,
            '`a` escalates to itself',
        ),
        ('approvers:\n  a: {users: [x], escalate: {after: soon, to: b}}', 2, 'after: not a duration such as'),
        ('approvers:\n  a: {users: [x], timeout: {after: 0m, then: deny}}', 2, 'must be more than zero'),
        ('approvers:\n  a: {users: [x], timeout: {after: tomorrow, then: deny}}', 2, 'not a duration'),
        (
            'approvers:\n  a: {users: [x], timeout: {after: 2h, then: approve}}',
            2,
            'unknown value `approve`; use `deny`',
        ),
        ('approvers:\n  a: {users: [x], count: 2}', 2, '2 people must approve, and only 1 are listed'),
        ('approvers:\n  a: {users: [x], count: 0}', 2, 'greater than or equal to 1'),
        ('approvers:\n  a: {users: [x], count: true}', 2, 'not a whole number'),
        ('approvers:\n  a: {users: x}', 2, 'not a list'),
        ('approvers:\n  a: {count: 2}', 2, 'no one is listed'),
        ('approvers:\n  a: {user: [x]}', 2, 'did you mean `users`'),
        ('approvers: {a: {users: [x]}}\ntools:\n  t: {approval: none, approvers: a}', 3, 'asks no one'),
        (
            (
                'approvers: {a: {users: [x]}}\ntools:\n  t:\n    cases:\n'
                '    - {when: {x: {is: 1}}, approval: none, approvers: a}'
            ),
            5,
            'asks no one',
        ),
    ],
)
def test_a_mistake_is_an_error_with_its_line(text, line, problem):
    with pytest.raises(ApprovalConfigError) as raised:
        parse_settings(text, source='approvals.yaml')

    assert (raised.value.line, problem in str(raised.value)) == (line, True), str(raised.value)


def test_votes_of_those_who_are_asked_later_count_towards_the_number():
    text = 'approvers:\n  a: {users: [x], count: 2, escalate: {after: 1h, to: b}}\n  b: {users: [y]}'

    assert parse_settings(text).approvers['a'].count == 2


def test_the_policy_of_a_program_has_the_same_rules():
    policy = ApprovalPolicy(
        {'t': {'approvers': 'a'}}, approvers={'a': ApproverRule(users={'x'}), 'b': {'users': ['y']}}
    )

    [rule] = policy.approvers_of(request_for(tool_name='t'))
    assert rule.users == {'x'}
    with pytest.raises(ApprovalConfigError, match='not under `approvers`'):
        ApprovalPolicy({'t': {'approvers': 'z'}})


def test_an_untrusted_file_limits_who_may_approve_and_cannot_wait_longer(tmp_path):
    (tmp_path / 'approvals.yaml').write_text(SETTINGS)
    loaded = load_settings(directory=tmp_path)

    policy = effective(loaded).policy

    assert not loaded.trusted
    for amount in (20, 600):
        request = request_for(tool_name='refund', args={'amount': amount})
        assert policy.judge_request(request).is_needs_approval
    [rule] = policy.approvers_of(request)
    assert rule.text == '2 of group leads; after 30 minutes also zoe, group on-call'


def test_who_may_approve_changes_with_the_time():
    last = ApproverRule(groups={'on-call'})
    later = ApproverRule(users={'bob'}, escalate=Escalation(after=timedelta(hours=1), to=last))
    rule = ApproverRule(users={'ada'}, escalate=Escalation(after='30m', to=later))
    times = [timedelta(minutes=minutes) for minutes in (0, 29, 30, 89, 90)]

    assert [[rule.lists(who, time) for time in times] for who in (ADA, BOB, EVE)] == [
        [True, True, True, True, True],
        [False, False, True, True, True],
        [False, False, False, False, True],
    ]
    assert rule.text == 'ada; after 30 minutes also bob; after 1 hour also group on-call'
    assert rule.everyone == ApproverRule(users={'ada', 'bob'}, groups={'on-call'})
    assert (rule.may_list('anyone'), ApproverRule(users={'ada'}).may_list('bob')) == (True, False)
    assert ApproverRule().text == 'no one'
    assert ApproverRule.model_validate_json(rule.model_dump_json()) == rule


def test_an_inbox_has_no_names_to_resolve():
    named = ApproverRule(users={'ada'}, escalate=Escalation(after='30m', to='on-call'))
    given = ApproverRule(users={'ada'}, escalate=Escalation(after='30m', to=ApproverRule(users={'bob'})))

    with pytest.raises(TypeError, match=r"approvers\['delete'\].escalate.to"):
        ApproverRules({'delete': named})
    assert ApproverRules({'delete': given}).for_tool('delete') == (given,)


async def test_a_ui_that_does_not_know_who_answers_is_not_asked():
    terminal = SimpleNamespace(choose=lambda request, *, mode: pytest.fail('asked'))
    known = Named('ada')

    denied = await decide(terminal, policy_of(BY_LEADS))
    decision = await decide(FirstOf(terminal, known), policy_of(BY_LEADS))

    assert (denied.approved, denied.note, denied.decided_by) == (False, ANYONE, ('ui',))
    assert (decision.approved, decision.decided_by) == (True, ('ada',))
    assert [rule.text for rule in known.requests[0].approvers] == ['ada, bob']


async def test_a_call_that_some_must_approve_is_asked_about_outside_of_its_group():
    class Terminal(RecordingUI):
        heeds_approvers = False
        groups_responses = True

        def choose_group(self, requests, *, mode):
            self.requests.extend(requests)
            return ApprovalDecision(approved=True)

    ui = Terminal()
    requests = [request_for('a', tool_name='other'), request_for('b'), request_for('c', tool_name='third')]

    decisions = await ApprovalController(ui=ui, policy=policy_of(BY_LEADS)).request_approvals(requests)

    assert [each.approved for each in decisions] == [True, False, True]
    assert [each.tool_name for each in ui.requests] == ['other', 'third']


@pytest.mark.parametrize(
    ('names', 'count', 'is_enough'),
    [
        (('ada',), 1, True),
        (('ada', 'bob'), 2, True),
        ((), 1, False),
        (('ui',), 1, False),
        (('eve',), 1, False),
        (('ada', 'eve'), 1, False),
        (('ADA',), 1, False),
        (('ada',), 2, False),
        (('ada', 'ada'), 2, False),
        (('ada', 'Ada'), 2, False),
        (('ada', 'rex'), 2, False),
    ],
)
async def test_an_approval_needs_enough_of_the_listed_people(names, count, is_enough):
    users = ['ada', 'bob', 'rex']
    request = request_for('a', metadata={'requester': 'rex'})

    decision = await decide(Named(*names), policy_of(BY_LEADS, count=count, users=users), request=request)

    assert decision.approved is is_enough
    assert is_enough or (decision.decided_by == ('ui',) and 'no valid decision' in decision.note)


async def test_one_listed_person_can_always_deny():
    ui = RecordingUI(ApprovalDecision(approved=False, note='No.', decided_by=('ada',)))

    decision = await decide(ui, policy_of(BY_LEADS, count=2))

    assert (decision.note, decision.decided_by) == ('No.', ('ada',))


async def test_scripted_answers_are_those_of_the_people_who_may_answer():
    decision = await decide(ScriptedUI([True]), policy_of(BY_LEADS, count=2))
    in_groups = await decide(RecordingUI('y'), policy_of(BY_LEADS, users=[], groups=['leads'], count=2))
    plain = await decide(RecordingUI(), policy_of({'approval': 'required'}))

    assert (decision.decided_by, in_groups.decided_by) == (('ada', 'bob'), ('person 1', 'person 2'))
    assert plain.decided_by == ('ui',)


async def test_a_change_to_a_call_that_others_must_approve_is_refused():
    cases = [{'when': {'amount': {'above': 500}}, 'approvers': 'leads'}]
    policy = policy_of({'approval': 'required', 'cases': cases})

    def delete(amount):
        pytest.fail('it ran')

    for amount in (600, '600'):
        controller = ApprovalController(ui=Named('eve', override_args={'amount': amount}), policy=policy)
        with pytest.raises(ApprovalRefused, match='Other people must approve'):
            await execute_tool(delete, 'delete', {'amount': 100}, controller)


async def test_what_anyone_approved_for_the_session_covers_no_call_that_some_must_approve():
    memory = ApprovalMemory()
    free, bound = policy_of({'approval': 'required'}), policy_of(BY_LEADS)
    session = {'remember': 'session'}

    await decide(Named('eve', **session), free, memory=memory)
    ui = Named('ada', **session)
    first = await decide(ui, bound, memory=memory)
    again = await decide(ui, bound, memory=memory)
    other = Named('bob')
    late = await decide(other, policy_of(BY_LEADS, users=['bob']), memory=memory)
    same_text = ApprovalMemory()
    same_text.store(
        request_for('a').changed(approvers=bound.approvers_of(request_for('a'))),
        ApprovalDecision(approved=True, decided_by=('eve',), **session),
    )
    forged = await decide(other, bound, memory=same_text)

    assert [first.decided_by, again.decided_by, late.decided_by, forged.decided_by] == [
        ('ada',),
        ('ada',),
        ('bob',),
        ('bob',),
    ]
    assert (len(ui.requests), len(other.requests)) == (1, 2)


@pytest.mark.parametrize('ledger', [None, CheckingLedger()])
@pytest.mark.parametrize('now', [{'users': ['bob', 'eve']}, {'count': 2}])
async def test_an_approver_is_checked_again_right_before_the_call_runs(ledger, now):
    """The settings change after the answer."""

    class Answers(Named):
        def choose(self, request, *, mode):
            controller.policy = policy_of(BY_LEADS, **now)
            return super().choose(request, mode=mode)

    ran = []
    log = ListSink()
    controller = ApprovalController(ui=Answers('ada'), policy=policy_of(BY_LEADS), audit=log)

    with pytest.raises(ApprovalRefused, match='may no longer approve'):
        await execute_tool(
            ran.append, 'delete', {'object': 1}, controller, {'tool_call_id': '1', 'run_id': 'r'}, ledger=ledger
        )

    assert ran == []
    assert [(each['event'], each.get('outcome')) for each in log.entries][-1] == ('outcome', 'refused')


@pytest.mark.parametrize(
    ('mine', 'other', 'is_so'),
    [
        ({'after': None}, {'after': None}, True),
        ({'after': None}, {'after': '1h'}, True),
        ({'after': '1h'}, {'after': '1h'}, True),
        ({'after': '1h'}, {'after': None}, False),
        ({'after': '1h'}, {'after': '2h'}, False),
        ({'after': '1h', 'to': 'eve'}, {'after': '1h'}, False),
        ({'after': None, 'to': 'eve', 'count': 2}, {'after': '1h'}, True),
    ],
)
def test_a_rule_is_as_strict_as_another_if_it_needs_as_many_of_the_same_people(mine, other, is_so):
    def made(after, to='zoe', count=1):
        later = None if after is None else Escalation(after=after, to=ApproverRule(users={to}))
        return ApproverRule(users={'ada'}, count=count, escalate=later)

    assert made(**mine).is_as_strict_as(made(**other)) is is_so


async def test_a_call_is_logged_with_the_rules_for_approvers():
    log = ListSink()
    policy = policy_of(BY_LEADS, escalate={'after': '30m', 'to': 'zoe'})

    await decide(Named('ada'), policy, audit=log)
    await decide(Named('ada'), policy, audit=log, request=request_for(tool_name='other'))

    later = {'after': '1800s', 'to': {'users': ['zoe'], 'groups': []}}
    rule = {'users': ['ada', 'bob'], 'groups': [], 'escalate': later}
    assert [each.get('approvers') for each in log.entries] == [[rule], None]
    assert ApproverRule.model_validate(rule) == policy.approvers_of(request_for('a'))[0]


async def test_an_inbox_asks_two_people_and_after_a_time_others_too(make_inbox):
    times = [timedelta()]
    inbox = make_inbox()
    begin = datetime.now(UTC)
    page = make_inbox(now=lambda: begin + times[0])
    policy = parse_settings(SETTINGS).policy
    lead = Approver(id='ada', groups=frozenset({'leads'}))
    request = request_for(tool_name='refund', args={'amount': 600})
    deciding = asyncio.create_task(decide(InboxUI(inbox), policy, request=request))

    [first] = await soon(page)
    with pytest.raises(NotAnApprover, match=r'only listed approvers may answer; others may from \d{4}-'):
        await answer(page, first, by=EVE)
    await answer(page, first, by=lead)
    [second] = await soon(page)
    times[0] = timedelta(minutes=31)
    with pytest.raises(NotAnApprover, match=r'only listed approvers may answer$'):
        await answer(page, second, by=BOB)
    await answer(page, second, by=EVE)
    decision = await deciding

    assert (decision.approved, decision.decided_by) == (True, ('ada', 'eve'))
    assert second.content.expires_at - first.content.expires_at == timedelta()
    assert timedelta(hours=1, minutes=59) < first.content.expires_at - first.posted_at <= timedelta(hours=2)
    shown = request.changed(approvers=policy.approvers_of(request))
    assert InboxUI(inbox).asks(shown) == ['zoe', 'group leads', 'group on-call']
    assert second.request.approvers == ()


async def test_rules_of_the_inbox_and_of_the_settings_both_apply(make_inbox):
    inbox, page = make_inbox(), make_inbox()
    ui = InboxUI(inbox, approvers={'delete': ApproverRule(users={'bob', 'eve'})})
    deciding = asyncio.create_task(decide(ui, policy_of(BY_LEADS)))

    [entry] = await soon(page)
    for other in (ADA, EVE):
        with pytest.raises(NotAnApprover):
            await answer(page, entry, by=other)
    await answer(page, entry, by=BOB)

    assert (await deciding).decided_by == ('bob',)


async def test_without_enough_answers_in_time_the_call_is_denied(make_inbox):
    inbox = make_inbox()
    ui, now = InboxUI(inbox), await inbox.now()
    decisions = []
    for count, timeout in ((1, {'after': '2h', 'then': 'deny'}), (2, {'after': '90s', 'then': 'deny'}), (1, None)):
        policy = policy_of(BY_LEADS, count=count, timeout=timeout)
        request = request_for('a')
        request = request.changed(approvers=policy.approvers_of(request))
        entry = await inbox.post_entry(ui.content_of(request, now))
        decisions.append(ui.decision_of(entry.model_copy(update={'state': 'expired'})))

    assert [(each.approved, each.decided_by) for each in decisions] == [(False, ('timeout',))] * 3
    assert [each.note for each in decisions] == [
        'No approver answered within 2 hours, so the call was denied.',
        'Not enough approvers answered within 90 seconds, so the call was denied.',
        'No approver answered within 3600 seconds, so the call was denied.',
    ]


async def test_fewer_votes_than_a_rule_needs_are_not_enough(make_inbox):
    inbox, page = make_inbox(), make_inbox()
    own = InboxUI(inbox, approvers={'delete': ApproverRule(groups={'ops'}, count=3)})

    denied = await decide(Count(2, own), None)
    deciding = asyncio.create_task(
        decide(Count(2, InboxUI(inbox)), policy_of(BY_LEADS, users=['ada', 'bob', 'eve'], count=3))
    )
    for who in (ADA, BOB, EVE):
        [entry] = await soon(page)
        await answer(page, entry, YES, by=who)

    assert (denied.approved, denied.decided_by) == (False, ('ui',))
    assert (await deciding).decided_by == ('ada', 'bob', 'eve')


async def test_whether_a_call_runs_again_is_for_the_same_people(make_inbox):
    inbox, page = make_inbox(), make_inbox()
    controller = ApprovalController(ui=InboxUI(inbox), policy=policy_of(BY_LEADS))
    deciding = asyncio.create_task(controller.ask_anew(request_for('a')))

    [entry] = await soon(page)
    with pytest.raises(NotAnApprover):
        await answer(page, entry, by=EVE)
    await answer(page, entry, NO, by=ADA)

    assert await deciding is False
