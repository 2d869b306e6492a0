"""Two leads approve a large refund in Slack, and each sees who has agreed."""

import asyncio
import runpy
from pathlib import Path

import pytest
from tool_approval.inbox import ApproverRule, Inbox
from tool_approval.inbox.stores import SQLiteStore
from tool_approval.ui.slack import SlackBot

from tests.approval.ui.slack.slack_server import (
    APP_TOKEN,
    BOT_TOKEN,
    CHANNEL,
    SlackServer,
    buttons_of,
    press_of,
    shown,
)

EXAMPLE = runpy.run_path(str(Path(__file__).parents[3] / 'examples' / 'refund_bot.py'))
PEOPLE = {'U0ADA': 'ada', 'U0BOB': 'bob', 'U0EVE': 'eve'}


@pytest.mark.parametrize('last', ['approve', 'deny'])
def test_two_people_decide_about_a_large_refund_in_slack(last, tmp_path):
    """The example's group has the id of a user group in Slack."""
    rules = (Path(__file__).parents[3] / 'examples' / 'refund_bot.yaml').read_text()
    (tmp_path / 'refund_bot.yaml').write_text(rules.replace('[leads]', '[S0OPS]'))
    EXAMPLE['make_bot'].__globals__['__file__'] = str(tmp_path / 'refund_bot.py')

    async def scenario():
        with Inbox(SQLiteStore(tmp_path / 'i.sqlite')) as agents, Inbox(SQLiteStore(tmp_path / 'i.sqlite')) as bots:
            async with asyncio.timeout(60), SlackServer().running() as slack:
                slack.groups['S0OPS'] = ['U0ADA', 'U0BOB']
                everyone = ApproverRule(users=frozenset(PEOPLE))
                bot = SlackBot(bots, token=BOT_TOKEN, channel=CHANNEL, approvers=everyone, people=PEOPLE, api=slack.api)
                following = asyncio.ensure_future(bot.run(APP_TOKEN))
                running = asyncio.ensure_future(EXAMPLE['make_bot'](EXAMPLE['plan'](600), agents).run('Pay.'))
                await slack.until(lambda: len(slack.messages) == 1 and slack.connections == 1)
                [first] = slack.messages.values()
                asked = shown(first['blocks'])
                approve = buttons_of(first)['approve']
                await slack.send('e1', press_of('approve', approve, 'U0EVE'))
                await slack.until(lambda: len(slack.whispers) == 1)
                await slack.send('e2', press_of('approve', approve, 'U0ADA'))
                await slack.until(lambda: len(slack.messages) == 2)
                second = next(each for each in slack.messages.values() if each is not first)
                asked_again = shown(second['blocks'])
                await slack.send('e3', press_of(last, buttons_of(second)[last], 'U0BOB'))
                output = (await running).output
                await slack.until(lambda: not buttons_of(first) and not buttons_of(second))
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
                return output, asked, asked_again, str(slack.whispers), shown(first['blocks'])

    output, asked, asked_again, whispers, settled = asyncio.run(scenario())

    assert ('were paid back' in output) is (last == 'approve')
    assert '0 of 2 people' in asked and 'rex' in asked
    assert '1 of 2 people: `ada`' in asked_again or '1 of 2 people: ada' in asked_again
    assert 'only listed approvers may answer' in whispers
    assert '(1 of 2)' in settled
