"""One run: the state its capabilities share, the question to its handler, and what nested runs inherit."""

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
    """Of a run, or of a tool call: it ends once, and cancels what watches it. Safe to share between threads."""

    def __init__(self) -> None:
        """Start it."""
        self._lock = threading.Lock()
        self._watchers: dict[asyncio.Future[Any], asyncio.AbstractEventLoop] = {}
        self.is_over = False

    def end(self) -> None:
        """End it, and cancel what watches it, each on its own event loop."""
        with self._lock:
            self.is_over = True
            watchers, self._watchers = self._watchers, {}
        for future, loop in watchers.items():
            with contextlib.suppress(RuntimeError):  # a loop that is closed has nothing left to cancel
                loop.call_soon_threadsafe(future.cancel)

    def watch(self, future: asyncio.Future[Any]) -> Callable[[], object]:
        """Have `future` cancelled at the end; it must belong to the running event loop.

        Returns:
            What to call when it is done, so that nothing is kept.
        """
        with self._lock:
            if not self.is_over:
                self._watchers[future] = asyncio.get_running_loop()
                return lambda: self._watchers.pop(future, None)
        future.cancel()
        return lambda: None


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

    In a handler: what is above the run it is asked for, empty for the outermost run. In a tool, and in a handler's
    `around_execute`: the same, ending with that tool call. Outside of any run: empty. It reaches sync tools and
    handlers in their threads.
    """
    place = _place.get()
    return place.levels if place is not None else ()


@dataclass(eq=False, kw_only=True)
class Run:
    """One run, for its capabilities and the runs nested in it. Calls are kept for the current response only."""

    plan: RunPlan
    """What was settled before it started."""
    handler: AnyHandler | None
    """Asked for this run's own deferred calls, or `None`."""
    offered: AnyHandler | None
    """Inherited by nested runs that have no handler of their own, or `None`."""
    giver: Run | None
    """The run `handler` and `offered` belong to where they were inherited, or `None` for this one."""
    loop: asyncio.AbstractEventLoop
    """The event loop of the outermost run."""
    levels: tuple[LineageLevel, ...]
    """What is above this run."""
    required_lifetimes: tuple[Lifetime, ...]
    """What has to last for this run's handler to be asked."""
    threads: HandlerThreads | None
    """Where the handler is called if it may block; an async one is not."""
    lifetime: Lifetime = field(default_factory=Lifetime)
    """Of the run."""
    declared: DeclaredTools = field(default_factory=DeclaredTools)
    """The declared tools of the current step."""
    validated: dict[str, ValidatedArgs] = field(default_factory=dict[str, ValidatedArgs])
    """The validated arguments of calls."""
    asked: set[str] = field(default_factory=set[str])
    """The approvals the handler was asked for."""
    is_resuming: bool = True
    """Whether the model was not asked yet: approved calls were approved before the run began."""
    executing: dict[str, ToolCallPart] = field(default_factory=dict[str, ToolCallPart])
    """The calls that execute now, unless something else than our handler approved them."""
    deferred_again: list[ToolCallPart] = field(default_factory=list[ToolCallPart])
    """The calls that deferred again after they were approved."""
    tool_errors: list[UserError] = field(default_factory=list[UserError])
    """The `UserError`s of tools, which are not the host's."""

    @classmethod
    def start(cls, plan: RunPlan) -> Run:
        """The run that starts here and now, by its plan and by what is above it."""
        place = _place.get()
        loop = here = asyncio.get_running_loop()
        levels: tuple[LineageLevel, ...] = ()
        required: tuple[Lifetime, ...] = ()
        if place is not None:
            levels = place.levels
            # A task can outlive the run it was started in, and the loop of that run too.
            loop = place.run.loop if place.run.loop.is_running() else here
            # A run on a loop of its own is a sync tool's: only that tool call waits for it.
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
            # One that may end with its calls was started to stop and resume: it passes the handler on without asking.
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
        """What outlives the run may not ask its handler."""
        self.lifetime.end()
        if self.threads is not None:
            self.threads.end()

    def forget_response(self) -> None:
        """Before the model is asked for the next response: ids may repeat in it."""
        self.is_resuming = False
        self.validated.clear()
        self.asked.clear()
        self.deferred_again.clear()
        self.tool_errors.clear()

    def note_arguments(self, call: ToolCallPart, args: Mapping[str, Any], definition: ToolDefinition) -> None:
        """Keep what the tool would get for `call`, for the snapshot."""
        self.validated[call.tool_call_id] = ValidatedArgs(call, args, definition.parameters_json_schema)

    async def ask(self, ctx: RunContext[Any], requests: DeferredToolRequests) -> object:
        """Show the handler a snapshot of `requests` and wait for its answer, for as long as this run may ask it.

        Raises:
            UserError: The run that gave the handler, or the tool call this run works for, is over: before the
                question, while it waits (it is cancelled then), or when the answer arrives.
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
        assert self.handler is not None, 'a run without a handler asks nothing'
        # Nothing is inherited meanwhile, so that an agent the handler consults does not ask the handler itself.
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
                f'Nobody can be asked about {calls}: the handler was inherited from a run that has ended, or the tool '
                f'call that started this nested run has. Not executed: {calls}. Wait for nested runs inside the tool '
                'that starts them, or give them a `deferred_tool_handler` of their own.'
            )

    async def inside_tool(self, ctx: RunContext[Any], call: ToolCallPart, execution: Awaitable[T]) -> T:
        """Execute the tool of `call`: runs started in it are nested in this one."""
        place = _Place(self, self._above(), ctx, call)
        token = _place.set(place)
        try:
            return await execution
        except BaseException:
            # It was cancelled or timed out: a sync tool's thread goes on, and must not act on a late answer.
            place.call_lifetime.end()
            raise
        finally:
            _place.reset(token)

    def _above(self) -> _Place | None:
        # A tool that calls other tools of its own run (code mode) is above them.
        place = _place.get()
        return place if place is not None and place.run is self else None


def is_nested() -> bool:
    """Whether code here runs inside a tool of a run that may offer its handler."""
    place = _place.get()
    return place is not None and not place.is_asking


@contextmanager
def around_tool() -> Generator[Callable[[], AbstractContextManager[None]]]:
    """In a tool call, while the handler is around it: nothing is inherited, but in the tool itself.

    Yields:
        What to enter for the tool, where it is executed.
    """
    place = _place.get()
    assert place is not None, 'only entered inside of `Run.inside_tool`'
    with setting(_place, _Place(place.run, place, is_asking=True)):
        yield lambda: setting(_place, place)


class _Place:
    """Where code runs: below which tool calls, and in the tool or in the handler of which run.

    One is made for every tool call, so what few ask for is made when it is asked for.
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
        """Of the tool call."""
        if self._lifetime is None:
            self._lifetime = Lifetime()
        return self._lifetime


_place: ContextVar[_Place | None] = ContextVar('pydantic_ai_deferred_place', default=None)
