"""Define the older package's requests, decisions, verdicts, errors and protocols."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from typing import Any, Literal, Protocol, TypeAlias, cast, runtime_checkable

from pydantic import BaseModel, Field, model_validator

from tool_approval.core import errors, verdict

ApprovalError = errors.ApprovalRefused
"""Base class of denials and blocks. The error is a `PermissionError`, and `tool_name` names the tool."""

ApprovalConfig: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Settings by tool name. `pre_approved: True` lets a tool run without asking. A toolset may define further keys."""

_NO_REASON = 'no reason was given'


class ApprovalRequest(BaseModel):
    """A call that the callback is asked to approve."""

    tool_name: str
    """Name by which the model calls the tool."""
    tool_args: dict[str, Any]
    """Validated argument values by parameter name."""
    description: str
    """One line that describes the call to the approver."""


class ApprovalScope(Enum):
    """Scope of an approval. Newer code uses the keyword `remember` instead."""

    ONCE = 'once'
    """This call: `remember='none'`."""
    SESSION = 'session'
    """Also approve the same call for the rest of this session, as `remember='session'` does."""


class ApprovalDecision(BaseModel):
    """Answer of the callback to a request. The answer may be created with `scope=` instead of `remember=`."""

    approved: bool = Field(strict=True)
    """Whether the tool may run. Only `True` approves. Other values, such as 1 and "yes", are errors."""
    note: str | None = None
    """Reason for a denial."""
    remember: Literal['none', 'session'] = 'none'
    """Whether the approval also covers the same call later in this session. Denials are never remembered."""

    @model_validator(mode='before')
    @classmethod
    def _read_scope(cls, values: Any) -> object:
        if not isinstance(values, dict) or 'scope' not in values:
            return cast('object', values)
        given = cast('dict[str, Any]', values)
        remember = 'session' if ApprovalScope(given['scope']) is ApprovalScope.SESSION else 'none'
        if given.get('remember', remember) != remember:
            raise ValueError('`scope` and `remember` contradict each other; give one of them')
        return {key: value for key, value in given.items() if key != 'scope'} | {'remember': remember}

    @property
    def scope(self) -> ApprovalScope:
        """Older spelling of `remember`."""
        return ApprovalScope.SESSION if self.remember == 'session' else ApprovalScope.ONCE


ApprovalCallback: TypeAlias = Callable[[ApprovalRequest], ApprovalDecision | Awaitable[ApprovalDecision]]
"""Callback that decides a request. A plain function blocks the event loop, and an async function is awaited."""


class ApprovalResult(verdict.ApprovalResult):
    """Value that `needs_approval` returns: `tool_approval.ApprovalResult` with the constructor of the older package."""

    def __init__(
        self,
        status: Literal['blocked', 'pre_approved', 'needs_approval'],
        block_reason: str | None = None,
        *,
        reason: str | None = None,
        **details: Any,
    ) -> None:
        """Check that the status and the reason fit together.

        Args:
            status: `blocked`, `pre_approved` or `needs_approval`.
            block_reason: Reason why the call is blocked; required for `blocked`, and not allowed otherwise.
            reason: Newer name of `block_reason`. In addition, `reason` may explain why approval is needed.
            **details: Further fields of `tool_approval.ApprovalResult`.

        Raises:
            ValueError: The status is unknown, or a reason is missing or does not fit the status.
        """
        if status not in ('blocked', 'pre_approved', 'needs_approval'):
            raise ValueError(f'unknown status {status!r}; use one of blocked, pre_approved, needs_approval')
        if status != 'blocked' and block_reason is not None:
            raise ValueError(f"`block_reason` requires the status 'blocked', not {status!r}")
        if status == 'blocked' and block_reason is None and reason is None:
            raise ValueError('a blocked result needs a `block_reason`')
        super().__init__(status=status, reason=reason if block_reason is None else block_reason, **details)

    def __hash__(self) -> int:
        # A result can be a key, as before; other fields of a verdict may not be hashable.
        return hash((self.status, self.reason))

    @property
    def block_reason(self) -> str | None:
        """Reason why the call is blocked, or `None`."""
        return self.reason if self.is_blocked else None


class ApprovalDenied(errors.ApprovalDenied):
    """The callback denied the call. The tool has not run."""

    def __init__(self, tool_name: str, decision: ApprovalDecision) -> None:
        self.decision = decision
        super().__init__(tool_name, decision.note or _NO_REASON)


class ApprovalBlocked(errors.ApprovalBlocked):
    """The toolset or the configuration forbids the call. The callback was not called."""

    def __init__(self, tool_name: str, reason: str | None) -> None:
        super().__init__(tool_name, reason or _NO_REASON)


@runtime_checkable
class SupportsNeedsApproval(Protocol):
    """A toolset that judges its own calls."""

    def needs_approval(self, *args: Any, **kwargs: Any) -> Any:
        """Judge a call.

        The method gets the tool's name, argument values by parameter name, the `RunContext` with its `deps`, and the
        wrapper's `config`. The method may omit the parameter `config`, or both `ctx` and `config`. If the method raises
        an exception, the run ends with that exception, and the tool does not run.

        Returns:
            An `ApprovalResult`, or an object with the same three predicates. `True` asks for approval, and `False` does
            not. `{'description': ...}` asks for approval and describes the call. Awaitables of these values also work.
        """
        ...  # pragma: no cover - a protocol has no body


@runtime_checkable
class SupportsApprovalDescription(Protocol):
    """A toolset that describes its calls to the approver."""

    def get_approval_description(self, name: str, tool_args: dict[str, Any], ctx: Any) -> str:
        """Describe the call to the approver in one line. The method is called only if the callback is called.

        Args:
            name: The tool's name.
            tool_args: Argument values by parameter name.
            ctx: The `RunContext`.
        """
        ...  # pragma: no cover - a protocol has no body


def ensure_decision(answer: object) -> ApprovalDecision:
    """Return the callback's answer if it is a decision.

    Raises:
        TypeError: The answer is not a decision.
    """
    if not isinstance(answer, ApprovalDecision):
        raise TypeError(f'the approval callback must return an `ApprovalDecision`, not {type(answer).__name__}')
    return answer


def needs_approval_from_config(name: str, config: ApprovalConfig | None) -> ApprovalResult:
    """Return the verdict of `config`: pre-approved if the tool's entry says so, else approval is needed."""
    entry = (config or {}).get(name) or {}
    return ApprovalResult.pre_approved() if entry.get('pre_approved') else ApprovalResult.needs_approval()
