import asyncio
import builtins
import importlib
import socket
import sys
import threading

import pytest
from tool_approval.ui.web.serving import is_loopback, listen, serve

from tool_approval import MissingExtraError


@pytest.mark.parametrize(
    ('host', 'expected'),
    [('127.0.0.1', True), ('127.8.8.8', True), ('::1', True), ('localhost', True), ('0.0.0.0', False), ('::', False),
     ('192.168.0.2', False), ('localhost.evil.test', False), ('', False)],
)  # fmt: skip
def test_loopback_is_distinguished_from_reachable_addresses(host, expected):
    assert is_loopback(host) is expected


def test_a_taken_port_leaves_no_socket_behind():
    with listen('127.0.0.1', 0) as first, pytest.raises(OSError):
        listen('127.0.0.1', first.getsockname()[1])


def test_server_serves_below_its_path_with_what_runs_beside_it_until_stopped(monkeypatch):
    import uvicorn

    servers, beside = [], []

    class Server(uvicorn.Server):
        def __init__(self, config):
            super().__init__(config)
            servers.append(self)

    async def app(scope, receive, send):
        await send({'type': 'http.response.start', 'status': 200, 'headers': []})
        await send({'type': 'http.response.body', 'body': scope['root_path'].encode()})

    async def follow():
        beside.append('begun')
        try:
            await asyncio.Event().wait()
        finally:
            beside.append('ended')

    monkeypatch.setattr(uvicorn, 'Server', Server)
    with listen('127.0.0.1', 0) as listening:
        thread = threading.Thread(target=serve, args=(app, listening), kwargs={'path': '/a', 'beside': [follow]})
        thread.start()
        with socket.create_connection(listening.getsockname(), timeout=20) as client:
            client.sendall(b'GET /a/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
            answer = client.makefile('rb').read()
        servers[0].should_exit = True
        thread.join(20)

    assert answer.startswith(b'HTTP/1.1 200')
    assert b'\r\n/a\r\n' in answer
    assert b'server:' not in answer.lower()
    assert not thread.is_alive()
    assert beside == ['begun', 'ended']


@pytest.mark.parametrize(
    ('library', 'module', 'extra'),
    [
        ('starlette', 'tool_approval.ui.web.app', 'web'),
        ('uvicorn', 'tool_approval.ui.web.serving', 'web'),
        ('apprise', 'tool_approval.ui.notify', 'notify'),
    ],
)
def test_error_for_a_missing_library_names_its_extra(monkeypatch, library, module, extra):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name.partition('.')[0] == library and rest and rest[0] and rest[0].get('__name__') == module:
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setattr(builtins, '__import__', without)

    with pytest.raises(MissingExtraError, match=rf'tool_approval\[{extra}\]'):
        importlib.import_module(module)
