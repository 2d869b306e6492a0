"""The gate in front of a tool: judge, request, decide, bind, confirm before execution, record the outcome.

An adapter reads what its framework is about to run as a `Call`. Everything else about approval happens here, in the
order of the methods of `Gate`: `prepare` and `decide_all` before anything of a response runs, `confirm` right before
one call does, `execution` around it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol, Self, TypeAlias, TypeVar, cast

from .arguments import ARGUMENTS, CallArguments
from .canonical import canonical_json, copied
from .controller import ApprovalController, Decided
from .decision import ApprovalDecision
from .errors import NotCanonicalError
from .presentation import EXTRA_ACCESS
from .redact import Outcome
from .request import ApprovalContext, ApprovalRequest, CallFacts
from .tool_checks import Approved, approved
from .verdict import ApprovalResult, make_request

T = TypeVar('T')

CHANGED = 'The call changed after it was approved, so it was not run.'
"""The reason where what would run is not what was approved."""

DENIED = 'The approver denied this call. Do not try it in another form; ask what to do instead, or go on without it.'
"""The reason where the approver gave none."""


NO_ARGUMENTS = CallArguments(shown={}, is_altered=False, bound={})
"""In place of arguments that cannot be read."""


def cannot_be_judged(tool_name: str, problem: str) -> str:
    """The reason to refuse a call whose arguments cannot be read."""
    return f'The arguments of {tool_name!r} cannot be judged ({problem}), so the call was not run.'


def _cannot_be_changed(args: Mapping[str, Any]) -> Call:
    raise ValueError('this call takes no other arguments')


class Call(NamedTuple):
    """One call that wants to run, as its framework delivered it. Nothing is read from the framework again."""

    tool_name: str
    """The name the model calls the tool by."""
    arguments: CallArguments
    """As given and as validated."""
    values: Mapping[str, Any]
    """What the tool gets, by parameter name."""
    given: Mapping[str, Any] | None = None
    """What the framework is to call the tool with, where that is not `values`."""
    facts: CallFacts = CallFacts()
    """Where it stands."""
    metadata: Mapping[str, Any] | None = None
    """What checks and UIs are shown of the facts, where there is more than these."""
    tool_call_id: str | None = None
    """The call's id, where the framework has one."""
    checks: Sequence[object] = ()
    """What may have a check of its own, the weightier first: a toolset before the function."""
    framework_context: object = None
    """Passed on to the checks that take it."""
    judged_as: str | None = None
    """The name that policy and checks know the tool by, where a toolset has renamed it."""
    bound_to: Mapping[str, Any] = MappingProxyType({})
    """What the adapter binds an approval to, beside the arguments and what the tool declares."""
    is_enclosed: bool = False
    """Whether what encloses the execution records the outcome and tells the model of changed arguments."""
    reread: Callable[[Mapping[str, Any]], Call] = _cannot_be_changed
    """The call with the arguments of an approver in place of the model's. It raises `ValueError` where these do not fit
    the tool, with a text that says why."""


class Prepared(NamedTuple):
    """A call that was judged."""

    call: Call
    """The call."""
    verdict: ApprovalResult
    """Whether it is blocked, may run unasked, or needs approval."""
    request: ApprovalRequest
    """What an approver, the memory and the log get to see of it."""


class Binding(NamedTuple):
    """Ties an approval to just the call it was given for. Hosts carry it as JSON, also from one process to another."""

    digest: str
    """Of what may run; empty, which is the digest of nothing, where it was malformed."""
    decided: str | None
    """The digest that the log has of the decision."""
    bound_to: Mapping[str, Any]
    """What the digest covers beside the arguments that are shown."""
    granted: object = None
    """The capabilities that the approval grants, as a list of names; `None` without any."""
    has_changed_arguments: bool = False
    """Whether the approver changed the arguments."""
    by_policy: bool = False
    """Whether a rule alone let the call run, and neither an approver, nor a mode, nor memory."""
    approver: str | None = None
    """Who approved it, where it was a person."""
    remembered: str | None = None
    """The id of the remembered approval that approved it, where one did."""

    @property
    def declared(self) -> dict[str, Any]:
        """What the tool declared, of all that the approval is bound to."""
        return {name: value for name, value in self.bound_to.items() if name != ARGUMENTS}

    def declares(self, declared: Mapping[str, Any]) -> bool:
        """Whether the tool declared this then."""
        return self.digest != '' and self.declared == declared

    def as_json(self) -> dict[str, Any]:
        """All but what is granted, which the host hands to the tool by itself."""
        return {
            'digest': self.digest,
            'decided': self.decided,
            'bound_to': copied(self.bound_to),
            'has_changed_arguments': self.has_changed_arguments,
            'by_policy': self.by_policy,
            'approver': self.approver,
            'remembered': self.remembered,
        }

    @classmethod
    def of(cls, carried: Mapping[str, Any], granted: object = None) -> Binding:
        """Read what a host carried. Whatever is malformed matches no call."""
        digest, decided, bound_to = carried.get('digest'), carried.get('decided'), carried.get('bound_to')
        is_sound = isinstance(digest, str) and isinstance(bound_to, Mapping)
        return cls(
            digest=digest if is_sound and isinstance(digest, str) else '',
            decided=_text(decided),
            bound_to=cast('Mapping[str, Any]', bound_to) if isinstance(bound_to, Mapping) else {},
            granted=granted,
            has_changed_arguments=carried.get('has_changed_arguments') is True,
            by_policy=carried.get('by_policy') is not False,
            approver=_text(carried.get('approver')),
            remembered=_text(carried.get('remembered')),
        )


def _text(carried: object) -> str | None:
    return carried if isinstance(carried, str) else None


def was_asked(binding: Binding | None) -> bool:
    """Whether an approver, a mode or memory approved a call, and not a rule alone.

    Without a binding, whatever code let the host run the call approved it.
    """
    return binding is None or not binding.by_policy


class Refused(NamedTuple):
    """The call does not run."""

    reason: str
    """Why, for the caller or the model."""
    is_block: bool = False
    """Whether policy refused it, so that nobody was asked."""
    decision: ApprovalDecision | None = None
    """The denial, where an approver, a mode or a rule decided a request."""


class Allowed(NamedTuple):
    """The call may run, and just this one."""

    call: Call
    """The call, with the arguments it runs with."""
    request: ApprovalRequest | None
    """What the outcome is recorded for; `None` where nobody had to decide."""
    binding: Binding | None
    """What it is bound to; `None` where code other than this package approved it."""
    decision: ApprovalDecision | None = None
    """The approval, where it was just given."""

    @property
    def was_asked(self) -> bool:
        """Whether an approver, a mode or memory approved the call, and not a rule alone."""
        return self.request is not None and was_asked(self.binding)


GateResult: TypeAlias = Refused | Allowed
"""What becomes of a call before it runs."""


class ExecutedCall(NamedTuple):
    """A call as a ledger knows it."""

    run_id: str
    """What it belongs to: a run, or a conversation of several."""
    tool_name: str
    """The tool."""
    tool_call_id: str
    """The call's id there."""
    args: Mapping[str, Any]
    """Its arguments, for the tool's own check whether it happened."""
    identity: Sequence[Any]
    """What makes it this call and no other; it has a canonical form."""

    @classmethod
    def of(cls, call: Call, run_id: str, occurrence: int = 1) -> ExecutedCall:
        """Read a call.

        Args:
            call: The call, with an id.
            run_id: What it belongs to.
            occurrence: How many calls of that id there were, with this one. Models use an id again.
        """
        lineage = [[each.agent_name, each.tool_name, each.tool_call_id] for each in call.facts.lineage]
        received = call.arguments.bound.get('received', call.arguments.shown)
        call_id = str(call.tool_call_id)
        identity = [run_id, lineage, call_id, occurrence, call.tool_name, received]
        return cls(run_id, call.tool_name, call_id, call.arguments.shown, copied(identity))


class Kept(NamedTuple):
    """What a ledger has kept of an execution, which is not run again."""

    state: Literal['done', 'failed', 'refused', 'unknown']
    """What became of it."""
    value: Any = None
    """Its result, as JSON has it."""
    text: str | None = None
    """In place of a result: what the model is told."""
    by: str | None = None
    """The person who settled it, where it was unknown."""


class ExecutionLedger(Protocol):
    """Executes each call at most once: a `tool_approval.durable.Ledger`."""

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
    ) -> T | Kept:
        """Run it, or return what was kept; see `Ledger.execute`."""
        ...  # pragma: no cover - a protocol has no body


class Execution:
    """Encloses one execution of a call: the tool can take its approval inside, and what comes of it is recorded."""

    def __init__(self, gate: Gate, allowed: Allowed, outcome_of: Callable[[BaseException], Outcome]) -> None:
        """See `Gate.execution`."""
        self.outcome: Outcome = 'executed'
        """What is recorded of it, unless it raises."""
        self._gate = gate
        self._allowed = allowed
        self._outcome_of = outcome_of

    @property
    def notice(self) -> str | None:
        """What to tell the model where an approver changed the arguments; `None` where there is nothing to tell."""
        binding, call = self._allowed.binding, self._allowed.call
        if not self._gate.tells_changes or call.is_enclosed or binding is None or not binding.has_changed_arguments:
            return None
        changed = canonical_json(call.arguments.shown)
        return f'The approver changed the arguments of this call. It ran with: {changed}'

    def __enter__(self) -> Self:
        """Begin."""
        call, request, binding = self._allowed.call, self._allowed.request, self._allowed.binding
        # Attack: what a host carries beside the digest claims more than the approver was shown. The request was made
        # anew, and compared with the digest (test_confinement.py).
        bound_to: Mapping[str, Any] = {} if request is None or binding is None else request.bound_to
        self._token = approved.set(Approved(call.values, bound_to) if self._allowed.was_asked else None)
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Record what came of it."""
        approved.reset(self._token)
        outcome = self.outcome if error is None else self._outcome_of(error)
        self._gate.record(self._allowed, outcome, error)


class Gate:
    """What an adapter asks about its calls, in this order. It holds nothing about a call; one serves any number."""

    def __init__(
        self, controller: ApprovalController, *, default: str = 'required', tells_changes: bool = True
    ) -> None:
        """Stand in front of tools.

        Args:
            controller: Judges, decides and records.
            default: What holds for a tool about which nothing is said: `required` or `none`.
            tells_changes: Whether the model is told that an approver changed arguments.

        Raises:
            ValueError: `default` is neither of the two.
        """
        if default not in ('required', 'none'):
            raise ValueError(f"`default` must be 'required' or 'none', not {default!r}")
        self.controller = controller
        self.default = default
        self.tells_changes = tells_changes

    async def prepare(self, call: Call, *, blocked: str | None = None) -> Prepared:
        """Judge a call, and make the request that its approver would be asked.

        Args:
            call: The call.
            blocked: Why it cannot be judged, where it cannot.
        """
        metadata = call.facts.as_metadata() if call.metadata is None else call.metadata
        name = call.judged_as or call.tool_name
        context = ApprovalContext(tool_name=name, args=call.arguments.shown, metadata=metadata)
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
        request = make_request(
            context if name == call.tool_name else context.model_copy(update={'tool_name': call.tool_name}),
            verdict,
            tool_call_id=call.tool_call_id,
            hides_arguments=call.arguments.is_altered,
            bound_to=self._bound_to(call, verdict.bound_to),
            **({'lineage': call.facts.lineage} if call.facts.lineage else {}),
        ).changed(call.facts)
        return Prepared(call=call, verdict=verdict, request=request)

    async def decide_all(self, calls: Sequence[Prepared]) -> list[GateResult]:
        """Decide all calls of a response, before any of them runs.

        Raises:
            AuditError: A block could not be written down. Nothing has run.
            StoreError: Remembered approvals cannot be trusted, or kept. Nothing has run.
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
        for (index, prepared), decided in zip(
            asked, await self.controller.decide([prepared.request for _, prepared in asked]), strict=True
        ):
            settled[index] = self._settle(prepared, decided)
        return [settled[index] for index in range(len(calls))]

    async def judge_changed(self, settled: GateResult) -> GateResult:
        """Judge the arguments of an approver at once, and bind the approval to what the tool declares for them.

        Without this, `confirm` refuses other arguments for which the tool declares something else.

        Raises:
            AuditError: A block could not be written down. Nothing has run.
        """
        if isinstance(settled, Refused) or settled.binding is None or not settled.binding.has_changed_arguments:
            return settled
        prepared = await self.prepare(settled.call)
        if prepared.verdict.is_blocked:
            self.record(settled, 'refused')
            return self.block(prepared)
        request = prepared.request
        if request.bound_to.get(EXTRA_ACCESS) != settled.binding.bound_to.get(EXTRA_ACCESS):
            # The approver was shown what the call may touch with the arguments before the change.
            self.record(settled, 'refused')
            return Refused(reason=CHANGED)
        try:
            digest = self.controller.digest(request.tool_name, request.args, request.bound)
        except NotCanonicalError as error:
            return self._unusable(settled, error)
        binding = settled.binding._replace(digest=digest, bound_to=request.bound_to)
        return settled._replace(request=request, binding=binding)

    def confirm(self, prepared: Prepared, binding: Binding | None) -> GateResult:
        """Look again at a call that was approved, right before it runs: time has passed since.

        Args:
            prepared: The call as it would run now, judged now.
            binding: What the approval is bound to; `None` where other code approved it.

        Raises:
            AuditError: A block could not be written down. Nothing has run.
        """
        allowed = Allowed(call=prepared.call, request=prepared.request, binding=binding)
        if prepared.verdict.is_blocked:
            self.record(allowed, 'refused')
            return self.block(prepared)
        if binding is not None and not self.is_bound(binding, prepared.call, prepared.verdict.bound_to):
            self.record(allowed, 'refused')
            return Refused(reason=CHANGED)
        return allowed

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
        """Let a ledger execute a call that may run, at most once.

        Args:
            ledger: The ledger.
            call: The call, as the ledger knows it.
            allowed: The call.
            run: Executes it.
            recheck: Looks again at the approval right before; `still_holds` if `None`.
            **how: As for `ExecutionLedger.execute`.
        """

        def check() -> str | None:
            reason = self.still_holds(allowed) if recheck is None else recheck()
            if reason is not None:
                self.record(allowed, 'refused')
            return reason

        async def ask(question: str) -> bool | None:
            request = allowed.request or self._anew(allowed.call)
            text = f'{question} Approve it to run it again, deny it to give it up.'
            return await self.controller.ask_anew(request.changed(description=text, described_by=None))

        result = await ledger.execute(call, run, check=check, ask=ask, **how)
        if isinstance(result, Kept) and result.by is not None:
            self.record(allowed, 'executed' if result.state == 'done' else 'failed', settled_by=result.by)
        return result

    def still_holds(self, allowed: Allowed) -> str | None:
        """Why the approval of a call does not hold any more, right before it runs; `None` where it does."""
        binding = allowed.binding
        approver, remembered = (None, None) if binding is None else (binding.approver, binding.remembered)
        request = allowed.request or self._anew(allowed.call)
        return self.controller.still_holds(request, approver=approver, remembered=remembered)

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
        """Whether an approval is of just this call.

        Args:
            binding: What the approval is bound to.
            call: What is about to run.
            declared: What the tool declares now; what it declared then if `None`.
        """
        now = {**(binding.declared if declared is None else declared), **call.bound_to}
        # What was decided between two runs knows nothing of the arguments beside what was shown.
        if ARGUMENTS in binding.bound_to or call.arguments.has_secrets:
            now = self.controller.bound_to(call.arguments, now)
        if binding.granted is not None:
            now = {**now, 'granted_capabilities': binding.granted}
        is_bound = self.controller.is_bound(binding.digest, call.tool_name, call.arguments.shown, now)
        fields = call.arguments.fields
        return is_bound or (
            fields is not None and self.controller.is_bound(binding.digest, call.tool_name, fields, now)
        )

    def bind(self, request: ApprovalRequest, *, by_policy: bool) -> Binding:
        """What ties an approval to the call of `request`, where no decision was asked for."""
        return _binding(request, self.controller.digest_of(request), by_policy=by_policy)

    def execution(
        self, allowed: Allowed, *, outcome_of: Callable[[BaseException], Outcome] = lambda error: 'failed'
    ) -> Execution:
        """Enclose the execution of a call with this.

        Args:
            allowed: The call.
            outcome_of: What is recorded where the execution raises.
        """
        return Execution(self, allowed, outcome_of)

    def record(
        self,
        allowed: Allowed,
        outcome: Outcome,
        error: BaseException | None = None,
        *,
        settled_by: str | None = None,
    ) -> None:
        """Write down what came of a call, unless what encloses its execution does."""
        binding = allowed.binding
        if allowed.request is None or allowed.call.is_enclosed:
            return
        self.controller.record_outcome(
            allowed.request,
            outcome,
            error=error if outcome == 'failed' else None,
            # The decision's own, so that the log has them in a pair: a model may have been shown in another form.
            digest=None if binding is None else binding.decided,
            settled_by=settled_by,
        )

    def block(self, prepared: Prepared) -> Refused:
        """Write down that policy refuses a call, before anybody is asked.

        Raises:
            AuditError: It cannot be written.
        """
        reason = prepared.verdict.reason or f'The tool {prepared.call.tool_name!r} is blocked.'
        self.controller.record_unasked(prepared.request, approved=False, note=reason)
        return Refused(reason=reason, is_block=True)

    def _settle(self, prepared: Prepared, decided: Decided) -> GateResult:
        decision = decided.decision
        if not decision.approved:
            is_block = decision.decided_by == 'policy'
            return Refused(reason=decision.note or DENIED, is_block=is_block, decision=decision)
        call, request = prepared.call, prepared.request
        binding = _binding(request, decided.digest, by_policy=decision.decided_by == 'policy')
        binding = binding._replace(approver=decided.approver, remembered=decided.remembered)
        allowed = Allowed(call=call, request=request, binding=binding, decision=decision)
        if decision.override_args is None:
            return allowed
        try:
            call = call.reread(decision.override_args)
        except ValueError as error:
            return self._unusable(allowed, error)
        changed = request.changed(args=call.arguments.shown, bound_to=self._bound_to(call, binding.declared))
        digest = self.controller.digest(changed.tool_name, changed.args, changed.bound)
        binding = binding._replace(digest=digest, bound_to=changed.bound_to, has_changed_arguments=True)
        return allowed._replace(call=call, request=changed, binding=binding)

    def _unusable(self, allowed: Allowed, error: ValueError) -> Refused:
        self.record(allowed, 'refused')
        reason = f"The approver's arguments cannot be used: {error}. The call was not run."
        return Refused(reason=reason, decision=ApprovalDecision(approved=False, note=reason))

    def _bound_to(self, call: Call, declared: Mapping[str, Any]) -> dict[str, Any]:
        return {**self.controller.bound_to(call.arguments, declared), **call.bound_to}


def _binding(request: ApprovalRequest, digest: str | None, *, by_policy: bool) -> Binding:
    granted = list(request.missing_capabilities) or None
    return Binding(digest=digest or '', decided=digest, bound_to=request.bound_to, granted=granted, by_policy=by_policy)
