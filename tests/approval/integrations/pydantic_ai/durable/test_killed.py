"""SIGKILL of a worker at every point: the effect happens never twice, and where it did not, a person can see why."""

import asyncio
import time
from multiprocessing import get_context

import pytest
from tool_approval.durable import open_store
from tool_approval.durable.steering import settle_call
from tool_approval.inbox import Inbox

from tests.approval.inbox.parts import ADA, NO, YES, answer
from tests.postgres_server import url_of

pytest.importorskip('dbos', reason='the development environment has DBOS')

from .killed import NESTED_POINTS, POINTS, make, make_nested, work, work_nested

# Importing what a worker needs takes seconds of a processor: one process does so, and each worker is forked from it.
FORKED = get_context('forkserver')
FORKED.set_forkserver_preload([work.__module__])

pytestmark = [pytest.mark.thorough, pytest.mark.untraced]


class Workers:
    """Processes, each of which is replaced when it has died."""

    def __init__(self, count, *arguments, target=work):
        self._arguments = arguments
        self._target = target
        self.processes = [self._start() for _ in range(count)]

    def _start(self):
        process = FORKED.Process(target=self._target, args=self._arguments, daemon=True)
        process.start()
        return process

    def replace_dead(self):
        for index, process in enumerate(self.processes):
            if not process.is_alive():
                self.processes[index] = self._start()

    def close(self):
        for process in self.processes:
            process.kill()
            process.join()


def is_about_unknown(entry):
    return 'may have happened' in entry.request.description


async def follow(durable, url, workers):
    """Approve the call, give up what is unknown, and wait for the end. The questions that were asked."""
    asked = []
    with Inbox(open_store(url).inbox_store) as inbox:
        run = await durable.start('go', run_id='run')
        async with asyncio.timeout(90):
            while (await run.status()).status not in ('done', 'failed', 'cancelled'):
                workers.replace_dead()
                for entry in await inbox.open():
                    is_unknown = is_about_unknown(entry)
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
    # One that works alone is never taken for dead while it lives.
    workers = Workers(count, url, tmp_path, point, 0.5 if count == 1 else 1.0)
    try:
        asked, row = asyncio.run(follow(make(url, tmp_path, 'none'), url, workers))
        # After its last write the run is done, which may be seen before its worker reaches the point.
        deadline = time.monotonic() + 20
        while not (tmp_path / 'killed').exists() and time.monotonic() < deadline:
            time.sleep(0.01)
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
    # `executing` may be in a transaction with other actions that was not committed: then the call had not begun.
    if point in ('tool before', 'tool after', 'done before') or (point == 'executing after' and states != ['done']):
        assert states == ['unknown']
        assert asked == ['pay', 'unknown']
    else:
        assert (paid, states, asked) == (['10'], ['done'], ['pay'])


@pytest.mark.parametrize('kind', ['sqlite', 'postgres'])
@pytest.mark.parametrize('point', NESTED_POINTS)
def test_a_killed_worker_of_nested_runs_pays_never_twice(point, kind, url, request, tmp_path):
    if kind == 'postgres':
        url = request.getfixturevalue('postgres_url')
    workers = Workers(2, url, tmp_path, point, 1.0, target=work_nested)
    try:
        asked, row = asyncio.run(follow(make_nested(url, tmp_path, 'none'), url, workers))
        deadline = time.monotonic() + 20
        while not (tmp_path / 'killed').exists() and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        workers.close()

    paid = (tmp_path / 'paid').read_text().split() if (tmp_path / 'paid').exists() else []
    store = open_store(url)
    nested = store.nested_in('run')
    executions = [each for run in nested for each in store.executions_of(run.id)]
    store.close()
    assert (tmp_path / 'killed').exists(), 'the point was never reached'
    assert [row.status, *(each.status for each in nested)] == ['done'] * 3
    assert len(paid) == len(set(paid)), 'a run paid twice'
    assert asked.count('pay') == len(executions) == 2
    # The other nested run may be in the middle of its call too when their worker dies.
    assert asked.count('unknown') == sum(each.state == 'unknown' for each in executions)
    assert {each.run_id for each in executions if each.state == 'done'} <= set(paid)
    if point in ('clerk tool before', 'clerk tool after', 'clerk done before'):
        assert 'unknown' in asked
    elif point.startswith('boss'):
        assert (len(paid), asked) == (2, ['pay', 'pay'])


@pytest.mark.parametrize('kind', ['sqlite', 'postgres'])
def test_two_workers_may_start_on_an_empty_store_at_once(kind, empty_url, request, tmp_path):
    url = empty_url if kind == 'sqlite' else url_of(request.getfixturevalue('postgres').new_database())
    workers = Workers(2, url, tmp_path, 'none', 1.0)
    try:
        asked, row = asyncio.run(follow(make(url, tmp_path, 'none'), url, workers))
    finally:
        workers.close()

    assert (row.status, asked) == ('done', ['pay'])
    assert (tmp_path / 'paid').read_text() == '10\n'


async def settle(durable, url, workers, verdict):
    """Approve the call, settle what is unknown as `tool-approval runs settle` does, and wait for the end."""
    store = open_store(url)
    with Inbox(store.inbox_store) as inbox:
        run = await durable.start('go', run_id='run')
        async with asyncio.timeout(40):
            while (await run.status()).status not in ('done', 'failed', 'cancelled'):
                workers.replace_dead()
                for entry in await inbox.open():
                    if is_about_unknown(entry):
                        [row] = [row for row in store.executions_of('run') if row.is_unsettled]
                        await settle_call(store, row, verdict, 'paid it', by='ada')
                    else:
                        await answer(inbox, entry, YES, by=ADA)
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
    workers = Workers(1, url, tmp_path, point, 0.5)
    try:
        row, asked, executions = asyncio.run(settle(make(url, tmp_path, 'none'), url, workers, verdict))
    finally:
        workers.close()

    assert (row.status, [each.state for each in executions]) == ('done', states)
    assert asked == ['approved', 'withdrawn']
    assert '"by":"ada"' in executions[0].result
    assert (tmp_path / 'paid').read_text() == '10\n'
