import io
import signal
import sys

import pexpect
import pytest
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

NO = 'The user said no. Do not try this again.'


def test_only_files_confirmed_through_the_pipe_are_deleted_and_its_end_denies(run):
    program = run('terminal_prompt', given='y\n')

    assert program.returncode == 0
    assert program.stderr == ''
    assert program.stdout.endswith(f'- draft.txt is deleted.\n- {NO}\nLeft: notes.txt, thesis.txt\n')


@pytest.mark.parametrize(
    ('given', 'left'),
    [
        pytest.param('n\nyes\n', {'draft.txt', 'notes.txt'}, id='refused-then-approved'),
        pytest.param(' Y \nYES\n', {'notes.txt'}, id='both-approved'),
        pytest.param('\nmaybe\n', {'draft.txt', 'notes.txt', 'thesis.txt'}, id='neither-yes-nor-no-is-a-no'),
        pytest.param('', {'draft.txt', 'notes.txt', 'thesis.txt'}, id='end-of-input'),
    ],
)
def test_only_a_clear_yes_deletes(load, monkeypatch, given, left):
    example = load('terminal_prompt')
    files = {'draft.txt', 'notes.txt', 'thesis.txt'}
    monkeypatch.setattr(sys, 'stdin', io.StringIO(given))

    example.agent.run_sync('Tidy up.', deps=files)

    assert files == left


def test_person_is_asked_in_a_terminal_and_the_outcome_reaches_the_model(command):
    program, *args = command('terminal_prompt')
    with pexpect.spawn(program, args, timeout=60, encoding='utf-8') as terminal:
        terminal.expect_exact('Run delete_file with {"path": "draft.txt"}? [y/n] ')
        terminal.sendline('y')
        terminal.expect_exact('Run delete_file with {"path": "thesis.txt"}? [y/n] ')
        terminal.sendline('n')

        terminal.expect_exact(f'- draft.txt is deleted.\r\n- {NO}\r\nLeft: notes.txt, thesis.txt\r\n')
        terminal.expect_exact(pexpect.EOF)


def test_interrupted_question_ends_the_program_and_deletes_nothing(command):
    program, *args = command('terminal_prompt')

    def accept_interrupts():
        # A shell that started the tests in the background has told all of their children to ignore Ctrl-C.
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    with pexpect.spawn(program, args, timeout=60, encoding='utf-8', preexec_fn=accept_interrupts) as terminal:
        terminal.expect_exact('[y/n] ')
        terminal.sendintr()

        terminal.expect_exact('KeyboardInterrupt')
        terminal.expect_exact(pexpect.EOF)

        assert 'Left:' not in terminal.before


def test_arguments_cannot_write_to_the_terminal(load, monkeypatch, capsys):
    example = load('terminal_prompt')
    evil = '\x1b[2K\rRun nothing at all?\u202e'

    def plan(messages, info):
        done = len(messages) > 1
        return ModelResponse(parts=[TextPart('done') if done else ToolCallPart('delete_file', {'path': evil})])

    monkeypatch.setattr(sys, 'stdin', io.StringIO('n\n'))
    example.agent.run_sync('Tidy up.', deps={evil}, model=FunctionModel(plan))

    assert capsys.readouterr().out == (
        'Run delete_file with {"path": "\\u001b[2K\\rRun nothing at all?\\u202e"}? [y/n] '
    )
