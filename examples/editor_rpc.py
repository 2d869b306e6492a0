"""Let an editor answer over JSON-RPC 2.0 on standard input and output: the editor starts `examples/editor_rpc.py`.

Messages are framed as in the Language Server Protocol: `Content-Length: N`, an empty line, N bytes of JSON. The program
sends a request `approval/ask` for each call, and a notification `run/finished` at the end. Only protocol messages may
go to standard output.
"""

import asyncio
import contextlib
import json
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, cast

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext, ToolApproved, ToolDenied, ToolFailed
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_deferred import Agent

MAX_BYTES = 1_000_000  # Far more than an answer needs, but a false length cannot fill the memory

Message = dict[str, Any]


class Editor:
    """Connection to the editor."""

    def __init__(self, reader: asyncio.StreamReader, write: Callable[[bytes], object]) -> None:
        self._reader = reader
        self._write = write
        self._replies: dict[str, asyncio.Future[Message]] = {}
        self._last_id = 0
        self._is_there = True

    async def request(self, method: str, params: Message) -> Message:
        """Send a request, and return the reply, or an empty mapping if no valid reply came.

        Raises:
            BrokenPipeError: The editor has closed its end. The run ends, and no call that waits for approval has run.
        """
        if not self._is_there:
            return {}
        self._last_id += 1
        reply = self._replies[str(self._last_id)] = asyncio.get_running_loop().create_future()
        self.send({'id': str(self._last_id), 'method': method, 'params': params})
        return await reply

    def send(self, message: Message) -> None:
        """Send a message. Without an `id` it is a notification."""
        body = json.dumps({'jsonrpc': '2.0', **message}).encode()
        self._write(b'Content-Length: %d\r\n\r\n' % len(body) + body)

    async def listen(self) -> None:
        """Pass replies to waiting requests, until the editor closes the connection or breaks the framing."""
        try:
            while (body := await self._read_body()) is not None:
                self._receive(body)
        finally:
            self._is_there = False
            self._give_up()

    def _receive(self, body: bytes) -> None:
        try:
            message = cast(object, json.loads(body))
        except (ValueError, RecursionError):
            message = None
        match message:
            # Requests of the editor come first: the editor chooses their ids, which may equal one of ours.
            case {'jsonrpc': '2.0', 'method': str(), 'id': str() | int() as number}:
                self.send({'id': number, 'error': {'code': -32601, 'message': 'Method not found'}})
            case {'jsonrpc': '2.0', 'method': str()}:
                pass
            case {'jsonrpc': '2.0', 'id': str(number)} if number in self._replies:
                self._settle(self._replies.pop(number), cast(Message, message))
            case _:
                # Unclear which question this answers, so all questions get an empty reply, which denies.
                self._give_up()

    async def _read_body(self) -> bytes | None:
        try:
            header = (await self._reader.readuntil(b'\r\n\r\n')).decode('ascii')
            fields = dict(line.lower().split(': ', 1) for line in header.strip().split('\r\n'))
            length = int(fields['content-length'])
            return await self._reader.readexactly(length) if 0 <= length <= MAX_BYTES else None
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, KeyError):
            # The start of the next message is unknown, so nothing after this can be trusted.
            return None

    def _give_up(self) -> None:
        while self._replies:
            self._settle(self._replies.popitem()[1], {})

    def _settle(self, reply: asyncio.Future[Message], message: Message) -> None:
        if not reply.done():  # it is done if the run was cancelled
            reply.set_result(message)


async def ask_editor(ctx: RunContext[Editor], requests: DeferredToolRequests) -> DeferredToolResults:
    """Ask about all approvals of a model response at once. Only `{"approved": true}` approves."""
    params = [
        {'run_id': ctx.run_id, 'tool_call_id': call.tool_call_id, 'tool': call.tool_name, 'args': call.args_as_dict()}
        for call in requests.approvals
    ]
    replies = await asyncio.gather(*(ctx.deps.request('approval/ask', each) for each in params))
    results = DeferredToolResults()
    for call, reply in zip(requests.approvals, replies, strict=True):
        match reply:
            case {'error': _}:
                results.approvals[call.tool_call_id] = ToolDenied('The editor could not ask.')
            case {'result': {'approved': True}}:
                results.approvals[call.tool_call_id] = ToolApproved()
            case {'result': {'approved': False, 'message': str(message)}}:
                results.approvals[call.tool_call_id] = ToolDenied(message)
            case _:
                results.approvals[call.tool_call_id] = ToolDenied('The editor gave no valid answer.')
    for call in requests.calls:
        results.calls[call.tool_call_id] = ToolFailed('The editor cannot carry this out.')
    return results


def plan(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand in for a language model: edit two files at once, then report."""
    returns = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
    if not returns:
        return ModelResponse(parts=[ToolCallPart('edit', {'path': path}) for path in ('a.py', 'b.py')])
    return ModelResponse(parts=[TextPart('; '.join(str(part.content) for part in returns))])


agent = Agent(FunctionModel(plan), deps_type=Editor, deferred_tool_handler=ask_editor)


@agent.tool_plain(requires_approval=True)
def edit(path: str) -> str:
    """Edit a file."""
    return f'edited {path}'


def write_to_stdout(frame: bytes) -> None:
    """Write a frame, and flush it because the editor waits for it."""
    sys.stdout.buffer.write(frame)
    sys.stdout.buffer.flush()


def read_stdin(reader: asyncio.StreamReader, loop: asyncio.AbstractEventLoop) -> None:
    """Feed `reader` from a daemon thread, unbuffered, so that the process can end while the thread waits for input."""
    with contextlib.suppress(RuntimeError):  # the loop is closed
        while chunk := os.read(sys.stdin.fileno(), 65536):
            loop.call_soon_threadsafe(reader.feed_data, chunk)
        loop.call_soon_threadsafe(reader.feed_eof)


async def main() -> None:
    reader = asyncio.StreamReader()
    threading.Thread(target=read_stdin, args=(reader, asyncio.get_running_loop()), daemon=True).start()
    editor = Editor(reader, write_to_stdout)
    listening = asyncio.create_task(editor.listen())
    result = await agent.run('Fix both.', deps=editor)
    editor.send({'method': 'run/finished', 'params': {'output': result.output}})
    listening.cancel()


if __name__ == '__main__':
    asyncio.run(main())
