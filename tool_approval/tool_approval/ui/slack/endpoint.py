"""Receive what Slack sends by HTTP: an ASGI application."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse

MAX_BYTES = 1024 * 1024
"""Chosen: Slack sends a message with what was pressed, and no message may be so long."""

_SIGNED = {
    'x-slack-request-timestamp': re.compile(r'[0-9]{1,12}'),
    'x-slack-signature': re.compile(r'v0=[0-9a-f]{64}'),
}
"""Headers that must be there once, of the form that Slack's library can compare."""

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class SlackEndpoint:
    """Give Slack its address as the request URL of "Interactivity". Its path is that where you mount it."""

    def __init__(self, app: AsyncApp) -> None:
        """Pass on to Slack's library, which checks the signature and the age of each request."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take one request; or the life of a server, in which nothing is to be done."""
        if scope['type'] == 'lifespan':
            while (message := await receive())['type'] != 'lifespan.shutdown':
                await send({'type': f'{message["type"]}.complete'})
            await send({'type': 'lifespan.shutdown.complete'})
        elif scope['type'] == 'http':
            status, headers, body = await self._response(scope, receive)
            await send({'type': 'http.response.start', 'status': status, 'headers': headers})
            await send({'type': 'http.response.body', 'body': body})
        else:
            raise RuntimeError(f'Slack sends HTTP requests, not {scope["type"]!r}')

    async def _response(self, scope: Scope, receive: Receive) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        if scope['method'] != 'POST':
            return _refused(405)
        headers: dict[str, Sequence[str]] = {}
        for name, value in scope['headers']:
            name = name.decode('latin-1').lower()
            headers[name] = [*headers.get(name, ()), value.decode('latin-1')]
        for name, form in _SIGNED.items():
            values = headers.get(name, ())
            if len(values) != 1 or form.fullmatch(values[0]) is None:
                return _refused(401)
        body = await _body(receive)
        if body is None:
            return _refused(413)
        try:
            text = body.decode()
        except UnicodeDecodeError:
            return _refused(400)
        response: BoltResponse = await self._app.async_dispatch(AsyncBoltRequest(body=text, headers=headers))
        sent = [(name.encode(), value.encode()) for name, values in response.headers.items() for value in values]
        return response.status, sent, response.body.encode()


async def _body(receive: Receive) -> bytes | None:
    """All of it; `None` if it is too long, or does not come to its end."""
    body = bytearray()
    while True:
        message = await receive()
        body += message.get('body', b'')
        if message['type'] != 'http.request' or len(body) > MAX_BYTES:
            return None
        if not message.get('more_body', False):
            return bytes(body)


def _refused(status: int) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    return status, [(b'content-type', b'text/plain'), (b'content-length', b'0')], b''


REMEMBERED_S = 600.0
"""Source: Slack's library takes a timestamp that is at most five minutes off, to either side, so a request may be valid
for ten minutes."""

MOST = 100_000
"""Chosen: far more than people press in ten minutes. Only what Slack has signed is remembered."""


class Replays:
    """Remembers signatures. Slack signs the timestamp too, so that no two requests have the same."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Go by a clock of seconds that never go back."""
        self._clock = clock
        self._seen: OrderedDict[str, float] = OrderedDict()

    def is_new(self, signature: str) -> bool:
        """Whether this signature was not seen before, and remember it. While there are too many, none is new."""
        now = self._clock()
        while self._seen and now - next(iter(self._seen.values())) >= REMEMBERED_S:
            self._seen.popitem(last=False)
        if signature in self._seen or len(self._seen) >= MOST:
            return False
        self._seen[signature] = now
        return True
