"""The seams that others implement."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self, TypeAlias, cast, runtime_checkable

from pydantic import AwareDatetime, BaseModel, ConfigDict

from .decision import ApprovalDecision, ApprovalMode
from .presentation import ApprovalPresentation
from .request import ApprovalContext, ApprovalRequest


class ApprovalUI(Protocol):
    """Asks a person about one request.

    A plain `choose` is called in a daemon thread of its own and may block; a coroutine function runs on the event
    loop. It may raise: the request is denied then. Only `KeyboardInterrupt` ends the run, and `RunCancelled` of
    `tool_approval.core.threads`, from a UI that has cancelled the run itself. It may be cancelled or abandoned at any
    time, because the run was cancelled, the controller's timeout passed or, in a `FirstOf`, another UI has answered;
    what it returns then is dropped, except that a denial or a stop still counts for `FirstOf`.

    It may have members beside `choose`, each of them or none: see `tool_approval.core.protocols.UIAbilities`.
    """

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision | Awaitable[ApprovalDecision]:
        """Ask, and return what was decided.

        Args:
            request: What to ask about. `request.metadata` has `position` and `batch_size`: request i of n; and
                `batch_id`, the same for all requests of a response that has several.
            mode: Always `interactive` so far.
        """
        ...  # pragma: no cover - a protocol has no body


class UIAbilities(NamedTuple):
    """What a UI can do beside `choose`: its optional members, each of which it may have without the others."""

    choose_group: Callable[..., object] | None = None
    """`choose_group(requests, *, mode)`, sync or async, asks about all requests of one group at once, and returns one
    decision for all of them, or a sequence with one for each, in order."""
    groups_responses: bool = False
    """Whether all requests of a response are one group for it, whatever group they name."""
    one_at_a_time: bool | None = None
    """`True` where only one question of the whole process may be open at a time, as in a terminal; `False` where
    questions are asked concurrently. Without it, an object with only coroutine functions is asked concurrently, and one
    whose `choose` or `choose_group` is a plain function is asked one question at a time, by whichever controller, run
    or thread. A question that the UI asks before it answers does not wait for its own."""
    asks_in_turn: bool = False
    """Whether it is asked one question at a time: as `one_at_a_time` says, else where one of its methods may block."""
    withdraw: Callable[[ApprovalRequest], object] | None = None
    """Called with a request, from the event loop's thread, when nobody waits for this answer any more. A UI that is
    asked one question at a time and blocks keeps its turn until the abandoned call returns: what is typed for an old
    question must not answer a new one."""
    may_approve: Callable[[ApprovalRequest, str], bool] | None = None
    """Whether a person may still approve a request: asked right before the call runs."""

    @classmethod
    def of(cls, ui: object) -> Self:
        """The abilities of a UI. A member of another type counts as missing."""
        choose: object = getattr(ui, 'choose', None)
        choose_group: object = getattr(ui, 'choose_group', None)
        one_at_a_time: object = getattr(ui, 'one_at_a_time', None)
        withdraw: object = getattr(ui, 'withdraw', None)
        may_approve: object = getattr(ui, 'may_approve', None)
        is_said = isinstance(one_at_a_time, bool)
        return cls(
            choose_group=choose_group if callable(choose_group) else None,
            groups_responses=getattr(ui, 'groups_responses', False) is True,
            one_at_a_time=one_at_a_time if is_said else None,
            asks_in_turn=one_at_a_time if is_said else _may_block(choose) or _may_block(choose_group),
            withdraw=withdraw if callable(withdraw) else None,
            may_approve=cast('Callable[[ApprovalRequest, str], bool]', may_approve) if callable(may_approve) else None,
        )


def _may_block(method: object) -> bool:
    return callable(method) and not inspect.iscoroutinefunction(method)


@runtime_checkable
class ApprovalAware(Protocol):
    """A tool that says itself whether a call needs approval."""

    def check_approval(self, ctx: ApprovalContext) -> ApprovalRequest | None:
        """`None`: run it. A request: ask. It is quick, does no I/O and changes nothing.

        Raises:
            PermissionError: Never allowed; its text is the reason the model is given.
        """
        ...  # pragma: no cover - a protocol has no body


Presenter: TypeAlias = Callable[[ApprovalRequest], ApprovalPresentation | Awaitable[ApprovalPresentation | None] | None]
"""Makes what is shown, only when somebody is about to be asked. A plain one is called in a thread and may do I/O. If it
raises, the request is denied: a person must not decide on less than was meant to be seen."""


class RememberedApproval(BaseModel):
    """One approval that is remembered."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    id: str
    """64 hexadecimal digits: what `lookup` finds it by, and `revoke` too."""
    tool_name: str
    """The tool."""
    kind: str
    """`exact`, or the kind of the wider option that was chosen."""
    label: str
    """For a person: the option's label, or the description of the request it was given for. Token shapes are
    replaced in it."""
    approved_by: str | None = None
    """Who approved it, where known."""
    approved_at: AwareDatetime
    """When, in UTC."""


class ApprovalStore(Protocol):
    """Keeps approvals that are to hold `always`. It must be safe to share between threads and processes."""

    key: bytes
    """The secret of its ids, at least 16 random bytes, as lasting as its contents."""
    scope: Mapping[str, str]
    """What its approvals are limited to beside what a request says, such as the project's root."""

    def get(self, approval_id: str) -> RememberedApproval | None:
        """The approval of that id, or `None`.

        Raises:
            StoreError: The contents cannot be trusted. Nothing is approved by them.
        """
        ...  # pragma: no cover - a protocol has no body

    def put(self, approval: RememberedApproval) -> None:
        """Keep an approval; one of the same id is replaced. It lasts when this returns.

        Raises:
            StoreError: It cannot be kept.
        """
        ...  # pragma: no cover - a protocol has no body

    def remove(self, approval_id: str) -> bool:
        """Forget one; whether there was one.

        Raises:
            StoreError: The contents cannot be trusted, or not be changed.
        """
        ...  # pragma: no cover - a protocol has no body

    def list_all(self) -> Sequence[RememberedApproval]:
        """All of them, oldest first.

        Raises:
            StoreError: The contents cannot be trusted.
        """
        ...  # pragma: no cover - a protocol has no body


class AuditSink(Protocol):
    """Writes down what was decided and what came of it. Called from the event loop's thread, one entry at a time."""

    def record(self, entry: Mapping[str, Any]) -> None:
        """Write one entry; it has left this process when this returns.

        Args:
            entry: A JSON object. `event` is `decision`, `outcome` or `settings`; the fields are listed in the
                documentation's page on the audit log. Secrets have been replaced.

        Raises:
            AuditError: It cannot be written. The call it is about does not run.
        """
        ...  # pragma: no cover - a protocol has no body
