"""Whom a run asks: override, then run keyword, then constructor, then what it inherits. Exactly one is asked."""

from __future__ import annotations

import types
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Union, cast, get_args, get_origin

from pydantic_ai import DeferredToolRequests

from .handler import AnyHandler


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What was settled for a run before it starts."""

    handler: AnyHandler | None
    """The handler given by override, run keyword or constructor, or `None`."""
    inherits: bool
    """Whether it may inherit one instead."""
    output_allows_deferred: bool = False
    """Whether its output type allows `DeferredToolRequests`."""
    args_may_be_rewritten: bool = True
    """Whether other capabilities of the run may rewrite the arguments of a call."""
    superseded: bool = False
    """Whether other capabilities were given to the run in place of the one this is for."""


def allows_deferred(output_type: object) -> bool:
    """Whether calls may leave a run with this output type as `DeferredToolRequests`.

    Args:
        output_type: A type, a union, or a sequence of output types, nested at will.
    """
    if output_type is DeferredToolRequests:
        return True
    if isinstance(output_type, list | tuple):
        return any(allows_deferred(option) for option in cast('Sequence[object]', output_type))
    if get_origin(output_type) in (Union, types.UnionType):
        return any(allows_deferred(option) for option in get_args(output_type))
    alias = getattr(output_type, '__value__', None)  # `type X = ...`
    return alias is not None and allows_deferred(alias)


@contextmanager
def overriding(agent: object, handler: AnyHandler | None, *, drops_capability: bool) -> Generator[None]:
    """While inside, `agent` asks `handler`, whatever its runs are given.

    Args:
        agent: The agent, compared by identity: agents are not hashable.
        handler: The handler, or `None` to leave the choice as it is.
        drops_capability: Whether the host's override in force beside it may drop the agent's capabilities, ours too.
    """
    token = _overrides.set((*_overrides.get(), _Override(agent, handler, drops_capability)))
    try:
        yield
    finally:
        _overrides.reset(token)


def overridden(agent: object) -> AnyHandler | None:
    """The handler of the innermost override in force for `agent`, or `None`."""
    handlers = (entry.handler for entry in reversed(_overrides.get()) if entry.agent is agent)
    return next((handler for handler in handlers if handler is not None), None)


def may_lack_capability(agent: object) -> bool:
    """Whether an override in force may have dropped the capabilities of `agent`."""
    return any(entry.drops_capability for entry in _overrides.get() if entry.agent is agent)


@contextmanager
def delivering(capability: object, choice: Choice) -> Generator[None]:
    """While a run starts: hand its `choice` to the agent's own capability.

    Args:
        capability: The capability.
        choice: What was settled; one that stands aside leaves the run to the capabilities it was given.
    """
    token = _delivery.set((capability, choice))
    try:
        yield
    finally:
        _delivery.reset(token)


def delivered_to(capability: object) -> Choice | None:
    """The choice for the run that is starting, if it was delivered to this capability."""
    delivery = _delivery.get()
    return delivery[1] if delivery is not None and delivery[0] is capability else None


@dataclass(frozen=True)
class _Override:
    agent: object
    handler: AnyHandler | None
    drops_capability: bool


_overrides: ContextVar[tuple[_Override, ...]] = ContextVar('pydantic_ai_deferred_overrides', default=())
_delivery: ContextVar[tuple[object, Choice] | None] = ContextVar('pydantic_ai_deferred_delivery', default=None)
