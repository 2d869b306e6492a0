"""A run that waits, a bot on a real server, and a person who presses a button in Slack."""

import asyncio
import socket

import httpx
import pytest
import uvicorn
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai_deferred import Agent
from tool_approval.inbox import ApproverRule, Inbox, InboxUI
from tool_approval.inbox.stores import SQLiteStore
from tool_approval.integrations.pydantic_ai import Approvals, ApprovalToolset
from tool_approval.ui.slack import SlackBot

from tests.approval.ui.slack.slack_server import (
    BOT_TOKEN,
    CHANNEL,
    SECRET,
    SlackServer,
    buttons_of,
    form_of,
    press_of,
    shown,
    signed,
)
from tool_approval import ApprovalController

DONE = []


def delete(path: str) -> str:
    """Delete a file."""
    DONE.append(path)
    return f'{path} is gone'


def plan(messages, info):
    returns = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
    if returns:
        return ModelResponse(parts=[TextPart(str(returns[0].content))])
    return ModelResponse(parts=[ToolCallPart('delete', {'path': '<!channel>.txt'})])


def agent_of(inbox):
    controller = ApprovalController(policy={'delete': {'approval': 'required'}}, ui=InboxUI(inbox, timeout=60))
    toolset = ApprovalToolset(FunctionToolset([delete]), controller)
    return Agent(FunctionModel(plan), toolsets=[toolset], deferred_tool_handler=Approvals(controller, default='none'))


async def story(tmp_path, act):
    """Let an agent ask, and let a person answer over HTTP; what the agent says in the end."""
    # The agent and the bot have an inbox each, as in two processes.
    with Inbox(SQLiteStore(tmp_path / 'i.sqlite')) as agents, Inbox(SQLiteStore(tmp_path / 'i.sqlite')) as bots:
        async with asyncio.timeout(60), SlackServer().running() as slack:
            rule = ApproverRule(users=frozenset({'U0ADA'}))
            bot = SlackBot(bots, token=BOT_TOKEN, channel=CHANNEL, approvers=rule, signing_secret=SECRET, api=slack.api)
            listening = socket.create_server(('127.0.0.1', 0))
            server = uvicorn.Server(uvicorn.Config(bot.http, log_config=None, lifespan='off'))
            serving, following = asyncio.ensure_future(server.serve([listening])), asyncio.ensure_future(bot.run())
            running = asyncio.ensure_future(agent_of(agents).run('Clean up.'))
            await slack.until(lambda: len(slack.messages) == 1)
            async with httpx.AsyncClient(trust_env=False) as client:
                port = listening.getsockname()[1]

                async def send(payload):
                    body, headers = signed(payload)
                    return (await client.post(f'http://127.0.0.1:{port}/', content=body, headers=headers)).status_code

                [message] = slack.messages.values()
                assert await act(slack, send, buttons_of(message)) == 200
            output = (await running).output
            await slack.until(lambda: not buttons_of(message))
            following.cancel()
            server.should_exit = True
            await serving
            with pytest.raises(asyncio.CancelledError):
                await following
            return output, shown(message['blocks'])


@pytest.fixture(autouse=True)
def nothing_is_done():
    DONE.clear()


def test_run_goes_on_after_an_approval_in_slack(tmp_path):
    async def approve(slack, send, buttons):
        return await send(press_of('approve', buttons['approve']))

    output, message = asyncio.run(story(tmp_path, approve))

    assert output == '<!channel>.txt is gone'
    assert DONE == ['<!channel>.txt']
    assert '*Approved*; answered by `u0ada` (`U0ADA`)' in message


def test_note_of_a_denial_in_slack_reaches_the_run(tmp_path):
    async def deny(slack, send, buttons):
        await send(press_of('deny_note', buttons['deny_note']))
        await slack.until(lambda: len(slack.views) == 1)
        return await send(form_of(slack.views[0], 'Keep it.'))

    output, message = asyncio.run(story(tmp_path, deny))

    assert 'Keep it.' in output
    assert DONE == []
    assert '*Note*\n```\nKeep it.\n```' in message


def test_user_who_is_not_listed_cannot_approve_in_slack(tmp_path):
    async def race(slack, send, buttons):
        await send(press_of('approve', buttons['approve'], 'U0EVE'))
        await slack.until(lambda: len(slack.whispers) == 1)
        assert DONE == []
        return await send(press_of('deny', buttons['deny']))

    _, message = asyncio.run(story(tmp_path, race))

    assert DONE == []
    assert '*Denied*; answered by `u0ada`' in message
