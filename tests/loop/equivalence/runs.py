"""A scenario run to its end: stopped and resumed, or inline with a handler, in every way an agent can be run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import pydantic_ai
from pydantic_ai import AgentRunResultEvent, DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai_deferred import Agent, DeferredToolHandler, HandlerFunc

from .hosts import RESUMES_BESIDE_OUTPUT_CALLS
from .model import output_type, scripted
from .scenario import Scenario, Way
from .tools import RETRIES, toolsets
from .transcript import Transcript, transcribe
from .world import World

Ended: TypeAlias = tuple[Any, list[ModelMessage]]
"""The output and the whole history of a run."""
PROMPT = 'Do it.'


class CannotResume(Exception):
    """The host cannot resume this scenario at all, so there is nothing to compare with."""


async def stop_and_resume(scenario: Scenario) -> Transcript:
    """Run a stock agent until it stops for deferred calls, resume it with the decisions, and so on.

    Raises:
        CannotResume: See `hosts.RESUMES_BESIDE_OUTPUT_CALLS`.
    """
    world = World(scenario)
    agent = pydantic_ai.Agent(
        scripted(world), output_type=output_type(scenario.output, allows_leaving=True), **_settings(scenario)
    )

    async def run(**keywords: Any) -> Ended:
        try:
            result = await agent.run(deps=world, **keywords)
        except UserError as error:
            history = keywords.get('message_history')
            if history and not RESUMES_BESIDE_OUTPUT_CALLS and _has_output_call(history):
                raise CannotResume from error
            raise
        return result.output, result.all_messages()

    with pydantic_ai.Agent.parallel_tool_call_execution_mode(scenario.mode):
        output, messages = await _converse(run, world)
    return transcribe(world, output, messages)


async def run_inline(
    scenario: Scenario, way: Way, *, sabotage: Callable[[DeferredToolResults], object] | None = None
) -> tuple[Transcript, World]:
    """Run an agent with a handler. Only calls that defer again after their approval leave it.

    Args:
        scenario: What to run.
        way: How.
        sabotage: Changes each answer of the handler, to see that it is noticed.

    Returns:
        The transcript, and what happened besides.
    """
    world = World(scenario)
    handler = _handler(world, sabotage)
    allows_leaving = scenario.allows_leaving or scenario.defers_again
    settings = {
        'output_type': output_type(scenario.output, allows_leaving=allows_leaving),
        **_settings(scenario),
    }
    at_run = {'deferred_tool_handler': handler} if scenario.place == 'keyword' else {}
    agent: AbstractAgent[World, Any]
    if scenario.place == 'capability':
        agent = pydantic_ai.Agent(scripted(world), capabilities=[DeferredToolHandler(handler)], **settings)
    else:
        own = handler if scenario.place == 'constructor' else _never
        agent = Agent(scripted(world), deferred_tool_handler=own, **settings)

    async def run(**keywords: Any) -> Ended:
        return await _WAYS[way](agent, deps=world, **at_run, **keywords)

    with agent.parallel_tool_call_execution_mode(scenario.mode), _overriding(agent, scenario, handler):
        output, messages = await _converse(run, world)
    return transcribe(world, output, messages), world


async def _converse(run: Callable[..., Awaitable[Ended]], world: World) -> Ended:
    output, messages = await run(user_prompt=PROMPT)
    while isinstance(output, DeferredToolRequests):
        results = world.decide(output)
        # The host lists raised deferrals before declared ones.
        world.questions[-1] = world.questions[-1].in_order()
        output, messages = await run(message_history=messages, deferred_tool_results=results)
    return output, messages


def _settings(scenario: Scenario) -> dict[str, Any]:
    return {
        'deps_type': World,
        'instructions': 'Be brief.',
        'system_prompt': 'You are a test.',
        'toolsets': toolsets({call.tool for call in scenario.calls.values()}),
        'retries': RETRIES,
        'end_strategy': scenario.end_strategy,
    }


def _has_output_call(messages: list[ModelMessage]) -> bool:
    response = next(message for message in reversed(messages) if isinstance(message, ModelResponse))
    return any(call.tool_name == 'report' for call in response.tool_calls)


@contextmanager
def _overriding(agent: Any, scenario: Scenario, handler: HandlerFunc[World]) -> Iterator[None]:
    if scenario.place != 'override':
        yield
        return
    with agent.override(deferred_tool_handler=handler):
        yield


def _never(ctx: RunContext[World], requests: DeferredToolRequests) -> DeferredToolResults:
    raise AssertionError(f'the wrong handler was asked about {requests}')


def _handler(world: World, sabotage: Callable[[DeferredToolResults], object] | None) -> HandlerFunc[World]:
    def decide(ctx: RunContext[World], requests: DeferredToolRequests) -> DeferredToolResults:
        assert ctx.deps is world
        results = world.decide(requests)
        if sabotage is not None:
            sabotage(results)
        if world.scenario.is_meddled:
            _meddle(requests)
        return results

    async def decide_later(ctx: RunContext[World], requests: DeferredToolRequests) -> DeferredToolResults:
        await asyncio.sleep(0)
        return decide(ctx, requests)

    match world.scenario.style:
        case 'sync':
            return decide
        case 'async':
            return decide_later
        case 'sync, awaitable':
            return lambda ctx, requests: decide_later(ctx, requests)


def _meddle(requests: DeferredToolRequests) -> None:
    for call in (*requests.approvals, *requests.calls):
        if isinstance(call.args, dict):
            call.args.clear()
        call.args = {'path': 'spoilt'}
        call.tool_name = 'spoilt'
        call.tool_call_id = 'spoilt'
    requests.approvals.clear()
    requests.calls.clear()
    requests.metadata.clear()


async def _run(agent: Any, **keywords: Any) -> Ended:
    result = await agent.run(**keywords)
    return result.output, result.all_messages()


async def _run_with_events(agent: Any, **keywords: Any) -> Ended:
    async def consume(ctx: RunContext[World], events: Any) -> None:
        async for _ in events:
            pass

    result = await agent.run(event_stream_handler=consume, **keywords)
    return result.output, result.all_messages()


async def _iter(agent: Any, **keywords: Any) -> Ended:
    async with agent.iter(**keywords) as run:
        async for _ in run:
            pass
    return run.result.output, run.result.all_messages()


async def _iter_streamed(agent: Any, **keywords: Any) -> Ended:
    async with agent.iter(**keywords) as run:
        async for node in run:
            if pydantic_ai.Agent.is_model_request_node(node) or pydantic_ai.Agent.is_call_tools_node(node):
                async with node.stream(run.ctx) as events:
                    async for _ in events:
                        pass
    return run.result.output, run.result.all_messages()


async def _run_stream_events(agent: Any, **keywords: Any) -> Ended:
    async with agent.run_stream_events(**keywords) as events:
        seen = [event async for event in events]
    (result,) = [event.result for event in seen if isinstance(event, AgentRunResultEvent)]
    return result.output, result.all_messages()


async def _run_stream(agent: Any, **keywords: Any) -> Ended:
    async with agent.run_stream(**keywords) as stream:
        output = await stream.get_output()
    return output, stream.all_messages()


_WAYS: dict[Way, Callable[..., Awaitable[Ended]]] = {
    'run': _run,
    'iter': _iter,
    'iter, streamed': _iter_streamed,
    'run with events': _run_with_events,
    'run_stream_events': _run_stream_events,
    'run_stream': _run_stream,
}
