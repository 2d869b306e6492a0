"""Compute the digests that approvals are bound to, and log questions, decisions and outcomes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from hmac import compare_digest
from typing import Any

from .arguments import ARGUMENTS, TYPES, CallArguments
from .canonical import canonical_json, digest, hash_text
from .decision import ApprovalDecision, ApprovalMode
from .entries import How, Outcome, decision_entry, outcome_entry, question_entry, unasked_entry
from .errors import AuditError, NotCanonicalError, without_text
from .protocols import ApprovalUI, AuditSink, UIAbilities
from .request import ApprovalRequest

_log = logging.getLogger('tool_approval')


class Recorder:
    """The half of the controller that decides nothing: digests under its key, and entries in its log."""

    mode: ApprovalMode
    ui: ApprovalUI | None
    audit: AuditSink | None
    now: Callable[[], datetime]
    _key: bytes
    _has_lasting_key: bool
    _log_unasked: bool

    def use_key(self, key: bytes) -> None:
        """From now on, use the lasting `key` to bind approvals, unless a key was passed to the constructor."""
        if not self._has_lasting_key:
            self._key, self._has_lasting_key = key, True

    def digest(self, tool_name: str, args: Mapping[str, Any], bound_to: Mapping[str, Any] | None = None) -> str:
        """Return the digest that an approval of this call is bound to.

        Raises:
            NotCanonicalError: An argument has no canonical form.
        """
        return digest(tool_name, args, bound_to or {}, key=self._key)

    def seal(self, digest: str, approvers: Sequence[str], *others: str | None) -> str:
        """Return a keyed hash of the digest of an approval, its approvers and other values, such as its times.

        So no host that stores the approval can change them.
        """
        return hash_text(canonical_json([digest, list(approvers), *others]), key=self._key, purpose=b'seal')

    def bound_to(self, arguments: CallArguments, declared: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values, besides the arguments shown, that an approval is bound to.

        Args:
            arguments: The call's arguments. A keyed digest binds the arguments both as the model gave them and as the
                tool receives them.
            declared: Values that the tool declares.
        """
        bound_to = dict(declared)
        for key in (ARGUMENTS, TYPES):
            bound_to.pop(key, None)
        if arguments.bound:
            bound_to[ARGUMENTS] = hash_text(f'["",{arguments.bound_text},{{}}]', key=self._key)
        if arguments.types:
            bound_to[TYPES] = dict(arguments.types)
        return bound_to

    def is_bound(
        self, approved: str, tool_name: str, args: Mapping[str, Any], bound_to: Mapping[str, Any] | None = None
    ) -> bool:
        """Return whether `approved`, the digest of an approval, matches this call exactly."""
        try:
            return compare_digest(approved.encode(), self.digest(tool_name, args, bound_to).encode())
        except (NotCanonicalError, UnicodeEncodeError):
            return False

    @property
    def logs_unasked(self) -> bool:
        """Whether calls that run unasked are logged."""
        return self.audit is not None and self._log_unasked

    def _write(self, entry: Mapping[str, Any]) -> None:
        assert self.audit is not None, 'there is a log to write to'
        try:
            self.audit.record(entry)
        except AuditError:
            raise
        except Exception as error:
            raise AuditError(type(self.audit).__name__, f'the sink failed with {without_text(error)}') from error

    def record_unasked(self, request: ApprovalRequest, *, note: str | None = None) -> None:
        """Log a call without a question: it is about to run, or, with a note, it is blocked.

        Raises:
            AuditError: The entry cannot be written. The call must not run.
        """
        if self.audit is not None and (note is not None or self.logs_unasked):
            digest = self.digest_of(request)
            self._write(unasked_entry(request, digest=digest, at=self.now(), note=note))

    def record_decision(
        self, request: ApprovalRequest, *, approved: bool, note: str | None, by: str, answered_by: str | None = None
    ) -> None:
        """Log a decision that other code made. See `decision_entry` for `answered_by`.

        Raises:
            AuditError: The entry cannot be written. The call must not run.
        """
        decision = ApprovalDecision(approved=approved, note=note, decided_by=(by,), decided_at=self.now())
        self._record(
            request,
            decision,
            self.digest_of(request),
            how=how_decided(decision, is_remembered=False),
            answered_by=answered_by,
        )

    def record_question(
        self, request: ApprovalRequest, digest: str | None = None, abilities: UIAbilities | None = None
    ) -> None:
        """Log that an approver is about to be asked. Without a UI, there is no question.

        Args:
            request: The request.
            digest: Its digest; computed from the request if `None`.
            abilities: Optional members that the UI has; read from the UI if `None`.

        Raises:
            AuditError: The entry cannot be written. The question must not be asked.
        """
        if self.audit is None or self.ui is None:
            return
        abilities = abilities or UIAbilities.of(self.ui)
        if abilities.only_reads:
            return
        asked: Sequence[str] = () if abilities.asks is None else abilities.asks(request)
        digest = digest or self.digest_of(request)
        self._write(question_entry(request, digest=digest, at=self.now(), ui=type(self.ui).__name__, asked=asked))

    def log_questions(self, requests: Iterable[tuple[ApprovalRequest, str | None]], abilities: UIAbilities) -> bool:
        """Log that an approver is about to be asked, and return whether all entries were written.

        Args:
            requests: Each request, with its digest.
            abilities: Optional members that the UI has.
        """
        try:
            for request, digest in requests:
                self.record_question(request, digest, abilities)
        except AuditError:  # reported with the decision
            return False
        return True

    def record_outcome(
        self,
        request: ApprovalRequest,
        outcome: Outcome,
        *,
        error: BaseException | None = None,
        digest: str | None = None,
        started_at: datetime | None = None,
        settled_by: str | None = None,
        is_changed: bool = False,
    ) -> None:
        """Log the outcome of a call. A failure to write the entry is only reported, since the call cannot be undone.

        Args:
            request: The approved request, or a request with the same tool, call id and run id.
            outcome: The outcome.
            error: Exception that the call raised; only its type is written.
            digest: Digest of the decision; computed from the request if `None`.
            started_at: Time when the call began to run; `None` if it did not run.
            settled_by: Name of the person who settled an unknown outcome.
            is_changed: Whether the call ran with arguments that an approver changed.
        """
        if self.audit is None:
            return
        try:
            digest = self.digest_of(request) if digest is None else digest
            self.audit.record(
                outcome_entry(
                    request,
                    outcome,
                    digest=digest,
                    at=self.now(),
                    started_at=started_at,
                    error=error,
                    settled_by=settled_by,
                    is_changed=is_changed,
                )
            )
        except Exception as failure:  # noqa: BLE001 - the call has run, and its result must not be lost
            problem = failure if isinstance(failure, AuditError) else type(failure).__name__
            _log.error('The outcome of a call of %r was not written: %s', request.tool_name, problem)

    def _record(
        self, request: ApprovalRequest, decision: ApprovalDecision, digest: str | None, *, how: How, **details: Any
    ) -> None:
        if self.audit is not None:
            self._write(
                decision_entry(request, decision, digest=digest, at=self.now(), mode=self.mode, how=how, **details)
            )

    def digest_of(self, request: ApprovalRequest, override_args: Mapping[str, Any] | None = None) -> str | None:
        """Return the digest that an approval of a request is bound to; `None` for a request without canonical form."""
        args = request.args if override_args is None else override_args
        try:
            return digest(request.tool_name, args, request.bound, key=self._key)
        except NotCanonicalError:
            return None


def how_decided(decision: ApprovalDecision, *, is_remembered: bool) -> How:
    """Return what decided."""
    if is_remembered:
        return 'memory'
    rule: Any = decision.rule  # one of the names in `How`
    return 'person' if rule is None else rule
