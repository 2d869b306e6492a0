import asyncio
from contextlib import asynccontextmanager, suppress

import pytest
from tool_approval.inbox import ApproverRule, Content, Inbox
from tool_approval.inbox.stores import SQLiteStore
from tool_approval.ui.slack import SlackBot

from tool_approval import ApprovalRequest

from .slack_server import BOT_TOKEN, CHANNEL, SECRET, SlackServer, signed

RULE = ApproverRule(users=frozenset({'U0ADA', 'U0BOB'}), groups=frozenset({'S0OPS'}))


class Scene:
    """An inbox, a bot and Slack."""

    def __init__(self, inbox, slack):
        self.inbox = inbox
        self.slack = slack
        self.slept = []
        self.seconds = 0.0
        self.bot = self.make_bot()

    def make_bot(self, **keywords):
        async def sleep(seconds):
            self.slept.append(seconds)
            await asyncio.sleep(0)

        fixed = {'token': BOT_TOKEN, 'channel': CHANNEL, 'approvers': RULE, 'signing_secret': SECRET}
        seams = {'api': self.slack.api, 'sleep': sleep, 'clock': lambda: self.seconds}
        return SlackBot(self.inbox, **{**fixed, **seams, **keywords})

    async def post(self, request=None, **content):
        request = request or ApprovalRequest(tool_name='delete', args={'path': 'a.txt'})
        return await self.inbox.post_entry(Content(request=request, **content))

    @asynccontextmanager
    async def following(self, bot=None, app_token=None):
        running = asyncio.ensure_future((bot or self.bot).run(app_token))
        try:
            yield running
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running

    async def send(self, payload, **keywords):
        """What Slack sends, to the bot; the status of the answer."""
        return (await self.request(*signed(payload, **keywords)))[0]

    async def request(self, body, headers, *, method='POST', chunks=None):
        sent = []
        parts = list(chunks or [{'type': 'http.request', 'body': body}])

        async def receive():
            return parts.pop(0)

        async def send(message):
            sent.append(message)

        raw = headers if isinstance(headers, list) else [(k.lower().encode(), v.encode()) for k, v in headers.items()]
        await self.bot.http({'type': 'http', 'method': method, 'path': '/', 'headers': raw}, receive, send)
        return sent[0]['status'], sent[1]['body']

    async def became(self, entry, state):
        """Wait until a request is settled, and return it."""
        settled = await self.inbox.wait(entry.id, 20)
        assert settled.state == state
        return settled


@pytest.fixture
async def scene(tmp_path, monkeypatch):
    """An inbox, a bot and Slack, which leave nothing running behind."""
    for name in ('SLACK_CLIENT_ID', 'SLACK_CLIENT_SECRET', 'SLACK_BOT_TOKEN', 'SLACK_SIGNING_SECRET'):
        monkeypatch.delenv(name, raising=False)
    with Inbox(SQLiteStore(tmp_path / 'inbox.sqlite')) as inbox:
        async with SlackServer().running() as slack:
            yield Scene(inbox, slack)
        assert not [task for task in asyncio.all_tasks() if 'tool_approval' in repr(task)]
