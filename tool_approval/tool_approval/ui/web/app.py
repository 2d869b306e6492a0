"""The application, put together."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection
from importlib.resources import files

from tool_approval.core.errors import MissingExtraError
from tool_approval.inbox import Inbox

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
from .page_routes import PageRoutes
from .runs import Runs
from .visitors import Authenticate, Hosts, LocalLogin, Visitors

_STATIC = {'inbox.css': 'text/css', 'inbox.js': 'text/javascript'}


def inbox_app(
    inbox: Inbox,
    *,
    authenticate: Authenticate,
    hosts: Collection[str],
    secret: bytes | None = None,
    limits: Limits | None = None,
    beat_s: float = BEAT_S,
    clock: Callable[[], float] = time.monotonic,
) -> ASGIApp:
    """A page and a JSON API on which people answer what waits in an inbox. Serve it, or mount it in your application.

    Below where it is mounted: `/` and what it links to, `/api/v1/...`, and `/api/v1/openapi.json`.

    Args:
        inbox: Where the requests are. Whoever made it closes it.
        authenticate: Names who sends a request, from your login; or a `LocalLogin`. Everybody whom it names sees all
            open and settled requests; `InboxUI(approvers=...)` says who may answer what.
        hosts: The names under which the page is reached, as in the address: `approvals.example`, `127.0.0.1:8765`.
            Others are refused.
        secret: Makes the tokens of forms, at least 32 random bytes; the same in all processes that serve this page. A
            new one for each process unless given.
        limits: How much a client may ask.
        beat_s: Seconds between two signs of life on a page that is kept up to date.
        clock: Seconds that never go back, for limits.

    Raises:
        ValueError: No host is named, or none that there can be, or the secret is short.
    """
    if secret is not None and len(secret) < 32:
        raise ValueError('`secret` must have at least 32 random bytes, as `secrets.token_bytes(32)` makes them')
    limits = limits or Limits()
    visitors = Visitors(authenticate, secret or secrets.token_bytes(32))
    login = authenticate if isinstance(authenticate, LocalLogin) else None
    streams = Streams(inbox, visitors, limits, beat_s=beat_s)
    runs = Runs(inbox)
    routes = [
        *PageRoutes(inbox, runs, visitors, login).routes(),
        Route('/events', streams.respond, methods=['GET']),
        Route('/static/{name}', _static, methods=['GET']),
        Mount('/api/v1', routes=ApiRoutes(inbox, runs, visitors).routes()),
    ]
    # A slash is nothing to be guessed at: a redirect would name whatever host was sent.
    router = Router(routes, redirect_slashes=False)
    return Guard(router, hosts=Hosts(hosts), limits=limits, rate=RateLimit(limits, clock))


async def _static(request: Request) -> Response:
    name = request.path_params['name']
    kind = _STATIC.get(name)
    if kind is None:
        raise HTTPException(404)
    return Response(files('tool_approval.ui.web').joinpath('static', name).read_bytes(), media_type=kind)
