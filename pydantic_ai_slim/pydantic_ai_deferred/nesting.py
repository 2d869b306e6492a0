"""Know the run and the tool call that the current code is in, and let nested runs ask the handler above them."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable, Generator, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import UserError
from pydantic_ai.toolsets import ToolsetTool

from .handler import HandlerFunc, call_handler


@dataclass(frozen=True, kw_only=True)
class LineageLevel:
    """One level of a lineage: an agent run and a tool call in it. The call runs the next level or the current code."""

    agent_name: str | None
    """Name of the agent, or `None` if the agent has no name."""
    run_id: str
    """Id of the agent's run."""
    tool_name: str
    """Name of the tool being executed."""
    tool_call_id: str
    """Id of the tool call. The id can repeat across runs; use `(run_id, tool_call_id)` as a key."""


@dataclass(eq=False, kw_only=True)
class Run:
    """State of one run that has a handler. Only the current response is known, because ids may repeat."""

    handler: HandlerFunc[Any]
    """The handler of the run."""
    offer: Callable[[HandlerFunc[Any]], AbstractCapability[Any]] | None
    """Makes the capability of a nested run from a handler that asks this run, or `None` if nested runs get none."""
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    """Event loop of the run."""
    levels: tuple[LineageLevel, ...] = field(default_factory=lambda: lineage())
    """Runs and tool calls in which this run is nested, outermost first."""
    ended: Future[None] = field(default_factory=Future[None])
    """Done when the run has ended."""
    is_streaming: bool = False
    """Whether a response is being streamed."""
    has_output: bool = False
    """Whether the response being streamed has given the final output. From then on, deferred calls are skipped."""
    tools: dict[str, ToolsetTool[Any]] = field(default_factory=dict[str, ToolsetTool[Any]])
    """Tools of the step whose response is being streamed, by name; the host's own dictionary."""
    declared: dict[str, ToolsetTool[Any]] = field(default_factory=dict[str, ToolsetTool[Any]])
    """Those of `tools` that are declared as deferred, as they were declared."""


class Place:
    """Place of the current code: inside a tool call of a run, or inside a handler.

    Every tool call creates a `Place`, so what is rarely needed is made when it is first used.
    """

    __slots__ = ('_above', '_ctx', '_ended', '_name', 'is_over', 'run')

    def __init__(
        self,
        above: tuple[LineageLevel, ...],
        run: Run | None = None,
        ctx: RunContext[Any] | None = None,
        name: str = '',
    ) -> None:
        """Enter a place.

        Args:
            above: Runs and tool calls above the call, or above the handler.
            run: The run whose tool is executed, or `None` in a handler: an agent that the handler consults must not ask
                the handler.
            ctx: The context of the call.
            name: The tool.
        """
        self.run = run
        self.is_over = False
        self._above, self._ctx, self._name = above, ctx, name
        self._ended: Future[None] | None = None

    @property
    def levels(self) -> tuple[LineageLevel, ...]:
        """Runs and tool calls above the current code, outermost first."""
        if (ctx := self._ctx) is None:
            return self._above
        level = LineageLevel(
            agent_name=ctx.agent.name if ctx.agent is not None else None,
            run_id=ctx.run_id or '',
            tool_name=ctx.tool_name or self._name,
            tool_call_id=ctx.tool_call_id or '',
        )
        return (*self._above, level)

    @property
    def ended(self) -> Future[None]:
        """Done when the tool call has ended. A nested run in the thread of a sync tool waits for it."""
        if self._ended is None:
            self._ended = Future[None]()
            if self.is_over:
                self._ended.set_result(None)
        return self._ended

    def end(self) -> None:
        """End the tool call."""
        self.is_over = True
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    async def ask(self, ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        """Ask the handler of `run`, on the event loop of `run`. This is the handler of the runs nested in the call."""
        run = self.run
        assert run is not None, 'a place in a handler offers no handler'
        question = functools.partial(_on_loop, run.loop, lambda: call_handler(run.handler, ctx, requests))
        return await _while_running([run.ended, *self.needed()], requests, question)

    def needed(self) -> list[Future[None]]:
        """Return what must not end before a run that is nested in this call is answered."""
        # A run on another event loop was started by a sync tool: only that call waits for the run.
        return [] if self.run is None or self.run.loop is asyncio.get_running_loop() else [self.ended]


_place: ContextVar[Place | None] = ContextVar('pydantic_ai_deferred_place', default=None)


def lineage() -> tuple[LineageLevel, ...]:
    """Return the chain of agent runs and tool calls above the current code, outermost first.

    Only runs that have a handler are in the chain. In a handler, the chain has the levels above the run that made the
    calls. In a tool, the last level is the current tool call. The chain is empty in a handler of the outermost run, and
    outside of any run. Sync tools and handlers see the chain in their threads too.
    """
    place = _place.get()
    return place.levels if place is not None else ()


@contextlib.contextmanager
def continued(levels: Sequence[LineageLevel]) -> Generator[None]:
    """Start runs below these levels, which are in another process or have ended. The runs inherit no handler."""
    token = _place.set(Place(tuple(levels)))
    try:
        yield
    finally:
        _place.reset(token)


def offered_capability() -> AbstractCapability[Any] | None:
    """Return the capability that a run that starts now inherits if it has no handler of its own, or `None`."""
    place = _place.get()
    if place is None or place.run is None or place.run.offer is None:
        return None
    # At any depth, the run that has the handler is asked itself.
    handler = place.run.handler
    return place.run.offer(handler if isinstance(getattr(handler, '__self__', None), Place) else place.ask)


async def execute(run: Run, ctx: RunContext[Any], name: str, make: Callable[[], Awaitable[Any]]) -> Any:
    """Await `make()`, which executes a call of the tool `name` in `run`. Runs that it starts are nested in the call."""
    above = _place.get()
    # A tool that calls other tools of its own run (code mode) is above them.
    place = Place(above.levels if above is not None and above.run is run else run.levels, run, ctx, name)
    token = _place.set(place)
    try:
        return await make()
    finally:
        place.end()
        _place.reset(token)


async def ask_handler(handler: HandlerFunc[Any], ctx: RunContext[Any], requests: DeferredToolRequests) -> Any:
    """Call the handler of a run. Runs that the handler itself starts inherit no handler.

    Raises:
        UserError: The tool call that started the run, or the run from which the handler was inherited, ended before the
            handler answered. A handler that is still being asked is cancelled.
    """
    above = _place.get()
    token = _place.set(Place(lineage()))
    try:
        needed = above.needed() if above is not None else []
        if not needed:
            return await call_handler(handler, ctx, requests)
        return await _while_running(needed, requests, functools.partial(call_handler, handler, ctx, requests))
    finally:
        _place.reset(token)


async def _while_running(
    needed: Sequence[Future[None]], requests: DeferredToolRequests, ask: Callable[[], Awaitable[Any]]
) -> Any:
    here = asyncio.get_running_loop()

    def check() -> None:
        if any(each.done() for each in needed):
            names = ', '.join(repr(call.tool_name) for call in (*requests.approvals, *requests.calls))
            raise UserError(
                f'The handler cannot be asked about {names}: it was inherited from a run that has ended, or the tool '
                'call that started this nested run has ended. No deferred call was executed. Wait for nested runs '
                'inside the tool that starts them, or give them a `deferred_tool_handler` of their own.'
            )

    def cancel(_: object) -> None:
        with contextlib.suppress(RuntimeError):  # a loop that is closed has nothing left to cancel
            here.call_soon_threadsafe(question.cancel)

    check()
    question = asyncio.ensure_future(ask())
    for each in needed:
        each.add_done_callback(cancel)
    try:
        answer = await question
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or not task.cancelling():
            check()
        raise
    check()
    return answer


async def _on_loop(loop: asyncio.AbstractEventLoop, make: Callable[[], Awaitable[Any]]) -> Any:
    if loop is asyncio.get_running_loop():
        return await make()

    async def there() -> Any:
        return await make()

    # `call_soon_threadsafe` copies the context it is called in, so the task on the other loop sees this one.
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(there(), loop))
