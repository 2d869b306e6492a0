import asyncio
import contextvars
import threading

import pytest
from tool_approval.core.errors import ApprovalError
from tool_approval.core.threads import RunCancelled, call_sync_or_async, in_thread, to_next_wait

from tests.approval.parts import request_for
from tool_approval import ApprovalController

pytestmark = pytest.mark.anyio

WHO = contextvars.ContextVar('who', default='nobody')


def raising(error):
    def function():
        raise error

    return function


def test_a_plain_function_runs_in_a_daemon_thread_of_its_own():
    thread = asyncio.run(call_sync_or_async(threading.current_thread))

    assert thread is not threading.current_thread()
    assert thread.daemon


def test_a_coroutine_function_runs_on_the_event_loop():
    async def here(word, *, end):
        return threading.current_thread(), word + end

    assert asyncio.run(call_sync_or_async(here, 'a', end='b')) == (threading.current_thread(), 'ab')


def test_awaitable_result_of_a_plain_function_is_awaited():
    async def later():
        return 'later'

    assert asyncio.run(call_sync_or_async(lambda: later())) == 'later'


async def test_context_variables_reach_the_thread():
    WHO.set('ada')

    assert await call_sync_or_async(WHO.get) == 'ada'


@pytest.mark.parametrize('error', [ValueError('x'), EOFError(), KeyboardInterrupt()])
def test_error_of_a_function_in_a_thread_is_raised(error):
    with pytest.raises(type(error)):
        asyncio.run(call_sync_or_async(raising(error)))


@pytest.mark.parametrize('error', [SystemExit(3), GeneratorExit(), StopIteration()])
def test_exit_of_a_thread_does_not_end_the_run(error):
    with pytest.raises(RuntimeError):
        asyncio.run(call_sync_or_async(raising(error)))


@pytest.mark.parametrize('is_async', [True, False])
async def test_a_function_that_cancels_itself_does_not_cancel_the_run(is_async):
    async def cancels_itself():
        raise asyncio.CancelledError

    function = cancels_itself if is_async else raising(asyncio.CancelledError())

    with pytest.raises(RuntimeError):
        await call_sync_or_async(function)

    assert asyncio.current_task().cancelling() == 0


@pytest.mark.parametrize('is_async', [True, False])
def test_stop_passes_even_before_the_cancellation_arrives(is_async):
    async def stops():
        raise RunCancelled

    with pytest.raises(RunCancelled):
        asyncio.run(call_sync_or_async(stops if is_async else raising(RunCancelled())))


async def test_cancelling_abandons_the_thread_and_what_it_returns_is_dropped():
    release, ended = threading.Event(), threading.Event()

    waiting = asyncio.create_task(call_sync_or_async(lambda: release.wait(60), on_end=ended.set))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not ended.is_set()
    release.set()

    assert ended.wait(60)


@pytest.mark.parametrize('tidies_up', [True, False])
async def test_a_cancellation_that_is_swallowed_passes_all_the_same(tidies_up):
    async def swallows():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if tidies_up:
                await asyncio.sleep(0)
            return 'too late'

    waiting = asyncio.create_task(call_sync_or_async(swallows))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


def test_a_thread_that_outlives_its_loop_ends_quietly():
    started, release, ended = threading.Event(), threading.Event(), threading.Event()
    threads = []

    def function():
        threads.append(threading.current_thread())
        started.set()
        release.wait(60)

    async def main():
        asyncio.create_task(call_sync_or_async(function, on_end=ended.set))  # noqa: RUF006 - it is to be left behind
        await asyncio.to_thread(started.wait, 60)

    asyncio.run(main())
    release.set()
    threads[0].join(60)

    assert ended.is_set()
    assert not threads[0].is_alive()


def test_on_end_is_called_at_once_if_no_thread_can_start(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, 'start', refuse)
    told = []

    with pytest.raises(RuntimeError, match='new thread'):
        asyncio.run(in_thread(lambda: None, on_end=lambda: told.append(True)))

    assert told == [True]


class WorkflowLoop(asyncio.SelectorEventLoop):
    """As the loop of a Temporal workflow, which accepts no calls from threads."""

    call_soon_threadsafe = asyncio.AbstractEventLoop.call_soon_threadsafe


def test_loop_without_thread_calls_is_an_error_and_nothing_is_called():
    called = []
    with asyncio.Runner(loop_factory=WorkflowLoop) as runner, pytest.raises(ApprovalError, match='coroutine function'):
        runner.run(in_thread(lambda: called.append(1)))

    assert called == []


def test_plain_choose_on_a_loop_without_thread_calls_is_denied():
    class PlainUI:
        def choose(self, request, *, mode):
            raise AssertionError('it was called')

    controller = ApprovalController(mode='interactive', ui=PlainUI())
    with asyncio.Runner(loop_factory=WorkflowLoop) as runner:
        decision = runner.run(asyncio.wait_for(controller.request_approval(request_for()), timeout=5))

    assert not decision.approved
    assert 'ApprovalError' in decision.note


def answered_and_cancelled(work):
    """The outcome of `work(future)` if the future gets a result and the task is cancelled at the same moment."""

    async def waits(future):
        return await to_next_wait(work(future))

    async def main():
        future = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(waits(future))
        await asyncio.sleep(0)
        future.set_result('an answer')
        task.cancel()
        return await task

    return asyncio.run(main())


def test_a_result_that_is_there_is_not_lost_to_a_cancellation():
    async def work(future):
        return await future

    assert answered_and_cancelled(work) == 'an answer'


@pytest.mark.parametrize('wait', [lambda: asyncio.sleep(0), lambda: asyncio.sleep(60), lambda: asyncio.Event().wait()])
def test_the_cancellation_arrives_at_the_next_wait(wait):
    seen = []

    async def work(future):
        seen.append(await future)
        await wait()
        seen.append('went on')

    with pytest.raises(asyncio.CancelledError):
        answered_and_cancelled(work)

    assert seen == ['an answer']


def test_cancellation_that_was_undone_does_not_arrive():
    """As the cancellation of a time limit that ends at the same moment as its task."""

    async def work(future):
        answer = await future
        asyncio.current_task().uncancel()
        await asyncio.sleep(0)
        return answer

    assert answered_and_cancelled(work) == 'an answer'


async def test_errors_and_cancellations_reach_what_waits():
    async def work():
        try:
            async with asyncio.timeout(0):
                await asyncio.sleep(60)
        except TimeoutError:
            failed = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_soon(failed.set_exception, ValueError('it broke'))
            with pytest.raises(ValueError, match='it broke'):
                await failed
            await asyncio.sleep(0)
            return 'went on'

    assert await to_next_wait(work()) == 'went on'
