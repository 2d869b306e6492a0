"""Represent an approver's decision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, field_validator

from .canonical import EXACT

ApprovalMode = Literal['interactive', 'approve_all', 'strict']
"""How to treat requests: ask, approve without asking, or deny without asking. A blocked call never runs."""

Remember = Literal['none', 'session', 'always']
"""How long an approval also covers later calls with the same payload."""

_MODES: dict[str, ApprovalMode] = {
    'interactive': 'interactive',
    'approve_all': 'approve_all',
    'strict': 'strict',
    'auto_approve': 'approve_all',
    'auto_deny': 'strict',
}


def read_mode(mode: str) -> ApprovalMode:
    """Return the mode of the given name. `auto_approve` and `auto_deny` are older names of `approve_all` and `strict`.

    Raises:
        ValueError: The name is unknown.
    """
    if mode not in _MODES:
        raise ValueError(f'unknown mode {mode!r}; use one of {", ".join(_MODES)}')
    return _MODES[mode]


RULES = frozenset({'policy', 'memory', 'mode', 'timeout', 'ui', 'arguments', 'audit', 'other'})
"""Values of `decided_by` for decisions that no person made."""


class ApprovalDecision(BaseModel):
    """An approval or a denial. May also contain a note, changed arguments, and the lifetime of an approval."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    approved: bool
    """Whether the call may run."""
    note: str | None = None
    """Reason for a denial, which the model reads. The audit log also contains the notes of approvals."""
    override_args: Mapping[str, Any] | None = None
    """New arguments, by parameter name, in place of all arguments from the model. An approval with changed arguments is
    never remembered."""
    remember: Remember = 'none'
    """How long the approval also covers later calls with the same payload. Denials are never remembered."""
    remember_option: str = EXACT
    """Scope to remember: `exact`, or the `kind` of an option in the request's `remember_options`."""
    decided_by: str | None = None
    """Name of the approver, or of the rule: `policy`, `memory`, `mode`, `timeout`, `ui`, `arguments`,
    `audit`, `other`."""
    decided_at: AwareDatetime | None = None
    """Time of the decision in UTC. A time without a time zone is invalid."""

    @property
    def is_lasting(self) -> bool:
        """Whether to remember the decision. Only approvals of unchanged arguments are remembered."""
        return self.approved and self.remember != 'none' and self.override_args is None

    @field_validator('approved', mode='before')
    @classmethod
    def _is_plain(cls, value: object) -> object:
        # Only a boolean may approve: pydantic would also accept the text "yes", 1 and others.
        if not isinstance(value, bool):
            raise ValueError('`approved` must be True or False')  # noqa: TRY004 - pydantic reports it
        return value
