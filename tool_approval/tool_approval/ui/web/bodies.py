"""What a body says, or that it says nothing that can be meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from pydantic import ValidationError
from starlette.requests import Request

from tool_approval.core.canonical import decode_arguments
from tool_approval.core.errors import NotCanonicalError

from .refusals import Refusal
from .view import DecisionBody

_MOST_FIELDS = 500
"""Chosen: a group of a hundred requests fits."""


async def read_form(request: Request) -> list[tuple[str, str]]:
    """The fields of a form, in order.

    Raises:
        Refusal: The body is none.
    """
    _check_type(request, 'application/x-www-form-urlencoded')
    try:
        text = (await request.body()).decode('ascii')
        return parse_qsl(
            text, keep_blank_values=True, strict_parsing=True, errors='strict', max_num_fields=_MOST_FIELDS
        )
    except ValueError:
        raise Refusal(400, 'malformed', 'the body is not a form') from None


def single(fields: list[tuple[str, str]], name: str) -> str | None:
    """The one value of a field, `None` where it is not there.

    Raises:
        Refusal: It is there twice: whoever looks at the first and whoever looks at the last would not agree.
    """
    found = [value for key, value in fields if key == name]
    if len(found) > 1:
        raise Refusal(400, 'malformed', f'the form says {name!r} twice')
    return found[0] if found else None


async def read_decision(request: Request) -> DecisionBody:
    """A decision in JSON.

    Raises:
        Refusal: The body is none.
    """
    _check_type(request, 'application/json')
    try:
        # Keys that stand twice, and numbers that are none, are refused here.
        values = decode_arguments((await request.body()).decode())
        return decision_of(values)
    except (UnicodeDecodeError, NotCanonicalError):
        raise Refusal(400, 'malformed', 'the body is not a JSON object') from None


def decision_of(values: Mapping[str, Any]) -> DecisionBody:
    """Values as a decision.

    Raises:
        Refusal: They are none.
    """
    try:
        return DecisionBody.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        # What is wrong and where, by our own names; never what was sent.
        known = [str(part) for part in first['loc'][:1] if part in DecisionBody.model_fields]
        place = f'{known[0]}: ' if known else 'a field that is not known: '
        raise Refusal(422, 'invalid_answer', f'{place}{first["msg"]}') from None


def _check_type(request: Request, wanted: str) -> None:
    found = request.headers.get('content-type', '').partition(';')[0].strip().lower()
    if found != wanted:
        raise Refusal(415, 'wrong_type', f'the body must be {wanted}')
