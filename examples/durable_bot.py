"""Run a bot that survives restarts: `python examples/durable_bot.py worker`, then `start`, `approve` or `deny`.

You can start several workers, kill any of them at any time, even during a question, and start it again: the invoice is
paid at most once. The runs and their questions are in an SQLite file in the folder `durable-bot`. For workers on
several machines, set `DURABLE_BOT_STORE` to a PostgreSQL database (`postgresql://...`).

`slack` shows the questions and takes the answers in Slack, in place of `approve` and `deny`. It uses the environment
variables of `slack_bot.py`: SLACK_BOT_TOKEN, SLACK_APP_TOKEN, SLACK_CHANNEL, SLACK_APPROVERS.
"""

import argparse
import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_deferred import Agent
from tool_approval.durable import open_store
from tool_approval.inbox import Approver, ApproverRule, Inbox
from tool_approval.integrations.pydantic_ai import Approvals
from tool_approval.integrations.pydantic_ai.durable import DurableAgent

from tool_approval import ApprovalDecision

FOLDER = Path('durable-bot')
STORE = os.environ.get('DURABLE_BOT_STORE', f'{FOLDER}/inbox.sqlite')


def plan(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand in for a language model: pay the invoice, then report."""
    returned = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
    if returned:
        return ModelResponse(parts=[TextPart(str(returned[0].content))])
    return ModelResponse(parts=[ToolCallPart('pay', {'invoice': 'A-17', 'amount': 120})])


agent = Agent(FunctionModel(plan), name='accountant', capabilities=[DBOSDurability(), Approvals()])


@agent.tool_plain
def pay(invoice: str, amount: int) -> str:
    """Pay an invoice."""
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / 'paid.txt').open('a') as paid:
        paid.write(f'{invoice} {amount}\n')
    return f'{invoice} is paid.'


durable = DurableAgent(agent, store=STORE)


async def start() -> None:
    """Start a run, and wait for its result. The run continues even if this process ends."""
    run = await durable.start('Pay the open invoices.')
    print(f'Run {run.id} was started.', flush=True)
    print(await run.result())


async def answer(*, approves: bool) -> None:
    """Answer the oldest question, as soon as there is one."""
    with Inbox(open_store(STORE).inbox_store) as inbox:
        async for _ in inbox.changes():
            if entries := await inbox.open(1):
                [entry] = entries
                print(entry.request.description)
                await inbox.decide(
                    entry.id, ApprovalDecision(approved=approves), by=Approver(id='you'), digest=entry.digest
                )
                return


async def show_in_slack(environment: Mapping[str, str], api: str = 'https://slack.com/api/') -> None:
    """Show questions in Slack until cancelled, including those that were asked before."""
    from tool_approval.ui.slack import SlackBot

    with Inbox(open_store(STORE).inbox_store) as inbox:
        bot = SlackBot(
            inbox,
            token=environment['SLACK_BOT_TOKEN'],
            channel=environment['SLACK_CHANNEL'],
            approvers=ApproverRule(users=frozenset(environment['SLACK_APPROVERS'].split(','))),
            api=api,
        )
        await bot.run(environment['SLACK_APP_TOKEN'])


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('command', choices=['worker', 'start', 'approve', 'deny', 'slack'])
    command = parser.parse_args().command
    if command == 'worker':
        durable.run_worker()
    elif command == 'slack':
        asyncio.run(show_in_slack(os.environ))
    else:
        asyncio.run(start() if command == 'start' else answer(approves=command == 'approve'))
