import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tool_approval.core.offers import with_offers
from tool_approval.core.request import Votes
from tool_approval.inbox import Answer, Approver, Content, InboxEntry
from tool_approval.ui.discord.message import Target, content_of, message_of

from tool_approval import ApprovalDecision, ApprovalPresentation, ApprovalRequest, LineageEntry, Offer, RememberOption

from .discord_server import refused_message, utf16

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
ID, DIGEST = 'i' * 43, 'd' * 64
HOSTILE = '@everyone <@11> <@&900> [ok](https://evil.example) \\` ``` **Approved** ||x||\n# > -# :fire: \u202e\u200b`'


def entry_of(request, state='pending', answer=None, **content):
    settled = None if state == 'pending' else NOON
    content = Content(request=request, **content)
    entry = InboxEntry(id=ID, digest=DIGEST, state=state, content=content, posted_at=NOON, answer=answer)
    return entry.model_copy(update={'settled_at': settled})


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


def answer_of(**decision):
    told = ApprovalDecision(**{'approved': True, **decision})
    return Answer(decision=told, by=Approver(id='ada'), digest=DIGEST)


def active(text):
    """What Discord makes markup of, or people read as ours: all that is neither in code nor escaped.

    The rules are those of Discord's client: a block of code has a line that is not empty, and ends at the next fence.
    """
    parts = text.split('```')
    assert len(parts) % 2 == 1, 'a fence is open'
    for block in parts[1::2]:
        assert re.match(r'\n[^\n]', block), 'an empty block'
        assert block.endswith('\n')
    rest = ''.join(parts[::2])
    found = ''
    while rest:
        # As the client does: an escape, code between backticks, our bold text, or a character.
        match = re.match(r'\\[!-/:-@\[-`{-~]|`[^`\n]+`|\*\*|.', rest, re.DOTALL)
        found += match[0] if len(match[0]) == 1 else ''
        rest = rest[match.end() :]
    return re.findall(r'[^\w\s?():;.,]|[\u200b-\u206f]', found)


def check(entry):
    heading, texts, buttons = message_of(entry)
    embeds = [{'description': text} for text in texts]
    rows = [{'components': [{'custom_id': key, 'label': label} for key, label in buttons.items()][:5]}]
    body = {'content': heading, 'embeds': embeds, 'components': rows if buttons else []}
    assert refused_message({'allowed_mentions': {'parse': []}, **body}) is None
    assert [active(text) for text in (heading, *texts)] == [[]] * (len(texts) + 1)
    for label in buttons.values():
        assert '\n' not in label
        assert '\u202e' not in label


@pytest.mark.untraced
@pytest.mark.parametrize('size', [1, 10, 1000])
def test_hostile_text_in_every_field_becomes_no_mention_and_no_markup(size):
    text = HOSTILE * size
    check(entry_of(request_of(text), expires_at=NOON))
    by = Answer(
        decision=ApprovalDecision(approved=False, note=text, decided_by=(text[:200], 'b', text[:200])),
        by=Approver(id=text[:200], name=text[:200]),
        digest=DIGEST,
    )
    check(entry_of(request_of(text), 'denied', by))


@settings(deadline=None, max_examples=25)
@given(st.text(st.sampled_from('`\\<>&*_#\n\x1b\u202e\U0001f1e6\U0001f600a'), min_size=1), st.integers(1, 60))
def test_any_text_stays_within_the_limits_of_discord(text, times):
    check(entry_of(request_of(text * times)))
    check(entry_of(request_of(text * times), 'denied', answer_of(approved=False, note=text * times)))


def test_a_plain_request_reads_well():
    request = ApprovalRequest(
        tool_name='shell',
        args={'command': 'rm -rf build'},
        reason='It deletes.',
        metadata={'position': 1, 'batch_size': 2},
        presentation=ApprovalPresentation(type='command', content='rm -rf build'),
    )
    heading, texts, buttons = message_of(entry_of(request, expires_at=NOON))

    assert heading == (
        '**Approve this call of** `shell` (1 of 2)**?**\nExpires at 12:00:00 UTC; the call is then denied.'
    )
    assert '\n'.join(texts) == (
        'why\\:\n```\n| It deletes.\n```\nCall\\:\n```\n$ rm -rf build\n```\n'
        'The answers for this session cover\\:\n```\n| exactly this call\n```'
    )
    assert list(buttons.values()) == [
        'Approve',
        'Approve for this session',
        'Deny',
        'Deny for this session',
        'Deny with a note',
    ]
    assert [Target.read(each) for each in buttons] == [
        Target(kind, ID, DIGEST) for kind in ('approve', 'session', 'deny', 'deny_session', 'note')
    ]


def test_look_alike_characters_are_warned_of():
    _, [text], _ = message_of(entry_of(ApprovalRequest(tool_name='send', args={'to': 'p\u0430ypal.example'})))

    assert text.startswith('```\n! ')


@pytest.mark.parametrize(
    'request_',
    [
        ApprovalRequest(tool_name='t', args={'a': 'x' * 6000}),
        ApprovalRequest(tool_name='t', args={'a': '\u202e' * 700}),
        ApprovalRequest(tool_name='t', args={'a': '\U0001f600' * 3000}),
        ApprovalRequest(tool_name='t', reason='x ' * 290, description='y ' * 290, args={'a': 'x' * 4000}),
        ApprovalRequest(tool_name='t', args={'a': 'x' * 1_000_000}),
    ],
    ids=['long', 'escaped', 'wide', 'facts', 'very long'],
)
def test_a_request_that_is_not_shown_whole_can_only_be_denied(request_):
    heading, texts, buttons = message_of(entry_of(request_))

    assert 'cannot be shown whole in Discord' in heading
    assert any('more part' in text for text in texts)
    assert [Target.read(each).answer for each in buttons] == ['deny', 'note']
    assert sum(map(utf16, texts)) <= 6000


def test_a_request_that_its_tool_has_cut_can_only_be_denied():
    cut = ApprovalPresentation(type='text', content='[... 5 lines ...]', metadata={'is_summary': True})
    _, answers, is_whole = content_of(ApprovalRequest(tool_name='t', args={}, presentation=cut))

    assert (list(answers), is_whole) == (['deny', 'note'], False)


def test_a_request_with_a_fact_that_is_cut_can_only_be_denied():
    _, answers, is_whole = content_of(ApprovalRequest(tool_name='t', args={}, reason='x' * 2000))

    assert (list(answers), is_whole) == (['deny', 'note'], False)


def test_a_call_with_altered_arguments_can_be_approved_once():
    _, answers, is_whole = content_of(ApprovalRequest(tool_name='t', args={'a': 1}, hides_arguments=True))

    assert (list(answers), is_whole) == (['approve', 'deny', 'note'], True)


def test_nothing_is_remembered_if_what_it_covers_does_not_fit():
    shown = [content_of(ApprovalRequest(tool_name='t', args={'a': ['x' * 70] * count})) for count in range(50, 70)]

    assert {(*answers,) for _, answers, _ in shown} == {
        ('approve', 'session', 'deny', 'deny_session', 'note'),
        ('approve', 'deny', 'note'),
        ('deny', 'note'),
    }
    for texts, answers, _ in shown:
        assert ('this session cover' in texts[-1]) is ('session' in answers)


def test_bounded_approvals_are_shown_with_what_they_cover():
    request = ApprovalRequest(tool_name='refund', args={'to': 'Ada', 'note': 'x' * 90})
    request = with_offers(request, [Offer(uses=10), Offer(uses=5)])
    [text], answers, _ = content_of(request)

    assert [each for each in answers if each.startswith('bounded')] == ['bounded_0', 'bounded_1']
    assert 'Approval within bounds 0 covers\\:\n```\n| ' in text
    assert all(utf16(label) <= 80 for label in answers.values())


def test_bounded_approvals_of_different_calls_have_different_buttons():
    hour = timedelta(hours=1)
    request = ApprovalRequest(tool_name='write', args={'path': 'a', 'text': 'x'})
    request = with_offers(request, [Offer(expires=hour, same=('path',)), Offer(expires=hour, same=())])
    _, answers, _ = content_of(request)

    assert answers['bounded_0'] == 'Approve for 1 hour after your answer (bounds 0)'
    assert len(set(answers.values())) == len(answers)


def test_an_answer_that_the_tool_does_not_allow_has_no_button():
    only_result = ApprovalRequest(tool_name='ask', args={'q': 'x'}, answers=('respond',))

    assert list(content_of(only_result)[1]) == ['deny', 'note', 'respond']


@pytest.mark.parametrize(
    ('state', 'answer', 'told'),
    [
        ('approved', answer_of(remember='session'), 'Approved for this session by ada at 12:00:00 UTC'),
        ('denied', answer_of(approved=False, note='no `'), 'Denied by ada at 12:00:00 UTC\nNote:\n```\n| no `\n```'),
        ('denied', answer_of(approved=False, response={'a': 1}), 'Result:\n```\n| {"a":1}\n```'),
        ('expired', None, 'Expired: no approver answered in time at 12:00:00 UTC'),
    ],
)
def test_a_settled_request_shows_its_outcome_and_no_buttons(state, answer, told):
    heading, texts, buttons = message_of(entry_of(ApprovalRequest(tool_name='t'), state, answer))

    assert heading == '**Call of** `t`'
    assert told in texts[-1].replace('\\', '')
    assert buttons == {}


def test_a_long_outcome_says_that_there_is_more():
    answer = answer_of(approved=False, note='\u202e' * 300)
    _, texts, _ = message_of(
        entry_of(ApprovalRequest(tool_name='t'), 'denied', answer).model_copy(update={'settled_at': None})
    )

    assert texts[-1].endswith('\\[\\.\\.\\.\\]')
    assert texts[-1].startswith('Denied by ada\n')


def test_several_people_see_who_has_agreed():
    request = ApprovalRequest(tool_name='t', votes=Votes(needed=3, agreed=('b`ob',)))

    assert '1 of 3 people: b' in ''.join(message_of(entry_of(request))[1])
    assert '(2 of 3)' in message_of(entry_of(request, 'approved', answer_of()))[1][-1].replace('\\', '')


@pytest.mark.parametrize(
    'custom_id',
    [
        None,
        '',
        'approve',
        f'approve.{ID}',
        f'approve.{ID}.{"=" * 43}',
        f'approve.{ID}.{"A" * 44}',
        f'A.{ID}.{"A" * 43}',
    ],
)
def test_the_id_of_another_bots_button_is_none_of_ours(custom_id):
    assert Target.read(custom_id) is None


def test_the_longest_id_of_a_button_is_what_discord_takes():
    target = Target('deny_session', ID, 'af' * 32)

    assert len(target.custom_id) == 100
    assert Target.read(target.custom_id) == target
