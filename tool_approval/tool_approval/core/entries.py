"""What an audit sink is given to write: payloads, never full arguments, and no secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from .canonical import canonical_json
from .decision import ApprovalDecision, ApprovalMode
from .errors import NotCanonicalError
from .redact import Redactor
from .request import ApprovalRequest

Outcome = Literal['executed', 'failed', 'refused']
"""What came of a call: it ran, it ran and raised, or it was kept from running after all."""


def decision_entry(
    request: ApprovalRequest,
    decision: ApprovalDecision,
    *,
    digest: str | None,
    mode: ApprovalMode,
    is_remembered: bool,
) -> dict[str, Any]:
    """The entry of a decision.

    Args:
        request: What was decided.
        decision: What was decided of it, with `decided_at`.
        digest: What it is bound to; `None` for arguments that have no digest.
        mode: The controller's.
        is_remembered: Whether memory decided.
    """
    remembers = decision.approved and decision.remember != 'none' and decision.override_args is None
    remembers = remembers and not request.hides_arguments
    return {
        'event': 'decision',
        **_identity(request, digest),
        'payload': Redactor.of(request.args, request.payload).value(_writable(request.payload)),
        'approved': decision.approved,
        'note': None if decision.note is None else _note(decision.note, request, decision),
        'has_changed_arguments': decision.override_args is not None,
        'changed_payload': _changed(request, decision),
        'remember': decision.remember if remembers else 'none',
        'remember_option': decision.remember_option if remembers else None,
        'is_remembered': is_remembered,
        'decided_by': decision.decided_by,
        'decided_at': None if decision.decided_at is None else decision.decided_at.isoformat(),
        'mode': mode,
    }


def _changed(request: ApprovalRequest, decision: ApprovalDecision) -> Any:
    # Only what the payload has: an argument that is excluded there stays out of the log.
    if decision.override_args is None:
        return None
    args = {key: value for key, value in decision.override_args.items() if key in request.payload}
    secrets_of = (Redactor.of(decision.override_args, args), Redactor.of(request.args, request.payload))
    return secrets_of[0].value(secrets_of[1].value(_writable(args)))


def outcome_entry(
    request: ApprovalRequest, outcome: Outcome, *, digest: str | None, error: BaseException | None
) -> dict[str, Any]:
    """The entry of what came of a call. Of `error` only the type is written: its text may quote arguments."""
    return {
        'event': 'outcome',
        **_identity(request, digest),
        'outcome': outcome,
        'error': None if error is None else type(error).__name__,
    }


def _identity(request: ApprovalRequest, digest: str | None) -> dict[str, Any]:
    return {
        'tool_name': request.tool_name,
        'tool_call_id': request.tool_call_id,
        'run_id': request.run_id,
        'session_id': request.session_id,
        'caller': _text(request.metadata.get('caller')),
        'lineage': [level.model_dump() for level in request.lineage],
        'digest': digest,
    }


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _note(note: str, request: ApprovalRequest, decision: ApprovalDecision) -> str:
    for args in (request.args, decision.override_args or {}):
        note = Redactor.of(args, request.payload).text(note)
    # Half characters, as in the name of a file, cannot be written.
    return note.encode(errors='replace').decode()


def _writable(payload: Mapping[str, Any]) -> Any:
    try:
        canonical_json(payload)
    except NotCanonicalError:
        return None
    return payload
