"""Nothing that a person did not press on purpose approves, and nothing hangs."""

import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from .screen import PROGRAMS, Screen, Story

DELETE = {'tool_name': 'delete', 'args': {'path': 'notes.txt'}}
QUESTION = '╭─ delete'


def decided(screen: Screen) -> list[dict[str, Any]]:
    """Wait for the end of the program, and return its decisions."""
    shown = screen.wait(lambda: 'Decided: ' in screen.text and 'The end.' in screen.text, 'The end.')
    assert 'The terminal was not put back!' not in shown
    told = re.search(r'Decided: (.*?)The end\.', shown.replace('\n', ''))
    assert told is not None
    return json.loads(told[1])


def test_only_a_single_key_of_the_question_answers_it(story: Story) -> None:
    screen = story.ask(DELETE)
    screen.wait_for_question(QUESTION)

    for keys in (
        'yyyy', 'y\n', '\ry', '\x1b[200~y\x1b[201~', '\x1b[200~y\ny\ny\n\x1b[201~', '\x1by', 'yn', '\r', ' ', 'Y',
        '\x04',
        '1',
    ):  # fmt: skip
        told = screen.sent.count('ignored')
        screen.type(keys)
        screen.wait(lambda told=told: screen.sent.count('ignored') > told, f'an answer to {keys!r}')
        screen.wait_for_question(QUESTION)
    screen.type('n')

    assert decided(screen) == [{'approved': False, 'decided_by': ['ada']}]


def test_keys_typed_ahead_do_not_answer(story: Story) -> None:
    pipe = story.cwd / 'pipe'
    os.mkfifo(pipe)
    screen = story.ask(DELETE, wait_for=str(pipe))
    screen.wait_for('Before the question.')
    screen.type('yyyy')
    screen.wait_for('yyyy')

    pipe.write_text('go')
    screen.wait_for_question(QUESTION)
    screen.type('n')

    assert decided(screen) == [{'approved': False, 'decided_by': ['ada']}]


def test_keys_typed_while_the_question_is_drawn_do_not_answer(story: Story) -> None:
    screen = story.ask(DELETE, quiet_s=3)
    screen.wait(lambda: not screen.is_ready and QUESTION.strip() in screen.text, QUESTION)

    screen.type('y')
    screen.wait_for_question(QUESTION)
    screen.type('n')

    assert decided(screen) == [{'approved': False, 'decided_by': ['ada']}]


def test_long_paste_does_not_answer_and_is_not_run_as_a_command_afterwards(story: Story) -> None:
    screen = story.ask(DELETE)
    screen.wait_for_question(QUESTION)

    screen.type('\x1b[200~' + 'y\nyes\n' * 2000 + '\x1b[201~')
    screen.wait_for('ignored')
    screen.wait_for_question(QUESTION)
    screen.type('y')

    assert decided(screen) == [{'approved': True, 'decided_by': ['ada']}]


def _held_down(screen: Screen) -> str:
    screen.wait_for_question(QUESTION)
    screen.type('y')
    screen.wait_for('ada approved delete')
    screen.type('y')
    screen.wait(lambda: screen.lines[-1].startswith('╰─ ') or 'The end.' in screen.scrolled, 'what comes next')
    if 'The end.' not in screen.scrolled:
        screen.wait_for_question(QUESTION)
        screen.type('n')
        screen.wait(lambda: 'The end.' in screen.scrolled, 'the end')
    return 'denied' if 'ada denied delete' in screen.scrolled else 'approved'


def test_a_key_that_is_held_down_answers_no_second_question(story: Story) -> None:
    # On a busy machine the second key may come so late that it answers rightly; not five times in a row.
    assert any(_held_down(story.ask(DELETE, again=1)) == 'denied' for _ in range(5))


@pytest.mark.parametrize('keys', ['\x03', *(pytest.param(key, marks=pytest.mark.slow) for key in 'q\x1c')])
def test_the_run_is_stopped(keys: str, story: Story) -> None:
    screen = story.ask(DELETE)
    screen.wait_for_question(QUESTION)

    screen.type(keys)

    assert screen.end() == -signal.SIGINT
    assert 'ada stopped the run. Denied: delete' in screen.scrolled
    assert 'Decided' not in screen.scrolled
    assert 'was not put back' not in screen.scrolled


def test_a_signal_to_interrupt_stops_the_run_too(story: Story) -> None:
    screen = story.ask(DELETE)
    screen.wait_for_question(QUESTION)

    screen.program.kill(signal.SIGINT)

    assert screen.end() == -signal.SIGINT
    assert 'is no longer asked. Denied: delete' in screen.scrolled
    assert 'was not put back' not in screen.scrolled


@pytest.mark.parametrize(
    'keys', ['dabc', *(pytest.param(keys, marks=pytest.mark.slow) for keys in ('', 'd', 'l', 'e', '?'))]
)
def test_timeout_denies_the_call(keys: str, story: Story) -> None:
    screen = story.ask(DELETE, timeout=4)
    screen.wait_for_question(QUESTION)
    if keys:
        screen.type(keys[0])
    if keys[1:]:
        screen.wait_for_question('Note: ')
        screen.type(keys[1:])

    [decision] = decided(screen)

    assert decision['approved'] is False
    assert decision['decided_by'] == ['timeout']


def test_the_process_ends_if_the_terminal_is_closed(story: Story) -> None:
    told = story.cwd.with_name('decided.json')
    screen = story.ask(DELETE, tell=str(told))
    screen.wait_for_question(QUESTION)

    status = screen.hang_up()

    assert status == -signal.SIGHUP
    assert not told.exists()


def test_call_is_denied_if_the_terminal_is_closed_and_the_process_goes_on(story: Story) -> None:
    told = story.cwd.with_name('decided.json')
    screen = story.ask(DELETE, tell=str(told), ignores_hangup=True)
    screen.wait_for_question(QUESTION)

    screen.hang_up()
    [decision] = json.loads(told.read_text())

    assert decision['approved'] is False
    assert decision['decided_by'] == ['ui']
    assert 'could no longer be asked' in decision['note']


def without_terminal(command: list[str]) -> list[str]:
    """A process of a new session has no controlling terminal, even if its standard streams are one."""
    lines = 'import os, sys; os.setsid(); os.execv(sys.argv[1], sys.argv[1:])'
    wait = 'os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))'
    child = f'import os, sys; pid = os.fork(); {wait} if pid else None; {lines}'
    return [sys.executable, '-c', child, *command]


def test_call_without_a_terminal_is_denied_with_a_message(story: Story) -> None:
    screen = story.ask(DELETE, screen={'wrap': without_terminal})

    [decision] = decided(screen)

    assert decision['approved'] is False
    assert decision['decided_by'] == ['ui']
    assert 'Denied delete: ' in screen.text
    assert 'there is no terminal' in screen.text


def in_background(command: list[str]) -> list[str]:
    """As a shell starts a job with `&`: in a process group that the terminal is not given to."""
    child = (
        'import os, sys; pid = os.fork(); '
        'os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])) if pid else os.setpgid(0, 0); '
        'os.execv(sys.argv[1], sys.argv[1:])'
    )
    return [sys.executable, '-c', child, *command]


def test_call_in_the_background_is_denied_and_the_process_is_not_stopped(story: Story) -> None:
    screen = story.ask(DELETE, screen={'wrap': in_background})

    [decision] = decided(screen)

    assert decision['approved'] is False
    assert 'in the background of its terminal' in decision['note']


def test_the_answer_is_read_from_the_terminal_if_standard_input_is_a_pipe(story: Story) -> None:
    def piped(command: list[str]) -> list[str]:
        return ['/bin/sh', '-c', 'yes | "$@" 2>/dev/null', 'sh', *command]

    screen = story.ask(DELETE, screen={'wrap': piped})
    screen.wait_for_question(QUESTION)

    screen.type('n')

    screen.wait_for('ada denied delete')


def test_a_resized_terminal_shows_the_question_again(story: Story) -> None:
    screen = story.ask({**DELETE, 'reason': 'It is old. ' * 8})
    screen.wait_for_question(QUESTION)

    screen.resize(40, 20)
    screen.wait(lambda: screen.sent.count('delete') > 1, 'the question again')
    shown = screen.wait_for_question(QUESTION)
    screen.type('y')

    assert '╰─ y/n/s/?' in shown
    screen.wait_for('ada approved delete')


def test_a_stopped_and_continued_process_asks_again(story: Story) -> None:
    screen = story.ask(DELETE, screen={'wrap': with_job_control, 'columns': 120})
    screen.wait_for_question(QUESTION)

    screen.type('\x1a')
    screen.wait_for('stopped with a sane terminal: True')
    screen.wait_for_question(QUESTION)
    screen.type('y')

    assert decided(screen) == [{'approved': True, 'decided_by': ['ada']}]


def with_job_control(command: list[str]) -> list[str]:
    """Continues the process when it was stopped, as a shell does at `fg`."""
    return [sys.executable, str(PROGRAMS / 'job_control.py'), *command]


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_the_process_leaves_the_terminal_as_it_was(number: int, story: Story) -> None:
    screen = story.ask(DELETE, screen={'wrap': with_job_control, 'columns': 120})
    screen.wait_for_question(QUESTION)

    [child] = Path(f'/proc/{screen.program.pid}/task/{screen.program.pid}/children').read_text().split()
    os.kill(int(child), number)

    screen.wait_for(f'ended by signal {int(number)} with a sane terminal: True')


def test_a_dumb_terminal_gets_plain_text(story: Story) -> None:
    screen = story.ask(DELETE, quiet_s=0, screen={'TERM': 'dumb'})
    screen.wait_for('+- y approve   n deny')

    screen.type('d')
    screen.wait_for('Note:')
    screen.type('Not näw')
    screen.wait_for('Not n<U+00E4>w')
    screen.type('\r')

    assert decided(screen) == [{'approved': False, 'note': 'Not näw', 'decided_by': ['ada']}]
    assert '\x1b' not in screen.sent
    assert screen.sent.isascii()


def test_without_colours_only_the_cursor_is_moved(story: Story) -> None:
    screen = story.ask(DELETE, screen={'NO_COLOR': '1'})
    screen.wait_for_question(QUESTION)

    screen.type('y')

    assert decided(screen)[0]['approved'] is True
    assert re.search(r'\x1b\[[0-9;]*m', screen.sent) is None
