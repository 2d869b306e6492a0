"""Receive Slack's HTTP requests in an ASGI application."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse

MAX_BYTES = 1024 * 1024
"""Maximum size of a request body. A request contains only the message with the pressed button."""

_SIGNED = {
    'x-slack-request-timestamp': re.compile(r'[0-9]{1,12}'),
    'x-slack-signature': re.compile(r'v0=[0-9a-f]{64}'),
}
"""Required headers, each with the format that Slack's library accepts. Each header must occur exactly once."""

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class SlackEndpoint:
    """ASGI application for Slack's "Interactivity" request URL, for mounting at any path."""

    def __init__(self, app: AsyncApp) -> None:
        """Forward requests to Slack's library, which checks their signatures and ages."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an HTTP request or the server's lifespan events."""
        if scope['type'] == 'lifespan':
            while (message := await receive())['type'] != 'lifespan.shutdown':
                await send({'type': f'{message["type"]}.complete'})
            await send({'type': 'lifespan.shutdown.complete'})
        elif scope['type'] == 'http':
            status, headers, body = await self._response(scope, receive)
            await send({'type': 'http.response.start', 'status': status, 'headers': headers})
            await send({'type': 'http.response.body', 'body': body})
        else:
            raise RuntimeError(f'the Slack endpoint accepts only HTTP, not {scope["type"]!r}')

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
    """Return the whole request body; `None` if the body is too long or incomplete."""
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
