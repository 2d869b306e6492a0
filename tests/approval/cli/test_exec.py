"""`tool-approval exec` runs one command with the rules of `run`, and its status is that of the command."""

import asyncio
import json
import os
import shlex
import signal
import subprocess

import pytest
from tool_approval.cli import main
from tool_approval.inbox import Approver, Inbox
from tool_approval.inbox.stores import SQLiteStore
from tool_approval.os_sandbox import UnconfinedBackend, choose_backend

from tool_approval import ApprovalDecision

from .process import COMMAND, Finished

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
def test_a_command_without_approval_is_confined_and_logged(folder, tmp_path):
    finished = ran('--', "echo out; echo err >&2; python3 -c \"open('x', 'w')\"")

    assert finished.out == 'out\n'
    assert 'err\n' in finished.err
    assert 'Read-only file system' in finished.err
    assert finished.status == 1
    assert not (folder / 'x').exists()
    assert [(entry['event'], entry['caller']) for entry in log(tmp_path)][:1] == [('unasked', 'exec')]


@confining
def test_several_words_are_one_command_and_one_word_is_a_line(folder):
    assert ran('--', 'echo', 'a b', '$HOME', '--', ';').out == 'a b $HOME -- ;\n'
    assert ran('--', 'echo a; echo b').out == 'a\nb\n'


@confining
@pytest.mark.parametrize(
    ('line', 'status'), [('true', 0), ('exit 7', 7), ('kill -9 $$', 137), ('no-such-program', 127)]
)
def test_the_exit_status_is_that_of_the_command(folder, line, status):
    assert ran('--', line).status == status


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
def test_a_note_for_models_names_the_option(folder):
    finished = ran('--never-ask', '--', "python3 -c \"open('x', 'w')\"")

    assert 'Run it again with --access write.' in finished.err


@pytest.mark.parametrize('how', [(), ('--never-ask',)])
def test_what_needs_approval_is_not_run_if_nobody_can_be_asked(folder, how):
    finished = ran(*how, '--', 'touch x')

    assert finished.status == 125
    assert 'enied' in finished.err
    assert not (folder / 'x').exists()


def test_a_blocked_command_is_not_run(folder, tmp_path):
    (folder / 'approvals.yaml').write_text('shell: {rules: [{pattern: echo, allowed: false}]}\n')

    finished = ran('--', 'echo x')

    assert (finished.status, finished.out) == (125, '')
    assert 'is blocked' in finished.err
    assert [entry['event'] for entry in log(tmp_path)] == ['blocked']


@confining
def test_a_file_that_nobody_trusts_allows_nothing(folder):
    (folder / 'approvals.yaml').write_text(
        'shell: {default: {approval: none}, rules: [{pattern: touch, approval: false}]}'
    )

    finished = ran('--', 'touch x')

    assert finished.status == 125
    assert 'approvals.yaml is not trusted' in finished.err


@confining
def test_a_file_that_the_user_names_is_trusted(folder, tmp_path):
    named = tmp_path / 'mine.yaml'
    named.write_text(
        'sandbox: {paths: {work: {root: ., mode: rw, write_approval: false}}}\nshell: {default: {approval: none}}\n'
    )

    finished = ran('--config', str(named), '--', 'touch x')

    assert (finished.status, finished.err) == (0, '')
    assert (folder / 'x').exists()


@pytest.mark.parametrize('text', ['mode: [', 'shell: {default: 3}'])
def test_nothing_runs_with_settings_that_are_wrong(folder, text):
    (folder / 'approvals.yaml').write_text(text)

    finished = ran('--', 'echo x')

    assert (finished.status, finished.out) == (125, '')


@pytest.mark.parametrize(
    'words', [(), ('--cwd', '/nowhere', '--', 'ls'), ('--access', 'root', '--', 'ls'), ('ls', '--never-ask', '--inbox')]
)
def test_what_is_called_wrongly_runs_nothing(folder, words):
    finished = ran(*words)

    assert finished.status in (2, 125)
    assert finished.out == ''


@confining
def test_a_command_that_takes_too_long_is_ended(folder, tmp_path):
    named = tmp_path / 'mine.yaml'
    named.write_text('shell: {default: {approval: none}, timeout_s: 0.3}\n')

    finished = ran('--config', str(named), '--', 'sleep 50')

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
    listed = subprocess.run(['ps', '-eo', 'args='], capture_output=True, text=True, check=True).stdout
    assert f'sleep {os.getpid()}51' not in listed.splitlines()


@confining
def test_the_command_ends_when_nobody_reads(folder):
    process = subprocess.Popen([*COMMAND, 'exec', '--', 'yes'], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()

    process.stdout.close()

    assert process.wait(30) == 141


@confining
def test_closed_streams_are_no_failure(folder):
    finished = subprocess.run(['bash', '-c', f'{shlex.join([*COMMAND, "exec", "--", "echo x; exit 3"])} >&- 2>&-'])

    assert finished.returncode == 3


@confining
@pytest.mark.parametrize('approved', [True, False])
def test_a_question_is_answered_in_the_inbox(folder, tmp_path, approved):
    (folder / 'Makefile').write_text('all:\n\techo made > made\n')
    process = subprocess.Popen(
        [*COMMAND, 'exec', '--inbox', '--access', 'write', '--', 'make'], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    asyncio.run(answered(tmp_path / 'state/tool-approval/inbox.sqlite', approved=approved))
    process.communicate(timeout=30)

    assert process.returncode == (0 if approved else 125)
    assert (folder / 'made').exists() == approved
    assert [entry['event'] for entry in log(tmp_path)] == ['question', 'decision', *(['outcome'] if approved else [])]
