"""`tool-approval mcp` between real clients and real servers, each a process of its own."""

import asyncio
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip('mcp', reason='`tool-approval[mcp]` is not installed')
pytest.importorskip('yaml')
pytest.importorskip('tree_sitter_bash')

import anyio
from mcp import ClientSession, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import CreateMessageResult, ElicitResult, ListRootsResult, Root, TextContent
from tool_approval.cli import main
from tool_approval.cli.mcp import stdio
from tool_approval.storage.pinned_tools import PinnedTools

from . import rich_mcp_server
from .process import COMMAND, call
from .test_exec import answered

LONGEST_S = 60
PLAIN = """
import json, os, sys
open('started', 'w').close()
for line in sys.stdin:
    got = json.loads(line)
    if got['method'] == 'tools/list':
        result = {'tools': [{'name': 'act', 'inputSchema': {}}]}
    elif got['method'] == 'tools/call':
        how = got['params']['arguments'].get('how')
        with open('acted', 'a') as file:
            file.write(f'{how} ')
        if how == 'end':
            sys.exit(3)
        if how == 'garbage':
            sys.stdout.buffer.write(b'no JSON \\xff\\n')
        if how == 'hang':
            import time; time.sleep(600)
        result = {'content': [], 'how': how}
    else:
        result = {}
    print(json.dumps({'jsonrpc': '2.0', 'id': got.get('id'), 'result': result}), flush=True)
"""
"""A server that starts at once, in its working directory, and says there what it did."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    made = tmp_path / 'work'
    made.mkdir()
    (made / 'rules.yaml').write_text('tools: {mcp__plain__act: {approval: none}}')
    monkeypatch.chdir(made)
    monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path / 'state'))
    return made


class Peer:
    """The client of a proxy in this process: raw lines, both ways."""

    def __init__(self, written, read):
        self.written, self.read = written, os.fdopen(read)
        self.ended = threading.Event()

    def say(self, method, id=None, **params):
        request = {'jsonrpc': '2.0', 'method': method, 'params': params, **({} if id is None else {'id': id})}
        os.write(self.written, json.dumps(request).encode() + b'\n')

    def act(self, how, id=1):
        self.say('tools/call', id, name='act', arguments={'how': how})

    def hear(self):
        return json.loads(self.read.readline())


def serve_here(monkeypatch, folder, act, *arguments):
    """Runs a command here, and `act(peer)` in a thread. Returns the status and the notes."""
    (their_out, our_in), (our_out, their_in) = os.pipe(), os.pipe()
    peer, failed = Peer(our_in, our_out), []

    def run():
        try:
            act(peer)
        except BaseException as error:
            failed.append(error)
        finally:
            os.close(our_in)

    with (
        monkeypatch.context() as patched,
        os.fdopen(their_out) as stdin,
        os.fdopen(their_in, 'w') as stdout,
        open(folder / 'notes', 'w+') as notes,
    ):
        for stream, value in (('stdin', stdin), ('stdout', stdout), ('stderr', notes)):
            patched.setattr(sys, stream, value)
        thread = threading.Thread(target=run)
        thread.start()
        status = main(arguments)
        peer.ended.set()
        stdout.close()
        thread.join(LONGEST_S)
        peer.read.close()
        notes.seek(0)
        text = notes.read()
    assert not thread.is_alive()
    assert failed == [], text
    return status, text


@pytest.fixture
def serve(folder, monkeypatch):
    """`serve(act, *options)`: runs the proxy here."""

    def served(act, *options, words=(sys.executable, '-c', PLAIN), name='plain'):
        return serve_here(monkeypatch, folder, act, 'mcp', '--name', name, '--never-ask', *options, '--', *words)

    return served


def acted(folder):
    return (folder / 'acted').read_text().split() if (folder / 'acted').exists() else []


def test_a_call_is_refused_or_runs_by_the_settings_and_the_client_ends_the_connection(serve, folder, tmp_path):
    def act(peer):
        os.write(peer.written, b'{"jsonrpc": "2.0", "id": 0, ')
        time.sleep(0.05)
        os.write(peer.written, b'"method": "ping"}\nno JSON\n')
        assert {peer.hear()['id'], peer.hear()['id']} == {0, None}
        peer.act('garbage')
        assert peer.hear()['result']['how'] == 'garbage'

    status, notes = serve(act, '--config', 'rules.yaml')

    assert status == 0
    assert notes == 'tool-approval: the server wrote a line that is not a message of JSON-RPC 2.0; it was dropped\n'
    log = (tmp_path / 'state/tool-approval/audit/decisions.jsonl').read_text()
    assert '"caller":"mcp"' in log.replace('": "', '":"')

    def refused(peer):
        peer.act('again')
        assert peer.hear()['result']['isError']

    assert serve(refused) == (0, '')
    assert acted(folder) == ['garbage']


def test_settings_that_are_not_trusted_can_only_make_rules_stricter(serve, folder):
    (folder / 'rules.yaml').rename(folder / 'approvals.yaml')

    def act(peer):
        peer.act('x')
        assert peer.hear()['result']['isError']

    status, notes = serve(act)

    assert (status, acted(folder)) == (0, [])
    assert 'is not trusted' in notes


def test_the_server_ends_during_a_call(serve, folder):
    def act(peer):
        peer.act('end')
        assert peer.hear()['result']['content'][0]['text'].startswith('The MCP server ended')
        assert peer.read.readline() == ''

    assert serve(act, '--config', 'rules.yaml') == (2, 'tool-approval: the server ended\n')


def test_nothing_is_started_if_the_settings_are_broken_or_the_state_is_away(serve, folder, tmp_path):
    def act(peer):
        peer.say('notifications/odd')
        peer.say('initialize', 0)
        heard.append(peer.hear()['error']['message'])

    heard = []
    (folder / 'rules.yaml').write_text('tools: [')
    status, notes = serve(act, '--config', 'rules.yaml')
    assert (status, 'rules.yaml' in notes, 'rules.yaml' in heard[0]) == (2, True, True)
    (tmp_path / 'state' / 'tool-approval' / 'audit').mkdir(parents=True, exist_ok=True, mode=0o700)
    (tmp_path / 'state' / 'tool-approval' / 'audit' / 'decisions.jsonl').mkdir()
    assert serve(act)[0] == 2
    assert 'decisions.jsonl' in heard[1]
    assert serve(lambda peer: None)[0] == 2
    assert not (folder / 'started').exists()


@pytest.mark.parametrize('name', ['a__b', '_a', 'a_', '../a', 'a b', ''])
def test_a_name_with_two_meanings_is_refused(serve, name):
    status, notes = serve(lambda peer: peer.read.readline(), name=name)

    assert (status, '--name must have only' in notes) == (2, True)


def test_a_server_that_cannot_be_started_is_named(serve):
    assert 'the command of the server is missing' in serve(lambda peer: peer.read.readline(), words=[])[1]
    status, notes = serve(lambda peer: None, words=['no-such-program'])

    assert (status, 'no-such-program' in notes) == (2, True)
    assert serve(lambda peer: peer.read.readline(), words=['true']) == (2, 'tool-approval: the server ended\n')


def test_at_a_terminal_a_failure_waits_for_no_client(folder, monkeypatch):
    (folder / 'rules.yaml').write_text('tools: [')

    assert call(monkeypatch, 'mcp', '--name', 'a', '--config', 'rules.yaml', 'true', is_terminal=True).status == 2


def test_a_signal_ends_the_server_too(serve, folder):
    def act(peer):
        peer.act('hang')
        while not acted(folder):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    begun = time.monotonic()
    status, _ = serve(act, '--config', 'rules.yaml')

    assert status == 128 + signal.SIGTERM
    assert time.monotonic() - begun < LONGEST_S


def test_a_client_that_reads_no_more_is_gone(serve):
    def act(peer):
        peer.read.close()
        peer.say('ping', 1)
        assert peer.ended.wait(LONGEST_S)

    assert serve(act) == (141, '')


def test_requests_may_come_from_a_file(folder, monkeypatch):
    (folder / 'requests').write_text('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    with open('requests') as stdin, open('answers', 'w') as stdout, open('notes', 'w') as stderr:
        for name, stream in (('stdin', stdin), ('stdout', stdout), ('stderr', stderr)):
            monkeypatch.setattr(sys, name, stream)
        assert main(['mcp', '--name', 'plain', '--', sys.executable, '-c', PLAIN]) == 0


def test_what_the_client_sent_at_the_end_holds_nothing_up(folder, monkeypatch):
    (folder / 'requests').write_text('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n' * 2)

    async def run():
        async with stdio():
            await anyio.wait_all_tasks_blocked()

    with open('requests') as stdin, open('answers', 'w') as stdout:
        monkeypatch.setattr(sys, 'stdin', stdin)
        monkeypatch.setattr(sys, 'stdout', stdout)
        asyncio.run(run())


def test_changed_tools_are_accepted_after_a_look(folder, monkeypatch, tmp_path):
    pins = PinnedTools(tmp_path / 'state/tool-approval/mcp', 'notes')
    before = {'name': 'write', 'description': 'Write.', 'inputSchema': {}}
    after = {'name': 'write', 'description': 'Write \x1b[2J and mail.', 'inputSchema': {}, 'title': None}
    pins.withheld([before])

    assert call(monkeypatch, 'mcp', '--name', 'notes', '--accept').out == 'the server notes has changed no tool\n'

    pins.withheld([after])
    shown = 'write:\n  - description: "Write."\n  + description: "Write \\u001b[2J and mail."\n'
    shown += '  - title: (missing)\n  + title: null\n'
    denied = call(monkeypatch, 'mcp', '--name', 'notes', '--accept', typed='n', is_terminal=True)
    assert (denied.status, denied.out.startswith(shown)) == (2, True)
    assert call(monkeypatch, 'mcp', '--name', 'notes', '--accept').status == 2
    assert pins.withheld([after]) == {'write'}
    accepted = call(monkeypatch, 'mcp', '--name', 'notes', '--accept', typed='y', is_terminal=True)
    assert (accepted.status, pins.withheld([after])) == (0, set())
    assert pins.withheld([before]) == {'write'}
    assert call(monkeypatch, 'mcp', '--name', 'notes', '--accept', '--yes').status == 0
    assert pins.withheld([before]) == set()


def proxied(*options, program=rich_mcp_server.__file__):
    words = [*COMMAND[1:], 'mcp', '--name', 'rich', *options, '--', sys.executable, program]
    return StdioServerParameters(command=COMMAND[0], args=words, env=dict(os.environ))


def test_the_client_of_the_sdk_gets_everything_from_a_server_of_the_sdk(folder, tmp_path):
    free = ', '.join(f'mcp__rich__{name}: {{approval: none}}' for name in ('draw', 'fail', 'count', 'ask', 'wait'))
    (folder / 'rules.yaml').write_text(f'tools: {{{free}}}')
    progress, logged = [], []

    async def on_progress(*update):
        progress.append(update)

    async def on_log(params):
        logged.append(params.data)

    async def on_sampling(context, params):
        content = TextContent(type='text', text='hello')
        return CreateMessageResult(role='assistant', content=content, model='none')

    async def on_elicitation(context, params):
        return ElicitResult(action='accept', content={'yes': True})

    async def on_roots(context):
        return ListRootsResult(roots=[Root(uri='file:///here')])

    async def talk(session):
        assert (await session.initialize()).server_info.name == 'rich'
        assert len((await session.list_tools()).tools) == 6
        answering = asyncio.create_task(answered(None, approved=True))
        assert (await session.call_tool('add', {'a': 1, 'b': 2})).structured_content == {'total': 3}
        await answering
        assert (await session.call_tool('draw', {})).content[0].mime_type == 'image/png'
        failed = await session.call_tool('fail', {})
        assert (failed.is_error, 'out of ink' in failed.content[0].text) == (True, True)
        await session.call_tool('count', {}, progress_callback=on_progress)
        assert (progress, logged) == ([(1.0, 2.0, 'half')], ['counting'])
        assert (await session.call_tool('ask', {})).content[0].text == 'accept file:///here hello'
        assert (await session.read_resource('note://a')).contents[0].text == 'the note a'
        assert (await session.get_prompt('greet', {'name': 'Ada'})).messages[0].content.text == 'Greet Ada.'
        with pytest.raises(MCPError):
            await session.get_prompt('unknown')
        begun = anyio.Event()

        async def on_begun(*update):
            begun.set()

        waiting = asyncio.create_task(session.call_tool('wait', {}, progress_callback=on_begun))
        await begun.wait()
        waiting.cancel()
        await session.send_ping()

    async def run():
        callbacks = {
            'sampling_callback': on_sampling,
            'elicitation_callback': on_elicitation,
            'list_roots_callback': on_roots,
            'logging_callback': on_log,
        }
        with anyio.fail_after(LONGEST_S):
            async with (
                stdio_client(proxied('--inbox', '--config', 'rules.yaml'), errlog=notes) as streams,
                ClientSession(*streams, **callbacks) as session,
            ):
                await talk(session)

    with open('notes', 'w') as notes:
        asyncio.run(run())

    assert 'the server was told to stop' in (folder / 'notes').read_text()


def test_the_toolset_of_pydantic_ai_is_a_client(folder, tmp_path):
    client = pytest.importorskip('fastmcp.client.transports', reason='`pydantic-ai-slim[mcp]` is not installed')
    from pydantic_ai import Agent
    from pydantic_ai.mcp import MCPToolset

    from tests.loop.scripted import call as tool_call
    from tests.loop.scripted import returns, scripted

    (folder / 'rules.yaml').write_text('tools: {mcp__rich__add: {approval: none}}')
    given = proxied('--never-ask', '--config', 'rules.yaml')
    transport = client.StdioTransport(given.command, given.args, env=given.env, cwd=str(Path.cwd()), keep_alive=False)
    toolset = MCPToolset(transport, id='rich', init_timeout=LONGEST_S)
    agent = Agent(scripted([tool_call('add', '1', a=1, b=2), tool_call('draw', '2')], 'done'), toolsets=[toolset])

    found = returns(agent.run_sync('go').all_messages())

    assert 'total' in str(found)
    assert 'There is no approver to ask' in str(found)
