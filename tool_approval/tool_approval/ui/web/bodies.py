"""Parse the body of an HTTP request, and the answer that the body contains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from tool_approval.answering import NotOffered, decision_on, may_approve_together
from tool_approval.core.canonical import decode_arguments
from tool_approval.core.errors import NotCanonicalError
from tool_approval.inbox import Approver, Inbox, InboxEntry

from .refusals import HttpRefusal
from .view import DecisionBody

B = TypeVar('B', bound=BaseModel)

_MOST_FIELDS = 500
"""Maximum number of fields in a form, enough to answer a group of a hundred requests."""


async def read_form(request: Request) -> list[tuple[str, str]]:
    """Return the fields of a form, in order.

    Raises:
        HttpRefusal: The body is not a form.
    """
    _check_type(request, 'application/x-www-form-urlencoded')
    try:
        text = (await request.body()).decode('ascii')
        return parse_qsl(
            text, keep_blank_values=True, strict_parsing=True, errors='strict', max_num_fields=_MOST_FIELDS
        )
    except ValueError:
        raise HttpRefusal(400, 'malformed', 'the body is not a form') from None


def single(fields: list[tuple[str, str]], name: str) -> str | None:
    """Return the value of a form field, or `None` if the field is missing.

    Raises:
        HttpRefusal: The field occurs twice, and programs differ in which value they use.
    """
    found = [value for key, value in fields if key == name]
    if len(found) > 1:
        raise HttpRefusal(400, 'malformed', f'the form has {name!r} twice')
    return found[0] if found else None


async def read_body(request: Request, model: type[B]) -> B:
    """Parse a JSON body as `model`.

    Raises:
        HttpRefusal: The body is not JSON, or is not a valid `model`.
    """
    _check_type(request, 'application/json')
    try:
        # Also refuses duplicate keys and invalid numbers.
        values = decode_arguments((await request.body()).decode())
        return checked(model, values)
    except (UnicodeDecodeError, NotCanonicalError):
        raise HttpRefusal(400, 'malformed', 'the body is not a JSON object') from None


def checked(model: type[B], values: Mapping[str, Any]) -> B:
    """Validate values as `model`.

    Raises:
        HttpRefusal: The values do not form a valid `model`.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        # The message must not quote what was sent, so only known field names appear in it.
        known = [str(part) for part in first['loc'][:1] if part in model.model_fields]
        place = f'{known[0]}: ' if known else 'unknown field: '
        raise HttpRefusal(422, 'invalid_answer', f'{place}{first["msg"]}') from None


def _check_type(request: Request, wanted: str) -> None:
    found = request.headers.get('content-type', '').partition(';')[0].strip().lower()
    if found != wanted:
        raise HttpRefusal(415, 'wrong_type', f'the content type must be {wanted}')


async def answer(inbox: Inbox, request_id: str, body: DecisionBody, visitor: Approver) -> InboxEntry:
    """Record the answer to a request, for the page and the API.

    Raises:
        NotOffered: The request does not offer this answer.
        InboxError: See `Inbox.decide`.
    """
    entry = await inbox.get(request_id)
    decision = decision_on(entry.request, **body.model_dump(exclude={'digest'}))
    return await inbox.decide(request_id, decision, by=visitor, digest=body.digest)


async def check_group(inbox: Inbox, request_ids: list[str]) -> None:
    """Raise an exception unless each request is shown whole. Other requests must be approved one by one.

    Raises:
        NotOffered: A request is not shown whole.
        InboxError: A request cannot be read.
    """
    for request_id in request_ids:
        if not may_approve_together([(await inbox.get(request_id)).request]):
            raise NotOffered('part of a request is not shown, so approve the requests one by one')
