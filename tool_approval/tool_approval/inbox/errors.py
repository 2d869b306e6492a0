"""What can go wrong with the inbox, drawn as a tree.

```
ApprovalError
└── InboxError
    ├── AnswerRefused          an answer was not taken; the request is as it was
    │   ├── UnknownRequest     there is none of that id
    │   ├── AlreadySettled     somebody else was first, or nobody needs the answer any more
    │   ├── OtherContent       the answer is to something else than what the request shows
    │   ├── NotAnApprover      this person may not answer this request
    │   └── InvalidAnswer      the answer says something that the request does not offer
    ├── RequestTooLarge        more than a person can be shown
    ├── InboxUnavailable       the store cannot be reached, or not written to, for the time being
    └── InboxUntrusted         the store is not what this package made, or not the user's alone
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
    """The root of what the inbox raises. Nothing was approved by what raised it."""


class AnswerRefused(InboxError):
    """An answer was not taken. The request is as it was."""


class UnknownRequest(AnswerRefused):
    """There is no request of that id: there never was, or it was pruned."""

    def __init__(self) -> None:
        """Say so; never the id, which is a secret or a stranger's guess."""
        super().__init__('there is no such request in the inbox')


class AlreadySettled(AnswerRefused):
    """The request is no longer open. The first valid answer holds."""

    def __init__(self, state: Settled, *, by: str | None = None, at: datetime | None = None) -> None:
        """Say who was first, and when.

        Args:
            state: What became of the request.
            by: The id of the person whose answer it was, where it was a person.
            at: When.
        """
        self.state: Settled = state
        self.by = by
        self.at = at
        when = '' if at is None else f' at {at.isoformat(timespec="seconds")}'
        who = '' if by is None else f' by {by!r}'
        super().__init__(f'the request is no longer open: it was {state}{who}{when}')


class OtherContent(AnswerRefused):
    """The answer carries another digest than that of what the request shows."""

    def __init__(self) -> None:
        """Say what to do."""
        super().__init__('the answer is to something else than what the request shows; load it again and decide anew')


class NotAnApprover(AnswerRefused):
    """This person may not answer this request."""

    def __init__(self, approver: str, tool_name: str, problem: str) -> None:
        """Say who may not answer what.

        Args:
            approver: The id of the person.
            tool_name: The tool that is asked about.
            problem: Why, as the end of a sentence.
        """
        self.approver = approver
        self.tool_name = tool_name
        self.problem = problem
        super().__init__(f'{approver!r} may not answer for {tool_name!r}: {problem}')


class InvalidAnswer(AnswerRefused):
    """The answer says something that the request does not offer, or nothing that can be kept."""

    def __init__(self, problem: str) -> None:
        """Say what is wrong with it."""
        self.problem = problem
        super().__init__(f'this is no answer to the request: {problem}')


class RequestTooLarge(InboxError):
    """The request is larger than a person can be shown. It was not posted."""

    def __init__(self, size: int, limit: int) -> None:
        """Say how large it is, and may be, in bytes."""
        self.size = size
        self.limit = limit
        super().__init__(f'the request has {size} bytes, and the inbox takes {limit}; present less of it')


class InboxUnavailable(InboxError):
    """The store cannot be reached, or not written to, for the time being. Try again."""

    def __init__(self, place: str, problem: str) -> None:
        """Name the store, without secrets, and what is wrong."""
        self.place = place
        self.problem = problem
        super().__init__(f'the inbox in {place} is unavailable: {problem}')


class InboxUntrusted(InboxError):
    """The store is not what this package made, or not the user's alone. Trying again does not help."""

    def __init__(self, place: str, problem: str) -> None:
        """Name the store, without secrets, and what is wrong."""
        self.place = place
        self.problem = problem
        super().__init__(f'the inbox in {place} cannot be used: {problem}')


def refusal_text(
    error: InboxError | NotOffered,
    *,
    name: Callable[[str], str] = escape_line,
    text: Callable[[str], str] = escape_line,
) -> str:
    """Why an answer did not count, in sentences for the person who gave it.

    Args:
        error: What was raised: by `Inbox.decide`, or by `decision_on`.
        name: Makes the id of a person harmless where the text is shown.
        text: Makes any other text harmless there.
    """
    match error:
        case AlreadySettled():
            by = '' if error.by is None else f' by {name(error.by)}'
            when = '' if error.at is None else f' at {error.at:%H:%M:%S} UTC'
            return f'Your answer came too late: the request was {error.state}{by}{when}.'
        case NotAnApprover():
            return f'You may not answer this request: {text(error.problem)}. Nothing was changed.'
        case OtherContent():
            return 'The request shows something else by now. Nothing was changed; look at it again.'
        case UnknownRequest():
            return 'There is no such request in the inbox any more. Nothing was changed.'
        case AnswerRefused() | NotOffered():
            return 'The request does not offer this answer. Nothing was changed.'
        case _:
            return 'The inbox cannot be reached, so your answer may not have been taken. Look again in a moment.'
