"""`tool-approval mcp-tools` offers the guarded files and the shell to any MCP client."""

import time

import pytest

pytest.importorskip('mcp', reason='`tool-approval[mcp]` is not installed')
pytest.importorskip('yaml')
pytest.importorskip('tree_sitter_bash')

from tool_approval.testing import ScriptedUI

from tests.system import command_lines
from tool_approval import ApprovalDecision

from .test_exec import confining, log
from .test_mcp import LONGEST_S, serve_here

HELLO = {'protocolVersion': '2025-11-25', 'capabilities': {}, 'clientInfo': {'name': 'test', 'version': '1'}}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    made = tmp_path / 'work'
    made.mkdir()
    (made / 'a.txt').write_text('the text')
    monkeypatch.chdir(made)
    monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path / 'state'))
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    return made


@pytest.fixture
def serve(folder, tmp_path, monkeypatch):
    """`serve(act, *options, answers=...)`: runs the server here. The person gives these answers."""

    def served(act, *options, answers=()):
        ui = ScriptedUI(answers)
        monkeypatch.setattr('tool_approval.cli.guarded.chosen_ui', lambda *given: ui)

        def run(peer):
            peer.say('initialize', 0, **HELLO)
            assert peer.hear()['result']['serverInfo']['name'] == 'tool-approval'
            peer.say('notifications/initialized')
            act(peer)

        ended = serve_here(monkeypatch, tmp_path, run, 'mcp-tools', *options)
        ui.assert_done()
        return ended

    return served


def called(peer, name, **arguments):
    """The text of a call's result, and whether it is an error."""
    peer.say('tools/call', 1, name=name, arguments=arguments)
    result = peer.hear()['result']
    [part] = result['content']
    return part['text'], result.get('isError', False)


def test_the_tools_are_those_of_run(serve):
    def act(peer):
        peer.say('tools/list', 1)
        tools = {each['name']: each for each in peer.hear()['result']['tools']}
        assert len(tools) in (9, 10)  # without bubblewrap, no command runs in the background
        assert tools['read_file']['description'] == 'Read a text file.'
        assert tools['read_file']['inputSchema']['required'] == ['path']
        assert 'command' in tools['run_shell']['inputSchema']['properties']

    assert serve(act) == (0, '')


@confining
def test_a_call_runs_is_asked_about_or_is_refused_as_with_run(serve, folder, tmp_path):
    edited = ApprovalDecision(approved=True, override_args={'path': 'b.txt', 'content': 'changed'})

    def act(peer):
        assert called(peer, 'read_file', path='a.txt') == ('the text', False)
        text, is_error = called(peer, 'run_shell', command='cat a.txt', description='Show it', timeout=5)
        assert ('the text' in text, is_error) == (True, False)
        text, is_error = called(peer, 'write_file', path='b.txt', content='new')
        assert (text.endswith('which ran with: {"content":"changed","path":"b.txt"}]'), is_error) == (True, False)
        assert 'Not now.' in called(peer, 'run_shell', command='touch c.txt')[0]
        assert called(peer, 'read_file', path='/etc/passwd')[1]
        assert called(peer, 'read_file', path='none.txt')[1]
        assert 'path: ' in called(peer, 'read_file', path=1)[0]
        assert called(peer, 'format_disk') == ("There is no tool 'format_disk'.", True)

    assert serve(act, answers=[edited, 'Not now.']) == (0, '')
    assert (folder / 'b.txt').read_text() == 'changed'
    assert not (folder / 'c.txt').exists()
    assert {entry['caller'] for entry in log(tmp_path)} == {'mcp-tools'}


def test_settings_apply_and_an_approver_may_answer_in_place_of_a_tool(serve, folder):
    rule = '{approval: required, answers: [respond, deny]}'
    (folder / 'rules.yaml').write_text(f'tools: {{read_file: {rule}, delete: {{approval: blocked}}}}')
    answer = ApprovalDecision(approved=False, response={'said': 1})

    def act(peer):
        assert called(peer, 'read_file', path='a.txt') == ('{"said":1}', False)
        assert called(peer, 'delete', path='a.txt')[1]

    assert serve(act, '--config', 'rules.yaml', answers=[answer]) == (0, '')
    assert (folder / 'a.txt').exists()

    (folder / 'rules.yaml').rename(folder / 'approvals.yaml')
    assert 'is not trusted' in serve(lambda peer: None)[1]


@confining
def test_a_command_ends_with_its_client(serve, folder):
    def act(peer):
        peer.say('tools/call', 1, name='run_shell', arguments={'command': 'sleep 654.321'})
        ends = time.monotonic() + LONGEST_S
        while not running() and time.monotonic() < ends:
            time.sleep(0.01)
        assert running()

    def running():
        return 'sleep 654.321' in command_lines().values()

    assert serve(act) == (0, '')
    assert not running()
