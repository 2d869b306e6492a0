"""Map errors to HTTP refusals with a status, a code and a message."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.exceptions import HTTPException

from tool_approval.answering import NotOffered
from tool_approval.durable.steering import NobodyMay, SteeringRefused, UnknownRun
from tool_approval.inbox import AlreadySettled, InboxError, InvalidAnswer, NotAnApprover, OtherContent, UnknownRequest


class HttpRefusal(Exception):
    """Refuses an HTTP request before it changes anything.

    `code` is for programs. `message` is a clause without a final full stop, and may contain untrusted text.
    """

    def __init__(self, status: int, code: str, message: str, *, headers: Mapping[str, str] | None = None) -> None:
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})
        super().__init__(message)


_HTTP: Mapping[int, tuple[str, str]] = {
    404: ('not_found', 'there is no such page'),
    405: ('method_not_allowed', 'this page does not support that method'),
}


def refusal_of(error: InboxError | NotOffered | SteeringRefused | HTTPException) -> HttpRefusal:
    """Return the refusal that reports an error to the visitor."""
    match error:
        case HTTPException():
            code, message = _HTTP.get(error.status_code, ('refused', 'the request was refused'))
            return HttpRefusal(error.status_code, code, message, headers=error.headers)
        case UnknownRequest():
            return HttpRefusal(404, 'unknown_request', str(error))
        case AlreadySettled():
            return HttpRefusal(409, 'already_settled', str(error))
        case OtherContent():
            return HttpRefusal(409, 'other_content', str(error))
        case NotAnApprover():
            return HttpRefusal(403, 'not_an_approver', str(error))
        case UnknownRun():
            return HttpRefusal(404, 'unknown_run', str(error))
        case NobodyMay():
            return HttpRefusal(403, 'not_an_approver', str(error))
        case SteeringRefused():
            return HttpRefusal(409, 'not_possible_now', str(error))
        case InvalidAnswer() | NotOffered():
            return HttpRefusal(422, 'invalid_answer', str(error))
        case _:
            # The text of the error names the store, which visitors must not see.
            message = 'the inbox cannot be reached, and nothing was approved; try again in a moment'
            return HttpRefusal(503, 'unavailable', message, headers={'Retry-After': '2'})
