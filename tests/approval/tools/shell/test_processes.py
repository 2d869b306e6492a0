import itertools
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from tool_approval.tools.shell import processes
from tool_approval.tools.shell.processes import MARKER, descendants, end_namespace, kill_strays, waits

MINE = f'mine {os.getpid()}'
BEYOND = 10**9
"""No process has so high a number."""


def alone(*, parent=1, group=1):
    """What the kernel says of a process that leads no group."""
    return processes._Process(state='S', parent=parent, group=group, flags=0, began='1', threads=1)


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


def test_endless_forking_is_given_up_after_some_rounds(monkeypatch):
    numbers = itertools.count(BEYOND + 1)
    monkeypatch.setattr(processes, '_table', lambda: {next(numbers): alone(parent=BEYOND)})

    assert kill_strays(MINE, below=BEYOND, seen={}) == 20


def test_processes_of_the_group_are_killed_but_not_counted():
    first = subprocess.Popen(['sleep', '4248'], process_group=0)
    second = subprocess.Popen(['sleep', '4248'], env={**os.environ, MARKER: MINE}, process_group=first.pid)
    try:
        assert kill_strays(MINE, below=first.pid, seen={}) == 0

        assert second.wait() == -9
    finally:
        first.kill()
        first.wait()


def test_killing_waits_until_the_processes_are_dead(monkeypatch):
    dying = {BEYOND + 1: alone(parent=BEYOND)}
    tables = iter([dying, dying, dying, {}])
    monkeypatch.setattr(processes, '_table', lambda: next(tables))

    assert kill_strays(MINE, below=BEYOND, seen={}) == 1
    assert list(tables) == []


def test_children_of_a_reused_process_number_are_left_alone(monkeypatch):
    stray, child = BEYOND + 1, BEYOND + 2
    again = alone()._replace(began='2')
    tables = iter([{stray: alone(parent=BEYOND)}, {stray: again, child: alone(parent=stray)}, {}])
    monkeypatch.setattr(processes, '_table', lambda: next(tables))

    assert kill_strays(MINE, below=BEYOND, seen={}) == 1


def test_wait_for_a_process_that_does_not_die_ends(monkeypatch):
    monkeypatch.setattr(processes, '_PATIENCE_S', 0.01)
    monkeypatch.setattr(processes, '_table', lambda: {BEYOND + 1: alone(parent=BEYOND)})

    assert kill_strays(MINE, below=BEYOND, seen={}) == 1


def test_one_whose_program_is_being_loaded_is_looked_at_again(ended, monkeypatch):
    # Found by a race: until a program is loaded, its process has no environment that could be looked at.
    stray = subprocess.Popen(['sleep', '4248'], env={**os.environ, MARKER: MINE}, start_new_session=True)
    read, looks = processes._read, []

    def loading(pid, name):
        if pid == stray.pid and name in ('environ', 'cmdline') and len(looks) < 5:
            looks.append(name)
            return b''
        return read(pid, name)

    monkeypatch.setattr(processes, '_read', loading)
    try:
        assert kill_strays(MINE, below=ended, seen={}) == 1
        assert stray.wait() == -9
    finally:
        stray.kill()
        stray.wait()


def test_an_empty_environment_of_a_loaded_program_is_not_waited_for(ended, monkeypatch):
    bare = subprocess.Popen(['sleep', '4248'], env={}, start_new_session=True)
    monkeypatch.setattr(processes, '_table', lambda: {bare.pid: processes._process(bare.pid)})
    monkeypatch.setattr(time, 'sleep', lambda s: pytest.fail('it waits'))
    try:
        while not processes._read(bare.pid, 'cmdline'):
            pass
        assert kill_strays(MINE, below=ended, seen={}) == 0
        assert bare.poll() is None
    finally:
        bare.kill()
        bare.wait()


def test_without_a_list_of_processes_nothing_is_found(monkeypatch):
    def missing(path):
        raise FileNotFoundError(path)

    monkeypatch.setattr(os, 'listdir', missing)

    assert descendants(os.getpid()) == {}


@pytest.fixture
def first():
    """Process 1 of a namespace with another process, whose parent does not end it."""
    started = subprocess.Popen(
        [*UNSHARED, 'bash', '-c', 'trap "" HUP; sleep 4247 & echo; wait'], stdout=subprocess.PIPE, bufsize=0
    )
    assert started.stdout is not None
    started.stdout.read(1)
    yield next(iter(descendants(started.pid)))
    started.kill()
    started.wait()
    started.stdout.close()


UNSHARED = ('unshare', '--user', '--pid', '--fork')
namespaces = pytest.mark.skipif(
    subprocess.run([*UNSHARED, 'true'], capture_output=True, check=False).returncode != 0
    if shutil.which('unshare')
    else True,
    reason='no user namespaces can be made here',
)


@namespaces
def test_a_namespace_is_ended_as_a_whole(first):
    inside = processes._namespace(first)

    assert end_namespace(first)

    assert [pid for pid in processes._table() if processes._namespace(pid) == inside] == []
    assert end_namespace(first)


@namespaces
def test_without_patience_a_namespace_counts_as_not_ended(first, monkeypatch):
    monkeypatch.setattr(processes, '_MOST_PATIENCE_S', -1)

    assert not end_namespace(first)


def test_only_another_namespace_is_ended(monkeypatch):
    killed = []
    monkeypatch.setattr(os, 'kill', lambda *given: killed.append(given))

    assert end_namespace(os.getppid())
    assert end_namespace(BEYOND)
    assert killed == []


@pytest.mark.parametrize(('text', 'found'), [('Shmem:           3 kB\n', 3072), ('', 0), (None, 0)])
def test_memory_that_no_process_owns_is_read_from_the_kernel(tmp_path, monkeypatch, text, found):
    if text is not None:
        (tmp_path / 'meminfo').write_text(text)
    monkeypatch.setattr(processes, 'Path', lambda path: tmp_path / 'meminfo')

    assert processes.shared_memory() == found


def test_only_a_filtered_child_of_the_parent_waits():
    with subprocess.Popen(['/bin/cat'], stdin=subprocess.PIPE) as child:
        assert not waits(child.pid, os.getpid()) or b'Seccomp:\t2' in Path('/proc/self/status').read_bytes()
    assert not waits(child.pid, os.getpid())
