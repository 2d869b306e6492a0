"""The ways to have a tool call approved, each doing the same work: same tool, same calls, same messages."""

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
    """What the model says: a number of responses with tool calls, then a text."""

    rounds: int
    """Responses with calls."""
    calls: int
    """Calls in each of them."""

    def respond(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        """The next response. Requests and responses alternate, in a resumed run as well."""
        position = len(messages) // 2
        if position >= self.rounds:
            return ModelResponse(parts=[TextPart('done')], usage=_USAGE)
        # With usage given, the model does not count the tokens of the whole history on every request.
        parts = [ToolCallPart('touch', {'number': n}, f'{position}-{n}') for n in range(self.calls)]
        return ModelResponse(parts=parts, usage=_USAGE)

    def model(self, checkpoint: Checkpoint | None = None) -> Model:
        """A model that says this, and awaits `checkpoint` before each response."""

        async def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            if checkpoint is not None:
                await checkpoint()
            return self.respond(messages, info)

        return FunctionModel(respond)


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One way to have calls approved."""

    name: str
    """As the tables call it."""
    run: Callable[[Model], Awaitable[AgentRunResult[Any]]]
    """Runs an agent from its prompt to the final text."""


def approve(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
    """Approve everything, at once."""
    return DeferredToolResults(approvals={call.tool_call_id: True for call in requests.approvals})


async def approve_async(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
    """Approve everything, at once."""
    return approve(ctx, requests)


async def approve_in_thread(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
    """Approve everything by a sync handler that may block, as upstream's capability has to be given one."""
    return await asyncio.to_thread(approve, ctx, requests)


async def touch(number: int) -> str:
    """The tool: as little work as a tool can be."""
    return f'touched {number}'


def plain() -> Variant:
    """No approval: the tool is an ordinary one."""
    return _variant('no approval', _with_tool(pydantic_ai.Agent(), requires_approval=False))


def upstream(handler: AsyncHandler | SyncHandler, name: str) -> Variant:
    """The host's capability `HandleDeferredToolCalls`."""
    return _variant(name, _with_tool(pydantic_ai.Agent(capabilities=[HandleDeferredToolCalls(handler=handler)])))


def ours(handler: AsyncHandler | SyncHandler, name: str) -> Variant:
    """The keyword `deferred_tool_handler`."""
    return _variant(name, _with_tool(Agent(deferred_tool_handler=handler)))


def stop_resume(decide: AsyncHandler, name: str = 'stop/resume') -> Variant:
    """The run ends with its requests, and another one goes on with the history and the results."""
    agent = _with_tool(pydantic_ai.Agent(output_type=[str, DeferredToolRequests]))

    async def run(model: Model) -> AgentRunResult[Any]:
        result = await agent.run('go', model=model, usage_limits=_LIMITS)
        while isinstance(requests := result.output, DeferredToolRequests):
            # The handlers of the other variants have no use for their context either.
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
    """Refuse to compare variants that do not end with the same history.

    Raises:
        AssertionError: The messages of two variants differ in a part.
    """
    script = Script(rounds=3, calls=2)
    histories = [_essence((await variant.run(script.model())).all_messages()) for variant in variants]
    for variant, history in zip(variants, histories, strict=True):
        assert history == histories[0], f'{variant.name!r} works differently: {history} instead of {histories[0]}'


def _variant(name: str, agent: pydantic_ai.Agent[Any, str]) -> Variant:
    async def run(model: Model) -> AgentRunResult[Any]:
        return await agent.run('go', model=model, usage_limits=_LIMITS)

    return Variant(name=name, run=run)


def _with_tool(agent: AgentT, *, requires_approval: bool = True) -> AgentT:
    agent.tool_plain(requires_approval=requires_approval)(touch)
    return agent


def _essence(messages: list[ModelMessage]) -> list[list[tuple[object, ...]]]:
    # What the model is told and said, without times and run ids.
    def essence(part: object) -> tuple[object, ...]:
        fields = ('part_kind', 'tool_name', 'tool_call_id', 'args', 'content', 'outcome')
        return tuple(getattr(part, name, None) for name in fields)

    return [[essence(part) for part in message.parts] for message in messages]
