import shutil
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest


def question(server):
    return f"Run restart({{'server': '{server}'}})?\n"


def kill_at(server, start, folder, answers, *options):
    """Answer the questions before the one about `server`, and kill the program while it waits for that answer."""
    with start('durable_dbos', str(folder), *options) as program:
        for answer, asked in answers:
            assert program.stdout.readline() == question(asked)
            program.stdin.write(f'{answer}\n')
            program.stdin.flush()
        assert program.stdout.readline() == question(server)
        program.send_signal(signal.SIGKILL)
        assert program.wait() == -signal.SIGKILL


def test_recovery_asks_the_open_question_alone_and_repeats_nothing(start, run, tmp_path):
    kill_at('gamma', start, tmp_path, [('y', 'alpha'), ('n', 'beta')])
    assert (tmp_path / 'done.txt').read_text() == 'alpha\n'

    recovered = run('durable_dbos', str(tmp_path), given='y\n')

    assert recovered.stderr == ''
    assert recovered.returncode == 0
    assert recovered.stdout == (question('gamma') + 'alpha restarted. The tool call was denied. gamma restarted.\n')
    assert (tmp_path / 'done.txt').read_text() == 'alpha\ngamma\n'


@pytest.mark.thorough
def test_recovery_without_recorded_answers_asks_again_and_still_repeats_nothing(start, run, tmp_path):
    first, second = tmp_path / 'first', tmp_path / 'second'
    first.mkdir()
    kill_at('beta', start, first, [('y', 'alpha')], '--ask-everything-again')
    shutil.copytree(first, second)

    with ThreadPoolExecutor() as threads:  # both at once, for they take their time to start
        recovering = [
            threads.submit(run, 'durable_dbos', str(folder), '--ask-everything-again', given=answers)
            for folder, answers in ((first, 'y\nn\ny\n'), (second, 'n\ny\ny\n'))
        ]
        same, different = [each.result() for each in recovering]

    assert same.stdout == (
        question('alpha')
        + question('beta')
        + question('gamma')
        + 'alpha restarted. The tool call was denied. gamma restarted.\n'
    )
    assert (first / 'done.txt').read_text() == 'alpha\ngamma\n'
    assert different.returncode != 0
    assert 'DBOSUnexpectedStepError' in different.stderr
    assert (second / 'done.txt').read_text() == 'alpha\n'
