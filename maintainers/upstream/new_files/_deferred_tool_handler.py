"""Check a `deferred_tool_handler`, ask it, and combine its answer with those of the capabilities."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TypeAlias

from . import _utils
from ._deferred import DeferredToolRequests, DeferredToolResults
from ._deferred_results import check_results, name_calls
from ._deferred_snapshot import ValidatedArgs, take_snapshot
from ._run_context import AgentDepsT, RunContext
from .exceptions import UserError

DeferredToolHandler: TypeAlias = Callable[
    [RunContext[AgentDepsT], DeferredToolRequests], DeferredToolResults | Awaitable[DeferredToolResults]
]
"""Resolves all deferred tool calls of one model response, inside the run.

Called once per response that has deferred calls which no capability has resolved, before any of them executes, with the
run's context and a copy of the calls in the order of the response. The handler must answer every call: each
`tool_call_id` of `requests.approvals` in `results.approvals`, and each of `requests.calls` in `results.calls`.
Otherwise the run fails with a `UserError` before any of them executes. If the handler raises an exception, the run ends
with it.

A function that isn't async is called in a thread, so it may block.
"""


def check_deferred_tool_handler(handler: object) -> None:
    """Reject an invalid handler when it is given, not in the middle of a run.

    Raises:
        UserError: `handler` is neither `None` nor callable.
    """
    if handler is not None and not callable(handler):
        raise UserError(
            f'`deferred_tool_handler` must be a callable that takes `(ctx, requests)`, not {type(handler).__name__}. '
            'To use the default, omit `deferred_tool_handler` or pass `None`.'
        )


async def ask_deferred_tool_handler(
    handler: DeferredToolHandler[AgentDepsT] | None,
    ctx: RunContext[AgentDepsT],
    requests: DeferredToolRequests,
    *,
    answered: DeferredToolResults | None,
    validated: Mapping[str, ValidatedArgs],
) -> DeferredToolResults | None:
    """Ask the run's handler about the calls that the capabilities did not resolve.

    Args:
        handler: The handler, or `None` to leave the calls as they are.
        ctx: The context of the run.
        requests: All deferred calls of the response.
        answered: The capabilities' results for some or all of the calls.
        validated: The validated arguments by `tool_call_id`.

    Returns:
        The results of the capabilities and the handler together. With a handler, every call has a result.

    Raises:
        UserError: The handler did not resolve exactly the calls it was asked about.
    """
    remaining = requests if answered is None else requests.remaining(answered)
    if handler is None or remaining is None:
        return answered
    snapshot = take_snapshot(remaining, messages=ctx.messages, validated=validated)
    results = check_results(remaining, await _call(handler, ctx, snapshot))
    if answered is None:
        return results
    answered.update(results)
    return answered


async def _call(
    handler: DeferredToolHandler[AgentDepsT], ctx: RunContext[AgentDepsT], requests: DeferredToolRequests
) -> object:
    ask: Callable[[], object] = partial(handler, ctx, requests)
    if _utils.is_async_callable(handler):
        answer = ask()
    else:
        # People take minutes to answer: a run that is cancelled meanwhile does not wait for the thread.
        with _utils.abandon_threads_on_cancel():
            answer = await _utils.run_in_executor(ask)
    return await _utils.await_maybe(answer)


def deferred_again_error(requests: DeferredToolRequests) -> UserError:
    """Return the error for approved calls that would leave a run whose output type does not allow it."""
    return UserError(
        'A tool call deferred again after the deferred tool handler, or a capability, had approved it: '
        f'{name_calls([*requests.approvals, *requests.calls])}. The handler is not called twice, and effects of the '
        'approved calls of this response are not undone. Check `ctx.tool_call_approved` in the tool, or add '
        '`DeferredToolRequests` to the output types so that the run can end with these calls.'
    )
