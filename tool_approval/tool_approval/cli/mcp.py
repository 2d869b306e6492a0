"""Implement `tool-approval mcp`: ask about the calls that an MCP client makes to an MCP server."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import re
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from typing import Final, cast

import anyio

from tool_approval.core.canonical import canonical_json
from tool_approval.core.errors import ApprovalError
from tool_approval.core.gate import Gate
from tool_approval.integrations.mcp import Proxy, Streams
from tool_approval.storage.pinned_tools import PinnedTools
from tool_approval.storage.private_file import default_path

from .exec import BY_SIGNAL
from .guarded import open_chosen
from .output import FAILED, NOBODY_READS, Output, UsageError

# After `integrations.mcp`, which says how to install the SDK.
from mcp.client.stdio import StdioServerParameters, stdio_client  # isort: skip
from mcp.server.stdio import stdio_server  # isort: skip
from mcp.shared.message import SessionMessage  # isort: skip
from mcp.types import INTERNAL_ERROR, ErrorData, JSONRPCError, JSONRPCRequest  # isort: skip

_NAME: Final = re.compile(r'[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*', re.ASCII)
"""Names for which `mcp__NAME__TOOL` has one meaning. Attack: the tool `b__c` of a server `a` is taken for the tool `c`
of a server `a__b` (test_a_name_with_two_meanings_is_refused)."""


def run(options: argparse.Namespace, output: Output) -> int:
    """Serve until the client ends, or accept the changed tools of a server.

    Returns: 0 if the client ended the connection, 2 if the server did or could not be started, 128 + N for a signal.
    """
    if _NAME.fullmatch(options.name) is None:
        raise UsageError('--name must have only letters, digits, `-` and single `_` between them')
    pins = PinnedTools(default_path().parent / 'mcp', options.name)
    if options.accept:
        return _accept(options, output, pins)
    if not options.words:
        raise UsageError('the command of the server is missing; write it after `--`')
    with failures_for_client(), ExitStack() as stack:
        guarded = open_chosen(options, stack, output, caches=False)
        proxy = Proxy(
            Gate(guarded.controller),
            options.name,
            find_changed=pins.withheld,
            identity=options.words,
            note=output.note,
        )
        command, *args = options.words
        # The variables are those that the user gave the client for this server.
        server = StdioServerParameters(
            command=command,
            args=args,
            env=dict(os.environ),
            cwd=guarded.loaded.directory,
            encoding_error_handler='replace',
        )
        return served(_between(server, proxy, output))


async def _between(server: StdioServerParameters, proxy: Proxy, output: Output) -> int:
    async with stdio_client(server, errlog=sys.stderr) as of_server, stdio() as of_client:
        if await proxy.run(of_client, of_server):
            return 0
    output.note('the server ended')
    return FAILED


def _accept(options: argparse.Namespace, output: Output, pins: PinnedTools) -> int:
    changes = pins.changes()
    for name, (before, now) in changes.items():
        output.line(f'{name}:')
        for key in sorted({*before, *now}):
            old, new = (canonical_json(each[key]) if key in each else '(missing)' for each in (before, now))
            if old != new:
                output.line(f'  - {key}: {old}')
                output.line(f'  + {key}: {new}')
    if not changes:
        output.line(f'the server {options.name} has changed no tool')
        return 0
    if not (options.yes or output.agrees('Accept the changed tools?', 'the tools are still withheld')):
        return FAILED
    pins.accept([now for _, now in changes.values()])
    output.line('accepted; the client has to connect again to see the tools')
    return 0


@contextmanager
def failures_for_client() -> Generator[None]:
    """Answer the client's next request with the reason if it cannot be served. The exception goes on."""
    try:
        yield
    except (ApprovalError, UsageError, OSError) as error:
        reason = str(error)

        async def refuse() -> int:
            async with stdio() as (read, write):
                async for item in read:
                    if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCRequest):
                        problem = ErrorData(code=INTERNAL_ERROR, message=reason)
                        await write.send(SessionMessage(JSONRPCError(jsonrpc='2.0', id=item.message.id, error=problem)))
                        break
            return FAILED

        # At a terminal, there is no client.
        if not sys.stdin.isatty():
            served(refuse())
        raise


def served(serving: Awaitable[int]) -> int:
    """Serve a client on standard input and output, and return the exit status. A signal ends it in good order."""
    # The SDK logs what a server writes; the proxy has a note for it.
    logging.getLogger('mcp').setLevel(logging.CRITICAL)

    async def until_signal() -> int:
        found: list[int] = []
        with anyio.CancelScope() as scope:

            def end(number: int) -> None:
                found.append(number)
                scope.cancel()

            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, end, number)
            return await serving
        return BY_SIGNAL + found[0]

    status = NOBODY_READS
    try:
        status = asyncio.run(until_signal())
    except* BrokenPipeError:
        pass
    return status


@asynccontextmanager
async def stdio() -> AsyncGenerator[Streams]:
    """Return the transport over standard input and output. It ends even if the client keeps standard input open."""
    lines = _Lines(sys.stdin.fileno())
    async with stdio_server(stdin=cast('anyio.AsyncFile[str]', lines)) as (read, write), read:
        try:
            yield read, write
        finally:
            lines.close()
            await write.aclose()
            with suppress(anyio.ClosedResourceError):
                async for _ in read:
                    pass


class _Lines:
    """Lines of a file descriptor. Waiting for the next one can be ended, unlike with the SDK's own thread."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._read = b''
        self._is_closed = False
        self._waiting = anyio.CancelScope()

    def close(self) -> None:
        self._is_closed = True
        self._waiting.cancel()

    def __aiter__(self) -> _Lines:
        return self

    async def __anext__(self) -> str:
        while b'\n' not in self._read:
            more = await self._more()
            if not more:
                raise StopAsyncIteration
            self._read += more
        line, _, self._read = self._read.partition(b'\n')
        return line.decode(errors='replace')

    async def _more(self) -> bytes:
        with anyio.CancelScope() as self._waiting:
            if self._is_closed:
                return b''
            with suppress(PermissionError):  # a regular file is always readable
                await anyio.wait_readable(self._descriptor)
            return os.read(self._descriptor, 1 << 16)
        return b''
