from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tool_approval.answering import NotOffered
from tool_approval.core.offers import with_offers
from tool_approval.core.request import Votes
from tool_approval.inbox import Answer, Approver, ApproverRule, Content, Escalation, InboxEntry
from tool_approval.ui.slack.actions import Press, decision_of
from tool_approval.ui.slack.blocks import full_view, message_of, note_form

from tool_approval import ApprovalDecision, ApprovalPresentation, ApprovalRequest, LineageEntry, Offer, RememberOption

from .slack_server import active, buttons_of, press_of, refused_blocks, shown, texts_of

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
HOSTILE = '<!channel> <@U0ADA> <https://evil.example|ok> &lt; ``` *Approved* @here\n> http://evil.example \u202e`'


def entry_of(request, state='pending', answer=None, **content):
    settled = None if state == 'pending' else NOON
    return InboxEntry(
        id='i' * 43,
        digest='d' * 64,
        state=state,
        content=Content(request=request, **content),
        posted_at=NOON,
        settled_at=settled,
        answer=answer,
    )


def pressed(name):
    return Press.model_validate(press_of(name, f'{"i" * 43}.{"d" * 64}.0'))


def request_of(text):
    return ApprovalRequest(
        tool_name=text,
        args={text: text, 'other': [text]},
        description=text,
        reason=text,
        metadata={'caller': text, 'toolset_id': text, 'position': 2, 'batch_size': 3},
        lineage=(LineageEntry(agent_name=text, run_id='r', tool_name=text, tool_call_id='c'),),
        presentation=ApprovalPresentation(type='diff', content=text, metadata={'path': text, 'cwd': text}),
        remember_options=(RememberOption(kind='k', label=text or 'x', payload={}),),
    )


def answer_of(text, **decision):
    told = ApprovalDecision(**{'approved': True, 'note': text, **decision})
    return Answer(decision=told, by=Approver(id=text, name=text), digest='d' * 64)


def all_of(entry):
    """Everything that Slack may be sent about a request."""
    message = message_of(entry)
    yield message.text, list(message.blocks)
    for view in (note_form(entry), full_view(entry, 0), full_view(entry, 10**6)):
        yield '', list(view['blocks'])


def check(entry):
    for text, blocks in all_of(entry):
        assert refused_blocks(blocks, 50) is None
        for each in [text, *texts_of(blocks)]:
            assert active(each) == []


@pytest.mark.untraced
@pytest.mark.parametrize('size', [1, 10, 1000])
def test_hostile_text_in_every_field_becomes_no_mention_and_no_link(size):
    text = HOSTILE * size
    check(entry_of(request_of(text), expires_at=NOON))
    check(entry_of(request_of(text), 'approved', answer_of(text[:200] or 'x')))


@settings(deadline=None, max_examples=25)
@given(st.text(st.sampled_from('`<>&*\n\x1b\u202e\U0001f1e6\U0001f600a'), min_size=1, max_size=200), st.integers(1, 60))
def test_any_text_stays_within_the_limits_of_slack(text, times):
    check(entry_of(request_of(text * times)))


def test_a_plain_request_reads_well():
    request = ApprovalRequest(
        tool_name='shell',
        args={'command': 'rm -rf build'},
        reason='It deletes.',
        run_id='r',
        metadata={'position': 1, 'batch_size': 2, 'missing_capabilities': ['disk'], 'worker': 'cleaner'},
        presentation=ApprovalPresentation(
            type='command', content='rm -rf build', metadata={'extra_access': ['writes to .git']}
        ),
    )
    message = message_of(entry_of(request, expires_at=NOON))

    assert message.text == 'Approval needed: `shell`'
    assert shown(list(message.blocks)) == (
        '*Approve this call of* `shell`*?* (1 of 2)\n'
        '*worker*\n```\ncleaner\n```\n'
        '*why*\n```\nIt deletes.\n```\n'
        '*grants*\n```\ndisk, for calls of this tool until the run ends\n```\n'
        '*extra access*\n```\nwrites to .git\n```\n'
        '```\n$ rm -rf build\n```\n'
        'Expires at 12:00:00 UTC; the call is then denied.\n'
        'Approvers are not asked again for:\n```\nexactly this call\n```\n'
        'Approvers are not asked again for:\n```\nexactly this call\n```'
    )
    names = list(buttons_of({'blocks': message.blocks}))
    assert names == ['approve', 'approve_session', 'deny', 'deny_session', 'deny_note', 'edit']
    assert set(buttons_of({'blocks': message.blocks}).values()) == {f'{"i" * 43}.{"d" * 64}.0'}


def test_look_alike_characters_are_warned_of():
    blocks = list(message_of(entry_of(ApprovalRequest(tool_name='send', args={'to': 'p\u0430ypal.example'}))).blocks)

    assert '*Warning*\n```\n! ' in shown(blocks)


@pytest.mark.parametrize(
    'request_',
    [
        ApprovalRequest(tool_name='t', args={'a': 'x' * 20_000}),
        ApprovalRequest(tool_name='t', args={'a': '<' * 4_000}),
        ApprovalRequest(
            tool_name='t', reason='<' * 590 + '&' * 10, args={'a': '\u202e' * 30}, description='\u202e' * 600
        ),
        ApprovalRequest(tool_name='t', args={'to': 'a', 'text': 'b'}, payload={'to': 'x' * 280}),
        ApprovalRequest(tool_name='t', args={'to': 'a', 'text': 'b'}, payload={'to': 'x' * 400}),
    ],
    ids=['long', 'escaped', 'facts', 'confirmation', 'payload'],
)
def test_session_approval_is_not_offered_if_something_is_not_shown(request_):
    names = buttons_of({'blocks': message_of(entry_of(request_)).blocks})

    for button in ('approve_session', 'deny_session'):
        assert button not in names
        with pytest.raises(NotOffered):
            decision_of(pressed(button), request_)


def test_scope_of_a_session_approval_is_shown_before_the_answer():
    request = ApprovalRequest(tool_name='send', args={'to': 'bob', 'text': 'hi'}, payload={'to': 'bob'})
    blocks = list(message_of(entry_of(request)).blocks)

    assert decision_of(pressed('approve_session'), request).remember == 'session'
    assert "Approvers are not asked again for:\n```\nevery send with to: 'bob'\n```" in shown(blocks)


def test_scope_of_a_denial_for_the_session_is_shown_before_the_answer():
    request = ApprovalRequest(tool_name='send', args={'to': 'bob', 'text': 'hi'}, payload={'to': 'bob'})
    [*_, actions] = message_of(entry_of(request)).blocks
    [button] = [each for each in actions['elements'] if each['action_id'] == 'deny_session']

    decision = decision_of(pressed('deny_session'), request)

    assert (decision.approved, decision.remember, decision.remember_option) == (False, 'session', 'exact')
    assert button['confirm']['title']['text'] == 'Deny for this session?'
    assert button['confirm']['confirm']['text'] == 'Deny'
    assert button['confirm']['text']['text'] == (
        "Approvers are not asked again for:\n```\nevery send with to: 'bob'\n```"
    )


def test_bounded_approvals_have_a_button_each_and_say_what_they_cover():
    request = with_offers(
        ApprovalRequest(tool_name='refund', args={'to': 'Ada', 'amount': 5}),
        [Offer(uses=10), Offer(total={'amount': 500}, expires='tomorrow', same=('to',))],
    )
    blocks = list(message_of(entry_of(request)).blocks)

    names = list(buttons_of({'blocks': blocks}))
    assert names == [
        'approve', 'approve_session', 'approve_bounded_0', 'approve_bounded_1', 'deny', 'deny_session',
        'deny_note', 'edit',
    ]  # fmt: skip
    texts = [each['text']['text'] for each in blocks[-1]['elements']]
    assert texts[2] == 'Approve 10 times, counting this call'
    assert texts[3] == 'Approve within bounds', 'the text of a button has 75 characters'
    assert 'up to 500 in total, counting this call, until the next midnight (UTC)' in shown(blocks)
    decision = decision_of(pressed('approve_bounded_1'), request)
    assert (decision.approved, decision.remember) == (True, 'session')
    assert decision.remember_option == request.remember_options[1].kind


def test_a_bounded_approval_that_the_dialog_cannot_show_whole_is_not_offered():
    offer = Offer(uses=2, same=('a',))
    short, long = (ApprovalRequest(tool_name='t', args={'a': 'x' * size, 'b': 1}) for size in (20, 230))
    offered = [with_offers(each, [offer]) for each in (short, long)]

    names = [buttons_of({'blocks': message_of(entry_of(each)).blocks}) for each in offered]

    assert [len(each.remember_options) for each in offered] == [1, 1]
    assert ['approve_bounded_0' in each for each in names] == [True, False]
    with pytest.raises(NotOffered):
        decision_of(pressed('approve_bounded_0'), offered[1])


def test_a_button_for_a_bounded_approval_that_is_not_offered_is_refused():
    request = ApprovalRequest(tool_name='refund', args={'to': 'Ada'})

    with pytest.raises(NotOffered):
        decision_of(pressed('approve_bounded_0'), request)


def test_a_request_that_cannot_be_remembered_offers_no_bounded_approval():
    request = with_offers(ApprovalRequest(tool_name='t', args={'a': 'b'}, answers=('approve',)), [Offer(uses=2)])

    assert not any('bounded' in name for name in buttons_of({'blocks': message_of(entry_of(request)).blocks}))
    with pytest.raises(NotOffered):
        decision_of(pressed('approve_bounded_0'), request)


@pytest.mark.parametrize(
    ('state', 'answer', 'told'),
    [
        ('approved', answer_of('ada', note=None), '*Approved*; answered by `ada` (`ada`) at 12:00:00 UTC'),
        ('approved', answer_of('ada', remember='always'), '*Approved*, always; answered by'),
        ('approved', answer_of('ada', override_args={}), '*Approved* with changed arguments; answered by'),
        ('denied', answer_of('ada', approved=False, note='No'), '*Note*\n```\nNo\n```'),
        ('denied', answer_of('ada', approved=False, note='n' * 400), 'n' * 300 + '...'),
        ('expired', None, '*Expired* at 12:00:00 UTC: no approver answered in time'),
        ('withdrawn', None, '*Withdrawn* at 12:00:00 UTC: the run no longer waits for an answer'),
    ],
)
def test_a_settled_request_shows_its_outcome_and_no_buttons(state, answer, told):
    message = message_of(entry_of(ApprovalRequest(tool_name='t'), state, answer))

    assert told in shown(list(message.blocks))
    assert buttons_of({'blocks': message.blocks}) == {}


def test_several_people_see_who_has_agreed():
    request = ApprovalRequest(tool_name='t', votes=Votes(needed=3, agreed=('b`ob',)))
    settled = message_of(entry_of(request, 'approved', answer_of('ada', note=None)))

    assert '1 of 3 people: b' in shown(list(message_of(entry_of(request)).blocks))
    assert '*Approved*; answered by `ada` (`ada`) (2 of 3) at 12:00:00 UTC' in shown(list(settled.blocks))


def test_outcome_without_a_time_shows_none():
    entry = entry_of(ApprovalRequest(tool_name='t'), 'expired').model_copy(update={'settled_at': None})

    assert message_of(entry).text == '`t`: *Expired*: no approver answered in time'


def test_approver_without_a_name_is_shown_by_id():
    answer = Answer(decision=ApprovalDecision(approved=True), by=Approver(id='ada'), digest='d' * 64)

    assert 'answered by `ada` at' in message_of(entry_of(ApprovalRequest(tool_name='t'), 'approved', answer)).text


def test_it_is_shown_that_others_may_answer_now():
    on_call = Escalation(after='30m', to=ApproverRule(users=frozenset({'<!here>'})))
    rules = (ApproverRule(groups=frozenset({'S0LEADS'})), ApproverRule(users=frozenset({'ada'}), escalate=on_call))
    entry = entry_of(request_of('x'), approvers=rules)

    told = 'Others may answer now, too: `ada; after 30 minutes also &lt;!here&gt;`'
    assert told in str(message_of(entry, others=1).blocks)
    assert 'Others' not in str(message_of(entry).blocks)


def test_the_person_the_agent_works_for_is_shown():
    message = message_of(entry_of(ApprovalRequest(tool_name='pay', metadata={'requester': 'ada'})))

    assert any(text.startswith('*for*') or text == 'ada' for text in texts_of(message.blocks))
