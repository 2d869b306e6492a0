"""Represent the verdict on a call, from a tool's check or from a rule."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self

from .decision import AllowedAnswer, read_answers
from .presentation import ApprovalPresentation
from .request import ApprovalContext, ApprovalRequest, CallFacts, RememberOption, check_options, describe


@dataclass(frozen=True, kw_only=True)
class ApprovalResult:
    """Verdict on a call: blocked, pre-approved or needs approval. Use the class methods to create a verdict."""

    status: Literal['blocked', 'pre_approved', 'needs_approval']
    """The verdict."""
    reason: str | None = None
    """Why the call is blocked or needs approval."""
    description: str | None = None
    """One line for the approver."""
    described_by: str | None = field(default=None, compare=False)
    """Configuration file that sets the description; `None` if the tool describes the call."""
    payload: Mapping[str, Any] | None = None
    """Values by which the memory identifies the call; all arguments if `None`."""
    presentation: ApprovalPresentation | None = None
    """Content to show."""
    remember_options: tuple[RememberOption, ...] = ()
    """Scopes, wider than the exact payload, for which a decision may be remembered."""
    bound_to: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Values, besides the arguments, that must not change between approval and execution."""
    group_id: str | None = None
    """Id of a group of requests that a UI may ask about in one question."""
    answers: tuple[AllowedAnswer, ...] | None = None
    """Answers that are allowed; see `ApprovalRequest.answers`."""

    @classmethod
    def blocked(cls, reason: str, payload: Mapping[str, Any] | None = None) -> Self:
        """Refuse the call in every mode, without asking.

        Args:
            reason: Why the call is blocked.
            payload: Values to log. `None` logs no arguments of a tool with a check, because only the check knows which
                of them are secret.
        """
        return cls(status='blocked', reason=reason, payload=payload)

    @classmethod
    def pre_approved(cls, payload: Mapping[str, Any] | None = None) -> Self:
        """Let the call run without asking. `payload` has the values to log; `None` logs all arguments."""
        return cls(status='pre_approved', payload=payload)

    @classmethod
    def needs_approval(
        cls,
        description: str | None = None,
        payload: Mapping[str, Any] | None = None,
        presentation: ApprovalPresentation | None = None,
        reason: str | None = None,
        remember_options: tuple[RememberOption, ...] = (),
        bound_to: Mapping[str, Any] | None = None,
        group_id: str | None = None,
        answers: Collection[AllowedAnswer] | None = None,
    ) -> Self:
        """Require that an approver, the memory or the mode decides.

        Args:
            description: One line for the approver; made from the payload if `None`.
            payload: Values by which the memory identifies the call; all arguments if `None`.
            presentation: Content to show.
            reason: Why the call needs approval.
            remember_options: Scopes, wider than the exact payload, for which a decision may be remembered.
            bound_to: Values, besides the arguments, that must not change between approval and execution. Right before
                the execution, the tool's check runs again and must return the same values as before.
            group_id: Id of a group of requests that a UI may ask about in one question.
            answers: Answers that are allowed, beside `deny`; `None` allows all but `respond`.

        Raises:
            ValueError: Two options have the same kind, or an answer is unknown.
        """
        return cls(
            status='needs_approval',
            description=description,
            payload=payload,
            presentation=presentation,
            reason=reason,
            remember_options=check_options(tuple(remember_options)),
            bound_to=bound_to or {},
            group_id=group_id,
            answers=None if answers is None else read_answers(answers),
        )

    @property
    def is_blocked(self) -> bool:
        """Whether the call must not run."""
        return self.status == 'blocked'

    @property
    def is_pre_approved(self) -> bool:
        """Whether the call runs without asking."""
        return self.status == 'pre_approved'

    @property
    def is_needs_approval(self) -> bool:
        """Whether an approver, the memory or the mode must decide."""
        return self.status == 'needs_approval'


def make_request(
    context: ApprovalContext, verdict: ApprovalResult, facts: CallFacts | None = None, **details: Any
) -> ApprovalRequest:
    """Make an approval request from a verdict.

    Args:
        context: The call, whose metadata provides `run_id`, `session_id` and `lineage`.
        verdict: Verdict of the tool or the policy.
        facts: Facts of which the metadata was made. `None` reads the metadata.
        **details: Further fields of the request.

    Raises:
        ValidationError: The lineage contains something other than `LineageEntry` objects or mappings of their fields,
            or a detail is invalid.
    """
    metadata = context.metadata
    if facts is not None and verdict in (ASKS, RUNS):  # most frequent case: nothing of a tool's own has to be validated
        return ApprovalRequest.of_call(
            context.tool_name,
            context.args,
            facts,
            description=describe(context.tool_name, context.args),
            group_id=_batch(metadata),
            metadata=metadata,
            used=context.used,
            **details,
        )
    fields: dict[str, Any] = {'bound_to': verdict.bound_to}
    fields |= {name: metadata[name] for name in ('run_id', 'session_id') if isinstance(metadata.get(name), str)}
    # If an unreadable lineage were dropped, a nested request would look like a request of the outermost run.
    if metadata.get('lineage') is not None:
        fields['lineage'] = metadata['lineage']
    return ApprovalRequest(
        tool_name=context.tool_name,
        args=context.args,
        description=verdict.description or '',
        described_by=verdict.described_by,
        payload=_payload(context, verdict),
        presentation=verdict.presentation,
        group_id=verdict.group_id or _batch(metadata),
        reason=verdict.reason,
        remember_options=verdict.remember_options,
        answers=verdict.answers,
        used=context.used,
        metadata=metadata,
        **{**fields, **details},
    )


ASKS: Final = ApprovalResult.needs_approval()
"""Verdict that a call needs approval, without anything of a tool's own."""

RUNS: Final = ApprovalResult.pre_approved()
"""Verdict that a call needs no approval, without anything of a tool's own."""


def _payload(context: ApprovalContext, verdict: ApprovalResult) -> Mapping[str, Any]:
    if verdict.payload is not None:
        return verdict.payload
    # A block does not say which arguments are secret, so none of them is logged.
    return {} if verdict.is_blocked else context.args


def _batch(metadata: Mapping[str, Any]) -> str | None:
    batch = metadata.get('batch_id')
    return batch if isinstance(batch, str) else None
