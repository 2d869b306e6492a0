"""Send requests to an endpoint, and take signed answers from it.

Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import base64
import hmac
import json
import re
import secrets
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Literal
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, build_opener
from urllib.request import Request as Outgoing

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tool_approval.inbox import Approver, Inbox, InboxEntry
from tool_approval.ui.replays import Replays

from .bodies import answer, read_body
from .refusals import HttpRefusal
from .view import DecisionBody, view_of, why_not

TOLERANCE_S = 300
"""Maximum difference between a timestamp and the clock, in seconds. Source: the libraries of the specification."""

TIMEOUT_S = 10.0
"""Maximum seconds for each step of sending. Chosen: an endpoint should only store what it gets."""

_THIS_MACHINE = ('localhost', '127.0.0.1', '::1')
_ID = re.compile(r'[A-Za-z0-9_-]{1,100}')
_TIME = re.compile(r'[0-9]{1,12}')


class AnswerData(DecisionBody):
    """An answer, with the request and the person who gave it. Unknown fields are refused."""

    id: str = Field(max_length=100)
    """Id of the request."""
    by: str = Field(max_length=200)
    """Id of the person, as the receiver names people."""


class AnswerMessage(BaseModel):
    """A message with an answer. Unknown fields are refused."""

    model_config = ConfigDict(extra='forbid', strict=True)

    type: Literal['request.answered']
    """Kind of message. Messages that were sent to the endpoint have other kinds, so they are not taken for answers."""
    timestamp: str | None = Field(default=None, max_length=100)
    """Time of the answer. It is not used."""
    data: AnswerData
    """The answer."""


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *args: object, **keywords: object) -> None:
        return None  # raises the redirect as an error


class Webhook:
    """A channel that sends each request to an endpoint, signed, and an ASGI handler that takes signed answers."""

    def __init__(
        self,
        inbox: Inbox,
        url: str,
        secret: str,
        people: Mapping[str, Approver],
        *,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Configure the endpoint.

        Args:
            inbox: Inbox with the requests.
            url: URL of the endpoint: `https`, or `http` on this machine.
            secret: Secret that signs both directions: `whsec_` and 24 to 64 bytes in base64.
            people: Maps the ids with which the endpoint names people to approvers.
            now: Returns the time in seconds since 1970.
            clock: Returns monotonic seconds.

        Raises:
            ValueError: The URL or the secret is invalid.
        """
        parts = urlsplit(url)
        if parts.scheme != 'https' and not (parts.scheme == 'http' and parts.hostname in _THIS_MACHINE):
            raise ValueError('the URL of a webhook must begin with `https://`')
        prefix, found, written = secret.partition('whsec_')
        self._key = base64.b64decode(written, validate=True)
        if prefix or not found or not 24 <= len(self._key) <= 64:
            raise ValueError('the secret of a webhook must be `whsec_` and 24 to 64 bytes in base64')
        self._inbox = inbox
        self._url = url
        self._people = dict(people)
        self._now = now
        self._replays = Replays(clock)
        self._sent: set[str] = set()

    def posted(self, entry: InboxEntry) -> None:
        """Send a request, if at least one of the people may answer it.

        Raises:
            OSError: The endpoint cannot be reached, or did not accept the message.
        """
        may = [name for name, approver in self._people.items() if why_not(entry, approver) is None]
        if may:
            self._sent.add(entry.id)
            self._send('request.posted', entry, may)

    def settled(self, entry: InboxEntry) -> None:
        """Send the outcome of a request that was sent.

        Raises:
            OSError: The endpoint cannot be reached, or did not accept the message.
        """
        if entry.id in self._sent:
            self._sent.discard(entry.id)
            self._send('request.settled', entry, [])

    async def respond(self, request: Request) -> Response:
        """Take an answer from the endpoint.

        Raises:
            HttpRefusal: The message is not signed, old, repeated or malformed, or its person is not listed.
            NotOffered: The request does not offer this answer.
            InboxError: See `Inbox.decide`.
        """
        self._check(request, await request.body())
        data = (await read_body(request, AnswerMessage)).data
        person = self._people.get(data.by)
        if person is None:
            raise HttpRefusal(403, 'unknown_person', 'this person is not listed for the webhook')
        body = DecisionBody(**data.model_dump(exclude={'id', 'by'}))
        entry = await answer(self._inbox, data.id, body, person)
        return JSONResponse({'outcome': entry.outcome})

    def _check(self, request: Request, body: bytes) -> None:
        names = ('webhook-id', 'webhook-timestamp', 'webhook-signature')
        given = [request.headers.getlist(name) for name in names]
        identifier, at, signatures = (each[0] if len(each) == 1 else '' for each in given)
        if _ID.fullmatch(identifier) is None or _TIME.fullmatch(at) is None:
            raise HttpRefusal(401, 'not_signed', 'the headers of the signature are missing or malformed')
        expected = self._signature(identifier, at, body).encode()
        if not any(hmac.compare_digest(each.encode(), expected) for each in signatures.split(' ')):
            raise HttpRefusal(401, 'wrong_signature', 'the signature is wrong')
        if abs(self._now() - int(at)) > TOLERANCE_S:
            raise HttpRefusal(401, 'wrong_time', 'the timestamp is more than five minutes away')
        if not self._replays.is_new(identifier):
            raise HttpRefusal(409, 'repeated', 'a message with this id has come before')

    def _signature(self, identifier: str, at: str, body: bytes) -> str:
        signed = hmac.digest(self._key, f'{identifier}.{at}.'.encode() + body, sha256)
        return f'v1,{base64.b64encode(signed).decode()}'

    def _send(self, kind: str, entry: InboxEntry, may: list[str]) -> None:
        # The visitor only matters for the fields that are left out.
        view = view_of(entry, Approver(id='webhook')).model_dump(mode='json', exclude={'can_answer', 'why_not'})
        at = self._now()
        content = {
            'type': kind,
            'timestamp': datetime.fromtimestamp(at, UTC).isoformat(),
            'data': {'request': view, 'may_answer': may},
        }
        body = json.dumps(content, separators=(',', ':')).encode()
        identifier, seconds = f'msg_{secrets.token_urlsafe(16)}', str(int(at))
        headers = {
            'Content-Type': 'application/json',
            'webhook-id': identifier,
            'webhook-timestamp': seconds,
            'webhook-signature': self._signature(identifier, seconds, body),
        }
        # Attack: a proxy in the environment reads an unencrypted message to this machine (test_webhook.py).
        proxies = ProxyHandler({} if urlsplit(self._url).scheme == 'http' else None)
        with build_opener(_NoRedirects, proxies).open(Outgoing(self._url, body, headers), timeout=TIMEOUT_S):
            pass
