"""Run an agent whose calls are approved in the browser, on a page of another process. Needs no key and no model.

Run `python examples/web_inbox_agent.py --store inbox.sqlite`, and in another terminal
`tool-approval serve --store inbox.sqlite`. Open the link that it prints, and answer.
"""

import argparse
import asyncio

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from tool_approval.inbox import Inbox, InboxUI
from tool_approval.inbox.stores import SQLiteStore
from tool_approval.integrations.pydantic_ai import Approvals

CALLS = (
    ToolCallPart('water', {'plant': 'fern', 'litres': 2}),
    ToolCallPart('water', {'plant': 'cactus', 'litres': 5}),
    ToolCallPart('throw_away', {'plant': 'fern'}),
)


def plan(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand in for a language model: make three calls at once, then report."""
    returns = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    if not returns:
        return ModelResponse(list(CALLS))
    return ModelResponse([TextPart('\n'.join(f'- {part.content}' for part in returns))])


def water(plant: str, litres: int) -> str:
    """Water a plant."""
    return f'The {plant} got {litres} litres.'


def throw_away(plant: str) -> str:
    """Throw a plant away."""
    return f'The {plant} is gone.'


async def work(store: str | None, timeout: float) -> None:
    """Run the agent once. The run waits in this process until all calls are answered."""
    with Inbox(SQLiteStore(store)) as inbox:
        approvals = Approvals(ui=InboxUI(inbox, timeout=timeout))
        agent = Agent(FunctionModel(plan), name='gardener', tools=[water, throw_away], capabilities=[approvals])
        print('The agent waits for your answers.', flush=True)
        result = await agent.run('Look after the garden.')
        print(result.output)


def main() -> None:
    parser = argparse.ArgumentParser(description='an agent that is answered in the browser')
    parser.add_argument('--store', help='the file of the inbox; your own if not given')
    parser.add_argument('--timeout', type=float, default=600, help='seconds until a request is denied')
    options = parser.parse_args()
    asyncio.run(work(options.store, options.timeout))


if __name__ == '__main__':
    main()
