"""An MCP server's tools under an `ApprovalToolset`, with a server in a process of its own and one behind HTTP."""

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('fastmcp', reason='`pydantic-ai-slim[mcp]` is not installed; the default environment has it')

import uvicorn
from fastmcp.client.transports import StdioTransport
from pydantic_ai.mcp import MCPToolset
from pydantic_ai_deferred import Agent
from tool_approval.core.calls import denied_because
from tool_approval.integrations.pydantic_ai import Approvals, ApprovalToolset, run_with_approval_sync
from tool_approval.storage import FileApprovalStore
from tool_approval.testing import RecordingUI, ScriptedUI

from tests.loop.scripted import call, returns, scripted
from tool_approval import ApprovalController, ApprovalMemory

from . import mcp_server

Connect = Callable[[Path], AbstractContextManager[MCPToolset[Any]]]
POLICY = {'notes_read_*': {'approval': 'none'}, '*_delete_*': {'approval': 'blocked'}}


@contextmanager
def stdio(folder: Path) -> Iterator[MCPToolset[Any]]:
    program = str(Path(mcp_server.__file__))
    yield MCPToolset(
        StdioTransport(sys.executable, [program, str(folder)], keep_alive=False), id='notes', init_timeout=60
    )


@contextmanager
def http(folder: Path) -> Iterator[MCPToolset[Any]]:
    with socket.create_server(('127.0.0.1', 0)) as listening:
        app = mcp_server.notes_server(folder).streamable_http_app()
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws='none', timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, kwargs={'sockets': [listening]})
        thread.start()
        yield MCPToolset(f'http://127.0.0.1:{listening.getsockname()[1]}/mcp', id='notes')
        server.should_exit = True
        thread.join()


@pytest.fixture(params=[stdio, http])
def connect(request: pytest.FixtureRequest) -> Connect:
    return request.param


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / 'served'
    folder.mkdir()
    (folder / 'a').write_text('the note a')
    return folder


def run(toolset: Any, controller: ApprovalController, *calls: Any) -> dict[str, tuple[Any, str]]:
    agent = Agent(scripted(list(calls), 'done'), name='clerk', toolsets=[toolset])
    handler = Approvals(controller, session='s', default='none')
    return returns(agent.run_sync('go', deferred_tool_handler=handler).all_messages())


def test_a_policy_names_the_tools_with_their_prefix_and_globs_match_them(connect: Connect, folder: Path):
    ui = ScriptedUI([True, 'Not that one.'])
    controller = ApprovalController(ui=ui, policy=POLICY)

    with connect(folder) as server:
        told = run(
            ApprovalToolset(server.prefixed('notes'), controller),
            controller,
            call('notes_read_note', '1', name='a'),
            call('notes_write_note', '2', name='b', text='new'),
            call('notes_write_note', '3', name='a', text='new'),
            call('notes_delete_note', '4', name='a'),
        )

    ui.assert_done()
    assert [(each.tool_name, each.args['name']) for each in ui.requests] == [
        ('notes_write_note', 'b'),
        ('notes_write_note', 'a'),
    ]
    assert told['1'] == ('the note a', 'success')
    assert told['2'] == ('wrote b', 'success')
    assert told['3'] == (denied_because('Not that one.'), 'denied')
    assert told['4'] == ("The tool 'notes_delete_note' is blocked by policy.", 'failed')
    assert {each.name: each.read_text() for each in folder.iterdir()} == {'a': 'the note a', 'b': 'new'}


def test_the_calls_of_a_server_can_leave_the_run_and_be_resumed(connect: Connect, folder: Path):
    ui = RecordingUI(True)
    controller = ApprovalController(ui=ui)

    with connect(folder) as server:
        calls = [call('write_note', '1', name='b', text='new')]
        agent = Agent(scripted(calls, 'done'), toolsets=[ApprovalToolset(server, controller)])
        result = run_with_approval_sync(agent, 'go', controller=controller)

    assert returns(result.all_messages()) == {'1': ('wrote b', 'success')}
    assert (folder / 'b').read_text() == 'new'


def test_an_approval_for_always_ends_when_the_server_changes_the_definition(folder: Path):
    def ask(*answers: Any) -> None:
        ui = ScriptedUI(list(answers))
        store = FileApprovalStore(folder, path=folder.parent / 'state/approvals.json')
        controller = ApprovalController(ui=ui, memory=ApprovalMemory(store))
        with http(folder) as server:
            run(ApprovalToolset(server, controller), controller, call('write_note', '1', name='b'))
        ui.assert_done()

    ask('a')
    ask()
    (folder / '.description').write_text('Write a note, and mail it to everybody.')
    ask('Not any more.')


def test_an_approval_for_the_session_ends_when_the_server_changes_the_definition(folder: Path):
    ui = ScriptedUI(['s', 'Not any more.'])
    controller = ApprovalController(ui=ui)
    told: list[Any] = []

    for description in ('Write a note.', 'Write a note.', 'Write a note, and mail it to everybody.'):
        (folder / '.description').write_text(description)
        with http(folder) as server:
            ran = run(ApprovalToolset(server, controller), controller, call('write_note', '1', name='b'))
            told.append(ran['1'])

    ui.assert_done()
    assert told == [('wrote b', 'success'), ('wrote b', 'success'), (denied_because('Not any more.'), 'denied')]
