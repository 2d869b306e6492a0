"""Real processes that listen on the loopback, and a look at whether they are still there."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

_WEB_SERVER = Path(__file__).with_name('web_server.py')

READY_WITHIN_S = 20.0
"""Chosen: a Python process starts in less on any machine that is not stuck."""


@contextlib.contextmanager
def server(port: int) -> Generator[subprocess.Popen[bytes]]:
    """A web server on the loopback, for as long as the context lasts, and at most as long as this process.

    Raises:
        RuntimeError: It did not start.
    """
    process = subprocess.Popen(
        [sys.executable, str(_WEB_SERVER), str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        _wait_for(process, port)
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdin is not None, 'it was opened above'
        process.stdin.close()


def free_port(wish: int = 0) -> int:
    """`wish` if nothing listens there, else a port that the system picks.

    Raises:
        OSError: There is none.
    """
    for port in (wish, 0):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(('127.0.0.1', port))
            return int(probe.getsockname()[1])
    raise OSError('no port is free on 127.0.0.1')


def has_ended(process: subprocess.Popen[bytes], within_s: float) -> bool:
    """Whether the process ends within that time."""
    try:
        process.wait(timeout=within_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def _wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    until = time.monotonic() + READY_WITHIN_S
    while process.poll() is None and time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(('127.0.0.1', port), timeout=1):
            return
        time.sleep(0.02)
    raise RuntimeError(f'the web server of the story did not start on port {port}')
