"""Commands are run for real: what they cannot do to whom runs them."""

import asyncio
import io
import os
import resource
import subprocess
import sys
import time

import pytest
from tool_approval.os_sandbox import Access, BubblewrapBackend, OSProfile, Root, system_profile
from tool_approval.tools.shell import ShellTool, running

from tests.approval.os_sandbox.house import PYTHON
from tests.system import command_lines

from .parts import OPEN


def shell(tmp_path, timeout_s=30, **options):
    return ShellTool({'default': OPEN, 'timeout_s': timeout_s}, cwd=tmp_path, **options)


def run(tmp_path, command, timeout_s=30, **options):
    return asyncio.run(shell(tmp_path, timeout_s, **options).run(mine(command)))


def mine(text):
    """The text with waits that nobody else has: another process may run another of these tests just now."""
    return text.replace('sleep 42', f'sleep {os.getpid()}42')


def living(text):
    """Processes of these tests with `text` on their command line."""
    text = mine(text)
    return [line for line in command_lines().values() if text in line]


def test_output_and_exit_status_are_reported(tmp_path):
    result = run(tmp_path, 'echo a; echo b >&2; pwd; exit 3')

    assert (result.exit_status, result.stdout, result.stderr) == (3, f'a\n{tmp_path}\n', 'b\n')
    assert result.for_model() == f'a\n{tmp_path}\n[stderr]\nb\n[exit status 3]'


def test_output_is_passed_on_as_it_arrives(tmp_path):
    tool, parts = shell(tmp_path), []

    def pass_on(stream, data):
        parts.append((stream, data))
        if data == b'a\n':
            (tmp_path / 'go').touch()

    tool.on_output = pass_on
    result = asyncio.run(tool.run('echo a; until [ -e go ]; do :; done; echo b >&2'))

    assert parts == [(1, b'a\n'), (2, b'b\n')]
    assert (result.stdout, result.stderr) == ('a\n', 'b\n')


def test_a_command_that_begins_with_a_dash_is_no_option_of_bash(tmp_path):
    assert run(tmp_path, '-x').exit_status == 127


def test_command_runs_in_bash_without_start_up_files(tmp_path):
    (tmp_path / '.bashrc').write_text('echo started\n')

    result = run(
        tmp_path, 'echo ${BASH_VERSION:+bash}', env={'HOME': str(tmp_path), 'BASH_ENV': str(tmp_path / '.bashrc')}
    )

    assert result.stdout == 'bash\n'


def test_standard_input_is_empty_and_no_descriptor_is_inherited(tmp_path):
    read, write = os.pipe()
    os.set_inheritable(write, True)
    try:
        result = run(
            tmp_path, 'cat; ls /proc/$$/fd | grep -c .; test -e /proc/$$/fd/' + str(write) + ' && echo inherited'
        )
    finally:
        os.close(read)
        os.close(write)

    assert 'inherited' not in result.stdout


def test_secrets_of_the_environment_stay_out(tmp_path, monkeypatch):
    monkeypatch.setenv('API_TOKEN', 'hidden')

    assert 'hidden' not in run(tmp_path, 'env').stdout


def test_command_runs_in_its_own_session(tmp_path):
    result = run(tmp_path, f'{sys.executable} -c "import os; print(os.getsid(0))"; echo $$')

    session, pid = result.stdout.split()
    assert session == pid


def test_a_command_that_takes_too_long_is_ended(tmp_path):
    result = run(tmp_path, 'echo a; sleep 4242', timeout_s=0.3)

    assert result.is_timed_out
    assert result.for_model() == 'a\n[timed out after 0.3 s]'
    assert living('sleep 4242') == []


def test_ignoring_the_request_to_end_does_not_help(tmp_path):
    result = run(tmp_path, "trap '' TERM; sleep 4243 & sleep 4243", timeout_s=0.3)

    assert result.is_timed_out
    assert living('sleep 4243') == []


@pytest.mark.parametrize(
    'command',
    ['sleep 4244 & echo a', 'setsid sleep 4244 & echo a', 'nohup setsid -f sleep 4244 >/dev/null 2>&1; echo a',
     '(setsid sh -c "sleep 4244 & sleep 4244" &); echo a'],
)  # fmt: skip
def test_process_that_forks_away_is_ended(tmp_path, command):
    result = run(tmp_path, command)

    assert result.stdout == 'a\n'
    assert living('sleep 4244') == []


def test_process_without_environment_is_ended_with_its_living_parents(tmp_path):
    run(tmp_path, 'env -i setsid sleep 4245 & sleep 4245', timeout_s=0.3)

    assert living('sleep 4245') == []


def test_cancelling_ends_the_whole_group(tmp_path):
    async def main():
        task = asyncio.create_task(shell(tmp_path).run(mine('sleep 4246 & sleep 4246 | cat')))
        deadline = time.monotonic() + 10
        while not living('sleep 4246') and time.monotonic() < deadline:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())

    assert living('sleep 4246') == []


def test_closed_pipes_do_not_end_the_wait(tmp_path):
    assert run(tmp_path, 'exec >&- 2>&-; sleep 0.1; exit 4').exit_status == 4


def test_binary_output_is_reported(tmp_path):
    assert run(tmp_path, 'head -c 100 /dev/zero').stdout == '[binary output, 100 bytes]'
    assert run(tmp_path, "printf 'a\\xff\\xfeb'").stdout == 'a\ufffd\ufffdb'


def test_missing_working_directory_is_reported(tmp_path):
    (tmp_path / 'gone').mkdir()
    tool = shell(tmp_path / 'gone')
    (tmp_path / 'gone').rmdir()

    result = asyncio.run(tool.run('pwd'))

    assert result.exit_status is None
    assert result.for_model() == 'The command was not run: the working directory is gone or cannot be entered'


def test_missing_wrapper_is_reported(tmp_path):
    result = run(tmp_path, 'ls', wrap=lambda argv: ['/no/such/wrapper', *argv])

    assert result.problem == 'the shell could not be started (FileNotFoundError)'


def test_a_wrapper_stands_in_front(tmp_path):
    result = run(tmp_path, 'echo $0 a', wrap=lambda argv: ['/usr/bin/env', 'A=1', *argv])

    assert result.stdout.endswith(' a\n')


def test_much_output_takes_little_memory(tmp_path):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    result = run(tmp_path, 'yes aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa | head -c 200000000')

    assert len(result.stdout) < 70_000
    assert 'bytes left out' in result.stdout
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


@pytest.mark.slow
def test_a_gigabyte_takes_little_memory(tmp_path):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    result = run(tmp_path, "head -c 1000000000 /dev/zero | tr '\\0' a", timeout_s=200)

    assert result.exit_status == 0
    assert len(result.stdout) < 70_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_a_hundred_at_once_keep_to_themselves(tmp_path):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tool = shell(tmp_path)

    async def main():
        command = 'echo {}; head -c 100000 /dev/zero | tr "\\0" a; sleep 4247 &'
        return await asyncio.gather(*(tool.run(mine(command.format(number))) for number in range(100)))

    results = asyncio.run(main())

    assert [result.stdout.splitlines()[0] for result in results] == [str(number) for number in range(100)]
    assert living('sleep 4247') == []
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000
    assert len(os.listdir('/proc/self/fd')) < 60


@pytest.mark.parametrize(('timeout_s', 'command', 'shown'), [(30, 'echo a; exit 3', 'a\n[exit status 3]'),
                                                             (0.3, 'sleep 4249',
                                                                 '[timed out after 0.3 s]')])  # fmt: skip
def test_the_end_is_seen_without_descriptors_of_processes(tmp_path, monkeypatch, timeout_s, command, shown):
    monkeypatch.delattr(os, 'pidfd_open', raising=False)

    assert run(tmp_path, command, timeout_s).for_model() == shown
    assert living('sleep 4249') == []


def closed(argv, stdout=None):
    """What is taken of a process that has ended before anybody read a byte; `stdout` stands for its pipe."""
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, start_new_session=True)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    if stdout is not None:
        process.stdout.close()
        process.stdout = io.FileIO(stdout)

    async def main():
        ending = running._Running(process, 'mine', 4096, None)
        ending.close()
        return ending.stdout.text()

    return asyncio.run(main())


def test_output_written_before_the_end_is_read_after_it():
    assert closed(['printf', 'abc']) == 'abc'


def test_pipe_held_open_by_another_process_does_not_delay_the_end():
    read, write = os.pipe()
    try:
        assert closed(['true'], read) == ''
    finally:
        os.close(write)


def test_endless_output_is_read_up_to_the_size_of_a_pipe(monkeypatch):
    monkeypatch.setattr(running, '_CHUNK', 16)

    assert closed(['printf', '%1000s']) == ' ' * 32 * 16


def test_an_output_that_cannot_be_read_has_ended():
    main, terminal = os.openpty()
    os.close(terminal)

    assert closed(['true'], main) == ''


@pytest.mark.skipif(not os.path.exists('/proc/self/statm'), reason='what a command uses is seen only in /proc')
@pytest.mark.parametrize(
    ('command', 'limits', 'note'),
    [
        (
            'for i in {1..60}; do sleep 42 & done; wait',
            running.Limits(processes=20, memory_bytes=1 << 40),
            'The command was ended, because it had more than 20 processes and threads.',
        ),
        (
            '{ head -c 200000000 /dev/zero; sleep 42; } | tail',
            running.Limits(processes=1000, memory_bytes=40 << 20),
            'The command was ended, because it used more than 40 MiB of memory.',
        ),
        *(
            (
                f'{sys.executable} -c "{code}time.sleep(42)"',
                running.Limits(processes=1000, memory_bytes=80 << 20),
                'The command was ended, because it used more than 80 MiB of memory.',
            )
            for code in [
                'import mmap, time\nm = mmap.mmap(-1, 99 << 20)\nfor _ in range(9999): m.write(bytes(9999))\n',
                "import os, time\nm = os.memfd_create('x')\nfor _ in range(9999): os.write(m, bytes(9999))\n",
            ]
        ),
        (
            'for i in {1..99}; do head -c 1000000 /dev/urandom > f$i; done; sleep 42',
            running.Limits(processes=1000, memory_bytes=1 << 40, folders=('.', '/nowhere'), disk_bytes=20 << 20),
            'The command was ended, because the disk has lost more than 20 MiB.',
        ),
        (
            'touch f{1..999}; sleep 42',
            running.Limits(processes=1000, memory_bytes=1 << 40, folders=('.',), disk_files=500),
            'The command was ended, because the disk has more than 500 new files.',
        ),
    ],
)
def test_a_command_that_uses_too_much_is_ended_and_the_result_says_why(tmp_path, monkeypatch, command, limits, note):
    monkeypatch.chdir(tmp_path)
    result = asyncio.run(
        running.run_command(
            ['/bin/bash', '-c', mine(command)],
            cwd=str(tmp_path),
            env={'PATH': '/usr/bin:/bin'},
            timeout_s=120,
            max_bytes=1000,
            limits=limits,
        )
    )

    assert (result.notes, result.is_timed_out, result.exit_status) == ((note,), False, -9)
    assert living('sleep 42') == []


def test_a_command_within_its_limits_ends_as_without_them(tmp_path):
    limits = running.Limits(processes=1000, memory_bytes=1 << 40)
    options = {'cwd': str(tmp_path), 'env': {'PATH': '/usr/bin:/bin'}, 'max_bytes': 1000, 'limits': limits}

    done = asyncio.run(running.run_command(['/bin/bash', '-c', 'sleep 0.5; exit 3'], timeout_s=60, **options))
    late = asyncio.run(running.run_command(['/bin/sleep', '60'], timeout_s=0.3, **options))

    assert (done.exit_status, done.is_timed_out, late.is_timed_out) == (3, False, True)


LIMITED = {
    'env': {},
    'timeout_s': 30,
    'max_bytes': 4096,
    'limits': running.Limits(processes=4000, memory_bytes=1 << 40),
}

BUSY = """
import os, time
os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))
for at in range(80):
    if not os.fork():
        while True:
            for _ in range(20000):
                pass
            os.mkdir(f'{at}')
            os.rmdir(f'{at}')
time.sleep(0.2)
os._exit(0)
"""


@pytest.mark.skipif(not BubblewrapBackend().probe().is_available, reason='bubblewrap does not work here')
def test_nothing_is_written_after_the_end_however_busy_the_processors_are(tmp_path):
    profile = OSProfile(roots=(*system_profile().roots, Root(path=str(tmp_path), access=Access.WRITE)))
    argv = BubblewrapBackend().wrap([PYTHON, '-I', '-c', BUSY], profile, str(tmp_path))

    async def main():
        result = await running.run_command(argv, cwd=str(tmp_path), **LIMITED)
        return result, os.stat(tmp_path).st_mtime_ns

    result, changed = asyncio.run(main())
    time.sleep(0.1)

    assert (result.exit_status, result.stderr, result.notes) == (0, '', ())
    assert os.stat(tmp_path).st_mtime_ns == changed


@pytest.mark.parametrize('is_held', [True, False])
@pytest.mark.skipif(not BubblewrapBackend().probe().is_available, reason='bubblewrap does not work here')
def test_a_command_begins_only_once_it_ends_with_this_process(tmp_path, monkeypatch, is_held):
    if not is_held:
        monkeypatch.setattr(running, 'waits', lambda first, parent: False)
    argv = BubblewrapBackend().wrap(['/bin/echo', 'begun'], system_profile(), '/')
    before = set(os.listdir('/proc/self/fd'))

    result = asyncio.run(running.run_command(argv, cwd='/', **{**LIMITED, 'timeout_s': 30 if is_held else 1}))

    assert (result.stdout, result.is_timed_out) == (('begun\n', False) if is_held else ('', True))
    assert set(os.listdir('/proc/self/fd')) == before


def test_a_line_that_nobody_reads_is_no_error(tmp_path, monkeypatch):
    monkeypatch.setattr(running, 'waits', lambda first, parent: True)
    said = 'echo \'{ "child-pid": 7 }\' >&$TOOL_APPROVAL_STATUS; eval "exec $TOOL_APPROVAL_GO<&-"; /bin/sleep 0.5'

    result = asyncio.run(running.run_command(['/bin/bash', '-c', said], cwd=str(tmp_path), **LIMITED))

    assert result.exit_status == 0


@pytest.mark.parametrize(('is_over', 'notes'), [(True, ()), (False, (running._NOT_OVER,))])
def test_processes_that_cannot_be_ended_are_named(tmp_path, monkeypatch, is_over, notes):
    monkeypatch.setattr(running, 'end_namespace', lambda first: first != 7 or is_over)
    said = 'echo \'{ "child-pid": 7 }\' >&$TOOL_APPROVAL_STATUS'

    result = asyncio.run(running.run_command(['/bin/bash', '-c', said], cwd=str(tmp_path), **LIMITED))

    assert (result.exit_status, result.notes) == (0, notes)


def test_a_limited_program_that_cannot_start_is_reported(tmp_path):
    result = asyncio.run(running.run_command(['/nowhere'], cwd=str(tmp_path), **LIMITED))

    assert result.problem == 'the shell could not be started (FileNotFoundError)'
