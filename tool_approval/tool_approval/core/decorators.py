"""`@requires_approval`: a function says itself that somebody has to consent."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Any, TypeVar

from .request import ApprovalContext, ApprovalRequest, describe, simple_approval_request

FunctionT = TypeVar('FunctionT', bound=Callable[..., Any])


def requires_approval(
    *,
    description: str | Callable[[dict[str, Any]], str] | None = None,
    exclude_keys: Collection[str] = (),
    payload: Callable[[dict[str, Any]], Mapping[str, Any]] | None = None,
) -> Callable[[FunctionT], FunctionT]:
    """Mark a tool function as one whose calls need approval. The function stays as it is, and callable.

    Args:
        description: One line for a person, or what makes it from the arguments. Made from the payload, without what is
            excluded, if `None`.
        exclude_keys: Arguments that are neither remembered, nor shown in the automatic description, nor written down.
        payload: Makes what counts as the same call, and is written down, in place of all arguments without the
            excluded.

    Returns:
        A decorator that attaches `check_approval(ctx)` to the function and returns it.

    Raises:
        TypeError: By the decorator, of a `staticmethod` or `classmethod` object: put it below these.
    """
    # Once: it must not matter whether the collection can be read again, or is changed later.
    excluded = {exclude_keys} if isinstance(exclude_keys, str) else frozenset(exclude_keys)

    def check_approval(ctx: ApprovalContext) -> ApprovalRequest:
        told = description(dict(ctx.args)) if callable(description) else description
        if payload is None:
            return simple_approval_request(ctx.tool_name, ctx.args, description=told, exclude_keys=excluded)
        own_payload = payload(dict(ctx.args))
        visible = {key: value for key, value in own_payload.items() if key not in excluded}
        return ApprovalRequest(
            tool_name=ctx.tool_name,
            args=ctx.args,
            description=told or describe(ctx.tool_name, visible),
            payload=own_payload,
        )

    def decorate(function: FunctionT) -> FunctionT:
        if isinstance(function, staticmethod | classmethod):
            # What is attached to these never reaches the function that is called: it would run unasked.
            raise TypeError('put `@requires_approval` below `@staticmethod` and `@classmethod`')
        if 'pydantic_ai' in sys.modules:
            # It runs the function unasked, unless the adapter guards its tools; the core does not import it otherwise.
            import_module('tool_approval.integrations.pydantic_ai')
        function.check_approval = check_approval  # type: ignore[attr-defined] # pyright: ignore[reportFunctionMemberAccess]
        return function

    return decorate
