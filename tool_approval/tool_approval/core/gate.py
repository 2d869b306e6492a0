"""Control the execution of tool calls, from the verdict and the decision to the last check and the logged outcome.

An adapter converts each call of its framework to a `Call`; this module does everything else about approval. Call the
methods of `Gate` in this order: `prepare` and `decide_all` before any call of a response runs, `confirm` right before
each call, and `execution` around each call. A call that `decide_all` returns as `Responded` does not run: its response
is the tool's result.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from hmac import compare_digest
from typing import Any, Self, TypeVar

from .arguments import ARGUMENTS, TYPES
from .binding import Binding
from .calls import Allowed, Call, ExecutedCall, ExecutionLedger, GateResult, Kept, Prepared, Refused, Responded
from .canonical import canonical_json, copied
from .conditions import received
from .controller import CLOCK_SKEW, ApprovalController
from .decision import ApprovalDecision, Decided
from .entries import Outcome, changed_payload
from .errors import AuditError, NotCanonicalError, UsedUp, check_type
from .presentation import EXTRA_ACCESS, SHOWN_FILES
from .request import ApprovalContext, ApprovalRequest
from .tool_checks import Approved, approved, has_check
from .verdict import ApprovalResult, make_request

T = TypeVar('T')

_log = logging.getLogger('tool_approval')

CHANGED = 'The call changed after it was approved, so it was not run.'
"""Reason for refusing a call that differs from the approved call."""

OTHER_ACCESS = (
    'The changed arguments need other access or other files than the approver was shown, so the call was not run.'
)
"""Reason for refusing an approver's change."""

EXPIRED = 'The approval of this call has expired, so the call was not run. Call the tool again to ask anew.'
"""Reason for refusing a call that was approved too long ago."""

FROM_THE_FUTURE = 'The approval of this call is dated in the future, so the call was not run: the clock was set back.'
"""Reason for refusing a call whose approval cannot be dated."""

DENIED = (
    'The approver denied this call. Do not try this call in another form; ask what to do instead, or go on without it.'
)
"""Default reason for a denial if the approver gives no reason."""

UNLOGGED = 'The call could not be written to the audit log, so it was not run.'
"""Reason for refusing a call that would run unasked."""


class Execution:
    """Context manager around one execution.

    Inside the context, the tool can call `take_approval`. When the context ends, the outcome is recorded.
    """

    def __init__(self, gate: Gate, allowed: Allowed, outcome_of: Callable[[BaseException], Outcome]) -> None:
        """Create with `Gate.execution`."""
        self.outcome: Outcome = 'executed'
        """Outcome to record if the execution does not raise."""
        self._gate = gate
        self._allowed = allowed
        self._outcome_of = outcome_of
        self._started_at: datetime | None = None

    @property
    def notice(self) -> str | None:
        """Text that informs the model of arguments changed by the approver; `None` if there is nothing to report."""
        binding, call = self._allowed.binding, self._allowed.call
        if not self._gate.tells_changes or call.is_enclosed or binding is None or not binding.has_changed_arguments:
            return None
        changed = canonical_json(call.arguments.shown)
        return f'The approver changed the arguments of this call, which ran with: {changed}'

    def __enter__(self) -> Self:
        """Count the call against the bounds of its remembered approval, and make the approval available to the tool.

        Raises:
            UsedUp: Too little is left of the remembered approval. The refusal is logged, and the call must not run.
            StoreError: The call cannot be counted. It must not run.
        """
        self._gate.take(self._allowed)
        self._started_at = self._gate.controller.now()
        call, request, binding = self._allowed.call, self._allowed.request, self._allowed.binding
        # Attack: values that a host carries with the digest claim more than the approver saw. The request was made
        # again and compared with the digest (test_confinement.py).
        bound_to: Mapping[str, Any] = {} if request is None or binding is None else request.bound_to
        self._token = approved.set(Approved(call.values, bound_to) if self._allowed.was_asked else None)
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Record the outcome."""
        approved.reset(self._token)
        outcome = self.outcome if error is None else self._outcome_of(error)
        self._gate.record(self._allowed, outcome, error, started_at=self._started_at)


class Gate:
    """Approves or refuses an adapter's calls. A gate keeps no state of a call, so it can serve any number of calls."""

    def __init__(
        self, controller: ApprovalController, *, default: str = 'required', tells_changes: bool = True
    ) -> None:
        """Create a gate.

        Args:
            controller: Judges and decides calls, and records outcomes.
            default: `required` or `none`, for tools without a rule or a check.
            tells_changes: Whether to inform the model of arguments changed by an approver.

        Raises:
            TypeError: `controller` is not an `ApprovalController`.
            ValueError: `default` is neither `required` nor `none`.
        """
        check_type('controller', controller, 'an `ApprovalController`', ApprovalController)
        if default not in ('required', 'none'):
            raise ValueError(f"`default` must be 'required' or 'none', not {default!r}")
        self.controller = controller
        self.default = default
        self.tells_changes = tells_changes

    async def prepare(self, call: Call, *, blocked: str | None = None) -> Prepared:
        """Judge a call, and make the request that an approver would see.

        Args:
            call: The call.
            blocked: Reason for blocking the call, if it cannot be judged; otherwise `None`.

        Raises:
            ApprovalConfigError: A rule counts or compares an argument that the tool does not have.
        """
        metadata = call.facts.as_metadata() if call.metadata is None else call.metadata
        name = call.judged_as or call.tool_name
        if call.args_schema is not None:
            self.controller.policy.check_arguments(name, call.args_schema)
        used = call.arguments.used
        context = ApprovalContext(tool_name=name, args=call.arguments.shown, metadata=metadata, used=used)
        if blocked is not None:
            verdict = ApprovalResult.blocked(blocked)
        else:
            verdict = await self.controller.policy.judge(
                context,
                logic=call.checks,
                framework_context=call.framework_context,
                default=self.default,
                facts=call.facts,
            )
        if verdict.is_blocked and verdict.payload is None and blocked is None and not any(map(has_check, call.checks)):
            verdict = replace(verdict, payload=context.args)  # no check that could say which arguments are secret
        if name != call.tool_name and not verdict.is_blocked:
            verdict = self._asking_the_same(call, name, verdict)
        request = make_request(
            context if name == call.tool_name else context.model_copy(update={'tool_name': call.tool_name}),
            verdict,
            call.facts if call.metadata is None else None,
            tool_call_id=call.tool_call_id,
            hides_arguments=call.arguments.is_altered,
            args_schema=call.args_schema,
            bound_to=self._bound_to(call, verdict.bound_to),
            **({'lineage': call.facts.lineage} if call.facts.lineage else {}),
        )
        return Prepared(call, verdict, request if request.facts is call.facts else request.changed(call.facts))

    def _asking_the_same(self, call: Call, name: str, verdict: ApprovalResult) -> ApprovalResult:
        """Return the verdict on a renamed call; a block if the approvers of its own name would not be asked."""
        # Attack: a toolset adds a prefix, and a rule that names the approvers of the tool no longer applies.
        args = received(call.arguments.shown, call.arguments.used)
        own, asked = (self.controller.policy.rule_for(each, args).approvers for each in (name, call.tool_name))
        if {*own} <= {*asked}:
            return verdict
        return ApprovalResult.blocked(
            f'The rule for {name!r} names approvers. The model calls the tool {call.tool_name!r}, so the call was not '
            f'run. Give the rule for {call.tool_name!r} the same `approvers`.'
        )

    async def decide_all(self, calls: Sequence[Prepared]) -> list[GateResult]:
        """Decide all calls of a response before any of them runs.

        Raises:
            AuditError: The refusal of a blocked call could not be logged. Nothing has run.
            StoreError: Remembered approvals cannot be trusted or stored. Nothing has run.
        """
        settled: dict[int, GateResult] = {}
        asked: list[tuple[int, Prepared]] = []
        for index, prepared in enumerate(calls):
            if prepared.verdict.is_blocked:
                settled[index] = self.block(prepared)
            elif prepared.verdict.is_pre_approved:
                binding = self.bind(prepared.request, by_policy=True)
                settled[index] = Allowed(call=prepared.call, request=None, binding=binding)
            else:
                asked.append((index, prepared))
        rereads = [_once(prepared.call.reread) for _, prepared in asked]
        read = [_shown_by(reread) for reread in rereads]
        all_decided = await self.controller.decide([prepared.request for _, prepared in asked], read)
        for (index, prepared), decided, reread in zip(asked, all_decided, rereads, strict=True):
            settled[index] = await self._judge_changed(prepared, self._settle(prepared, decided, reread))
        return [settled[index] for index in range(len(calls))]

    async def settle(
        self, prepared: Prepared, again: Callable[[Call], Awaitable[Call]] | None = None, *, is_kept: bool = False
    ) -> GateResult:
        """Decide a single call that runs at once if it is allowed: `decide_all` and `confirm` in one.

        Args:
            prepared: The call.
            again: Reads the call anew after the decision, as its arguments may have changed; `None` if they cannot.
            is_kept: See `confirm`.

        Raises:
            AuditError: A refusal could not be logged. Nothing has run.
            StoreError: Remembered approvals cannot be trusted or stored. Nothing has run.
        """
        [settled] = await self.decide_all([prepared])
        if not isinstance(settled, Allowed):
            return settled
        if settled.request is not None:  # the facts may have changed while the approver was asked
            prepared = await self.prepare(settled.call)
        if again is not None:
            prepared = prepared._replace(call=await again(settled.call))
        return self.confirm(prepared, settled.binding, is_kept=is_kept)

    async def _judge_changed(self, prepared: Prepared, settled: GateResult) -> GateResult:
        """Judge arguments changed by an approver, and bind the approval to the values that the tool declares for them.

        If the tool declares different values after the change, `confirm` would refuse the call without this step.
        """
        if not isinstance(settled, Allowed) or settled.binding is None or not prepared.call.checks:
            return settled
        if not settled.binding.has_changed_arguments:
            return settled
        # Attack: what the tool declared, and the approver saw, changes while the approver edits another argument.
        declared = (await self.prepare(prepared.call)).verdict.bound_to
        if {**declared, **prepared.call.bound_to} != {**settled.binding.declared, **prepared.call.bound_to}:
            self.record(settled, 'refused')
            return Refused(reason=CHANGED)
        changed = await self.prepare(settled.call)
        if changed.verdict.is_blocked:
            self.record(settled, 'refused')
            return self.block(changed)
        request = changed.request
        if any(request.bound_to.get(key) != settled.binding.bound_to.get(key) for key in (EXTRA_ACCESS, SHOWN_FILES)):
            # The approver saw the access and the files of the arguments before the change.
            self.record(settled, 'refused')
            return Refused(reason=OTHER_ACCESS)
        try:
            digest = self.controller.digest(request.tool_name, request.args, request.bound)
        except NotCanonicalError as error:
            return self._unusable(settled, error)
        binding = self._sealed(settled.binding._replace(digest=digest, bound_to=request.bound_to))
        return settled._replace(request=request, binding=binding)

    def confirm(self, prepared: Prepared, binding: Binding | None, *, is_kept: bool = False) -> Refused | Allowed:
        """Check an approved call again right before it runs, because the call or the rules may have changed.

        Args:
            prepared: The call as it would run now, with a new verdict.
            binding: Binding of the approval; `None` if other code approved the call.
            is_kept: Whether a ledger executes the call. It checks the approvers itself, because of a call that may have
                run before it must not be said that the call was not run.

        Raises:
            AuditError: The refusal of a blocked call could not be logged. Nothing has run.
        """
        allowed = Allowed(call=prepared.call, request=prepared.request, binding=binding)
        if prepared.verdict.is_blocked:
            self.record(allowed, 'refused')
            return self.block(prepared)
        if binding is not None and not self.is_bound(binding, prepared.call, prepared.verdict.bound_to):
            self.record(allowed, 'refused')
            return Refused(reason=CHANGED)
        if (reason := self.lapsed(allowed)) is not None:
            return Refused(reason=reason)
        # Attack: whoever approved the call is removed from the approvers before it runs.
        removed = None if binding is None or is_kept else self.controller.removed(prepared.request, binding.approvers)
        if removed is not None:
            self.record(allowed, 'refused')
            return Refused(reason=removed)
        # Attack: an approval comes from another process, which was not given the answers that the tool allows.
        answer = 'edit' if binding is not None and binding.has_changed_arguments else 'approve'
        if binding is not None and prepared.verdict.is_needs_approval and not prepared.request.allows(answer):
            self.record(allowed, 'refused')
            return Refused(reason=f'The tool does not allow the answer `{answer}`, so the call was not run.')
        by_rule = binding.by_policy and binding.decided_at is None if binding else prepared.verdict.is_pre_approved
        if not by_rule:
            return allowed
        # Attack: an adapter takes a call that a rule allowed for an approved one, and a rule has changed since.
        if prepared.verdict.is_needs_approval:
            return self.refuse(prepared, CHANGED)
        return self.run_unasked(prepared, binding)

    async def keep(
        self,
        ledger: ExecutionLedger,
        call: ExecutedCall,
        allowed: Allowed,
        run: Callable[[], Awaitable[T]],
        *,
        recheck: Callable[[], str | None] | None = None,
        **how: Any,
    ) -> T | Kept:
        """Execute an allowed call through a ledger, at most once.

        Args:
            ledger: The ledger.
            call: The call as the ledger identifies it.
            allowed: The allowed call.
            run: Executes the call.
            recheck: Checks the approval again right before execution. `None` means `still_holds`.
            **how: See `ExecutionLedger.execute`.

        Raises:
            UsedUp: Too little is left of the remembered approval. The call did not run.
        """

        def check() -> str | None:
            return self.recheck(allowed, recheck)

        async def ask(question: str) -> bool | None:
            request = allowed.request or self._anew(allowed.call)
            text = f'{question} Approve to run the call again, or deny to give up on the call.'
            return await self.controller.ask_anew(request.changed(description=text, described_by=None))

        def tried_again(by: str) -> None:
            self.record(allowed, 'failed', settled_by=by)

        how['not_begun'] = (UsedUp, *how.get('not_begun', ()))
        result = await ledger.execute(call, run, check=check, ask=ask, tried_again=tried_again, **how)
        if isinstance(result, Kept) and result.by is not None:
            self.record(allowed, 'executed' if result.state == 'done' else 'failed', settled_by=result.by)
        return result

    def recheck(self, allowed: Allowed, check: Callable[[], str | None] | None = None) -> str | None:
        """Right before a call runs, return why it may not run any more, and log that; `None` if it may run.

        Args:
            allowed: The allowed call.
            check: Checks the approval again. `None` means `still_holds`.
        """
        if (lapsed := self.lapsed(allowed)) is not None:
            return lapsed
        reason = self.still_holds(allowed) if check is None else check()
        if reason is not None:
            self.record(allowed, 'refused')
        return reason

    def still_holds(self, allowed: Allowed) -> str | None:
        """Right before a call runs, return why its approval is no longer valid, or `None` for a valid approval."""
        binding = allowed.binding
        approvers, remembered = ((), None) if binding is None else (binding.approvers, binding.remembered)
        request = allowed.request or self._anew(allowed.call)
        return self.controller.still_holds(request, approvers=approvers, remembered=remembered)

    def take(self, allowed: Allowed) -> None:
        """Count a call against the bounds of its remembered approval, right before it runs. `execution` does so itself.

        Raises:
            UsedUp: Too little is left of the remembered approval. The refusal is logged, and the call must not run.
            StoreError: The call cannot be counted. It must not run.
        """
        binding = allowed.binding
        if binding is None or binding.remembered is None or allowed.call.is_enclosed:
            return
        try:
            self.controller.memory.take(binding.remembered, allowed.request or self._anew(allowed.call))
        except UsedUp:
            self.record(allowed, 'refused')
            raise

    def lapsed(self, allowed: Allowed) -> str | None:
        """Right before a call runs, return why it is too late to run it, and log that; `None` if it is in time."""
        binding = allowed.binding
        if binding is None or binding.decided_at is None:
            return None
        now, valid_for = self.controller.now(), self.controller.valid_for
        decided_at = datetime.fromisoformat(binding.decided_at)
        expires_at = now if binding.expires_at is None else datetime.fromisoformat(binding.expires_at)
        if decided_at > now + CLOCK_SKEW:
            self.record(allowed, 'refused')
            return FROM_THE_FUTURE
        if now <= expires_at and (valid_for is None or now <= decided_at + valid_for):
            return None
        self.record(allowed, 'expired')
        return EXPIRED

    def _anew(self, call: Call) -> ApprovalRequest:
        return ApprovalRequest.of_call(
            call.tool_name,
            call.arguments.shown,
            call.facts,
            description=call.tool_name,
            payload={},
            tool_call_id=call.tool_call_id,
        )

    def is_bound(self, binding: Binding, call: Call, declared: Mapping[str, Any] | None = None) -> bool:
        """Return whether an approval is for exactly this call.

        Args:
            binding: Binding of the approval.
            call: Call that is about to run.
            declared: Values that the tool declares now. `None` uses the values declared when the call was approved.
        """
        # Attack: whoever stores the approval of a stopped run changes its times, or removes an approver who may
        # no longer approve.
        if not self._is_sealed(binding):
            return False
        now = {**(binding.declared if declared is None else declared), **call.bound_to}
        # A decision that was made between two runs was bound only to the arguments shown.
        if not {ARGUMENTS, TYPES}.isdisjoint(binding.bound_to) or call.arguments.has_secrets:
            now = self.controller.bound_to(call.arguments, now)
        if binding.granted is not None:
            now = {**now, 'granted_capabilities': binding.granted}
        is_bound = self.controller.is_bound(binding.digest, call.tool_name, call.arguments.shown, now)
        fields = call.arguments.fields
        return is_bound or (
            fields is not None and self.controller.is_bound(binding.digest, call.tool_name, fields, now)
        )

    def bind(self, request: ApprovalRequest, *, by_policy: bool) -> Binding:
        """Return the binding of a pre-approved call, for which no decision was needed. `request` describes the call."""
        return self._sealed(_binding(request, self.controller.digest_of(request), by_policy=by_policy))

    def _is_sealed(self, binding: Binding) -> bool:
        try:
            return compare_digest(binding.seal.encode(), self._sealed(binding).seal.encode())
        except (NotCanonicalError, UnicodeEncodeError):
            return False

    def _sealed(self, binding: Binding) -> Binding:
        # Attack: the host drops the remembered approval, so that the call is not counted (test_bounds.py), or says that
        # an approver approved what only a rule let run, or did not change the arguments (test_gate.py).
        said = f'[{binding.by_policy},{binding.has_changed_arguments}]'.lower()
        others = (binding.remembered, binding.decided_at, binding.expires_at, binding.decided, said)
        return binding._replace(seal=self.controller.seal(binding.digest, binding.approvers, *others))

    def execution(
        self, allowed: Allowed, *, outcome_of: Callable[[BaseException], Outcome] = lambda error: 'failed'
    ) -> Execution:
        """Return a context manager for the execution of a call.

        Args:
            allowed: The allowed call.
            outcome_of: Returns the outcome to record if the execution raises.
        """
        return Execution(self, allowed, outcome_of)

    def record(
        self,
        allowed: Allowed,
        outcome: Outcome,
        error: BaseException | None = None,
        *,
        started_at: datetime | None = None,
        settled_by: str | None = None,
    ) -> None:
        """Log the outcome of a call, unless this is left to the code that wraps the execution."""
        binding = allowed.binding
        if allowed.request is None or allowed.call.is_enclosed:
            return
        self.controller.record_outcome(
            allowed.request,
            outcome,
            error=error if outcome == 'failed' else None,
            # The digest of the decision pairs the two log entries, even if the arguments now have another form.
            digest=None if binding is None else binding.decided,
            started_at=started_at,
            settled_by=settled_by,
            is_changed=binding is not None and binding.has_changed_arguments,
        )

    def run_unasked(self, prepared: Prepared, binding: Binding | None = None) -> Allowed | Refused:
        """Log that a call is about to run without a question, and allow it. A call that cannot be logged is refused.

        Args:
            prepared: The call, which needs no approval.
            binding: Binding of the call, if the adapter needs one.
        """
        if not self.controller.logs_unasked or prepared.call.is_enclosed:
            return Allowed(call=prepared.call, request=None, binding=binding)
        binding = binding or self.bind(prepared.request, by_policy=True)
        unlogged = self._logged(prepared, partial(self.controller.record_unasked, prepared.request))
        return unlogged or Allowed(prepared.call, prepared.request, binding)

    def run_approved_by_others(self, prepared: Prepared, answered_by: str | None = None) -> Allowed | Refused:
        """Log that other code approved a call, and confirm it. A call that cannot be logged is refused.

        Args:
            prepared: The call.
            answered_by: Name that the other code gave for who approved, if it did.
        """

        def record() -> None:
            self.controller.record_decision(
                prepared.request, approved=True, note=None, by='other', answered_by=answered_by
            )

        return self._logged(prepared, record) or self.confirm(prepared, None)

    def _logged(self, prepared: Prepared, record: Callable[[], None]) -> Refused | None:
        try:
            record()
        except AuditError as error:
            _log.error('A call of %r was refused: %s', prepared.call.tool_name, error)
            return Refused(reason=UNLOGGED)
        return None

    def block(self, prepared: Prepared) -> Refused:
        """Log that policy refuses a call without asking an approver, and return the refusal.

        Raises:
            AuditError: The entry cannot be written.
        """
        reason = prepared.verdict.reason or f'The tool {prepared.call.tool_name!r} is blocked.'
        self.controller.record_unasked(prepared.request, note=reason)
        return Refused(reason=reason, is_block=True)

    def refuse(self, prepared: Prepared, reason: str) -> Refused:
        """Log that an approved call is not run, and return the refusal.

        Raises:
            AuditError: The entry cannot be written.
        """
        self.controller.record_unasked(prepared.request, note=reason)
        return Refused(reason=reason)

    def _settle(self, prepared: Prepared, decided: Decided, reread: Callable[[Mapping[str, Any]], Call]) -> GateResult:
        decision = decided.decision
        if decision.response is not None:
            self.controller.record_outcome(prepared.request, 'responded', digest=decided.digest)
            return Responded(response=copied(decision.response), decision=decision)
        if not decision.approved:
            is_block = decision.rule == 'policy'
            is_note = decided.is_persons and bool(decision.note)
            return Refused(reason=decision.note or DENIED, is_block=is_block, decision=decision, is_note=is_note)
        call, request = prepared.call, prepared.request
        binding = _binding(request, decided.digest, by_policy=decision.rule == 'policy')
        binding = self._sealed(
            binding._replace(
                approvers=decided.approvers,
                remembered=decided.remembered,
                decided_at=None if decision.decided_at is None else decision.decided_at.isoformat(),
                expires_at=None if decided.expires_at is None else decided.expires_at.isoformat(),
            )
        )
        allowed = Allowed(call=call, request=request, binding=binding, decision=decision)
        if decision.override_args is None:
            return allowed
        try:
            call = reread(decision.override_args)
        except ValueError as error:
            return self._unusable(allowed, error)
        changed = request.changed(
            args=call.arguments.shown,
            payload={**request.payload, **changed_payload(request, call.arguments.shown)},
            bound_to=self._bound_to(call, binding.declared),
        )
        digest = self.controller.digest(changed.tool_name, changed.args, changed.bound)
        binding = self._sealed(binding._replace(digest=digest, bound_to=changed.bound_to, has_changed_arguments=True))
        return allowed._replace(call=call, request=changed, binding=binding)

    def _unusable(self, allowed: Allowed, error: ValueError) -> Refused:
        self.record(allowed, 'refused')
        reason = f"The approver's arguments are invalid ({error}), so the call was not run."
        return Refused(reason=reason, decision=ApprovalDecision(approved=False, note=reason))

    def _bound_to(self, call: Call, declared: Mapping[str, Any]) -> dict[str, Any]:
        return {**self.controller.bound_to(call.arguments, declared), **call.bound_to}


def _once(reread: Callable[[Mapping[str, Any]], Call]) -> Callable[[Mapping[str, Any]], Call]:
    """Return `reread`, which reads the same edit only once: validators may be slow, or have effects."""
    read: dict[str, Call] = {}

    def once(args: Mapping[str, Any]) -> Call:
        text = canonical_json(args)
        if text not in read:
            read[text] = reread(args)
        return read[text]

    return once


def _shown_by(reread: Callable[[Mapping[str, Any]], Call]) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    return lambda args: reread(args).arguments.shown


def _binding(request: ApprovalRequest, digest: str | None, *, by_policy: bool) -> Binding:
    granted = list(request.missing_capabilities) or None
    return Binding(digest=digest or '', decided=digest, bound_to=request.bound_to, granted=granted, by_policy=by_policy)
