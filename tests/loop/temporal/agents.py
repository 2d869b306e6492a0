"""Agents for workflows: built when the module is imported, outside of the sandbox."""

from typing import Any

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext, Tool
from pydantic_ai.durable_exec.temporal import TemporalDurability
from pydantic_ai_deferred import Agent, HandlerFunc

from tests.loop.scripted import call, scripted

asked: list[str] = []
"""Which handler was asked, in order."""
deleted: list[str] = []
"""What the tool has deleted."""


async def coroutine_function(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
    asked.append('coroutine function')
    return requests.build_results(approve_all=True)


def plain_function(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
    asked.append('plain function')
    return requests.build_results(approve_all=True)


async def delete(path: str) -> str:
    deleted.append(path)
    return f'{path} is gone'


def make(name: str, handler: HandlerFunc[Any]) -> Agent[Any, str]:
    return Agent(
        scripted([call('delete', '1', path='a')], 'done'),
        name=name,
        deferred_tool_handler=handler,
        tools=[Tool(delete, requires_approval=True)],
        capabilities=[TemporalDurability()],
    )


agent = make('tidy', coroutine_function)
blocking = make('blocking', plain_function)
