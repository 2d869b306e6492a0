"""The bot that pays money back is as short as the docs say."""

import asyncio

import pytest
from tool_approval.inbox import Inbox
from tool_approval.inbox.stores import SQLiteStore

from .conftest import FOLDER


def test_the_bot_and_its_rules_are_at_most_25_lines():
    code = (FOLDER / 'refund_bot.py').read_text().split('\n# All that follows')[0].split('"""', 2)[2]
    rules = (FOLDER / 'refund_bot.yaml').read_text()
    lines = [line for line in f'{code}\n{rules}'.splitlines() if line.strip() and '"""' not in line]

    assert len(lines) <= 25


@pytest.mark.parametrize('amount', ['600', 1e400, None])
def test_an_amount_that_cannot_be_compared_is_not_paid_unasked(load, finish, tmp_path, amount):
    example = load('refund_bot')

    async def scenario():
        with Inbox(SQLiteStore(tmp_path / 'inbox.sqlite')) as inbox:
            running = asyncio.create_task(example.make_bot(example.plan(amount), inbox).run('Pay.'))
            entries = []
            while not running.done() and not (entries := await inbox.open()):
                await asyncio.sleep(0.01)
            said = [rule.text for entry in entries for rule in entry.content.approvers or ()]
            running.cancel()
            [ended] = await asyncio.gather(running, return_exceptions=True)
            return said, 'paid back for' in str(ended)

    said, is_paid = finish(scenario())
    assert not is_paid
    assert said == (
        ['2 of group leads; after 30 minutes also group on-call; denied after 2 hours'] if amount == '600' else []
    )
