import asyncio
import contextlib
import os
import threading

import pytest
from tool_approval.inbox.errors import InboxError, InboxUnavailable
from tool_approval.inbox.worker import AT_ONCE, PAUSE_S, Worker

pytestmark = pytest.mark.anyio


def fail():
    raise InboxUnavailable('here', 'it is away')


async def test_everything_is_done_in_one_thread_in_order():
    worker = Worker('here')
    done = []

    await asyncio.gather(*(worker.run(lambda number=number: done.append(number)) for number in range(100)))
    threads = {await worker.run(threading.get_ident) for _ in range(10)}
    worker.close(5)

    assert done == list(range(100))
    assert len(threads) == 1
    assert threading.get_ident() not in threads


async def test_error_of_a_job_reaches_its_caller():
    worker = Worker('here')

    with pytest.raises(ZeroDivisionError):
        await worker.run(lambda: 1 / 0)
    assert await worker.run(lambda: 'goes on') == 'goes on'
    worker.close(5)


async def test_worker_pauses_after_an_outage_and_then_tries_again():
    time = [0.0]
    worker = Worker('here', lambda: time[0])
    tried = []

    with pytest.raises(InboxUnavailable, match='it is away'):
        await worker.run(fail)
    time[0] = PAUSE_S * 0.9
    with pytest.raises(InboxUnavailable, match='it is away'):
        await worker.run(lambda: tried.append('too early'))
    time[0] = PAUSE_S
    await worker.run(lambda: tried.append('again'))
    worker.close(5)

    assert tried == ['again']


class Together:
    """Says which actions were one transaction."""

    def __init__(self, error=None):
        self.log = []
        self.error = error

    def __call__(self):
        return self._transaction()

    @contextlib.contextmanager
    def _transaction(self):
        self.log.append('begin')
        try:
            yield
            if self.error is not None:
                raise self.error
        except InboxError:
            self.log.append('rollback')
            raise
        self.log.append('commit')

    async def of(self, worker, *actions):
        """Submit actions while the worker is busy, and return how they ended."""
        is_busy, may_go_on = threading.Event(), threading.Event()
        first = asyncio.create_task(worker.run(lambda: (is_busy.set(), may_go_on.wait(20))))
        await asyncio.to_thread(is_busy.wait, 20)
        others = [asyncio.create_task(worker.run(each)) for each in actions]
        await asyncio.sleep(0)
        may_go_on.set()
        await first
        return await asyncio.gather(*others, return_exceptions=True)


async def test_what_waits_for_the_worker_is_one_transaction():
    together = Together()
    worker = Worker('here', together=together)

    ended = await together.of(worker, *(lambda n=n: together.log.append(n) or n for n in range(AT_ONCE + 2)))

    await worker.run(lambda: together.log.append('alone'))
    worker.close(5)
    assert ended == list(range(AT_ONCE + 2))
    rest = ['begin', AT_ONCE, AT_ONCE + 1, 'commit', 'alone']
    assert together.log == ['begin', *range(AT_ONCE), 'commit', *rest]


async def test_an_action_that_fails_leaves_the_others_of_its_transaction():
    together = Together()
    worker = Worker('here', together=together)

    failed, done = await together.of(worker, lambda: 1 / 0, lambda: 'done')

    worker.close(5)
    assert isinstance(failed, ZeroDivisionError)
    assert (done, together.log) == ('done', ['begin', 'commit'])


async def test_when_the_store_fails_one_action_each_of_them_runs_alone():
    together = Together()
    worker = Worker('here', together=together)
    done = []

    ended = await together.of(worker, lambda: done.append(1), lambda: done.append(2) or fail(), lambda: done.append(3))

    worker.close(5)
    assert done == [1, 2, 1, 2], 'the third meets the pause'
    assert ended[0] is None
    assert all(isinstance(each, InboxUnavailable) for each in ended[1:])
    assert together.log == ['begin', 'rollback']


async def test_no_action_is_said_to_be_done_whose_commit_failed():
    together = Together(error=InboxUnavailable('here', 'it is away'))
    worker = Worker('here', together=together)
    done = []

    ended = await together.of(worker, lambda: done.append(1), lambda: done.append(2))

    worker.close(5)
    assert (ended, done) == ([None, None], [1, 2, 1, 2])


async def test_a_worker_that_is_closed_does_what_was_submitted_before():
    together = Together()
    worker = Worker('here', together=together)
    is_busy, may_go_on, done = threading.Event(), threading.Event(), []
    worker.submit(lambda: (is_busy.set(), may_go_on.wait(20)), lambda value, error: None)
    await asyncio.to_thread(is_busy.wait, 20)
    for number in (1, 2):
        worker.submit(lambda number=number: done.append(number), lambda value, error: None)
    closing = asyncio.create_task(asyncio.to_thread(worker.close, 20))
    while not worker._is_closed:
        await asyncio.sleep(0.01)
    may_go_on.set()

    await closing

    assert done == [1, 2]


async def test_cancelled_job_is_still_carried_out():
    worker = Worker('here')
    may_go_on, done = threading.Event(), threading.Event()

    task = asyncio.create_task(worker.run(lambda: (may_go_on.wait(20), done.set())))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    may_go_on.set()
    await worker.run(lambda: None)
    worker.close(5)

    assert done.is_set()


def test_worker_survives_a_closed_event_loop():
    worker = Worker('here')
    may_go_on = threading.Event()

    async def main():
        task = asyncio.create_task(worker.run(lambda: may_go_on.wait(20)))
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(main())
    may_go_on.set()

    assert asyncio.run(worker.run(lambda: 'goes on')) == 'goes on'
    worker.close(5)


async def test_closing_ends_what_was_asked_for_and_refuses_the_rest():
    worker = Worker('here')
    done = []
    for number in range(100):
        worker.submit(lambda number=number: done.append(number), lambda value, error: None)

    worker.close(20)
    worker.close(20)

    assert done == list(range(100))
    with pytest.raises(InboxError, match='the inbox is closed'):
        await worker.run(lambda: None)


async def test_worker_that_was_never_used_can_be_closed():
    worker = Worker('here')

    worker.close(5)

    with pytest.raises(InboxError, match='closed'):
        await worker.run(lambda: None)


async def test_forked_process_has_to_create_its_own_worker(monkeypatch):
    worker = Worker('here')
    await worker.run(lambda: None)
    parent = os.getpid()

    monkeypatch.setattr(os, 'getpid', lambda: parent + 1)
    with pytest.raises(InboxError, match='create one in each process'):
        await worker.run(lambda: None)
    worker.close(5)
