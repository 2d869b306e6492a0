"""Approve the calls of an agent in Slack: `python examples/slack_bot.py`.

Set up the app as docs/how-to/slack.md describes, and set these environment variables:

    SLACK_BOT_TOKEN    the bot's token, xoxb-...
    SLACK_APP_TOKEN    the app's token for Socket Mode, xapp-...
    SLACK_CHANNEL      the id of the channel, C...
    SLACK_APPROVERS    ids of the users (U...) and user groups (S...) who may approve, separated by commas

The agent wants to delete two backups. The run waits up to ten minutes for the answers in the channel.
Needs `pip install ./pydantic_ai_slim './tool_approval[slack,pydantic-ai]'` in the checkout.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from tool_approval.inbox import ApproverRule, Inbox, InboxUI
from tool_approval.inbox.stores import SQLiteStore
from tool_approval.integrations.pydantic_ai import Approvals
from tool_approval.ui.slack import SlackBot

NEEDED = ('SLACK_BOT_TOKEN', 'SLACK_APP_TOKEN', 'SLACK_CHANNEL', 'SLACK_APPROVERS')
SLACK = 'https://slack.com/api/'


def delete_backup(name: str) -> str:
    """Pretend to delete a backup."""
    return f'{name} is deleted'


def plan(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand in for a language model: delete two backups at once, then report."""
    returns = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
    if returns:
        return ModelResponse([TextPart('\n'.join(str(part.content) for part in returns))])
    return ModelResponse([ToolCallPart('delete_backup', {'name': name}) for name in ('monday', 'tuesday')])


def approvers_of(text: str) -> ApproverRule:
    """Return a rule for these ids of users and user groups."""
    ids = {each.strip() for each in text.split(',')} - {''}
    groups = {each for each in ids if each.startswith('S')}
    return ApproverRule(users=frozenset(ids - groups), groups=frozenset(groups))


async def ask_in_slack(environment: Mapping[str, str], store: Path, api: str = SLACK) -> str:
    """Run the agent, and at the same time the bot that shows its questions."""
    with Inbox(SQLiteStore(store)) as inbox:
        bot = SlackBot(
            inbox,
            token=environment['SLACK_BOT_TOKEN'],
            channel=environment['SLACK_CHANNEL'],
            approvers=approvers_of(environment['SLACK_APPROVERS']),
            api=api,
        )
        approvals = Approvals(ui=InboxUI(inbox, timeout=600))
        agent = Agent(FunctionModel(plan), tools=[delete_backup], capabilities=[approvals])
        running = asyncio.create_task(agent.run('Make room.'))
        # The bot runs until it is cancelled.
        showing = asyncio.create_task(bot.run(environment['SLACK_APP_TOKEN']))
        try:
            await asyncio.wait([running, showing], return_when=asyncio.FIRST_COMPLETED)
            if showing.done():
                running.cancel()
                await showing  # the bot ends early only with an error, which this raises
            return (await running).output
        finally:
            running.cancel()
            showing.cancel()
            await asyncio.gather(running, showing, return_exceptions=True)


def main() -> None:
    missing = [name for name in NEEDED if not os.environ.get(name)]
    if missing:
        sys.exit(f'Set {", ".join(missing)}; docs/how-to/slack.md says how.')
    with tempfile.TemporaryDirectory() as folder:
        print(asyncio.run(ask_in_slack(os.environ, Path(folder) / 'inbox.sqlite')))


if __name__ == '__main__':
    main()
