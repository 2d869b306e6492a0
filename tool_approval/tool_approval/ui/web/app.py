"""Assemble the ASGI application."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Collection
from importlib.resources import files

from tool_approval.core.errors import MissingExtraError, check_methods, check_type
from tool_approval.inbox import Inbox
from tool_approval.inbox.inbox import check_inbox

try:
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Mount, Route, Router
    from starlette.types import ASGIApp
except ImportError:
    raise MissingExtraError('starlette', extra='web') from None

from .api import ApiRoutes
from .events import BEAT_S, Streams
from .guard import Guard, Limits, RateLimit
from .page_routes import LinkRoutes, PageRoutes
from .runs import Runs
from .visitors import Authenticate, Hosts, Links, LocalLogin, Visitors
from .webhook import Webhook

_STATIC = {'inbox.css': 'text/css', 'inbox.js': 'text/javascript'}


def inbox_app(
    inbox: Inbox,
    *,
    authenticate: Authenticate,
    hosts: Collection[str],
    secret: bytes | None = None,
    limits: Limits | None = None,
    log: str | os.PathLike[str] | None = None,
    links: Links | None = None,
    webhook: Webhook | None = None,
    beat_s: float = BEAT_S,
    clock: Callable[[], float] = time.monotonic,
) -> ASGIApp:
    """Create an ASGI application with a page and a JSON API for an inbox. The application can be served alone or
    mounted in another one.

    Paths below the mount path: `/` for the page, `/api/v1/...` for the API, `/api/v1/openapi.json` for its description.

    Args:
        inbox: Inbox with the requests. The caller closes the inbox.
        authenticate: A `LocalLogin`, or a function that returns the logged-in approver of an HTTP request. Every
            approver sees all open and settled requests; `InboxUI(approvers=...)` restricts who may answer.
        hosts: Host names of the page, such as `approvals.example` or `127.0.0.1:8765`. HTTP requests for other hosts
            are refused.
        secret: Key with which the tokens in forms are signed: at least 32 random bytes. All processes that serve the
            page use the same secret. `None` creates a random secret.
        limits: Limits on HTTP requests.
        log: Audit log to show at `/log`, to every approver. `None` shows none.
        links: Links with which approvers answer without a login, at `/link/...`. `None` serves none.
        webhook: Webhook whose answers are taken at `/api/webhook`. `None` takes none.
        beat_s: Seconds between the keep-alive messages that each open page receives.
        clock: Clock that returns monotonic seconds, for rate limits.

    Raises:
        TypeError: An argument has a wrong type, such as a store as `inbox`.
        ValueError: A host is invalid, no host is given, or the secret is too short.
    """
    check_inbox(inbox)
    check_methods('authenticate', authenticate, 'a `LocalLogin` or a function of the HTTP request', '__call__')
    check_type('secret', secret, 'bytes', bytes)
    if secret is not None and len(secret) < 32:
        raise ValueError('`secret` must have at least 32 bytes; use `secrets.token_bytes(32)`')
    limits = limits or Limits()
    visitors = Visitors(authenticate, secret or secrets.token_bytes(32))
    login = authenticate if isinstance(authenticate, LocalLogin) else None
    streams = Streams(inbox, visitors, limits, beat_s=beat_s)
    runs = Runs(inbox)
    static = Route('/static/{name}', _static, methods=['GET'])
    routes = [
        *PageRoutes(inbox, runs, visitors, login, log, links).routes(),
        Route('/events', streams.respond, methods=['GET']),
        static,
        Mount('/api/v1', routes=ApiRoutes(inbox, runs, visitors).routes()),
    ]
    if links is not None:
        linked = [*LinkRoutes(inbox, runs, links).routes(), static]
        routes.append(Mount('/link/{secret}', app=Router(linked, redirect_slashes=False)))
    if webhook is not None:
        routes.append(Route('/api/webhook', webhook.respond, methods=['POST']))
    # No redirects for missing slashes: they would repeat the host that the client sent.
    router = Router(routes, redirect_slashes=False)
    return Guard(router, hosts=Hosts(hosts), limits=limits, rate=RateLimit(limits, clock))


async def _static(request: Request) -> Response:
    name = request.path_params['name']
    kind = _STATIC.get(name)
    if kind is None:
        raise HTTPException(404)
    return Response(files('tool_approval.ui.web').joinpath('static', name).read_bytes(), media_type=kind)
