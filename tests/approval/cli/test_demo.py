"""`tool-approval demo`, with answers given and through a pipe; in a terminal it is played in tests/flows."""

import subprocess
import sys

import pytest
from tool_approval.assistant.screen import Screen
from tool_approval.cli import main
from tool_approval.cli.demo import choose_ui
from tool_approval.core.memory import ApprovalMemory
from tool_approval.ui.terminal import TerminalUI

from .process import Typed


@pytest.mark.parametrize('story', ['edit', 'nested', 'batch'])
def test_prepared_answers_play_a_story_to_its_end(story, capsys):
    status = main(['demo', story, '--answers', 'yyyy'])

    shown = capsys.readouterr()
    assert status == 0
    assert 'In fact: ' in shown.out
    assert '; refused calls: 0.' in shown.out
    assert shown.err == ''


def test_default_story_is_the_port(capsys):
    main(['demo', '--answers', 'yn'])

    assert 'is still running, the other server is still running.' in capsys.readouterr().out


def test_a_pipe_answers_and_its_end_denies(capsys, monkeypatch):
    monkeypatch.setattr(sys, 'stdin', Typed('Y\n'))

    main(['demo', 'batch'])

    shown = capsys.readouterr().out
    assert 'Deleted: may.log.' in shown
    assert shown.count('(no answers left: denied)') == 3


def test_in_a_terminal_a_person_is_asked(monkeypatch):
    monkeypatch.setattr(sys, 'stdin', Typed('', is_terminal=True))

    assert isinstance(choose_ui(None, Screen())(ApprovalMemory(), {}), TerminalUI)


@pytest.mark.parametrize(
    ('arguments', 'problem'),
    [
        (['--answers', 'y1'], '--answers takes letters'),
        (['no-such-story'], 'invalid choice'),
        (['--model', 'no-such-model'], 'model'),
        (['restart', '--model', 'test'], 'leave out --model'),
    ],
)
def test_invalid_demo_options_are_one_line(arguments, problem, capsys):
    status = main(['demo', *arguments])

    shown = capsys.readouterr()
    assert status == 2
    assert problem in shown.err.splitlines()[-1]
    assert 'Traceback' not in shown.err


def test_the_story_of_a_killed_process_is_played_to_its_end(capsys):
    pytest.importorskip('dbos')

    status = main(['demo', 'restart', '--answers', 'y'])

    shown = capsys.readouterr()
    assert (status, shown.err) == (0, '')
    assert 'In fact: payments of invoice 17: 1.' in shown.out


def test_stopped_story_has_its_exit_status(monkeypatch):
    pytest.importorskip('dbos')
    from tool_approval.assistant.stories import restart

    async def stopped(**_):
        return 'stopped'

    monkeypatch.setattr(restart, 'play_restart', stopped)

    assert main(['demo', 'restart', '--answers', 'y']) == 130


def test_missing_library_of_the_restart_story_names_the_extra():
    code = "import sys; sys.modules['dbos'] = None; from tool_approval.cli import main; sys.exit(main(sys.argv[1:]))"

    finished = subprocess.run([sys.executable, '-c', code, 'demo', 'restart'], capture_output=True, text=True)

    assert finished.returncode == 2
    [line] = finished.stderr.splitlines()
    assert "pip install ./pydantic_ai_slim './tool_approval[durable]'" in line


def test_debug_shows_the_traceback_of_a_failed_story(capsys):
    status = main(['demo', '--debug', '--model', 'no-such-model'])

    assert status == 2
    assert 'Traceback' in capsys.readouterr().err


@pytest.mark.parametrize('words', [['demo'], ['run', '--model', 'test', 'Hello.']])
def test_missing_library_of_the_demo_names_the_extra(words):
    code = f"import sys; sys.modules['pydantic_ai'] = None; from tool_approval.cli import main; sys.exit(main({words}))"

    finished = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)

    assert finished.returncode == 2
    [line] = finished.stderr.splitlines()
    assert "'pydantic_ai' is not installed" in line
    assert "pip install ./pydantic_ai_slim './tool_approval[cli]'" in line
