import asyncio
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from tool_approval.durable import open_store
from tool_approval.inbox import Inbox

from tests.approval.inbox.parts import soon
from tests.postgres_server import postgres, postgres_url

__all__ = ('postgres', 'postgres_url')

pytest.importorskip('dbos', reason='the development environment has DBOS')

EXAMPLE = Path(__file__).parents[2] / 'examples' / 'durable_bot.py'


class Program(subprocess.Popen[str]):
    """The example in a process, which does not outlive the test."""

    def __init__(self, folder, command, **environment):
        super().__init__(
            [sys.executable, str(EXAMPLE), command],
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )

    def __exit__(self, *error):
        self.kill()
        super().__exit__(*error)


@pytest.mark.parametrize(
    ('command', 'result', 'paid'),
    [
        ('approve', 'A-17 is paid.', ['A-17 120']),
        pytest.param('deny', 'The approver denied this call.', [], marks=pytest.mark.thorough),
    ],
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


def test_two_workers_on_postgres_and_slack_pay_once_though_one_is_killed(
    tmp_path, postgres_url, load, finish, monkeypatch
):
    pytest.importorskip('slack_bolt')
    from tests.approval.ui.slack.slack_server import APP_TOKEN, BOT_TOKEN, CHANNEL, SlackServer, buttons_of, press_of

    monkeypatch.setenv('DURABLE_BOT_STORE', postgres_url)
    environment = {
        'SLACK_BOT_TOKEN': BOT_TOKEN,
        'SLACK_APP_TOKEN': APP_TOKEN,
        'SLACK_CHANNEL': CHANNEL,
        'SLACK_APPROVERS': 'U0ADA',
    }
    example = load('durable_bot')

    async def scenario():
        with ExitStack() as programs:
            first, second, starting = (
                programs.enter_context(Program(tmp_path, each)) for each in ('worker', 'worker', 'start')
            )
            # The bot starts after the question was asked, so what it shows comes from the store.
            with Inbox(open_store(postgres_url).inbox_store) as inbox:
                await soon(inbox)
            first.kill()
            async with SlackServer().running() as slack:
                showing = asyncio.ensure_future(example.show_in_slack(environment, slack.api))
                await slack.until(lambda: len(slack.messages) == 1 and slack.connections == 1)
                [message] = slack.messages.values()
                await slack.send('e1', press_of('approve', buttons_of(message)['approve']))
                printed, _ = await asyncio.to_thread(starting.communicate, timeout=60)
                showing.cancel()
                await asyncio.gather(showing, return_exceptions=True)
            second.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(second.wait, 60) == 0
            return printed

    printed = finish(scenario())

    assert printed.splitlines()[1] == 'A-17 is paid.'
    assert (tmp_path / 'durable-bot' / 'paid.txt').read_text().splitlines() == ['A-17 120']
