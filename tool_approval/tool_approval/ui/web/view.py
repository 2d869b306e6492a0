"""Define the models of the JSON API. The API shows the same facts and lines as the page and the terminal."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tool_approval.answering import AnswerKind, answer_options, draft_of, editable
from tool_approval.core.canonical import EXACT
from tool_approval.core.decision import Remember
from tool_approval.core.request import ApprovalRequest, LineageEntry
from tool_approval.display import LineKind, display, facts, warnings_of
from tool_approval.display.digest import left_out_keys
from tool_approval.durable.steering import RunSummary, Verdict
from tool_approval.inbox import Approver, InboxEntry, NotAnApprover, State


def time_of(moment: datetime) -> str:
    """Return date and time in UTC, which the page's script replaces with local time."""
    return f'{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC'


class ApiModel(BaseModel):
    """Base class of the API's models. Field docstrings are the descriptions in the OpenAPI document."""

    model_config = ConfigDict(from_attributes=True, use_attribute_docstrings=True)


class FactView(ApiModel):
    """A labelled fact about a request, such as its agent or reason."""

    label: str
    """Label: `your edit`, `agent`, `worker`, `toolset`, `about`, `why`, `grants`, `file` or `in`."""
    text: str
    """Escaped text on one line."""


class SpanView(ApiModel):
    """A highlighted part of a line."""

    start: int
    """Index of the first character, counted in Unicode code points, not UTF-16 units."""
    end: int
    """Index after the last character, counted in Unicode code points."""
    role: Literal['escape', 'key', 'string', 'keyword']
    """Kind of text, for highlighting."""


class LineView(ApiModel):
    """A line of a request's content."""

    kind: LineKind
    """Kind of line. Lines of the kinds `meta` and `cut` are texts of this program. Lines of all other kinds quote a
    model or a tool, and must be marked as quoted."""
    text: str
    """Escaped text, without control characters."""
    number: int | None
    """1-based line number in the quoted text; `null` if lines have no numbers."""
    is_first: bool
    """Whether this is the first line of a command."""
    spans: tuple[SpanView, ...]
    """Highlighted parts, in order and without overlaps."""


class ChoiceView(ApiModel):
    """An option for a remembered approval. The option decides which calls the approval covers."""

    option: str
    """Value for `remember_option`."""
    label: str
    """Escaped text that describes the covered calls."""


class RejectedEditView(ApiModel):
    """An edit that the tool could not take."""

    args: dict[str, Any]
    """All arguments after that edit, without hidden ones."""
    problem: str
    """Reason why the tool could not take the arguments. Untrusted text."""


class AnswerView(ApiModel):
    """An approver's answer."""

    approved: bool
    """Whether the call may run."""
    decided_by: tuple[str, ...]
    """Ids of all approvers who made this decision together; `by` is the last one."""
    by: str
    """Id of the approver."""
    by_name: str | None
    """Name of the approver."""
    note: str | None
    """Note, which the model reads if the call was denied. Untrusted text."""
    override_args: dict[str, Any] | None
    """All arguments after editing, without hidden ones; `null` if no argument was edited."""
    remember: Remember
    """How long the approval or denial is remembered."""
    remember_option: str
    """Scope of the remembered approval; `exact` for a denial."""
    response: Any
    """Result that the approver gave in the tool's place; `null` if there is none. Untrusted."""
    at: datetime
    """Time of the answer in UTC."""


class RequestView(ApiModel):
    """A request. Texts are not escaped unless their description says so."""

    id: str
    """Unguessable id of the request."""
    state: State
    """State of the request; `pending` while it is open."""
    digest: str
    """Digest of the shown content. A decision must repeat this digest."""
    tool_name: str
    """Name by which the model calls the tool."""
    description: str
    """Description of the call on one line. A description from a configuration begins with `described by`."""
    args: dict[str, Any]
    """Argument values by name, without hidden arguments."""
    hidden_args: tuple[str, ...]
    """Names of hidden arguments."""
    args_schema: dict[str, Any] | None
    """JSON schema of the arguments as the model sees it; `null` if unknown."""
    answers: tuple[AnswerKind, ...]
    """Kinds of answers that the request offers."""
    rejected_edit: RejectedEditView | None
    """The last edit of this approver, if the tool could not take it."""
    agent: str | None
    """Name of the agent that calls the tool."""
    run_id: str | None
    """Id of the agent's run."""
    lineage: tuple[LineageEntry, ...]
    """Agents and tool calls that led to the run, outermost first."""
    group: str | None
    """Key of the group; requests with the same key belong together."""
    facts: tuple[FactView, ...]
    """Facts to show above the content."""
    warnings: tuple[str, ...]
    """Escaped warnings about misleading characters."""
    lines: tuple[LineView, ...]
    """Lines of the content."""
    is_whole: bool
    """Whether the request is shown whole, without cut lines or hidden arguments. If a request is not shown whole, its
    approval or denial cannot be remembered."""
    remember: tuple[Remember, ...]
    """Allowed values for `remember` in addition to `none`, for an approval."""
    choices: tuple[ChoiceView, ...]
    """Choices of which calls a remembered approval covers."""
    denial_covers: str | None
    """Escaped description of the calls that `approved: false` with `remember: session` denies until the session ends;
    `null` if the request does not offer it."""
    can_answer: bool
    """Whether the request is open and the visitor may answer it."""
    why_not: str | None
    """Reason why the visitor cannot answer; `null` if they can."""
    posted_at: datetime
    """Time when the request was posted, in UTC."""
    expires_at: datetime | None
    """Time when the request expires, in UTC."""
    settled_at: datetime | None
    """Time when the request was settled, in UTC; `null` while it is open."""
    outcome: str
    """Outcome as an escaped sentence without the time; empty while the request is open."""
    answer: AnswerView | None
    """The answer; `null` if the request is open, expired or was withdrawn."""


class RequestList(ApiModel):
    """A list of requests."""

    requests: tuple[RequestView, ...]
    """Requests. Open requests are sorted oldest first, and settled requests newest first."""
    more: int | None = None
    """Number of open requests that are not in the list; `null` in the history."""
    damaged: int | None = None
    """Number of open requests that cannot be read, and so cannot be answered; `null` in the history."""


class RunList(ApiModel):
    """A list of durable runs."""

    runs: tuple[RunSummary, ...]
    """Runs, newest first."""


class RunBody(ApiModel):
    """A reference to a run. Unknown fields are refused."""

    model_config = ConfigDict(extra='forbid', strict=True)

    run: str = Field(max_length=1_000)
    """Id of the run."""


class SettleBody(RunBody):
    """An answer about a call whose outcome is unknown. Unknown fields are refused."""

    key: str = Field(max_length=1_000)
    """Key of the execution."""
    attempt: int
    """Attempt of the execution."""
    verdict: Verdict
    """`result` if the call ran, `again` to run it again, `give_up` to leave the outcome unknown."""
    result: Any = None
    """Value that the call returned, if the verdict is `result`."""


class SessionView(ApiModel):
    """The logged-in approver."""

    id: str
    """Id of the approver."""
    name: str | None
    """Name of the approver."""
    csrf_token: str
    """Token to send in the header `X-CSRF-Token` of each change."""


class ErrorBody(ApiModel):
    """Reason for a refusal."""

    code: str
    """Code for programs."""
    message: str
    """Message for people."""


class ErrorView(ApiModel):
    """The response to an HTTP request that was refused. The request has changed nothing."""

    error: ErrorBody
    """Reason for the refusal."""


class DecisionBody(ApiModel):
    """An answer to a request. Unknown fields are refused."""

    model_config = ConfigDict(extra='forbid', strict=True)

    digest: str = Field(max_length=200)
    """Digest of the request that was shown to the approver."""
    approved: bool
    """Whether the call may run; strictly `true` or `false`."""
    note: str | None = Field(default=None, max_length=10_000)
    """Note for the log, which the model also reads if the call is denied."""
    override_args: dict[str, Any] | None = None
    """All arguments after editing, without hidden ones; `null` leaves the arguments unchanged."""
    remember: Remember = 'none'
    """How long to remember the answer. A denial can be remembered for the session only, if the request has
    `denial_covers`."""
    remember_option: str = Field(default=EXACT, max_length=200)
    """The `option` of one of the request's `choices`, which says which calls a remembered approval covers; `exact`
    for a denial."""
    response: Any = None
    """Result of the call in the tool's place, any JSON value but `null`; `approved` is then `false`."""


def group_of(request: ApprovalRequest) -> str | None:
    """Return a key for the request's group, or for its model response if the tool names no group. Return `None` if the
    request has neither a group nor a model response.
    """
    if request.group_id is not None:
        return f'group {request.run_id} {request.group_id}'
    return response_of(request)


def response_of(request: ApprovalRequest) -> str | None:
    """Return the key of the model response that made the request; `None` for a single request."""
    batch = request.facts.batch_id
    return None if batch is None else f'batch {request.run_id} {batch}'


def why_not(entry: InboxEntry, visitor: Approver) -> str | None:
    """Return why a visitor may not answer an open request; `None` if the visitor may."""
    try:
        entry.check_approver(visitor)
    except NotAnApprover as error:
        return error.problem
    return None


def view_of(entry: InboxEntry, visitor: Approver, *, whole: bool = False) -> RequestView:
    """Return a request as the visitor sees it. The middle of long content is left out unless `whole`."""
    request = entry.request
    # As in the terminal, remembering depends on whether the cut view shows everything.
    is_whole = display(request).is_whole
    options = answer_options(request, is_whole=is_whole)
    problem = why_not(entry, visitor) if entry.state == 'pending' else 'the request is no longer open'
    return RequestView(
        id=entry.id,
        state=entry.state,
        digest=entry.digest,
        tool_name=request.tool_name,
        description=request.attributed_description,
        args=editable(request),
        hidden_args=tuple(sorted(left_out_keys(request))),
        args_schema=None if request.args_schema is None else dict(request.args_schema),
        answers=options.answers,
        rejected_edit=None
        if request.rejected_edit is None
        else RejectedEditView(args=draft_of(request), problem=request.rejected_edit.problem),
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
        denial_covers=options.denial_covers,
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
        decided_by=decision.decided_by,
        by=entry.answer.by.id,
        by_name=entry.answer.by.name,
        note=decision.note,
        override_args=visible_changes(entry),
        remember=decision.remember,
        remember_option=decision.remember_option,
        response=decision.response,
        at=entry.settled_at,
    )


def visible_changes(entry: InboxEntry) -> dict[str, Any] | None:
    """Return the answer's arguments after editing, without hidden ones; `None` if no argument was edited."""
    if entry.answer is None or entry.answer.decision.override_args is None:
        return None
    hidden = left_out_keys(entry.request)
    return {key: value for key, value in entry.answer.decision.override_args.items() if key not in hidden}
