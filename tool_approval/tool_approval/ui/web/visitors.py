"""Identify visitors, and refuse state-changing requests from other sites."""

from __future__ import annotations

import hmac
import inspect
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from tool_approval.inbox import Approver, InboxEntry

from .refusals import HttpRefusal

COOKIE = 'tool_approval'

TICKET_S = 3600.0
"""Seconds until a login link expires. A link that was not used within this time was probably forgotten."""

SESSION_S = 12 * 3600.0
"""Duration of a login session in seconds: about one working day."""


NEW_LINK = (
    'A link works only once, and expires after an hour. A login lasts twelve hours. For a new link, press Enter '
    'in the terminal where `tool-approval serve` runs. Open requests keep waiting'
)
"""Advice, without the final full stop, for visitors who are not logged in."""


class LocalLogin:
    """Login by single-use links, for `inbox_app(authenticate=...)`. Logins are stored in memory.

    `ticket` may be called from any thread.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start without tickets and sessions.

        Args:
            clock: Returns monotonic seconds.
        """
        self._clock = clock
        self._tickets: dict[bytes, tuple[Approver, float]] = {}
        self._sessions: dict[bytes, tuple[Approver, float]] = {}

    def ticket(self, approver: Approver) -> str:
        """Return a secret with which one browser can log in as this approver. The browser sends the secret as the
        query parameter `token`. The secret expires after an hour.
        """
        return self._new(self._tickets, approver, TICKET_S)

    def redeem(self, ticket: str) -> str | None:
        """Use up a ticket, and return the secret of a new session; `None` for an invalid ticket."""
        approver = self._find(self._tickets, ticket)
        self._tickets.pop(_hash(ticket), None)
        return None if approver is None else self._new(self._sessions, approver, SESSION_S)

    def __call__(self, request: Request) -> Approver | None:
        """Return the approver whose session is in the request's cookie, or `None` if there is no such session."""
        return self._find(self._sessions, request.cookies.get(COOKIE, ''))

    def end(self, request: Request) -> None:
        """End the session that the cookie identifies, in every browser that has this cookie."""
        self._sessions.pop(_hash(request.cookies.get(COOKIE, '')), None)

    def set_cookie(self, request: Request, response: Response, session: str | None) -> None:
        """Set or delete the session cookie, which is sent only to the path of this page.

        Browsers send cookies to all ports of a host, so servers that an agent starts on this machine could read the
        cookie. `tool-approval serve` therefore limits the cookie to an unguessable path (test_serve.py:
        test_the_cookie_is_not_sent_to_other_servers_of_this_machine).
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


@dataclass(frozen=True)
class Link:
    """The request and the approver of a link."""

    request_id: str
    """Id of the request."""
    digest: str
    """Digest of the request when the link was made."""
    approver: Approver
    """Approver for whom the link was made."""


LINK_S = 7 * 86_400.0
"""Seconds until the link to a request without a deadline expires. Chosen: a week, after which people ask anew."""


class Links:
    """Secret links for `inbox_app(links=...)`: with a link, one approver can answer one request without a login.

    A link only shows the request; the answer is a form. After the answer, or if the request is settled otherwise, the
    link shows the outcome. It expires with the request. Hashes of the secrets are kept in memory.
    """

    def __init__(
        self,
        page: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Start without links.

        Args:
            page: URL of the page, without a trailing slash.
            clock: Returns monotonic seconds.
            now: Returns the current time.
        """
        self._page = page
        self._clock = clock
        self._now = now
        self._links: dict[bytes, tuple[Link, float]] = {}
        self.unreached: set[str] = set()
        """Names of the channels whose last notification failed. The page shows them."""

    def make(self, entry: InboxEntry, approver: Approver) -> str:
        """Return the URL at which this approver can answer this request. Any thread may call this method."""
        now, ends = self._clock(), entry.content.expires_at
        for key in [key for key, (_, ends_at) in list(self._links.items()) if ends_at <= now]:
            self._links.pop(key, None)
        lasts_s = LINK_S if ends is None else (ends - self._now()).total_seconds()
        secret = secrets.token_urlsafe(32)
        self._links[_hash(secret)] = (Link(entry.id, entry.digest, approver), now + lasts_s)
        return f'{self._page}/link/{secret}/'

    def find(self, request: Request) -> Link:
        """Return the link through which an HTTP request came.

        Raises:
            HttpRefusal: The link is unknown or has expired.
        """
        link, ends_at = self._links.get(_hash(request.path_params['secret']), (None, 0.0))
        if link is None or self._clock() >= ends_at:
            raise HttpRefusal(404, 'unknown_link', 'this link does not exist, or has expired')
        return link


def _hash(secret: str) -> bytes:
    # Looking up hashes prevents guessing a secret letter by letter from the response time.
    return sha256(secret.encode(errors='replace')).digest()


Authenticate = Callable[[Request], 'Approver | Awaitable[Approver | None] | None']
"""Function that returns the approver who sends an HTTP request, or `None` if the visitor is not logged in.

The function is called on the event loop for each request, and repeatedly while a page is open. If the function raises
an exception, the visitor gets an error and sees no data.
"""

_HOST = re.compile(r'(?P<name>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::(?P<port>\d{1,5}))?', re.ASCII)

CSRF_HEADER = 'x-csrf-token'
"""Header with the CSRF token of API clients. Forms send the same token in the field `csrf`."""


class Hosts:
    """Host names of the page."""

    def __init__(self, allowed: Collection[str]) -> None:
        """Validate the host names.

        Args:
            allowed: Host names, written as in a URL. If a name contains a port, the port must match.

        Raises:
            ValueError: No host is given, or a host is invalid, such as `*`.
        """
        if isinstance(allowed, str) or not allowed:
            raise ValueError('`hosts` must list the host names of the page, such as ["127.0.0.1:8765"]')
        for host in allowed:
            if _HOST.fullmatch(host) is None:
                raise ValueError(f'{host!r} is not a host name; write it as in the URL, such as "approvals.example"')
        self._allowed = frozenset(host.lower() for host in allowed)

    def check(self, connection: HTTPConnection) -> None:
        """Raise an exception unless the HTTP request is for an allowed host.

        This check prevents DNS rebinding, in which a site points its host name to 127.0.0.1, so that its script has the
        same origin as this page (test_attacks.py: test_another_host_is_refused).
        """
        sent = connection.headers.getlist('host')
        host = sent[0].lower() if len(sent) == 1 else ''
        found = _HOST.fullmatch(host)
        if found is None or not self._allowed & {host, found['name']}:
            raise HttpRefusal(421, 'wrong_host', 'this host name is not allowed')


class Visitors:
    """Identifies visitors, and creates and checks their form tokens."""

    def __init__(self, authenticate: Authenticate, secret: bytes) -> None:
        """Identify visitors with `authenticate`, and sign form tokens with `secret`."""
        self._authenticate = authenticate
        self._advice = f'. {NEW_LINK}' if isinstance(authenticate, LocalLogin) else ''
        self._secret = secret

    async def visitor(self, request: Request) -> Approver:
        """Return the logged-in approver.

        Raises:
            HttpRefusal: The visitor is not logged in.
        """
        found = self._authenticate(request)
        approver = await found if inspect.isawaitable(found) else found
        # Anything except an `Approver`, such as `True` or a name, is a mistake in the login.
        if not isinstance(approver, Approver):
            raise HttpRefusal(401, 'not_logged_in', f'you are not logged in{self._advice}')
        return approver

    def token(self, visitor: Approver) -> str:
        """Return the token for the approver's forms."""
        return hmac.new(self._secret, b'csrf\0' + visitor.id.encode(), sha256).hexdigest()

    async def changing(self, request: Request, token: str | None) -> Approver:
        """Check origin and token of a state-changing request, and return the logged-in approver who sent the request.

        Raises:
            HttpRefusal: The visitor is not logged in, the request comes from another site, or the token is missing.
        """
        _check_origin(request)
        visitor = await self.visitor(request)
        if token is None or not hmac.compare_digest(token.encode(), self.token(visitor).encode()):
            raise HttpRefusal(403, 'wrong_csrf_token', 'the form belongs to another session; reload the page')
        return visitor


def _check_origin(request: Request) -> None:
    """Raise an exception if another site sent the request.

    Without this check, another site could post a form to this page with the visitor's cookie (test_attacks.py:
    test_another_site_cannot_answer). Clients other than browsers send neither `Origin` nor `Sec-Fetch-Site`, and need
    the token.

    The forms of this page have the origin `null`, because of its referrer policy. Forms in a hostile frame also have
    the origin `null`, but their `Sec-Fetch-Site` is not `same-origin`. Source:
    https://fetch.spec.whatwg.org/#append-a-request-origin-header.
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
