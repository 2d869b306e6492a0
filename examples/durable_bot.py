"""A bot that may be restarted: `python examples/durable_bot.py worker`, and elsewhere `start`, `approve` or `deny`.

Kill the worker whenever you like, also while the question is open, and start it again: the invoice is paid at most
once. All of it is in the folder `durable-bot`: the runs, their questions, and what was paid.
"""

import argparse
import asyncio
from pathlib import Path

from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_deferred import Agent
from tool_approval.durable import open_store
from tool_approval.inbox import Approver, Inbox
from tool_approval.integrations.pydantic_ai.durable import DurableAgent

from tool_approval import ApprovalController, ApprovalDecision

FOLDER = Path('durable-bot')
STORE = f'{FOLDER}/inbox.sqlite'


def plan(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand in for a language model: pay the invoice, then report."""
    returned = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
    if returned:
        return ModelResponse(parts=[TextPart(str(returned[0].content))])
    return ModelResponse(parts=[ToolCallPart('pay', {'invoice': 'A-17', 'amount': 120})])


agent = Agent(FunctionModel(plan), name='accountant', capabilities=[DBOSDurability()])


@agent.tool_plain(requires_approval=True)
def pay(invoice: str, amount: int) -> str:
    """Pay an invoice."""
    with (FOLDER / 'paid.txt').open('a') as paid:
        paid.write(f'{invoice} {amount}\n')
    return f'{invoice} is paid.'


durable = DurableAgent(agent, ApprovalController(), store=STORE)


async def start() -> None:
    """Start a run, and wait for its result; the run goes on without this process, too."""
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


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('command', choices=['worker', 'start', 'approve', 'deny'])
    command = parser.parse_args().command
    if command == 'worker':
        durable.run_worker()
    else:
        asyncio.run(start() if command == 'start' else answer(approves=command == 'approve'))
