"""Stand between an MCP client and an MCP server: decide about each call of a tool, and pass on everything else."""

from __future__ import annotations

try:
    import mcp as _host
except ImportError:
    from tool_approval.core.errors import MissingExtraError

    raise MissingExtraError('mcp', extra='mcp') from None

import asyncio
import hashlib
import logging
import secrets
from collections.abc import AsyncIterable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol, TypeAlias, cast

import anyio
from anyio.abc import TaskGroup
from mcp.shared.dispatcher import as_request_id, coerce_request_id
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PROTOCOL_VERSION_META_KEY,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from tool_approval.core.arguments import read_arguments
from tool_approval.core.calls import Allowed, Call, Refused, Responded, cannot_be_judged
from tool_approval.core.canonical import canonical_json
from tool_approval.core.edits import Reading, edited
from tool_approval.core.errors import ApprovalError, NotCanonicalError
from tool_approval.core.gate import Gate
from tool_approval.core.request import CallFacts
from tool_approval.core.tool_checks import judging

del _host

_log = logging.getLogger('tool_approval')

_CALL: Final = 'tools/call'
_LIST: Final = 'tools/list'
_MOST_PAGES: Final = 100
"""Maximum number of pages of a list of tools that is read for a call."""
_GONE: Final = 'The MCP server ended, so there is no result. If the call was allowed, it may have run.'


class Sends(Protocol):
    """The writing half of a transport."""

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message, and wait until it is taken."""
        ...  # pragma: no cover - a protocol has no body


Streams: TypeAlias = tuple[AsyncIterable[SessionMessage | Exception], Sends]
"""Both halves of a transport of the SDK. An exception in place of a message is what could not be read."""


def refusal(reason: str) -> dict[str, Any]:
    """Return the result of a call that did not run."""
    return {'content': [{'type': 'text', 'text': reason}], 'isError': True}


class Proxy:
    """Passes messages between a client and a server. It serves one connection."""

    def __init__(
        self,
        gate: Gate,
        server: str,
        *,
        find_changed: Callable[[Sequence[Mapping[str, Any]]], set[str]],
        identity: Sequence[str],
        note: Callable[[str], None],
    ) -> None:
        """Create a proxy.

        Args:
            gate: Decides about calls.
            server: Name of the server. The rules know the tool `read` of the server `notes` as `mcp__notes__read`.
            find_changed: Returns the names of the tools that differ from what was accepted, given definitions.
            identity: The server's command. Remembered approvals are bound to it, and to the tool's definition.
            note: Receives lines for the user, unescaped.
        """
        self._gate = gate
        self._name = server
        self._find_changed = find_changed
        self._identity = list(identity)
        self._note = note
        self._session = secrets.token_hex(8)
        self._own_ids = 0
        self._is_gone = False
        self._tools: dict[str, Mapping[str, Any]] = {}
        """Definitions that the server has listed, and that are not withheld."""
        self._withheld: set[str] = set()
        self._passed: dict[RequestId | None, str] = {}
        """Methods of the client's requests that the server has not answered yet."""
        self._calls: dict[RequestId | None, anyio.CancelScope] = {}
        """Calls of tools that the client waits for."""
        self._at_server: dict[RequestId | None, asyncio.Future[JSONRPCResponse | JSONRPCError]] = {}
        """Calls that the server executes, and requests of the proxy."""

    async def run(self, client: Streams, server: Streams) -> bool:
        """Pass on messages until one side ends, and return whether it was the client.

        If the server ends first, every open request of the client is answered with an error.
        """
        self._client, self._server = client[1], server[1]
        has_client_left = False
        async with anyio.create_task_group() as both:

            async def from_client(calls: TaskGroup) -> None:
                nonlocal has_client_left
                async for item in client[0]:
                    await self._from_client(item, calls)
                has_client_left = True
                both.cancel_scope.cancel()

            async with anyio.create_task_group() as calls:
                both.start_soon(from_client, calls)
                async for item in server[0]:
                    await self._from_server(item)
                self._is_gone = True
                for scope in self._calls.values():
                    scope.cancel()
            for request_id in [*self._passed]:
                await self._send(client[1], _error(request_id, CONNECTION_CLOSED, 'The MCP server ended.'))
            both.cancel_scope.cancel()
        return has_client_left

    async def _send(self, stream: Sends, message: JSONRPCMessage) -> None:
        # The loop that reads from the other side ends too, and with it everything.
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await stream.send(SessionMessage(message))

    async def _from_client(self, item: SessionMessage | Exception, calls: TaskGroup) -> None:
        if isinstance(item, Exception):
            await self._send(self._client, _error(None, INVALID_REQUEST, 'This is not a message of JSON-RPC 2.0.'))
            return
        match item.message:
            case JSONRPCRequest() as request:
                await self._request(request, calls)
            case JSONRPCNotification(method='notifications/cancelled') as notification:
                await self._cancel(notification)
            case JSONRPCNotification(method=method) if not method.startswith('notifications/'):
                # Attack: a call without an id that can be answered runs unasked (test_a_call_without_an_id).
                await self._send(self._client, _error(None, INVALID_REQUEST, 'A request needs an id.'))
            case message:
                await self._send(self._server, message)

    async def _request(self, request: JSONRPCRequest, calls: TaskGroup) -> None:
        key = _key(request.id)
        if self._is_gone:
            await self._send(self._client, _error(request.id, CONNECTION_CLOSED, 'The MCP server ended.'))
        elif key in self._passed or key in self._calls or key in self._at_server:
            # Attack: the answer to one request is taken for that of another, and is not filtered.
            await self._send(self._client, _error(request.id, INVALID_REQUEST, 'This id is in use.'))
        elif request.method == _CALL:
            self._calls[key] = scope = anyio.CancelScope()
            calls.start_soon(self._call, request, key, scope)
        else:
            self._passed[key] = request.method
            await self._send(self._server, request)

    async def _cancel(self, notification: JSONRPCNotification) -> None:
        key = _key((notification.params or {}).get('requestId'))
        # The server does not know a call about which the approver is being asked.
        if self._passed.pop(key, None) is not None or key in self._at_server:
            await self._send(self._server, notification)
        if (scope := self._calls.get(key)) is not None:
            scope.cancel()

    async def _from_server(self, item: SessionMessage | Exception) -> None:
        if isinstance(item, Exception):
            self._note('the server wrote a line that is not a message of JSON-RPC 2.0; it was dropped')
            return
        message = item.message
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            key = _key(message.id)
            if (waiting := self._at_server.get(key)) is not None:
                with suppress(asyncio.InvalidStateError):  # answered twice, or the client gave up at this moment
                    waiting.set_result(message)
                return
            # Attack: the server answers a call about which the approver is still being asked.
            method = self._passed.pop(key, None)
            if method is None:
                return
            if method == _LIST and isinstance(message, JSONRPCResponse):
                message = self._listed(message)
        elif isinstance(message, JSONRPCNotification) and message.method == 'notifications/tools/list_changed':
            self._tools.clear()
        await self._send(self._client, message)

    def _listed(self, message: JSONRPCResponse) -> JSONRPCResponse | JSONRPCError:
        """Return a list of tools without those that are withheld."""
        tools: object = message.result.get('tools')
        if not isinstance(tools, list):
            return _error(message.id, INTERNAL_ERROR, 'The MCP server answered without a list of tools.')
        usable = [cast('dict[str, Any]', each) for each in cast('list[object]', tools) if _is_usable(each)]
        try:
            withheld = self._find_changed(usable)
        except ApprovalError as error:
            return _error(message.id, INTERNAL_ERROR, str(error))
        for name in sorted(withheld - self._withheld):
            self._note(self._why_withheld(name))
        kept = {each['name']: each for each in usable if each['name'] not in withheld}
        names = {each['name'] for each in usable}
        self._withheld = (self._withheld - names) | withheld
        self._tools = {name: tool for name, tool in self._tools.items() if name not in names} | kept
        return message.model_copy(update={'result': {**message.result, 'tools': [*kept.values()]}})

    def _why_withheld(self, tool: str) -> str:
        return (
            f'The server changed the tool {tool!r} after it was accepted, so it is withheld. For the user: '
            f'`tool-approval mcp --accept --name {self._name}` shows the change.'
        )

    async def _call(self, request: JSONRPCRequest, key: RequestId | None, scope: anyio.CancelScope) -> None:
        answer: JSONRPCResponse | JSONRPCError | None = None
        with scope:
            answer = await self._answer(request, key)
        del self._calls[key]
        if answer is None and self._is_gone:
            answer = _result(request, refusal(_GONE))
        if answer is not None:  # otherwise the client gave up waiting
            await self._send(self._client, answer)

    async def _answer(self, request: JSONRPCRequest, key: RequestId | None) -> JSONRPCResponse | JSONRPCError:
        params = request.params or {}
        name: object = params.get('name')
        given: object = params.get('arguments') or {}
        if not isinstance(name, str) or not isinstance(given, dict):
            return _error(request.id, INVALID_PARAMS, 'A call needs the text `name`, and an object as `arguments`.')
        try:
            with judging():
                settled = await self._settle(request, name, cast('dict[str, Any]', given))
                if isinstance(settled, Allowed):
                    return await self._run(request, settled, key)
        except NotCanonicalError as error:
            return _result(request, refusal(cannot_be_judged(name, error.problem)))
        except ApprovalError as error:
            return _result(request, refusal(str(error)))
        except Exception as error:  # noqa: BLE001 - the task ends here, and the client has to learn of it
            _log.exception('A call of an MCP tool could not be judged.')
            return _result(request, refusal(f'The call failed in the proxy, with {type(error).__name__}.'))
        if isinstance(settled, Refused):
            return _result(request, refusal(settled.told))
        result: dict[str, Any] = {'content': [{'type': 'text', 'text': settled.text}]}
        response: object = settled.response
        if isinstance(response, dict):
            result['structuredContent'] = response
        return _result(request, result)

    async def _settle(self, request: JSONRPCRequest, name: str, given: dict[str, Any]) -> Refused | Allowed | Responded:
        gate = self._gate
        tool = await self._definition(request, name)
        prepared = await gate.prepare(self._read(request, name, given, tool))
        if isinstance(tool, str):
            return gate.refuse(prepared, tool)

        async def again(call: Call) -> Call:
            # Attack: the server changes the tool while the approver is being asked.
            return self._read(request, name, dict(call.given or {}), await self._definition(request, name))

        return await gate.settle(prepared, again)

    async def _definition(self, request: JSONRPCRequest, name: str) -> Mapping[str, Any] | str:
        """Return the definition of a tool, which is read from the server if it is unknown, or why there is none."""
        cursor: object = None
        for _ in range(_MOST_PAGES):
            if name in self._tools:
                break
            # The newest protocol has the version and the client in each request.
            meta: object = (request.params or {}).get('_meta')
            asked: dict[str, Any] = {} if cursor is None else {'cursor': cursor}
            if isinstance(meta, Mapping):
                found = cast('Mapping[str, Any]', meta)
                asked['_meta'] = {each: value for each, value in found.items() if each != 'progressToken'}
            self._own_ids += 1
            own = f'tool-approval-{self._session}-{self._own_ids}'
            reply = await self._ask_server(own, JSONRPCRequest(jsonrpc='2.0', id=own, method=_LIST, params=asked))
            listed = self._listed(reply) if isinstance(reply, JSONRPCResponse) else reply
            if isinstance(listed, JSONRPCError):
                return f'The tools of the server are unknown, so the call was not run: {listed.error.message}'
            if not isinstance(cursor := listed.result.get('nextCursor'), str):
                break
        unknown = f'The server does not list the tool {name!r}, so the call was not run.'
        return self._tools.get(name) or (self._why_withheld(name) if name in self._withheld else unknown)

    def _read(self, request: JSONRPCRequest, name: str, given: dict[str, Any], tool: Mapping[str, Any] | str) -> Call:
        reading = _reading(given)
        schema: object = None if isinstance(tool, str) else tool.get('inputSchema')
        digest = hashlib.sha256(canonical_json([self._identity, tool]).encode()).hexdigest()

        def reread(changed: Mapping[str, Any]) -> Call:
            return self._read(request, name, edited(changed, given, reading, _reading), tool)

        return Call(
            tool_name=f'mcp__{self._name}__{name}',
            arguments=reading.arguments,
            values=reading.values,
            given=given,
            facts=CallFacts(
                run_id=self._session,
                session_id=self._session,
                caller='mcp',
                toolset_id=self._name,
                tool_digest=digest,
            ),
            tool_call_id=str(request.id),
            bound_to={'tool_definition': digest},
            args_schema=cast('Mapping[str, Any]', schema) if isinstance(schema, Mapping) else None,
            reread=reread,
        )

    async def _run(
        self, request: JSONRPCRequest, allowed: Allowed, key: RequestId | None
    ) -> JSONRPCResponse | JSONRPCError:
        params = {**(request.params or {}), 'arguments': allowed.call.given}
        with self._gate.execution(allowed) as execution:
            reply = await self._ask_server(key, request.model_copy(update={'params': params}))
            if isinstance(reply, JSONRPCError) or reply.result.get('isError'):
                execution.outcome = 'failed'
        if execution.notice is not None and isinstance(reply, JSONRPCResponse):
            content: object = reply.result.get('content')
            parts = cast('list[object]', content) if isinstance(content, list) else []
            told = {'type': 'text', 'text': f'[{execution.notice}]'}
            reply = _result(request, {**reply.result, 'content': [*parts, told]})
        return reply.model_copy(update={'id': request.id})

    async def _ask_server(self, key: RequestId | None, request: JSONRPCRequest) -> JSONRPCResponse | JSONRPCError:
        waiting = self._at_server[key] = asyncio.get_running_loop().create_future()
        try:
            await self._send(self._server, request)
            return await waiting
        finally:
            del self._at_server[key]


def _reading(given: Mapping[str, Any]) -> Reading:
    # The server validates its arguments itself, so they are shown as the client gave them.
    return Reading(given, read_arguments(given, given))


def _is_usable(tool: object) -> bool:
    found = cast('dict[str, object]', tool) if isinstance(tool, dict) else {}
    try:
        canonical_json(found)
    except NotCanonicalError:
        return False
    return isinstance(found.get('name'), str)


def _key(request_id: object) -> RequestId | None:
    found = as_request_id(request_id)
    return None if found is None else coerce_request_id(found)


def _result(request: JSONRPCRequest, result: dict[str, Any]) -> JSONRPCResponse:
    # The newest protocol, which names its version in each request, demands a type of each result.
    meta: object = (request.params or {}).get('_meta')
    kind = {'resultType': 'complete'} if isinstance(meta, Mapping) and PROTOCOL_VERSION_META_KEY in meta else {}
    return JSONRPCResponse(jsonrpc='2.0', id=request.id, result={**kind, **result})


def _error(request_id: RequestId | None, code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc='2.0', id=request_id, error=ErrorData(code=code, message=message))
