"""Ask on behalf of agents inside tools of other agents: `python examples/nested_agents.py`.

Only the outermost agent has a handler. Requests of the agents below it reach that handler too, at any depth and from
the thread of a sync tool. `lineage()` returns the agents and tools that a request came through.
"""

import asyncio
from collections.abc import Callable

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext, ToolApproved, ToolDenied, ToolFailed
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_deferred import Agent, lineage


def calling(*tool_names: str) -> Callable[[list[ModelMessage], AgentInfo], ModelResponse]:
    """Stand in for a language model: call these tools one after another, then report their results."""

    def plan(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        returns = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
        if len(returns) < len(tool_names):
            return ModelResponse(parts=[ToolCallPart(tool_names[len(returns)])])
        return ModelResponse(parts=[TextPart(' '.join(str(part.content) for part in returns))])

    return plan


async def ask(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
    """Approve everything except mail, and print where each request comes from.

    `ctx` belongs to the run that made the request. The coroutine always runs on the event loop of the outermost run.
    """
    above = [f'{level.agent_name}.{level.tool_name}' for level in lineage()]
    results = DeferredToolResults()
    for call in requests.approvals:
        is_allowed = call.tool_name != 'send_mail'
        name = ctx.agent.name if ctx.agent is not None else None
        print('yes' if is_allowed else 'no ', ' > '.join([*above, f'{name}.{call.tool_name}']))
        results.approvals[call.tool_call_id] = ToolApproved() if is_allowed else ToolDenied('No mail was sent.')
    for call in requests.calls:
        results.calls[call.tool_call_id] = ToolFailed('This program cannot carry this out.')
    return results


manager = Agent(FunctionModel(calling('research', 'announce', 'archive')), name='manager', deferred_tool_handler=ask)
researcher = Agent(FunctionModel(calling('read_web', 'summarize')), name='researcher')
writer = Agent(FunctionModel(calling('save_summary')), name='writer')
postman = Agent(FunctionModel(calling('send_mail')), name='postman')


@manager.tool_plain
async def research() -> str:
    """Run the researcher, one level down."""
    return (await researcher.run('Find out.')).output


@manager.tool_plain
def announce() -> str:
    """Run the postman. This tool is sync, so it runs in a thread and needs an event loop of its own."""
    return asyncio.run(postman.run('Tell everybody.')).output


@manager.tool_plain(requires_approval=True)
def archive() -> str:
    """Archive the result. A request of the manager itself has no agent above it."""
    return 'It was archived.'


@researcher.tool_plain(requires_approval=True)
def read_web() -> str:
    """Read the web: a request from one level down."""
    return 'The web was read.'


@researcher.tool_plain
async def summarize() -> str:
    """Run the writer, two levels down."""
    return (await writer.run('Summarize.')).output


@writer.tool_plain(requires_approval=True)
def save_summary() -> str:
    """Save the summary: a request from two levels down."""
    return 'A summary was saved.'


@postman.tool_plain(requires_approval=True)
def send_mail() -> str:
    """Send the mail: a request from the thread of a sync tool."""
    return 'Mail was sent.'


if __name__ == '__main__':
    print(manager.run_sync('Do it.').output)
