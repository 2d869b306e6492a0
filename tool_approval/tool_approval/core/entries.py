"""Make the audit log's entries for a call. Entries contain the payload, not all arguments. Secrets are replaced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from .canonical import canonical_json, whole_characters
from .decision import ApprovalDecision, ApprovalMode
from .errors import NotCanonicalError
from .redact import Redactor
from .request import ApprovalRequest

Outcome = Literal['executed', 'failed', 'refused', 'responded']
"""Outcome of a call: it ran, it raised, it was refused right before it ran, or a person answered in its place."""


def decision_entry(
    request: ApprovalRequest,
    decision: ApprovalDecision,
    *,
    digest: str | None,
    mode: ApprovalMode,
    is_remembered: bool,
) -> dict[str, Any]:
    """Return the log entry of a decision.

    Args:
        request: Request that was decided.
        decision: The decision, with `decided_at`.
        digest: Digest that the decision is bound to; `None` if the arguments have no canonical form.
        mode: The controller's mode.
        is_remembered: Whether the decision came from the memory.
    """
    override = decision.override_args
    is_lasting = decision.is_lasting and not request.hides_arguments
    redactor = Redactor.of(request.args, request.payload)
    return {
        'event': 'decision',
        **_identity(request, digest),
        'payload': redactor.value(
            request.payload if digest is not None and request.payload is request.args else _writable(request.payload)
        ),
        'approved': decision.approved,
        'note': None if decision.note is None else _note(decision.note, request, decision, redactor),
        'has_changed_arguments': override is not None,
        'changed_payload': None if override is None else _changed(request, override, redactor),
        **({} if decision.response is None else {'response': redactor.value(decision.response)}),
        'remember': decision.remember if is_lasting else 'none',
        'remember_option': decision.remember_option if is_lasting else None,
        'is_remembered': is_remembered,
        'decided_by': decision.decided_by,
        'decided_at': None if decision.decided_at is None else decision.decided_at.isoformat(),
        'mode': mode,
    }


def _changed(request: ApprovalRequest, override_args: Mapping[str, Any], redactor: Redactor) -> Any:
    # Arguments that the payload excludes stay out of the log.
    args = {key: value for key, value in override_args.items() if key in request.payload}
    return Redactor.of(override_args, args).value(redactor.value(_writable(args)))


def outcome_entry(
    request: ApprovalRequest,
    outcome: Outcome,
    *,
    digest: str | None,
    error: BaseException | None,
    settled_by: str | None = None,
) -> dict[str, Any]:
    """Return the log entry of an outcome. Only the type of `error` is written, because its text may quote arguments."""
    return {
        'event': 'outcome',
        **_identity(request, digest),
        'outcome': outcome,
        'error': None if error is None else type(error).__name__,
        **({} if settled_by is None else {'settled_by': whole_characters(settled_by)}),
    }


def _identity(request: ApprovalRequest, digest: str | None) -> dict[str, Any]:
    return {
        'tool_name': request.tool_name,
        'tool_call_id': request.tool_call_id,
        'run_id': request.run_id,
        'session_id': request.session_id,
        'caller': request.facts.caller,
        'lineage': [level.model_dump() for level in request.lineage],
        'digest': digest,
    }


def _note(note: str, request: ApprovalRequest, decision: ApprovalDecision, redactor: Redactor) -> str:
    of_changed = Redactor.of(decision.override_args or {}, request.payload)
    return whole_characters(of_changed.text(redactor.text(note)))


def _writable(payload: Mapping[str, Any]) -> Any:
    try:
        canonical_json(payload)
    except NotCanonicalError:
        return None
    return payload
