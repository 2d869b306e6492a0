"""Define the errors of the inbox.

```
ApprovalError
└── InboxError
    ├── AnswerRefused          the answer was refused; the request is unchanged
    │   ├── UnknownRequest     no request has this id
    │   ├── AlreadySettled     the request was answered, expired or was withdrawn before
    │   ├── OtherContent       the answer is for other content than the request has
    │   ├── NotAnApprover      this approver is not allowed to answer this request
    │   └── InvalidAnswer      the request does not offer this answer, or the answer is malformed
    ├── RequestTooLarge        the request is too large to be shown
    ├── InboxUnavailable       the store cannot be reached or written to at the moment
    └── InboxUntrusted         another program made or changed the store, or other users can access it
```
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from tool_approval.answering import NotOffered
from tool_approval.core.errors import ApprovalError
from tool_approval.display import escape_line

from .store import Settled


class InboxError(ApprovalError):
    """Base class of the inbox's errors. A method that raised an inbox error has not approved anything."""


class AnswerRefused(InboxError):
    """The answer was refused. The request is unchanged."""


class UnknownRequest(AnswerRefused):
    """No request has this id: it never existed or was pruned."""

    def __init__(self) -> None:
        """The message leaves out the id, because a valid id is a secret."""
        super().__init__('there is no such request in the inbox')


class AlreadySettled(AnswerRefused):
    """The request is no longer open. Only the first valid answer counts."""

    def __init__(self, state: Settled, *, by: str | None = None, at: datetime | None = None) -> None:
        """Describe how the request was settled.

        Args:
            state: State of the request.
            by: Id of the approver who answered; `None` if the request expired or was withdrawn.
            at: Time when the request was settled.
        """
        self.state: Settled = state
        self.by = by
        self.at = at
        when = '' if at is None else f' at {at.isoformat(timespec="seconds")}'
        who = '' if by is None else f' by {by!r}'
        late = '; an answer after the deadline does not count' if state == 'expired' else ''
        super().__init__(f'the request is no longer open: {state}{who}{when}{late}')


class OtherContent(AnswerRefused):
    """The digest in the answer differs from the digest of the request's content."""

    def __init__(self) -> None:
        """The approver should load the request again."""
        super().__init__('the answer does not match the request; load the request again and decide again')


class NotAnApprover(AnswerRefused):
    """The approver is not allowed to answer this request."""

    def __init__(self, approver: str, tool_name: str, problem: str) -> None:
        """Set the message, which names the approver and the tool, and gives the reason.

        Args:
            approver: Id of the approver.
            tool_name: Tool of the request.
            problem: Reason, as a clause without a full stop.
        """
        self.approver = approver
        self.tool_name = tool_name
        self.problem = problem
        super().__init__(f'{approver!r} may not answer a request for {tool_name!r}: {problem}')


class InvalidAnswer(AnswerRefused):
    """The request does not offer this answer, or the answer is malformed or too large."""

    def __init__(self, problem: str) -> None:
        """Describe the problem, as a clause without a full stop."""
        self.problem = problem
        super().__init__(f'the answer is invalid: {problem}')


class RequestTooLarge(InboxError):
    """The request is too large to be shown, and was not posted."""

    def __init__(self, size: int, limit: int) -> None:
        """Set the message, which gives the size of the request and the limit, in bytes."""
        self.size = size
        self.limit = limit
        super().__init__(
            f'the request has {size} bytes, more than the limit of {limit}; shorten its arguments or presentation'
        )


class InboxUnavailable(InboxError):
    """The store cannot be reached or cannot be written to at the moment. Try again."""

    def __init__(self, place: str, problem: str) -> None:
        """Set the message, which names the store (without secrets) and the problem."""
        self.place = place
        self.problem = problem
        super().__init__(f'the inbox in {place} is unavailable: {problem}')


class InboxUntrusted(InboxError):
    """Another program has made or changed the store, or other users can access it. Trying again does not help."""

    def __init__(self, place: str, problem: str) -> None:
        """Set the message, which names the store (without secrets) and the problem."""
        self.place = place
        self.problem = problem
        super().__init__(f'the inbox in {place} cannot be used: {problem}')


def refusal_text(
    error: InboxError | NotOffered,
    *,
    name: Callable[[str], str] = escape_line,
    text: Callable[[str], str] = escape_line,
) -> str:
    """Return the reason why an answer was not accepted, as a text for the approver.

    Args:
        error: Error that `Inbox.decide` or `decision_on` raised.
        name: Function that escapes the id of an approver for the output format, such as HTML.
        text: Function that escapes all other texts for the output format.
    """
    match error:
        case AlreadySettled():
            by = '' if error.by is None else f' by {name(error.by)}'
            when = '' if error.at is None else f' at {error.at:%H:%M:%S} UTC'
            if error.state == 'expired':
                return f'Your answer came too late: the request expired{when}, so its call is denied.'
            return f'Your answer came too late: the request is already {error.state}{by}{when}.'
        case NotAnApprover():
            return f'You may not answer this request: {text(error.problem)}. Nothing was changed.'
        case OtherContent():
            return 'The request has changed since you saw it. Your answer was not accepted; load the request again.'
        case UnknownRequest():
            return 'The request is no longer in the inbox. Nothing was changed.'
        case AnswerRefused() | NotOffered():
            return 'The request does not offer this answer. Nothing was changed.'
        case _:
            return 'The inbox cannot be reached. Your answer may not have been recorded; check again in a moment.'
