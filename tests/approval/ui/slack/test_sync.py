import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web
from tool_approval.inbox import Approver, ApproverRule, Escalation, Inbox, InboxError
from tool_approval.inbox.stores import SQLiteStore

from tool_approval import ApprovalDecision, ApprovalRequest

from .slack_server import buttons_of, press_of, shown

pytestmark = pytest.mark.anyio

YES = ApprovalDecision(approved=True)


def is_open(message):
    return bool(buttons_of(message))


async def answer(scene, entry):
    await scene.inbox.decide(entry.id, YES, by=Approver(id='ada', name='Ada <!channel>'), digest=entry.digest)


async def test_request_settled_elsewhere_is_shown_as_settled(scene):
    async with scene.following():
        answered, withdrawn = await scene.post(), await scene.post()
        await scene.slack.until(lambda: len(scene.slack.messages) == 2)
        await answer(scene, answered)
        await scene.inbox.withdraw(withdrawn.id)
        await scene.slack.until(lambda: not any(map(is_open, scene.slack.messages.values())))

        texts = [shown(message['blocks']) for message in scene.slack.messages.values()]
        assert '*Approved*; answered by `Ada <!channel>` (`ada`) at ' in texts[0]
        assert '*Withdrawn* at ' in texts[1]
        assert 'the run no longer waits for an answer' in texts[1]


async def test_a_bot_that_was_away_finds_its_messages_again(scene):
    scene.slack.page_size = 2
    async with scene.following():
        entries = [await scene.post() for _ in range(3)]
        await scene.slack.until(lambda: len(scene.slack.messages) == 3)
    first, second, third = scene.slack.messages.values()
    await answer(scene, entries[0])
    late = await scene.post()
    again = scene.make_bot()
    async with scene.following(again):
        await scene.slack.until(lambda: len(scene.slack.messages) == 4 and not is_open(first))
        assert (is_open(second), is_open(third)) == (True, True)
        assert late.id in scene.slack.messages[max(scene.slack.messages)]['metadata']['event_payload'].values()
        scene.bot = again
        await scene.send(press_of('approve', buttons_of(third)['approve']))
        await scene.became(entries[2], 'approved')
        await scene.slack.until(lambda: not is_open(third))

    assert scene.slack.calls.count('chat.postMessage') == 4


async def test_messages_of_others_are_not_taken_for_its_own(scene):
    entry = await scene.post()
    forged = {'event_type': 'tool_approval_open', 'event_payload': {'request_id': entry.id}}
    scene.slack.messages = {
        f'{9e9:.0f}.00000{number}': {'ts': f'{9e9:.0f}.00000{number}', 'text': 'hello', **more}
        for number, more in enumerate(
            [
                {'bot_id': 'B0OTHER', 'metadata': forged},
                {'metadata': forged},
                {'bot_id': 'B0BOT', 'metadata': 'odd'},
                {'bot_id': 'B0BOT', 'metadata': {**forged, 'event_type': 'tool_approval_settled'}},
            ]
        )
    }
    async with scene.following():
        await scene.slack.until(lambda: len(scene.slack.messages) == 5)
        await answer(scene, entry)
        await scene.slack.until(lambda: 'chat.update' in scene.slack.calls)

        assert [message['text'] for message in scene.slack.messages.values()][:4] == ['hello'] * 4


async def test_a_message_of_another_inbox_is_left_alone(scene, tmp_path):
    with Inbox(SQLiteStore(tmp_path / 'other.sqlite')) as other:
        async with scene.following():
            await scene.post()
            await scene.slack.until(lambda: len(scene.slack.messages) == 1)
        mine, scene.inbox = scene.inbox, other
        async with scene.following(scene.make_bot()):
            await scene.post()
            await scene.slack.until(lambda: len(scene.slack.messages) == 2)
        scene.inbox = mine

    assert all(map(is_open, scene.slack.messages.values()))
    assert 'chat.update' not in scene.slack.calls


async def test_the_channel_is_notified_once_more_when_others_may_answer(scene, tmp_path):
    ago = [timedelta()]

    def now():
        return datetime.now(UTC) + ago[0]

    on_call = Escalation(after='30m', to=ApproverRule(groups=frozenset({'S0CALL'})))
    rule = ApproverRule(users=frozenset({'ada'}), escalate=on_call)
    with Inbox(SQLiteStore(tmp_path / 'inbox.sqlite'), now=now) as scene.inbox:
        async with scene.following(scene.make_bot(now=now)):
            entry = await scene.post(approvers=(rule,))
            await scene.slack.until(lambda: len(scene.slack.messages) == 1)
            ago[0] += timedelta(minutes=30)
            await scene.slack.until(lambda: len(scene.slack.messages) == 2)
        first, second = scene.slack.messages.values()
        async with scene.following(scene.make_bot(now=now)):
            await scene.post()
            await scene.slack.until(lambda: len(scene.slack.messages) == 3)
            await answer(scene, entry)
            await scene.slack.until(lambda: not is_open(first) and not is_open(second))

    assert scene.slack.calls.count('chat.postMessage') == 3


@pytest.mark.parametrize(
    'fault',
    [
        'drop',
        'not_in_channel',
        'invalid_auth',
        web.Response(text='<html>', content_type='text/html'),
        web.Response(text='[1]', content_type='application/json'),
        web.Response(body=b'x', content_type='application/gzip'),
        web.Response(text='{', content_type='application/json'),
        web.Response(text='{"ok": false, "error": "<html>"}', content_type='application/json'),
        web.Response(text='{"ok": true}', content_type='application/json'),
    ],
    ids=str,
)
async def test_message_that_slack_does_not_accept_now_is_posted_later(scene, fault, caplog):
    scene.slack.fail('chat.postMessage', fault)
    async with scene.following():
        await scene.post()
        await scene.slack.until(lambda: len(scene.slack.messages) == 1)

    assert scene.slept == [1.0]
    assert 'trying again in 1 seconds' in caplog.text
    assert '<html>' not in caplog.text


async def test_a_message_whose_posting_was_cut_off_is_found_and_not_posted_twice(scene):
    scene.slack.fail('chat.postMessage', 'done-drop')
    async with scene.following():
        entry = await scene.post()
        await scene.slack.until(lambda: scene.slack.calls.count('conversations.history') == 2)
        await answer(scene, entry)
        await scene.slack.until(lambda: not any(map(is_open, scene.slack.messages.values())))

    assert len(scene.slack.messages) == 1


async def test_pauses_grow_while_slack_is_away_and_begin_anew_when_it_is_back(scene):
    scene.slack.fail('auth.test', *['drop'] * 8)
    async with scene.following():
        await scene.post()
        await scene.slack.until(lambda: len(scene.slack.messages) == 1)
        scene.slack.fail('chat.postMessage', 'drop')
        await scene.post()
        await scene.slack.until(lambda: len(scene.slack.messages) == 2)

    assert scene.slept == [1, 2, 4, 8, 16, 32, 60, 60, 1]


async def test_request_that_slack_refuses_does_not_keep_others_from_being_shown(scene, caplog):
    scene.slack.fail('chat.postMessage', 'invalid_blocks')
    async with scene.following():
        refused = await scene.post(ApprovalRequest(tool_name='odd'))
        await scene.slack.until(lambda: scene.slack.calls.count('chat.postMessage') == 1)
        await scene.post()
        await scene.slack.until(lambda: len(scene.slack.messages) == 1)
        await answer(scene, refused)
        await scene.post()
        await scene.slack.until(lambda: len(scene.slack.messages) == 2)

    assert scene.slack.calls.count('chat.postMessage') == 3
    assert scene.slept == []
    assert "Slack call chat.postMessage failed: invalid_blocks; Slack does not show a request for 'odd'" in caplog.text


async def test_deleted_message_is_forgotten(scene, caplog):
    async with scene.following():
        entry, other = await scene.post(), await scene.post()
        await scene.slack.until(lambda: len(scene.slack.messages) == 2)
        del scene.slack.messages[min(scene.slack.messages)]
        await answer(scene, entry)
        await answer(scene, other)
        await scene.slack.until(lambda: scene.slack.calls.count('chat.update') == 2)
        # One thing is done after the other, so what was answered before has been dealt with then.
        await scene.post()
        await scene.slack.until(lambda: scene.slack.calls.count('chat.postMessage') == 3)

    assert 'message_not_found; the Slack message keeps its old content' in caplog.text


async def test_an_outcome_that_could_not_be_shown_is_shown_later(scene):
    async with scene.following():
        entry = await scene.post()
        await scene.slack.until(lambda: len(scene.slack.messages) == 1)
        scene.slack.fail('chat.update', 'drop')
        await answer(scene, entry)
        await scene.slack.until(lambda: not any(map(is_open, scene.slack.messages.values())))

    assert scene.slept == [1.0]


@pytest.mark.parametrize(
    ('times', 'slept'), [(2, [7, 7]), (6, [7, 7, 7, 7, 7, 1.0])], ids=['waited out', 'too often, so tried again later']
)
async def test_message_is_posted_after_rate_limits(scene, times, slept):
    scene.slack.fail('chat.postMessage', *[429] * times)
    async with scene.following():
        await scene.post()
        await scene.slack.until(lambda: len(scene.slack.messages) == 1)

    assert scene.slept == slept


async def test_history_is_read_back_to_the_oldest_open_request(scene):
    entry = await scene.post()
    days = timedelta(days=30)
    async with scene.following(scene.make_bot(now=lambda: entry.posted_at + days)):
        await scene.slack.until(lambda: len(scene.slack.messages) == 1)

    [looked] = [params for method, params in scene.slack.asked if method == 'conversations.history']
    assert float(looked['oldest']) == (entry.posted_at - timedelta(minutes=5)).timestamp()


async def test_bot_ends_when_its_inbox_is_closed(scene):
    scene.inbox.close()

    with pytest.raises(InboxError, match='closed'):
        await scene.bot.run()


async def test_many_requests_are_shown_in_their_order(scene):
    entries = [await scene.post(ApprovalRequest(tool_name=f't{number}')) for number in range(5)]
    async with scene.following():
        await scene.slack.until(lambda: len(scene.slack.messages) == 5)
        await asyncio.gather(*(answer(scene, entry) for entry in entries))
        await scene.slack.until(lambda: not any(map(is_open, scene.slack.messages.values())))

    texts = [message['text'] for message in scene.slack.messages.values()]
    assert [text[:4] for text in texts] == [f'`t{number}`' for number in range(5)]
