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

from tool_approval.core.canonical import whole_characters
from tool_approval.core.decision import ApprovalDecision
from tool_approval.core.errors import ApprovalError, NotCanonicalError
from tool_approval.core.gate import Prepared, cannot_be_judged
from tool_approval.core.request import ApprovalRequest, CallFacts
from tool_approval.durable import RunRow
from tool_approval.inbox.entry import Content, write_content
from tool_approval.inbox.errors import RequestTooLarge

VERSION = 1
"""Of what is kept. A worker takes up only runs of its own version."""

_log = logging.getLogger('tool_approval')


class StoredCall(BaseModel):
    """One deferred call as it was prepared."""

    model_config = ConfigDict(extra='forbid')

    is_external: bool
    """Whether something other than the agent carries it out."""
    is_made: bool
    """Whether a toolset has made the request."""
    request: ApprovalRequest
    """The request, as far as it is JSON."""
    facts: CallFacts
    """The request's own: not all of them can be read from its metadata."""
    status: Literal['blocked', 'pre_approved', 'needs_approval']
    """The verdict about it."""
    reason: str | None
    """That of the verdict."""
    question: str | None = None
    """The id of the parked request, where an approver was asked."""
    denial: ApprovalDecision | None = None
    """The denial where no approver can be asked."""

    @property
    def id(self) -> str:
        """The call's id."""
        return str(self.request.tool_call_id)

    @property
    def restored(self) -> ApprovalRequest:
        """The request with its facts."""
        return self.request.changed(self.facts)


class DecidedExternal(BaseModel):
    """The decision about an external call."""

    model_config = ConfigDict(extra='forbid')

    refused: str | None = None
    """Why it is not to be done, where that is so."""
    args: dict[str, Any] = Field(default_factory=dict[str, Any])
    """The arguments to do it with."""
    binding: dict[str, Any] | None = None
    """The binding of its approval."""


class Decided(BaseModel):
    """The decisions about all calls of a stop."""

    model_config = ConfigDict(extra='forbid')

    results: DeferredToolResults
    """Of the calls that await approval."""
    externals: dict[str, DecidedExternal]
    """Of the external ones, by id."""


class Question(BaseModel):
    """A request to be parked."""

    model_config = ConfigDict(extra='forbid')

    id: str
    """Derived from what is asked, so that a replay finds the request that is there."""
    content: str
    """The text that is posted."""
    expires_at: AwareDatetime | None
    """When it is denied, by the time of day."""


class Stop(BaseModel):
    """Where a run stopped with deferred calls."""

    model_config = ConfigDict(extra='forbid')

    calls: list[StoredCall]
    """All of them, in the order of a batch."""
    decided: Decided | None = None
    """The decisions, once nothing is left to be asked."""
    questions: list[Question] = Field(default_factory=list[Question])
    """The questions to post now; empty while the run waits."""


class Versioned(BaseModel):
    """The part of a state that every version has."""

    version: int
    """Of the shape."""


class RunState(BaseModel):
    """The state that a segment begins with."""

    model_config = ConfigDict(extra='forbid')

    version: Literal[1] = VERSION
    """Of this shape."""
    history: list[ModelMessage]
    """The messages so far; the user's prompt alone before the first segment."""
    session: str | None = None
    """The conversation approvals are remembered for, where one was given."""
    deps: tuple[str, dict[str, Any]] | None = None
    """The name of a factory, and its arguments."""
    usage: RunUsage = Field(default_factory=RunUsage)
    """Of all segments so far."""
    rounds: int = 0
    """How often the agent was run so far; 0 before the first time."""
    stop: Stop | None = None
    """Where it stopped last."""


def is_readable(row: RunRow) -> bool:
    """Whether this version can go on with a run. One that is corrupt fails when it is read."""
    try:
        version = Versioned.model_validate_json(row.state).version
    except ValidationError:
        return True
    if version != VERSION:
        _log.error('A durable run was started by another version of tool_approval (%d): it waits', version)
    return version == VERSION


def read_state(row: RunRow) -> RunState:
    """The state that the last segment left.

    Raises:
        ApprovalError: It cannot be read.
    """
    try:
        return RunState.model_validate_json(row.state)
    except ValidationError:
        # Not the error's own text, which quotes.
        raise ApprovalError('the state of the run in the store cannot be read: it was changed') from None


def write_state(state: RunState, field: str) -> str:
    """The text that is kept.

    Raises:
        UserError: Some of it has no JSON form; the error names `field`.
    """
    try:
        return as_json(state.model_dump(mode='json', warnings=False))
    except PydanticSerializationError as error:
        raise UserError(f'The run cannot be kept: `{field}` has no JSON form ({error}).') from None


def stored_call(prepared: Prepared, *, is_external: bool, is_made: bool) -> StoredCall:
    """A call as it is kept. One that has no JSON form is blocked."""
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
        facts=request.facts,
        status=verdict.status,
        reason=verdict.reason,
    )


def plain_request(request: ApprovalRequest) -> ApprovalRequest:
    """The request as it is kept: with what of it is JSON."""
    kept = json.loads(write_content(Content(request=request)))['request']
    return ApprovalRequest.model_validate(kept).changed(request.facts)


def as_json(value: object) -> str:
    """Return a value as JSON in ASCII, which any database takes, without lone surrogates, which no reader takes."""
    text = json.dumps(value, separators=(',', ':'))
    if '\\ud' in text:
        value = json.loads(whole_characters(json.dumps(value, ensure_ascii=False)))
        text = json.dumps(value, separators=(',', ':'))
    return text


def now() -> datetime:
    """The time of day in whole milliseconds, which every store can keep."""
    moment = datetime.now(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
