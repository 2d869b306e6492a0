"""Approved or denied, by an approver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, field_validator

from .canonical import EXACT

ApprovalMode = Literal['interactive', 'approve_all', 'strict']
"""How requests are treated: ask, approve without asking, deny without asking. A block holds in all three."""

Remember = Literal['none', 'session', 'always']
"""How long an approval holds for the same payload."""

_MODES: dict[str, ApprovalMode] = {
    'interactive': 'interactive',
    'approve_all': 'approve_all',
    'strict': 'strict',
    'auto_approve': 'approve_all',
    'auto_deny': 'strict',
}


def read_mode(mode: str) -> ApprovalMode:
    """The mode that `mode` names; `auto_approve` and `auto_deny` are older names of `approve_all` and `strict`.

    Raises:
        ValueError: It names none.
    """
    if mode not in _MODES:
        raise ValueError(f'unknown mode {mode!r}; use one of {", ".join(_MODES)}')
    return _MODES[mode]


RULES = frozenset({'policy', 'memory', 'mode', 'timeout', 'ui', 'arguments', 'audit'})
"""What `decided_by` says where no person decided."""


class ApprovalDecision(BaseModel):
    """Approved or denied, and what goes with it."""

    model_config = ConfigDict(frozen=True, extra='forbid')

    approved: bool
    """Whether the call may run."""
    note: str | None = None
    """What the model is told of a denial, and the log of both."""
    override_args: Mapping[str, Any] | None = None
    """All arguments to run with instead, by parameter name. Such an approval is never remembered."""
    remember: Remember = 'none'
    """How long it holds for the same payload. Only approvals are remembered."""
    remember_option: str = EXACT
    """What it covers then: `exact`, or the kind of one of the request's `remember_options`."""
    decided_by: str | None = None
    """The person, or the rule: `policy`, `memory`, `mode`, `timeout`, `ui`, `arguments`, `audit`."""
    decided_at: AwareDatetime | None = None
    """When, in UTC. A time without a zone is refused."""

    @property
    def is_lasting(self) -> bool:
        """Whether it holds for later calls too: only an approval of the arguments as they are can."""
        return self.approved and self.remember != 'none' and self.override_args is None

    @field_validator('approved', mode='before')
    @classmethod
    def _is_plain(cls, value: object) -> object:
        # Only a real boolean approves: pydantic would take the text "yes", 1 and more for it.
        if not isinstance(value, bool):
            raise ValueError('`approved` must be True or False')  # noqa: TRY004 - pydantic reports it
        return value
