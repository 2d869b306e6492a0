import itertools
import os
import subprocess

import pytest
from tool_approval.tools.shell import processes
from tool_approval.tools.shell.processes import MARKER, descendants, kill_strays

MINE = f'mine {os.getpid()}'
BEYOND = 10**9
"""No process has so high a number."""


@pytest.fixture
def ended():
    """A process that has ended and is not reaped: nobody else can have its number, and nothing is below it."""
    process = subprocess.Popen(['true'])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    yield process.pid
    process.wait()


def test_a_process_with_the_marker_is_ended_wherever_it_is(ended):
    stray = subprocess.Popen(['sleep', '4248'], env={**os.environ, MARKER: MINE}, start_new_session=True)
    other = subprocess.Popen(['sleep', '4248'], env={**os.environ, MARKER: 'other'}, start_new_session=True)
    try:
        killed = kill_strays(MINE, below=ended, seen={})

        assert killed == 1
        assert stray.wait() == -9
        assert other.poll() is None
    finally:
        stray.kill()
        other.kill()
        stray.wait()
        other.wait()


def test_whoever_forks_without_end_is_given_up_at_last(monkeypatch):
    numbers = itertools.count(BEYOND + 1)
    monkeypatch.setattr(processes, '_table', lambda: {next(numbers): (BEYOND, '1')})

    assert kill_strays(MINE, below=BEYOND, seen={}) == 20


def test_without_a_list_of_processes_nothing_is_found(monkeypatch):
    def missing(path):
        raise FileNotFoundError(path)

    monkeypatch.setattr(os, 'listdir', missing)

    assert descendants(os.getpid()) == {}
