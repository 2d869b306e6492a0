"""The tools of every scenario. What they do is looked up in the scenario by `tool_call_id`, and written down."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from functools import cache
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel
from pydantic_ai import ApprovalRequired, CallDeferred, ModelRetry, RunContext, exceptions
from pydantic_ai.messages import ToolReturn
from pydantic_ai.tools import Tool, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ExternalToolset, FunctionToolset

from .hosts import HAS_QUESTIONS
from .world import World

Kind: TypeAlias = Literal['ordinary', 'declared', 'raised', 'deferred', 'question', 'again_raised', 'again_declared']
"""`declared` and `raised` await approval, `deferred` and `question` a result from elsewhere; the last two do both."""

RETRIES = 100
"""More than a scenario can use. A resumed run starts its budgets anew, an inline run does not."""

ASYNC, SYNC, ALONE, ONE_MODEL = 'async', 'sync', 'alone', 'one_model'
_FLAVOURS: dict[Kind, tuple[str, ...]] = {
    'declared': (ASYNC, SYNC, ALONE, ONE_MODEL),
    'raised': (ASYNC, SYNC, ALONE, ONE_MODEL),
    'ordinary': (ASYNC, SYNC, ALONE, ONE_MODEL),
    'deferred': (ASYNC, SYNC),
    **({'question': (ASYNC, SYNC)} if HAS_QUESTIONS else {}),
    'again_raised': (ASYNC, SYNC),
    'again_declared': (ASYNC, SYNC),
}
EXTERNAL = 'external'
KINDS: dict[str, str] = {
    **{f'{kind}_{flavour}': kind for kind, flavours in _FLAVOURS.items() for flavour in flavours},
    EXTERNAL: EXTERNAL,
}
"""The kind of every tool, by its name."""


class Target(BaseModel):
    """The fields of a tool that takes one model; the model sends them as arguments."""

    path: str
    count: int = 3
    tags: list[str] = []


def toolsets(names: Collection[str]) -> list[AbstractToolset[World]]:
    """The tools of these names."""
    functions = [tool for name, tool in _functions().items() if name in names]
    schema = {'type': 'object', 'properties': {'path': {'type': 'string'}, 'count': {'type': 'integer'}}}
    external = [ToolDefinition(name=EXTERNAL, parameters_json_schema=schema)] if EXTERNAL in names else []
    return [FunctionToolset(functions, max_retries=RETRIES), ExternalToolset(external)]


@cache
def _functions() -> dict[str, Tool[World]]:
    # Shared by all runs: what one run did to a tool, the next would see.
    return {
        f'{kind}_{flavour}': Tool(
            _function(kind, flavour),
            takes_ctx=True,
            name=f'{kind}_{flavour}',
            sequential=flavour == ALONE,
            requires_approval=kind in ('declared', 'again_declared'),
        )
        for kind, flavours in _FLAVOURS.items()
        for flavour in flavours
    }


def _function(kind: Kind, flavour: str) -> Callable[..., Any]:
    async def with_arguments(ctx: RunContext[World], path: str, count: int = 3, tags: list[str] | None = None) -> Any:
        return await paused(ctx, {'path': path, 'count': count, 'tags': tags})

    def with_defaults(ctx: RunContext[World], path: str = '.', count: int = 3, tags: list[str] | None = None) -> Any:
        return _execute(ctx, kind, {'path': path, 'count': count, 'tags': tags})

    async def with_model(ctx: RunContext[World], target: Target) -> Any:
        return await paused(ctx, target.model_dump())

    async def paused(ctx: RunContext[World], args: dict[str, Any]) -> Any:
        # Calls that run in parallel take turns.
        for _ in range(int((ctx.tool_call_id or '0')[-1]) % 3):
            await asyncio.sleep(0)
        return _execute(ctx, kind, args)

    return {ASYNC: with_arguments, SYNC: with_defaults, ALONE: with_arguments, ONE_MODEL: with_model}[flavour]


def _execute(ctx: RunContext[World], kind: Kind, args: dict[str, Any]) -> Any:
    assert ctx.tool_call_id is not None
    ctx.deps.note_execution(ctx, args)
    call = ctx.deps.scenario.calls[ctx.tool_call_id]
    match kind:
        case 'raised' | 'again_raised' if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata=call.deferral_metadata)
        case 'deferred' | 'again_raised' | 'again_declared':
            raise CallDeferred(metadata=call.deferral_metadata)
        case 'question':
            raise CallDeferred(metadata=call.deferral_metadata, kind='question')
        case _:
            pass
    match call.deed:
        case 'returns':
            return {'by': ctx.tool_call_id, **args}
        case 'returns nothing':
            return None
        case 'returns with content':
            return ToolReturn(f'{args}', content=f'attached by {ctx.tool_call_id}', metadata={'kept': args})
        case 'asks for a retry':
            raise ModelRetry(f'{ctx.tool_call_id} cannot do {args}')
        case 'fails':
            raise exceptions.ToolFailed(f'{ctx.tool_call_id} gave up on {args}')
