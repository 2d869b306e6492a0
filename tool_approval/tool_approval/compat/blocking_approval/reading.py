"""Calls a toolset's `needs_approval`, whichever of its signatures it has, and reads whatever it says."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tool_approval.core.verdict import ApprovalResult


def call_check(check: Callable[..., object], name: str, args: Any, ctx: object, config: object) -> object:
    """What `check` returns, called with as many of the four arguments as it takes: all, the first three, or two.

    Raises:
        TypeError: It takes none of these.
        Exception: Whatever it raises.
    """
    signature = inspect.signature(check)
    attempts: tuple[tuple[tuple[object, ...], dict[str, object]], ...] = (
        ((name, args, ctx, config), {}),
        ((name, args, ctx), {'config': config}),
        ((name, args, ctx), {}),
        ((name, args), {}),
    )
    for positional, named in attempts:
        try:
            signature.bind(*positional, **named)
        except TypeError:
            continue
        return check(*positional, **named)
    raise TypeError(f'`needs_approval{signature}` must take `name, tool_args, ctx` and, if it likes, `config`')


def read_verdict(said: object) -> ApprovalResult:
    """The verdict in what `needs_approval` said.

    Args:
        said: An `ApprovalResult` of ours; an object with its predicates, such as the published package's; a bool; or
            a mapping with a `description`.

    Raises:
        TypeError: It is none of these.
    """
    match said:
        case ApprovalResult():
            return said
        case True:
            return ApprovalResult.needs_approval()
        case False:
            return ApprovalResult.pre_approved()
        case {'description': str() as description}:
            return ApprovalResult.needs_approval(description=description)
        case _:
            return _read_foreign(said)


def _read_foreign(said: object) -> ApprovalResult:
    predicates = tuple(getattr(said, name, None) for name in ('is_blocked', 'is_needs_approval', 'is_pre_approved'))
    match predicates:
        case True, False, False:
            reason: object = getattr(said, 'block_reason', None)
            return ApprovalResult.blocked(reason if isinstance(reason, str) else '')
        case False, True, False:
            return ApprovalResult.needs_approval()
        case False, False, True:
            return ApprovalResult.pre_approved()
        case _:
            raise TypeError(
                "`needs_approval` must return an `ApprovalResult`, a bool, or `{'description': ...}`, "
                f'not {type(said).__name__}'
            )
