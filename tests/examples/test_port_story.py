"""The demo, as a person meets it: in a terminal, through a pipe, with answers given, and without `ss` and `lsof`."""

import re
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

STORY = Path(__file__).parents[2] / 'examples' / 'port_story.py'


def play(*options: str, answers: str = '', path: str | None = None) -> str:
    environment = {'PATH': path} if path is not None else None
    finished = subprocess.run(
        [sys.executable, '-W', 'error', str(STORY), '--port', '0', *options],
        input=answers,
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
    )
    assert finished.stderr == ''
    assert finished.returncode == 0
    return finished.stdout


def test_consent_to_both_steps_stops_that_very_process():
    output = play('--answers', 'yy')

    found = re.search(r'\| (?:.*\bpid=|p)(\d+)', output)  # as `ss` or `lsof` names a process
    assert found is not None
    assert f'    pid = {found[1]}\n' in output
    assert 'has ended, the other server is still running' in output
    assert 'One run: 3 model requests; refused calls: 0.' in output


def test_refusing_the_stop_leaves_the_process_running():
    output = play('--answers', 'yn')

    assert 'stop_process was refused' in output
    assert 'is still running, the other server is still running' in output
    assert 'One run: 3 model requests; refused calls: 1.' in output


def test_refusing_the_look_ends_the_story():
    output = play('--answers', 'n')

    assert 'stop_process' not in output
    assert 'One run: 2 model requests; refused calls: 1.' in output


@pytest.mark.parametrize('answers', ['', 'y\n', 'y\nyes please\n', 'y\n\x1b[A\n'])
def test_anything_but_y_is_a_refusal(answers: str):
    output = play(answers=answers)

    assert 'refused calls: 1' in output
    assert 'is still running, the other server is still running' in output


def test_a_pipe_answers_in_place_of_a_person():
    output = play(answers='y\ny\n')

    assert 'has ended, the other server is still running' in output


@pytest.mark.skipif(
    not Path('/proc/net/tcp').exists(), reason='Linux lists its sockets in /proc; other systems have lsof'
)
def test_the_look_up_in_the_standard_library_finds_the_process_too(tmp_path: Path):
    output = play('--answers', 'yy', path=str(tmp_path))

    assert 'port_owner.py' in output
    assert 'has ended, the other server is still running' in output


def test_a_person_answers_in_a_terminal():
    terminal = pexpect.spawn(sys.executable, [str(STORY), '--port', '0'], encoding='utf-8', timeout=60)

    terminal.expect_exact('Allow it? [y/n] ')
    terminal.sendline('y')
    terminal.expect(r'pid = \d+')
    terminal.expect_exact('Allow it? [y/n] ')
    terminal.sendline('n')
    terminal.expect_exact('stop_process was refused')
    terminal.expect(pexpect.EOF)
    terminal.close()

    assert terminal.exitstatus == 0
