"""Do without a handler: stop, ask and resume in a loop: `python examples/external_loop.py`.

Prefer `deferred_tool_handler`. This example shows what it saves you:

- Each round is a separate run. `result.new_messages()` and the run id belong to the last round only, retries start
  again, and everything around a run (spans, streams, `agent.iter`, the steps of a durable workflow) is cut into pieces.
- The author of the loop must pass history, usage, deps and settings from round to round, and can forget each of them. A
  prompt that is sent again in each round looks to the model like a user who repeats a request.
- The decision is made outside of the run: there is no `RunContext`, and an agent inside a tool cannot ask without
  ending the tool that runs it.

A loop is the right way if the answer takes days or comes to another process, so that no process can wait.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from pydantic_ai import AgentRunResult, DeferredToolRequests, DeferredToolResults, RunContext, RunUsage, ToolDenied
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.output import OutputSpec
from pydantic_ai_deferred import Agent

OutputT = TypeVar('OutputT')
Decide = Callable[[DeferredToolRequests], Awaitable[DeferredToolResults]]


async def run_with_deferred(agent: Agent[object, OutputT], prompt: str, handler: Decide) -> AgentRunResult[OutputT]:
    """Run `agent` until it returns an output and not requests.

    Args:
        agent: The agent, which must have no handler of its own.
        prompt: The prompt, sent in the first round only.
        handler: Answers all deferred calls of a round.

    Returns:
        The result of the last round. Its `all_messages()` and `usage` cover every round, its `new_messages()` does not.

    Raises:
        UsageLimitExceeded: All rounds together exceeded the limits of a run.
    """
    # Calls can only leave a run whose output type includes `DeferredToolRequests`.
    output_type: OutputSpec[OutputT | DeferredToolRequests] = [agent.output_type, DeferredToolRequests]
    # One object for all rounds: if each round started from zero, limits would never be reached.
    usage = RunUsage()
    result = await agent.run(prompt, output_type=output_type, usage=usage)
    while isinstance(result.output, DeferredToolRequests):
        result = await agent.run(
            message_history=result.all_messages(),
            deferred_tool_results=await handler(result.output),
            output_type=output_type,
            usage=usage,
        )
    # After the loop, only the agent's own output type is left.
    return cast('AgentRunResult[OutputT]', result)


async def decide(requests: DeferredToolRequests) -> DeferredToolResults:
    """Approve the first call of each round, and deny the others."""
    results = DeferredToolResults()
    for position, call in enumerate(requests.approvals):
        results.approvals[call.tool_call_id] = position == 0 or ToolDenied('One at a time.')
    return results


def plan(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand in for a language model: ask for two calls, then for a third, then report."""
    returns = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    if not returns:
        return ModelResponse(parts=[ToolCallPart('publish', {'page': page}) for page in ('home', 'news')])
    if len(returns) == 2:
        return ModelResponse(parts=[ToolCallPart('publish', {'page': 'news'})])
    return ModelResponse(parts=[TextPart('; '.join(str(part.content) for part in returns))])


agent = Agent(FunctionModel(plan))


@agent.tool_plain(requires_approval=True)
def publish(page: str) -> str:
    """Publish a page."""
    return f'published {page}'


async def main() -> None:
    async def inside(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
        return await decide(requests)

    by_hand = await run_with_deferred(agent, 'Publish both.', decide)
    inline = await agent.run('Publish both.', deferred_tool_handler=inside)
    for name, result in (('external loop', by_hand), ('handler', inline)):
        runs = len({message.run_id for message in result.all_messages()})
        print(f'{name}: {result.output} ({result.usage.requests} requests in {runs} run(s))')


if __name__ == '__main__':
    asyncio.run(main())
