"""Represent an approver's decision."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple, Self, get_args

from pydantic import AwareDatetime, BaseModel, ConfigDict, field_validator, model_validator

from .canonical import EXACT

ApprovalMode = Literal['interactive', 'approve_all', 'strict']
"""How to treat requests: ask, approve without asking, or deny without asking. A blocked call never runs."""

Remember = Literal['none', 'session', 'always']
"""How long an approval also covers later calls with the same payload."""

AllowedAnswer = Literal['approve', 'edit', 'respond', 'remember', 'deny']
"""Kind of answer that a tool or a rule may allow: `approve` the unchanged call, `edit` its arguments and approve it,
`respond` in the tool's place, `remember` an approval. `deny` is always allowed."""

USUAL_ANSWERS: tuple[AllowedAnswer, ...] = ('approve', 'edit', 'remember', 'deny')
"""Answers that are allowed if neither the tool nor a rule names any. A tool that runs by itself needs no response."""

ALL_ANSWERS: tuple[AllowedAnswer, ...] = get_args(AllowedAnswer)
"""All kinds of answers, in the order in which UIs offer them."""


def read_answers(names: Collection[str]) -> tuple[AllowedAnswer, ...]:
    """Return the answers of the given names, in the order of `ALL_ANSWERS`.

    Raises:
        ValueError: A name is unknown, or `names` is a string.
    """
    unknown = [each for each in names if each not in ALL_ANSWERS]
    if isinstance(names, str) or unknown:
        raise ValueError(f'unknown answers {names!r}; use a list of {", ".join(ALL_ANSWERS)}')
    return tuple(each for each in ALL_ANSWERS if each in names)


def both_allow(
    one: tuple[AllowedAnswer, ...] | None, other: tuple[AllowedAnswer, ...] | None
) -> tuple[AllowedAnswer, ...] | None:
    """Return the answers that two lists allow. A list that is `None` sets no limit."""
    if one is None or other is None:
        return other if one is None else one
    return tuple([each for each in one if each in other])


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


RULES = frozenset({'policy', 'memory', 'mode', 'timeout', 'ui', 'arguments', 'audit', 'reviewer', 'other'})
"""Values of `decided_by` for decisions that no person made."""


def is_reserved(name: str) -> bool:
    """Return whether a person cannot have this name, because readers of the log would take it for a rule's."""
    return name.strip().casefold() in RULES


class ApprovalDecision(BaseModel):
    """An approval, a denial, or a response in the tool's place.

    May also contain a note, changed arguments, and the lifetime of an approval.
    """

    model_config = ConfigDict(frozen=True, extra='forbid')

    approved: bool
    """Whether the call may run."""
    note: str | None = None
    """Reason for a denial, which the model reads. The audit log also contains the notes of approvals."""
    override_args: Mapping[str, Any] | None = None
    """New arguments, by parameter name, in place of all arguments from the model. An approval with changed arguments is
    never remembered."""
    remember: Remember = 'none'
    """How long the decision also covers later calls with the same payload. A denial can be remembered for the session
    only."""
    remember_option: str = EXACT
    """Scope to remember: `exact`, or the `kind` of an option in the request's `remember_options`. A denial cannot have
    an option with bounds."""
    decided_by: tuple[str, ...] = ()
    """Names of the approvers, in the order in which they agreed, or only the name of the rule that decided: `policy`,
    `memory`, `mode`, `timeout`, `ui`, `arguments`, `audit`, `reviewer`, `other`. Empty if unknown."""
    decided_at: AwareDatetime | None = None
    """Time of the decision in UTC. A time without a time zone is invalid."""
    response: Any = None
    """The approver's own result for the call, a JSON value: the model gets it as the tool's result, and the tool does
    not run. `approved` is then `False`, so that code that does not know responses runs nothing. `None` stands for a
    missing response."""
    reviewer_would: Literal['approve', 'ask'] | None = None
    """Answer that the reviewer of `Reviewed(shadow=True)` would have given, for the log; `None` without one."""

    @property
    def rule(self) -> str | None:
        """Name of the rule that decided; `None` if people decided, named or not."""
        return self.decided_by[0] if len(self.decided_by) == 1 and self.decided_by[0] in RULES else None

    @property
    def people(self) -> tuple[str, ...]:
        """Names of the approvers; empty if a rule decided, or if no approver was named."""
        return () if self.rule is not None else self.decided_by

    @property
    def answers(self) -> tuple[AllowedAnswer, ...]:
        """Kinds of answers that the decision consists of. Each of them must be allowed."""
        if self.response is not None:
            return ('respond',)
        if not self.approved:
            return ('deny',) if self.remember == 'none' else ('deny', 'remember')
        kind: AllowedAnswer = 'approve' if self.override_args is None else 'edit'
        return (kind,) if self.remember == 'none' else (kind, 'remember')

    @property
    def is_lasting(self) -> bool:
        """Whether to remember the decision. Changed arguments are never remembered, and a denial not for always."""
        return (
            self.remember in (('session', 'always') if self.approved else ('session',)) and self.override_args is None
        )

    @field_validator('approved', mode='before')
    @classmethod
    def _is_plain(cls, value: object) -> object:
        # Only a boolean may approve: pydantic would also accept the text "yes", 1 and others.
        if not isinstance(value, bool):
            raise ValueError('`approved` must be True or False')  # noqa: TRY004 - pydantic reports it
        return value

    @model_validator(mode='after')
    def _responds_alone(self) -> Self:
        if self.response is not None and (self.approved or self.override_args is not None or self.remember != 'none'):
            raise ValueError('a `response` takes the place of the call, so `approved` must be False, and nothing else')
        return self


class Decided(NamedTuple):
    """A decided request."""

    decision: ApprovalDecision
    """The decision."""
    digest: str | None
    """Digest that the approval is bound to. The log has it, too. `None` if the arguments have no canonical form."""
    approvers: tuple[str, ...] = ()
    """Names of the people who approved, as far as known."""
    remembered: str | None = None
    """Id of the remembered approval that approved the request, if any."""
    is_persons: bool = False
    """Whether the UI returned the decision of a person, named or not."""
    expires_at: datetime | None = None
    """Time after which an approved call no longer runs; `None` for no limit."""
