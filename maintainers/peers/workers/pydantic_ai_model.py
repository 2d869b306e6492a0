"""Define the scripted model of every peer that runs on Pydantic AI."""

# Only some environments have these packages. Strict checks are for published code.
# pyright: basic, reportMissingImports=false
from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pydantic_ai
from pydantic_ai import RequestUsage, UsageLimits
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from maintainers.peers.work import Bench

LIMITS = UsageLimits(request_limit=None)
_USAGE = RequestUsage(input_tokens=1, output_tokens=1)


def model(bench: Bench) -> FunctionModel:
    """Return a model that follows the prompt."""

    async def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        # Requests and responses alternate, in a resumed run too, however many calls there are.
        numbers = bench.calls_of(_prompt(messages), len(messages) - 1, per_call=0, per_response=2)
        # With the usage given, the model does not count the tokens of the whole history for every request.
        if numbers is None:
            return ModelResponse(parts=[TextPart('done')], usage=_USAGE)
        parts = [ToolCallPart('touch', {'number': n}, f'{len(messages)}-{n}') for n in numbers]
        return ModelResponse(parts=parts, usage=_USAGE)

    return FunctionModel(respond)


def tool(bench: Bench) -> Callable[[int], Awaitable[str]]:
    """Return the tool, which counts its calls."""

    async def touch(number: int) -> str:
        return bench.touch(number)

    return touch


def runner(bench: Bench, asking: pydantic_ai.Agent[Any, Any]) -> Callable[[str, bool], Awaitable[None]]:
    """Return a function that runs `asking`, or a plain agent whose tool needs no approval."""
    plain = pydantic_ai.Agent(model(bench))
    plain.tool_plain(tool(bench))

    async def run(prompt: str, approval: bool) -> None:
        await (asking if approval else plain).run(prompt, usage_limits=LIMITS)

    return run


def _prompt(messages: list[ModelMessage]) -> str:
    first = messages[0]
    assert isinstance(first, ModelRequest)
    for part in first.parts:
        if isinstance(part, UserPromptPart) and isinstance(part.content, str):
            return part.content
    raise AssertionError('a run begins with its prompt')
