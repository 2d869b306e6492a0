"""An agent whose calls are approved in Slack: `python examples/slack_bot.py`.

Set up the app as docs/how-to/slack.md says, and put into the environment:

    SLACK_BOT_TOKEN    the bot's token, xoxb-...
    SLACK_APP_TOKEN    the app's token for Socket Mode, xapp-...
    SLACK_CHANNEL      the id of the channel, C...
    SLACK_APPROVERS    who may press: ids of users (U...) and user groups (S...), separated by commas

The agent wants to delete two backups. It waits until somebody has answered both in the channel, or ten minutes.
Needs `pip install 'tool-approval[slack,pydantic-ai]'`.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai_deferred import Agent
from tool_approval.inbox import ApproverRule, Inbox, InboxUI
from tool_approval.inbox.stores import SQLiteStore
from tool_approval.integrations.pydantic_ai import ApprovalToolset, approval_handler
from tool_approval.ui.slack import SlackBot

from tool_approval import ApprovalController

NEEDED = ('SLACK_BOT_TOKEN', 'SLACK_APP_TOKEN', 'SLACK_CHANNEL', 'SLACK_APPROVERS')
SLACK = 'https://slack.com/api/'


def delete_backup(name: str) -> str:
    """Delete a backup; this example only says so."""
    return f'{name} is deleted'


def plan(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand in for a language model: delete two backups at once, then report."""
    returns = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
    if returns:
        return ModelResponse([TextPart('\n'.join(str(part.content) for part in returns))])
    return ModelResponse([ToolCallPart('delete_backup', {'name': name}) for name in ('monday', 'tuesday')])


def approvers_of(text: str) -> ApproverRule:
    """Users and groups, from their ids."""
    ids = {each.strip() for each in text.split(',')} - {''}
    groups = {each for each in ids if each.startswith('S')}
    return ApproverRule(users=frozenset(ids - groups), groups=frozenset(groups))


async def ask_in_slack(environment: Mapping[str, str], store: Path, api: str = SLACK) -> str:
    """Run the agent, and beside it the bot that shows what it asks."""
    with Inbox(SQLiteStore(store)) as inbox:
        bot = SlackBot(
            inbox,
            token=environment['SLACK_BOT_TOKEN'],
            channel=environment['SLACK_CHANNEL'],
            approvers=approvers_of(environment['SLACK_APPROVERS']),
            api=api,
        )
        ui = InboxUI(inbox, timeout=600)
        controller = ApprovalController(policy={'delete_*': {'approval': 'required'}}, ui=ui)
        tools = ApprovalToolset(FunctionToolset([delete_backup]), controller)
        agent = Agent(FunctionModel(plan), toolsets=[tools], deferred_tool_handler=approval_handler(controller))
        running = asyncio.create_task(agent.run('Make room.'))
        # Both may go on for long; the bot goes on until it is cancelled.
        showing = asyncio.create_task(bot.run(environment['SLACK_APP_TOKEN']))
        try:
            await asyncio.wait([running, showing], return_when=asyncio.FIRST_COMPLETED)
            if showing.done():
                running.cancel()
                await showing  # it ends only by an error, which is told here
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
