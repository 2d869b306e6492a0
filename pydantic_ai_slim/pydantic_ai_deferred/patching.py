"""Add the keyword to Pydantic AI's own classes, for stock agents that other code creates."""

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
from .plan import RunPlan, overridden, overriding
from .run import is_nested
from .starting import bound_plan, open_run, with_handler
from .terminal import chatting
from .variants import RunVariants, carry, given_handler

_Make = Callable[[Any], Callable[..., Any]]


class Installation:
    """One `install`. Leaving the context undoes this `install` and restores the previous `install`."""

    def __init__(self, *, nesting: bool) -> None:
        """Keep the options for `apply`, which patches the classes."""
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
        """Patch the host's classes, which must not already be patched."""
        for name in ('__init__', 'from_spec', 'from_file'):
            self._patch(Agent, name, _constructing)
        for name in ('run', 'run_sync', 'run_stream', 'run_stream_sync', 'run_stream_events'):
            self._patch(AbstractAgent, name, _carrying)
        for name in ('to_cli', 'to_cli_sync'):
            self._patch(AbstractAgent, name, _in_terminal)
        self._patch(Agent, 'iter', functools.partial(_starting, nesting=self._nesting))
        self._patch(WrapperAgent, 'iter', _passing_on)
        for owner in (Agent, WrapperAgent):
            self._patch(owner, 'override', _overriding)

    def undo(self) -> None:
        """Restore the originals."""
        while self._originals:
            owner, name, original = self._originals.pop()
            setattr(owner, name, original)

    def _patch(self, owner: type, name: str, make: _Make) -> None:
        original = owner.__dict__[name]
        self._originals.append((owner, name, original))
        is_classmethod = isinstance(original, classmethod)
        function: Any = cast('Any', original).__func__ if is_classmethod else original
        made = functools.wraps(function)(make(function))
        setattr(owner, name, cast('Any', classmethod)(made) if is_classmethod else made)


def install(*, nesting: bool = False) -> Installation:
    """Add `deferred_tool_handler` to `pydantic_ai.Agent`, `AbstractAgent` and `WrapperAgent` themselves.

    This function is idempotent and reversible. Importing this package does not call `install`. The keyword also works
    for agents that were built before `install` was called.

    Args:
        nesting: Whether stock agents that run inside a tool inherit the handler of the outer run.

    Returns:
        A context manager that undoes this `install` on exit and restores the previous `install`.
    """
    if _installed:
        _installed[-1].undo()
    installation = Installation(nesting=nesting)
    installation.apply()
    _installed.append(installation)
    return installation


def uninstall() -> None:
    """Undo every `install`. Agents keep the handler they were built with."""
    if _installed:
        _installed[-1].undo()
    _installed.clear()


# State of the process, like the patched classes themselves. Only the last installation is applied.
_installed: list[Installation] = []


def _constructing(original: Callable[..., Any]) -> Callable[..., Any]:
    def construct(owner: Any, *args: Any, deferred_tool_handler: Any = None, **keywords: Any) -> Any:
        return original(owner, *args, **with_handler(keywords, deferred_tool_handler))

    return construct


def _carrying(original: Callable[..., Any]) -> Callable[..., Any]:
    def variant(self: Any, *args: Any, deferred_tool_handler: Any = None, **keywords: Any) -> Any:
        return original(self, *args, **carry(self, deferred_tool_handler, keywords, inspect.currentframe()))

    async def coroutine(self: Any, *args: Any, deferred_tool_handler: Any = None, **keywords: Any) -> Any:
        return await original(self, *args, **carry(self, deferred_tool_handler, keywords, inspect.currentframe()))

    return coroutine if inspect.iscoroutinefunction(original) else variant


def _in_terminal(original: Callable[..., Any]) -> Callable[..., Any]:
    def variant(self: Any, *args: Any, deferred_tool_handler: Any = None, **keywords: Any) -> None:
        with chatting():
            original(given_handler(self, deferred_tool_handler), *args, **keywords)

    async def coroutine(self: Any, *args: Any, deferred_tool_handler: Any = None, **keywords: Any) -> None:
        with chatting():
            await original(given_handler(self, deferred_tool_handler), *args, **keywords)

    return coroutine if inspect.iscoroutinefunction(original) else variant


def _passing_on(original: Callable[..., Any]) -> Callable[..., Any]:
    # The wrapped agent settles which handler is asked; a wrapper only passes its own on.
    def variant(self: Any, *args: Any, deferred_tool_handler: Any = None, **keywords: Any) -> Any:
        if isinstance(self, RunVariants):  # settled already, in its own `iter`
            return original(self, *args, **keywords)
        return original(self, *args, **carry(self, deferred_tool_handler, keywords, inspect.currentframe()))

    return variant


def _starting(original: Callable[..., Any], *, nesting: bool) -> Callable[..., Any]:
    def variant(self: Any, *args: Any, deferred_tool_handler: Any = None, **keywords: Any) -> Any:
        if isinstance(self, RunVariants):  # settled already, in its own `iter`
            return original(self, *args, **keywords)
        keywords = carry(self, deferred_tool_handler, keywords, inspect.currentframe())
        plan = bound_plan(self)
        is_given = any(isinstance(each, DeferredHandlerCapability) for each in keywords.get('capabilities') or ())
        if plan is None and not is_given and overridden(self) is None and not (nesting and is_nested()):
            return original(self, *args, **keywords)
        host_iter = functools.partial(original, self, *args)
        return open_run(self, host_iter, keywords, plan or RunPlan(inherits=nesting))

    return variant


def _overriding(original: Callable[..., Any]) -> Callable[..., Any]:
    @contextmanager
    def override(self: Any, *, deferred_tool_handler: Any = None, **keywords: Any) -> Generator[None]:
        check_handler(deferred_tool_handler)
        target: Any = self
        while isinstance(target, WrapperAgent) and not isinstance(target, RunVariants):
            target = cast('Any', target).wrapped
        with (
            original(self, **keywords),
            overriding(target, deferred_tool_handler, drops_capability=keywords.get('spec') is not None),
        ):
            yield

    return override
