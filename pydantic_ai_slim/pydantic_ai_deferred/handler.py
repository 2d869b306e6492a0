"""The handler: what it may be, how it is recognised, and how it is called without stopping the event loop."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ToolCallPart
from typing_extensions import TypeIs

from .threads import HandlerThreads

DepsT = TypeVar('DepsT')

DeferredToolHandler: TypeAlias = Callable[
    [RunContext[DepsT], DeferredToolRequests], DeferredToolResults | Awaitable[DeferredToolResults]
]
"""Resolves all deferred tool calls of one model response, inside the run.

It is called once per response that has deferred calls, before any of them executes, with the run's context and a
snapshot of the calls. It must answer every one of them: each `tool_call_id` of `requests.approvals` in
`results.approvals` (`True`, `False`, `ToolApproved` or `ToolDenied`), each of `requests.calls` in `results.calls`
(a value, `ModelRetry`, or on newer hosts `ToolFailed`). An exception it raises ends the run as it is.

A plain function is called in a thread of the run's own, so it may block. A coroutine function runs on the event loop of the
outermost run.
"""

AnyHandler: TypeAlias = DeferredToolHandler[Any]
"""A handler whose deps are no longer known: inside the loop layer it is only stored and called."""

Run: TypeAlias = Callable[[dict[str, Any]], Awaitable[Any]]
"""Executes a tool with the arguments it is given and returns its result."""


class ExecutionWrapper(Protocol):
    """A handler that also stands around the execution of the tools it was asked about."""

    async def around_execute(self, ctx: RunContext[Any], call: ToolCallPart, args: dict[str, Any], run: Run) -> Any:
        """Execute an approved call, or refuse to.

        Called once for each execution of an approval this handler was asked for, concurrently for calls that run in
        parallel, inside of every capability's hooks and on the event loop of the outermost run. `lineage()` ends
        with the call being executed; an agent that runs here inherits nothing, one inside the tool does.

        Args:
            ctx: The context of the tool call; `ctx.tool_call_metadata` is what the handler's results gave.
            call: The call, with the arguments as approved (`ToolApproved.override_args` where they were given).
            args: The validated arguments by parameter name, defaults filled in.
            run: `await run(args)` executes the tool and returns its result. Not calling it refuses the call.

        Returns:
            What the model is given as the tool's result.

        Raises:
            ModelRetry: The model is asked to try again; any other exception ends the run as if the tool raised it.
        """
        ...  # pragma: no cover - a protocol has no body


class Declined(DeferredToolResults):
    """The answer of `bubble_up`: nothing is resolved here."""


def bubble_up(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
    """A handler that declines everything: the calls leave the run as `DeferredToolRequests`.

    Give it to one run of an agent that has a handler, to stop and resume instead: the run's output type must then
    contain `DeferredToolRequests`. A handler of your own may also return `bubble_up(ctx, requests)` to decline a
    whole response. Nested runs are not offered a handler by a run that bubbles up.
    """
    return Declined()


def check_handler(handler: object) -> None:
    """Refuse what cannot be called, where it is given and not in the middle of a run.

    Raises:
        UserError: `handler` is neither `None` nor callable, or its `around_execute` is no coroutine function.
    """
    if handler is not None and not callable(handler):
        raise UserError(
            f'`deferred_tool_handler` must be callable as `handler(ctx, requests)`, not {type(handler).__name__}. '
            'Leave it out, or pass `None`, to use the default.'
        )
    around_execute = getattr(type(handler), 'around_execute', None)
    if around_execute is not None and not inspect.iscoroutinefunction(around_execute):
        raise UserError(
            f'`{type(handler).__name__}.around_execute` must be `async def around_execute(self, ctx, call, args, run)`.'
        )


def is_async(handler: AnyHandler) -> bool:
    """Whether calling `handler` only makes a coroutine, so that it is safe to call on the event loop."""
    target: Any = handler
    while isinstance(target, functools.partial):
        target = cast('functools.partial[Any]', target).func
    return inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(type(target).__call__)


def wraps_execution(handler: object) -> TypeIs[ExecutionWrapper]:
    """Whether `handler` is an object whose class also has `around_execute`. A mock that has any attribute has not."""
    return inspect.iscoroutinefunction(getattr(type(handler), 'around_execute', None))


async def call_handler(
    handler: AnyHandler,
    ctx: RunContext[Any],
    requests: DeferredToolRequests,
    *,
    loop: asyncio.AbstractEventLoop,
    threads: HandlerThreads,
) -> object:
    """Ask `handler` and wait for its answer, whatever it is: `results.py` judges it.

    Args:
        handler: What to ask.
        ctx: The context of the run that has the deferred calls.
        requests: The snapshot it is shown.
        loop: The event loop of the outermost run, on which awaitables are awaited.
        threads: Where a handler is called that may block.

    Raises:
        UserError: `loop` ended while the answer was awaited there, or the handler has to be called in a thread and
            the event loop can be given no answer from one.
        BaseException: Whatever the handler raises.
    """
    if is_async(handler):
        return await on_loop(loop, functools.partial(handler, ctx, requests))
    here = asyncio.get_running_loop()
    # The loop of a Temporal workflow has the method of the abstract class, whose error reads like that of a closed loop.
    if type(here).call_soon_threadsafe is asyncio.AbstractEventLoop.call_soon_threadsafe:
        raise UserError(
            'The deferred tool handler is a plain function, which is called in a thread, and the event loop here '
            f'(`{type(here).__name__}`) accepts no answers from threads, as that of a Temporal workflow. The handler '
            'was not asked, and no deferred call was executed. Make it `async def handler(ctx, requests)`; in a '
            'workflow, let it wait for an activity or a signal that brings the answer.'
        )
    answer = await threads.call(functools.partial(handler, ctx, requests))
    if inspect.isawaitable(answer):
        return await on_loop(loop, lambda: answer)
    return answer


async def on_loop(loop: asyncio.AbstractEventLoop, ask: Callable[[], Any]) -> object:
    """Await what `ask` makes, on `loop`, whichever loop this is.

    Raises:
        UserError: `loop` is not running, or ended before the answer came.
        BaseException: Whatever is raised there.
    """
    if loop is asyncio.get_running_loop():
        return await ask()
    if not loop.is_running():
        raise UserError(
            'A deferred tool call of a nested run has no one to ask: the event loop of the outermost run has ended.'
        )

    async def there() -> object:
        return await ask()

    # The task on the other loop gets a copy of this context: `call_soon_threadsafe` takes it where it is called.
    answer = asyncio.run_coroutine_threadsafe(there(), loop)
    try:
        return await asyncio.wrap_future(answer)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise UserError(
            'A deferred tool call of a nested run was not answered: the event loop of the outermost run ended first.'
        ) from None
