"""Keep the state of a run, ask its handler, and determine what nested runs inherit."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic_ai import DeferredToolRequests, RunContext
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import ToolDefinition

from .handler import AnyHandler, HandlerThreads, bubble_up, call_handler, is_async
from .plan import RunPlan, setting
from .results import name_calls
from .snapshot import ValidatedArgs, take_snapshot
from .streaming import DeclaredTools
from .terminal import terminal_to_handler

T = TypeVar('T')


class Lifetime:
    """Lifetime of a run or a tool call. The end of the lifetime cancels the futures given to `watch`. Thread-safe."""

    def __init__(self) -> None:
        """Start the lifetime."""
        self._lock = threading.Lock()
        self._watchers: dict[asyncio.Future[Any], asyncio.AbstractEventLoop] = {}
        self.is_over = False

    def end(self) -> None:
        """End the lifetime, and cancel each future that watches it. A future is cancelled on its own event loop."""
        with self._lock:
            self.is_over = True
            watchers, self._watchers = self._watchers, {}
        for future, loop in watchers.items():
            with contextlib.suppress(RuntimeError):  # a loop that is closed has nothing left to cancel
                loop.call_soon_threadsafe(future.cancel)

    def watch(self, future: asyncio.Future[Any]) -> Callable[[], object]:
        """When the lifetime ends, cancel `future`, which must belong to the running event loop.

        Returns:
            A function that forgets `future`, to be called when the future is done.
        """
        with self._lock:
            if not self.is_over:
                self._watchers[future] = asyncio.get_running_loop()
                return lambda: self._watchers.pop(future, None)
        future.cancel()
        return lambda: None


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


def lineage() -> tuple[LineageLevel, ...]:
    """Return the chain of agent runs and tool calls above the current code, outermost first.

    In a handler, the chain contains only the levels above the run that made the calls. In a tool, and in a handler's
    `around_execute`, the last level is the current tool call. The chain is empty in a handler of the outermost run, and
    outside of any run. Sync tools and handlers see the chain in their threads too.
    """
    place = _place.get()
    return place.levels if place is not None else ()


@dataclass(eq=False, kw_only=True)
class Run:
    """State of one run, shared by its capabilities and nested runs. Only the current response's calls are kept."""

    plan: RunPlan
    """Settings fixed before the run started."""
    handler: AnyHandler | None
    """Handler for this run's own deferred calls, or `None`."""
    offered: AnyHandler | None
    """Handler for nested runs that have no handler of their own, or `None` if there is no handler to inherit."""
    giver: Run | None
    """The run from which `handler` and `offered` were inherited, or `None` if they were not inherited."""
    loop: asyncio.AbstractEventLoop
    """Event loop of the outermost run."""
    levels: tuple[LineageLevel, ...]
    """Agent runs and tool calls in which this run is nested, outermost first."""
    required_lifetimes: tuple[Lifetime, ...]
    """Lifetimes that must not end before this run's handler has answered."""
    threads: HandlerThreads | None
    """Threads for a handler that may block, or `None` if the handler is async or missing."""
    lifetime: Lifetime = field(default_factory=Lifetime)
    """Lifetime of this run."""
    declared: DeclaredTools = field(default_factory=DeclaredTools)
    """Tools of the current step that are declared as deferred."""
    validated: dict[str, ValidatedArgs] = field(default_factory=dict[str, ValidatedArgs])
    """Validated arguments by `tool_call_id`."""
    asked: set[str] = field(default_factory=set[str])
    """Ids of the calls that the handler was asked to approve."""
    is_resuming: bool = True
    """Whether the run has made no model request yet. If so, every approval was given before the run started."""
    executing: dict[str, ToolCallPart] = field(default_factory=dict[str, ToolCallPart])
    """Calls being executed, by `tool_call_id`. Calls that were approved, but not by our handler, are left out."""
    deferred_again: list[ToolCallPart] = field(default_factory=list[ToolCallPart])
    """Calls that were deferred again after their approval."""
    tool_errors: list[UserError] = field(default_factory=list[UserError])
    """`UserError`s that tools raised, kept to distinguish these errors from errors of the host."""

    @classmethod
    def start(cls, plan: RunPlan) -> Run:
        """Create the state of a run that starts now. The state depends on the plan and on the outer runs."""
        place = _place.get()
        loop = here = asyncio.get_running_loop()
        levels: tuple[LineageLevel, ...] = ()
        required: tuple[Lifetime, ...] = ()
        if place is not None:
            levels = place.levels
            # A task can outlive the run it was started in, and the loop of that run.
            loop = place.run.loop if place.run.loop.is_running() else here
            # A run on another loop was started by a sync tool: only that tool call waits for it.
            required = () if loop is here else (place.run.lifetime, place.call_lifetime)
        giver = None
        if plan.handler is not None:
            handler = offered = None if plan.handler is bubble_up else plan.handler
        elif place is None or place.is_asking or not plan.inherits:
            handler = offered = None
        else:
            giver = place.run.giver or place.run
            required = (giver.lifetime, *required)
            offered = place.run.offered
            # A run whose output allows deferred calls stops and resumes: it passes the handler on without asking it.
            handler = None if plan.output_allows_deferred else offered
        return cls(
            plan=plan,
            handler=handler,
            offered=offered,
            giver=giver,
            loop=loop,
            levels=levels,
            required_lifetimes=required,
            threads=None if handler is None or is_async(handler) else HandlerThreads(),
        )

    def end(self) -> None:
        """Mark the run as over and end its threads, so that tasks that outlive the run cannot ask its handler."""
        self.lifetime.end()
        if self.threads is not None:
            self.threads.end()

    def forget_response(self) -> None:
        """Clear the state of the last response before the model is asked again, because ids may repeat."""
        self.is_resuming = False
        self.validated.clear()
        self.asked.clear()
        self.deferred_again.clear()
        self.tool_errors.clear()

    def note_arguments(self, call: ToolCallPart, args: Mapping[str, Any], definition: ToolDefinition) -> None:
        """Keep the validated arguments of `call` for the snapshot."""
        self.validated[call.tool_call_id] = ValidatedArgs(call, args, definition.parameters_json_schema)

    async def ask(self, ctx: RunContext[Any], requests: DeferredToolRequests) -> object:
        """Show the handler a snapshot of `requests` and return its answer.

        Raises:
            UserError: The tool call that started this run, or the run from which the handler was inherited, ended
                before the handler answered. A handler that is still being asked is cancelled.
        """
        snapshot = take_snapshot(requests, messages=ctx.messages, validated=self.validated)
        if not self.required_lifetimes:
            return await self._question(ctx, snapshot)
        self._check_lifetimes(requests)
        asking = asyncio.ensure_future(self._question(ctx, snapshot))
        unwatch = [lifetime.watch(asking) for lifetime in self.required_lifetimes]
        try:
            answer = await asking
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or not task.cancelling():
                self._check_lifetimes(requests)
            raise
        finally:
            for stop_watching in unwatch:
                stop_watching()
        self._check_lifetimes(requests)
        return answer

    async def _question(self, ctx: RunContext[Any], snapshot: DeferredToolRequests) -> object:
        assert self.handler is not None, 'the run has no handler that can answer'
        # Runs started meanwhile inherit nothing: an agent that the handler consults must not ask the handler.
        token = _place.set(_Place(self, self._above(), is_asking=True))
        try:
            with terminal_to_handler():
                return await call_handler(self.handler, ctx, snapshot, loop=self.loop, threads=self.threads)
        finally:
            _place.reset(token)

    def _check_lifetimes(self, requests: DeferredToolRequests) -> None:
        if any(lifetime.is_over for lifetime in self.required_lifetimes):
            calls = name_calls([*requests.approvals, *requests.calls])
            raise UserError(
                f'The handler cannot be asked about {calls}: it was inherited from a run that has ended, or the tool '
                f'call that started this nested run has ended. Not executed: {calls}. Wait for nested runs inside the '
                'tool that starts them, or give them a `deferred_tool_handler` of their own.'
            )

    async def inside_tool(self, ctx: RunContext[Any], call: ToolCallPart, execution: Awaitable[T]) -> T:
        """Await `execution`, which executes `call`. Runs that the tool starts are nested in this run."""
        place = _Place(self, self._above(), ctx, call)
        token = _place.set(place)
        try:
            return await execution
        except BaseException:
            # Cancelled or timed out: a sync tool's thread goes on, and must not act on a late answer.
            place.call_lifetime.end()
            raise
        finally:
            _place.reset(token)

    def _above(self) -> _Place | None:
        # A tool that calls other tools of its own run (code mode) is above them.
        place = _place.get()
        return place if place is not None and place.run is self else None


def is_nested() -> bool:
    """Whether a run that starts now would be nested in another run and could inherit that run's handler."""
    place = _place.get()
    return place is not None and not place.is_asking


@contextmanager
def around_tool() -> Generator[Callable[[], AbstractContextManager[None]]]:
    """Inside the context, let a run inherit a handler only if the tool itself starts that run.

    Yields:
        A function that returns the context in which the tool is executed.
    """
    place = _place.get()
    assert place is not None, 'the context must be entered inside `Run.inside_tool`'
    with setting(_place, _Place(place.run, place, is_asking=True)):
        yield lambda: setting(_place, place)


class _Place:
    """Place of the current code: its run, the tool calls above it, and whether it is in a handler or in a tool.

    Every tool call creates a `_Place`, so rarely needed fields are computed on first use.
    """

    __slots__ = ('_above', '_call', '_ctx', '_levels', '_lifetime', 'is_asking', 'run')

    def __init__(
        self,
        run: Run,
        above: _Place | None,
        ctx: RunContext[Any] | None = None,
        call: ToolCallPart | None = None,
        *,
        is_asking: bool = False,
    ) -> None:
        self.run = run
        self.is_asking = is_asking
        self._above = above
        self._ctx = ctx
        self._call = call
        self._levels: tuple[LineageLevel, ...] | None = None
        self._lifetime: Lifetime | None = None

    @property
    def levels(self) -> tuple[LineageLevel, ...]:
        if self._levels is None:
            self._levels = self._above.levels if self._above is not None else self.run.levels
            if self._ctx is not None and self._call is not None:
                agent = self._ctx.agent
                level = LineageLevel(
                    agent_name=agent.name if agent is not None else None,
                    run_id=self._ctx.run_id or '',
                    tool_name=self._call.tool_name,
                    tool_call_id=self._call.tool_call_id,
                )
                self._levels = (*self._levels, level)
        return self._levels

    @property
    def call_lifetime(self) -> Lifetime:
        """Lifetime of the current tool call."""
        if self._lifetime is None:
            self._lifetime = Lifetime()
        return self._lifetime


_place: ContextVar[_Place | None] = ContextVar('pydantic_ai_deferred_place', default=None)
