import asyncio
import importlib
import logging
import sys
from datetime import UTC, datetime

import pytest
from aiohttp import web
from tool_approval.core.errors import MissingExtraError
from tool_approval.core.offers import with_offers
from tool_approval.inbox import Approver, ApproverRule, Inbox, InboxError, InboxUI, InboxUnavailable
from tool_approval.inbox.stores import SQLiteStore
from tool_approval.ui.discord import DiscordBot

from tool_approval import ApprovalController, ApprovalDecision, ApprovalRequest, Offer

from .discord_server import BOB, BOT, CHANNEL, EVE, OPS, TOKEN, USERS, buttons_of, text_of

pytestmark = pytest.mark.anyio

YES = ApprovalDecision(approved=True)
LONG = ApprovalRequest(tool_name='write', args={'text': 'x' * 9000})


def is_open(message):
    return message['components'] != []


async def answer(scene, entry):
    await scene.inbox.decide(entry.id, YES, by=Approver(id='ada'), digest=entry.digest)


async def says(scene, *words):
    [message] = scene.discord.messages.values()
    await scene.discord.until(lambda: all(word in text_of(message).replace('\\', '') for word in words))
    assert not is_open(message)


async def whispered(scene):
    """The newest text that only one person has read."""
    await scene.discord.until(lambda: scene.discord.whispers)
    return scene.discord.whispers[-1]['content'].replace('\\', '')


@pytest.mark.parametrize(
    ('button', 'state', 'remember', 'told'),
    [
        ('approve', 'approved', 'none', 'Approved by 11 at '),
        ('session', 'approved', 'session', 'Approved for this session by 11'),
        ('deny', 'denied', 'none', 'Denied by 11'),
        ('deny_session', 'denied', 'session', 'Denied for this session by 11'),
    ],
)
async def test_press_settles_the_request_and_the_message_shows_how(scene, button, state, remember, told):
    async with scene.following():
        entry = await scene.post()
        press = await scene.press(button)

        settled = await scene.became(entry, state)
        assert settled.answer.by == Approver(id='11', name='ada', groups={'700'})
        assert settled.answer.decision.remember == remember
        await says(scene, told)
        assert scene.discord.responses[press][0] == 6
        assert scene.discord.whispers == []


async def test_a_bounded_approval_is_chosen_with_its_button(scene):
    async with scene.following():
        request = with_offers(ApprovalRequest(tool_name='refund', args={'to': 'Ada'}), [Offer(uses=10)])
        entry = await scene.post(request)
        await scene.press('bounded_0')

        settled = await scene.became(entry, 'approved')
        assert settled.answer.decision.remember == 'session'
        assert settled.answer.decision.remember_option == request.remember_options[0].kind


@pytest.mark.parametrize(('written', 'told'), [(' Not now. ', 'Not now.'), ('', None), ('  ', None)])
async def test_a_denial_takes_a_note(scene, written, told):
    async with scene.following():
        entry = await scene.post()
        await scene.press('note')
        await scene.discord.until(lambda: scene.discord.forms)
        await scene.discord.submit(scene.discord.forms[0], written)

        settled = await scene.became(entry, 'denied')
        assert settled.answer.decision.note == told
        await says(scene, *(['Note:', told] if told else ['Denied']))


async def test_a_result_is_given_in_place_of_the_tool(scene):
    async with scene.following():
        entry = await scene.post(ApprovalRequest(tool_name='ask', args={'q': 'x'}, answers=('respond',)))
        await scene.press('respond')
        await scene.discord.until(lambda: scene.discord.forms)
        await scene.discord.submit(scene.discord.forms[0], ' ')
        assert 'does not offer this answer' in await whispered(scene)
        await scene.discord.submit(scene.discord.forms[0], 'blue')

        assert (await scene.became(entry, 'denied')).answer.decision.response == 'blue'
        await says(scene, 'Answered in place of the tool by 11', 'Result:', 'blue')


async def test_what_is_too_long_for_discord_cannot_be_approved_there(scene):
    async with scene.following():
        entry = await scene.post(LONG)
        message = await scene.posted()
        deny = buttons_of(message)['deny']
        for kind in ('approve', 'session', 'respond', 'bounded_0', 'edit', 'always'):
            scene.discord.whispers.clear()
            data = {'custom_id': deny.replace('deny', kind), 'components': [{'component': {'value': 'x'}}]}
            await scene.discord.press(data['custom_id'], type=5, data=data)
            assert 'does not offer this answer' in await whispered(scene)

        assert (await scene.inbox.get(entry.id)).state == 'pending'
        await scene.discord.press(deny)
        await scene.became(entry, 'denied')


@pytest.mark.parametrize('kind', ['approve', 'session', 'deny', 'deny_session'])
async def test_unlisted_user_gets_a_private_refusal_and_changes_nothing(scene, kind):
    async with scene.following():
        entry = await scene.post()
        await scene.press(kind, EVE)

        problem = 'only approvers listed for this channel may answer'
        assert await whispered(scene) == f'You may not answer this request: {problem}. Nothing was changed.'
        assert (await scene.inbox.get(entry.id)).state == 'pending'


async def test_unlisted_user_cannot_submit_a_form(scene):
    async with scene.following():
        entry = await scene.post()
        await scene.press('note', EVE)
        await scene.discord.until(lambda: scene.discord.forms)
        await scene.discord.submit(scene.discord.forms[0], 'x', EVE)

        assert 'You may not answer' in await whispered(scene)
        assert (await scene.inbox.get(entry.id)).state == 'pending'


async def test_member_of_a_listed_role_may_answer(scene):
    scene.discord.roles[EVE] = [str(OPS)]
    async with scene.following():
        entry = await scene.post()
        await scene.press('approve', EVE)

        assert str(OPS) in (await scene.became(entry, 'approved')).answer.by.groups


async def test_rules_of_the_request_apply_too(scene):
    async with scene.following():
        entry = await scene.post(approvers=(ApproverRule(users=frozenset({str(BOB)})),))
        await scene.press('approve')
        assert 'only listed approvers may answer' in await whispered(scene)
        await scene.press('approve', BOB)

        assert (await scene.became(entry, 'approved')).answer.by.id == str(BOB)


async def test_people_have_their_ids_of_elsewhere(scene):
    bot = scene.make_bot(people={'11': 'ada@example.org', '13': 'eve@example.org'})
    async with scene.following(bot):
        entry = await scene.post(requester='ada@example.org', forbid_self_approval=True)
        await scene.press('approve')
        assert 'requesters may not answer their own requests' in await whispered(scene)
        for user in (BOB, EVE):  # the one has no id elsewhere, the other is not listed
            scene.discord.whispers.clear()
            await scene.press('approve', user)
            assert 'only approvers listed for this channel may answer' in await whispered(scene)

        assert (await scene.inbox.get(entry.id)).state == 'pending'


async def test_two_people_must_agree(scene):
    rule = ApproverRule(users=frozenset({'11', '12'}), count=2)
    ui = InboxUI(scene.inbox, timeout=60, approvers={'*': rule})
    controller = ApprovalController(policy={'*': {'approval': 'required'}}, ui=ui)
    async with scene.following():
        asking = asyncio.ensure_future(controller.request_approval(ApprovalRequest(tool_name='pay')))
        await scene.press('approve')
        await scene.posted(2)
        await scene.press('approve')
        assert 'another person must agree too' in await whispered(scene)
        await scene.press('approve', BOB)

        decision = await asking
        assert (decision.approved, decision.decided_by) == (True, ('11', '12'))
        texts = [text_of(each).replace('\\', '') for each in scene.discord.messages.values()]
        assert 'Approved by 11 (1 of 2)' in texts[0]


async def test_one_of_two_racing_presses_wins_and_the_other_is_refused(scene):
    async with scene.following():
        entry = await scene.post()
        await scene.posted()
        await asyncio.gather(scene.press('approve'), scene.press('deny', BOB))
        settled = await scene.inbox.wait(entry.id, 20)
        winner = settled.answer.by.id

        assert f'came too late: the request is already {settled.state} by `{winner}`' in await whispered(scene)
        await says(scene, f'by {winner}')


async def test_a_second_press_of_an_old_message_updates_it(scene):
    async with scene.following():
        entry = await scene.post()
        message = await scene.posted()
        custom_id = buttons_of(message)['approve']
        await answer(scene, entry)
        await says(scene, 'Approved by ada')
        double = scene.discord.messages['5'] = scene.discord.message('5', {'content': 'old'})
        await scene.discord.press(custom_id, message='5')
        await scene.discord.until(lambda: double['content'] != 'old')
        assert 'Approved by ada' in text_of(double)
        await scene.discord.press(custom_id, message='6')  # deleted in the meantime
        await scene.discord.until(lambda: scene.discord.calls.count('edit') == 3)

        assert len(scene.discord.whispers) == 2


@pytest.mark.parametrize(
    ('wrong', 'told'),
    [
        (lambda good: f'{good[:-43]}{"A" * 43}', 'has changed since you saw it'),
        (lambda good: f'approve.{"x" * 43}.{good[-43:]}', 'no longer in the inbox'),
    ],
)
async def test_answer_to_another_request_or_content_is_refused(scene, wrong, told):
    async with scene.following():
        entry = await scene.post()
        await scene.discord.press(wrong(buttons_of(await scene.posted())['approve']))

        assert told in await whispered(scene)
        assert (await scene.inbox.get(entry.id)).state == 'pending'


async def test_presses_of_other_channels_and_other_buttons_are_ignored(scene):
    async with scene.following():
        entry = await scene.post()
        await scene.posted()
        await scene.press('approve', channel={'id': '801', 'type': 0, 'name': 'b', 'position': 0, 'permissions': '0'})
        await scene.discord.press('another-bots-button')
        await scene.discord.press('x', type=2, data={'id': '1', 'name': 'approve', 'type': 1})
        await scene.press('deny')
        await scene.became(entry, 'denied')

        assert len(scene.discord.responses) == 1


async def test_a_malformed_press_changes_nothing(scene):
    async with scene.following() as running:
        entry = await scene.post()
        await scene.posted()
        await scene.press('approve', channel={})
        await scene.press('deny')
        await scene.became(entry, 'denied')

        assert not running.done()


async def test_a_press_is_acknowledged_at_once_even_if_the_inbox_hangs(scene, monkeypatch):
    async with scene.following():
        entry = await scene.post()
        await scene.posted()
        go, get = asyncio.Event(), scene.inbox.get

        async def hang(request_id):
            await go.wait()
            return await get(request_id)

        monkeypatch.setattr(scene.inbox, 'get', hang)
        press = await scene.press('approve')
        await scene.discord.until(lambda: press in scene.discord.responses)
        await scene.press('note')
        await scene.discord.until(lambda: scene.discord.forms)
        go.set()

        await scene.became(entry, 'approved')


async def test_a_press_that_discord_no_longer_takes_changes_nothing(scene, caplog):
    async with scene.following():
        entry = await scene.post()
        await scene.posted()
        scene.discord.fail('callback', (404, 10062))
        await scene.press('approve')
        await scene.discord.until(lambda: 'callback' in scene.discord.calls)
        await scene.press('deny')

        await scene.became(entry, 'denied')
    assert 'Discord call defer failed: NotFound 404, code 10062' in caplog.text


async def test_a_person_who_cannot_be_told_is_logged(scene, caplog):
    async with scene.following():
        entry = await scene.post()
        await scene.posted()
        scene.discord.fail('followup', 'drop')
        await scene.press('approve', EVE)
        await scene.discord.until(lambda: 'followup' in scene.discord.calls)
        await scene.press('deny')

        await scene.became(entry, 'denied')
    assert 'Discord call followup failed' in caplog.text


async def test_a_press_while_the_inbox_is_away_is_reported(scene, monkeypatch):
    async with scene.following():
        await scene.post()
        await scene.posted()

        async def fail(*_, **__):
            raise InboxUnavailable('a file', 'full')

        monkeypatch.setattr(scene.inbox, 'get', fail)
        await scene.press('approve')

        assert 'The inbox cannot be reached' in await whispered(scene)


async def test_request_settled_elsewhere_is_shown_as_settled(scene):
    async with scene.following():
        answered, withdrawn = await scene.post(), await scene.post()
        await scene.posted(2)
        await answer(scene, answered)
        await scene.inbox.withdraw(withdrawn.id)
        await scene.discord.until(lambda: not any(map(is_open, scene.discord.messages.values())))

        texts = [text_of(message).replace('\\', '') for message in scene.discord.messages.values()]
        assert 'Approved by ada at ' in texts[0]
        assert 'Withdrawn: the run no longer waits for an answer' in texts[1]


async def test_a_bot_that_was_away_finds_its_messages_again(scene):
    async with scene.following():
        entries = [await scene.post() for _ in range(2)]
        await scene.posted(2)
    first, second = scene.discord.messages.values()
    await answer(scene, entries[0])
    async with scene.following(scene.make_bot()):
        await scene.discord.until(lambda: not is_open(first))
        assert is_open(second)
        await scene.discord.press(buttons_of(second)['approve'])
        await scene.became(entries[1], 'approved')
        await scene.discord.until(lambda: not is_open(second))

    assert scene.discord.calls.count('send') == 2


async def test_messages_of_others_are_not_taken_for_its_own(scene, tmp_path):
    entry = await scene.post()
    async with scene.following():
        mine = await scene.posted()
    odd = [{'type': 2, 'style': 5, 'url': 'https://a.example', 'label': 'x'}]
    rows = [{'type': 1, 'components': odd}]
    scene.discord.messages.clear()
    for author, components in ((USERS[EVE], mine['components']), (BOT, rows), (BOT, [{'type': 10, 'content': 'x'}])):
        message_id = scene.discord.new_id()
        body = {'content': 'hello', 'components': components}
        scene.discord.messages[message_id] = scene.discord.message(message_id, body, author)
    async with scene.following():
        await scene.posted(4)
        await answer(scene, entry)
        await scene.discord.until(lambda: 'edit' in scene.discord.calls)

    assert [message['content'] for message in scene.discord.messages.values()][:3] == ['hello'] * 3


@pytest.mark.parametrize(
    'fault',
    ['drop', (403, 50001), (404, 10003), web.Response(text='<html>'), web.Response(text='[1]')],
    ids=str,
)
async def test_message_that_discord_does_not_accept_now_is_posted_later(scene, fault, caplog):
    scene.discord.fail('send', fault)
    async with scene.following():
        await scene.post()
        await scene.posted()

    assert scene.slept == [1.0]
    assert 'trying again in 1 seconds' in caplog.text
    assert '<html>' not in caplog.text


async def test_a_message_whose_posting_was_cut_off_is_found_and_not_posted_twice(scene):
    scene.discord.fail('send', 'done-drop')
    async with scene.following():
        entry = await scene.post()
        await scene.discord.until(lambda: scene.discord.calls.count('history') == 2)
        await answer(scene, entry)
        await scene.discord.until(lambda: not any(map(is_open, scene.discord.messages.values())))

    assert len(scene.discord.messages) == 1


@pytest.mark.parametrize('code', [50035, 240000])
async def test_request_that_discord_refuses_does_not_keep_others_from_being_shown(scene, caplog, code):
    scene.discord.fail('send', (400, code))
    async with scene.following():
        await scene.post(ApprovalRequest(tool_name='odd'))
        await scene.discord.until(lambda: 'send' in scene.discord.calls)
        await scene.post()
        await scene.posted()

    problem = f'Discord call send failed: HTTPException 400, code {code}'
    assert f"{problem}; Discord does not show a request for 'odd'" in caplog.text


async def test_request_of_a_process_with_a_wrong_clock_does_not_stop_the_bot(scene, tmp_path):
    with Inbox(SQLiteStore(tmp_path / 'inbox.sqlite'), now=lambda: datetime(1970, 1, 1, tzinfo=UTC)) as other:
        await other.post(ApprovalRequest(tool_name='t'))
        async with scene.following() as running:
            await scene.discord.until(lambda: running.done() or scene.discord.messages)

            assert not running.done()


async def test_message_is_posted_after_a_rate_limit(scene):
    limited = web.Response(
        status=429,
        body=b'{"message": "You are being rate limited.", "retry_after": 0.01, "global": false}',
        headers={'Content-Type': 'application/json', 'Via': '1.1 google'},
    )
    scene.discord.fail('send', limited)
    async with scene.following():
        await scene.post()
        await scene.posted()

    assert scene.slept == []


@pytest.mark.parametrize(
    ('make', 'slept'),
    # The HTTP library itself tries a broken connection once more.
    [(lambda: 'drop', [1, 2]), (lambda: (401, 0), [1, 2, 4, 8]), (lambda: web.Response(text='<html>'), [1, 2, 4, 8])],
    ids=['drop', '401', 'no JSON'],
)
async def test_login_is_tried_again(scene, make, slept, caplog):
    scene.discord.fail('me', *(make() for _ in range(4)))
    async with scene.following():
        await scene.post()
        await scene.posted()

    assert scene.slept == slept
    assert 'Discord is unavailable: ' in caplog.text


async def test_a_connection_that_discord_ends_for_good_is_made_anew(scene):
    async with scene.following():
        entry = await scene.post()
        await scene.posted()
        await scene.discord.close(4004)
        await scene.discord.until(lambda: len(scene.discord.identified) == 2)
        await scene.press('approve')

        await scene.became(entry, 'approved')
    assert scene.discord.calls.count('send') == 1
    assert scene.slept == [1.0]


async def test_bot_ends_when_its_inbox_is_closed(scene):
    scene.inbox.close()

    with pytest.raises(InboxError, match='closed'):
        await scene.make_bot().run()


async def test_tokens_are_not_logged(scene, caplog):
    caplog.set_level(logging.DEBUG)
    scene.discord.fail('send', 'drop')
    async with scene.following():
        entry = await scene.post()
        await scene.posted()
        scene.discord.fail('followup', 'drop')
        await scene.press('approve', EVE)
        await scene.discord.until(lambda: 'followup' in scene.discord.calls)
        await scene.press('approve')
        await scene.became(entry, 'approved')

    assert TOKEN not in caplog.text
    told = [each for each in caplog.records if each.levelno > logging.DEBUG and each.name != 'aiohttp.access']
    assert not [each for each in told if 'secret-of-' in each.getMessage()]


async def test_bot_receives_nothing_but_servers(scene):
    async with scene.following():
        assert scene.discord.identified[0]['intents'] == 1


@pytest.mark.parametrize(
    ('wrong', 'error', 'problem'),
    [
        ({'token': ' '}, ValueError, '`token` is empty'),
        ({'channel': '800'}, TypeError, '`channel` must be a number'),
        ({'approvers': ApproverRule()}, ValueError, 'at least one user or group'),
        ({'approvers': ApproverRule(users={'11', '12'}, count=2)}, ValueError, 'only users and groups'),
        ({'approvers': ['11']}, TypeError, '`approvers` must be an `ApproverRule`'),
        ({'people': {'11': 'policy'}}, ValueError, 'is the name of a rule'),
    ],
)
def test_mistake_in_the_arguments_is_an_error(tmp_path, wrong, error, problem):
    good = {'token': TOKEN, 'channel': CHANNEL, 'approvers': ApproverRule(users=frozenset({'11'}))}
    with Inbox(SQLiteStore(tmp_path / 'i.sqlite')) as inbox, pytest.raises(error, match=problem):
        DiscordBot(inbox, **{**good, **wrong})


def test_missing_library_is_named(monkeypatch):
    name = 'tool_approval.ui.discord'
    monkeypatch.setitem(sys.modules, 'discord', None)
    monkeypatch.delitem(sys.modules, name)

    with pytest.raises(MissingExtraError, match=r'tool_approval\[discord\]'):
        importlib.import_module(name)
