"""`tool-approval serve`: the inbox as a page in the browser."""

from __future__ import annotations

import argparse
import asyncio
import getpass
import re
import secrets
from typing import TYPE_CHECKING, Final

from .output import Output, UsageError

if TYPE_CHECKING:
    import socket

    from tool_approval.inbox import Approver, InboxStore

EXAMPLES: Final = """\
examples:
  tool-approval serve                                     the inbox of this user, on this machine alone
  tool-approval serve --store state/inbox.sqlite          another one
  tool-approval serve --approver ada --approver bob=ops   two people; bob is in the group ops
  tool-approval serve --path /approvals --allow-host approvals.example --behind-proxy

Each line that is printed is a link for one person. It works once, within an hour; Ctrl-C ends the page.
"""
PORT: Final = 8765

_PATH = re.compile(r'(/[A-Za-z0-9_-]+)+', re.ASCII)


def configure(parser: argparse.ArgumentParser) -> None:
    """See `CommandModule`."""
    parser.add_argument('--store', metavar='PLACE', help="a file, or postgresql://...; the user's own inbox if not")
    parser.add_argument('--host', default='127.0.0.1', help='where to listen; this machine alone if not given')
    parser.add_argument('--port', type=int, default=PORT, help=f'{PORT} if not given; 0 takes a free one')
    parser.add_argument(
        '--approver', action='append', metavar='ID[=GROUP,...]', help='who gets a link; the user of this machine if not'
    )
    parser.add_argument('--path', help='serve below this path; one that nobody can guess if not given')
    parser.add_argument('--allow-host', action='append', default=[], metavar='NAME', help='a name in the address')
    parser.add_argument('--behind-proxy', action='store_true', help='a proxy on this machine says who calls, and TLS')


def run(options: argparse.Namespace, output: Output) -> int:
    """See `CommandModule`."""
    approvers = [_approver(each) for each in options.approver or [_user()]]
    if len({approver.id for approver in approvers}) < len(approvers):
        raise UsageError('--approver names somebody twice')
    path = options.path or f'/{secrets.token_urlsafe(12)}'
    if _PATH.fullmatch(path) is None:
        raise UsageError('--path must be as /approvals: a slash, then letters, digits, - and _')
    if not 0 <= options.port < 65536:
        raise UsageError('--port must be a number from 0 to 65535')
    _serve(options, approvers, path, output)
    return 0


def _serve(options: argparse.Namespace, approvers: list[Approver], path: str, output: Output) -> None:
    from tool_approval.inbox import Inbox
    from tool_approval.ui.web import LocalLogin, inbox_app
    from tool_approval.ui.web.serving import is_loopback, serve

    is_local = is_loopback(options.host)
    if not is_local and not options.allow_host:
        raise UsageError('name the host in the address with --allow-host; the page answers to no other')
    with Inbox(_store(options.store)) as inbox, _listening(options.host, options.port) as listening:
        asyncio.run(inbox.open(1))  # a store that cannot be used is told now, and not on the page
        address, port = listening.getsockname()[:2]
        own = [f'[{address}]:{port}' if ':' in address else f'{address}:{port}', f'localhost:{port}']
        hosts = [*(own if is_local else ()), *options.allow_host]
        login = LocalLogin()
        try:
            app = inbox_app(inbox, authenticate=login, hosts=hosts)
        except ValueError as error:
            raise UsageError(str(error)) from None
        for approver in approvers:
            output.line(f'{approver.id}: http://{hosts[0]}{path}/?token={login.ticket(approver)}')
        output.flush()
        output.note('each link works once, within an hour; Ctrl-C ends the page, and what waits goes on waiting')
        if not is_local:
            output.note('others can reach this page; without TLS before it, they can read it and answer for anybody')
        try:
            serve(app, listening, path=path, trusts_proxy=options.behind_proxy)
        except KeyboardInterrupt:
            output.note('the page is closed')


def _listening(host: str, port: int) -> socket.socket:
    from tool_approval.ui.web.serving import listen

    try:
        return listen(host, port)
    except OSError as error:
        raise UsageError(f'cannot listen on {host!r}, port {port}: {error.strerror}; try another --port') from None


def _store(place: str | None) -> InboxStore:
    if place is not None and place.startswith(('postgresql://', 'postgres://')):
        from tool_approval.inbox.stores.postgres import PostgresStore

        try:
            return PostgresStore(place)
        except ValueError as error:
            raise UsageError(str(error)) from None
    from tool_approval.inbox.stores import SQLiteStore

    return SQLiteStore(place)


def _approver(text: str) -> Approver:
    from pydantic import ValidationError

    from tool_approval.inbox import Approver

    name, _, groups = text.partition('=')
    try:
        return Approver(id=name, groups=frozenset(filter(None, groups.split(','))))
    except ValidationError as error:
        raise UsageError(f'--approver {name!r} names nobody: {error.errors()[0]["msg"]}') from None


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without an entry, as in some containers
        return 'user'
