"""A login for the machine's own user: a link that works once, and a cookie."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from hashlib import sha256

from starlette.requests import Request
from starlette.responses import Response

from tool_approval.inbox import Approver

COOKIE = 'tool_approval'

TICKET_S = 3600.0
"""Chosen: a link that was not opened within an hour, in seconds, was forgotten."""

SESSION_S = 12 * 3600.0
"""Chosen: a working day, in seconds."""


NEW_LINK = (
    'A link works once, within an hour, and a login ends after twelve. For a new link, end the program that printed it '
    'with Ctrl-C, such as `tool-approval serve`, and start it again; open requests go on waiting'
)
"""What to do without a session, as a sentence without its full stop."""


class LocalLogin:
    """Lets in whoever has a ticket, once; an `Authenticate` for `inbox_app`. Keeps everything in memory."""

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
        for key in [key for key, (_, ends_at) in kept.items() if ends_at <= now]:
            del kept[key]
        secret = secrets.token_urlsafe(32)
        kept[_hash(secret)] = (approver, now + lasts_s)
        return secret

    def _find(self, kept: dict[bytes, tuple[Approver, float]], secret: str) -> Approver | None:
        approver, ends_at = kept.get(_hash(secret), (None, 0.0))
        return approver if self._clock() < ends_at else None


def _hash(secret: str) -> bytes:
    # Looked up by its hash, a secret cannot be found out letter by letter from how long that takes.
    return sha256(secret.encode(errors='replace')).digest()
