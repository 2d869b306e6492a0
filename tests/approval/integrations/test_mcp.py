"""The proxy between an MCP client and an MCP server, both played by the tests."""

import asyncio
import json
import math
import random
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('mcp', reason='`tool-approval[mcp]` is not installed')

import anyio
import anyio.lowlevel
from mcp.client import Client
from mcp.server.lowlevel import Server
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp_types import CallToolResult, ListToolsResult, Tool, jsonrpc_message_adapter
from tool_approval.core.gate import Gate
from tool_approval.integrations.mcp import Proxy
from tool_approval.storage import FileApprovalStore
from tool_approval.storage.pinned_tools import PinnedTools
from tool_approval.testing import RecordingUI, ScriptedUI, deny_all

from tests.approval.parts import ListSink
from tool_approval import ApprovalController, ApprovalDecision, ApprovalMemory, AuditError, StoreError

READ = {'name': 'read', 'description': 'Read a note.', 'inputSchema': {'type': 'object'}}
WRITE = {'name': 'write', 'description': 'Write a note.', 'inputSchema': {'type': 'object'}}
LONGEST_S = 30
"""How long a message may take, on a busy machine."""


class Wire:
    """A proxy, and the messages at both ends of it."""

    def __init__(self, folder: Path, *, identity: Any = ('server',), **options: Any) -> None:
        self.pins = PinnedTools(folder / 'mcp', 'notes')
        self.notes: list[str] = []
        self.ended: list[bool] = []
        self.sink = ListSink()
        controller = ApprovalController(**{'audit': self.sink, **options})
        self.proxy = Proxy(
            Gate(controller), 'notes', find_changed=self.pins.withheld, identity=identity, note=self.notes.append
        )
        self.streams = [anyio.create_memory_object_stream[Any](math.inf) for _ in range(4)]
        (self.from_client, _), (_, self.to_client), (self.from_server, _), (_, self.to_server) = self.streams

    async def run(self) -> bool:
        (_, client_read), (client_write, _), (_, server_read), (server_write, _) = self.streams
        return await self.proxy.run((client_read, client_write), (server_read, server_write))

    def client(self, method: str | None = None, id: Any = None, **fields: Any) -> None:
        self.from_client.send_nowait(message(method, id, fields))

    def server(self, method: str | None = None, id: Any = None, **fields: Any) -> None:
        self.from_server.send_nowait(message(method, id, fields))

    async def at_client(self) -> Any:
        return await taken(self.to_client)

    async def at_server(self) -> Any:
        return await taken(self.to_server)

    async def listed(self, *tools: Any) -> list[str]:
        """The tools that the client sees if the server lists these."""
        self.client('tools/list', 'list')
        assert (await self.at_server())['method'] == 'tools/list'
        self.server(id='list', result={'tools': list(tools)})
        return [each['name'] for each in (await self.at_client())['result']['tools']]

    def call(self, name: str = 'write', id: Any = 1, **arguments: Any) -> None:
        self.client('tools/call', id, params={'name': name, 'arguments': arguments})

    async def settled(self) -> str:
        """Waits until a call is done, and returns its text."""
        result = (await self.at_client())['result']
        assert result['isError']
        return result['content'][0]['text']

    @property
    def logged(self) -> list[str]:
        return [entry['event'] for entry in self.sink.all]


def message(method: Any, id: Any, fields: Any) -> SessionMessage:
    found = {'jsonrpc': '2.0', **({} if method is None else {'method': method}), **({} if id is None else {'id': id})}
    return SessionMessage(jsonrpc_message_adapter.validate_python({**found, **fields}))


async def taken(stream: Any) -> Any:
    with anyio.fail_after(LONGEST_S):
        got = await stream.receive()
    return json.loads(got.message.model_dump_json(by_alias=True, exclude_unset=True))


@pytest.fixture
def play(tmp_path: Path):
    """`play(acts, ui=...)`: runs `acts(wire)` with a proxy, until the client leaves."""

    def played(acts: Any, **options: Any) -> Wire:
        async def main() -> Wire:
            wire = Wire(tmp_path, **options)
            async with running(wire):
                await acts(wire)
            return wire

        return asyncio.run(main())

    return played


@asynccontextmanager
async def running(wire: Wire):
    async def run() -> None:
        wire.ended.append(await wire.run())

    try:
        with anyio.fail_after(6 * LONGEST_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run)
                yield
                wire.from_client.close()
    finally:
        for each in [each for pair in wire.streams for each in pair]:
            each.close()


def test_calls_are_decided_by_rules_or_a_person_and_the_log_has_them(play):
    ui = ScriptedUI([True, 'Keep it.'])
    rules = {'mcp__notes__read': {'approval': 'none'}, 'mcp__notes__drop': {'approval': 'blocked'}}
    result = {
        'content': [{'type': 'image', 'data': 'aGk=', 'mimeType': 'image/png', '_meta': {'a': 1}}],
        'structuredContent': {'deep': [1, 2.5, None]},
        'isError': False,
    }

    async def acts(wire: Wire) -> None:
        assert await wire.listed(READ, WRITE, {**READ, 'name': 'drop'}) == ['read', 'write', 'drop']
        for number, name in enumerate(['read', 'write']):
            wire.call(name, number, path='a')
            given = await wire.at_server()
            assert given['params'] == {'name': name, 'arguments': {'path': 'a'}}
            wire.server(id=number, result=result)
            assert await wire.at_client() == {'jsonrpc': '2.0', 'id': number, 'result': result}
        wire.call('write', 3, path='b')
        assert await wire.settled() == 'The approver denied this call, so it was not run: Keep it.'
        wire.call('drop', 4)
        assert await wire.settled() == "The tool 'mcp__notes__drop' is blocked by policy."
        assert wire.to_server.statistics().current_buffer_used == 0

    wire = play(acts, policy=rules, ui=ui)

    ui.assert_done()
    assert wire.ended == [True]
    assert [each.tool_name for each in ui.requests] == ['mcp__notes__write', 'mcp__notes__write']
    assert wire.logged == ['unasked', 'outcome', 'question', 'decision', 'outcome', 'question', 'decision', 'blocked']


def test_a_call_that_fails_is_logged_as_failed(play):
    async def acts(wire: Wire) -> None:
        await wire.listed(WRITE)
        wire.call(id='7')
        await wire.at_server()
        wire.server(id=7, result={'content': [], 'isError': True})  # some servers change the type of the id
        assert (await wire.at_client())['id'] == '7'
        wire.call(id=8)
        await wire.at_server()
        wire.server(id=8, error={'code': -1, 'message': 'no', 'data': {'why': 'so'}})
        assert (await wire.at_client())['error'] == {'code': -1, 'message': 'no', 'data': {'why': 'so'}}

    wire = play(acts, ui=RecordingUI())

    assert [entry['outcome'] for entry in wire.sink.all if entry['event'] == 'outcome'] == ['failed', 'failed']


def test_an_approver_changes_the_arguments_or_answers_in_place_of_the_server(play):
    changed = ApprovalDecision(approved=True, override_args={'path': 'b', 'n': 1})
    given = ApprovalDecision(approved=False, response={'note': 'x'})
    ui = ScriptedUI([changed, changed, given, given.model_copy(update={'response': 'text'})])
    rules = {'mcp__notes__write': {'approval': 'required', 'answers': ['approve', 'deny', 'edit', 'respond']}}

    async def acts(wire: Wire) -> None:
        await wire.listed(WRITE)
        for content in ([{'type': 'text', 'text': 'done'}], None):
            wire.call(path='a', n=1)
            assert (await wire.at_server())['params']['arguments'] == {'path': 'b', 'n': 1}
            wire.server(id=1, result={'content': content} if content else {})
            told = (await wire.at_client())['result']['content']
            assert told[-1]['text'].endswith('which ran with: {"n":1,"path":"b"}]')
            assert len(told) == (2 if content else 1)
        wire.call(path='a')
        assert (await wire.at_client())['result'] == {
            'content': [{'type': 'text', 'text': '{"note":"x"}'}],
            'structuredContent': {'note': 'x'},
        }
        wire.call(path='a')
        assert (await wire.at_client())['result'] == {'content': [{'type': 'text', 'text': 'text'}]}

    play(acts, policy=rules, ui=ui)

    ui.assert_done()


class Broken:
    """A log that cannot be written, from an entry on."""

    def __init__(self, left: int = 0, error: Exception | None = None) -> None:
        self.left = left
        self.error = error or AuditError('log', 'full')

    def record(self, entry: Any) -> None:
        self.left -= 1
        if self.left < 0:
            raise self.error


class BrokenStore(ApprovalMemory):
    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.error = error or StoreError('approvals.json', 'gone')

    def find(self, *args: Any, **how: Any) -> Any:
        raise self.error


@pytest.mark.parametrize(
    ('options', 'reason'),
    [
        ({}, 'There is no approver to ask'),
        ({'mode': 'strict'}, 'Strict mode'),
        ({'ui': RecordingUI(RuntimeError('gone'))}, 'RuntimeError'),
        ({'ui': RecordingUI(), 'audit': Broken()}, 'could not be written to the audit log'),
        ({'ui': RecordingUI(), 'memory': BrokenStore()}, "remembered approvals in 'approvals.json': gone"),
        ({'policy': {'*': {'approval': 'none'}}, 'audit': Broken()}, 'could not be written to the audit log'),
        ({'policy': {'*': {'approval': 'blocked'}}, 'audit': Broken()}, 'log'),
        ({'ui': RecordingUI(), 'audit': Broken(0, RuntimeError('odd'))}, 'could not be written to the audit log'),
        ({'ui': RecordingUI(), 'memory': BrokenStore(RuntimeError('odd'))}, 'failed in the proxy, with RuntimeError'),
    ],
)
def test_no_call_runs_if_nobody_can_decide_or_nothing_can_be_logged(play, options, reason):
    async def acts(wire: Wire) -> None:
        await wire.listed(WRITE)
        wire.call()
        assert reason in await wire.settled()
        assert wire.to_server.statistics().current_buffer_used == 0

    play(acts, **options)


def test_an_approver_who_does_not_answer_in_time_denies(play):
    class Silent:
        async def choose(self, request: Any, *, mode: Any) -> Any:
            await asyncio.Event().wait()

    async def acts(wire: Wire) -> None:
        await wire.listed(WRITE)
        wire.call()
        assert 'answered within 0.01 seconds' in await wire.settled()

    play(acts, ui=Silent(), timeout=0.01)


@pytest.mark.parametrize(('mode', 'version'), [('auto', '2026-07-28'), ('legacy', '2025-11-25')])
def test_the_client_of_the_sdk_understands_the_proxy_in_both_eras(tmp_path, mode, version):
    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(**{**READ, 'input_schema': READ['inputSchema']})])

    async def call_tool(context: Any, params: Any) -> CallToolResult:
        return CallToolResult(content=[], structured_content={'given': params.arguments})

    @asynccontextmanager
    async def connection(streams: Any):
        yield streams

    async def main() -> None:
        ui = ScriptedUI([True, 'Not again.'])
        wire = Wire(tmp_path, ui=ui)
        for each in [each for pair in wire.streams for each in pair]:
            each.close()
        server = Server('plain', on_list_tools=list_tools, on_call_tool=call_tool)
        pairs = create_client_server_memory_streams
        async with (
            pairs() as (of_client, to_client),
            pairs() as (to_server, of_server),
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(wire.proxy.run, to_client, to_server)
            tasks.start_soon(server.run, *of_server, server.create_initialization_options())
            with anyio.fail_after(LONGEST_S):
                async with Client(connection(of_client), mode=mode) as client:
                    assert client.protocol_version == version
                    assert (await client.call_tool('read', {'a': 1})).structured_content == {'given': {'a': 1}}
                    assert (await client.call_tool('read', {'a': 1})).is_error
                    assert [each.name for each in (await client.list_tools()).tools] == ['read']
            tasks.cancel_scope.cancel()
        ui.assert_done()

    asyncio.run(main())


def test_a_result_has_a_type_where_the_protocol_demands_one(play):
    async def acts(wire: Wire) -> None:
        await wire.listed(WRITE)
        for version, more in (('2026-07-28', {'resultType': 'complete'}), (None, {})):
            meta = {'progressToken': 1} if version is None else {'io.modelcontextprotocol/protocolVersion': version}
            wire.client('tools/call', 1, params={'name': 'write', '_meta': meta})
            result = (await wire.at_client())['result']
            assert {name: result[name] for name in result if name not in ('content', 'isError')} == more

    play(acts)


@pytest.mark.parametrize(
    ('params', 'code'), [(None, -32602), ({'name': 1}, -32602), ({'name': 'write', 'arguments': ['a']}, -32602)]
)
def test_a_call_that_is_none_is_an_error(play, params, code):
    async def acts(wire: Wire) -> None:
        wire.client('tools/call', 1, **({} if params is None else {'params': params}))
        assert (await wire.at_client())['error']['code'] == code

    play(acts, ui=RecordingUI())


def test_arguments_that_are_no_json_are_refused(play):
    async def acts(wire: Wire) -> None:
        await wire.listed(WRITE)
        wire.call(n=math.nan)
        assert 'are invalid' in await wire.settled()

    play(acts, policy={'*': {'approval': 'none'}})


def test_a_tool_that_the_client_has_not_listed_is_read_from_the_server(play):
    meta = {'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'progressToken': 1}

    async def acts(wire: Wire) -> None:
        wire.client('tools/call', 1, params={'name': 'write', '_meta': meta})
        asked = await wire.at_server()
        assert asked['params'] == {'_meta': {'io.modelcontextprotocol/protocolVersion': '2026-07-28'}}
        wire.server(id=asked['id'], result={'tools': [READ], 'nextCursor': '2'})
        wire.server(id=asked['id'], result={'tools': []})  # nobody waits for it any more
        asked = await wire.at_server()
        assert asked['params']['cursor'] == '2'
        wire.server(id=asked['id'], result={'tools': [WRITE]})
        assert (await wire.at_server())['params'] == {'name': 'write', '_meta': meta, 'arguments': {}}
        # The server says that its tools changed: the next call looks at them again.
        wire.server('notifications/tools/list_changed')
        assert (await wire.at_client())['method'] == 'notifications/tools/list_changed'
        wire.call(id=2)
        asked = await wire.at_server()
        assert asked['params'] == {}
        wire.server(id=asked['id'], result={'tools': [READ]})
        assert await wire.settled() == "The server does not list the tool 'write', so the call was not run."

    wire = play(acts, ui=RecordingUI())

    assert wire.logged[-2:] == ['blocked', 'outcome']


@pytest.mark.parametrize(
    'answer',
    [
        {'error': {'code': -1, 'message': 'no'}},
        {'result': {}},
        {'result': {'tools': 'many'}},
        {'result': {'tools': [1, {'name': 2}, {'name': 'write', 'x': math.nan}, {}]}},
        {'result': {'tools': [], 'nextCursor': 'again'}},
    ],
)
def test_no_call_runs_if_the_tools_of_the_server_are_unknown(play, answer):
    async def acts(wire: Wire) -> None:
        wire.call()
        asks = 0
        while asks < 1 or 'nextCursor' in answer.get('result', {}):
            asks += 1
            wire.server(id=(await wire.at_server())['id'], **answer)
            if asks == 100:
                break
        assert 'so the call was not run' in await wire.settled()
        assert wire.to_server.statistics().current_buffer_used == 0

    play(acts, policy={'*': {'approval': 'none'}})


def test_a_changed_tool_is_withheld_until_it_is_accepted(play):
    changed = {**WRITE, 'description': 'Write a note, and mail it to everybody.'}

    async def before(wire: Wire) -> None:
        assert await wire.listed(READ, WRITE) == ['read', 'write']

    async def acts(wire: Wire) -> None:
        assert await wire.listed(READ, changed, WRITE) == ['read']
        assert await wire.listed(READ, changed) == ['read']
        wire.call('write', 1)
        wire.server(id=(await wire.at_server())['id'], result={'tools': [READ, changed]})
        assert '`tool-approval mcp --accept --name notes` shows the change' in await wire.settled()
        wire.pins.accept([changed])
        wire.call('write', 2)
        wire.server(id=(await wire.at_server())['id'], result={'tools': [READ, changed]})
        assert (await wire.at_server())['method'] == 'tools/call'
        # Who takes it back is withheld too.
        assert await wire.listed(READ, WRITE) == ['read']

    play(before)
    wire = play(acts, policy={'*': {'approval': 'none'}})

    assert len(wire.notes) == 2
    assert wire.logged == ['blocked', 'unasked', 'outcome']


def test_no_tool_is_listed_if_the_pins_cannot_be_read(play, tmp_path):
    (tmp_path / 'mcp').mkdir(mode=0o700)
    (tmp_path / 'mcp' / 'notes.json').write_text('{}')  # anybody can read it

    async def acts(wire: Wire) -> None:
        wire.client('tools/list', 1)
        await wire.at_server()
        wire.server(id=1, result={'tools': [WRITE]})
        assert 'notes.json' in (await wire.at_client())['error']['message']

    play(acts)


def test_a_tool_that_changes_while_the_approver_is_asked_does_not_run(play):
    asked, answered = anyio.Event(), anyio.Event()

    class Slow:
        async def choose(self, request: Any, *, mode: Any) -> Any:
            asked.set()
            await answered.wait()
            return ApprovalDecision(approved=True)

    async def acts(wire: Wire) -> None:
        await wire.listed(WRITE)
        wire.call()
        await asked.wait()
        assert await wire.listed({**WRITE, 'description': 'Mail it.'}) == []
        answered.set()
        wire.server(id=(await wire.at_server())['id'], result={'tools': [{**WRITE, 'description': 'Mail it.'}]})
        assert await wire.settled() == 'The call changed after it was approved, so it was not run.'

    play(acts, ui=Slow())


def test_an_approval_with_always_is_for_the_same_definition_and_command(play, tmp_path):
    (tmp_path / 'project').mkdir()
    changed = {**WRITE, 'description': 'Write and mail.'}

    def called(ui: Any, tool: Any = WRITE, **options: Any) -> None:
        async def acts(wire: Wire) -> None:
            await wire.listed(tool)
            wire.pins.accept([tool])
            await wire.listed(tool)
            wire.call(path='a')
            if ui.answer is False:
                await wire.settled()
            else:
                await wire.at_server()

        store = FileApprovalStore(tmp_path / 'project', tmp_path / 'state' / 'approvals.json')
        play(acts, ui=ui, memory=ApprovalMemory(store), **options)

    class Once(ScriptedUI):
        def __init__(self, *answers: Any) -> None:
            super().__init__(answers)
            self.answer = answers[0] if answers else None

    asked = [Once('a'), Once(), Once(False), Once(False)]
    called(asked[0])
    called(asked[1])
    called(asked[2], identity=['another', 'command'])
    called(asked[3], changed)

    for ui in asked:
        ui.assert_done()


class Held:
    """Never answers, and says when it is asked and when the question is withdrawn."""

    def __init__(self) -> None:
        self.asked, self.withdrawn = anyio.Event(), anyio.Event()

    async def choose(self, request: Any, *, mode: Any) -> Any:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.withdrawn.set()


def test_a_client_that_gives_up_withdraws_the_question_and_the_server_hears_nothing(play):
    ui = Held()

    async def acts(wire: Wire) -> None:
        await wire.listed(WRITE)
        wire.call()
        await ui.asked.wait()
        wire.server(id=1, result={'content': []})  # the server cannot answer what it was not asked
        wire.client('notifications/cancelled', params={'requestId': 1})
        await ui.withdrawn.wait()
        wire.client('notifications/cancelled', params={'requestId': 1})
        wire.client('notifications/cancelled')
        wire.client('ping', 2)
        assert (await wire.at_server())['method'] == 'ping'
        wire.server(id=2, result={})
        assert (await wire.at_client())['id'] == 2

    play(acts, ui=ui)


def test_a_call_at_the_server_is_cancelled_there(play):
    async def acts(wire: Wire) -> None:
        await wire.listed(WRITE)
        wire.call()
        await wire.at_server()
        wire.client('notifications/cancelled', params={'requestId': 1, 'reason': 'late'})
        assert (await wire.at_server())['params'] == {'requestId': 1, 'reason': 'late'}
        wire.client('resources/list', 2)
        await wire.at_server()
        wire.client('notifications/cancelled', params={'requestId': 2})
        assert (await wire.at_server())['params'] == {'requestId': 2}
        wire.server(id=1, result={})
        wire.server(id=2, result={})
        assert await wire.listed(WRITE) == ['write']

    wire = play(acts, policy={'*': {'approval': 'none'}})

    assert [entry.get('outcome') for entry in wire.sink.all] == [None, 'failed']


def test_other_messages_pass_unchanged_in_both_directions(play):
    async def acts(wire: Wire) -> None:
        wire.client('initialize', 0, params={'protocolVersion': '2099-01-01', 'capabilities': {'odd': {}}})
        assert (await wire.at_server())['params'] == {'protocolVersion': '2099-01-01', 'capabilities': {'odd': {}}}
        wire.server(id=0, result={'capabilities': {'tools': {}}, 'more': 1})
        assert (await wire.at_client())['result'] == {'capabilities': {'tools': {}}, 'more': 1}
        wire.client('notifications/initialized')
        assert (await wire.at_server()) == {'jsonrpc': '2.0', 'method': 'notifications/initialized'}
        for number, method in enumerate(['sampling/createMessage', 'elicitation/create', 'roots/list', 'ping']):
            wire.server(method, number, params={'a': method})
            assert await wire.at_client() == {'jsonrpc': '2.0', 'id': number, 'method': method, 'params': {'a': method}}
            wire.client(id=number, result={'b': method})
            assert await wire.at_server() == {'jsonrpc': '2.0', 'id': number, 'result': {'b': method}}
        wire.server('notifications/progress', params={'progressToken': 1, 'progress': 0.5})
        assert (await wire.at_client())['params'] == {'progressToken': 1, 'progress': 0.5}

    play(acts)


def test_a_call_without_an_id(play):
    async def acts(wire: Wire) -> None:
        await wire.listed(WRITE)
        wire.client('tools/call', params={'name': 'write'})
        assert (await wire.at_client())['error'] == {'code': -32600, 'message': 'A request needs an id.'}

    play(acts, ui=RecordingUI())


def test_an_id_in_use_and_garbage_are_errors_and_everything_goes_on(play):
    ui = Held()

    async def acts(wire: Wire) -> None:
        await wire.listed(WRITE)
        wire.call(id='1')
        wire.client('tools/list', 1)
        assert (await wire.at_client())['error']['message'] == 'This id is in use.'
        wire.from_client.send_nowait(ValueError('no JSON'))
        assert (await wire.at_client())['error']['code'] == -32600
        wire.from_server.send_nowait(ValueError('no JSON'))
        wire.server(id=99, result={})
        wire.from_server.send_nowait(message(None, None, {'id': None, 'error': {'code': 1, 'message': 'x'}}))
        assert await wire.listed(WRITE) == ['write']

    wire = play(acts, ui=ui)

    assert wire.notes == ['the server wrote a line that is not a message of JSON-RPC 2.0; it was dropped']


def test_if_the_server_ends_every_request_is_answered(play):
    ui = Held()

    async def acts(wire: Wire) -> None:
        await wire.listed(READ, WRITE)
        wire.call('read', 1)
        await wire.at_server()
        wire.call('write', 2)
        await ui.asked.wait()
        wire.client('resources/list', 3)
        await wire.at_server()
        wire.from_server.close()
        answers = {each['id']: each for each in [await wire.at_client() for _ in range(3)]}
        assert answers[1]['result']['content'][0]['text'].startswith('The MCP server ended')
        assert answers[2]['result']['isError']
        assert answers[3]['error']['code'] == -32000

    wire = play(acts, policy={'mcp__notes__read': {'approval': 'none'}}, ui=ui)

    assert wire.ended == [False]


def test_a_request_that_comes_after_the_server_has_ended_is_an_error(play):
    asked, withdrawn, go_on = anyio.Event(), anyio.Event(), anyio.Event()

    class Lingering:
        async def choose(self, request: Any, *, mode: Any) -> Any:
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                withdrawn.set()
                with anyio.CancelScope(shield=True):
                    await go_on.wait()

    async def acts(wire: Wire) -> None:
        await wire.listed(WRITE)
        wire.call()
        await asked.wait()
        wire.from_server.close()
        await withdrawn.wait()
        wire.call(id=2)
        assert (await wire.at_client())['error']['code'] == -32000
        go_on.set()
        assert (await wire.at_client())['id'] == 1

    play(acts, ui=Lingering())


def test_a_client_that_reads_no_more_stops_nothing(play):
    async def acts(wire: Wire) -> None:
        await wire.listed(WRITE)
        wire.to_client.close()
        wire.call()
        wire.client('ping', 2)
        assert (await wire.at_server())['method'] == 'ping'

    play(acts)


def fuzzed(random: random.Random) -> Any:
    """Something like a message: often with the method and the tool that matter, and with anything in any place."""

    def value(depth: int = 0) -> Any:
        kind = random.randrange(12 if depth < 3 else 8)
        if kind < 8:
            odd = [None, True, 0, 1, -1.5, 1 << 70, '', 'write', 'tools/call', '\x1b[2J', math.nan, math.inf]
            return random.choice(odd)
        names = ['name', 'arguments', '_meta', 'tools', 'nextCursor', 'requestId', 'inputSchema', 'cursor']
        if kind < 10:
            return [value(depth + 1) for _ in range(random.randrange(3))]
        return {random.choice(names): value(depth + 1) for _ in range(random.randrange(4))}

    found: dict[str, Any] = {'jsonrpc': '2.0'}
    methods = ['tools/call'] * 4 + ['tools/list', 'ping', 'notifications/cancelled', 'notifications/progress']
    methods += ['notifications/tools/list_changed', 'TOOLS/CALL', 'tools/call/', '']
    call = {'name': 'write', 'arguments': random.choice([{'path': 'a'}, value()])}
    parts = {
        'method': lambda: random.choice(methods),
        'id': lambda: value() if random.random() < 0.2 else random.choice([1, '2', *range(1000)]),
        'params': lambda: {**call, 'more': value()} if random.random() < 0.7 else value(),
        'result': lambda: {'tools': [WRITE, value()], 'content': value()} if random.random() < 0.5 else value(),
        'error': lambda: {'code': 1, 'message': 'x'} if random.random() < 0.5 else value(),
    }
    for name, make in parts.items():
        if random.random() < (0.8 if name in ('method', 'id', 'params') else 0.15):
            found[name] = make()
    if random.random() < 0.05:
        return value()
    return found


def test_of_1000_fuzzed_messages_none_makes_the_server_run_a_call(play):
    seen: list[Any] = []

    async def acts(wire: Wire) -> None:
        made = random.Random(20261129)
        await wire.listed(WRITE)

        async def answering() -> None:
            # Own questions of the proxy are answered, so that its calls come as far as they can.
            async for got in wire.to_server:
                found = json.loads(got.message.model_dump_json(by_alias=True, exclude_unset=True))
                seen.append(found)
                if str(found.get('id')).startswith('tool-approval-'):
                    wire.server(id=found['id'], result={'tools': [WRITE, READ]})

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(answering)
            for number in range(1000):
                text = json.dumps(fuzzed(made))[: None if made.random() < 0.9 else made.randrange(40)]
                try:
                    item: Any = SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
                except ValueError as error:
                    item = error
                (wire.from_client if made.random() < 0.7 else wire.from_server).send_nowait(item)
                if number % 50 == 0:
                    await anyio.lowlevel.checkpoint()
            wire.client('ping', 'last')
            with anyio.fail_after(6 * LONGEST_S):
                while not any(found.get('id') == 'last' for found in seen):
                    await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()

    wire = play(acts, ui=deny_all())

    assert len(seen) > 50
    assert [found for found in seen if found.get('method') == 'tools/call'] == []
    assert wire.logged.count('question') > 5


def test_without_the_sdk_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, 'mcp', None)
    monkeypatch.delitem(sys.modules, 'tool_approval.integrations.mcp')

    with pytest.raises(ImportError, match=r'tool_approval\[.*mcp'):
        import tool_approval.integrations.mcp  # noqa: F401
