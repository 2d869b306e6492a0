"""`tool-approval exec` runs one command with the rules of `run`, and its status is that of the command."""

import asyncio
import io
import json
import os
import shlex
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from tool_approval.cli import main
from tool_approval.inbox import Approver, Inbox
from tool_approval.inbox.stores import SQLiteStore
from tool_approval.os_sandbox import UnconfinedBackend, choose_backend
from tool_approval.ui.terminal import TerminalUI

from tests.system import command_lines
from tool_approval import ApprovalDecision

from .process import COMMAND, Finished, call

pytest.importorskip('yaml')
pytest.importorskip('tree_sitter_bash')

confining = pytest.mark.skipif(
    isinstance(choose_backend(require=False), UnconfinedBackend),
    reason='no OS sandbox works here; `make install-system` installs bubblewrap',
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A directory without settings, in which nothing is trusted or remembered."""
    made = tmp_path / 'work'
    made.mkdir()
    monkeypatch.chdir(made)
    monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path / 'state'))
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    return made


def ran(*words, **how):
    """The command as a process of its own, without a terminal."""
    finished = subprocess.run(
        ['setsid', '--wait', *COMMAND, 'exec', *words],
        input=how.pop('typed', b''),
        capture_output=True,
        timeout=60,
        **how,
    )
    return Finished(finished.returncode, finished.stdout.decode(), finished.stderr.decode())


@pytest.fixture
def run(folder, monkeypatch):
    """`run('--', 'ls')`: the command in this process, without a terminal."""
    monkeypatch.setattr('tool_approval.ui.terminal.TerminalUI', partial(TerminalUI, device=str(folder / 'no-tty')))
    return partial(call, monkeypatch, 'exec')


@pytest.fixture
def acting(monkeypatch):
    """`acting(act)`: standard output, which calls `act` before each write."""

    class Acting(io.BytesIO):
        def __init__(self, act):
            super().__init__()
            self.act = act

        def write(self, data):
            self.act()
            return super().write(data)

    return lambda act: monkeypatch.setattr('sys.stdout', io.TextIOWrapper(Acting(act), 'utf-8'))


async def answered(store, *, approved):
    """Answer the first question of the inbox."""
    with Inbox(SQLiteStore(store)) as inbox:
        async for _ in inbox.changes():
            for entry in await inbox.open():
                decision = ApprovalDecision(approved=approved)
                await inbox.decide(entry.id, decision, by=Approver(id='ada'), digest=entry.digest)
                return


def log(tmp_path):
    lines = (tmp_path / 'state/tool-approval/audit/decisions.jsonl').read_text().splitlines()
    return [entry for line in lines if (entry := json.loads(line))['event'] != 'settings']


@confining
def test_a_command_without_approval_is_confined_and_logged(run, folder, tmp_path):
    finished = run('--', "echo out; echo err >&2; python3 -c \"open('x', 'w')\"")

    assert finished.out == 'out\n'
    assert 'err\n' in finished.err
    assert 'Read-only file system' in finished.err
    assert finished.status == 1
    assert not (folder / 'x').exists()
    assert [(entry['event'], entry['caller']) for entry in log(tmp_path)][:1] == [('unasked', 'exec')]


@confining
def test_several_words_are_one_command_and_one_word_is_a_line(run):
    assert run('--', 'echo', 'a b', '$HOME', '--', ';').out == 'a b $HOME -- ;\n'
    assert run('--', 'echo a; echo b').out == 'a\nb\n'


@confining
@pytest.mark.parametrize(
    ('line', 'status'), [('true', 0), ('exit 7', 7), ('kill -9 $$', 137), ('no-such-program', 127)]
)
def test_the_exit_status_is_that_of_the_command(run, line, status):
    assert run('--', line).status == status


@confining
def test_the_exit_status_of_the_process_is_that_of_the_command(folder):
    finished = ran('--', 'echo out; echo err >&2; exit 7')

    assert (finished.status, finished.out, finished.err) == (7, 'out\n', 'err\n')


@confining
def test_binary_output_and_long_output_arrive_whole(folder):
    finished = subprocess.run(
        [*COMMAND, 'exec', '--', 'head -c 3000000 /dev/zero; printf "\\xff"'], capture_output=True, timeout=60
    )

    assert finished.stdout == b'\0' * 3_000_000 + b'\xff'


@confining
def test_what_is_written_to_a_terminal_cannot_control_it(folder, monkeypatch, capfdbinary):
    monkeypatch.setattr('sys.stdout.isatty', lambda: True, raising=False)

    status = main(['exec', '--never-ask', '--', 'printf "a\\tb\\033[2J\\n\\303"; sleep 0.1; printf "\\251\\n"'])

    assert status == 0
    assert capfdbinary.readouterr().out.decode() == 'a\tb<U+001B>[2J\né\n'


@confining
def test_nothing_is_read_from_standard_input(folder):
    assert ran('--', 'cat', typed=b'secret').out == ''


@confining
def test_a_note_for_models_names_the_option(run):
    finished = run('--never-ask', '--', "python3 -c \"open('x', 'w')\"")

    assert 'Run it again with --access write.' in finished.err


@pytest.mark.parametrize('how', [(), ('--never-ask',)])
def test_what_needs_approval_is_not_run_if_nobody_can_be_asked(run, folder, how):
    finished = run(*how, '--', 'touch x')

    assert finished.status == 125
    assert 'enied' in finished.err
    assert not (folder / 'x').exists()


def test_a_process_without_a_terminal_asks_nobody(folder):
    finished = ran('--', 'touch x')

    assert finished.status == 125
    assert not (folder / 'x').exists()


def test_a_blocked_command_is_not_run(run, folder, tmp_path):
    (folder / 'approvals.yaml').write_text('shell: {rules: [{pattern: echo, allowed: false}]}\n')

    finished = run('--', 'echo x')

    assert (finished.status, finished.out) == (125, '')
    assert 'is blocked' in finished.err
    assert [entry['event'] for entry in log(tmp_path)] == ['blocked']


@confining
def test_a_file_that_nobody_trusts_allows_nothing(run, folder):
    (folder / 'approvals.yaml').write_text(
        'shell: {default: {approval: none}, rules: [{pattern: touch, approval: false}]}'
    )

    finished = run('--', 'touch x')

    assert finished.status == 125
    assert 'approvals.yaml is not trusted' in finished.err


@confining
def test_a_file_that_the_user_names_is_trusted(run, folder, tmp_path):
    named = tmp_path / 'mine.yaml'
    named.write_text(
        'sandbox: {paths: {work: {root: ., mode: rw, write_approval: false}}}\nshell: {default: {approval: none}}\n'
    )

    finished = run('--config', str(named), '--', 'touch x')

    assert (finished.status, finished.err) == (0, '')
    assert (folder / 'x').exists()


@pytest.mark.parametrize('text', ['mode: [', 'shell: {default: 3}'])
def test_nothing_runs_with_settings_that_are_wrong(run, folder, text):
    (folder / 'approvals.yaml').write_text(text)

    finished = run('--', 'echo x')

    assert (finished.status, finished.out) == (125, '')


@pytest.mark.parametrize(
    'words', [(), ('--cwd', '/nowhere', '--', 'ls'), ('--access', 'root', '--', 'ls'), ('ls', '--never-ask', '--inbox')]
)
def test_what_is_called_wrongly_runs_nothing(run, words):
    finished = run(*words)

    assert finished.status in (2, 125)
    assert finished.out == ''


@confining
def test_a_command_that_takes_too_long_is_ended(run, tmp_path):
    named = tmp_path / 'mine.yaml'
    named.write_text('shell: {default: {approval: none}, timeout_s: 0.3}\n')

    finished = run('--config', str(named), '--', 'sleep 50')

    assert finished.status == 124
    assert 'ended after 0.3 seconds' in finished.err


@confining
@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_the_command_ends_with_this_process(folder, number):
    process = subprocess.Popen(
        [*COMMAND, 'exec', '--', f'echo begun; sleep {os.getpid()}51'], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()

    process.send_signal(number)
    process.communicate(timeout=30)

    assert process.returncode == 128 + number
    assert f'sleep {os.getpid()}51' not in command_lines().values()


@confining
@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_the_command(folder, acting, number):
    handler = signal.getsignal(number)
    acting(lambda: os.kill(os.getpid(), number))

    assert main(['exec', '--', f'echo begun; sleep {os.getpid()}52']) == 128 + number

    assert f'sleep {os.getpid()}52' not in command_lines().values()
    assert signal.getsignal(number) == handler


@confining
def test_the_command_ends_when_nobody_reads(folder):
    process = subprocess.Popen([*COMMAND, 'exec', '--', 'yes'], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()

    process.stdout.close()

    assert process.wait(30) == 141


@confining
def test_the_command_ends_when_its_output_cannot_be_written(folder, acting):
    def fails():
        raise BrokenPipeError

    acting(fails)

    assert main(['exec', '--', f'echo begun; sleep {os.getpid()}53']) == 141
    assert f'sleep {os.getpid()}53' not in command_lines().values()


@confining
def test_a_process_without_streams_runs_its_command(folder, monkeypatch):
    for name in ('stdin', 'stdout', 'stderr'):
        monkeypatch.setattr(f'sys.{name}', None)

    assert main(['exec', '--', 'echo x; exit 3']) == 3


@confining
def test_a_command_that_cannot_be_started_is_named(run):
    finished = run('--', 'echo ' + 'x' * 200_000)

    assert (finished.status, finished.out) == (125, '')
    assert 'the command was not run: ' in finished.err


@confining
def test_a_command_leaves_no_file_open(run):
    run('--', 'true')
    before = os.listdir('/proc/self/fd')

    assert [run(*words).status for words in (('--', 'true'), ('--', 'touch x'))] == [0, 125]

    assert os.listdir('/proc/self/fd') == before


@confining
def test_closed_streams_are_no_failure(folder):
    finished = subprocess.run(['bash', '-c', f'{shlex.join([*COMMAND, "exec", "--", "echo x; exit 3"])} >&- 2>&-'])

    assert finished.returncode == 3


@confining
@pytest.mark.parametrize('approved', [True, False])
def test_a_question_is_answered_in_the_inbox(run, folder, tmp_path, approved):
    (folder / 'Makefile').write_text('all:\n\techo made > made\n')
    with ThreadPoolExecutor(1) as thread:
        store = tmp_path / 'state/tool-approval/inbox.sqlite'
        answer = thread.submit(lambda: asyncio.run(answered(store, approved=approved)))
        finished = run('--inbox', '--access', 'write', '--', 'make')
        answer.result(30)

    assert finished.status == (0 if approved else 125)
    assert (folder / 'made').exists() == approved
    assert [entry['event'] for entry in log(tmp_path)] == ['question', 'decision', *(['outcome'] if approved else [])]
