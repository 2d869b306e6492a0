"""SIGKILL of a worker at every point: the effect happens never twice, and where it did not, a person can see why."""

import asyncio
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from tool_approval.durable import open_store
from tool_approval.durable.steering import settle_call
from tool_approval.inbox import Inbox

from tests.approval.inbox.parts import ADA, NO, YES, answer

pytest.importorskip('dbos', reason='the development environment has DBOS')

from .killed import POINTS, make

pytestmark = [pytest.mark.thorough, pytest.mark.untraced]


class Workers:
    """Processes, each of which is replaced when it has died."""

    def __init__(self, count, *arguments):
        command = [sys.executable, '-m', 'tests.approval.durable.killed', *map(str, arguments)]
        self._start = lambda: subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.died = 0
        self.processes = [self._start() for _ in range(count)]

    def replace_dead(self):
        for index, process in enumerate(self.processes):
            if process.poll() is not None:
                self.died += 1
                self.processes[index] = self._start()

    def close(self):
        for process in self.processes:
            process.kill()
            process.wait()


async def follow(durable, url, workers):
    """Approve the call, give up what is unknown, and wait for the end. The questions that were asked."""
    asked = []
    with Inbox(open_store(url).inbox_store) as inbox:
        run = await durable.start('go', run_id='run')
        async with asyncio.timeout(40):
            while (await run.status()).status not in ('done', 'failed', 'cancelled'):
                workers.replace_dead()
                for entry in await inbox.open():
                    is_unknown = 'may have happened' in entry.request.description
                    asked.append('unknown' if is_unknown else 'pay')
                    await answer(inbox, entry, NO if is_unknown else YES, by=ADA)
                await asyncio.sleep(0.05)
        return asked, await run.status()


@pytest.mark.parametrize('count', [1, 2])
@pytest.mark.parametrize('kind', ['sqlite', 'postgres'])
@pytest.mark.parametrize('point', POINTS)
def test_a_killed_worker_pays_never_twice(point, kind, count, url, request, tmp_path):
    if kind == 'postgres':
        url = request.getfixturevalue('postgres_url')
    workers = Workers(count, url, tmp_path, point)
    try:
        asked, row = asyncio.run(follow(make(url, tmp_path, 'none'), url, workers))
    finally:
        workers.close()

    paid = (tmp_path / 'paid').read_text().split() if (tmp_path / 'paid').exists() else []
    store = open_store(url)
    states = [each.state for each in store.executions_of('run')]
    store.close()
    assert (tmp_path / 'killed').exists(), 'the point was never reached'
    assert row.status == 'done'
    assert paid in ([], ['10'])
    assert asked.count('pay') == 1
    if point in ('executing after', 'tool before', 'tool after', 'done before'):
        assert states == ['unknown']
        assert asked == ['pay', 'unknown']
    else:
        assert (paid, states, asked) == (['10'], ['done'], ['pay'])


async def settle(durable, url, workers, verdict):
    """Approve the call, settle what is unknown as `tool-approval runs settle` does, and wait for the end."""
    store = open_store(url)
    with Inbox(store.inbox_store) as inbox:
        run = await durable.start('go', run_id='run')
        async with asyncio.timeout(40):
            while (await run.status()).status not in ('done', 'failed', 'cancelled'):
                workers.replace_dead()
                unknown = [row for row in store.executions_of('run') if row.is_unsettled]
                for entry in await inbox.open():
                    if unknown:
                        now = datetime.now(UTC)
                        await settle_call(store, 'run', unknown[0], verdict, 'paid it', by='ada', at=now)
                    else:
                        await answer(inbox, entry, YES, by=ADA)
                    break
                await asyncio.sleep(0.05)
        return await run.status(), [row.state for row in store.requests_of('run')], store.executions_of('run')


@pytest.mark.parametrize(
    ('point', 'verdict', 'states'),
    [
        ('tool after', 'result', ['done']),
        ('tool after', 'give_up', ['unknown']),
        ('tool before', 'again', ['unknown', 'done']),
    ],
)
def test_a_run_goes_on_when_its_unknown_call_is_settled_beside_the_inbox(point, verdict, states, url, tmp_path):
    workers = Workers(1, url, tmp_path, point)
    try:
        row, asked, executions = asyncio.run(settle(make(url, tmp_path, 'none'), url, workers, verdict))
    finally:
        workers.close()

    assert (row.status, [each.state for each in executions]) == ('done', states)
    assert asked == ['approved', 'withdrawn']
    assert '"by":"ada"' in executions[0].result
    assert (tmp_path / 'paid').read_text() == '10\n'
