"""Serve an ASGI application until Ctrl-C or SIGTERM."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Sequence
from ipaddress import ip_address
from typing import Any

from starlette.routing import Mount, Router
from starlette.types import ASGIApp

from tool_approval.core.errors import MissingExtraError

try:
    import uvicorn
except ImportError:
    raise MissingExtraError('uvicorn', extra='web') from None

BACKLOG = 128
"""Number of connections that may wait to be accepted."""


def is_loopback(host: str) -> bool:
    """Return whether a host can be reached only from this machine."""
    try:
        return host == 'localhost' or ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Connections wait until `serve` is called.

    Args:
        host: Name or address of this machine.
        port: Port number; 0 chooses a free port.

    Raises:
        OSError: The port is in use, or the host is not an address of this machine.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening


def serve(
    app: ASGIApp,
    listening: socket.socket,
    *,
    path: str,
    trusts_proxy: bool = False,
    beside: Sequence[Callable[[], Coroutine[Any, Any, None]]] = (),
) -> None:
    """Serve an application below a path, until Ctrl-C or SIGTERM.

    Args:
        app: ASGI application to serve.
        listening: Socket from `listen`.
        path: Path with a leading slash and no trailing slash.
        trusts_proxy: Whether to trust the client address and scheme in the headers of a proxy on this machine.
        beside: Coroutine functions to run on the same event loop, until the server ends.
    """
    config = uvicorn.Config(
        Router([Mount(path, app=app)], redirect_slashes=False),
        # URLs contain login tickets, so they are not logged.
        log_config=None,
        log_level='critical',
        access_log=False,
        lifespan='off',
        ws='none',
        server_header=False,
        proxy_headers=trusts_proxy,
        forwarded_allow_ips='127.0.0.1,::1',
        # The event streams of open pages do not end by themselves.
        timeout_graceful_shutdown=1,
    )

    async def run() -> None:
        tasks = [asyncio.ensure_future(each()) for each in beside]
        try:
            await uvicorn.Server(config).serve(sockets=[listening])
        finally:
            for task in tasks:
                task.cancel()

    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(run())
