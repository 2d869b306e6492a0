"""Define the possible answers to a request and their wording, for the terminal, pages and chats alike.

A UI shows a request, offers the answers of `answer_options` with their `LABELS`, and makes the decision with
`decision_on`. For the inbox, `InboxEntry.outcome` describes how a request ended, and `refusal_text` says why an answer
was not accepted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tool_approval.core.canonical import EXACT, canonical_json, decode_arguments
from tool_approval.core.decision import ALL_ANSWERS, ApprovalDecision, Remember
from tool_approval.core.errors import ApprovalError, NotCanonicalError
from tool_approval.core.request import ApprovalRequest, describe
from tool_approval.display import escape_line, is_shown_whole, remember_choices
from tool_approval.display.digest import left_out_keys, visible_args
from tool_approval.display.questions import may_deny_for_session, remember_spans

__all__ = (
    'LABELS',
    'AnswerKind',
    'AnswerOptions',
    'NotOffered',
    'UnreadableArguments',
    'answer_decision',
    'answer_options',
    'bounded_options',
    'decision_on',
    'draft_of',
    'editable',
    'is_changed',
    'may_approve_together',
    'outcome_words',
    'parse_arguments',
    'place_in_response',
    'with_arguments',
)

AnswerKind = Literal['approve', 'session', 'always', 'deny', 'deny_session', 'note', 'edit', 'respond']
"""Kinds of answers. `deny_session` also denies later calls, `note` denies with a note, `edit` approves changed
arguments, and `respond` gives the tool's result in its place."""

LABELS: Mapping[AnswerKind, str] = {
    'approve': 'Approve',
    'session': 'Approve for this session',
    'always': 'Approve always',
    'deny': 'Deny',
    'deny_session': 'Deny for this session',
    'note': 'Deny with a note',
    'edit': 'Edit arguments',
    'respond': 'Answer in its place',
}
"""Labels of the buttons."""

_SPANS: Mapping[Remember, str] = {'none': '', 'session': ' for this session', 'always': ', always'}


class NotOffered(ApprovalError):
    """The request does not offer this answer. No answer was recorded."""

    def __init__(self, problem: str) -> None:
        """Describe the problem without quoting the answer."""
        self.problem = problem
        super().__init__(problem)


class UnreadableArguments(NotOffered):
    """An edited text does not contain valid arguments."""


@dataclass(frozen=True, kw_only=True)
class AnswerOptions:
    """Possible answers to a request, as shown to the approver."""

    answers: tuple[AnswerKind, ...]
    """Kinds of answers, in display order."""
    spans: tuple[Literal['session', 'always'], ...] = ()
    """Possible values of `remember` for an approval: `session`, `always`, both or none."""
    remember_options: tuple[tuple[str, str], ...] = ()
    """Scopes for which an approval can be remembered, as pairs of kind and escaped description. `exact` comes first."""
    denial_covers: str | None = None
    """Escaped description of the calls that a denial for this session covers; `None` if it is not offered."""


def answer_options(request: ApprovalRequest, *, is_whole: bool | None = None) -> AnswerOptions:
    """Return the possible answers to a request.

    Remembering is not offered if part of the request was not shown, or if the scope cannot be shown.

    Args:
        request: Request to answer.
        is_whole: Whether the approver sees the whole request. With `None`, the UI must show what `display` returns.
    """
    spans = remember_spans(request, is_whole=is_whole)
    denies = may_deny_for_session(request, is_whole=is_whole)
    deny_session: tuple[AnswerKind, ...] = ('deny_session',) if denies else ()
    approve: tuple[AnswerKind, ...] = ('approve',) if request.allows('approve') else ()
    edit: tuple[AnswerKind, ...] = ('edit',) if request.args and request.allows('edit') else ()
    respond: tuple[AnswerKind, ...] = ('respond',) if request.allows('respond') else ()
    return AnswerOptions(
        answers=(*approve, *spans, 'deny', *deny_session, 'note', *edit, *respond),
        spans=spans,
        remember_options=tuple(remember_choices(request)) if spans else (),
        denial_covers=remember_choices(request)[0][1] if denies else None,
    )


def bounded_options(request: ApprovalRequest) -> list[tuple[str, str, str]]:
    """Return the bounded approvals that a request offers: for each its kind (`remember_option`), and the escaped texts
    of its button and of what it covers.
    """
    covers = dict(remember_choices(request))
    bounded = [(each.kind, each.bounds) for each in request.remember_options if each.bounds is not None]
    return [(kind, escape_line(f'Approve {bounds.text}'), covers[kind]) for kind, bounds in bounded]


def decision_on(
    request: ApprovalRequest,
    *,
    approved: bool,
    note: str | None = None,
    override_args: Mapping[str, Any] | None = None,
    remember: Remember = 'none',
    remember_option: str = EXACT,
    response: Any = None,
    is_whole: bool | None = None,
) -> ApprovalDecision:
    """Turn an approver's answer to a request into a decision.

    Args:
        request: Request that was answered.
        approved: Whether the call may run.
        note: Reason for a denial, which the model reads. The log also records the notes of approvals.
        override_args: All shown arguments, as changed by the approver. The controller judges the changed call again.
        remember: How long to remember the answer. A denial can be remembered for the session only.
        remember_option: The chosen entry of `AnswerOptions.remember_options`, by its kind.
        response: The tool's result, a JSON value, in place of an execution; `None` for no response.
        is_whole: See `answer_options`.

    Raises:
        NotOffered: The request does not offer this answer.
    """
    if remember != 'none':
        if override_args is not None or response is not None:
            raise NotOffered('only a denial, or an approval of unchanged arguments, can be remembered')
        options = answer_options(request, is_whole=is_whole)
        what, spans, kinds = 'approval', options.spans, [kind for kind, _ in options.remember_options]
        if not approved:
            what, spans, kinds = 'denial', ('session',) if 'deny_session' in options.answers else (), [EXACT]
        if remember not in spans:
            raise NotOffered(f'the request does not offer `remember={remember!r}` for the {what}')
        if remember_option not in kinds:
            raise NotOffered(f'the request does not offer this option for remembering the {what}')
    if approved and override_args is None and isinstance(request, _ChangedRequest):
        raise NotOffered('changed arguments are approved by `override_args`, in a decision on the original request')
    if override_args is not None:
        if not approved:
            raise NotOffered('a denial cannot change arguments')
        override_args = with_arguments(request, override_args).args
    if response is not None and approved:
        raise NotOffered('an approval cannot have a response')
    decision = ApprovalDecision(
        approved=approved,
        note=note or None,
        override_args=override_args,
        remember=remember,
        remember_option=remember_option,
        response=response,
    )
    refused = request.not_allowed(decision)
    if refused is not None:
        raise NotOffered(f'the tool does not allow the answer `{refused}`')
    return decision


def answer_decision(
    request: ApprovalRequest,
    answer: AnswerKind,
    *,
    text: str | None = None,
    remember_option: str = EXACT,
    is_whole: bool | None = None,
) -> ApprovalDecision:
    """Turn a pressed button into a decision. An edit needs `decision_on`.

    Args:
        request: Request that was answered.
        answer: Kind of the answer.
        text: The note, or the result in place of the tool, as written in a form.
        remember_option: See `decision_on`.
        is_whole: See `answer_options`.

    Raises:
        NotOffered: The request does not offer this answer, or the result is empty.
    """
    written = (text or '').strip()
    if answer == 'respond':
        if not written:
            raise NotOffered('the result is empty')
        return decision_on(request, approved=False, response=written)
    spans: dict[str, Remember] = {'session': 'session', 'deny_session': 'session', 'always': 'always'}
    return decision_on(
        request,
        approved=answer in ('approve', 'session', 'always'),
        note=written,
        remember=spans.get(answer, 'none'),
        remember_option=remember_option,
        is_whole=is_whole,
    )


def may_approve_together(requests: Sequence[ApprovalRequest]) -> bool:
    """Return whether one answer may approve several requests. Each of the requests must be shown in full, and allow to
    be approved.
    """
    return all(request.allows('approve') and is_shown_whole(request) for request in requests)


def editable(request: ApprovalRequest) -> dict[str, Any]:
    """Return the arguments that an approver can see and change. Hidden arguments remain as they are."""
    return dict(visible_args(request))


def draft_of(request: ApprovalRequest) -> dict[str, Any]:
    """Return the arguments to start an edit from: those of an edit that the tool could not take, if there was one."""
    if request.rejected_edit is None:
        return editable(request)
    hidden = left_out_keys(request)
    return {key: value for key, value in request.rejected_edit.args.items() if key not in hidden}


def parse_arguments(text: str) -> dict[str, Any]:
    """Parse edited JSON arguments.

    Raises:
        UnreadableArguments: The text is not a JSON object, or has values without a canonical form.
    """
    try:
        values = decode_arguments(text)
        canonical_json(values)
    except NotCanonicalError as error:
        raise UnreadableArguments(error.problem) from None
    return values


def with_arguments(request: ApprovalRequest, edited: Mapping[str, Any]) -> ApprovalRequest:
    """Return a new request to ask about the edited arguments. An approval of the new request cannot be remembered.

    The new request has a generated description. Its reason is `before your change: `, followed by the tool's reason.

    Raises:
        NotOffered: The edit includes an argument that is not shown.
    """
    hidden_keys = left_out_keys(request)
    if not hidden_keys.isdisjoint(edited):
        raise NotOffered('an argument that is not shown cannot be changed')
    fields: dict[str, Any] = {
        **{name: getattr(request, name) for name in ApprovalRequest.model_fields},
        'args': {**edited, **{key: value for key, value in request.args.items() if key in hidden_keys}},
        'payload': dict(edited),
        'description': describe(request.tool_name, edited),
        'described_by': None,
        'presentation': None,
        'reason': None if request.reason is None else f'before your change: {request.reason}',
        'remember_options': (),
        'rejected_edit': None,
        # To approve the new request is to edit the original.
        'answers': tuple(
            each for each in ALL_ANSWERS if each in ('approve', 'edit') or (each != 'remember' and request.allows(each))
        ),
    }
    changed = _ChangedRequest.model_construct(**fields)
    vars(changed)['facts'] = request.facts
    return changed


class _ChangedRequest(ApprovalRequest):
    """A request with arguments that the approver has changed, and that the run does not know yet."""


def is_changed(request: ApprovalRequest, edited: Mapping[str, Any]) -> bool:
    """Return whether edited arguments differ from the visible arguments of the request."""
    return canonical_json(edited) != canonical_json(editable(request))


def place_in_response(request: ApprovalRequest) -> tuple[int, int] | None:
    """Return the request's position in its response (from 1) and the number of requests, or `None` if it is alone."""
    index, count = request.facts.position, request.facts.batch_size
    if index is None or count is None or not 0 < index <= count < 1_000_000 or count == 1:
        return None
    return index, count


def outcome_words(state: str, decision: ApprovalDecision | None) -> tuple[str, str]:
    """Return the outcome of a request in two parts: a word, and the text that follows the word.

    For example `('Approved', ' with changed arguments')` or `('Expired', ': no approver answered in time')`. While the
    request is open, both texts are empty. The UI adds who answered and when.

    Args:
        state: State of the request, as in the inbox.
        decision: Decision of the approver, if any.
    """
    if state == 'pending':
        return '', ''
    if decision is None:
        why = 'no approver answered in time' if state == 'expired' else 'the run no longer waits for an answer'
        return state.capitalize(), f': {why}'
    if decision.response is not None:
        return 'Answered', ' in place of the tool'
    changed = '' if decision.override_args is None else ' with changed arguments'
    return state.capitalize(), f'{changed}{_SPANS[decision.remember]}'
