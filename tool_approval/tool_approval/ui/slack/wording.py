"""What became of a request, and why a press did not count, in words for Slack."""

from __future__ import annotations

from datetime import datetime

from tool_approval.inbox import (
    AlreadySettled,
    AnswerRefused,
    Approver,
    InboxEntry,
    InboxUnavailable,
    NotAnApprover,
    OtherContent,
    UnknownRequest,
)

from .mrkdwn import code, plain

_SPANS = {'none': '', 'session': ' for this session', 'always': ', always'}


def outcome_of(entry: InboxEntry) -> str:
    """What became of a settled request, in Slack's markup."""
    when = '' if entry.settled_at is None else f' at {time_of(entry.settled_at)}'
    if entry.answer is None:
        why = 'nobody answered in time' if entry.state == 'expired' else 'its run does not wait any more'
        return f'*{entry.state.capitalize()}*{when}: {why}'
    decision = entry.answer.decision
    changed = '' if decision.override_args is None else ' with changed arguments'
    span = _SPANS[decision.remember]
    return f'*{entry.state.capitalize()}*{changed}{span}; answered by {person(entry.answer.by)}{when}'


def person(by: Approver) -> str:
    """Who it is. Never as a mention, which would call them, and which anybody may have written into a name."""
    return code(by.id) if by.name is None else f'{code(by.name)} ({code(by.id)})'


def time_of(moment: datetime) -> str:
    """The time of day, as the records have it."""
    return f'{moment:%H:%M:%S} UTC'


def refusal_of(error: AnswerRefused | InboxUnavailable) -> str:
    """Why an answer was not taken, for the person who gave it."""
    match error:
        case AlreadySettled():
            by = '' if error.by is None else f' by {code(error.by)}'
            when = '' if error.at is None else f' at {time_of(error.at)}'
            return f'Your answer came too late: the request was {error.state}{by}{when}.'
        case NotAnApprover():
            return f'You may not answer this request: {plain(error.problem)}. Nothing was changed.'
        case OtherContent():
            return 'The request shows something else by now. Nothing was changed; look at it again.'
        case UnknownRequest():
            return 'There is no such request in the inbox any more. Nothing was changed.'
        case InboxUnavailable():
            return 'The inbox cannot be reached, so your answer may not have been taken. Look again in a moment.'
        case _:
            return 'The request does not offer this answer. Nothing was changed.'
