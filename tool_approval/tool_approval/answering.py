"""What a person may answer to a request, and in which words: the same at the terminal, on a page and in a chat.

A UI shows a request, offers what `answer_options` names under the `LABELS`, and makes the decision with `decision_on`.
On the inbox, `InboxEntry.outcome` says what became of a request, and `refusal_text` why an answer did not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tool_approval.core.canonical import EXACT, canonical_json, decode_arguments
from tool_approval.core.decision import ApprovalDecision, Remember
from tool_approval.core.errors import ApprovalError, NotCanonicalError
from tool_approval.core.request import ApprovalRequest, describe
from tool_approval.display import is_shown_whole, remember_choices
from tool_approval.display.digest import left_out_keys, visible_args
from tool_approval.display.questions import remember_spans

__all__ = (
    'LABELS',
    'AnswerKind',
    'AnswerOptions',
    'NotOffered',
    'UnreadableArguments',
    'answer_options',
    'decision_on',
    'editable',
    'is_changed',
    'may_approve_together',
    'outcome_words',
    'place_in_response',
    'read_arguments',
    'with_arguments',
)

AnswerKind = Literal['approve', 'session', 'always', 'deny', 'note', 'edit']
"""The ways to answer: `note` is a denial with a note, `edit` an approval of changed arguments."""

LABELS: Mapping[AnswerKind, str] = {
    'approve': 'Approve',
    'session': 'Approve for this session',
    'always': 'Approve always',
    'deny': 'Deny',
    'note': 'Deny with a note',
    'edit': 'Edit arguments',
}
"""The words of the buttons."""

_SPANS: Mapping[Remember, str] = {'none': '', 'session': ' for this session', 'always': ', always'}


class NotOffered(ApprovalError):
    """The request does not offer this answer. Nothing was answered."""

    def __init__(self, problem: str) -> None:
        """Say why, without quoting what was answered."""
        self.problem = problem
        super().__init__(problem)


class UnreadableArguments(NotOffered):
    """An edited text holds no arguments that a call can have."""


@dataclass(frozen=True, kw_only=True)
class AnswerOptions:
    """What may be answered to a request, as a person is shown it."""

    answers: tuple[AnswerKind, ...]
    """The ways to answer, in the order to show them."""
    spans: tuple[Literal['session', 'always'], ...] = ()
    """How long an approval may be remembered: `session`, `always`; empty where it may not be."""
    remember_options: tuple[tuple[str, str], ...] = ()
    """What it may be remembered for: kinds, and what each covers, escaped; `exact` is the first."""


def answer_options(request: ApprovalRequest, *, is_whole: bool | None = None) -> AnswerOptions:
    """What may be answered to a request.

    Nothing may be remembered where something of the request was not shown, or what would be covered cannot be.

    Args:
        request: What is asked about.
        is_whole: Whether the person is shown all of it; `None` where they are shown what `display` shows.
    """
    spans = remember_spans(request, is_whole=is_whole)
    edit: tuple[AnswerKind, ...] = ('edit',) if request.args else ()
    return AnswerOptions(
        answers=('approve', *spans, 'deny', 'note', *edit),
        spans=spans,
        remember_options=tuple(remember_choices(request)) if spans else (),
    )


def decision_on(
    request: ApprovalRequest,
    *,
    approved: bool,
    note: str | None = None,
    override_args: Mapping[str, Any] | None = None,
    remember: Remember = 'none',
    remember_option: str = EXACT,
    is_whole: bool | None = None,
) -> ApprovalDecision:
    """The decision that an answer to a request makes.

    Args:
        request: What was asked about.
        approved: Whether the call may run.
        note: What the model is told of a denial, and the log of both.
        override_args: All arguments to run with instead, but those that are not shown. The controller judges the
            changed call again.
        remember: How long an approval is to hold.
        remember_option: For what then: one of `AnswerOptions.remember_options`.
        is_whole: See `answer_options`.

    Raises:
        NotOffered: The request does not offer this answer.
    """
    if remember != 'none':
        if not approved or override_args is not None:
            raise NotOffered('only an approval of the arguments as they are can be remembered')
        options = answer_options(request, is_whole=is_whole)
        if remember not in options.spans:
            raise NotOffered(f'it cannot be remembered for {remember!r}')
        if remember_option not in dict(options.remember_options):
            raise NotOffered('what it is to be remembered for was not offered')
    if override_args is not None:
        if not approved:
            raise NotOffered('a denial changes no arguments')
        override_args = with_arguments(request, override_args).args
    return ApprovalDecision(
        approved=approved,
        note=note or None,
        override_args=override_args,
        remember=remember,
        remember_option=remember_option,
    )


def may_approve_together(requests: Sequence[ApprovalRequest]) -> bool:
    """Whether one answer may approve several requests: only if all of each is shown."""
    return all(map(is_shown_whole, requests))


def editable(request: ApprovalRequest) -> dict[str, Any]:
    """The arguments a person may see and change; what the tool keeps from being shown stays as it is."""
    return dict(visible_args(request))


def read_arguments(text: str) -> dict[str, Any]:
    """The arguments in an edited JSON text.

    Raises:
        UnreadableArguments: There are none, or values that a call cannot have.
    """
    try:
        values = decode_arguments(text)
        canonical_json(values)
    except NotCanonicalError as error:
        raise UnreadableArguments(error.problem) from None
    return values


def with_arguments(request: ApprovalRequest, edited: Mapping[str, Any]) -> ApprovalRequest:
    """The request as it is asked about again, with edited arguments; nothing about it can be remembered.

    What its tool says of it was made for the other arguments, so only the reason is left, which says so.

    Raises:
        NotOffered: An argument is among them that the tool keeps from being shown.
    """
    hidden_keys = left_out_keys(request)
    if not hidden_keys.isdisjoint(edited):
        raise NotOffered('an argument that is not shown cannot be changed')
    return request.model_copy(
        update={
            'args': {**edited, **{key: value for key, value in request.args.items() if key in hidden_keys}},
            'payload': dict(edited),
            'description': describe(request.tool_name, edited),
            'described_by': None,
            'presentation': None,
            'reason': None if request.reason is None else f'before your change: {request.reason}',
            'remember_options': (),
        }
    )


def is_changed(request: ApprovalRequest, edited: Mapping[str, Any]) -> bool:
    """Whether edited arguments differ from those of the request that may be seen."""
    return canonical_json(edited) != canonical_json(editable(request))


def place_in_response(request: ApprovalRequest) -> tuple[int, int] | None:
    """Which of the requests of one response it is, from 1, and how many these are; `None` where that says nothing."""
    index, count = request.facts.position, request.facts.batch_size
    if index is None or count is None or not 0 < index <= count < 1_000_000 or count == 1:
        return None
    return index, count


def outcome_words(state: str, decision: ApprovalDecision | None) -> tuple[str, str]:
    """What became of a request: a word, and what follows it.

    Such as `('Approved', ' with changed arguments')` and `('Expired', ': nobody answered in time')`; empty while it is
    open. Who answered, and when, is the UI's to write.

    Args:
        state: The request's, as in the inbox.
        decision: What a person decided, if one did.
    """
    if state == 'pending':
        return '', ''
    if decision is None:
        why = 'nobody answered in time' if state == 'expired' else 'its run does not wait any more'
        return state.capitalize(), f': {why}'
    changed = '' if decision.override_args is None else ' with changed arguments'
    return state.capitalize(), f'{changed}{_SPANS[decision.remember]}'
