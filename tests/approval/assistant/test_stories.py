"""Each story, with each answer: what is said afterwards is true, and nothing is left behind."""

import asyncio
import io
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolReturnPart, UserPromptPart
from pydantic_ai_deferred import Agent
from tool_approval.assistant.stories import STORIES, port, port_owner, web_server
from tool_approval.assistant.stories.port import server
from tool_approval.assistant.stories.scene import play, scripted
from tool_approval.testing import ScriptedUI

from .shown import shown_screen

needs_proc = pytest.mark.skipif(not Path('/proc/net/tcp').exists(), reason='Linux lists its sockets in /proc')


def played(name, answers):
    screen = shown_screen()
    ui = ScriptedUI(list(answers))
    asyncio.run(play(STORIES[name], make_ui=lambda memory, presenters: ui, screen=screen))
    return screen.shown, ui


def free_port():
    with socket.create_server(('127.0.0.1', 0)) as probe:
        return probe.getsockname()[1]


def test_port_stops_the_very_process_that_the_command_names():
    shown, ui = played('port', 'yy')

    owner = re.search(r'pid=(\d+)|\bp(\d+)\b', shown)
    assert owner is not None
    assert ui.requests[1].args == {'command': f'kill {owner[1] or owner[2]}'}
    assert 'has ended, the other server is still running.' in shown
    assert 'One run: 3 model requests; refused calls: 0.' in shown


PORT_GOES_ON = ['is still running, the other server is still running.', 'refused calls: 1']


@pytest.mark.parametrize(
    ('story', 'answers', 'outcomes'),
    [
        ('port', 'n', PORT_GOES_ON),
        ('port', 'yn', PORT_GOES_ON),
        (
            'edit',
            'nnn',
            [
                'greeting.py is unchanged, test_greeting.py was not written, notes.txt is still there.',
                'Nothing was changed, as you wished.',
            ],
        ),
        ('nested', 'n', ['report.md was not written.']),
        ('nested', 'yn', ['report.md was not written.']),
        ('batch', 'nnnn', ['left in the folder: july.log, june.log, may.log, orders.csv.', 'I deleted nothing.']),
    ],
)
def test_refused_steps_of_a_story_are_not_taken(story, answers, outcomes):
    shown, ui = played(story, answers)

    ui.assert_done()
    assert [outcome for outcome in outcomes if outcome not in shown] == []


@needs_proc
def test_port_finds_the_process_without_ss_and_lsof(monkeypatch):
    monkeypatch.setattr(shutil, 'which', lambda name: None)

    shown, ui = played('port', 'yy')

    assert 'port_owner.py' in ui.requests[0].args['command']
    assert 'has ended, the other server is still running.' in shown


def test_port_uses_lsof_without_ss(monkeypatch):
    monkeypatch.setattr(shutil, 'which', lambda name: '/usr/bin/lsof' if name == 'lsof' else None)

    assert port.look_up(80) == 'lsof -nP -iTCP:80 -sTCP:LISTEN -Fp'


def test_port_ends_where_nothing_is_found(monkeypatch):
    monkeypatch.setattr(port, 'look_up', lambda port: 'ls /nowhere')

    shown, ui = played('port', 'y')

    ui.assert_done()
    assert 'I can see nothing that listens' in shown


def test_edit_makes_only_the_approved_changes():
    shown, ui = played('edit', ['y', 'n', 'y'])

    ui.assert_done()
    assert 'greeting.py was changed, test_greeting.py was not written, notes.txt is gone.' in shown
    assert 'I fixed the greeting, deleted the scratch file.' in shown


def test_edit_shows_a_diff_the_new_file_and_what_goes():
    _, ui = played('edit', 'yyy')

    shown = [request.presentation for request in ui.requests]
    assert shown[0].type == 'diff'
    assert "+    return f'Hello, {name}!'" in shown[0].content
    assert shown[1].type == 'file_content'
    assert shown[2] is not None


def test_nested_shows_who_asks():
    shown, ui = played('nested', 'yy')

    inner, outer = ui.requests
    assert [(level.agent_name, level.tool_name) for level in inner.lineage] == [('manager', 'ask_researcher')]
    assert inner.metadata['caller'] == 'researcher'
    assert outer.lineage == ()
    assert outer.metadata['caller'] == 'manager'
    assert 'report.md is there.' in shown


def test_batch_asks_about_all_before_the_first_runs():
    shown, ui = played('batch', 'yyyn')

    assert [request.metadata['batch_size'] for request in ui.requests] == [4, 4, 4, 4]
    assert 'left in the folder: orders.csv.' in shown
    assert 'Deleted: may.log, june.log, july.log.' in shown


@needs_proc
def test_port_owner_finds_only_the_listening_process(capsys):
    with server() as (running, number), server():
        status = port_owner.main(number)

    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith(f'pid={running.pid} ')
    assert status == 0
    assert port_owner.main(free_port()) == 1


def test_stopped_story_leaves_nothing_behind(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))

    class Leaves:
        async def choose(self, request, *, mode):
            raise KeyboardInterrupt

    screen = shown_screen()

    end = asyncio.run(play(STORIES['edit'], make_ui=lambda memory, presenters: Leaves(), screen=screen))

    assert end == 'stopped'
    assert 'Stopped.\n\nIn fact: greeting.py is unchanged' in screen.shown
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_does_not_start_is_an_error(monkeypatch):
    monkeypatch.setattr(port.sys, 'executable', shutil.which('false'))

    with pytest.raises(RuntimeError, match='did not start'), server():
        pass


def test_a_port_that_is_taken_is_replaced():
    with server() as (_, taken), server(taken) as (_, other):
        assert other != taken


def test_a_port_that_is_free_is_taken():
    wish = free_port()

    with server(wish) as (_, number):
        assert number == wish


def test_a_server_that_hangs_is_given_up(monkeypatch):
    monkeypatch.setattr(port, 'READY_WITHIN_S', 0)

    with pytest.raises(RuntimeError, match='did not start'), server():
        pass


def test_a_script_starts_anew_with_each_prompt():
    seen = []

    def plan(results):
        seen.append(len(results))
        return 'done'

    history = [
        ModelRequest([UserPromptPart('one')]),
        ModelRequest([ToolReturnPart('tool', 'result', tool_call_id='1')]),
        ModelResponse([TextPart('done')]),
    ]

    result = Agent(scripted(plan)).run_sync('two', message_history=history)

    assert result.output == 'done'

    assert seen == [0]


def test_server_ends_with_the_process_that_started_it():
    with server() as (running, _):
        running.stdin.close()
        status = running.wait(timeout=60)

    assert status == 0


def test_the_server_serves_until_its_input_ends(monkeypatch, capsys):
    monkeypatch.setattr(sys, 'stdin', io.StringIO(''))

    with socket.create_server(('127.0.0.1', 0)) as other:
        taken = other.getsockname()[1]
        web_server.serve(taken)

    served = int(capsys.readouterr().out)
    assert served != taken
    socket.create_server(('127.0.0.1', served)).close()


@needs_proc
def test_port_owner_names_the_process_and_exits_accordingly():
    look_up = Path(port.__file__).with_name('port_owner.py')
    with server() as (running, number):
        command = [sys.executable, str(look_up), str(number)]
        found = subprocess.run(command, capture_output=True, text=True)

    assert found.stdout.startswith(f'pid={running.pid} ')
    assert found.returncode == 0
    assert subprocess.run([sys.executable, str(look_up), str(free_port())], capture_output=True).returncode == 1
    assert os.path.exists(f'/proc/{running.pid}') is False
