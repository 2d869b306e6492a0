"""Something listens on a port. The agent finds out what, and stops that very process."""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from pydantic_ai.messages import ToolCallPart, ToolReturnPart
from pydantic_ai_deferred import Agent

from tool_approval.integrations.pydantic_ai import ApprovalToolset, ShellToolset
from tool_approval.tools.shell import ShellTool

from .scene import MakeController, Scene, Step, Story, denied, scripted

WISHED_PORT = 8080
"""Taken if it is free."""

_OWNER = re.compile(r'\bpid=(\d+)|^p(\d+)$', re.MULTILINE)
"""How `ss`, `lsof` and the look-up in the standard library name a process."""


@contextmanager
def open_scene(make_controller: MakeController) -> Generator[Scene]:
    """Start two web servers: one in the way, and one to be left alone."""
    port = free_port(WISHED_PORT)
    with server(port) as target, server(free_port()) as decoy:
        commands = ShellToolset(ShellTool(cwd='/'))
        controller = make_controller(commands.presenters)

        def plan(results: list[ToolReturnPart]) -> Step:
            if not results:
                return [ToolCallPart('run_shell', {'command': look_up(port)})]
            if denied(results[-1]):
                return f'Port {port} is still in use: I was not allowed to go on.'
            if len(results) == 1:
                owner = _OWNER.search(str(results[0].content))
                if owner is None:
                    return f'Nothing that I can see listens on port {port}.'
                return [ToolCallPart('run_shell', {'command': f'kill {owner[1] or owner[2]}'})]
            return f'Port {port} is free again.'

        def facts() -> list[str]:
            ended = has_ended(target, within_s=1)
            return [
                f'the server on port {port} {"has ended" if ended else "is still running"}',
                f'the one beside it {"has ended" if has_ended(decoy, within_s=0) else "is still running"}',
            ]

        yield Scene(
            opening=f'A web server listens on port {port}, another one beside it.',
            prompt=f'Free port {port}.',
            agent=Agent(
                name='operator',
                instructions='You free TCP ports on this machine. First find out which process listens on the port, '
                'then stop just that process with `kill`, then say in one sentence what happened. If a step is '
                f'refused, do not try it again: say so and end. To look, use: {look_up(port)}',
                toolsets=[ApprovalToolset(commands, controller)],
            ),
            controller=controller,
            script=scripted(plan),
            facts=facts,
        )


def look_up(port: int) -> str:
    """The command this machine has for "who listens on that port"."""
    if shutil.which('ss'):
        return f"ss --listening --tcp --numeric --processes 'sport = :{port}'"
    if shutil.which('lsof'):
        return f'lsof -nP -iTCP:{port} -sTCP:LISTEN -Fp'
    return shlex.join([sys.executable, str(Path(__file__).with_name('port_owner.py')), str(port)])


PORT = Story(title='What listens on that port?', open_scene=open_scene)


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
