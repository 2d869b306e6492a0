"""Remember approvals and denials, so that the same call is not asked about again."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, cast

from .arguments import TYPES
from .bounds import Bounds, Left
from .canonical import fingerprint, whole_characters
from .conditions import received
from .decision import ApprovalDecision
from .errors import StoreError, UsedUp, check_methods, check_type
from .protocols import ApprovalStore, RememberedApproval
from .request import ApprovalRequest

NO_STORE = (
    "`remember='always'` needs a memory with a store; pass `ApprovalMemory(store)`, or `Approvals(..., remember='.')`"
)
"""Problem with an approval that is to last, but that nothing can store."""


DENIED_BEFORE = 'The approver denied such calls for the rest of this session, so this call was not run.'
"""Reason for denying a call without asking, because of a remembered denial."""


class Promise(NamedTuple):
    """A remembered approval that was found for a call, which has not run yet."""

    approval_id: str
    """Id of the approval."""
    request: ApprovalRequest
    """Request of the call."""


class ApprovalMemory:
    """Remembered approvals. `session` approvals are kept in this process, and `always` approvals in a store.

    An approval covers only requests with the same session, agents, toolset, tool, tool definition, option and payload
    as the approved request. However, an `always` approval covers all sessions in the store's scope (the project). A
    memory may be shared between threads and between the runs of one user.
    """

    def __init__(
        self,
        store: ApprovalStore | None = None,
        *,
        is_allowed: Callable[[str | None], bool] = lambda approver: True,
        shares_with_nested: bool = False,
        key: bytes | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Create an empty memory.

        Args:
            store: Store for approvals with `remember='always'`. Without a store, such an approval is an error.
            is_allowed: Returns whether an approver may still decide. If not, the approver's approvals are ignored.
            shares_with_nested: Whether nested agents share approvals with the agents above them, in both directions. If
                true, all agents below the outermost agent are treated as one agent.
            key: Secret key for the ids of session approvals; random if `None`.
            now: Clock.

        Raises:
            TypeError: An argument has a wrong type, such as the path of a file as `store`.
        """
        check_methods(
            'store',
            store,
            'a store such as `FileApprovalStore(project)`',
            *('get', 'put', 'change', 'remove', 'list_all'),
        )
        check_methods('is_allowed', is_allowed, 'a function of the name of an approver', '__call__')
        check_type('key', key, 'bytes', bytes)
        self._store = store
        self._is_allowed = is_allowed
        self._shares_with_nested = shares_with_nested
        self._key = key or secrets.token_bytes(32)
        self._now = now
        self._session: dict[str, RememberedApproval] = {}
        self._has_denials = False
        self._lock = threading.Lock()

    @property
    def remembers_always(self) -> bool:
        """Whether there is a store."""
        return self._store is not None

    def can_keep(self, request: ApprovalRequest, span: Literal['session', 'always']) -> bool:
        """Return whether an approval of `request` would be found again for as long as `span` says.

        An agent without a name is known by its run only. So the approval ends with this run, although the session may
        continue.
        """
        runs = {run_id for name, run_id in self._callers(request) if not name} - {None}
        return runs <= {_session_of(request)} if span == 'session' else self.remembers_always and not runs

    def lookup(self, request: ApprovalRequest) -> ApprovalDecision | None:
        """Return the remembered decision that covers `request`, or `None`.

        Raises:
            StoreError: The store's contents cannot be trusted.
            NotCanonicalError: The payload has no canonical form.
        """
        found = self._found(request, ())
        return None if found is None else decision_of(found)

    def find(self, request: ApprovalRequest, promised: Sequence[Promise] = ()) -> RememberedApproval | None:
        """Return the remembered approval or denial that covers `request`, or `None`. Nothing is taken from its bounds.

        Args:
            request: The request.
            promised: Approvals found for other calls of the same response, which have not run yet.

        Raises:
            StoreError: The store's contents cannot be trusted.
            NotCanonicalError: The payload has no canonical form. An empty memory does not read the payload.
        """
        return self._found(request, promised) if self._session or self._store is not None else None

    def _found(self, request: ApprovalRequest, promised: Sequence[Promise]) -> RememberedApproval | None:
        if request.hides_arguments:
            return None
        coverings = request.coverings
        for kind, payload in coverings.items() if self._has_denials else ():
            if (
                denial := self._session.get(self._approval_id(request, kind, payload, None, is_denial=True))
            ) is not None:
                return denial
        for kind, payload in coverings.items():
            for store in (None,) if self._store is None else (None, self._store):
                found = self._by_id(self._approval_id(request, kind, payload, store), store)
                if found is not None and self.allows(found.approved_by) and self._lasts(found, request, promised):
                    return found
        return None

    def _lasts(self, found: RememberedApproval, request: ApprovalRequest, promised: Sequence[Promise]) -> bool:
        left, now = found.left, self._now()
        before = [each.request for each in promised if each.approval_id == found.id]
        for each in (*before, request):
            left = None if left is None else left.after(_amounts(each), now)
            if left is None:
                return found.left is None
        return True

    def take(self, approval_id: str, request: ApprovalRequest) -> None:
        """Count a call against the bounds of the approval that allows it, right before the call runs.

        The count is atomic over all threads, and over all processes that share the store. An approval without bounds is
        left as it is.

        Raises:
            UsedUp: The approval has ended, was revoked, or has not enough left for the call. The call must not run.
            StoreError: The store's contents cannot be trusted or changed. The call must not run.
        """

        def counted(found: RememberedApproval) -> RememberedApproval | None:
            left = None if found.left is None else found.left.after(_amounts(request), self._now())
            return None if left is None else found.model_copy(update={'left': left})

        with self._lock:
            found = self._session.get(approval_id)
            changed = None if found is None else counted(found)
            if changed is not None:
                self._session[approval_id] = changed
                return
        if found is None and self._store is not None:
            found = self._store.get(approval_id)
            if found is not None and found.left is not None and self._store.change(approval_id, counted) is not None:
                return
        if found is None or found.left is not None:
            raise UsedUp(request.tool_name)

    def holds(self, approval_id: str) -> bool:
        """Return whether an approval still counts: it is remembered, and its approver is still allowed to decide.

        Raises:
            StoreError: The store's contents cannot be trusted.
        """
        found = self._by_id(approval_id, None) or self._by_id(approval_id, self._store)
        return found is not None and not found.is_denial and self.allows(found.approved_by)

    def allows(self, approvers: Sequence[str]) -> bool:
        """Return whether all these approvers are still allowed to decide requests. Empty if unknown."""
        return all(self._is_allowed(each) for each in approvers or (None,))

    def _by_id(self, approval_id: str, store: ApprovalStore | None) -> RememberedApproval | None:
        return self._session.get(approval_id) if store is None else store.get(approval_id)

    def store(self, request: ApprovalRequest, decision: ApprovalDecision) -> None:
        """Remember a decision about unchanged arguments that asks to be remembered.

        The memory ignores approvals with changed arguments, decisions with `remember='none'`, and requests with
        `hides_arguments`. The call that was approved is the first that counts against the bounds of its option.

        Raises:
            StoreError: The decision has `remember='always'`, but no store can keep the approval.
            ValueError: The request does not offer `remember_option`.
            NotCanonicalError: The payload has no canonical form.
        """
        if request.hides_arguments or not decision.is_lasting:
            return
        covering = request.coverings
        bounds = {option.kind: option.bounds for option in request.remember_options}.get(decision.remember_option)
        if decision.remember_option not in covering or (bounds is not None and not decision.approved):
            raise ValueError(f'the request does not offer to remember the decision as {decision.remember_option!r}')
        store = self._store if decision.remember == 'always' else None
        if store is None and decision.remember == 'always':
            raise StoreError('', NO_STORE)
        kind = decision.remember_option
        labels = {option.kind: option.label for option in request.remember_options}
        from .redact import Redactor

        label = Redactor.of(request.args, request.payload).text(labels.get(kind, request.attributed_description))
        left = self._first_counted(request, decision, bounds)
        if left is not None and left.is_over(self._now()):
            return
        approval = RememberedApproval(
            id=self._approval_id(request, kind, covering[kind], store, is_denial=not decision.approved),
            tool_name=request.tool_name,
            kind=kind,
            label=whole_characters(label),
            approved_by=decision.decided_by,
            approved_at=decision.decided_at or self._now(),
            project=None if store is None else store.scope.get('project'),
            is_denial=not decision.approved,
            note=None if decision.approved or decision.note is None else whole_characters(decision.note),
            left=left,
        )
        if store is not None:
            store.put(approval)
            return
        with self._lock:
            self._session[approval.id] = approval
            self._has_denials = self._has_denials or approval.is_denial

    def _first_counted(
        self, request: ApprovalRequest, decision: ApprovalDecision, bounds: Bounds | None
    ) -> Left | None:
        """Return what is left after the approved call; `None` if the approval has no bounds."""
        if bounds is None:
            return None
        now = self._now()
        # Attack: an answer that is dated in the future, so that the approval lasts longer (test_bounds.py).
        left = Left.of(bounds, min(decision.decided_at or now, now))
        # An approval that does not even cover its own call covers none.
        return left.after(_amounts(request), now) or Left(uses=0)

    def grant(self, request: ApprovalRequest, approvers: tuple[str, ...]) -> None:
        """Remember, until the run ends, the capabilities that an approval of `request` grants to the tool.

        With `shares_with_nested`, the capabilities are kept until the outermost run ends, and all nested runs share
        them. Nothing is granted for a request with `hides_arguments`.
        """
        lasts = request.run_id is not None and not request.hides_arguments
        for capability in request.missing_capabilities if lasts else ():
            from .redact import Redactor

            label = Redactor.of(request.args, request.payload).text(f'capability {capability}, for one run')
            approval = RememberedApproval(
                id=self._grant_id(request, capability),
                tool_name=request.tool_name,
                kind='capability',
                label=whole_characters(label),
                approved_by=approvers,
                approved_at=self._now(),
            )
            with self._lock:
                self._session[approval.id] = approval

    def granted(self, request: ApprovalRequest) -> frozenset[str]:
        """Return those of the request's `missing_capabilities` that were granted to the tool earlier in the run."""
        if request.hides_arguments or not request.missing_capabilities:
            return frozenset()
        found = {each: self._session.get(self._grant_id(request, each)) for each in request.missing_capabilities}
        return frozenset(each for each, grant in found.items() if grant is not None and self.allows(grant.approved_by))

    def list_approvals(self) -> list[RememberedApproval]:
        """List all remembered approvals: those for the session, then those of the store.

        Raises:
            StoreError: The store's contents cannot be trusted.
        """
        with self._lock:
            session = list(self._session.values())
        return [*session, *(self._store.list_all() if self._store is not None else ())]

    def revoke(self, approval_id: str) -> bool:
        """Forget one approval, and return whether it existed.

        Raises:
            StoreError: The store's contents cannot be trusted, or cannot be changed.
        """
        with self._lock:
            if self._session.pop(approval_id, None) is not None:
                return True
        return self._store is not None and self._store.remove(approval_id)

    def clear(self) -> None:
        """Forget the session's approvals. `always` approvals remain until they are revoked."""
        with self._lock:
            self._session.clear()

    def __len__(self) -> int:
        """Return the number of remembered `session` approvals."""
        return len(self._session)

    def _approval_id(
        self, request: ApprovalRequest, kind: str, payload: Any, store: ApprovalStore | None, *, is_denial: bool = False
    ) -> str:
        """Return the approval's id in `store`, or in the session if `store` is `None`."""
        # An approval covers only capabilities that were shown with it.
        lacks = sorted(request.missing_capabilities)
        lacking: dict[str, Any] = {'capabilities': lacks} if lacks else {}
        if is_denial:
            lacking['denies'] = True
        # Attack: an approval that anyone may give covers a call that only others may approve (test_approvers.py).
        if request.approvers:
            lacking['approvers'] = sorted(rule.text for rule in request.approvers)
        # Attack: `Archive(item='1')` and `Delete(item=Decimal('1'))` have the same JSON form (test_memory.py).
        if types := _types(request, payload):
            lacking['types'] = types
        if store is not None:
            return self._id(request, kind, payload, {'scope': dict(store.scope), **lacking}, key=store.key)
        return self._id(request, kind, payload, {'session': _session_of(request), **lacking}, key=self._key)

    def _grant_id(self, request: ApprovalRequest, capability: str) -> str:
        is_shared = self._shares_with_nested and request.lineage
        run = request.lineage[0].run_id if is_shared else request.run_id
        return self._id(request, 'capability', {'capability': capability}, {'granted in': run}, key=self._key)

    def _id(self, request: ApprovalRequest, kind: str, payload: Any, scope: dict[str, Any], *, key: bytes) -> str:
        return fingerprint(
            request.tool_name,
            kind,
            {
                'payload': dict(payload),
                'agents': self._agents(request),
                'toolset': request.facts.toolset_id,
                # Two toolsets without an id may have different tools of the same name.
                'definition': request.facts.tool_digest,
                **scope,
            },
            key=key,
        )

    def _agents(self, request: ApprovalRequest) -> list[Any]:
        """Return the calling agents, by name or else by run id, and the names of the tools between the agents."""
        names = [name or {'run': run_id} for name, run_id in self._callers(request)]
        tools = [level.tool_name for level in request.lineage]
        return [*zip(names[:-1], tools[: len(names) - 1], strict=True), names[-1]]

    def _callers(self, request: ApprovalRequest) -> list[tuple[str | None, str | None]]:
        callers = [(level.agent_name, level.run_id) for level in request.lineage]
        callers = [*callers, (request.facts.caller, request.run_id)]
        return callers[:1] if self._shares_with_nested else callers


def _types(request: ApprovalRequest, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the types that the payload does not show, for the arguments that it contains unchanged."""
    types = cast('Mapping[str, Any]', request.bound_to.get(TYPES) or {})
    return {name: types[name] for name in types if name in payload and payload[name] == request.args.get(name)}


def _session_of(request: ApprovalRequest) -> str | None:
    return request.session_id or (request.lineage[0].run_id if request.lineage else request.run_id)


def _amounts(request: ApprovalRequest) -> Mapping[str, Any]:
    return received(request.args, request.used)


def decision_of(found: RememberedApproval) -> ApprovalDecision:
    """Return the decision on a call that a remembered approval or denial covers."""
    denied = f'{DENIED_BEFORE} The note was: {found.note}' if found.note else DENIED_BEFORE
    return ApprovalDecision(
        approved=not found.is_denial,
        note=denied if found.is_denial else f'remembered: {found.label}',
        remember_option=found.kind,
        decided_by=found.approved_by,
        decided_at=found.approved_at,
    )


def check_memory(memory: object) -> None:
    """Reject what cannot remember; see `check_methods`.

    Raises:
        TypeError: `memory` is not a memory, but a store or a class, for example.
    """
    wanted = 'an `ApprovalMemory`; give a store to `ApprovalMemory(store)`'
    check_methods('memory', memory, wanted, 'lookup', 'list_approvals', 'revoke')
