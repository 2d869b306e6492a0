import asyncio
import gc
import threading

import pytest
from tool_approval.core.turns import Turns


def test_turns_are_given_in_the_order_they_were_asked_for():
    turns = Turns()
    order = []

    async def wait(name):
        await turns.take()
        order.append(name)
        turns.leave()

    async def main():
        await turns.take()
        waiting = [asyncio.create_task(wait(name)) for name in 'abc']
        await asyncio.sleep(0)
        turns.leave()
        await asyncio.gather(*waiting)

    asyncio.run(main())

    assert order == ['a', 'b', 'c']


def test_a_waiter_that_was_cancelled_is_passed_over():
    turns = Turns()

    async def main():
        await turns.take()
        cancelled, waiting = (asyncio.create_task(turns.take()) for _ in range(2))
        await asyncio.sleep(0)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled

        turns.leave()

        await asyncio.wait_for(waiting, 10)

    asyncio.run(main())


def test_a_turn_given_to_a_waiter_just_cancelled_goes_on_to_the_next():
    turns = Turns()

    async def main():
        await turns.take()
        cancelled, waiting = (asyncio.create_task(turns.take()) for _ in range(2))
        await asyncio.sleep(0)

        turns.leave()  # it is given to the first, which does not know it yet
        cancelled.cancel()

        with pytest.raises(asyncio.CancelledError):
            await cancelled
        await asyncio.wait_for(waiting, 10)

    asyncio.run(main())


def test_a_waiter_whose_loop_is_gone_does_not_keep_the_turn():
    turns = Turns()
    asyncio.run(turns.take())
    loop = asyncio.new_event_loop()
    waiting = turns.take()
    loop.call_soon(waiting.send, None)
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()

    waiting.close()
    del waiting
    gc.collect()
    turns.leave()

    asyncio.run(asyncio.wait_for(turns.take(), 10))


def test_turns_pass_between_the_loops_of_different_threads():
    turns = Turns()
    taken = []
    begin = threading.Barrier(8)

    async def main(number):
        for _ in range(20):
            await turns.take()
            taken.append(number)
            assert taken[-1] == number, 'somebody else had the turn too'
            turns.leave()

    def work(number):
        begin.wait(timeout=60)
        asyncio.run(main(number))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)

    assert sorted(taken) == sorted(list(range(8)) * 20)


def test_a_turn_may_be_left_from_a_thread_without_a_loop():
    turns = Turns()

    async def main():
        await turns.take()
        waiting = asyncio.create_task(turns.take())
        await asyncio.sleep(0)
        threading.Thread(target=turns.leave).start()
        await asyncio.wait_for(waiting, 10)

    asyncio.run(main())
