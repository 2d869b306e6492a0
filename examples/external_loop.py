"""The same without a handler: stop, ask, resume, by hand: `python examples/external_loop.py`.

Prefer `deferred_tool_handler`. This helper is here to show what it saves you from:

- Each round is a run of its own. `result.new_messages()` and the run's id tell of the last round only, retries start
  anew, and everything around a run (spans, streams, `agent.iter`, a durable workflow's steps) is cut into pieces.
- Whoever writes the loop keeps history, usage, deps and settings together, and each of them can be forgotten: a prompt
  that is sent again in each round reads to the model like a person repeating themselves.
- The decision is made outside of the run: there is no `RunContext`, and an agent inside a tool cannot ask at all
  without ending the tool that runs it.

It is the right way when the answer takes days, or comes to another process: then there is nothing to wait in.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from pydantic_ai import AgentRunResult, DeferredToolRequests, DeferredToolResults, RunContext, RunUsage, ToolDenied
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.output import OutputSpec
from pydantic_ai_deferred import Agent, bubble_up

OutputT = TypeVar('OutputT')
Decide = Callable[[DeferredToolRequests], Awaitable[DeferredToolResults]]


async def run_with_deferred(agent: Agent[object, OutputT], prompt: str, handler: Decide) -> AgentRunResult[OutputT]:
    """Run `agent` until its output is no longer a request.

    Args:
        agent: The agent; a handler of its own is not asked.
        prompt: Sent once, with the first round.
        handler: Answers all deferred calls of one stop.

    Returns:
        The last round's result. Its `all_messages()` and `usage` cover every round, `new_messages()` does not.

    Raises:
        UsageLimitExceeded: The rounds together used more than one run may.
    """
    # Calls can only leave a run whose output type says so.
    output_type: OutputSpec[OutputT | DeferredToolRequests] = [agent.output_type, DeferredToolRequests]
    # One object for all rounds: the limits of a run that started anew each time would never be reached.
    usage = RunUsage()
    result = await agent.run(prompt, output_type=output_type, usage=usage, deferred_tool_handler=bubble_up)
    while isinstance(result.output, DeferredToolRequests):
        result = await agent.run(
            message_history=result.all_messages(),
            deferred_tool_results=await handler(result.output),
            output_type=output_type,
            usage=usage,
            deferred_tool_handler=bubble_up,
        )
    # The loop ended, so what is left of the two output types is the agent's own.
    return cast('AgentRunResult[OutputT]', result)


async def decide(requests: DeferredToolRequests) -> DeferredToolResults:
    """Approve the first of each stop, deny the others."""
    results = DeferredToolResults()
    for position, call in enumerate(requests.approvals):
        results.approvals[call.tool_call_id] = position == 0 or ToolDenied('One at a time.')
    return results


def plan(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand in for a language model: ask twice, the first time for two things, then report everything."""
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
