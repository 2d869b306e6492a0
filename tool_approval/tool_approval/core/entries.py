"""Make the audit log's entries for a call. Entries contain the payload, not all arguments. Secrets are replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, cast

from .canonical import canonical_json, whole_characters
from .decision import ApprovalDecision, ApprovalMode
from .errors import NotCanonicalError
from .jcs import public_digest
from .request import ApprovalRequest

if TYPE_CHECKING:
    from .redact import Redactor

Outcome = Literal['executed', 'failed', 'refused', 'expired', 'deferred', 'responded']
"""Outcome of a call: it ran, it raised, it was refused right before it ran, its approval expired before it ran, it was
put off without a result, or a person answered in its place."""

How = Literal['person', 'memory', 'policy', 'mode', 'timeout', 'ui', 'arguments', 'audit', 'reviewer', 'other']
"""Source of a decision: a person, a remembered approval, or one of the rules that `decided_by` names."""


def question_entry(
    request: ApprovalRequest, *, digest: str | None, at: datetime, ui: str, asked: Sequence[str]
) -> dict[str, Any]:
    """Return the log entry of a question.

    Args:
        request: Request that is about to be shown.
        digest: Digest of the request.
        at: Time of the question.
        ui: Name of the UI's class.
        asked: Names of the people and groups who are asked, as far as the UI knows them.
    """
    names = [whole_characters(each) for each in asked]
    return {'event': 'question', **_content(request, digest, at), 'ui': ui, 'asked': names}


def unasked_entry(request: ApprovalRequest, *, digest: str | None, at: datetime, note: str | None) -> dict[str, Any]:
    """Return the log entry of a call without a question: it is about to run, or it is blocked.

    Args:
        request: Request that describes the call.
        digest: Digest of the call.
        at: Time of the entry.
        note: Why the call is blocked; `None` if it runs.
    """
    content = _content(request, digest, at)
    if note is None:
        return {'event': 'unasked', **content, 'decided_by': ['policy']}
    redacted = whole_characters(_redactor(request.args, request.payload).text(note))
    return {'event': 'blocked', **content, 'decided_by': ['policy'], 'note': redacted}


def decision_entry(
    request: ApprovalRequest,
    decision: ApprovalDecision,
    *,
    digest: str | None,
    at: datetime,
    mode: ApprovalMode,
    how: How,
    question_digest: str | None = None,
    changed_to: Mapping[str, Any] | None = None,
    remembered_at: datetime | None = None,
    expires_at: datetime | None = None,
    answered_by: str | None = None,
) -> dict[str, Any]:
    """Return the log entry of a decision.

    Args:
        request: Request that was decided.
        decision: The decision, with `decided_at`.
        digest: Digest that the decision is bound to; `None` if the arguments have no canonical form.
        at: Time of the entry.
        mode: The controller's mode.
        how: Source of the decision.
        question_digest: Digest of the call as it was asked about, if the approver changed arguments; otherwise, it is
            `digest`.
        changed_to: The arguments as the tool gets them, if the approver changed arguments and the tool takes these.
        remembered_at: Time of the remembered approval, if the decision came from the memory.
        expires_at: Time after which an approved call no longer runs; `None` for no limit.
        answered_by: Name that other code gave for who decided, if it did. Nothing has checked it.
    """
    override = decision.override_args
    is_lasting = decision.is_lasting and not request.hides_arguments
    redactor = _redactor(request.args, request.payload)
    content = _content(request, digest, at, redactor)
    changed: Any = None
    if override is not None:
        taken = override if changed_to is None else changed_to
        changed = _changed(request, taken, redactor)
        content |= _digests_of_changed(request, taken, changed)
    return {
        'event': 'decision',
        **content,
        'question_digest': digest if question_digest is None else question_digest,
        'approved': decision.approved,
        'note': None if decision.note is None else _note(decision.note, request, decision, redactor),
        'has_changed_arguments': override is not None,
        'changed_payload': changed,
        **({} if decision.response is None else {'response': redactor.value(decision.response)}),
        'remember': decision.remember if is_lasting else 'none',
        'remember_option': decision.remember_option if is_lasting else None,
        'how': how,
        'decided_by': list(decision.decided_by),
        'decided_at': _text(decision.decided_at),
        'remembered_at': _text(remembered_at),
        'expires_at': _text(expires_at),
        **({} if decision.reviewer_would is None else {'reviewer_would': decision.reviewer_would}),
        **({} if answered_by is None else {'answered_by': redactor.text(whole_characters(answered_by))}),
        'mode': mode,
    }


def changed_payload(request: ApprovalRequest, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments that an approver wrote, as far as the payload of the request shows the given ones.

    Attack: the payload masks the number of a card, which the approver corrects. Where the payload shows another value
    than the given one, only the tool knows what it would show now (test_a_value_that_the_payload_masks_stays_masked).

    Args:
        request: The request as it was made.
        args: The new arguments, by parameter name.
    """
    return {
        key: _masked(value, request.args.get(key, _NOTHING_GIVEN), request.payload[key])
        for key, value in args.items()
        if key in request.payload
    }


_NOTHING_GIVEN = object()


def _masked(new: Any, given: Any, shown: Any) -> Any:
    if given is shown or given == shown:
        return new
    if isinstance(new, Mapping) and isinstance(given, Mapping) and isinstance(shown, Mapping):
        parts = cast('tuple[Mapping[str, Any], ...]', (new, given, shown))
        return {
            key: _masked(value, parts[1].get(key, _NOTHING_GIVEN), parts[2][key])
            for key, value in parts[0].items()
            if key in parts[2]
        }
    from .redact import REDACTED

    return REDACTED


def _redactor(args: Mapping[str, Any], payload: Mapping[str, Any]) -> Redactor:
    # Imported here, because its patterns are slow to compile, and a call that is only judged is not logged.
    from .redact import Redactor

    return Redactor.of(args, payload)


def _changed(request: ApprovalRequest, args: Mapping[str, Any], redactor: Redactor) -> Any:
    changed = changed_payload(request, args)
    return _redactor(args, changed).value(redactor.value(_writable(changed)))


def _digests_of_changed(request: ApprovalRequest, args: Mapping[str, Any], changed: Any) -> dict[str, Any]:
    if changed_payload(request, args) != {key: value for key, value in args.items() if key in request.payload}:
        return {'public_digest': None, 'no_public_digest': 'the payload masks arguments that the approver changed'}
    return _digests(request.tool_name, changed)


def outcome_entry(
    request: ApprovalRequest,
    outcome: Outcome,
    *,
    digest: str | None,
    at: datetime,
    started_at: datetime | None = None,
    error: BaseException | None = None,
    settled_by: str | None = None,
    is_changed: bool = False,
) -> dict[str, Any]:
    """Return the log entry of an outcome.

    Args:
        request: The call as it ran, or as it would have run.
        outcome: The outcome.
        digest: Digest of the decision.
        at: Time of the entry.
        started_at: Time when the call began to run; `None` if it did not run.
        error: Exception that the call raised. Only its type is written, because its text may quote arguments.
        settled_by: Name of the person who settled an unknown outcome.
        is_changed: Whether the call ran with arguments that an approver changed.
    """
    redactor = _redactor(request.args, request.payload)
    if is_changed:
        digests = _digests_of_changed(request, request.args, _changed(request, request.args, redactor))
    else:
        # The arguments of a call that has run were read when its approval was checked.
        is_sound = started_at is not None and digest is not None and request.payload is request.args
        digests = _digests(
            request.tool_name, redactor.value(request.payload if is_sound else _writable(request.payload))
        )
    # The clock may have been set back.
    took = None if started_at is None else max(0, round((at - started_at) / timedelta(milliseconds=1)))
    return {
        'event': 'outcome',
        **_identity(request, digest, at),
        **digests,
        'outcome': outcome,
        'error': None if error is None else type(error).__name__,
        'started_at': _text(started_at),
        'took_ms': took,
        **({} if settled_by is None else {'settled_by': whole_characters(settled_by)}),
    }


def _content(
    request: ApprovalRequest, digest: str | None, at: datetime, redactor: Redactor | None = None
) -> dict[str, Any]:
    redactor = redactor or _redactor(request.args, request.payload)
    is_sound = digest is not None and request.payload is request.args
    payload = redactor.value(request.payload if is_sound else _writable(request.payload))
    rules = [rule.model_dump(mode='json', exclude_defaults=True) for rule in request.approvers]
    who = {'approvers': rules} if rules else {}
    return {**_identity(request, digest, at), 'payload': payload, **_digests(request.tool_name, payload), **who}


def _digests(tool_name: str, payload: Any) -> dict[str, Any]:
    found, problem = public_digest(tool_name, payload)
    return {'public_digest': found, 'no_public_digest': problem}


def _identity(request: ApprovalRequest, digest: str | None, at: datetime) -> dict[str, Any]:
    return {
        'at': at.isoformat(),
        'tool_name': request.tool_name,
        'tool_call_id': request.tool_call_id,
        'run_id': request.run_id,
        'session_id': request.session_id,
        'caller': request.facts.caller,
        'requester': None if request.facts.requester is None else whole_characters(request.facts.requester),
        'lineage': [level.model_dump() for level in request.lineage],
        'digest': digest,
    }


def _text(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def _note(note: str, request: ApprovalRequest, decision: ApprovalDecision, redactor: Redactor) -> str:
    of_changed = _redactor(decision.override_args or {}, request.payload)
    return whole_characters(of_changed.text(redactor.text(note)))


def _writable(payload: Mapping[str, Any]) -> Any:
    try:
        canonical_json(payload)
    except NotCanonicalError:
        return None
    return payload
