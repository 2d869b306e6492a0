"""Read every shape of check that a tool may have as one verdict; `@requires_approval` makes one of them."""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar, cast

from .request import ApprovalContext, ApprovalRequest, describe, simple_approval_request
from .verdict import ApprovalResult

_log = logging.getLogger('tool_approval')

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Approved(NamedTuple):
    """An approval that the tool of the call can take."""

    args: Mapping[str, Any]
    """The arguments that were approved."""
    bound_to: Mapping[str, Any] = _NOTHING
    """What the tool declared of the call, where the approval is bound to it: an approver was shown just this."""


# Context variables, since the tool itself gets only the arguments; every caller judges and executes in one task.
judged: ContextVar[object] = ContextVar('tool_approval_judged', default=None)
"""What a tool keeps from the check of a call to its execution."""
approved: ContextVar[Approved | None] = ContextVar('tool_approval_approved', default=None)
"""What `take_approval` finds; see `approving`."""


class CurrentCall(NamedTuple):
    """The call that executes, as a ledger knows it."""

    tool_name: str
    """The tool."""
    tool_call_id: str
    """The call's id in its run."""
    attempt: int
    """1, unless a person or the tool's own check had an unknown call run again."""
    idempotency_key: str
    """The same for this attempt whoever executes it, and another for every other. Pass it to a peer that does what it
    is asked to once for each key."""


executing_call: ContextVar[CurrentCall | None] = ContextVar('tool_approval_executing_call', default=None)
"""See `current_call`."""


def current_call() -> CurrentCall:
    """The call that executes, in a tool whose executions a ledger keeps. Agents that the tool runs are inside it.

    Raises:
        LookupError: No ledger keeps this execution.
    """
    found = executing_call.get()
    if found is None:
        raise LookupError('no ledger keeps this execution; pass `ledger=` to what runs the tool')
    return found


@contextmanager
def judging() -> Generator[None]:
    """Enclose the check of one call, the question and the execution: afterwards nothing is left of the check.

    Inside, the call counts as unasked until `approving` says otherwise.
    """
    # Attack: a call is denied, and a direct call with the same arguments uses its check (test_file_toolset.py).
    token = judged.set(None)
    try:
        with approving(None):
            yield
    finally:
        judged.reset(token)


@contextmanager
def approving(args: Mapping[str, Any] | None, bound_to: Mapping[str, Any] = _NOTHING) -> Generator[None]:
    """Enclose the execution of a call.

    Args:
        args: The arguments that an approver, a mode or memory approved; `None` where a rule lets the call run unasked.
        bound_to: What the tool declared of the call, where the approval is bound to it.
    """
    token = approved.set(None if args is None else Approved(args, bound_to))
    try:
        yield
    finally:
        approved.reset(token)


def take_approval(args: Mapping[str, Any], defaults: Mapping[str, Any] = _NOTHING) -> Mapping[str, Any] | None:
    """What the approval of the call that executes is bound to, beside its arguments. An approval can be taken once.

    Args:
        args: The arguments that it has to be of.
        defaults: What arguments are that the call may leave out.

    Returns:
        What the tool declared, empty where the approval is bound to none of it; `None` where no call with just these
        arguments was approved.
    """
    found = approved.get()
    approved.set(None)
    return found.bound_to if found is not None and {**defaults, **found.args} == args else None


def has_check(tool: object) -> bool:
    """Whether `ask_check` finds anything to ask."""
    check: object = getattr(tool, 'check_approval', None) or getattr(tool, 'needs_approval', None)
    return bool(check or getattr(tool, '_requires_approval', None))


async def ask_check(
    tool: object,
    context: ApprovalContext,
    *,
    framework_context: object = None,
    config: Mapping[str, Any] | None = None,
) -> ApprovalResult | None:
    """What `tool` says of a call.

    It may have, in this order of preference:

    - `check_approval(ctx)`, sync or async: `None` lets the call run, an `ApprovalRequest` asks, `PermissionError`
      blocks.
    - `needs_approval(name, args[, ctx[, config]])`, sync or async: an `ApprovalResult`, a bool,
      `{'description': ...}`, which asks, or `None`, which leaves it to others. It is passed as many arguments as it
      takes, `ctx` and `config` also where parameters of these names are elsewhere. Where it asks without a description,
      and there is a `get_approval_description` with the same parameters, this makes one.
    - any of the two as a plain true value, or a true `_requires_approval`: it asks.

    Args:
        tool: A toolset, a function or any other object.
        context: The call.
        framework_context: Passed as `ctx` to `needs_approval`.
        config: Passed as `config` to `needs_approval`.

    Returns:
        The verdict, or `None` if the tool has no such logic. Logic that fails, or says what nobody can read, blocks:
        what cannot be judged does not run.
    """
    try:
        check: object = getattr(tool, 'check_approval', None)
        if callable(check):
            return _read_check(await _settled(check(context)))
        needs: object = getattr(tool, 'needs_approval', None)
        if callable(needs):
            possible = (context.tool_name, dict(context.args), framework_context, config or {})
            verdict = _read_needs(await _settled(_call(needs, possible)))
            describe: object = getattr(tool, 'get_approval_description', None)
            if (
                verdict is None
                or not verdict.is_needs_approval
                or verdict.description is not None
                or not callable(describe)
            ):
                return verdict
            return replace(verdict, description=_read_description(await _settled(_call(describe, possible))))
        marked = check or needs or getattr(tool, '_requires_approval', False)
        return ApprovalResult.needs_approval() if marked else None
    except Exception as error:  # noqa: BLE001 - whatever happens in it, a tool that cannot be judged does not run
        # With an error number it comes from the operating system, and is no verdict.
        if isinstance(error, PermissionError) and error.errno is None:
            return ApprovalResult.blocked(str(error) or f'{context.tool_name!r} is not permitted.')
        # Not its text: it may quote arguments, and those may be secret.
        _log.error('The approval check of tool %r failed with %s', context.tool_name, type(error).__name__)
        return ApprovalResult.blocked(
            f'The approval check of {context.tool_name!r} failed ({type(error).__name__}), so the call was not run.'
        )


def from_request(request: ApprovalRequest) -> ApprovalResult:
    """The verdict that a tool expresses by returning `request`."""
    verdict = ApprovalResult.needs_approval(
        description=request.description,
        payload=request.payload,
        presentation=request.presentation,
        reason=request.reason,
        remember_options=request.remember_options,
        bound_to=request.bound_to,
        group_id=request.group_id,
    )
    return replace(verdict, described_by=request.described_by)


async def _settled(said: object) -> object:
    return await cast('Awaitable[object]', said) if inspect.isawaitable(said) else said


def _read_check(said: object) -> ApprovalResult:
    match said:
        case None:
            return ApprovalResult.pre_approved()
        case ApprovalRequest():
            return from_request(said)
        case ApprovalResult():
            return said
        case _:
            raise TypeError('`check_approval` must return `None` or an `ApprovalRequest`')


def _read_needs(said: object) -> ApprovalResult | None:
    match said:
        case None:
            return None
        case ApprovalResult():
            return said
        case True:
            return ApprovalResult.needs_approval()
        case False:
            return ApprovalResult.pre_approved()
        case {'description': str() as description} if len(cast('dict[object, object]', said)) == 1:
            return ApprovalResult.needs_approval(description=description)
        case _:
            raise TypeError(
                "`needs_approval` must return an `ApprovalResult`, a bool, `{'description': ...}` or `None`"
            )


def _read_description(said: object) -> str:
    if not isinstance(said, str):
        raise TypeError('`get_approval_description` must return a text')
    return said


def _call(logic: Callable[..., object], possible: tuple[str, dict[str, Any], object, Mapping[str, Any]]) -> object:
    by_name: dict[str, object] = {'ctx': possible[2], 'config': possible[3]}
    parameters = inspect.signature(logic).parameters.values()
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return logic(*possible)
    positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    passed = [by_name.get(each.name, value) for each, value in zip(positional, possible, strict=False)]
    named = {
        each.name: by_name[each.name] for each in parameters if each.kind is each.KEYWORD_ONLY and each.name in by_name
    }
    return logic(*passed, **named)


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
        text = description(dict(ctx.args)) if callable(description) else description
        if payload is None:
            return simple_approval_request(ctx.tool_name, ctx.args, description=text, exclude_keys=excluded)
        own_payload = payload(dict(ctx.args))
        visible = {key: value for key, value in own_payload.items() if key not in excluded}
        return ApprovalRequest(
            tool_name=ctx.tool_name,
            args=ctx.args,
            description=text or describe(ctx.tool_name, visible),
            payload=own_payload,
        )

    def decorate(function: FunctionT) -> FunctionT:
        if isinstance(function, staticmethod | classmethod):
            # What is attached to these never reaches the function that is called: it would run unasked.
            raise TypeError('put `@requires_approval` below `@staticmethod` and `@classmethod`')
        if 'pydantic_ai' in sys.modules:
            # It runs the function unasked, unless the adapter guards its tools; the core does not import it otherwise.
            import_module('tool_approval.integrations.pydantic_ai')
        setattr(function, 'check_approval', check_approval)  # noqa: B010 - a function has no such attribute of its own
        return function

    return decorate
