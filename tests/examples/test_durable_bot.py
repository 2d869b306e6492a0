import asyncio
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from tool_approval.durable import open_store
from tool_approval.inbox import Inbox

from tests.approval.inbox.parts import soon

pytest.importorskip('dbos', reason='the development environment has DBOS')

EXAMPLE = Path(__file__).parents[2] / 'examples' / 'durable_bot.py'


class Program(subprocess.Popen[str]):
    """The example in a process, which does not outlive the test."""

    def __init__(self, folder, command):
        super().__init__([sys.executable, str(EXAMPLE), command], cwd=folder, stdout=subprocess.PIPE, text=True)

    def __exit__(self, *error):
        self.kill()
        super().__exit__(*error)


@pytest.mark.parametrize(
    ('command', 'result', 'paid'),
    [('approve', 'A-17 is paid.', ['A-17 120']), ('deny', 'The approver denied this call.', [])],
)
def test_the_run_goes_on_with_another_worker_when_the_first_was_killed_while_it_waited(tmp_path, command, result, paid):
    with ExitStack() as programs:
        first, starting = (programs.enter_context(Program(tmp_path, each)) for each in ('worker', 'start'))
        with Inbox(open_store(str(tmp_path / 'durable-bot' / 'inbox.sqlite')).inbox_store) as inbox:
            asyncio.run(soon(inbox))
        first.send_signal(signal.SIGKILL)
        first.wait()
        second, answering = (programs.enter_context(Program(tmp_path, each)) for each in ('worker', command))

        assert answering.communicate(timeout=60)[0].startswith("pay(invoice='A-17', amount=120)")
        _, printed = starting.communicate(timeout=60)[0].splitlines()
        second.send_signal(signal.SIGTERM)
        assert second.wait(timeout=60) == 0

    assert printed.startswith(result)
    written = tmp_path / 'durable-bot' / 'paid.txt'
    assert (written.read_text().splitlines() if written.exists() else []) == paid
