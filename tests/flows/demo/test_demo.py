"""`tool-approval demo` in a real pseudo-terminal: each story, and how one leaves it."""

import os
import re
import select
import signal
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from tests.flows.terminal.screen import Screen

Start = Callable[..., Screen]


@pytest.fixture
def start(tmp_path: Path) -> Generator[Start]:
    opened: list[Screen] = []
    home, made = tmp_path / 'home', tmp_path / 'made'
    home.mkdir()
    made.mkdir()

    def play(*arguments: str, columns: int = 80, lines: int = 24) -> Screen:
        # As a person's shell has it, in which nothing hides the framework's banner.
        unset = ['/usr/bin/env', '-u', 'PYDANTIC_AI_NO_BANNER']
        command = [*unset, sys.executable, '-P', '-m', 'tool_approval.cli', 'demo', *arguments]
        opened.append(Screen(command, home, columns=columns, lines=lines, TMPDIR=str(made)))
        return opened[-1]

    yield play
    for screen in opened:
        screen.close()
    assert list(made.iterdir()) == []


def answer(screen: Screen, question: str, key: str) -> str:
    shown = screen.wait_for_question(question)
    screen.type(key)
    return shown


def servers(screen: Screen) -> list[int]:
    """The processes that the demo started."""
    children = Path(f'/proc/{screen.program.pid}/task/{screen.program.pid}/children').read_text()
    return [int(pid) for pid in children.split()]


def has_ended(process: int) -> bool:
    """Wait for the end of a process that is not our child."""
    poll = select.poll()
    poll.register(process, select.POLLIN)
    is_over = bool(poll.poll(60_000))
    os.close(process)
    return is_over


@pytest.mark.parametrize(('columns', 'lines'), [(80, 24), (100, 32)])
def test_the_story_of_the_port(columns: int, lines: int, start: Start) -> None:
    screen = start(columns=columns, lines=lines)

    answer(screen, '╭─ run_shell', 'y')
    screen.wait(lambda: re.search(r'\$ kill \d+', screen.text) is not None, 'the command that stops it')
    answer(screen, '╭─ run_shell', 'y')
    status = screen.end()

    assert status == 0
    assert re.search(r'● Port \d+ is free again\.\n\nIn fact: ', screen.text)
    assert 'has ended, the other server is still running.' in screen.text.replace('\n', ' ')
    assert screen.scrolled.count('pydantic') == 0


def test_the_story_of_the_edit(start: Start) -> None:
    screen = start('edit')

    answer(screen, '╭─ edit_file', 'y')
    answer(screen, '╭─ write_file', 'n')
    answer(screen, '╭─ delete', 'y')
    status = screen.end()

    assert status == 0
    assert '● I fixed the greeting, deleted the scratch file.' in screen.text
    assert 'test_greeting.py was not written' in screen.text.replace('\n', ' ')


def test_the_nested_story(start: Start) -> None:
    screen = start('nested', lines=40)

    shown = answer(screen, '╭─ read_file', 'y')
    answer(screen, '╭─ write_file', 'y')
    status = screen.end()

    assert status == 0
    assert 'researcher' in shown
    assert 'manager' in shown
    assert 'In fact: report.md is there.' in screen.text


def test_the_story_of_the_batch_is_one_question(start: Start) -> None:
    screen = start('batch')

    answer(screen, '4 requests: ', 'o')
    for name, key in (('may.log', 'y'), ('june.log', 'y'), ('july.log', 'y'), ('orders.csv', 'n')):
        answer(screen, f'╭─ delete {name}', key)
    status = screen.end()

    assert status == 0
    assert 'In fact: left in the folder: orders.csv.' in screen.text


@pytest.mark.parametrize('key', ['q', '\x03'])
def test_demo_stopped_at_a_question_reports_the_state_and_cleans_up(key: str, start: Start) -> None:
    screen = start()
    screen.wait_for_question('╭─ run_shell')
    running = servers(screen)

    screen.type(key)
    status = screen.end()

    assert status == 130
    assert 'Stopped.\n\nIn fact: the server on port' in screen.text
    assert len(running) == 2
    assert not any(Path(f'/proc/{pid}').exists() for pid in running)


def test_a_closed_terminal_leaves_nothing_behind(start: Start) -> None:
    screen = start()
    screen.wait_for_question('╭─ run_shell')
    running = servers(screen)

    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), screen.program.child_fd)
    screen.program.wait()

    # Python itself gives 120 where it cannot write what was left to say.
    assert screen.program.exitstatus in (128 + signal.SIGHUP, 120)
    assert len(running) == 2
    assert not any(Path(f'/proc/{pid}').exists() for pid in running)


def test_a_program_that_is_killed_leaves_no_server_behind(start: Start) -> None:
    screen = start()
    screen.wait_for_question('╭─ run_shell')
    running = [os.pidfd_open(pid) for pid in servers(screen)]

    screen.program.kill(signal.SIGKILL)
    ended = [has_ended(process) for process in running]

    assert ended == [True, True]


def test_prepared_answers_need_no_terminal(start: Start) -> None:
    screen = start('edit', '--answers', 'yny')

    status = screen.end()

    assert status == 0
    assert 'greeting.py was changed' in screen.text.replace('\n', ' ')


@pytest.mark.thorough
def test_the_story_of_the_restart(start: Start) -> None:
    pytest.importorskip('dbos')
    screen = start('restart')

    shown = answer(screen, '╭─ pay_invoice', 'y')
    status = screen.end()

    assert status == 0
    assert 'bookkeeper' in shown
    assert 'ends the only process of the agents' in shown.replace('\n', ' ')
    assert '● The cashier says: Invoice 17 is paid.\n\nIn fact: payments of invoice 17: 1.' in screen.text


@pytest.mark.thorough
@pytest.mark.parametrize('key', ['q', '\x03'])
def test_demo_stopped_while_nothing_runs_reports_the_state(key: str, start: Start) -> None:
    pytest.importorskip('dbos')
    screen = start('restart')
    screen.wait_for_question('╭─ pay_invoice')

    screen.type(key)
    status = screen.end()

    assert status == 130
    assert 'Stopped.\n\nIn fact: payments of invoice 17: 0.' in screen.text
