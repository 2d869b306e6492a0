"""Determine a run's plan, and start the run with the capabilities that call its handler."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any, cast

from pydantic_ai.agent import AgentRun
from pydantic_ai.capabilities import AbstractCapability, WrapperCapability

from .capability import (
    AgentHandler,
    DeferredHandlerCapability,
    FastPathHandler,
    RunCapability,
    capabilities_for,
)
from .handler import AnyHandler, check_handler
from .plan import RunPlan, allows_deferred, delivering, may_lack_capability, overridden

HostIter = Callable[..., AbstractAsyncContextManager[AgentRun[Any, Any]]]

_REWRITING_HOOKS = (
    'for_run',  # may return a capability that has the others
    'after_tool_validate',
    'wrap_tool_validate',
    'before_tool_execute',
    'wrap_tool_execute',
)


def with_handler(keywords: dict[str, Any], handler: AnyHandler | None) -> dict[str, Any]:
    """Return keyword arguments for the host's constructor or run method, with `handler` added to the capabilities.

    Raises:
        UserError: The handler cannot be called.
    """
    check_handler(handler)
    if handler is None:
        return keywords
    capability = DeferredHandlerCapability(RunPlan(handler=handler))
    return {**keywords, 'capabilities': [*(keywords.get('capabilities') or ()), capability]}


def open_run(
    agent: Any, host_iter: HostIter, keywords: dict[str, Any], plan: RunPlan, asking: AgentHandler | None = None
) -> AbstractAsyncContextManager[AgentRun[Any, Any]]:
    """Start a run of `agent` with the host's `iter` and with the handler that has precedence.

    A handler given to the run is in `keywords['capabilities']`. The agent's constructor sets `plan` and `asking`.
    """
    given: list[RunPlan] = []
    others: list[Any] = []
    for each in keywords.get('capabilities') or ():
        match each:
            case DeferredHandlerCapability():
                given.append(each.plan)
            case RunCapability():  # given by an agent that wraps this one
                given.append(each.run.plan)
            case _:
                others.append(each)
    handlers = [overridden(agent), *(each.handler for each in reversed(given)), plan.handler]
    output_type = keywords.get('output_type')
    bound, own = _capabilities_of(agent)
    is_bound_asked = (
        bound is not None
        and bound.plan is plan
        and not may_lack_capability(agent)
        and any(engine.in_durable_context for engine in engines_among(own))
    )
    settled = replace(
        plan,
        handler=next((handler for handler in handlers if handler is not None), None),
        inherits=plan.inherits and all(each.inherits for each in given),
        output_allows_deferred=allows_deferred(agent.output_type if output_type is None else output_type),
        args_may_be_rewritten=bool(others) or any(map(may_rewrite, own)),
        superseded=not is_bound_asked,
    )
    if settled.args_may_be_rewritten or may_lack_capability(agent):
        asking = None
    return _started(host_iter, {**keywords, 'capabilities': others}, settled, bound, asking)


@asynccontextmanager
async def _started(
    host_iter: HostIter,
    keywords: dict[str, Any],
    plan: RunPlan,
    bound: DeferredHandlerCapability | None,
    asking: AgentHandler | None,
) -> AsyncGenerator[AgentRun[Any, Any]]:
    # Deliver only while the run is entered: runs inside it must not receive the content.
    receiver, content = bound, plan
    if plan.superseded:
        # One capability on each side of the others, so that none rewrites arguments after the outermost has seen them.
        *outermost, innermost = capabilities_for(plan)
        if asking is not None and isinstance(innermost, FastPathHandler):
            receiver, content = asking, innermost.run
        else:
            keywords = {**keywords, 'capabilities': [*outermost, *keywords['capabilities'], innermost]}
    async with AsyncExitStack() as stack:
        with delivering(receiver, content):
            run = await stack.enter_async_context(host_iter(**keywords))
        yield run


def bound_plan(agent: Any) -> RunPlan | None:
    """Return the plan of a stock agent created with `install` active, or `None` if the agent was given no handler."""
    bound, _ = _capabilities_of(agent)
    return bound.plan if bound is not None else None


def _capabilities_of(agent: Any) -> tuple[DeferredHandlerCapability | None, list[AbstractCapability[Any]]]:
    # Durable agents, agents from a spec and, under `install`, stock agents are built with our capability.
    found: list[AbstractCapability[Any]] = []
    agent.root_capability.apply(found.append)
    bound = next((each for each in found if isinstance(each, DeferredHandlerCapability)), None)
    return bound, [each for each in found if each is not bound and not isinstance(each, AgentHandler)]


def engines_among(capabilities: Iterable[object]) -> list[Any]:
    """Return the durable engines in `capabilities`. In a durable workflow, a run accepts only its agent's capabilities.

    An engine is recognized by its `in_durable_context`, which does not exist on hosts before 2.x.
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


def may_rewrite(capability: object) -> bool:
    """Whether a capability may rewrite arguments. The answer is `True` for a function that creates capabilities."""
    return any(
        getattr(type(capability), hook, None) is not getattr(AbstractCapability, hook) for hook in _REWRITING_HOOKS
    )
