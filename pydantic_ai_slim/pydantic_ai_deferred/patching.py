"""The keyword on Pydantic AI's own classes, in place, for code that builds stock agents elsewhere."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, cast

from pydantic_ai import Agent
from pydantic_ai.agent import AbstractAgent, WrapperAgent

from .capability import DeferredHandlerCapability
from .handler import check_handler
from .plan import overridden, overriding
from .run import is_nested
from .starting import open_run
from .terminal import chatting
from .variants import RunVariants, carry, given_handler

_VARIANTS = ('run_sync', 'run_stream', 'run_stream_sync', 'run_stream_events')
"""The run variants that end in `iter` and are plain functions; `run` is a coroutine function, and stays one."""


class Installation:
    """One `install`, as a context manager that undoes it and leaves what was installed before."""

    def __init__(self, *, nesting: bool) -> None:
        """Remember how to patch; `apply` does it."""
        self._nesting = nesting
        self._originals: list[tuple[type, str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self not in _installed:  # `uninstall` was called inside
            return
        _installed[-1].undo()
        _installed.remove(self)
        if _installed:
            _installed[-1].apply()

    def apply(self) -> None:
        """Patch the host's classes, which must be as the host made them."""
        self._patch(Agent, '__init__', _with_capability)
        self._patch(Agent, 'from_spec', _constructing)
        self._patch(Agent, 'from_file', _constructing)
        self._patch(AbstractAgent, 'run', _carrying_coroutine)
        for name in _VARIANTS:
            self._patch(AbstractAgent, name, _carrying)
        self._patch(AbstractAgent, 'to_cli', _in_terminal_coroutine)
        self._patch(AbstractAgent, 'to_cli_sync', _in_terminal)
        self._patch(Agent, 'iter', functools.partial(_starting, nesting=self._nesting))
        self._patch(WrapperAgent, 'iter', _passing_on)
        for owner in (Agent, WrapperAgent):
            self._patch(owner, 'override', _overriding)

    def undo(self) -> None:
        """Put the originals back."""
        while self._originals:
            owner, name, original = self._originals.pop()
            setattr(owner, name, original)

    def _patch(self, owner: type, name: str, make: Callable[[Any], Any]) -> None:
        original = owner.__dict__[name]
        self._originals.append((owner, name, original))
        setattr(owner, name, make(original))


def install(*, nesting: bool = False) -> Installation:
    """Add `deferred_tool_handler` to `pydantic_ai.Agent`, `AbstractAgent` and `WrapperAgent` themselves.

    Opt-in, idempotent and reversible; importing this package never does it. Agents built before take the keyword on
    their runs too.

    Args:
        nesting: Let stock agents that run inside a tool inherit the handler of the run above them.

    Returns:
        A context manager that undoes this when it is left; what was installed before is in force again then.
    """
    if _installed:
        _installed[-1].undo()
    installation = Installation(nesting=nesting)
    installation.apply()
    _installed.append(installation)
    return installation


def uninstall() -> None:
    """Undo every `install`; without one, do nothing. Agents keep the handler they were built with."""
    if _installed:
        _installed[-1].undo()
    _installed.clear()


# The patched classes are state of the process; this is what has been done to them. Only the last is applied.
_installed: list[Installation] = []


def _with_capability(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def construct(self: Any, *args: Any, deferred_tool_handler: Any = None, **keywords: Any) -> None:
        check_handler(deferred_tool_handler)
        if deferred_tool_handler is not None:
            self._capability = DeferredHandlerCapability(handler=deferred_tool_handler)
            keywords['capabilities'] = [*(keywords.get('capabilities') or ()), self._capability]
        original(self, *args, **keywords)

    return construct


def _constructing(original: Any) -> Any:
    function: Callable[..., Any] = original.__func__

    @functools.wraps(function)
    def construct(cls: Any, *args: Any, deferred_tool_handler: Any = None, **keywords: Any) -> Any:
        check_handler(deferred_tool_handler)
        if deferred_tool_handler is None:
            return function(cls, *args, **keywords)
        capability = DeferredHandlerCapability(handler=deferred_tool_handler)
        agent = function(
            cls, *args, **{**keywords, 'capabilities': [*(keywords.get('capabilities') or ()), capability]}
        )
        agent._capability = capability
        return agent

    return cast('Any', classmethod)(construct)


def _carrying(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def variant(self: Any, *args: Any, deferred_tool_handler: Any = None, **keywords: Any) -> Any:
        return original(self, *args, **carry(self, deferred_tool_handler, keywords, inspect.currentframe()))

    return variant


def _carrying_coroutine(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def variant(self: Any, *args: Any, deferred_tool_handler: Any = None, **keywords: Any) -> Any:
        return await original(self, *args, **carry(self, deferred_tool_handler, keywords, inspect.currentframe()))

    return variant


def _in_terminal(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def variant(self: Any, *args: Any, deferred_tool_handler: Any = None, **keywords: Any) -> None:
        with chatting():
            original(given_handler(self, deferred_tool_handler), *args, **keywords)

    return variant


def _in_terminal_coroutine(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def variant(self: Any, *args: Any, deferred_tool_handler: Any = None, **keywords: Any) -> None:
        with chatting():
            await original(given_handler(self, deferred_tool_handler), *args, **keywords)

    return variant


def _passing_on(original: Callable[..., Any]) -> Callable[..., Any]:
    # The wrapped agent settles who is asked; a wrapper only passes on what it was given.
    @functools.wraps(original)
    def variant(self: Any, *args: Any, deferred_tool_handler: Any = None, **keywords: Any) -> Any:
        if isinstance(self, RunVariants):  # settled already, in its own `iter`
            return original(self, *args, **keywords)
        return original(self, *args, **carry(self, deferred_tool_handler, keywords, inspect.currentframe()))

    return variant


def _starting(original: Callable[..., Any], *, nesting: bool) -> Callable[..., Any]:
    @functools.wraps(original)
    def variant(self: Any, *args: Any, deferred_tool_handler: Any = None, **keywords: Any) -> Any:
        if isinstance(self, RunVariants):  # settled already, in its own `iter`
            return original(self, *args, **keywords)
        keywords = carry(self, deferred_tool_handler, keywords, inspect.currentframe())
        capability = getattr(self, '_capability', None)
        is_given = any(isinstance(each, DeferredHandlerCapability) for each in keywords.get('capabilities') or ())
        if capability is None and not is_given and overridden(self) is None and not (nesting and is_nested()):
            return original(self, *args, **keywords)
        if args:
            keywords['user_prompt'], *_ = args
        return open_run(
            self,
            functools.partial(original, self),
            keywords,
            capability=capability if capability is not None else DeferredHandlerCapability(inherits=nesting),
            is_bound=capability is not None,
        )

    return variant


def _overriding(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    @contextmanager
    def override(self: Any, *, deferred_tool_handler: Any = None, **keywords: Any) -> Generator[None]:
        check_handler(deferred_tool_handler)
        if isinstance(self, RunVariants):
            with original(self, **keywords):
                yield
            return
        target: Any = self
        while isinstance(target, WrapperAgent) and not isinstance(target, RunVariants):
            target = cast('Any', target).wrapped
        with (
            original(self, **keywords),
            overriding(target, deferred_tool_handler, drops_capability=keywords.get('spec') is not None),
        ):
            yield

    return override
