"""A request as the JSON API gives it; the same facts and lines as the page and the terminal show."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tool_approval.answering import answer_options, editable
from tool_approval.core.canonical import EXACT
from tool_approval.core.decision import Remember
from tool_approval.core.request import ApprovalRequest, LineageEntry
from tool_approval.display import LineKind, display, facts, warnings_of
from tool_approval.display.digest import left_out_keys
from tool_approval.durable.steering import RunSummary, Verdict
from tool_approval.inbox import Approver, InboxEntry, NotAnApprover, State


def time_of(moment: datetime) -> str:
    """The date and the time in UTC, for readers without script; with it, the page shows the reader's own."""
    return f'{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC'


class ApiModel(BaseModel):
    """What is sent or received; the API's description takes its texts from the docstrings of the fields."""

    model_config = ConfigDict(from_attributes=True, use_attribute_docstrings=True)


class FactView(ApiModel):
    """Who asks, where or why."""

    label: str
    """`agent`, `worker`, `toolset`, `about`, `why`, `grants`, `file` or `in`."""
    text: str
    """Escaped, on one line."""


class SpanView(ApiModel):
    """A part of a line that is drawn differently."""

    start: int
    """Index of its first character; of Unicode code points, not of UTF-16 units."""
    end: int
    """Index after its last character."""
    role: Literal['escape', 'key', 'string', 'keyword']
    """What it is."""


class LineView(ApiModel):
    """One line to draw."""

    kind: LineKind
    """`meta` and `cut` are words of this program; all others quote a model or a tool, and must look so."""
    text: str
    """No character in it does anything but draw itself."""
    number: int | None
    """Its number in the text it is of, from 1."""
    is_first: bool
    """Of a `command`: whether the command begins here."""
    spans: tuple[SpanView, ...]
    """In order, apart from each other."""


class ChoiceView(ApiModel):
    """What a remembered approval covers."""

    option: str
    """For `remember_option`."""
    label: str
    """For people, escaped."""


class AnswerView(ApiModel):
    """What somebody decided."""

    approved: bool
    """Whether the call may run."""
    by: str
    """The person's id."""
    by_name: str | None
    """What the person is called."""
    note: str | None
    """What the model is told of a denial. Hostile text."""
    override_args: dict[str, Any] | None
    """All arguments to run with instead, but those that the tool keeps from being shown."""
    remember: Remember
    """For how long."""
    remember_option: str
    """For what."""
    at: datetime
    """When, in UTC."""


class RequestView(ApiModel):
    """A request. What is escaped is said to be; all other texts are as the model wrote them."""

    id: str
    """Its id, unguessable."""
    state: State
    """`pending` while it is open."""
    digest: str
    """Of all that is shown. A decision has to carry it."""
    tool_name: str
    """The name the model calls the tool by."""
    description: str
    """One line about the call; it says so where it comes from a configuration."""
    args: dict[str, Any]
    """Argument values by name, without those that the tool keeps from being shown."""
    hidden_args: tuple[str, ...]
    """The names of those."""
    agent: str | None
    """The agent that calls the tool."""
    run_id: str | None
    """Its run."""
    lineage: tuple[LineageEntry, ...]
    """The agents and tool calls above, from the outermost run inwards."""
    group: str | None
    """Requests with the same one belong together."""
    facts: tuple[FactView, ...]
    """What stands above the content."""
    warnings: tuple[str, ...]
    """Sentences about characters that are not what they seem; escaped."""
    lines: tuple[LineView, ...]
    """The content, in order."""
    is_whole: bool
    """Whether nothing was left out of `lines`, and nothing by the tool. If not, no approval may be remembered."""
    remember: tuple[Remember, ...]
    """For how long an approval may be remembered, beside `none`."""
    choices: tuple[ChoiceView, ...]
    """For what."""
    can_answer: bool
    """Whether it is open, and this visitor may answer it."""
    why_not: str | None
    """Why the visitor may not."""
    posted_at: datetime
    """When it was posted, in UTC."""
    expires_at: datetime | None
    """When the wait is to end, in UTC."""
    settled_at: datetime | None
    """When it ceased to be open, in UTC."""
    outcome: str
    """What became of it, as a sentence without the time, escaped; empty while it is open."""
    answer: AnswerView | None
    """What was answered, where somebody has."""


class RequestList(ApiModel):
    """Several requests."""

    requests: tuple[RequestView, ...]
    """Open ones the oldest first, settled ones the newest first."""
    more: int | None = None
    """Of open ones: how many there are beyond these."""


class RunList(ApiModel):
    """Several durable runs."""

    runs: tuple[RunSummary, ...]
    """The newest first."""


class RunBody(ApiModel):
    """Which run is meant. Anything that is not named here is refused."""

    model_config = ConfigDict(extra='forbid', strict=True)

    run: str = Field(max_length=1_000)
    """Its id."""


class SettleBody(RunBody):
    """The answer about an unknown call. Anything that is not named here is refused."""

    key: str = Field(max_length=1_000)
    """Of the execution."""
    attempt: int
    """Of the execution."""
    verdict: Verdict
    """`result` if it happened, `again` to run it again, `give_up` to leave it unknown."""
    result: Any = None
    """Its return value, for `result`."""


class SessionView(ApiModel):
    """Who is logged in."""

    id: str
    """The person's id."""
    name: str | None
    """What the person is called."""
    csrf_token: str
    """To be sent with each change, as the header `X-CSRF-Token`."""


class ErrorBody(ApiModel):
    """Why something was refused."""

    code: str
    """For programs."""
    message: str
    """For people."""


class ErrorView(ApiModel):
    """Something was refused, and nothing was changed."""

    error: ErrorBody
    """Why."""


class DecisionBody(ApiModel):
    """An answer. Anything that is not named here is refused."""

    model_config = ConfigDict(extra='forbid', strict=True)

    digest: str = Field(max_length=200)
    """The request's, as this person was shown it."""
    approved: bool
    """`true` or `false`, and nothing that is only like it."""
    note: str | None = Field(default=None, max_length=10_000)
    """What the model is told of a denial, and the log of both."""
    override_args: dict[str, Any] | None = None
    """All arguments to run with instead, but those that the tool keeps from being shown."""
    remember: Remember = 'none'
    """How long an approval is to hold for the same payload."""
    remember_option: str = Field(default=EXACT, max_length=200)
    """For what then: one of `choices`."""


def group_of(request: ApprovalRequest) -> str | None:
    """What requests that belong together have in common: a group that their tool names, or one response of a model."""
    if request.group_id is not None:
        return f'group {request.run_id} {request.group_id}'
    return response_of(request)


def response_of(request: ApprovalRequest) -> str | None:
    """What the requests of one response of a model have in common; `None` for a request that came alone."""
    batch = request.facts.batch_id
    return None if batch is None else f'batch {request.run_id} {batch}'


def why_not(entry: InboxEntry, visitor: Approver) -> str | None:
    """Why a visitor may not answer an open request; `None` where they may."""
    try:
        entry.check_approver(visitor)
    except NotAnApprover as error:
        return error.problem
    return None


def view_of(entry: InboxEntry, visitor: Approver, *, whole: bool = False) -> RequestView:
    """A request as a visitor is shown it: with the beginning and the end of what is long, or the whole of it."""
    request = entry.request
    # What may be remembered is decided by what is shown first, as in the terminal.
    is_whole = display(request).is_whole
    options = answer_options(request, is_whole=is_whole)
    problem = why_not(entry, visitor) if entry.state == 'pending' else 'it is no longer open'
    return RequestView(
        id=entry.id,
        state=entry.state,
        digest=entry.digest,
        tool_name=request.tool_name,
        description=request.attributed_description,
        args=editable(request),
        hidden_args=tuple(sorted(left_out_keys(request))),
        agent=request.facts.caller,
        run_id=request.run_id,
        lineage=request.lineage,
        group=group_of(request),
        facts=tuple(FactView(label=label, text=text) for label, text in facts(request)),
        warnings=tuple(warnings_of(request)),
        lines=tuple(LineView.model_validate(line) for line in display(request, whole=whole).lines),
        is_whole=is_whole,
        remember=options.spans,
        choices=tuple(ChoiceView(option=option, label=label) for option, label in options.remember_options),
        can_answer=problem is None,
        why_not=problem,
        posted_at=entry.posted_at,
        expires_at=entry.content.expires_at,
        settled_at=entry.settled_at,
        outcome=entry.outcome,
        answer=_answer(entry),
    )


def _answer(entry: InboxEntry) -> AnswerView | None:
    if entry.answer is None or entry.settled_at is None:
        return None
    decision = entry.answer.decision
    return AnswerView(
        approved=decision.approved,
        by=entry.answer.by.id,
        by_name=entry.answer.by.name,
        note=decision.note,
        override_args=visible_changes(entry),
        remember=decision.remember,
        remember_option=decision.remember_option,
        at=entry.settled_at,
    )


def visible_changes(entry: InboxEntry) -> dict[str, Any] | None:
    """The arguments that were answered, without those that the tool keeps from being shown; `None` if unchanged."""
    if entry.answer is None or entry.answer.decision.override_args is None:
        return None
    hidden = left_out_keys(entry.request)
    return {key: value for key, value in entry.answer.decision.override_args.items() if key not in hidden}
