"""The start of a run: its handler is settled, and handed to the capability that the host binds to the run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from types import TracebackType
from typing import Any, cast

from pydantic_ai.agent import AgentRun, WrapperAgent
from pydantic_ai.capabilities import AbstractCapability

from .capability import DeferredHandlerCapability
from .precedence import Choice, allows_deferred, delivering, may_lack_slot, overridden

HostIter = Callable[..., AbstractAsyncContextManager[AgentRun[Any, Any]]]


def open_run(
    agent: Any,
    host_iter: HostIter,
    keywords: dict[str, Any],
    *,
    slot: DeferredHandlerCapability,
    is_bound: bool,
) -> AbstractAsyncContextManager[AgentRun[Any, Any]]:
    """Start a run of `agent` with the handler that precedence settles on.

    Args:
        agent: The agent.
        host_iter: The host's `iter` for it.
        keywords: The keywords of that `iter`; a handler given to the run travels among `capabilities`.
        slot: The agent's own capability, which has the constructor's handler.
        is_bound: Whether the host has `slot` among the agent's capabilities. Where not, the run is given one.
    """
    given = [each for each in keywords.get('capabilities') or () if isinstance(each, DeferredHandlerCapability)]
    others = [each for each in keywords.get('capabilities') or () if not isinstance(each, DeferredHandlerCapability)]
    handlers = [overridden(agent), *(each.handler for each in reversed(given)), slot.handler]
    output_type = keywords.get('output_type')
    choice = Choice(
        handler=next((handler for handler in handlers if handler is not None), None),
        inherits=slot.inherits and all(each.inherits for each in given),
        stops=allows_deferred(agent.output_type if output_type is None else output_type),
        has_company=bool(others) or _may_rewrite(agent.root_capability),
    )
    if is_bound and not may_lack_slot(agent):
        return _Delivered(host_iter(**{**keywords, 'capabilities': others or None}), slot, choice)
    own = replace(
        slot,
        handler=choice.handler,
        inherits=choice.inherits,
        stops=choice.stops,
        has_company=choice.has_company,
    )
    run = host_iter(**{**keywords, 'capabilities': [*others, own]})
    # An agent's own capability must not be asked besides: the host may still have it under an override of the spec,
    # and a stock agent keeps the one it was built with under `install` after `uninstall`.
    superseded = slot if is_bound else _slot_of_stock(agent)
    return _Delivered(run, superseded, replace(choice, stands_aside=True)) if superseded is not None else run


def _may_rewrite(root: AbstractCapability[Any]) -> bool:
    found: list[AbstractCapability[Any]] = []
    root.apply(found.append)
    return any(
        # One that makes another for the run may make anything.
        type(capability).for_run is not AbstractCapability.for_run
        or any(getattr(type(capability), hook) is not getattr(AbstractCapability, hook) for hook in _REWRITING_HOOKS)
        for capability in found
        if not isinstance(capability, DeferredHandlerCapability)
    )


_REWRITING_HOOKS = ('after_tool_validate', 'wrap_tool_validate', 'before_tool_execute', 'wrap_tool_execute')


def _slot_of_stock(agent: Any) -> DeferredHandlerCapability | None:
    while isinstance(agent, WrapperAgent):
        agent = cast('Any', agent).wrapped
    return getattr(agent, '_slot', None)


class _Delivered(AbstractAsyncContextManager[AgentRun[Any, Any]]):
    """A run that hands its choice over while it is entered, and only then: what it contains is none of its business."""

    def __init__(
        self,
        run: AbstractAsyncContextManager[AgentRun[Any, Any]],
        slot: DeferredHandlerCapability,
        choice: Choice,
    ) -> None:
        self._run = run
        self._slot = slot
        self._choice = choice

    async def __aenter__(self) -> AgentRun[Any, Any]:
        with delivering(self._slot, self._choice):
            return await self._run.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._run.__aexit__(kind, error, traceback)
