import asyncio
import gc
import threading
from functools import partial

import pytest
from tool_approval.core.asking import PromptLock

from tests.approval.parts import in_threads

pytestmark = pytest.mark.anyio


async def test_turns_are_given_in_the_order_they_were_asked_for():
    lock = PromptLock()
    order = []

    async def wait(name):
        await lock.acquire()
        order.append(name)
        lock.release()

    await lock.acquire()
    waiting = [asyncio.create_task(wait(name)) for name in 'abc']
    await asyncio.sleep(0)
    lock.release()
    await asyncio.gather(*waiting)

    assert order == ['a', 'b', 'c']


async def test_a_waiter_that_was_cancelled_is_passed_over():
    lock = PromptLock()
    await lock.acquire()
    cancelled, waiting = (asyncio.create_task(lock.acquire()) for _ in range(2))
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled

    lock.release()

    await asyncio.wait_for(waiting, 10)


async def test_a_turn_given_to_a_waiter_just_cancelled_goes_on_to_the_next():
    lock = PromptLock()
    await lock.acquire()
    cancelled, waiting = (asyncio.create_task(lock.acquire()) for _ in range(2))
    await asyncio.sleep(0)

    lock.release()  # it is given to the first, which does not know it yet
    cancelled.cancel()

    with pytest.raises(asyncio.CancelledError):
        await cancelled
    await asyncio.wait_for(waiting, 10)


def test_a_waiter_whose_loop_is_gone_does_not_keep_the_turn():
    lock = PromptLock()
    asyncio.run(lock.acquire())
    loop = asyncio.new_event_loop()
    waiting = lock.acquire()
    loop.call_soon(waiting.send, None)
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()

    waiting.close()
    del waiting
    gc.collect()
    lock.release()

    asyncio.run(asyncio.wait_for(lock.acquire(), 10))


def test_turns_pass_between_the_loops_of_different_threads():
    lock = PromptLock()
    taken = []
    begin = threading.Barrier(8)

    async def main(number):
        for _ in range(20):
            await lock.acquire()
            taken.append(number)
            assert taken[-1] == number, 'somebody else had the turn too'
            lock.release()

    def work(number):
        begin.wait(timeout=60)
        asyncio.run(main(number))

    in_threads(*(partial(work, number) for number in range(8)))

    assert sorted(taken) == sorted(list(range(8)) * 20)


async def test_a_turn_may_be_left_from_a_thread_without_a_loop():
    lock = PromptLock()
    await lock.acquire()
    waiting = asyncio.create_task(lock.acquire())
    await asyncio.sleep(0)
    threading.Thread(target=lock.release).start()
    await asyncio.wait_for(waiting, 10)
