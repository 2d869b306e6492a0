"""Who is at the other end, and whether it is their own page that sends a change."""

from __future__ import annotations

import hmac
import inspect
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Collection
from hashlib import sha256
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from tool_approval.inbox import Approver

from .refusals import HttpRefusal

COOKIE = 'tool_approval'

TICKET_S = 3600.0
"""Chosen: a link that was not opened within an hour, in seconds, was forgotten."""

SESSION_S = 12 * 3600.0
"""Chosen: a working day, in seconds."""


NEW_LINK = (
    'A link works once, within an hour, and a login ends after twelve. For a new link, press Enter in the terminal '
    'where `tool-approval serve` runs; open requests go on waiting'
)
"""What to do without a session, as a sentence without its full stop."""


class LocalLogin:
    """Lets in whoever has a ticket, once; an `Authenticate` for `inbox_app`. Keeps everything in memory.

    `ticket` may be called from any thread.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Nobody is let in yet.

        Args:
            clock: Seconds that never go back.
        """
        self._clock = clock
        self._tickets: dict[bytes, tuple[Approver, float]] = {}
        self._sessions: dict[bytes, tuple[Approver, float]] = {}

    def ticket(self, approver: Approver) -> str:
        """A secret that lets in one browser as this person, once, within an hour. It goes into the query `token`."""
        return self._new(self._tickets, approver, TICKET_S)

    def redeem(self, ticket: str) -> str | None:
        """The secret of a new session for a ticket, which is worth nothing from now on; `None` if it was before."""
        approver = self._find(self._tickets, ticket)
        self._tickets.pop(_hash(ticket), None)
        return None if approver is None else self._new(self._sessions, approver, SESSION_S)

    def __call__(self, request: Request) -> Approver | None:
        """Who has the session that a request's cookie names."""
        return self._find(self._sessions, request.cookies.get(COOKIE, ''))

    def end(self, request: Request) -> None:
        """End the session, for whoever else has its cookie too."""
        self._sessions.pop(_hash(request.cookies.get(COOKIE, '')), None)

    def set_cookie(self, request: Request, response: Response, session: str | None) -> None:
        """Hand over a session, or take it back; its cookie is sent to nothing but this page.

        Attack: cookies do not tell ports apart, so another server on this machine, such as one that the agent has
        started, would be sent this one's; that is why `tool-approval serve` serves below a path that nobody can guess
        (test_serve.py: test_the_cookie_is_not_sent_to_other_servers_of_this_machine).
        """
        is_https = request.url.scheme == 'https'
        path = f'{request.scope.get("root_path", "")}/'
        if session is None:
            response.delete_cookie(COOKIE, path=path, secure=is_https, httponly=True, samesite='strict')
        else:
            response.set_cookie(COOKIE, session, path=path, secure=is_https, httponly=True, samesite='strict')

    def _new(self, kept: dict[bytes, tuple[Approver, float]], approver: Approver, lasts_s: float) -> str:
        now = self._clock()
        for key in [key for key, (_, ends_at) in list(kept.items()) if ends_at <= now]:
            kept.pop(key, None)
        secret = secrets.token_urlsafe(32)
        kept[_hash(secret)] = (approver, now + lasts_s)
        return secret

    def _find(self, kept: dict[bytes, tuple[Approver, float]], secret: str) -> Approver | None:
        approver, ends_at = kept.get(_hash(secret), (None, 0.0))
        return approver if self._clock() < ends_at else None


def _hash(secret: str) -> bytes:
    # Looked up by its hash, a secret cannot be found out letter by letter from how long that takes.
    return sha256(secret.encode(errors='replace')).digest()


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
            raise HttpRefusal(421, 'wrong_host', 'this page is not reached under that name')


class Visitors:
    """Knows who asks, and makes and checks what their forms carry."""

    def __init__(self, authenticate: Authenticate, secret: bytes) -> None:
        """Trust a login; the secret makes the tokens of forms, in all processes that serve the same page."""
        self._authenticate = authenticate
        self._advice = f'. {NEW_LINK}' if isinstance(authenticate, LocalLogin) else ''
        self._secret = secret

    async def visitor(self, request: Request) -> Approver:
        """Who asks.

        Raises:
            HttpRefusal: Nobody is logged in.
        """
        found = self._authenticate(request)
        approver = await found if inspect.isawaitable(found) else found
        # Only an `Approver` lets in: `True` or a name is a mistake in the login.
        if not isinstance(approver, Approver):
            raise HttpRefusal(401, 'not_logged_in', f'you are not logged in{self._advice}')
        return approver

    def token(self, visitor: Approver) -> str:
        """What each form of this person carries."""
        return hmac.new(self._secret, b'csrf\0' + visitor.id.encode(), sha256).hexdigest()

    async def changing(self, request: Request, token: str | None) -> Approver:
        """Who sends a change, made sure that they mean it.

        Raises:
            HttpRefusal: Nobody is logged in, or the request comes from another site, or does not carry their token.
        """
        _check_origin(request)
        visitor = await self.visitor(request)
        if token is None or not hmac.compare_digest(token.encode(), self.token(visitor).encode()):
            raise HttpRefusal(403, 'wrong_csrf_token', 'the form is not of this session; load the page again')
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
        raise HttpRefusal(403, 'wrong_origin', 'the request comes from another site')


def _place(origin: str) -> str | None:
    try:
        parts = urlsplit(origin.lower())
    except ValueError:
        return None
    return parts.netloc if parts.scheme in ('http', 'https') else None
