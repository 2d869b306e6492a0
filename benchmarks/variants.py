"""Define the ways to have a call approved. Each does the same work: same tool, same calls, same messages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import pydantic_ai
from pydantic_ai import (
    AgentRunResult,
    DeferredToolRequests,
    DeferredToolResults,
    RequestUsage,
    RunContext,
    UsageLimits,
)
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_deferred import Agent

from .pairing import Checkpoint

AgentT = TypeVar('AgentT', bound='pydantic_ai.Agent[Any, Any]')

AsyncHandler: TypeAlias = Callable[[RunContext[object], DeferredToolRequests], Awaitable[DeferredToolResults]]
SyncHandler: TypeAlias = Callable[[RunContext[object], DeferredToolRequests], DeferredToolResults]

_LIMITS = UsageLimits(request_limit=None)
_USAGE = RequestUsage(input_tokens=1, output_tokens=1)


@dataclass(frozen=True, kw_only=True)
class Script:
    """Script of the model: a number of responses with tool calls, then a text."""

    rounds: int
    """Number of responses with calls."""
    calls: int
    """Calls in each of these responses."""

    def respond(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        """Return the next response. Requests and responses alternate, in a resumed run too."""
        position = len(messages) // 2
        if position >= self.rounds:
            return ModelResponse(parts=[TextPart('done')], usage=_USAGE)
        # With the usage given, the model does not count the tokens of the whole history for every request.
        parts = [ToolCallPart('touch', {'number': n}, f'{position}-{n}') for n in range(self.calls)]
        return ModelResponse(parts=parts, usage=_USAGE)

    def model(self, checkpoint: Checkpoint | None = None) -> Model:
        """Return a model that follows the script, and awaits `checkpoint` before each response."""

        async def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            if checkpoint is not None:
                await checkpoint()
            return self.respond(messages, info)

        return FunctionModel(respond)


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One way to have calls approved."""

    name: str
    """Name in the tables."""
    run: Callable[[Model], Awaitable[AgentRunResult[Any]]]
    """Function that runs an agent from its prompt to the final text."""


def approve(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
    """Approve every call at once."""
    return DeferredToolResults(approvals={call.tool_call_id: True for call in requests.approvals})


async def approve_async(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
    """Approve every call at once."""
    return approve(ctx, requests)


async def approve_in_thread(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
    """Approve every call with a sync handler in a thread, as the host's capability needs for a blocking handler."""
    return await asyncio.to_thread(approve, ctx, requests)


async def touch(number: int) -> str:
    """Do as little as a tool can do."""
    return f'touched {number}'


def upstream(handler: AsyncHandler | SyncHandler, name: str) -> Variant:
    """Return a variant with the host's capability `HandleDeferredToolCalls`."""
    return _variant(name, _with_tool(pydantic_ai.Agent(capabilities=[HandleDeferredToolCalls(handler=handler)])))


def ours(handler: AsyncHandler | SyncHandler, name: str) -> Variant:
    """Return a variant with the keyword `deferred_tool_handler`."""
    return _variant(name, _with_tool(Agent(deferred_tool_handler=handler)))


def stop_resume(decide: AsyncHandler, name: str = 'stop/resume') -> Variant:
    """Return a variant in which a run ends with its requests, and another one resumes it with the results."""
    agent = _with_tool(pydantic_ai.Agent(output_type=[str, DeferredToolRequests]))

    async def run(model: Model) -> AgentRunResult[Any]:
        result = await agent.run('go', model=model, usage_limits=_LIMITS)
        while isinstance(requests := result.output, DeferredToolRequests):
            # No handler of a variant uses its context.
            results = await decide(None, requests)  # pyright: ignore[reportArgumentType]
            result = await agent.run(
                model=model,
                message_history=result.all_messages(),
                deferred_tool_results=results,
                usage_limits=_LIMITS,
            )
        return result

    return Variant(name=name, run=run)


async def check_same_work(variants: list[Variant]) -> None:
    """Check that all variants end with the same history.

    Raises:
        AssertionError: The messages of two variants differ.
    """
    script = Script(rounds=3, calls=2)
    histories = [_essence((await variant.run(script.model())).all_messages()) for variant in variants]
    for variant, history in zip(variants, histories, strict=True):
        assert history == histories[0], f'{variant.name!r} works differently: {history} instead of {histories[0]}'


def _variant(name: str, agent: pydantic_ai.Agent[Any, str]) -> Variant:
    async def run(model: Model) -> AgentRunResult[Any]:
        return await agent.run('go', model=model, usage_limits=_LIMITS)

    return Variant(name=name, run=run)


def _with_tool(agent: AgentT) -> AgentT:
    agent.tool_plain(requires_approval=True)(touch)
    return agent


def _essence(messages: list[ModelMessage]) -> list[list[tuple[object, ...]]]:
    # The messages without times and run ids.
    def essence(part: object) -> tuple[object, ...]:
        fields = ('part_kind', 'tool_name', 'tool_call_id', 'args', 'content', 'outcome')
        return tuple(getattr(part, name, None) for name in fields)

    return [[essence(part) for part in message.parts] for message in messages]
