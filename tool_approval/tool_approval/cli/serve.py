"""Implement `tool-approval serve`: show the inbox as a page in the browser."""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable

from tool_approval.inbox import Approver, Inbox
from tool_approval.ui.web import LocalLogin, inbox_app, serving

from .log_file import log_of_run
from .output import Output, UsageError
from .place import named_approver, named_store

_PATH = re.compile(r'(/[A-Za-z0-9_-]+)+', re.ASCII)


def run(options: argparse.Namespace, output: Output) -> int:
    """Serve the inbox page until Ctrl-C."""
    approvers = [named_approver(each) for each in options.approver or [None]]
    if len({approver.id for approver in approvers}) < len(approvers):
        raise UsageError('--approver is given twice with the same name')
    path = options.path or f'/{secrets.token_urlsafe(12)}'
    if _PATH.fullmatch(path) is None:
        raise UsageError('--path must look like /approvals: a slash, then letters, digits, - and _')
    if not 0 <= options.port < 65536:
        raise UsageError('--port must be a number from 0 to 65535')
    _serve(options, approvers, path, output)
    return 0


def _serve(options: argparse.Namespace, approvers: list[Approver], path: str, output: Output) -> None:
    is_local = serving.is_loopback(options.host)
    if not is_local and not options.allow_host:
        raise UsageError(f'--host {options.host} also needs --allow-host with the host name in the URL of the page')
    with Inbox(named_store(options.store).inbox_store) as inbox, _listening(options.host, options.port) as listening:
        asyncio.run(inbox.open(1))  # fail here if the store cannot be used, not on the page
        address, port = listening.getsockname()[:2]
        own = [f'[{address}]:{port}' if ':' in address else f'{address}:{port}', f'localhost:{port}']
        hosts = [*(own if is_local else ()), *options.allow_host]
        login = LocalLogin()
        try:
            app = inbox_app(inbox, authenticate=login, hosts=hosts, log=_log(options))
        except ValueError as error:
            raise UsageError(str(error)) from None

        def print_links() -> None:
            for approver in approvers:
                output.line(f'{approver.id}: http://{hosts[0]}{path}/?token={login.ticket(approver)}')
            output.flush()

        print_links()
        more = ''
        if sys.stdin is not None and sys.stdin.isatty():
            # Otherwise, reading in the background would stop the process.
            signal.signal(signal.SIGTTIN, signal.SIG_IGN)
            threading.Thread(target=_at_enter, args=(sys.stdin.fileno(), print_links), daemon=True).start()
            more = '; the Enter key prints new links'
        output.note(f'each link works once and lasts an hour{more}. Ctrl-C stops the page, but requests keep waiting')
        if not is_local:
            output.note('other machines can reach the page; without TLS, others can read it and answer as any approver')
        try:
            serving.serve(app, listening, path=path, trusts_proxy=options.behind_proxy)
        except KeyboardInterrupt:
            output.note('the page is closed')


def _log(options: argparse.Namespace) -> str | None:
    """Return the log to show: the one that is named, or the log of `tool-approval run` to the user of this machine."""
    return options.log or (None if options.approver else log_of_run())


def _at_enter(terminal: int, act: Callable[[], None]) -> None:
    """Call `act` whenever the user types a line, until the process ends."""
    while True:
        try:
            # Not `sys.stdin`: a thread waiting in it holds a lock that the interpreter needs at exit.
            typed = os.read(terminal, 4096)
        except OSError:  # the process is in the background
            typed = b''
        if typed:
            act()
        else:  # Ctrl-D, for example; more can be typed afterwards
            time.sleep(1)


def _listening(host: str, port: int) -> socket.socket:
    try:
        return serving.listen(host, port)
    except OSError as error:
        raise UsageError(f'cannot listen on {host!r}, port {port}: {error.strerror}; try another --port') from None
