"""Who is at the other end, and whether it is their own page that sends a change."""

from __future__ import annotations

import hmac
import inspect
import re
from collections.abc import Awaitable, Callable, Collection
from hashlib import sha256
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection, Request

from tool_approval.inbox import Approver

from .local_login import NEW_LINK, LocalLogin
from .refusals import Refusal

Authenticate = Callable[[Request], 'Approver | Awaitable[Approver | None] | None']
"""Names who sends a request, from what the application's own login has put there; `None`: nobody is logged in.

It is called for each request, on the event loop, and again while a page is kept up to date. What it raises is answered
with an error, and nothing is shown.
"""

_HOST = re.compile(r'(?P<name>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::(?P<port>\d{1,5}))?', re.ASCII)

CSRF_HEADER = 'x-csrf-token'
"""Where a program sends what a form sends as `csrf`."""


class Hosts:
    """The names under which the page may be reached."""

    def __init__(self, allowed: Collection[str]) -> None:
        """Read them.

        Args:
            allowed: Host names as they stand in an address: with a port, which then has to be the same, or without.

        Raises:
            ValueError: There is none, or one that no address can have; `*` is none.
        """
        if isinstance(allowed, str) or not allowed:
            raise ValueError('`hosts` must list the names under which the page is reached, such as ["127.0.0.1:8765"]')
        for host in allowed:
            if _HOST.fullmatch(host) is None:
                raise ValueError(f'{host!r} is no host name; write it as in the address, such as "approvals.example"')
        self._allowed = frozenset(host.lower() for host in allowed)

    def check(self, connection: HTTPConnection) -> None:
        """Refuse a request for another host.

        Attack: a site lets its own name point to 127.0.0.1, and its script is of the same origin as this page then
        ("DNS rebinding"; test_attacks.py: test_another_host_is_refused).
        """
        sent = connection.headers.getlist('host')
        host = sent[0].lower() if len(sent) == 1 else ''
        found = _HOST.fullmatch(host)
        if found is None or not self._allowed & {host, found['name']}:
            raise Refusal(421, 'wrong_host', 'this page is not reached under that name')


class Visitors:
    """Knows who asks, and makes and checks what their forms carry."""

    def __init__(self, authenticate: Authenticate, secret: bytes) -> None:
        """Trust a login.

        Args:
            authenticate: Names who sends a request.
            secret: Makes the tokens of forms. Processes that serve the same page need the same one.
        """
        self._authenticate = authenticate
        self._advice = f'. {NEW_LINK}' if isinstance(authenticate, LocalLogin) else ''
        self._secret = secret

    async def visitor(self, request: Request) -> Approver:
        """Who asks.

        Raises:
            Refusal: Nobody is logged in.
        """
        found = self._authenticate(request)
        approver = await found if inspect.isawaitable(found) else found
        # Only an `Approver` lets in: `True` or a name is a mistake in the login.
        if not isinstance(approver, Approver):
            raise Refusal(401, 'not_logged_in', f'you are not logged in{self._advice}')
        return approver

    def token(self, visitor: Approver) -> str:
        """What each form of this person carries."""
        return hmac.new(self._secret, b'csrf\0' + visitor.id.encode(), sha256).hexdigest()

    async def changing(self, request: Request, token: str | None) -> Approver:
        """Who sends a change, made sure that they mean it.

        Raises:
            Refusal: Nobody is logged in, or the request comes from another site, or does not carry their token.
        """
        _check_origin(request)
        visitor = await self.visitor(request)
        if token is None or not hmac.compare_digest(token.encode(), self.token(visitor).encode()):
            raise Refusal(403, 'wrong_csrf_token', 'the form is not of this session; load the page again')
        return visitor


def _check_origin(request: Request) -> None:
    """Refuse what another site sends.

    Attack: a page elsewhere posts a form to this one with the visitor's cookie (test_attacks.py:
    test_another_site_cannot_answer). A program that is no browser sends neither header, and needs the token.

    Source: https://fetch.spec.whatwg.org/#append-a-request-origin-header: as this page tells nobody where it is, its
    forms are sent with the origin `null`. So are those of a hostile frame; `Sec-Fetch-Site` tells them apart.
    """
    origins, sites = request.headers.getlist('origin'), request.headers.getlist('sec-fetch-site')
    host = request.headers['host'].lower()
    is_ours = all(_place(origin) == host or (origin == 'null' and sites) for origin in origins)
    if not is_ours or any(site != 'same-origin' for site in sites):
        raise Refusal(403, 'wrong_origin', 'the request comes from another site')


def _place(origin: str) -> str | None:
    try:
        parts = urlsplit(origin.lower())
    except ValueError:
        return None
    return parts.netloc if parts.scheme in ('http', 'https') else None
