"""The patched interface in use, for a type checker: never run. Each `ignore` is an error that is wanted."""

from __future__ import annotations

from typing import assert_type

from pydantic_ai import Agent, AgentRunResult, DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.agent import AbstractAgent, DeferredToolHandler, WrapperAgent
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.durable_exec.dbos import DBOSAgent  # pyright: ignore[reportDeprecated]


def of_str(ctx: RunContext[str], requests: DeferredToolRequests) -> DeferredToolResults:
    """For these deps."""
    assert_type(ctx.deps, str)
    return requests.build_results(approve_all=True)


async def of_anything(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
    """For any deps, async."""
    return requests.build_results()


def of_int(ctx: RunContext[int], requests: DeferredToolRequests) -> DeferredToolResults:
    """For other deps."""
    return requests.build_results()


def declining(ctx: RunContext[str], requests: DeferredToolRequests) -> None:
    """Without an answer."""


named: DeferredToolHandler[str] = of_anything
agent = Agent('test', deps_type=str, output_type=int, deferred_tool_handler=of_str)
assert_type(agent, Agent[str, int])
wrapped: AbstractAgent[str, int] = WrapperAgent(agent)
durable = DBOSAgent(agent)  # pyright: ignore[reportDeprecated]
Agent('test', deps_type=str, deferred_tool_handler=named)
Agent('test', deps_type=str, capabilities=[HandleDeferredToolCalls(of_str, require_results=True)])
Agent('test', deps_type=str, deferred_tool_handler=of_int)  # pyright: ignore[reportCallIssue, reportArgumentType]
Agent('test', deps_type=str, deferred_tool_handler=declining)  # pyright: ignore[reportCallIssue, reportArgumentType]


async def every_run_variant() -> None:
    """Each keeps the types of the agent."""
    assert_type(await agent.run('go', deps='a', deferred_tool_handler=of_str), AgentRunResult[int])
    assert_type(agent.run_sync('go', deps='a', deferred_tool_handler=of_anything), AgentRunResult[int])
    async with agent.run_stream('go', deps='a', deferred_tool_handler=of_str) as stream:
        assert_type(await stream.get_output(), int)
    async with agent.iter('go', deps='a', deferred_tool_handler=of_str) as run:
        assert_type(run.result, AgentRunResult[int] | None)
    async with agent.run_stream_events('go', deps='a', deferred_tool_handler=of_str) as events:
        assert_type(events.result, AgentRunResult[int] | None)
    agent.run_stream_sync('go', deps='a', deferred_tool_handler=of_str)
    await wrapped.run('go', deps='a', deferred_tool_handler=of_str)
    await durable.run('go', deps='a', deferred_tool_handler=of_str)
    await agent.run('go', deps='a', deferred_tool_handler=of_int)  # pyright: ignore[reportArgumentType]
