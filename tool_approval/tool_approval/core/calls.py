"""A tool call on its way through the gate: as the framework delivered it, judged, allowed, refused or answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from .arguments import CallArguments
from .binding import Binding
from .canonical import canonical_json, copied
from .decision import ApprovalDecision
from .request import ApprovalRequest, CallFacts
from .verdict import ApprovalResult

T = TypeVar('T')


def denied_because(note: str) -> str:
    """Return the text for the model that a person denied a call, with the person's note."""
    return f'The approver denied this call, so it was not run: {note}'


NO_ARGUMENTS = CallArguments(shown={}, is_altered=False, bound={})
"""Placeholder for arguments that cannot be read."""


def cannot_be_judged(tool_name: str, problem: str) -> str:
    """Return the reason for refusing a call whose arguments cannot be read."""
    return f'The arguments of {tool_name!r} are invalid ({problem}), so the call was not run.'


def _cannot_be_changed(args: Mapping[str, Any]) -> Call:
    raise ValueError('the arguments of this call cannot be changed')


class Call(NamedTuple):
    """A tool call as the framework delivered it. The gate reads only these fields from the framework."""

    tool_name: str
    """Name by which the model calls the tool."""
    arguments: CallArguments
    """The arguments in two forms: as the model gave them, and after validation."""
    values: Mapping[str, Any]
    """Values passed to the tool, by parameter name."""
    given: Mapping[str, Any] | None = None
    """Values for the framework to call the tool with, if they differ from `values`."""
    facts: CallFacts = CallFacts()
    """Facts about the call: run, session, agent, toolset and so on."""
    metadata: Mapping[str, Any] | None = None
    """Metadata for checks and UIs. If `None`, the metadata contains only `facts`."""
    tool_call_id: str | None = None
    """Id of the call, or `None` if the framework has none."""
    checks: Sequence[object] = ()
    """Objects that may have approval checks: toolsets and the function. The strictest verdict counts."""
    framework_context: object = None
    """Value passed to the checks that accept a framework context."""
    judged_as: str | None = None
    """Name that the policy and the checks use if a toolset has renamed the tool. If `None`, they use `tool_name`."""
    bound_to: Mapping[str, Any] = MappingProxyType({})
    """Values from the adapter. An approval is bound to them, and to the arguments and the tool's declared values."""
    is_enclosed: bool = False
    """Whether the code that wraps the execution records the outcome and reports changed arguments to the model."""
    args_schema: Mapping[str, Any] | None = None
    """JSON schema of the arguments as the model sees it; `None` if unknown."""
    reread: Callable[[Mapping[str, Any]], Call] = _cannot_be_changed
    """Return the call with an approver's arguments in place of the model's. Raises `ValueError`, with the reason, if
    the arguments do not fit the tool."""


class Prepared(NamedTuple):
    """A call with its verdict."""

    call: Call
    """The call."""
    verdict: ApprovalResult
    """Whether the call is blocked, pre-approved or needs approval."""
    request: ApprovalRequest
    """The approval request for the call, used by the approver, the memory and the log."""


class Refused(NamedTuple):
    """A call that does not run."""

    reason: str
    """Reason for the refusal, as reported to the caller or the model."""
    is_block: bool = False
    """Whether policy refused the call without asking."""
    decision: ApprovalDecision | None = None
    """Decision that denied the call; `None` if the call was refused without a decision."""
    is_note: bool = False
    """Whether the reason is an approver's note, which need not say that the call was denied."""

    @property
    def told(self) -> str:
        """Text for the model: that the call was not run, and why."""
        return denied_because(self.reason) if self.is_note else self.reason


class Allowed(NamedTuple):
    """A call that may run, with the arguments to run it with."""

    call: Call
    """The call, which contains the arguments to run it with."""
    request: ApprovalRequest | None
    """Request under which the outcome is recorded; `None` for a call that runs unasked and is not logged."""
    binding: Binding | None
    """Binding of the approval; `None` if code outside this package approved the call."""
    decision: ApprovalDecision | None = None
    """Decision that has just approved the call, if any."""

    @property
    def was_asked(self) -> bool:
        """Whether an approver, a mode or the memory approved the call. False if only a rule approved the call."""
        # Without a binding, other code approved the call.
        return self.request is not None and (self.binding is None or not self.binding.by_policy)


class Responded(NamedTuple):
    """A call that does not run, because the approver answered in the tool's place."""

    response: Any
    """The tool's result, a JSON value."""
    decision: ApprovalDecision
    """Decision that contains the response."""

    @property
    def text(self) -> str:
        """The response as text: a string as it is, and any other value as JSON."""
        return self.response if isinstance(self.response, str) else canonical_json(self.response)


GateResult: TypeAlias = Refused | Allowed | Responded
"""Result of the gate for a call that has not run yet."""


class ExecutedCall(NamedTuple):
    """The values by which a ledger identifies a call."""

    run_id: str
    """Id of the run, or of a conversation of several runs."""
    tool_name: str
    """Name of the tool."""
    tool_call_id: str
    """Id of the call in its run or conversation."""
    args: Mapping[str, Any]
    """Arguments for the tool's check that finds out whether the call already ran."""
    identity: Sequence[Any]
    """Values that together identify the call, and that have a canonical form."""

    @classmethod
    def of(cls, call: Call, run_id: str, occurrence: int = 1) -> ExecutedCall:
        """Read a call.

        Args:
            call: Call with an id.
            run_id: Id of the run or conversation.
            occurrence: Number of calls with the same id so far, including this call. Models reuse ids.
        """
        lineage = [[each.agent_name, each.tool_name, each.tool_call_id] for each in call.facts.lineage]
        received = call.arguments.bound.get('received', call.arguments.shown)
        call_id = str(call.tool_call_id)
        identity = [run_id, lineage, call_id, occurrence, call.tool_name, received]
        return cls(run_id, call.tool_name, call_id, call.arguments.shown, copied(identity))


class Kept(NamedTuple):
    """An execution that a ledger has recorded, and that is not repeated."""

    state: Literal['done', 'failed', 'refused', 'unknown']
    """How the execution ended."""
    value: Any = None
    """Result of the call as a JSON value."""
    text: str | None = None
    """Text for the model in place of a result."""
    by: str | None = None
    """Name of the person who settled an unknown outcome."""


class ExecutionLedger(Protocol):
    """An object that executes each call at most once, such as `tool_approval.durable.Ledger`."""

    async def execute(
        self,
        call: ExecutedCall,
        run: Callable[[], Awaitable[T]],
        *,
        check: Callable[[], str | None],
        ask: Callable[[str], Awaitable[bool | None]] | None,
        dump: Callable[[T], object] = ...,
        text_of: Callable[[Exception], str] = ...,
        not_begun: tuple[type[Exception], ...] = (),
        tried_again: Callable[[str], None] = ...,
    ) -> T | Kept:
        """Execute the call, or return its recorded execution; see `Ledger.execute`."""
        ...  # pragma: no cover - a protocol has no body
