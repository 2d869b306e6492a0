"""Keep the state of a durable run between its segments."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError
from pydantic_ai import DeferredToolResults, RunUsage
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage
from pydantic_core import PydanticSerializationError

from tool_approval.core.calls import Prepared, cannot_be_judged
from tool_approval.core.canonical import whole_characters
from tool_approval.core.decision import ApprovalDecision
from tool_approval.core.errors import ApprovalError, NotCanonicalError
from tool_approval.core.request import ApprovalRequest, CallFacts, LineageEntry
from tool_approval.durable import RunRow
from tool_approval.inbox.entry import Content, write_content
from tool_approval.inbox.errors import RequestTooLarge

VERSION = 2
"""Version of the stored state. A worker executes a run only if the run's version is the worker's own."""

_log = logging.getLogger('tool_approval')


class StoredCall(BaseModel):
    """One deferred call and its verdict, as stored between segments."""

    model_config = ConfigDict(extra='forbid')

    is_external: bool
    """Whether the call is executed outside of the agent."""
    is_made: bool
    """Whether a toolset has made the request."""
    request: ApprovalRequest
    """Request, with only the fields that have a JSON form."""
    facts: CallFacts
    """Facts about the call. The request's metadata may lack some of these facts."""
    status: Literal['blocked', 'pre_approved', 'needs_approval']
    """Status of the verdict."""
    reason: str | None
    """Reason for the verdict."""
    question: str | None = None
    """Id of the parked request, if an approver was asked."""
    denial: ApprovalDecision | None = None
    """Denial, if no approver can be asked."""

    @property
    def id(self) -> str:
        """Id of the call."""
        return str(self.request.tool_call_id)

    @property
    def restored(self) -> ApprovalRequest:
        """Request with its facts."""
        return self.request.changed(self.facts)


class DecidedExternal(BaseModel):
    """The decision about an external call."""

    model_config = ConfigDict(extra='forbid')

    refused: str | None = None
    """Reason for the refusal, or `None` if the call may run."""
    response: Any = None
    """The approver's response in the tool's place, or `None`. Calls that await approval may have one too."""
    args: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Arguments with which an allowed call runs."""
    binding: dict[str, Any] | None = None
    """Binding of the call's approval."""
    nested: str | None = None
    """Id of the nested run that the call has started, if any."""

    @property
    def is_settled(self) -> bool:
        """Whether the call is answered without running."""
        return self.refused is not None or self.response is not None


class StopDecisions(BaseModel):
    """The decisions about all calls of a `Stop`."""

    model_config = ConfigDict(extra='forbid')

    results: DeferredToolResults
    """Results for the calls that await approval."""
    externals: dict[str, DecidedExternal]
    """Decisions about external calls, and responses to other calls, by call id."""


class Question(BaseModel):
    """A request that is to be parked in the inbox."""

    model_config = ConfigDict(extra='forbid')

    id: str
    """Id that is derived from the request, so that a replay finds the existing question."""
    content: str
    """Content to post."""
    expires_at: AwareDatetime | None
    """Date and time when the request expires and is denied, or `None` if the request does not expire."""
    about: tuple[str, int] | None = None
    """Key and attempt of the call of unknown outcome that the question is about, or `None`."""


class Stop(BaseModel):
    """The point at which a run stopped with deferred calls."""

    model_config = ConfigDict(extra='forbid')

    calls: list[StoredCall]
    """The deferred calls: first those that await approval, then the external calls."""
    decided: StopDecisions | None = None
    """Decisions about all calls, or `None` while questions are open."""
    questions: list[Question] = Field(default_factory=list[Question])
    """Questions to post now. The list is empty while the run waits."""


class Versioned(BaseModel):
    """The part of a stored state that every version contains."""

    version: int
    """Version of the stored state."""


class Used(BaseModel):
    """The part of a stored state that says what a run has used."""

    usage: RunUsage
    """Usage of all segments so far."""


class RunState(BaseModel):
    """Input of a segment."""

    model_config = ConfigDict(extra='forbid')

    version: Literal[2] = VERSION
    """Version of the stored state."""
    history: list[ModelMessage]
    """Messages so far. Before the first segment, the list contains only the user's prompt."""
    session: str | None = None
    """Conversation for which approvals are remembered, or `None` if no session was given."""
    deps: tuple[str, dict[str, Any]] | None = None
    """Name of a factory, and its arguments."""
    usage: RunUsage = Field(default_factory=RunUsage)
    """Usage of all segments so far."""
    rounds: int = 0
    """Number of agent runs so far."""
    lineage: list[LineageEntry] = Field(default_factory=list[LineageEntry])
    """For a nested run, the runs and calls above it, outermost first."""
    stop: Stop | None = None
    """Point at which the run last stopped."""


def is_readable(row: RunRow) -> bool:
    """Whether this package version can continue a run. A corrupt state counts as readable, and the run then fails."""
    try:
        version = Versioned.model_validate_json(row.state).version
    except ValidationError:
        return True
    if version != VERSION:
        _log.error('A durable run cannot be resumed: it was stored by another version of tool_approval (%d)', version)
    return version == VERSION


def read_state(row: RunRow) -> RunState:
    """Return the state that the last segment left.

    Raises:
        ApprovalError: The state cannot be read.
    """
    try:
        return RunState.model_validate_json(row.state)
    except ValidationError:
        # Not the error's own text, which quotes the state.
        raise ApprovalError('the stored state of the run cannot be read: another program changed it') from None


def usage_of(row: RunRow | None) -> RunUsage:
    """Return the usage of a run, with that of the runs nested in it; none if the run or its state is gone."""
    try:
        return RunUsage() if row is None else Used.model_validate_json(row.state).usage
    except ValidationError:
        return RunUsage()


def ended_state(row: RunRow, state: RunState) -> str:
    """Return the state to store for a run that has ended: the stored one, with the usage of the last segment."""
    used = Used(usage=state.usage).model_dump(mode='json')
    return as_json({**json.loads(row.state), **used})


def write_state(state: RunState, field: str) -> str:
    """Return the text to store.

    Raises:
        UserError: Part of the state has no JSON form. The message names `field`.
    """
    try:
        return as_json(state.model_dump(mode='json', warnings=False))
    except PydanticSerializationError as error:
        raise UserError(f'The run cannot be stored: `{field}` has no JSON form ({error}).') from None


def stored_call(prepared: Prepared, *, is_external: bool, is_made: bool) -> StoredCall:
    """Return a call in its stored form. A call without a JSON form is blocked."""
    request, verdict = prepared.request, prepared.verdict
    try:
        plain = plain_request(request)
    except (NotCanonicalError, RequestTooLarge) as error:
        reason = cannot_be_judged(request.tool_name, str(error))
        request = request.changed(
            request.facts._replace(is_blocked=True, block_reason=reason), args={}, payload={}, presentation=None
        )
        plain = plain_request(request)
    return StoredCall(
        is_external=is_external,
        is_made=is_made,
        request=plain,
        facts=request.facts._replace(said=()),  # the history has them
        status=verdict.status,
        reason=verdict.reason,
    )


def plain_request(request: ApprovalRequest) -> ApprovalRequest:
    """Return the request as it is stored, with only the fields that have a JSON form."""
    kept = json.loads(write_content(Content(request=request)))['request']
    return ApprovalRequest.model_validate(kept).changed(request.facts)


def as_json(value: object) -> str:
    """Return a value as JSON in ASCII, without lone surrogates. Every database and every reader accepts the result."""
    text = json.dumps(value, separators=(',', ':'))
    if '\\ud' in text:
        value = json.loads(whole_characters(json.dumps(value, ensure_ascii=False)))
        text = json.dumps(value, separators=(',', ':'))
    return text


def now() -> datetime:
    """Return the time of day in whole milliseconds, which every store can hold."""
    moment = datetime.now(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
