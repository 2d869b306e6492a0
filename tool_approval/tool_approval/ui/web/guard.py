"""Check host, rate and size of each HTTP request, set security headers, and turn errors into responses."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tool_approval.answering import NotOffered
from tool_approval.core.threads import in_thread
from tool_approval.durable.steering import SteeringRefused
from tool_approval.inbox import InboxError

from .pages import message_page
from .refusals import HttpRefusal, refusal_of
from .visitors import Hosts

T = TypeVar('T')


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits on HTTP requests. The default limits are our choice: far above what people need, and far below what would
    block other visitors.
    """

    max_body_bytes: int = 1024 * 1024
    """Maximum number of bytes in a request body, including arguments that the approver edited."""
    requests_per_s: float = 50.0
    """Average number of HTTP requests per second from one client address."""
    burst: int = 200
    """Maximum number of HTTP requests at once from one client address."""
    max_streams: int = 100
    """Maximum number of open event streams, for all clients together."""


_MOST_CLIENTS = 10_000
"""Maximum number of clients to track. Each further client replaces the least recently active client."""


async def draw_apart(turn: asyncio.Semaphore, draw: Callable[[], T]) -> T:
    """Render long content in a thread, so that the event loop stays free. Render only one request at a time.

    Rendering a request of 4 MB on the event loop would block the page for many seconds (test_pages.py:
    test_whole_display_is_drawn_outside_of_the_event_loop).
    """
    async with turn:
        return await in_thread(draw)


class RateLimit:
    """Limits the rate of requests. Each client has a separate token bucket."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def takes(self, client: str) -> bool:
        """Count a request of a client, and return whether it is within the limit."""
        now = self._clock()
        tokens, since = self._buckets.pop(client, (float(self._limits.burst), now))
        tokens = min(self._limits.burst, tokens + (now - since) * self._limits.requests_per_s)
        is_within = tokens >= 1
        self._buckets[client] = (tokens - is_within, now)
        if len(self._buckets) > _MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return is_within


_log = logging.getLogger('tool_approval')

HEADERS = {
    # Attack: text of a model gets into the page as markup through a mistake. It must not load, run or send anything
    # (test_pages.py: test_no_field_of_a_request_becomes_markup).
    'Content-Security-Policy': (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; "
        "frame-ancestors 'none'; base-uri 'none'"
    ),
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
    'Referrer-Policy': 'no-referrer',
    'Cache-Control': 'no-store',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Permissions-Policy': 'camera=(), microphone=(), geolocation=()',
}


class Guard:
    """ASGI middleware that checks each HTTP request and turns errors into responses."""

    def __init__(self, app: ASGIApp, *, hosts: Hosts, limits: Limits, rate: RateLimit) -> None:
        self._app = app
        self._hosts = hosts
        self._limits = limits
        self._rate = rate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an HTTP request."""
        if scope['type'] != 'http':
            return await self._app(scope, receive, send)
        # Replaces the error handlers of an application that this one is mounted in.
        scope = {**scope, 'app': self, 'starlette.exception_handlers': ({}, {})}
        has_begun = False
        received = 0

        async def limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get('body', b''))
            if received > self._limits.max_body_bytes:
                raise self._too_large()
            return message

        async def headed(message: Message) -> None:
            nonlocal has_begun
            if message['type'] == 'http.response.start':
                has_begun = True
                headers = MutableHeaders(raw=message.setdefault('headers', []))
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        request = Request(scope)
        try:
            self._check(request)
            # A copy, because routers modify the scope.
            await self._app({**scope}, limited, headed)
            return None
        except HttpRefusal as error:
            refusal = error
        except (HTTPException, InboxError, NotOffered, SteeringRefused) as error:
            refusal = refusal_of(error)
        except ClientDisconnect:
            return None
        except Exception as error:  # noqa: BLE001 - a visitor must not see a traceback
            # The text of the error may quote arguments, so only its type is logged.
            _log.error('The page failed with %s', type(error).__name__)
            refusal = HttpRefusal(500, 'failed', 'an internal error occurred, and nothing was approved; try again')
        if has_begun:
            return None  # the server closes the connection, so that the response is visibly incomplete
        return await _answer(request, refusal)(scope, receive, headed)

    def _check(self, request: Request) -> None:
        self._hosts.check(request)
        client = request.client.host if request.client is not None else ''
        if not self._rate.takes(client):
            raise HttpRefusal(
                429, 'too_many_requests', 'too many requests; wait a moment', headers={'Retry-After': '1'}
            )
        length = request.headers.get('content-length', '0')
        # Parsing very many digits would take long.
        if not length.isdecimal() or len(length) > 18 or int(length) > self._limits.max_body_bytes:
            raise self._too_large()

    def _too_large(self) -> HttpRefusal:
        return HttpRefusal(413, 'too_large', f'the body is longer than {self._limits.max_body_bytes:,} bytes')


def wants_json(request: Request) -> bool:
    """Return whether to respond to an error with JSON instead of a page."""
    below = request.url.path.removeprefix(request.scope.get('root_path', ''))
    return 'application/json' in request.headers.get('accept', '') or below.startswith('/api/')


def _answer(request: Request, refusal: HttpRefusal) -> Response:
    if wants_json(request):
        body = {'error': {'code': refusal.code, 'message': refusal.message}}
        return JSONResponse(body, refusal.status, headers=refusal.headers)
    return message_page(request, refusal.message, status=refusal.status, headers=refusal.headers)
