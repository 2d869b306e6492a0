"""Checked by pyright and mypy, strictly; never run. Each line that must be an error is ignored by its code, and an
ignore that is not needed is an error itself.
"""

from dataclasses import dataclass
from typing import assert_type

from pydantic_ai import AgentRunResult, DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.models.test import TestModel
from pydantic_ai_deferred import Agent, DeferredToolHandler, install, lineage


@dataclass
class Deps:
    """Some deps."""

    user: str


@dataclass
class Other:
    """Other deps."""

    number: int


async def ask(ctx: RunContext[Deps], requests: DeferredToolRequests) -> DeferredToolResults:
    """For `Deps`, async."""
    assert_type(ctx.deps.user, str)
    return requests.build_results(approve_all=True)


def ask_sync(ctx: RunContext[Deps], requests: DeferredToolRequests) -> DeferredToolResults:
    """For `Deps`, sync."""
    return requests.build_results(approve_all=True)


def ask_anyone(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
    """For any deps."""
    return requests.build_results(approve_all=True)


def ask_other(ctx: RunContext[Other], requests: DeferredToolRequests) -> DeferredToolResults:
    """For other deps."""
    return requests.build_results(approve_all=True)


def ask_badly(ctx: RunContext[Deps], requests: DeferredToolRequests) -> bool:
    """With a result of the wrong type."""
    return True


agent = Agent(TestModel(), deps_type=Deps, output_type=int, deferred_tool_handler=ask)
assert_type(agent, Agent[Deps, int])
Agent(TestModel(), deps_type=Deps, deferred_tool_handler=ask_sync)
Agent(TestModel(), deps_type=Deps, deferred_tool_handler=ask_anyone)
Agent(TestModel(), deps_type=Deps, deferred_tool_handler=DeferredToolHandler(ask, inherit=False))
Agent(TestModel(), deps_type=Deps, capabilities=[DeferredToolHandler(ask_sync)])


class Named(Agent[Deps, int]):
    """A subclass."""


async def variants() -> None:
    """Every run variant keeps the host's types."""
    deps = Deps(user='ada')
    assert_type(await agent.run('go', deps=deps, deferred_tool_handler=ask_sync), AgentRunResult[int])
    assert_type((await agent.run('go', deps=deps, output_type=str, deferred_tool_handler=ask)).output, str)
    assert_type(agent.run_sync('go', deps=deps, deferred_tool_handler=ask).output, int)
    async with agent.run_stream('go', deps=deps, deferred_tool_handler=ask) as stream:
        assert_type(await stream.get_output(), int)
    async with agent.iter('go', deps=deps, output_type=str, deferred_tool_handler=ask) as run:
        if run.result is not None:
            assert_type(run.result.output, str)
    async with agent.run_stream_events('go', deps=deps, deferred_tool_handler=ask) as events:
        async for _ in events:
            pass
    assert_type(agent.run_stream_sync('go', deps=deps, deferred_tool_handler=ask).get_output(), int)
    with agent.override(deferred_tool_handler=ask), install():
        await agent.to_cli(deps, deferred_tool_handler=ask)
    for level in lineage():
        assert_type(level.tool_name, str)


async def mistakes() -> None:
    """What a type checker has to refuse."""
    deps = Deps(user='ada')
    Agent(TestModel(), deps_type=Deps, deferred_tool_handler=ask_other)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Agent(TestModel(), deps_type=Deps, deferred_tool_handler=ask_badly)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await agent.run('go', deps=deps, deferred_tool_handler=ask_other)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await agent.run('go', deps=deps, deferred_tool_handlers=ask)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    agent.run_sync('go', deps=Other(number=1), deferred_tool_handler=ask)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    agent.iter('go', deps=deps, deferred_tool_handler='ask')  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
