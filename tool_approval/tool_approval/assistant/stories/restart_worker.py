"""Run an agent that pays invoices, in a separate process: `python restart_worker.py FOLDER`.

The process ends when its standard input is closed, so it never outlives the process that started it.
"""

import asyncio
import sys
from pathlib import Path

from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.messages import ToolCallPart, ToolReturnPart
from pydantic_ai_deferred import Agent

from tool_approval.assistant.stories.scene import Step, denied, scripted
from tool_approval.integrations.pydantic_ai import Approvals
from tool_approval.integrations.pydantic_ai.durable import DurableAgent

INVOICE = 17
PAYMENTS = 'payments.txt'


def make_bookkeeper(folder: Path) -> DurableAgent[None, str]:
    """Create the agent, identically in each process. It lets another agent pay, in a nested run that asks."""
    store = str(folder / 'inbox.sqlite')
    cashier: Agent[None, str] = Agent(scripted(_pay), name='cashier', capabilities=[DBOSDurability(), Approvals()])

    @cashier.tool_plain
    def pay_invoice(number: int, euros: int) -> str:
        with open(folder / PAYMENTS, 'a', encoding='utf-8') as payments:
            payments.write(f'{number}: {euros}\n')
        return f'Invoice {number} is paid.'

    bookkeeper: Agent[None, str] = Agent(
        scripted(_plan),
        name='bookkeeper',
        toolsets=[DurableAgent(cashier, store=store).as_tool('ask_cashier', description='Let the cashier pay.')],
        capabilities=[DBOSDurability(), Approvals()],
    )
    return DurableAgent(bookkeeper, store=store)


def _plan(results: list[ToolReturnPart]) -> Step:
    if not results:
        return [ToolCallPart('ask_cashier', {'prompt': f'Pay invoice {INVOICE}.'}, tool_call_id='task')]
    return f'The cashier says: {results[-1].content}'


def _pay(results: list[ToolReturnPart]) -> Step:
    if not results:
        return [ToolCallPart('pay_invoice', {'number': INVOICE, 'euros': 250}, tool_call_id='payment')]
    return f'Invoice {INVOICE} is {"not paid, because I was not allowed to pay it" if denied(results[-1]) else "paid"}.'


async def work(folder: Path) -> None:
    """Execute runs of the agent until standard input is closed."""
    async with make_bookkeeper(folder).worker():
        await asyncio.to_thread(sys.stdin.read)


if __name__ == '__main__':  # pragma: no cover - a process of its own
    asyncio.run(work(Path(sys.argv[1])))
