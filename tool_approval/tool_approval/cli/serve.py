"""Implement `tool-approval serve`: show the inbox as a page in the browser."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import re
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from functools import partial

from tool_approval.inbox import Approver, Channel, Inbox, notify_channel
from tool_approval.ui.web import Links, LocalLogin, Webhook, inbox_app, serving

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
        has_tls = options.behind_proxy and options.allow_host
        page = f'https://{options.allow_host[0]}{path}' if has_tls else f'http://{hosts[0]}{path}'
        login = LocalLogin()
        links = Links(page)
        channels: dict[str, Channel] = {}
        if options.config is not None:
            if not (has_tls or is_local):
                raise UsageError('others could read the links that are sent; use a proxy with TLS and --behind-proxy')
            channels = _channels(options.config, approvers, inbox, links)
        webhook = next((each for each in channels.values() if isinstance(each, Webhook)), None)
        try:
            app = inbox_app(inbox, authenticate=login, hosts=hosts, log=_log(options), links=links, webhook=webhook)
        except ValueError as error:
            raise UsageError(str(error)) from None

        def print_links() -> None:
            for approver in approvers:
                output.line(f'{approver.id}: {page}/?token={login.ticket(approver)}')
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
        if channels and not has_tls:
            output.note('the links that are sent open only on this machine; for a phone, use a proxy with TLS')
        for name in channels:
            output.note(f'requests are sent to {name}')
        beside = [
            partial(notify_channel, inbox, channel, report=partial(_report, name, links.unreached, output))
            for name, channel in channels.items()
        ]
        try:
            serving.serve(app, listening, path=path, trusts_proxy=options.behind_proxy, beside=beside)
        except KeyboardInterrupt:
            output.note('the page is closed')


def _channels(config: str, approvers: list[Approver], inbox: Inbox, links: Links) -> dict[str, Channel]:
    """Return the channels of a settings file by name.

    Raises:
        UsageError: A person is not an approver, or a variable is missing or has an invalid value.
        ApprovalError: The settings cannot be read, or a library is missing.
    """
    from tool_approval.settings.files import load_settings

    notify = load_settings(os.path.abspath(config), named=True).settings.notify
    if notify is None:
        raise UsageError(f'{config} has no key `notify`')
    known = {approver.id: approver for approver in approvers}
    channels: dict[str, Channel] = {}
    try:
        for person, variable in ((person, each) for person, places in notify.people.items() for each in places):
            from tool_approval.ui.notify import AppriseChannel  # a webhook alone does not need Apprise

            channels[f'{person} ({variable})'] = AppriseChannel(os.environ[variable], known[person], links.make)
        if (hook := notify.webhook) is not None:
            people = {name: known[person] for name, person in hook.people.items()}
            channels[f'the webhook ({hook.url})'] = Webhook(
                inbox, os.environ[hook.url], os.environ[hook.secret], people
            )
    except KeyError as missing:
        problem = f'{missing} is neither an --approver nor a variable of the environment'
        raise UsageError(f'`notify` in {config}: {problem}') from None
    except ValueError as error:
        raise UsageError(f'a variable that `notify` in {config} names is invalid: {error}') from None
    return channels


def _report(name: str, unreached: set[str], output: Output, is_notified: bool) -> None:
    """Say on the page and at the terminal whether a channel can be notified."""
    is_new = not is_notified and name not in unreached
    (unreached.discard if is_notified else unreached.add)(name)
    if is_new:
        with contextlib.suppress(OSError):  # the terminal is gone, and the others must still be notified
            output.note(f'{name} could not be notified')


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
