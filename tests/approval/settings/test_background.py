"""Commands that run on in the background, and what the commands of a conversation share."""

import asyncio
import gc
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from tool_approval.os_sandbox import BubblewrapBackend, OSSandboxError, RefusingBackend
from tool_approval.settings import RUN_SHELL
from tool_approval.settings.background import MOST, NO_HOST, NOT_HERE, ONLY_NETWORK, less
from tool_approval.settings.refusing import REFUSED
from tool_approval.testing import ScriptedUI

from tool_approval import (
    ApprovalBlocked,
    ApprovalController,
    ApprovalDecision,
    ApprovalMemory,
    ApprovalRefused,
    execute_tool,
)

from .desk import Backend, Desk
from .outside import GIT, Place

SETTINGS = """\
    sandbox:
      paths:
        work: {root: ., mode: rw, write_approval: false}
    shell:
      default: {approval: false}
      rules:
        - {pattern: printf, approval: true}
      timeout_s: 60
"""
NETWORK = "network (every host and this machine's own services; the command can send all it can read)"
SERVE = 'python3 -I -u -m http.server --bind 127.0.0.1'


@pytest.fixture
def folder(monkeypatch):
    """A workspace that is not below `/tmp`, where commands have a `/tmp` of their own."""
    if sys.platform != 'linux' or not BubblewrapBackend().probe().is_available:
        pytest.skip('bubblewrap does not work here: make install-system')
    folder = Path(tempfile.mkdtemp(prefix='background-', dir='/var/tmp')).resolve()
    # An environment of the tests that is below `/tmp` would be mounted there.
    monkeypatch.setenv('PATH', '/usr/bin:/bin')
    monkeypatch.delenv('VIRTUAL_ENV', raising=False)
    monkeypatch.setenv('HOME', str(folder / 'home'))
    monkeypatch.setenv('XDG_CACHE_HOME', str(folder / 'cache'))
    monkeypatch.setenv('XDG_STATE_HOME', str(folder / 'state'))
    # A busy machine starts a command slowly; the result of one that ends comes at once.
    monkeypatch.setattr('tool_approval.settings.background._AT_ONCE_S', 20)
    try:
        yield folder / 'work'
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def quick(monkeypatch):
    """For commands that run on."""
    monkeypatch.setattr('tool_approval.settings.background._AT_ONCE_S', 0.3)


@pytest.fixture
def desk(folder):
    desk = Desk(folder, SETTINGS, backend=BubblewrapBackend())
    yield desk
    desk.workspace.shell.end_conversation()


def read(desk, number=None, **options):
    return asyncio.run(desk.workspace.shell.background_processes(number, **options))


def until(desk, number, text):
    """All that is read of a process until it has printed a text."""
    said, deadline = '', time.monotonic() + 20
    while text not in said:
        assert time.monotonic() < deadline, said
        time.sleep(0.05)
        said += read(desk, number)
    return said


def wait(desk, number):
    """Wait for the end of a process without reading it."""
    desk.workspace.shell._background._known[number].wait(20)


def processes_with(text):
    """The processes of this machine whose command line matches a pattern."""
    return subprocess.run(['pgrep', '-f', text], capture_output=True, text=True, check=False).stdout.split()


def has_begun(text):
    """Whether such a process begins soon."""
    deadline = time.monotonic() + 20
    while not (found := processes_with(text)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(found)


def test_a_server_runs_on_and_commands_reach_it_unasked_until_it_is_ended(desk, quick):
    with socket.create_server(('127.0.0.1', 0)) as free:
        port = free.getsockname()[1]

    said, asked = desk.run(f'{SERVE} {port}', background=True)
    answer = desk.run(f'curl -sS --retry 50 --retry-connrefused http://127.0.0.1:{port}/approvals.yaml')
    printed = until(desk, 1, 'GET /approvals.yaml')
    listed, again = read(desk), read(desk, 1)

    assert not asked
    assert f'Background process 1 (`{SERVE} {port}`) has been running for' in said
    assert answer[0].startswith('    sandbox:') or answer[0].startswith('sandbox:')
    assert answer[1] is False
    assert 'Serving HTTP' in said + printed
    assert 'has been running for' in listed
    assert 'GET' not in again
    assert read(desk, 1, ends=True) == f'[Background process 1 (`{SERVE} {port}`) was ended, because you ended it.]'
    assert read(desk, 1) == 'There is no background process 1.'
    assert read(desk) == 'No background process runs.'
    assert 'There was no network' in desk.run(f'curl --silent http://127.0.0.1:{port}/')[0]


def test_a_command_that_fails_at_once_says_so(desk):
    assert desk.run('echo no >&2; exit 3', background=True) == (
        'no\n[Background process 1 (`echo no >&2; exit 3`) has ended with exit status 3.]',
        False,
    )
    assert read(desk) == 'No background process runs.'


def test_the_next_result_says_which_process_has_ended(desk, quick):
    desk.run('read line < <(sleep 0.5); exit 4', background=True)
    wait(desk, 1)

    said = [desk.run('true')[0] for _ in range(2)]

    ended = '[Background process 1 (`read line < <(sleep 0.5); exit 4`) has ended with exit status 4.]'
    assert said == [ended, '[no output]']
    assert read(desk, 1) == ended


def test_it_writes_only_in_a_tmp_of_its_own_where_no_question_is_asked(desk):
    desk.run('echo kept > /tmp/file; mkdir folder')

    said, asked = desk.run(
        'ls -A /tmp; touch made folder/made .git "$XDG_CACHE_HOME/made"; echo x > /tmp/file; cat /tmp/file',
        background=True,
    )

    assert not asked
    assert said.count('Read-only file system') == 4
    assert 'x\n' in said
    assert sorted(os.listdir(desk.folder)) == ['approvals.yaml', 'folder']
    assert desk.run('cat /tmp/file; ls folder') == ('kept', False)


def test_with_an_approval_it_gets_the_network_and_nothing_else(desk):
    with socket.create_server(('127.0.0.1', 0)) as server:
        code = f'exec 3<> /dev/tcp/127.0.0.1/{server.getsockname()[1]} && echo reached; touch made'

        said, asked = desk.run(code, background=True, access=['network'])

    [request] = desk.ui.requests
    background = 'runs in the background, for up to 60 s; writes only in a /tmp of its own'
    assert asked
    assert 'reached' in said
    assert not (desk.folder / 'made').exists()
    assert request.presentation.metadata['extra_access'] == [background, NETWORK]
    assert request.presentation.metadata['brief_access'] == [background, 'network (every host)']
    assert request.bound_to['extra_access'] == {'network': True, 'background': True}
    assert request.remember_options == ()


def test_a_rule_that_asks_gives_nothing(desk):
    said, asked = desk.run('printf a; touch made', background=True)

    assert asked
    assert 'Read-only file system' in said
    assert len(desk.ui.requests[0].presentation.metadata['extra_access']) == 1


@pytest.mark.parametrize(
    ('args', 'problem'),
    [
        ({'access': ['write']}, ONLY_NETWORK),
        ({'access': ['git', 'network']}, ONLY_NETWORK),
        ({'access': ['environment']}, ONLY_NETWORK),
        ({'background': 'yes'}, '`background` must be true or false.'),
    ],
)
def test_any_other_access_is_refused(desk, args, problem):
    said, asked = desk.run('true', **{'background': True, **args})

    assert problem in said
    assert not asked
    assert read(desk) == 'No background process runs.'


def test_without_an_os_sandbox_that_ends_all_processes_it_is_refused(tmp_path):
    desk = Desk(tmp_path / 'work', SETTINGS, backend=Backend())

    assert NOT_HERE in desk.run('true', background=True)[0]
    with pytest.raises(ApprovalBlocked, match='no OS sandbox runs here'):
        asyncio.run(desk.workspace.shell.run('true', background=True))
    assert not desk.workspace.shell.keeps_tmp


def test_a_refusing_shell_refuses_it(tmp_path):
    desk = Desk(tmp_path / 'work', SETTINGS, backend=RefusingBackend('none'))

    with pytest.raises(ApprovalBlocked, match=REFUSED[:20]):
        asyncio.run(desk.workspace.shell.run('true', background=True))


@pytest.mark.parametrize('first', [False, True])
def test_an_approval_is_remembered_for_the_foreground_or_the_background_only(desk, first):
    ui = ScriptedUI([ApprovalDecision(approved=True, remember='session')] * 3)
    controller = ApprovalController(policy=desk.workspace.policy, ui=ui, memory=ApprovalMemory())
    calls = [{'command': 'printf a', 'background': each} for each in (first, first, not first)]

    for args in (*calls, {'command': 'printf a'}):
        asyncio.run(execute_tool(desk.workspace.shell, RUN_SHELL, args, controller))

    assert [bool(request.args.get('background')) for request in ui.requests][:2] == [first, not first]
    assert len(ui.requests) <= 3


def test_only_a_few_run_at_once_and_together_they_use_no_more_than_a_command(desk, quick):
    for _ in range(MOST):
        desk.run('sleep 50', background=True)

    assert desk.run('sleep 50', background=True)[0].startswith('The command was not run: 4 background processes')
    limits = desk.workspace.shell.limits
    assert less(None) is None
    assert less(limits).memory_bytes * MOST <= limits.memory_bytes
    assert less(limits).processes * MOST <= limits.processes


def test_output_that_is_not_read_is_cut_and_not_kept_for_ever(desk, quick):
    for number in range(1, MOST + 3):
        desk.run(f'sleep 0.4; seq {number} 200000', background=True)
        wait(desk, number)
        desk.run('true')

    assert 'bytes left out' in read(desk, MOST + 2)
    assert read(desk, 1) == 'There is no background process 1.'


@pytest.mark.parametrize(
    ('command', 'limits', 'text'),
    [
        ('sleep 50', {'timeout_s': 0.5}, 'was ended after 0.5 s, which is the longest that a command may run.'),
        ('for i in $(seq 9); do sleep 50 & done; wait', {}, 'because it had more than 5 processes and threads.'),
    ],
)
def test_its_limits_hold(desk, monkeypatch, command, limits, text):
    monkeypatch.setattr('tool_approval.settings.confinement._MOST_PROCESSES', 5 * MOST)
    shell = desk.workspace.shell
    shell.config = shell.config.model_copy(update=limits)

    said, _ = desk.run(command, background=True)

    assert text in said or text in until(desk, 1, text)


def test_a_program_that_cannot_be_started_says_so(desk, monkeypatch):
    assert desk.workspace.shell.keeps_tmp
    monkeypatch.setattr('tool_approval.os_sandbox.bubblewrap.SharedNamespaces.entering', lambda *_, **__: ['/no/such'])

    said, _ = desk.run('true', background=True)

    assert 'was not run: the shell could not be started' in said


def test_a_call_that_is_cancelled_leaves_nothing(desk, monkeypatch):
    monkeypatch.setattr('tool_approval.settings.background._AT_ONCE_S', 20)

    async def main():
        call = asyncio.create_task(desk.workspace.shell.run('sleep 46.25', background=True))
        while not processes_with('sleep 46.2[5]'):
            await asyncio.sleep(0.05)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    monkeypatch.setattr('tool_approval.settings.background._Process.wait', lambda self, s: self._ended.wait(min(s, 2)))
    asyncio.run(main())

    assert processes_with('sleep 46.2[5]') == []


@pytest.mark.parametrize('how', ['ended', 'forgotten'])
def test_everything_ends_with_the_conversation(folder, quick, how):
    desk = Desk(folder, SETTINGS, backend=BubblewrapBackend())
    desk.run('(setsid sleep 47.5 &); sleep 47.5', background=True)
    desk.run('echo old > /tmp/file')
    assert has_begun('sleep 47.[5]')

    if how == 'ended':
        [line] = desk.workspace.shell.end_conversation()
        assert line.endswith('was ended, because the conversation has ended.')
        assert desk.run('ls -A /tmp') == ('[no output]', False)
    else:
        desk = None
        gc.collect()

    assert processes_with('sleep 47.[5]') == []


KILLED = """
import asyncio, os, sys
from tool_approval.settings import open_workspace, parse_settings
shell = open_workspace(parse_settings(sys.argv[1]), sys.argv[2]).shell
print(asyncio.run(shell.run('sleep 48.5', background=True)).notes, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize('number', [signal.SIGKILL, None])
def test_everything_ends_with_the_process(folder, number):
    folder.mkdir()
    text = 'sandbox: {paths: {work: {root: ., mode: rw}}}\nshell: {default: {approval: false}}'
    with subprocess.Popen(
        [sys.executable, '-c', KILLED, text, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert 'has been running' in process.stdout.readline()
        assert has_begun('sleep 48.[5]')
        if number is not None:
            process.send_signal(number)
        process.stdin.close()
        assert process.wait(20) == (0 if number is None else -number)
    deadline = time.monotonic() + 5
    while processes_with('sleep 48.[5]') and time.monotonic() < deadline:
        time.sleep(0.02)

    assert processes_with('sleep 48.[5]') == []


def test_a_question_about_a_command_outside_ends_all_and_one_that_starts_later_refuses_the_command(
    confined_folder, monkeypatch, quick
):
    if not os.path.isfile(GIT):
        pytest.skip('git is not installed below /usr')
    place = Place(confined_folder, monkeypatch)
    shell = place.workspace.shell
    running = []

    def start():
        return asyncio.run(
            execute_tool(shell, RUN_SHELL, {'command': 'sleep 49.5', 'background': True}, place.controller)
        )

    def answer():
        running.append(len(processes_with('sleep 49.[5]')))
        return True

    place.answer = answer
    assert 'has been running' in start()
    assert 'tool ran' in (said := place.run('tool', 'host'))
    assert 'was ended, because the user was asked about a command that runs outside of the sandbox.' in said
    assert running == [0]

    assert 'refused' in asyncio.run(execute_and_start(place, shell))

    refused = asyncio.run(refusal(place, {'command': 'tool', 'access': ['host'], 'background': True}))
    assert NO_HOST in refused
    shell.end_conversation()


async def execute_and_start(place, shell):
    """Start a background process between the question about a command outside and its run."""
    started = asyncio.Event()

    class Starts:
        async def choose(self, request, *, mode):
            await shell.run('sleep 49.5', background=True)
            started.set()
            return ApprovalDecision(approved=True)

    controller = ApprovalController(policy=place.workspace.policy, ui=Starts())
    said = await place.call('tool', 'host', controller=controller)
    assert started.is_set()
    return said


async def refusal(place, args):
    with pytest.raises(ApprovalRefused) as refused:
        await execute_tool(place.workspace.shell, RUN_SHELL, args, place.controller)
    return str(refused.value)


def test_files_in_tmp_last_for_the_conversation_and_no_other_sees_them(desk, folder):
    other = Desk(folder, SETTINGS, backend=BubblewrapBackend())

    desk.run('echo kept > /tmp/file')

    assert desk.workspace.shell.keeps_tmp
    assert desk.run('cat /tmp/file') == ('kept', False)
    assert desk.run('cat /tmp/file; touch made', access=['network']) == ('kept', True)
    assert other.run('ls -A /tmp') == ('[no output]', False)
    assert not os.path.exists('/tmp/file')


def test_below_tmp_each_command_has_a_tmp_of_its_own(confined_folder):
    desk = Desk(confined_folder / 'work', SETTINGS, backend=BubblewrapBackend())

    desk.run('echo x > /tmp/file')

    assert not desk.workspace.shell.keeps_tmp
    assert desk.run('ls /tmp | grep -c file || true') == ('0', False)


def test_where_nothing_can_be_shared_commands_run_as_before(folder, monkeypatch, caplog):
    def fails(self):
        raise OSSandboxError('no namespaces')

    monkeypatch.setattr(BubblewrapBackend, 'share', fails)
    desk = Desk(folder, SETTINGS, backend=BubblewrapBackend())

    desk.run('echo x > /tmp/file')

    assert desk.run('ls -A /tmp; echo done') == ('done', False)
    assert not desk.workspace.shell.keeps_tmp
    assert caplog.messages == ['no namespaces']


@pytest.mark.parametrize(
    'attack',
    [
        'ln -s / /tmp/root; ln -s /etc/shadow /tmp/shadow; ln -s /proc/1/root /tmp/proc',
        'mkdir -p /tmp/a; mount --bind / /tmp/a; mkfifo /tmp/fifo; cp /bin/bash /tmp/bash; chmod 6755 /tmp/bash',
    ],
)
def test_what_is_planted_in_tmp_opens_nothing(desk, attack):
    (desk.folder.parent / 'home').mkdir(exist_ok=True)
    (desk.folder.parent / 'home' / 'key').write_text('s3cret')

    desk.run(attack)
    said = desk.run(
        f'cat /tmp/shadow /tmp/root/etc/shadow /tmp/root{desk.folder.parent}/home/key '
        f'/tmp/proc{desk.folder.parent}/home/key; ls /tmp/root/home /tmp/a; '
        '/tmp/bash -p -c "grep CapEff /proc/self/status"'
    )[0]

    assert 's3cret' not in said
    assert 'root:' not in said
    assert 'CapEff' not in said or 'CapEff:\t0000000000000000' in said


@pytest.mark.skipif(os.getuid() != 0, reason='only root can mount')
def test_a_volume_that_is_unmounted_is_not_seen(desk):
    volume = desk.folder / 'a volume'
    volume.mkdir()
    if subprocess.run(['mount', '-t', 'tmpfs', 'none', str(volume)], check=False, capture_output=True).returncode:
        pytest.skip('this root may not mount')
    try:
        (volume / '.env').write_text('KEY=s3cret')
        desk.run('touch /tmp/file')
        assert 's3cret' not in desk.run('cat */.env; ls */')[0]
    finally:
        subprocess.run(['umount', str(volume)], check=True)

    assert desk.run('cat */.env 2> /dev/null; ls -A */; ls -A /tmp; echo end') == ('end', False)
