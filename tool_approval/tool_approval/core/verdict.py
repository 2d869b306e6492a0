"""What a tool's own logic, or a rule, says of a call before anybody is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from .presentation import ApprovalPresentation
from .request import ApprovalContext, ApprovalRequest, RememberOption, check_options


@dataclass(frozen=True, kw_only=True)
class ApprovalResult:
    """Blocked, pre-approved or in need of approval. Make one with the three class methods."""

    status: Literal['blocked', 'pre_approved', 'needs_approval']
    """Which of the three."""
    reason: str | None = None
    """Why it is blocked, or why consent is needed."""
    description: str | None = None
    """One line for a person."""
    described_by: str | None = field(default=None, compare=False)
    """The configuration that the description comes from; `None` if it is the tool's own."""
    payload: Mapping[str, Any] | None = None
    """What makes two requests the same for memory; all arguments if `None`."""
    presentation: ApprovalPresentation | None = None
    """What to show."""
    remember_options: tuple[RememberOption, ...] = ()
    """What a decision may cover beside the very same payload."""
    bound_to: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What must not change between consent and execution beside the arguments."""
    group_id: str | None = None
    """Requests of one group may be one question."""

    @classmethod
    def blocked(cls, reason: str) -> Self:
        """Never allowed, whatever the mode: nobody is asked."""
        return cls(status='blocked', reason=reason)

    @classmethod
    def pre_approved(cls) -> Self:
        """Runs without anybody being asked."""
        return cls(status='pre_approved')

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
    ) -> Self:
        """Somebody, or a mode, has to decide.

        Args:
            description: One line for a person; made from the payload if `None`.
            payload: What makes two requests the same for memory; all arguments if `None`.
            presentation: What to show.
            reason: Why consent is needed.
            remember_options: What a decision may cover beside the very same payload.
            bound_to: What must not change between consent and execution beside the arguments. The tool is asked
                again before it runs, and what it says then has to be the same.
            group_id: Requests of one group may be one question.

        Raises:
            ValueError: Two of the options are of the same kind.
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
        )

    @property
    def is_blocked(self) -> bool:
        """Whether the call is never allowed."""
        return self.status == 'blocked'

    @property
    def is_pre_approved(self) -> bool:
        """Whether the call runs without anybody being asked."""
        return self.status == 'pre_approved'

    @property
    def is_needs_approval(self) -> bool:
        """Whether somebody, or a mode, has to decide."""
        return self.status == 'needs_approval'


def make_request(context: ApprovalContext, verdict: ApprovalResult, **details: Any) -> ApprovalRequest:
    """The request that a verdict asks for.

    Args:
        context: The call. Its metadata's `run_id`, `session_id` and `lineage` are taken over.
        verdict: What the tool, or policy, says of it.
        **details: Further fields of the request.

    Raises:
        ValidationError: The lineage does not consist of `LineageEntry` or mappings of its fields, or a detail is wrong.
    """
    metadata = context.metadata
    fields: dict[str, Any] = {'bound_to': verdict.bound_to}
    fields |= {name: metadata[name] for name in ('run_id', 'session_id') if isinstance(metadata.get(name), str)}
    # Dropping what cannot be read would make a nested request look like one of the outermost run.
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
        metadata=metadata,
        **{**fields, **details},
    )


def _payload(context: ApprovalContext, verdict: ApprovalResult) -> Mapping[str, Any]:
    if verdict.payload is not None:
        return verdict.payload
    # Who blocks a call does not say which of its arguments are secret, and the refusal is written down.
    return {} if verdict.is_blocked else context.args


def _batch(metadata: Mapping[str, Any]) -> str | None:
    batch = metadata.get('batch_id')
    return batch if isinstance(batch, str) else None
