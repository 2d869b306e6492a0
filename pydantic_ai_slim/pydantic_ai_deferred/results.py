"""Check, before anything executes, that a handler answers every call with the right kind of answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from pydantic_ai import DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ToolCallPart, ToolReturn

from .snapshot import copy_containers

_MISSING = object()


def check_results(requests: DeferredToolRequests, answer: object) -> DeferredToolResults:
    """Return a copy of `answer`, which must resolve all of `requests` and nothing else.

    Args:
        requests: The host's own requests, of which the handler got a copy.
        answer: The handler's return value.

    Returns:
        A copy with the same decisions, so that the handler cannot change them later.

    Raises:
        UserError: The answer is of the wrong type, is incomplete, or names other calls. No deferred call has executed.
            The message names each tool and `tool_call_id`.
    """
    if not isinstance(answer, DeferredToolResults):
        raise UserError(
            f'The deferred tool handler returned {_kind(answer)} instead of `DeferredToolResults`. '
            f'{_not_executed(requests)} '
            'Return one result for every call, or `bubble_up(ctx, requests)` to end the run with all calls unanswered.'
        )
    problems = list(_problems(requests, answer))
    if problems:
        raise UserError(
            'The deferred tool handler did not resolve the deferred tool calls of this response.\n'
            f'{_not_executed(requests)}\n' + '\n'.join(f'- {problem}' for problem in problems)
        )
    return replace(
        answer,
        approvals={tool_call_id: _detach(approval) for tool_call_id, approval in answer.approvals.items()},
        calls={tool_call_id: _detach(result) for tool_call_id, result in answer.calls.items()},
        metadata=cast('dict[str, dict[str, Any]]', copy_containers(answer.metadata)),
    )


def carry_metadata(requests: DeferredToolRequests, results: DeferredToolResults) -> DeferredToolResults:
    """Copy the metadata of the deferrals into the results, so that tools see it as `ctx.tool_call_metadata`.

    Without this function, a tool sees only what the handler puts into `results.metadata`. For each answered call, this
    function adds the metadata that the call was deferred with, and keeps the keys that the handler has set.

    Args:
        requests: The requests given to the handler.
        results: The handler's answer, in which `metadata` is changed in place.

    Returns:
        `results`, so that a handler can end with `return carry_metadata(requests, results)`.
    """
    for tool_call_id, metadata in requests.metadata.items():
        if tool_call_id in results.approvals or tool_call_id in results.calls:
            results.metadata[tool_call_id] = {**metadata, **results.metadata.get(tool_call_id, {})}
    return results


def _problems(requests: DeferredToolRequests, results: DeferredToolResults) -> Iterator[str]:
    given: dict[str, Mapping[object, object]] = {}
    # `answered_by` exists only on pydantic-ai-slim 2.x and newer.
    for field in ('approvals', 'calls', 'metadata', 'answered_by'):
        entries = getattr(results, field, {})
        if isinstance(entries, (dict, Mapping)):  # the check for `dict` is much faster
            given[field] = cast('Mapping[object, object]', entries)
        else:
            given[field] = {}
            yield f'`results.{field}` is {_kind(entries)}: give a dictionary keyed by `tool_call_id`.'
    for call in requests.approvals:
        if problem := _approval_problem(call, given['approvals'].get(call.tool_call_id, _MISSING)):
            yield f'{_name(call)} {problem}'
        if call.tool_call_id in given['calls']:
            yield f'{_name(call)} awaits approval: answer it in `results.approvals`, not in `results.calls`.'
    for call in requests.calls:
        if problem := _call_problem(call, given['calls'].get(call.tool_call_id, _MISSING)):
            yield f'{_name(call)} is an external call and {problem}'
        if call.tool_call_id in given['approvals']:
            yield f'{_name(call)} is an external call: give its result in `results.calls`, not in `results.approvals`.'
    known = {call.tool_call_id for call in (*requests.approvals, *requests.calls)}
    for field, entries in given.items():
        yield from _unknown(field, entries, known)
    for tool_call_id, value in given['metadata'].items():
        if not isinstance(value, dict):
            yield f'`results.metadata[{tool_call_id!r}]` is {_kind(value)}: give a dictionary.'


def _unknown(field: str, entries: Mapping[object, object], known: set[str]) -> Iterator[str]:
    for tool_call_id in entries:
        if tool_call_id not in known:
            yield f'`results.{field}` names {tool_call_id!r}, which is not a deferred call of this response: remove it.'


def _approval_problem(call: ToolCallPart, approval: object) -> str | None:
    match approval:
        case bool() | ToolApproved(override_args=None):
            return None
        case ToolApproved(override_args=override_args):
            if isinstance(override_args, dict):
                return None
            return f'was approved, but `override_args` is {_kind(override_args)}: give a dictionary, or `None`.'
        case ToolDenied(message=message):
            if isinstance(cast(object, message), str):
                return None
            return f'was denied, but the message is {_kind(message)}: give a string.'
        case _ if approval is _MISSING:
            return f'awaits approval and has no result: add `results.approvals[{call.tool_call_id!r}]`.'
        case _:
            return f'was answered with {_kind(approval)}: give `True`, `False`, `ToolApproved` or `ToolDenied`.'


def _call_problem(call: ToolCallPart, result: object) -> str | None:
    if result is _MISSING:
        return f'has no result: add `results.calls[{call.tool_call_id!r}]`.'
    if isinstance(result, ToolApproved | ToolDenied):
        return 'cannot be approved or denied: give its result, or a `ModelRetry` that says why it has none.'
    return None


def _detach(result: Any) -> Any:
    match result:
        case bool():
            return result
        case ToolApproved():
            return replace(result, override_args=copy_containers(result.override_args))
        case ToolDenied():
            return replace(result)
        case ToolReturn():
            returned = cast('ToolReturn[Any]', result)
            return replace(returned, return_value=copy_containers(returned.return_value))
        case _:
            return copy_containers(result)


def name_calls(calls: list[ToolCallPart]) -> str:
    """Describe calls by tool name and call id, for an error message."""
    return ', '.join(_name(call) for call in calls)


def _name(call: ToolCallPart) -> str:
    return f'{call.tool_name!r} (tool_call_id {call.tool_call_id!r})'


def _not_executed(requests: DeferredToolRequests) -> str:
    # Names deferred calls only: ordinary tools of the response may have run.
    return f'Not executed: {name_calls([*requests.approvals, *requests.calls])}.'


def _kind(value: object) -> str:
    return 'nothing (`None`)' if value is None else f'a value of type `{type(value).__name__}`'
