"""Serves an application until the program is told to end."""

from __future__ import annotations

import socket
from ipaddress import ip_address

from starlette.routing import Mount, Router
from starlette.types import ASGIApp

from tool_approval.core.errors import MissingExtraError

try:
    import uvicorn
except ImportError:
    raise MissingExtraError('uvicorn', extra='web') from None

BACKLOG = 128
"""Chosen: connections that may wait to be taken."""


def is_loopback(host: str) -> bool:
    """Whether nobody beyond this machine can reach what is bound to a host."""
    try:
        return host == 'localhost' or ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections from now on; whoever connects before `serve` waits.

    Args:
        host: A name or an address of this machine.
        port: The port; 0 takes a free one.

    Raises:
        OSError: The port is taken, or the host is none of this machine's.
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


def serve(app: ASGIApp, listening: socket.socket, *, path: str, trusts_proxy: bool = False) -> None:
    """Serve an application below a path, until Ctrl-C or SIGTERM.

    Args:
        app: What to serve.
        listening: Where.
        path: Begins with a slash, and does not end with one.
        trusts_proxy: Whether to believe what a proxy on this machine says of the client and of TLS.
    """
    config = uvicorn.Config(
        Router([Mount(path, app=app)], redirect_slashes=False),
        # Addresses hold tickets, so none is logged.
        log_config=None,
        log_level='critical',
        access_log=False,
        lifespan='off',
        ws='none',
        server_header=False,
        proxy_headers=trusts_proxy,
        forwarded_allow_ips='127.0.0.1,::1',
        # Open pages are streams that end only when they are cut.
        timeout_graceful_shutdown=1,
    )
    uvicorn.Server(config).run(sockets=[listening])
