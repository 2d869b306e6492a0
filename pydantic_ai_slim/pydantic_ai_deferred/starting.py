"""The start of a run: its handler is settled, and the run is given the capabilities that ask it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from types import TracebackType
from typing import Any, cast

from pydantic_ai.agent import AgentRun, WrapperAgent
from pydantic_ai.capabilities import AbstractCapability, WrapperCapability

from .capability import DeferredHandlerCapability, RunCapability, capabilities_for
from .plan import Choice, allows_deferred, delivering, may_lack_capability, overridden

HostIter = Callable[..., AbstractAsyncContextManager[AgentRun[Any, Any]]]


def open_run(
    agent: Any,
    host_iter: HostIter,
    keywords: dict[str, Any],
    *,
    capability: DeferredHandlerCapability,
    is_bound: bool,
) -> AbstractAsyncContextManager[AgentRun[Any, Any]]:
    """Start a run of `agent` with the handler that precedence settles on.

    Args:
        agent: The agent.
        host_iter: The host's `iter` for it.
        keywords: The keywords of that `iter`; a handler given to the run travels among `capabilities`.
        capability: The agent's own capability, which has the constructor's handler.
        is_bound: Whether the host has `capability` among the agent's capabilities.
    """
    given: list[DeferredHandlerCapability | Choice] = []
    others: list[Any] = []
    for each in keywords.get('capabilities') or ():
        match each:
            case DeferredHandlerCapability():
                given.append(each)
            case RunCapability():  # of an agent around this one: the run is this one's, and what it was given counts
                given.append(each.run.choice)
            case _:
                others.append(each)
    handlers = [overridden(agent), *(each.handler for each in reversed(given)), capability.handler]
    output_type = keywords.get('output_type')
    own = _capabilities_of(agent)
    choice = Choice(
        handler=next((handler for handler in handlers if handler is not None), None),
        inherits=capability.inherits and all(each.inherits for each in given),
        output_allows_deferred=allows_deferred(agent.output_type if output_type is None else output_type),
        args_may_be_rewritten=bool(others) or any(map(_may_rewrite, own)),
    )
    is_in_workflow = any(engine.in_durable_context for engine in engines_among(own))
    return _Start(
        host_iter,
        {**keywords, 'capabilities': others},
        choice,
        # The agent's own capability must not be asked besides others, nor the one that a stock agent was built with
        # under `install` and keeps after `uninstall`.
        capability=capability if is_bound else _capability_of_stock(agent),
        is_capability_asked=is_bound and is_in_workflow and not may_lack_capability(agent),
    )


def engines_among(capabilities: Iterable[object]) -> list[Any]:
    """The capabilities of durable engines. In a workflow of theirs a run takes none but those of its agent.

    They are known by `in_durable_context`; hosts before 2.x have none.
    """
    found: list[AbstractCapability[Any]] = []
    for each in capabilities:
        if isinstance(each, AbstractCapability):  # not a function that makes one
            cast('AbstractCapability[Any]', each).apply(found.append)
    innermost: list[object] = []
    for each in found:
        while isinstance(each, WrapperCapability):
            each = each.wrapped
        innermost.append(each)
    return [each for each in innermost if hasattr(type(each), 'in_durable_context')]


def _capabilities_of(agent: Any) -> list[AbstractCapability[Any]]:
    found: list[AbstractCapability[Any]] = []
    agent.root_capability.apply(found.append)
    return [each for each in found if not isinstance(each, DeferredHandlerCapability)]


def _may_rewrite(capability: AbstractCapability[Any]) -> bool:
    # One that makes another for the run may make anything.
    return type(capability).for_run is not AbstractCapability.for_run or any(
        getattr(type(capability), hook) is not getattr(AbstractCapability, hook) for hook in _REWRITING_HOOKS
    )


_REWRITING_HOOKS = ('after_tool_validate', 'wrap_tool_validate', 'before_tool_execute', 'wrap_tool_execute')


def _capability_of_stock(agent: Any) -> DeferredHandlerCapability | None:
    while isinstance(agent, WrapperAgent):
        agent = cast('Any', agent).wrapped
    return getattr(agent, '_capability', None)


class _Start(AbstractAsyncContextManager[AgentRun[Any, Any]]):
    """A run that is bound to its place, and hands its choice over, while it is entered: what it contains is not."""

    def __init__(
        self,
        host_iter: HostIter,
        keywords: dict[str, Any],
        choice: Choice,
        *,
        capability: DeferredHandlerCapability | None,
        is_capability_asked: bool,
    ) -> None:
        self._host_iter = host_iter
        self._keywords = keywords
        self._choice = choice
        self._capability = capability
        self._is_capability_asked = is_capability_asked

    async def __aenter__(self) -> AgentRun[Any, Any]:
        capabilities = self._keywords['capabilities']
        if not self._is_capability_asked:
            # Outermost and innermost of the run's: others may not rewrite arguments behind the first.
            *outermost, innermost = capabilities_for(self._choice)
            capabilities = [*outermost, *capabilities, innermost]
        with delivering(self._capability, replace(self._choice, superseded=not self._is_capability_asked)):
            self._run = self._host_iter(**{**self._keywords, 'capabilities': capabilities})
            return await self._run.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._run.__aexit__(kind, error, traceback)
