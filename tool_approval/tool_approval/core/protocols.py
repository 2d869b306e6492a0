"""Define the protocols that UIs, tools, stores and audit sinks implement."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self, TypeAlias, TypeVar, cast, runtime_checkable

from pydantic import AwareDatetime, BaseModel, ConfigDict

from .bounds import Left
from .decision import ApprovalDecision, ApprovalMode
from .errors import check_methods, check_type, without_text
from .presentation import ApprovalPresentation
from .request import ApprovalContext, ApprovalRequest

T = TypeVar('T')

_log = logging.getLogger('tool_approval')


class ApprovalUI(Protocol):
    """Asks an approver about one request.

    A synchronous `choose` may block, because it runs in its own daemon thread. A coroutine function runs on the event
    loop. If `choose` raises, the request is denied. Two exceptions end the run instead: `KeyboardInterrupt`, and
    `RunCancelled` of `tool_approval.core.threads`, which a UI raises after it has cancelled the run.

    `choose` may be cancelled or abandoned at any time: when the run is cancelled, when the controller's timeout passes,
    or when another UI of a `FirstOf` answers. The result of such a call is dropped, except that `FirstOf` still applies
    a result that is a denial or a stop.

    Optional members are listed in `tool_approval.core.protocols.UIAbilities`; a UI may have any of them.
    """

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision | Awaitable[ApprovalDecision]:
        """Ask, and return the decision.

        Args:
            request: The request to decide. `request.metadata` has `position` and `batch_size` (request i of n). If the
                response has several requests, the metadata also has the `batch_id` that these requests share.
            mode: Currently always `interactive`.
        """
        ...  # pragma: no cover - a protocol has no body


def check_ui(ui: object) -> None:
    """Reject what cannot ask; see `check_methods`.

    Raises:
        TypeError: `ui` has no `choose`, or is a class.
    """
    check_methods('ui', ui, 'an object with a method `choose(request, *, mode)`', 'choose')


class UIAbilities(NamedTuple):
    """Optional members of a UI. Each member works without the other members."""

    choose_group: Callable[..., object] | None = None
    """`choose_group(requests, *, mode)`, sync or async: ask about all requests of a group at once. The method returns
    one decision for all requests, or a sequence with one decision per request, in order."""
    groups_responses: bool = False
    """Whether the UI asks about all requests of a response as one group, even if their group ids differ."""
    one_at_a_time: bool | None = None
    """`True` if the whole process may have only one open question at a time, as in a terminal; `False` if several
    questions may be open at once. If this member is missing, a UI that has only coroutine functions may get several
    questions at once. A UI with a synchronous `choose` or `choose_group` then gets one question at a time, across
    all controllers, runs and threads. A question asked within another question does not wait for the outer question."""
    asks_in_turn: bool = False
    """Whether the UI is asked one question at a time. Equal to `one_at_a_time`, if the UI has that member;
    otherwise, true if `choose` or `choose_group` may block."""
    withdraw: Callable[[ApprovalRequest], object] | None = None
    """Called with a request, from the event loop's thread, when the answer to the request is no longer awaited. If the
    UI may block and is asked one question at a time, the next question waits until `choose` or `choose_group` has
    returned for this request. Otherwise, input typed for this request could answer the next question."""
    may_approve: Callable[[ApprovalRequest, Sequence[str]], bool] | None = None
    """`may_approve(request, approvers)`: whether these people together may still approve a request. Called right before
    the call runs, and before a remembered approval is used."""
    asks: Callable[[ApprovalRequest], Sequence[str]] | None = None
    """Names of the people and groups that are asked about a request, for the log; called right before the question."""
    heeds_approvers: bool = False
    """Whether the UI lets only the people approve a call whom each rule of `request.approvers` lists, as many of them
    as the rules say, and names them in `decided_by`. Without this member, a UI is not asked about a call that has such
    rules, and the call is denied."""
    only_reads: bool = False
    """Whether the UI asks no question, and only returns answers to questions that were asked and logged before."""

    @classmethod
    def of(cls, ui: object) -> Self:
        """Read the optional members of a UI. A member of the wrong type is treated as missing."""
        choose: object = getattr(ui, 'choose', None)
        choose_group: object = getattr(ui, 'choose_group', None)
        one_at_a_time: object = getattr(ui, 'one_at_a_time', None)
        withdraw: object = getattr(ui, 'withdraw', None)
        may_approve: object = getattr(ui, 'may_approve', None)
        asks: object = getattr(ui, 'asks', None)
        is_said = isinstance(one_at_a_time, bool)
        return cls(
            choose_group=choose_group if callable(choose_group) else None,
            groups_responses=getattr(ui, 'groups_responses', False) is True,
            one_at_a_time=one_at_a_time if is_said else None,
            asks_in_turn=one_at_a_time if is_said else _may_block(choose) or _may_block(choose_group),
            withdraw=withdraw if callable(withdraw) else None,
            may_approve=_or_else(may_approve, False),
            asks=_or_else(asks, ()),
            heeds_approvers=getattr(ui, 'heeds_approvers', False) is True,
            only_reads=getattr(ui, 'only_reads', False) is True,
        )


def _or_else(method: object, otherwise: T) -> Callable[..., T] | None:
    """Return a function that calls a method of a UI, and returns `otherwise` if the method fails."""

    def call(*args: object) -> T:
        try:
            return cast('Callable[..., T]', method)(*args)
        except Exception as error:  # noqa: BLE001 - an error in a UI must not end the run
            _log.error('%s failed with %s', getattr(method, '__qualname__', 'a method of the UI'), without_text(error))
            return otherwise

    return call if callable(method) else None


def _may_block(method: object) -> bool:
    return callable(method) and not inspect.iscoroutinefunction(method)


@runtime_checkable
class ApprovalAware(Protocol):
    """A tool with its own approval check."""

    def check_approval(self, ctx: ApprovalContext) -> ApprovalRequest | None:
        """Return `None` if the call needs no approval, or a request if an approver must be asked.

        This method must be fast, without I/O and without side effects.

        Raises:
            PermissionError: The call is never allowed; the model reads the error's text as the reason.
        """
        ...  # pragma: no cover - a protocol has no body


Presenter: TypeAlias = Callable[[ApprovalRequest], ApprovalPresentation | Awaitable[ApprovalPresentation | None] | None]
"""Makes the content to show for a request, right before the approver is asked. A plain function is called in a thread
and may do I/O. If a presenter raises, the request is denied, because the approver would see less than intended."""


def check_presenters(presenters: object) -> None:
    """Reject presenters that are not given by tool name; see `check_type`.

    Raises:
        TypeError: `presenters` is not a mapping to functions.
    """
    check_type('presenters', presenters, 'a mapping from tool names to functions', Mapping)
    for name, present in cast('Mapping[str, object]', presenters or {}).items():
        check_methods(f'presenters[{name!r}]', present, 'a function of the request', '__call__')


class RememberedApproval(BaseModel):
    """A remembered approval."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    id: str
    """64 hexadecimal digits, used by `lookup` and `revoke`."""
    tool_name: str
    """Name of the tool."""
    kind: str
    """`exact`, or the kind of the wider option that was chosen."""
    label: str
    """Text for people: the option's label, or the description of the approved request, with secrets redacted."""
    approved_by: tuple[str, ...] = ()
    """Names of the approvers, as far as known."""
    approved_at: AwareDatetime
    """Time of the approval in UTC."""
    project: str | None = None
    """Root folder of the project in which the approval applies, if the store knows it."""
    is_denial: bool = False
    """Whether the calls are denied without asking, not approved."""
    note: str | None = None
    """Note of the denial, which the model reads each time; `None` if there is none."""
    left: Left | None = None
    """Rest of a bounded approval; `None` if the approval has no bounds."""


class ApprovalStore(Protocol):
    """Stores approvals with `remember='always'`. A store must be safe to share between threads and processes."""

    key: bytes
    """Secret key for computing the ids: at least 16 random bytes. Keep the key as long as you keep the approvals."""
    scope: Mapping[str, str]
    """Values that restrict where the store's approvals apply, such as the root folder of the project."""

    def get(self, approval_id: str) -> RememberedApproval | None:
        """Return the approval with this id, or `None`.

        Raises:
            StoreError: The contents cannot be trusted, so no approval is used.
        """
        ...  # pragma: no cover - a protocol has no body

    def put(self, approval: RememberedApproval) -> None:
        """Store an approval persistently, and only then return. Overwrite any approval that has the same id.

        Raises:
            StoreError: The approval cannot be stored.
        """
        ...  # pragma: no cover - a protocol has no body

    def change(
        self, approval_id: str, change: Callable[[RememberedApproval], RememberedApproval | None], /
    ) -> RememberedApproval | None:
        """Replace an approval by what `change` makes of it, and return that; `None` if nothing was changed.

        No other thread or process may change the approval between reading and replacing it, so that no use of a bounded
        approval is counted twice or not at all. The change is persistent when the method returns.

        Args:
            approval_id: Id of the approval.
            change: Function of the stored approval, without side effects: the store may call it several times. `None`
                leaves the approval as it is.

        Raises:
            StoreError: The contents cannot be trusted, or cannot be changed. The use must not count as taken.
        """
        ...  # pragma: no cover - a protocol has no body

    def remove(self, approval_id: str) -> bool:
        """Forget an approval, and return whether it existed.

        Raises:
            StoreError: The stored approvals cannot be trusted, or cannot be changed.
        """
        ...  # pragma: no cover - a protocol has no body

    def list_all(self) -> Sequence[RememberedApproval]:
        """List all approvals, oldest first.

        Raises:
            StoreError: The contents cannot be trusted.
        """
        ...  # pragma: no cover - a protocol has no body


class AuditSink(Protocol):
    """Writes what happens to calls to a log. `record` is called from the event loop's thread, one entry at a time."""

    def record(self, entry: Mapping[str, Any]) -> None:
        """Write one entry. Return only when the entry is stored outside this process, such as in a file or on a server.

        Args:
            entry: A JSON object with secrets redacted. `event` is `question`, `decision`, `outcome`, `unasked`,
                `blocked` or `settings`; the documentation of the audit log lists the fields.

        Raises:
            AuditError: The entry cannot be written. The call does not run.
        """
        ...  # pragma: no cover - a protocol has no body
