"""Approve or deny requests by policy, mode and memory, or by asking the UI.

To understand this module, start at `_decide_alone` and `_decide_asking`, which call everything else.
"""

from __future__ import annotations

import copy
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from .approvers import votes_needed, why_not_enough
from .arguments import Reread, as_read
from .canonical import canonical_json
from .decision import AllowedAnswer, ApprovalDecision, ApprovalMode, Decided, read_mode
from .errors import AuditError, NotCanonicalError, StoreError, check_methods, check_type, without_text
from .memory import NO_STORE, ApprovalMemory, Promise, check_memory, decision_of
from .offers import with_offers
from .policy import ApprovalPolicy
from .protocols import (
    ApprovalUI,
    AuditSink,
    Presenter,
    RememberedApproval,
    UIAbilities,
    check_presenters,
    check_ui,
)
from .recorder import Recorder, how_decided
from .request import ApprovalRequest

VALID_FOR = timedelta(days=1)
"""Default time between a decision and the execution. Chosen: an approver who answers in the evening finds the call run
in the morning, and nothing that was approved last week runs today."""

CLOCK_SKEW = timedelta(minutes=5)
"""How far in the future a decision may lie, because the clocks of two computers differ. Chosen: clocks that are set
over the network differ by seconds."""

ASKED_ANEW: tuple[AllowedAnswer, ...] = ('approve',)
"""Answers to the question whether a call of unknown outcome runs again, beside `deny`."""

_STRICT = (
    'Strict mode: calls that need approval are denied without asking anyone. Use the mode `interactive` to be asked, '
    'or add a rule that allows such calls.'
)

_BY_A_PERSON = 'Only a person can approve this call, so the mode `approve_all` blocks it.'

_log = logging.getLogger('tool_approval')

UNLOGGED = 'The decision could not be written to the audit log, so the call was denied.'
"""Reason for a denial if there is no line in the log."""


class _Asked(NamedTuple):
    """A request that the UI is asked about."""

    request: ApprovalRequest
    digest: str | None
    reread: Reread | None
    promised: list[Promise]


class ApprovalController(Recorder):
    """Decides requests by policy, mode and memory, and asks the UI about the rest.

    A controller may be shared between runs, because it keeps no state of a run and holds no lock between runs.
    """

    def __init__(
        self,
        mode: str = 'interactive',
        *,
        policy: ApprovalPolicy | Mapping[str, Any] | None = None,
        ui: ApprovalUI | None = None,
        memory: ApprovalMemory | None = None,
        audit: AuditSink | None = None,
        presenters: Mapping[str, Presenter] | None = None,
        timeout: float | None = None,
        key: bytes | None = None,
        valid_for: timedelta | None = VALID_FOR,
        log_unasked: bool = True,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Combine policy, UI, memory and audit log.

        Args:
            mode: `interactive` asks, `approve_all` approves and `strict` denies without asking. In all three modes, a
                blocked call is refused, and a call that needs no approval is run.
            policy: The rules, or a mapping from tool names and globs to rules.
            ui: UI to ask. Without a UI, requests that need an answer are denied.
            memory: Remembered approvals; if `None`, a new memory for this process.
            audit: Log of all questions, decisions and outcomes. A decision is written before the call runs.
            presenters: Functions, by tool name, that make the content to show; called right before asking.
            timeout: Seconds allowed to a presenter, and separately to the approver. After that, the request is denied.
            key: Secret key that binds approvals to arguments. Pass a lasting key if runs stop in one process and resume
                in another.
            valid_for: Time between the decision on a call and its execution, after which the call no longer runs;
                `None` for no limit. An approval from the memory is decided when it is found.
            log_unasked: Whether the log has a line for each call that runs unasked, too.
            now: Clock.

        Raises:
            ValueError: The mode is unknown, or the timeout or `valid_for` is not positive.
            TypeError: An argument has a wrong type, such as a `ui` without `choose`, or a store as `memory`.
            ApprovalConfigError: The policy is invalid.
        """
        check_ui(ui)
        check_memory(memory)
        check_methods('audit', audit, "an audit sink such as `JsonlAuditSink('audit.jsonl', key=...)`", 'record')
        check_presenters(presenters)
        check_type('timeout', timeout, 'a number of seconds', int, float)
        check_type('key', key, 'bytes', bytes)
        if timeout is not None and not timeout > 0:
            raise ValueError(f'the timeout must be a positive number of seconds, not {timeout!r}')
        check_type('valid_for', valid_for, 'a `timedelta`', timedelta)
        if valid_for is not None and not valid_for > timedelta():
            raise ValueError(f'`valid_for` must be positive, not {valid_for!r}')
        self.mode: ApprovalMode = read_mode(mode)
        self.policy = policy if isinstance(policy, ApprovalPolicy) else ApprovalPolicy(policy)
        self.ui = ui
        self.memory = memory if memory is not None else ApprovalMemory()
        self.audit = audit
        self._presenters = dict(presenters or {})
        self._timeout_s = timeout
        self._key = key or secrets.token_bytes(32)
        self._has_lasting_key = bool(key)
        self.valid_for = valid_for
        """Time between the decision on a call and its execution, after which the call no longer runs."""
        self._log_unasked = log_unasked
        self.now = now
        """Clock."""

    def with_ui(self, ui: ApprovalUI) -> ApprovalController:
        """Return a controller that asks `ui` and shares everything else with this controller."""
        other = copy.copy(self)
        other.ui = ui
        return other

    def for_test(self, ui: ApprovalUI, audit: AuditSink | None) -> ApprovalController:
        """Return a controller with the same rules and mode, and with its own UI, log, memory and key."""
        other = self.with_ui(ui)
        other.audit, other.memory, other._key = audit, ApprovalMemory(), secrets.token_bytes(32)
        return other

    async def request_approval(self, request: ApprovalRequest) -> ApprovalDecision:
        """Decide one request; see `request_approvals`."""
        [decision] = await self.request_approvals([request])
        return decision

    async def request_approvals(self, requests: Sequence[ApprovalRequest]) -> list[ApprovalDecision]:
        """Decide all requests of a response.

        Policy, mode and memory decide as many requests as possible. The UI is asked about all other requests. A UI that
        asks one question at a time gets one request after another; other UIs get all requests at once. `choose_group`
        gets all requests of a group, or of the whole response if `groups_responses` is true.

        Returns:
            A decision for each request, in order, with `decided_by` and `decided_at` filled in.

        Raises:
            StoreError: Remembered approvals cannot be trusted, or `always` was chosen and there is no store.
            asyncio.CancelledError: The wait was cancelled. Requests that have no answer yet stay undecided.
            KeyboardInterrupt: The user stopped the run in the UI. The log records the requests of the open question as
                denied. The remaining requests stay undecided.
            RunCancelled: A UI cancelled the run instead of raising `KeyboardInterrupt`. `RunCancelled` is
                defined in `threads` and is a subclass of `asyncio.CancelledError`.
        """
        return [decided.decision for decided in await self.decide(requests)]

    async def decide(
        self, requests: Sequence[ApprovalRequest], rereads: Sequence[Reread] | None = None
    ) -> list[Decided]:
        """Decide as `request_approvals` does, and also return the digest that each decision is bound to.

        Args:
            requests: The requests of a response.
            rereads: For each request, a function that reads an edit of its arguments. If the tool cannot take an edit,
                the approver is asked again with the reason, until the timeout ends, the approver gives the same edit
                again, or there were `MOST_EDITS` edits. The last edit is then returned.
        """
        decisions: dict[int, Decided] = {}
        promised: list[Promise] = []
        requests = [self._limited(request) for request in requests]
        # A batch is not a group: requests that a page answers together may be separate questions elsewhere.
        batch_id = secrets.token_hex(8) if len(requests) > 1 else None
        open_requests = list(range(len(requests)))
        while open_requests:
            before = dict(decisions)
            await self._decide_some(requests, open_requests, decisions, rereads, batch_id, promised)
            # A call whose approval expired while a question about another was open is asked about again. A UI that
            # gives the old answer again is not asked for ever.
            open_requests = [
                index
                for index, decided in decisions.items()
                if self.has_expired(decided) and (index not in before or _is_later(decided, before[index]))
            ]
            for index in open_requests:
                self.record_outcome(requests[index], 'expired', digest=decisions[index].digest)
        return [decisions[index] for index in range(len(requests))]

    async def _decide_some(
        self,
        requests: Sequence[ApprovalRequest],
        indices: Sequence[int],
        decisions: dict[int, Decided],
        rereads: Sequence[Reread] | None,
        batch_id: str | None,
        promised: list[Promise],
    ) -> None:
        asked: dict[int, _Asked] = {}
        for index in indices:
            request = requests[index]
            digest = self.digest_of(request)
            decided = self._decide_alone(request, digest)
            remembered = self._remembered(request, promised) if decided is None else None
            if decided is not None:
                decisions[index] = self._settle(request, digest, decided)
            elif remembered is not None:
                promised.append(Promise(remembered.id, request))
                decisions[index] = self._settle(request, digest, decision_of(remembered), remembered=remembered)
            else:
                placed = self._placed(request, batch_id, index + 1, len(requests))
                asked[index] = _Asked(placed, digest, None if rereads is None else rereads[index], promised)
        if asked:
            await self._ask_all(asked, decisions)

    async def triage(self, requests: Sequence[ApprovalRequest]) -> list[ApprovalRequest | None]:
        """Find out which requests of a response would now go to the approver, without deciding or recording anything.

        Returns:
            For each request, in order, the request as the approver would see it. An entry is `None` if policy, mode or
            memory decides the request, or if the request cannot be shown.

        Raises:
            StoreError: Remembered approvals cannot be trusted.
        """
        batch_id = secrets.token_hex(8) if len(requests) > 1 else None
        shown: list[ApprovalRequest | None] = []
        promised: list[Promise] = []
        for index, request in enumerate(map(self._limited, requests)):
            decided = self._decide_alone(request, self.digest_of(request))
            remembered = self._remembered(request, promised) if decided is None else None
            if remembered is not None:
                promised.append(Promise(remembered.id, request))
            found = decided or remembered
            found = found or await self._shown(self._placed(request, batch_id, index + 1, len(requests)))
            shown.append(found if isinstance(found, ApprovalRequest) else None)
        return shown

    async def ask_anew(self, request: ApprovalRequest) -> bool | None:
        """Ask an approver about a request, even if the mode or a remembered approval could decide the request.

        Returns:
            Whether a person approved the request; `None` if the request cannot be shown, or no person approved or
            denied it.

        Raises:
            AuditError: The answer could not be logged.
        """
        from .asking import ask

        place = self._placed(self.addressed(request), None, 1, 1)
        shown = await self._shown(
            place.changed(place.facts._replace(can_remember_always=False), answers=ASKED_ANEW, rejected_edit=None)
        )
        if isinstance(shown, ApprovalDecision):
            return None
        self.record_question(request)
        [answer] = await ask(self.ui, [shown], mode=self.mode, timeout_s=self._timeout_s)
        if answer.rule is not None:
            return None
        by = answer.decided_by or ('ui',)
        once = answer.model_copy(update={'remember': 'none', 'decided_by': by, 'decided_at': self.now()})
        self._record(request, once, self.digest_of(request), how='person')
        return once.approved

    def has_expired(self, decided: Decided) -> bool:
        """Return whether an approval has expired."""
        return decided.decision.approved and decided.expires_at is not None and self.now() > decided.expires_at

    def expires(self, decision: ApprovalDecision) -> datetime | None:
        """Return the time after which a call no longer runs; `None` for no limit, and for a call that was denied."""
        if not decision.approved or decision.decided_at is None or self.valid_for is None:
            return None
        return decision.decided_at + self.valid_for

    def still_holds(self, request: ApprovalRequest, *, approvers: Sequence[str], remembered: str | None) -> str | None:
        """Check again whether an earlier approval is still valid.

        Args:
            request: The approved request, rebuilt from the call that is about to run.
            approvers: Names of the people who approved the request, as far as known.
            remembered: Id of the remembered approval that approved the request, if any.

        Returns:
            Why the approval is no longer valid, or `None` if it is valid.

        Raises:
            StoreError: Remembered approvals cannot be trusted.
        """
        verdict = self.policy.judge_request(request, self.memory.granted(request))
        if verdict.is_blocked:
            return verdict.reason
        if (reason := self.removed(request, approvers)) is not None:
            return reason
        if remembered is not None and not self.memory.holds(remembered):
            return 'The remembered approval of this call was revoked, so the call was not run.'
        return None

    def removed(self, request: ApprovalRequest, approvers: Sequence[str]) -> str | None:
        """Return why the people who approved a request may no longer approve it, or `None` if they still may."""
        if not approvers:
            return None
        may_approve = UIAbilities.of(self.ui).may_approve
        asked = self.addressed(request)
        needed = votes_needed(asked.approvers)
        is_so = why_not_enough(asked.approvers, tuple(approvers), needed=needed) is None
        if is_so and (may_approve is None or may_approve(asked, approvers)) and self.memory.allows(approvers):
            return None
        who = 'approver' if len(approvers) == 1 else 'approvers'
        return f'The {who} of this call may no longer approve {request.tool_name!r}, so the call was not run.'

    async def _ask_all(self, asked: Mapping[int, _Asked], decisions: dict[int, Decided]) -> None:
        # Imported here, as in all that asks: what needs no question needs no event loop, which is slow to import.
        from .asking import grouped
        from .threads import together

        abilities = UIAbilities.of(self.ui)
        questions = grouped({index: each.request for index, each in asked.items()}, abilities)

        async def put(question: list[int], *, is_later: bool = False) -> None:
            answers = await self._decide_asking([asked[index] for index in question], abilities, is_later=is_later)
            decisions.update(zip(question, answers, strict=True))

        if abilities.asks_in_turn or len(questions) == 1:
            for number, question in enumerate(questions):
                await put(question, is_later=number > 0)
        else:
            await together([put(question) for question in questions])

    def _placed(self, request: ApprovalRequest, batch_id: str | None, position: int, size: int) -> ApprovalRequest:
        """Return a private copy of the request, marked as request i of n."""
        place: dict[str, Any] = {
            'position': position,
            'batch_size': size,
            'can_remember_session': self.memory.can_keep(request, 'session'),
            'can_remember_always': self.memory.can_keep(request, 'always'),
        }
        # A batch id from the framework is kept.
        if batch_id is not None and 'batch_id' not in request.metadata:
            place['batch_id'] = batch_id
        # The controller keeps this copy to itself, so the copy can share the schema.
        return request.detached(
            request.facts._replace(**place),
            metadata={**request.metadata, **place},
            args_schema=request.args_schema,
            review=None,  # Attack: a tool speaks as the reviewer (test_reviewed.py).
        )

    def _decide_alone(self, request: ApprovalRequest, digest: str | None) -> ApprovalDecision | None:
        """Decide a request by policy and mode, if possible."""
        # 1. A block is final.
        verdict = self.policy.judge_request(request, self.memory.granted(request))
        if verdict.is_blocked:
            return ApprovalDecision(approved=False, note=verdict.reason, decided_by=('policy',))
        # 2. A call that cannot be compared with others cannot be approved.
        try:
            if digest is None or request.payload is not request.args or request.remember_options:
                options = [option.payload for option in request.remember_options]
                canonical_json([request.tool_name, request.args, request.payload, request.bound_to, options])
        except NotCanonicalError as error:
            note = f'The arguments of {request.tool_name!r} are invalid ({error.problem}), so the call was denied.'
            return ApprovalDecision(approved=False, note=note, decided_by=('arguments',))
        if verdict.is_pre_approved:
            return ApprovalDecision(approved=True, decided_by=('policy',))
        # 3. The mode.
        if self.mode == 'approve_all' and request.needs_a_person:
            return ApprovalDecision(approved=False, note=_BY_A_PERSON, decided_by=('policy',))
        if self.mode == 'approve_all':
            is_allowed = request.allows('approve')
            note = None if is_allowed else f'Only a person can answer this call of {request.tool_name!r}.'
            return ApprovalDecision(approved=is_allowed, note=note, decided_by=('mode',))
        if self.mode == 'strict':
            return ApprovalDecision(approved=False, note=_STRICT, decided_by=('mode',))
        return None

    async def _decide_asking(self, questions: list[_Asked], abilities: UIAbilities, *, is_later: bool) -> list[Decided]:
        """Ask about one request, or about a group."""
        import asyncio

        from .asking import ask, with_valid_edit
        from .threads import RunCancelled

        # 4. Remembered approvals, including the answer to an earlier question of this response.
        found: list[RememberedApproval] = []

        def is_remembered() -> bool:
            found[:] = self._all_remembered(questions)
            return bool(found)

        def settle(decisions: list[ApprovalDecision]) -> list[Decided]:
            pairs = zip(questions, decisions, strict=True)
            return [self._settle(each.request, each.digest, decision, reread=each.reread) for each, decision in pairs]

        if is_later and is_remembered():
            return self._settle_remembered(questions, found)
        # 5. Make the presentation, only now that it is needed.
        shown: list[ApprovalRequest] = []
        for each in questions:
            view = await self._shown(each.request)
            if isinstance(view, ApprovalDecision):
                return settle([view] * len(questions))
            shown.append(view)
        if not self.log_questions([(each.request, each.digest) for each in questions], abilities):
            return settle([ApprovalDecision(approved=False, note=UNLOGGED, decided_by=('audit',))] * len(questions))
        # 6. The approver, or the answer to another run's question while this one waited for its turn.
        loop = asyncio.get_running_loop()
        ends_at = None if self._timeout_s is None else loop.time() + self._timeout_s

        async def put(views: Sequence[ApprovalRequest]) -> list[ApprovalDecision]:
            timeout_s = self._timeout_s if ends_at is None or views is shown else max(0.0, ends_at - loop.time())
            is_answered = is_remembered if views is shown else lambda: False
            return await ask(
                self.ui, views, mode=self.mode, timeout_s=timeout_s, is_answered=is_answered, abilities=abilities
            )

        try:
            answers = await put(shown)
            for index, answer in enumerate(answers):  # may be empty
                answers[index] = await with_valid_edit(answer, shown[index], questions[index].reread, put)
        except (KeyboardInterrupt, RunCancelled):
            stopped = ApprovalDecision(approved=False, note='The user stopped the run.', decided_by=('ui',))
            settle([stopped] * len(questions))
            raise
        # 7. Judge changed arguments, log, remember.
        settled = settle(answers) if answers else self._settle_remembered(questions, found)
        for each, answer, decided in zip(questions, answers, settled, strict=False):  # `answers` may be empty
            if decided.decision.approved:
                self.memory.grant(each.request, answer.decided_by)
        return settled

    def _all_remembered(self, questions: Sequence[_Asked]) -> list[RememberedApproval]:
        """Return what is remembered for each of the questions; an empty list unless all of them are answered by it."""
        found: list[RememberedApproval] = []
        promised = list(questions[0].promised)
        for each in questions:
            remembered = self._remembered(each.request, promised)
            if remembered is None:
                return []
            promised.append(Promise(remembered.id, each.request))
            found.append(remembered)
        return found

    def _settle_remembered(self, questions: Sequence[_Asked], found: Sequence[RememberedApproval]) -> list[Decided]:
        pairs = list(zip(questions, found, strict=True))
        questions[0].promised.extend(Promise(remembered.id, each.request) for each, remembered in pairs)
        return [
            self._settle(each.request, each.digest, decision_of(remembered), remembered=remembered)
            for each, remembered in pairs
        ]

    def _limited(self, request: ApprovalRequest) -> ApprovalRequest:
        """Return the request with the answers that the policy allows too, and with the bounded approvals it offers."""
        rule = self.policy.rule_for(request.tool_name)
        return with_offers(self.addressed(request).limited(rule.answers), rule.remember)

    def addressed(self, request: ApprovalRequest) -> ApprovalRequest:
        """Return the request with the policy's rules for who may approve it."""
        approvers = self.policy.approvers_of(request)
        return request if request.approvers == approvers else request.changed(approvers=approvers)

    def _remembered(self, request: ApprovalRequest, promised: Sequence[Promise]) -> RememberedApproval | None:
        # A decision that was remembered before the tool or a rule forbade it does not count.
        if not request.allows('remember'):
            return None
        found = self.memory.find(request, promised)
        if found is None or found.is_denial:
            return found
        if not request.allows('approve') or request.needs_a_person:
            return None
        needed = votes_needed(request.approvers)
        if why_not_enough(request.approvers, found.approved_by, needed=needed) is not None:
            return None
        may_approve = UIAbilities.of(self.ui).may_approve
        return found if may_approve is None or may_approve(request, found.approved_by) else None

    def _settle(
        self,
        request: ApprovalRequest,
        digest: str | None,
        decision: ApprovalDecision,
        *,
        remembered: RememberedApproval | None = None,
        reread: Reread | None = None,
    ) -> Decided:
        """Complete a decision, log it, and only then remember it: what the log lacks approves nothing later."""
        asked = digest
        is_unasked = decision.rule == 'policy'
        if decision.approved and decision.override_args is not None:
            decision = self._judged_again(request, decision, decision.override_args, reread)
        if decision.override_args is not None:
            digest = self.digest_of(request, decision.override_args)
        said, is_remembered = decision, remembered is not None
        if decision.approved and decision.remember == 'always' and not self.memory.remembers_always:
            raise StoreError('', NO_STORE)
        by = said.decided_by or ('memory' if is_remembered else 'ui',)
        remembered_at = decision.decided_at if is_remembered else None
        # An answer from the memory is decided when it is looked up.
        filled_in = {'decided_by': by, 'decided_at': (None if is_remembered else decision.decided_at) or self.now()}
        decision = ApprovalDecision.model_validate({**vars(decision), **filled_in})
        expires_at = self._expires(decision, remembered)
        try:
            if is_unasked:
                self.record_unasked(request, note=None if decision.approved else decision.note or '')
            else:
                self._record(
                    request,
                    decision,
                    digest,
                    how=how_decided(said, is_remembered=is_remembered),
                    question_digest=asked,
                    changed_to=as_read(decision.override_args, reread),
                    remembered_at=remembered_at,
                    expires_at=expires_at,
                )
        except AuditError as error:
            _log.error('A call of %r was denied: %s', request.tool_name, error)
            denial = ApprovalDecision(approved=False, note=UNLOGGED, decided_by=('audit',), decided_at=self.now())
            return Decided(denial, digest)
        # Remember only after logging, so that every remembered approval is in the log.
        if decision.remember != 'none':
            self.memory.store(request, decision.model_copy(update={'decided_by': said.decided_by}))
        is_persons = said.rule is None and not is_remembered
        return Decided(
            decision,
            digest,
            approvers=said.people,
            remembered=None if remembered is None else remembered.id,
            is_persons=is_persons,
            expires_at=expires_at,
        )

    def _expires(self, decision: ApprovalDecision, remembered: RememberedApproval | None) -> datetime | None:
        """Return the time after which a call no longer runs, also because its remembered approval ends."""
        until = None if remembered is None or remembered.left is None else remembered.left.until
        ends = [each for each in (self.expires(decision), until) if each is not None]
        return min(ends) if ends and decision.approved else None

    def _judged_again(
        self,
        request: ApprovalRequest,
        decision: ApprovalDecision,
        override_args: Mapping[str, Any],
        reread: Reread | None,
    ) -> ApprovalDecision:
        verdict = self.policy.judge_request(request.changed(args=override_args))
        try:
            canonical_json(override_args)
        except NotCanonicalError as error:
            note = f"The approver's arguments are invalid ({error.problem}), so the call was denied."
            return ApprovalDecision(approved=False, note=note, decided_by=('arguments',))
        if verdict.is_blocked:
            return ApprovalDecision(approved=False, note=verdict.reason, decided_by=('policy',))
        # Attack: one person approves a small amount, and changes it to one that needs two (test_approvers.py).
        for args in (override_args, as_read(override_args, reread) or override_args):
            if not set(self.policy.approvers_of(request.changed(args=args))) <= set(request.approvers):
                note = f'Other people must approve {request.tool_name!r} with the changed arguments, so it was denied.'
                return ApprovalDecision(approved=False, note=note, decided_by=('policy',))
        return decision

    async def _shown(self, request: ApprovalRequest) -> ApprovalRequest | ApprovalDecision:
        """Return the request for the UI, or a denial if the request cannot be presented."""
        from .asking import presented

        try:
            description = self.policy.description_of(request)
            if description is not None:
                request = request.changed(description=description, described_by=self.policy.source)
            return await presented(request, self._presenters.get(request.tool_name), timeout_s=self._timeout_s)
        except Exception as error:  # noqa: BLE001 - an approver must not decide with less information than intended
            _log.error('The presenter of %r failed with %s', request.tool_name, without_text(error))
            note = f'The request could not be shown to the approver ({type(error).__name__}), so the call was denied.'
            return ApprovalDecision(approved=False, note=note, decided_by=('ui',))


def _is_later(decided: Decided, before: Decided) -> bool:
    now, then = decided.decision.decided_at, before.decision.decided_at
    return now is not None and then is not None and now > then
