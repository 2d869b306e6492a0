"""Call a handler without blocking the event loop, and check that it answers every call."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping
from copy import copy, deepcopy
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar, cast

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext, ToolApproved, ToolDenied
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelResponse, ToolCallPart

DepsT = TypeVar('DepsT')

HandlerFunc: TypeAlias = Callable[
    [RunContext[DepsT], DeferredToolRequests], DeferredToolResults | Awaitable[DeferredToolResults]
]
"""Resolves all deferred tool calls of one model response, inside the run.

The function is called once for each response with deferred calls, before any of these calls executes. It gets the run's
context and copies of the calls, and must answer every call. The dictionary `results.approvals` maps a `tool_call_id` to
`True`, `False`, `ToolApproved` or `ToolDenied`; `results.calls` maps it to a value, a `ModelRetry` or a `ToolFailed`.
An exception from the function ends the run.

A plain function is called in a thread of its own, so it may block. A coroutine function is called on the event loop of
the run that has the handler.
"""


_DEFAULT_ADVICE = 'To use the default, omit `deferred_tool_handler` or pass `None`.'
_ADVICE = {
    'ApprovalController': 'To let a controller decide, pass `Approvals(controller)` of `tool_approval`.',
    'DeferredToolResults': 'Pass a function that returns the results.',
}
"""Advice by the name of the type that was given."""


def check_handler(handler: object) -> None:
    """Reject an invalid handler when it is given, not in the middle of a run.

    Raises:
        UserError: `handler` cannot be called, or is a capability, which may do more than answer calls.
    """
    if isinstance(handler, AbstractCapability):
        name = type(cast('object', handler)).__name__
        raise UserError(
            f'`{name}` is a capability, and as a function it would guard nothing: give it to `capabilities`, or as '
            '`deferred_tool_handler`, without `DeferredToolHandler` around it.'
        )
    if not callable(handler):
        raise UserError(
            f'`deferred_tool_handler` must be a callable that takes `(ctx, requests)`, not {type(handler).__name__}. '
            f'{_ADVICE.get(type(handler).__name__, _DEFAULT_ADVICE)}'
        )


async def call_handler(handler: HandlerFunc[Any], ctx: RunContext[Any], requests: DeferredToolRequests) -> object:
    """Return the unchecked answer of `handler`. A handler that is not a coroutine function is called in a thread.

    Raises:
        UserError: The handler needs a thread, but the running event loop accepts no results from threads.
        BaseException: Any exception that the handler raises.
    """
    call = functools.partial(handler, ctx, requests)
    answer = call() if _is_async(handler) else await _in_thread(call)
    return await answer if inspect.isawaitable(answer) else answer


def _is_async(handler: Callable[..., Any]) -> bool:
    while isinstance(handler, functools.partial):
        handler = cast('functools.partial[Any]', handler).func
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__)


async def _in_thread(call: Callable[[], object]) -> object:
    # A thread of its own, and a daemon: in a pool, handlers that wait for people would use up the threads that sync
    # tools need, and at exit the interpreter joins a pool's threads, so Ctrl-C at a question would not end the program.
    loop = asyncio.get_running_loop()
    # A Temporal workflow's loop inherits this method from the abstract class; its error looks like a closed loop's.
    if type(loop).call_soon_threadsafe is asyncio.AbstractEventLoop.call_soon_threadsafe:
        raise UserError(
            'The deferred tool handler is a plain function and runs in a thread, but the event loop '
            f'`{type(loop).__name__}` accepts no results from threads. Temporal workflows use such a loop. '
            'The handler was not called, and no deferred call was executed. Use `async def handler(ctx, requests)`; in '
            'a workflow, let the handler wait for an activity or a signal that brings the answer.'
        )
    answer: asyncio.Future[object] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: object, error: BaseException | None) -> None:
        if answer.done():  # the run was cancelled, and does not wait for the answer
            return
        if isinstance(error, StopIteration):  # a future cannot carry it; a coroutine turns it into the same error
            cause, error = error, RuntimeError('the deferred tool handler raised StopIteration')
            error.__cause__ = cause
        if error is None:
            answer.set_result(result)
        else:
            answer.set_exception(error)

    def run() -> None:
        result: object = None
        error: BaseException | None = None
        try:
            result = context.run(call)
        except BaseException as e:  # noqa: BLE001 - however the handler ends, the waiting run must learn of it
            error = e
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile, so no run waits
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name='deferred-tool-handler', daemon=True).start()
    return await answer


def copy_requests(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolRequests:
    """Copy the calls, so that a handler cannot change what executes.

    Returns:
        The calls in the order of the model's response, with the arguments as the model gave them. (The host's own lists
        begin with the calls whose tools raised an exception to defer them.)
    """
    response = next((each for each in reversed(ctx.messages) if isinstance(each, ModelResponse)), None)
    made = response.tool_calls if response is not None else ()
    positions = {call.tool_call_id: position for position, call in enumerate(made)}

    def copied(calls: list[ToolCallPart]) -> list[ToolCallPart]:
        ordered = sorted(calls, key=lambda call: positions.get(call.tool_call_id, len(positions)))
        return [_copied(call) for call in ordered]

    # `replace`, because a new object would lose the host's private record of which calls are questions.
    return replace(
        requests,
        calls=copied(requests.calls),
        approvals=copied(requests.approvals),
        metadata={key: dict(value) for key, value in requests.metadata.items()},
    )


def _copied(call: ToolCallPart) -> ToolCallPart:
    own = copy(call)  # in a fifth of the time of `replace`
    own.args = deepcopy(call.args)
    return own


# Older hosts have no `answered_by`.
_FIELDS = ('approvals', 'calls', 'metadata', 'answered_by')


def check_results(requests: DeferredToolRequests, answer: object) -> DeferredToolResults:
    """Return `answer` if it resolves all of `requests`. Answers to other calls are ignored, by the host as well.

    Raises:
        UserError: The answer is of the wrong type or incomplete. No deferred call of the response has executed. The
            message names each tool and `tool_call_id` that has no result, or a result that is none.
    """
    everything = [*requests.approvals, *requests.calls]
    if not isinstance(answer, DeferredToolResults):
        kind = 'nothing (`None`)' if answer is None else f'a value of type `{type(answer).__name__}`'
        problem = f'returned {kind} instead of `DeferredToolResults`'
    elif wrong_fields := [name for name in _FIELDS if not isinstance(getattr(answer, name, {}), (dict, Mapping))]:
        problem = f'must return dictionaries keyed by `tool_call_id`, but set {", ".join(wrong_fields)} to other values'
    elif missing := [call for call in requests.approvals if call.tool_call_id not in answer.approvals] + [
        call for call in requests.calls if call.tool_call_id not in answer.calls
    ]:
        everything = missing
        problem = 'returned no result for every call: approvals belong in `results.approvals`, and results of external '
        problem += 'calls in `results.calls`'
    elif wrong := [call for call in requests.approvals if not _is_approval(answer.approvals[call.tool_call_id])] + [
        call for call in requests.calls if isinstance(answer.calls[call.tool_call_id], ToolApproved | ToolDenied)
    ]:
        everything = wrong
        problem = 'returned results of the wrong type: `results.approvals` takes `True`, `False`, `ToolApproved` or '
        problem += '`ToolDenied`, and `results.calls` takes a value for the model, not an approval'
    else:
        return answer
    names = ', '.join(f'{call.tool_name!r} (tool_call_id {call.tool_call_id!r})' for call in everything)
    raise UserError(f'The deferred tool handler {problem}: {names}. No deferred call of the response was executed.')


def _is_approval(given: object) -> bool:
    if isinstance(given, ToolApproved):
        return isinstance(cast('object', given.override_args), dict | None)
    return isinstance(given, bool | ToolDenied)
