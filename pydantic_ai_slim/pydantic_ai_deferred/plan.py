"""Define `RunPlan`: the handler of a run, and the facts that its capabilities need."""

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
    """Settings of a run, fixed before it starts. An agent's constructor sets only `handler` and `inherits`."""

    handler: AnyHandler | None = None
    """Handler that was given to an override, the run or the constructor, or `None` if no handler was given."""
    inherits: bool = True
    """Whether the run may inherit a handler if `handler` is `None`."""
    output_allows_deferred: bool = False
    """Whether the run's output type allows `DeferredToolRequests`."""
    args_may_be_rewritten: bool = True
    """Whether other capabilities of the run may rewrite a call's arguments."""
    superseded: bool = False
    """Whether the run gets capabilities of its own. The capability from the agent's constructor then does nothing."""


def allows_deferred(output_type: object) -> bool:
    """Whether `output_type` contains `DeferredToolRequests`, directly or nested, so that a run can end with it."""
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
    """Set `variable` to `value` inside the context."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def overriding(agent: object, handler: AnyHandler | None, *, drops_capability: bool) -> AbstractContextManager[None]:
    """Make `agent` ask `handler` inside the context, even if a run is given another handler. `None` changes nothing.

    `drops_capability` means that the host's `override`, which is active in the same context, may remove all
    capabilities of the agent, including ours.
    """
    return setting(_overrides, (*_overrides.get(), (agent, handler, drops_capability)))


def overridden(agent: object) -> AnyHandler | None:
    """Return the handler of the innermost active override for `agent`, or `None`."""
    handlers = (handler for each, handler, _ in reversed(_overrides.get()) if each is agent)
    return next((handler for handler in handlers if handler is not None), None)


def may_lack_capability(agent: object) -> bool:
    """Whether an active override may have dropped the capabilities of `agent`."""
    return any(drops_capability for each, _, drops_capability in _overrides.get() if each is agent)


@contextmanager
def delivering(capability: object, content: object) -> Generator[None]:
    """Pass `content` to `capability`, one of the agent's capabilities, when a run starts inside the context."""
    delivery = [(capability, content)]
    with setting(_delivery, delivery):
        try:
            yield
        finally:
            delivery.clear()  # tasks started meanwhile keep a copy of the context


def delivered_to(capability: object) -> Any:
    """Return what `delivering` passes to `capability` for the run that is starting, or `None`."""
    return next((content for receiver, content in _delivery.get() if receiver is capability), None)


# A tuple, compared by identity: agents are not hashable.
_overrides: ContextVar[tuple[tuple[object, AnyHandler | None, bool], ...]] = ContextVar(
    'pydantic_ai_deferred_overrides', default=()
)
_delivery: ContextVar[Sequence[tuple[object, object]]] = ContextVar('pydantic_ai_deferred_delivery', default=())
