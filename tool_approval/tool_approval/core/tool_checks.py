"""Call a tool's approval check, such as `@requires_approval`, and convert its result to a verdict."""

from __future__ import annotations

import functools
import inspect
import logging
import sys
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from importlib import import_module
from types import MappingProxyType, MethodWrapperType, WrapperDescriptorType
from typing import Any, Final, NamedTuple, TypeVar, cast

from .conditions import received
from .decision import AllowedAnswer, read_answers
from .errors import without_text
from .offers import Offer, with_offers
from .request import ApprovalContext, ApprovalRequest, RememberOption, describe, simple_approval_request
from .verdict import ASKS, RUNS, ApprovalResult

_log = logging.getLogger('tool_approval')

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class CallBlocked(PermissionError):
    """Raised by a tool's `check_approval` to block a call, and to say what the log shows of it."""

    def __init__(self, reason: str, *, payload: Mapping[str, Any]) -> None:
        """Block the call.

        Args:
            reason: Text for the model.
            payload: Values that are logged, without secrets.
        """
        self.payload = payload
        super().__init__(reason)


class Approved(NamedTuple):
    """An approval that the called tool can read with `take_approval`."""

    args: Mapping[str, Any]
    """The arguments that were approved."""
    bound_to: Mapping[str, Any] = _NOTHING
    """Values that the tool declared for the call, as shown to the approver. The approval is bound to these values."""


# Context variables, because a tool receives only its arguments. Every caller judges and executes in one task.
judged: ContextVar[object] = ContextVar('tool_approval_judged', default=None)
"""State that a tool stores when it checks a call, and reads when it executes the call."""
approved: ContextVar[Approved | None] = ContextVar('tool_approval_approved', default=None)
"""Approval that `take_approval` returns; see `approving`."""


class CurrentCall(NamedTuple):
    """The current call of a tool, with the values by which a ledger identifies the call."""

    tool_name: str
    """Name of the tool."""
    tool_call_id: str
    """Id of the call in its run."""
    attempt: int
    """Number of the attempt, from 1. A call of unknown outcome runs again if a person or the tool's check allows it."""
    idempotency_key: str
    """Key of this attempt: the same for every executor, and different for every other attempt. Pass the key to a
    service that acts only once per key."""


executing_call: ContextVar[CurrentCall | None] = ContextVar('tool_approval_executing_call', default=None)
"""See `current_call`."""


def current_call() -> CurrentCall:
    """Return the current call of a tool that runs with a ledger. Agents nested in the tool get the same call.

    Raises:
        LookupError: The execution has no ledger.
    """
    found = executing_call.get()
    if found is None:
        raise LookupError('this execution has no ledger; pass `ledger=` to the code that runs the tool')
    return found


@contextmanager
def judging() -> Generator[None]:
    """Open a context in which a call is checked, asked about and executed. At the end, discard the check's state.

    Inside the context, the call is treated as not approved until `approving` changes that.
    """
    # Attack: a call is denied, and a direct call with the same arguments uses its check (test_file_toolset.py).
    token, token_approved = judged.set(None), approved.set(None)
    try:
        yield
    finally:
        approved.reset(token_approved)
        judged.reset(token)


@contextmanager
def approving(args: Mapping[str, Any] | None, bound_to: Mapping[str, Any] = _NOTHING) -> Generator[None]:
    """Open a context for the execution of a call.

    Args:
        args: Arguments that an approver, a mode or the memory approved; `None` if the call runs without approval.
        bound_to: Values that the tool declared for the call, and that the approval is bound to.
    """
    token = approved.set(None if args is None else Approved(args, bound_to))
    try:
        yield
    finally:
        approved.reset(token)


def take_approval(args: Mapping[str, Any], defaults: Mapping[str, Any] = _NOTHING) -> Mapping[str, Any] | None:
    """Return the values to which the approval of the current call is bound. An approval can be used only once.

    Args:
        args: Arguments that must have been approved.
        defaults: Default values for arguments that the approved call omits.

    Returns:
        Values that the tool declared, empty if the approval is bound to no values; `None` if no call with exactly these
        arguments was approved.
    """
    found = approved.get()
    approved.set(None)
    return found.bound_to if found is not None and {**defaults, **found.args} == args else None


def _has_own_check(tool: object) -> bool:
    return bool(
        getattr(tool, 'check_approval', None)
        or getattr(tool, 'needs_approval', None)
        or getattr(tool, '_requires_approval', None)
    )


_OWN_CALLS: Final = (WrapperDescriptorType, MethodWrapperType)
"""Types of Python's own `__call__`, which has no check."""


def _checked(tool: object) -> object | None:
    """Return what has the check of a tool: the tool, the function in a `partial`, or the `__call__` of its class."""
    if _has_own_check(tool):
        return tool
    if isinstance(tool, functools.partial):
        return _checked(cast('functools.partial[Any]', tool).func)
    call: object = getattr(type(tool), '__call__', None)  # noqa: B004 - a decorated function, not whether it is callable
    return call if type(call) not in _OWN_CALLS and _has_own_check(call) else None


def has_check(tool: object) -> bool:
    """Return whether the tool has a check that `ask_check` would call."""
    return _checked(tool) is not None


async def ask_check(
    tool: object,
    context: ApprovalContext,
    *,
    framework_context: object = None,
    config: Mapping[str, Any] | None = None,
) -> ApprovalResult | None:
    """Return the verdict of a tool's own approval check.

    The checks of a tool are the following. If a tool has the first two, the stricter verdict applies:

    - `check_approval(ctx)`, sync or async: returns `None` if the call needs no approval, or an
      `ApprovalRequest` if an approver must be asked. To block the call, `check_approval` raises `PermissionError`.
    - `needs_approval(name, args[, ctx[, config]])`, sync or async: returns an `ApprovalResult`, a bool,
      `{'description': ...}` to ask, or `None` to leave the decision to others. `needs_approval` gets as many of these
      arguments as it accepts, and gets `ctx` and `config` by name if its parameters have these names. If a call needs
      approval but has no description, `get_approval_description` is called with the same arguments.
    - All calls need approval if a tool without these methods has a true value as `check_approval`, `needs_approval` or
      `_requires_approval`.

    Args:
        tool: A toolset, a function or any other object.
        context: The call.
        framework_context: Passed as `ctx` to `needs_approval`.
        config: Passed as `config` to `needs_approval`.

    Returns:
        The verdict, or `None` if the tool has no check. A check that fails or returns anything else blocks the call.
    """
    try:
        tool = _checked(tool)
        if tool is None:
            return None
        check: object = getattr(tool, 'check_approval', None)
        needs: object = getattr(tool, 'needs_approval', None)
        first = _read_check(await _settled(check(context))) if callable(check) else None
        if callable(needs) and not (first is not None and first.is_blocked):
            possible = (context.tool_name, dict(context.args), framework_context, config or {})
            verdict = _read_needs(await _settled(_call(needs, possible)))
            if verdict is None or not (first is None or verdict.is_blocked or first.is_pre_approved):
                return first
            describe: object = getattr(tool, 'get_approval_description', None)
            if not verdict.is_needs_approval or verdict.description is not None or not callable(describe):
                return verdict
            return replace(verdict, description=_read_description(await _settled(_call(describe, possible))))
        if first is not None:
            return first
        marked = check or needs or getattr(tool, '_requires_approval', False)
        return ASKS if marked else None
    except Exception as error:  # noqa: BLE001 - a call that cannot be judged must not run
        # A `PermissionError` with an error number comes from the operating system, and is not a verdict.
        if isinstance(error, PermissionError) and error.errno is None:
            payload = error.payload if isinstance(error, CallBlocked) else None
            return ApprovalResult.blocked(str(error) or f'{context.tool_name!r} is not permitted.', payload)
        _log.error('The approval check of tool %r failed with %s', context.tool_name, without_text(error))
        return ApprovalResult.blocked(
            f'The approval check of {context.tool_name!r} failed ({type(error).__name__}), so the call was not run.'
        )


def from_request(request: ApprovalRequest) -> ApprovalResult:
    """Turn a request that a tool's check returned into a verdict."""
    verdict = ApprovalResult.needs_approval(
        description=request.description,
        payload=request.payload,
        presentation=request.presentation,
        reason=request.reason,
        remember_options=request.remember_options,
        bound_to=request.bound_to,
        group_id=request.group_id,
        answers=request.answers,
    )
    return replace(verdict, described_by=request.described_by)


async def _settled(said: object) -> object:
    return await cast('Awaitable[object]', said) if inspect.isawaitable(said) else said


def _read_check(said: object) -> ApprovalResult:
    match said:
        case None:
            return RUNS
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
            return ASKS
        case False:
            return RUNS
        case {'description': str() as description} if len(cast('dict[object, object]', said)) == 1:
            return ApprovalResult.needs_approval(description=description)
        case _:
            raise TypeError(
                "`needs_approval` must return an `ApprovalResult`, a bool, `{'description': ...}` or `None`"
            )


def _read_condition(said: object) -> bool:
    if not isinstance(said, bool):
        raise TypeError('`when` must return a bool')
    return said


def _read_description(said: object) -> str:
    if not isinstance(said, str):
        raise TypeError('`get_approval_description` must return a string')
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
    answers: Collection[AllowedAnswer] | None = None,
    when: Callable[[dict[str, Any]], bool] | None = None,
    any_arguments: bool = False,
    remember: Sequence[Offer] = (),
) -> Callable[[FunctionT], FunctionT]:
    """Mark a tool function whose calls need approval. The function itself is unchanged.

    Args:
        description: One line for the approver, or a function that makes the line from the arguments. If `None`, the
            description is made from the payload without excluded arguments.
        exclude_keys: Arguments that are not remembered, logged or shown in the automatic description.
        payload: Function that takes the arguments and returns the values that identify the call and are logged.
            Default: all arguments that are not excluded.
        answers: Answers that the approver may give, beside `deny`: `approve`, `edit`, `respond` (answer in the tool's
            place) and `remember`. `None` allows all but `respond`.
        when: Function that takes the arguments and returns whether the call needs approval. If it raises, or returns
            anything else, the call is blocked. `None` means that all calls need approval.
        any_arguments: Whether an approver may also approve every call of the tool, whatever the arguments, for as long
            as approvals can be remembered.
        remember: Bounded approvals to offer in questions, such as `Offer(uses=10, expires=timedelta(minutes=30))`.

    Returns:
        A decorator that attaches `check_approval(ctx)` to the function and returns the function.

    Raises:
        TypeError: The decorator is above `@staticmethod` or `@classmethod`, not below.
        ValueError: An answer is unknown.
    """
    # Copy the collection, because it may be an iterator or change later.
    excluded = {exclude_keys} if isinstance(exclude_keys, str) else frozenset(exclude_keys)
    allowed = None if answers is None else read_answers(answers)

    def check_approval(ctx: ApprovalContext) -> ApprovalRequest | ApprovalResult:
        if when is not None and not _read_condition(when(dict(received(ctx.args, ctx.used)))):
            logged = dict(ctx.args) if payload is None else payload(dict(ctx.args))
            return ApprovalResult.pre_approved({key: value for key, value in logged.items() if key not in excluded})
        text = description(dict(ctx.args)) if callable(description) else description
        if payload is None:
            made = simple_approval_request(ctx.tool_name, ctx.args, description=text, exclude_keys=excluded)
            return with_offers(
                made.changed(remember_options=options_of(ctx.tool_name), used=ctx.used), remember
            ).limited(allowed)
        own_payload = payload(dict(ctx.args))
        visible = {key: value for key, value in own_payload.items() if key not in excluded}
        made = ApprovalRequest(
            tool_name=ctx.tool_name,
            args=ctx.args,
            description=text or describe(ctx.tool_name, visible),
            payload=own_payload,
            remember_options=options_of(ctx.tool_name),
            answers=allowed,
            used=ctx.used,
        )
        return with_offers(made, remember)

    def options_of(tool_name: str) -> tuple[RememberOption, ...]:
        label = f'every call of `{tool_name}`, whatever the arguments'
        return (RememberOption(kind='tool', label=label, payload={}),) if any_arguments else ()

    def decorate(function: FunctionT) -> FunctionT:
        if isinstance(function, staticmethod | classmethod):
            # An attribute of these objects never reaches the function, so calls would run without approval.
            raise TypeError('put `@requires_approval` below `@staticmethod` and `@classmethod`')
        if 'pydantic_ai' in sys.modules:
            # Pydantic AI runs the function without approval unless the adapter guards its tools.
            import_module('tool_approval.integrations.pydantic_ai')
        setattr(function, 'check_approval', check_approval)  # noqa: B010 - the type of functions lacks this attribute
        return function

    return decorate
