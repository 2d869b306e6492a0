import asyncio
import os
import threading

import pytest
from tool_approval.inbox.errors import InboxError, InboxUnavailable
from tool_approval.inbox.worker import PAUSE_S, Worker

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
