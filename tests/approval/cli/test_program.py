"""The command as a process: streams, locales, exit statuses, start-up."""

import contextlib
import io
import os
import runpy
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tool_approval.cli import main
from tool_approval.cli.commands import COMMANDS

from .conftest import POLICY
from .process import COMMAND, command

FRAMEWORKS = ('pydantic_ai', 'pydantic_ai_deferred', 'langchain', 'langchain_core', 'langgraph', 'anyio', 'rich')


@pytest.fixture
def place(tmp_path):
    (tmp_path / 'approvals.yaml').write_text(POLICY)
    return tmp_path


def test_python_m_runs_the_program_and_help_lists_every_command(place):
    finished = command('--help', cwd=place)

    assert finished.returncode == 0
    assert all(f'    {each.name} '.encode() in finished.stdout for each in COMMANDS)


def test_version_is_printed(tool_approval):
    assert tool_approval('--version').out == 'tool-approval 0.1.0\n'


@pytest.mark.parametrize('name', [each.name for each in COMMANDS])
def test_each_command_has_help_with_examples(tool_approval, name):
    finished = tool_approval(name, '--help')

    assert finished.status == 0
    assert f'tool-approval {name}' in finished.out


@pytest.mark.parametrize('words', [[], ['unknown'], ['--unknown'], ['--explain']])
def test_unknown_command_or_option_is_one_line(tool_approval, words):
    finished = tool_approval(*words)

    assert (finished.status, finished.out, finished.err.count('\n')) == (2, '', 1)


def test_system_other_than_posix_is_named_in_the_error(tool_approval, monkeypatch):
    monkeypatch.setitem(sys.modules, 'pwd', None)
    for name in ('tool_approval.cli.doctor', 'tool_approval.os_sandbox.toolchains'):
        monkeypatch.delitem(sys.modules, name, raising=False)

    finished = tool_approval('doctor')

    assert (finished.status, finished.out) == (2, '')
    assert finished.err == 'tool-approval: this needs a POSIX system: Linux, macOS, or WSL 2 on Windows\n'


EXPLAIN = [
    ['explain', 'shell', 'git status'],
    ['explain', 'shell', 'echo x > notes/a.txt; rm x'],
    ['explain', 'read_file', 'x'],
    ['explain', 'delete', 'notes/a.txt'],
    ['explain', 'send', '{}'],
    ['explain', 'shell', 'git status', '--config', 'approvals.yaml'],
]


@pytest.mark.parametrize(
    ('words', 'unwanted'),
    [
        (['--help'], (*FRAMEWORKS, 'pydantic', 'asyncio', 'yaml')),
        *((words, (*FRAMEWORKS, 'difflib')) for words in EXPLAIN),
        # The access that a command needs depends on the OS sandbox.
        *((words, ('tool_approval.os_sandbox.bubblewrap',)) for words in EXPLAIN if words[1] != 'shell'),
    ],
)
def test_slow_imports_are_avoided_if_not_needed(place, words, unwanted):
    code = textwrap.dedent(
        f"""
        import sys
        from tool_approval.cli import main
        main({words!r})
        print([name for name in {unwanted!r} if name in sys.modules])
        """
    )

    finished = subprocess.run([sys.executable, '-c', code], cwd=place, capture_output=True, text=True)

    assert finished.stdout.splitlines()[-1] == '[]'


def test_reader_that_closes_the_pipe_is_not_a_failure(place):
    calls = b'{"id": 1, "tool": "x", "args": {}}\n' * 5000
    with subprocess.Popen(
        [*COMMAND, 'explain', '--batch', '-'],
        cwd=place,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdin.write(calls[:100])
        process.stdin.flush()
        assert process.stdout.readline() != b''
        process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(calls)
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        said = process.stderr.read()

    assert process.returncode == 141
    assert b'Traceback' not in said
    assert b'Exception' not in said


def test_answers_come_while_the_input_is_still_open(place):
    with subprocess.Popen(
        [*COMMAND, 'explain', '--batch', '-'],
        cwd=place,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        process.stdin.write(b'{"id": 1, "tool": "x", "args": {}}\n')
        process.stdin.flush()
        answer = process.stdout.readline()
        process.stdin.close()

    assert b'"decision": "ask"' in answer


@pytest.mark.parametrize('closed', ['<&-', '>&-', '2>&-', '<&- >&- 2>&-'])
def test_closed_streams_cause_no_traceback(place, closed):
    for words in ("explain shell 'git status'", 'check', 'explain --batch -', 'trust', 'unknown'):
        line = f'exec "$0" -P -m tool_approval.cli {words} {closed}'
        finished = subprocess.run(['bash', '-c', line, sys.executable], cwd=place, capture_output=True, text=True)

        assert finished.returncode in (0, 2)
        assert 'Traceback' not in finished.stdout + finished.stderr


def test_output_that_cannot_be_written_is_a_failure(monkeypatch, capsys):
    class Full(io.StringIO):
        def flush(self):
            raise OSError(28, 'No space left on device')

    monkeypatch.setattr(sys, 'stdout', Full())

    assert main(['--version']) == 2
    assert 'No space left on device' in capsys.readouterr().err


def test_a_full_disk_is_a_failure(place):
    with open('/dev/full', 'wb') as full:
        finished = command('explain', 'x', cwd=place, stdout=full)

    assert finished.returncode == 2
    assert b'No space left on device' in finished.stderr
    assert b'Traceback' not in finished.stderr


@pytest.mark.parametrize(
    'env',
    [
        {'LC_ALL': 'C', 'LANG': 'C'},
        {'PYTHONIOENCODING': 'ascii'},
        {'PYTHONUTF8': '0', 'LC_ALL': 'C', 'PYTHONCOERCECLOCALE': '0'},
    ],
)
def test_letters_that_a_locale_lacks_cause_no_failure(place, env):
    finished = command('explain', 'read_file', 'café-日本', cwd=place, env=env)

    assert finished.returncode == 20
    assert b'Traceback' not in finished.stderr


def test_undecodable_names_cause_no_failure(place):
    finished = command('explain', 'read_file', os.fsdecode(b'notes/\xff\xfe'), cwd=place)

    assert finished.returncode == 20
    assert b'Traceback' not in finished.stderr
    assert b'\xff' not in finished.stdout + finished.stderr


def test_interruption_is_reported(tool_approval, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr('tool_approval.cli.explain.run', interrupted)

    finished = tool_approval('explain', 'x')

    assert (finished.status, finished.err) == (130, 'tool-approval: interrupted\n')


def test_unexpected_error_is_one_line_and_debug_shows_the_traceback(tool_approval, monkeypatch):
    monkeypatch.setattr('tool_approval.cli.explain.run', lambda options, output: 1 / 0)

    plain, before, behind = (
        tool_approval(*words) for words in (['explain', 'x'], ['--debug', 'explain', 'x'], ['explain', 'x', '--debug'])
    )

    assert (plain.status, plain.err.count('\n')) == (2, 1)
    assert 'unexpected ZeroDivisionError' in plain.err
    assert 'Traceback' in before.err
    assert 'Traceback' in behind.err


def test_debug_after_two_dashes_is_an_argument(tool_approval):
    finished = tool_approval('explain', 'shell', '--', '--debug', 'x')

    assert finished.err.count('\n') == 1


def test_system_error_without_a_file_is_reported(tool_approval, monkeypatch):
    def failing(options, output):
        raise OSError('the machine is tired')

    monkeypatch.setattr('tool_approval.cli.explain.run', failing)

    assert tool_approval('explain', 'x').err == 'tool-approval: the machine is tired\n'


@pytest.mark.parametrize('shell', ['bash', 'zsh', 'tcsh'])
def test_completion_knows_the_commands(tool_approval, shell):
    finished = tool_approval('--print-completion', shell)

    assert finished.status == 0
    assert 'explain' in finished.out
    assert 'batch' in finished.out


def test_completion_without_its_library_names_the_package_to_install(tool_approval, monkeypatch):
    monkeypatch.setitem(sys.modules, 'shtab', None)

    finished = tool_approval('--print-completion', 'bash')

    assert finished.status == 2
    assert "pip install ./pydantic_ai_slim './tool_approval[cli]'" in finished.err


def test_module_takes_its_arguments_from_the_command_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, 'argv', ['tool-approval', '--version'])

    with pytest.raises(SystemExit) as ended:
        runpy.run_module('tool_approval.cli', run_name='__main__')

    assert ended.value.code == 0
    assert capsys.readouterr().out == 'tool-approval 0.1.0\n'


class NobodyReads(io.StringIO):
    """Standard output whose reader has gone; `nowhere` is where its descriptor leads."""

    def __init__(self, descriptor):
        super().__init__()
        self.descriptor = descriptor

    def write(self, text):
        raise BrokenPipeError

    def fileno(self):
        return self.descriptor


def test_remaining_output_is_dropped_after_the_reader_closed_the_pipe(work, monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    monkeypatch.setattr(sys, 'stdout', NobodyReads(writer))

    status = main(['explain', 'send_notification', '--config', 'approvals.yaml'])

    assert status == 141
    assert os.write(writer, b'x') == 1
    os.close(writer)


def test_batch_without_standard_input_is_a_failure(work, monkeypatch, capsys):
    monkeypatch.setattr(sys, 'stdin', None)

    status = main(['explain', '--batch', '-'])

    assert status == 2
    assert 'standard input is closed' in capsys.readouterr().err


@pytest.fixture
def hostile(work):
    """A directory whose modules, named as those that the command imports, leave a trace when they are imported."""
    for name in ('json', 'yaml', 'typing', 'argparse', 'runpy', 'shtab', 'pydantic', 'tool_approval'):
        (work / f'{name}.py').write_text("open('imported', 'a').write(__name__ + ' ')\nraise SystemExit(3)\n")
    return work


@pytest.mark.parametrize(
    'started', [[str(Path(sys.executable).with_name('tool-approval'))], COMMAND], ids=['script', 'module']
)
def test_no_module_of_the_working_directory_is_imported(hostile, started):
    for words in (['check'], ['trust', '--yes'], ['explain', 'send', '{}'], ['--help'], ['doctor']):
        finished = subprocess.run([*started, *words], cwd=hostile, capture_output=True, text=True)

        assert finished.returncode in (0, 1, 10), finished.stderr
        assert not (hostile / 'imported').exists(), words


def test_python_without_safe_path_imports_from_the_working_directory(hostile):
    plain = [word for word in COMMAND if word != '-P']

    finished = subprocess.run([*plain, 'check'], cwd=hostile, capture_output=True, text=True)

    assert finished.returncode == 3
    assert (hostile / 'imported').exists()
