"""Hold the plan of a run: whose handler is asked, and what the capability has to know of the run."""

from __future__ import annotations

import types
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar, Union, cast, get_args, get_origin

from pydantic_ai import DeferredToolRequests

from .handler import AnyHandler

T = TypeVar('T')


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """Settled before a run starts: the first two fields by a constructor, all of them for the run."""

    handler: AnyHandler | None = None
    """The handler given by override, run keyword or constructor, or `None`."""
    inherits: bool = True
    """Whether the run may inherit a handler instead."""
    output_allows_deferred: bool = False
    """Whether its output type allows `DeferredToolRequests`."""
    args_may_be_rewritten: bool = True
    """Whether other capabilities of the run may rewrite the arguments of a call."""
    superseded: bool = False
    """Whether the capability that the agent was built with is left unasked, for one given to this run."""


def allows_deferred(output_type: object) -> bool:
    """Whether calls may leave a run with this output type, nested at will, as `DeferredToolRequests`."""
    if output_type is DeferredToolRequests:
        return True
    if isinstance(output_type, list | tuple):
        return any(allows_deferred(option) for option in cast('Sequence[object]', output_type))
    if get_origin(output_type) in (Union, types.UnionType):
        return any(allows_deferred(option) for option in get_args(output_type))
    alias = getattr(output_type, '__value__', None)  # `type X = ...`
    return alias is not None and allows_deferred(alias)


@contextmanager
def setting(variable: ContextVar[T], value: T) -> Generator[None]:
    """While inside, `variable` has `value`."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def overriding(agent: object, handler: AnyHandler | None, *, drops_capability: bool) -> AbstractContextManager[None]:
    """While inside, `agent` asks `handler`, whatever its runs are given; `None` leaves the choice as it is.

    `drops_capability` says whether the host's override beside it may drop the agent's capabilities, ours among them.
    """
    return setting(_overrides, (*_overrides.get(), (agent, handler, drops_capability)))


def overridden(agent: object) -> AnyHandler | None:
    """The handler of the innermost override in force for `agent`, or `None`."""
    handlers = (handler for each, handler, _ in reversed(_overrides.get()) if each is agent)
    return next((handler for handler in handlers if handler is not None), None)


def may_lack_capability(agent: object) -> bool:
    """Whether an override in force may have dropped the capabilities of `agent`."""
    return any(drops_capability for each, _, drops_capability in _overrides.get() if each is agent)


@contextmanager
def delivering(capability: object, content: object) -> Generator[None]:
    """While a run starts: hand something of it to a capability that its agent was built with."""
    delivery = [(capability, content)]
    with setting(_delivery, delivery):
        try:
            yield
        finally:
            delivery.clear()  # tasks that start meanwhile have a copy of the context


def delivered_to(capability: object) -> Any:
    """What `delivering` hands to this capability for the run that is starting, or `None`."""
    return next((content for receiver, content in _delivery.get() if receiver is capability), None)


# Agents are compared by identity: they are not hashable.
_overrides: ContextVar[tuple[tuple[object, AnyHandler | None, bool], ...]] = ContextVar(
    'pydantic_ai_deferred_overrides', default=()
)
_delivery: ContextVar[Sequence[tuple[object, object]]] = ContextVar('pydantic_ai_deferred_delivery', default=())
