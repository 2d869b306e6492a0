import asyncio
from contextlib import asynccontextmanager, suppress

import pytest
from tool_approval.inbox import ApproverRule, Content, Inbox
from tool_approval.inbox.stores import SQLiteStore
from tool_approval.ui.discord import DiscordBot

from tool_approval import ApprovalRequest

from .discord_server import ADA, BOB, CHANNEL, OPS, TOKEN, DiscordServer

RULE = ApproverRule(users=frozenset({str(ADA), str(BOB)}), groups=frozenset({str(OPS)}))


class Scene:
    """An inbox, a bot and Discord."""

    def __init__(self, inbox, discord):
        self.inbox = inbox
        self.discord = discord
        self.slept = []

    def make_bot(self, **keywords):
        async def sleep(seconds):
            self.slept.append(seconds)
            await asyncio.sleep(0)

        fixed = {'token': TOKEN, 'channel': CHANNEL, 'approvers': RULE, 'sleep': sleep}
        return DiscordBot(self.inbox, **{**fixed, **keywords})

    async def post(self, request=None, **content):
        request = request or ApprovalRequest(tool_name='delete', args={'path': 'a.txt'})
        return await self.inbox.post_entry(Content(request=request, **content))

    @asynccontextmanager
    async def following(self, bot=None):
        """Run a bot that is connected."""
        before = len(self.discord.identified)
        running = asyncio.ensure_future((bot or self.make_bot()).run())
        try:
            await self.discord.until(lambda: running.done() or len(self.discord.identified) > before)
            yield running
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running

    async def posted(self, count=1):
        """Wait for so many messages, and return the newest."""
        await self.discord.until(lambda: len(self.discord.messages) >= count)
        return self.discord.messages[max(self.discord.messages, key=int)]

    async def press(self, kind, user=ADA, **more):
        """Press a button of the newest message, and return the id of the press."""
        message = await self.posted()
        custom_id = next((each for name, each in _ids(message).items() if name == kind), kind)
        return await self.discord.press(custom_id, user, message=message['id'], **more)

    async def became(self, entry, state):
        """Wait until a request is settled, and return it."""
        settled = await self.inbox.wait(entry.id, 20)
        assert settled.state == state
        return settled


def _ids(message):
    return {
        each['custom_id'].partition('.')[0]: each['custom_id']
        for row in message['components']
        for each in row['components']
    }


@pytest.fixture
async def scene(tmp_path, monkeypatch):
    """An inbox, a bot and Discord, which leave nothing running behind."""
    with Inbox(SQLiteStore(tmp_path / 'inbox.sqlite')) as inbox:
        async with DiscordServer().running(monkeypatch) as discord:
            yield Scene(inbox, discord)
        assert not [task for task in asyncio.all_tasks() if 'tool_approval' in repr(task)]
