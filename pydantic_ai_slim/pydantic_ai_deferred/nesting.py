"""Runs inside tools: which handler they inherit, and the lineage that a handler is told."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import ToolCallPart

from .handler import AnyHandler


@dataclass(frozen=True, kw_only=True)
class LineageLevel:
    """One agent run and the tool call of it in which the next level, or the request itself, arose."""

    agent_name: str | None
    """The agent's name, where it has one."""
    run_id: str
    """The id of the agent's run."""
    tool_name: str
    """The tool being executed."""
    tool_call_id: str
    """The id of that tool call. It can repeat across runs: key on `(run_id, tool_call_id)`."""


def lineage() -> tuple[LineageLevel, ...]:
    """The chain of agents and tool calls above the current one, from the outermost run inwards.

    In a handler: what is above the run it is asked for, empty for the outermost run. In a tool: the same, ending with
    that tool call. Outside of any run: empty. It reaches sync tools and handlers in their threads.
    """
    place = _place.get()
    return place.levels if place is not None else ()


@dataclass(eq=False, kw_only=True)
class RunScope:
    """One run as the runs nested in its tools see it."""

    handler: AnyHandler | None
    """Asked for this run's own deferred calls, or `None`."""
    offered: AnyHandler | None
    """Inherited by nested runs that have no handler of their own, or `None`."""
    giver: RunScope | None
    """The run `handler` and `offered` belong to where they were inherited, or `None` for this one."""
    loop: asyncio.AbstractEventLoop
    """The event loop of the outermost run."""
    levels: tuple[LineageLevel, ...]
    """What is above this run."""
    is_live: bool = True
    """Whether the run has not ended yet."""

    @property
    def can_ask(self) -> bool:
        """Whether the run that gave the handler has not ended yet."""
        return (self.giver or self).is_live

    @contextmanager
    def inside_tool(self, ctx: RunContext[Any], call: ToolCallPart) -> Generator[None]:
        """While the tool of `call` executes: runs started in it are nested in this one."""
        level = LineageLevel(
            agent_name=ctx.agent.name if ctx.agent is not None else None,
            run_id=ctx.run_id or '',
            tool_name=call.tool_name,
            tool_call_id=call.tool_call_id,
        )
        with _at(_Place(levels=(*self._levels_here(), level), scope=self, is_asking=False, loop=self.loop)):
            yield

    @contextmanager
    def inside_handler(self) -> Generator[None]:
        """While the handler runs: nothing is inherited, so that an agent it consults does not ask itself."""
        with _at(_Place(levels=self._levels_here(), scope=self, is_asking=True, loop=self.loop)):
            yield

    def _levels_here(self) -> tuple[LineageLevel, ...]:
        # A tool that calls other tools of its own run (code mode) is above them.
        place = _place.get()
        return place.levels if place is not None and place.scope is self else self.levels


def open_scope(*, given: AnyHandler | None, declines: bool, inherits: bool, stops: bool) -> RunScope:
    """The scope of a run that starts here and now.

    Args:
        given: The handler given to the run by override, keyword or constructor.
        declines: Whether that handler is `bubble_up`: nobody is asked, and nothing is offered to nested runs.
        inherits: Whether the run may inherit a handler.
        stops: Whether the run's output type allows `DeferredToolRequests`: it asked to stop and resume, so it does
            not ask an inherited handler itself, but still offers it to the runs nested in it.
    """
    place = _place.get()
    # A task can outlive the run it was started in, and the loop of that run too.
    loop = place.loop if place is not None and place.loop.is_running() else asyncio.get_running_loop()
    levels = place.levels if place is not None else ()
    if given is not None:
        own = None if declines else given
        return RunScope(handler=own, offered=own, giver=None, loop=loop, levels=levels)
    above = place.scope if place is not None and inherits and not place.is_asking else None
    if above is None:
        return RunScope(handler=None, offered=None, giver=None, loop=loop, levels=levels)
    return RunScope(
        handler=None if stops else above.offered,
        offered=above.offered,
        giver=above.giver or above,
        loop=loop,
        levels=levels,
    )


def is_nested() -> bool:
    """Whether code here runs inside a tool of a run that may offer its handler."""
    place = _place.get()
    return place is not None and not place.is_asking


@dataclass(frozen=True, kw_only=True)
class _Place:
    """Where code runs: below which tool calls, and in the tool or in the handler of which run."""

    levels: tuple[LineageLevel, ...]
    scope: RunScope
    is_asking: bool
    loop: asyncio.AbstractEventLoop


_place: ContextVar[_Place | None] = ContextVar('pydantic_ai_deferred_place', default=None)


@contextmanager
def _at(place: _Place) -> Generator[None]:
    token = _place.set(place)
    try:
        yield
    finally:
        _place.reset(token)
