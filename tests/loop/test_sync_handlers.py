"""Sync handlers run in a daemon thread; what that gives, and what a cancelled run leaves behind."""

import asyncio
import contextvars
import re
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Awaitable
from functools import partial
from typing import Any

import pytest
from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.exceptions import UserError
from pydantic_ai.models.test import TestModel
from pydantic_ai_deferred import Agent

from .scripted import Gate, Recorder, call, returns, scripted


def make(*responses: Any) -> Agent[Any, Any]:
    agent = Agent(scripted(*(responses or ([call('delete', '1')], 'done'))))
    agent.tool_plain(name='delete', requires_approval=True)(lambda: 'deleted')
    return agent


async def reached(event: threading.Event) -> None:
    """Wait for what a handler's thread does, without holding up the event loop."""
    assert await asyncio.to_thread(event.wait, 30)


def approve(requests: DeferredToolRequests) -> DeferredToolResults:
    return requests.build_results(approve_all=True)


def test_a_blocking_handler_leaves_the_event_loop_free():
    gate = Gate(sync=True)

    async def main() -> Any:
        run = asyncio.create_task(make().run('go', deferred_tool_handler=gate.handler))
        await reached(gate.asked)
        gate.release.set()  # this line is reached while the handler blocks
        return await run

    assert asyncio.run(main()).output == 'done'


@pytest.mark.thorough
def test_two_hundred_waiting_handlers_delay_no_sync_tool():
    all_asked, release = threading.Event(), threading.Event()
    asked: list[None] = []

    def waiting(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        asked.append(None)
        if len(asked) == 200:
            all_asked.set()
        assert release.wait(60)
        return approve(requests)

    async def main() -> list[Any]:
        runs = [asyncio.create_task(make().run('go', deferred_tool_handler=waiting)) for _ in range(200)]
        await reached(all_asked)
        unrelated = Agent(scripted([call('work', '1')], 'worked'))
        unrelated.tool_plain(name='work')(lambda: 'result')
        # Ends although all 200 still wait: they do not use the threads that sync tools need.
        assert (await asyncio.wait_for(unrelated.run('go'), timeout=20)).output == 'worked'
        release.set()
        return [run.output for run in await asyncio.gather(*runs)]

    assert asyncio.run(main()) == ['done'] * 200


def test_context_variables_reach_the_handler():
    user: contextvars.ContextVar[str] = contextvars.ContextVar('user')
    seen: list[str] = []

    def handler(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        seen.append(user.get())
        return approve(requests)

    user.set('ada')
    make().run_sync('go', deferred_tool_handler=handler)

    assert seen == ['ada']


def test_a_sync_handler_may_return_an_awaitable():
    loops: list[Any] = []

    def handler(ctx: RunContext[Any], requests: DeferredToolRequests) -> Awaitable[DeferredToolResults]:
        async def answer() -> DeferredToolResults:
            loops.append(asyncio.get_running_loop())
            return approve(requests)

        return answer()

    async def main() -> Any:
        loops.append(asyncio.get_running_loop())
        return await make().run('go', deferred_tool_handler=handler)

    assert asyncio.run(main()).output == 'done'
    assert loops[0] is loops[1]


async def ask_async(prefix: str, ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
    assert threading.current_thread() is threading.main_thread()
    return approve(requests)


class Asking:
    async def __call__(self, ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        assert threading.current_thread() is threading.main_thread()
        return approve(requests)

    async def ask(self, ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        return await self(ctx, requests)


@pytest.mark.parametrize(
    'handler',
    [partial(ask_async, 'a'), partial(partial(ask_async), 'a'), Asking(), Asking().ask, partial(Asking())],
    ids=['partial', 'nested partial', 'object', 'bound method', 'partial of an object'],
)
def test_async_handlers_of_every_shape_run_on_the_loop(handler: Any):
    assert make().run_sync('go', deferred_tool_handler=handler).output == 'done'


async def cancelled(agent: Agent[Any, Any], handler: Any, asked: threading.Event) -> None:
    """Run the agent, and cancel the run once its handler was asked."""
    run = asyncio.create_task(agent.run('go', deferred_tool_handler=handler))
    await reached(asked)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


def test_cancelling_a_run_leaves_a_sync_handler_behind():
    gate = Gate(sync=True)

    async def main() -> None:
        await cancelled(make(), gate.handler, gate.asked)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert not gate.has_answered.is_set()
        gate.release.set()

    asyncio.run(main())


def test_cancelling_a_run_cancels_a_waiting_async_handler():
    asked, was_cancelled = threading.Event(), threading.Event()

    async def waiting(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            was_cancelled.set()
        raise AssertionError

    async def main() -> None:
        await cancelled(make(), waiting, asked)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert was_cancelled.is_set()

    asyncio.run(main())


def test_an_abandoned_handlers_answer_goes_nowhere():
    gate = Gate(sync=True)
    ran: list[str] = []
    agent = Agent(scripted([call('delete', '1')], 'done'))
    agent.tool_plain(name='delete', requires_approval=True)(lambda: ran.append('deleted'))

    async def main() -> None:
        await cancelled(agent, gate.handler, gate.asked)
        gate.release.set()
        await asyncio.to_thread(gate.threads[0].join, 30)

    asyncio.run(main())

    assert not gate.threads[0].is_alive()
    assert gate.threads[0].daemon
    assert ran == []


def test_a_run_that_times_out_cancels_the_waiting_handler():
    from pydantic_ai import exceptions

    if not hasattr(exceptions, 'RunTimedOut'):
        pytest.skip('run timeouts came with pydantic-ai-slim 2.x')

    async def waiting(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        await asyncio.Event().wait()
        raise AssertionError

    keywords: Any = {'timeout': 0.05}
    with pytest.raises(exceptions.RunTimedOut):
        make().run_sync('go', deferred_tool_handler=waiting, **keywords)


def test_a_cancellation_token_cancels_the_waiting_handler():
    import pydantic_ai

    if not hasattr(pydantic_ai, 'CancellationToken'):
        pytest.skip('cancellation tokens came with pydantic-ai-slim 2.x')
    token = pydantic_ai.CancellationToken()
    release = threading.Event()

    def cancelling(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        token.cancel()
        release.wait(5)
        return approve(requests)

    keywords: Any = {'cancellation_token': token}
    with pytest.raises(pydantic_ai.exceptions.RunCancelled):
        make().run_sync('go', deferred_tool_handler=cancelling, **keywords)
    release.set()


def test_a_history_cut_short_by_cancellation_can_be_continued():
    from pydantic_ai import capture_run_messages

    handler = Recorder()

    async def main() -> Any:
        asked = asyncio.Event()

        async def waiting(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
            asked.set()
            await asyncio.Event().wait()
            raise AssertionError

        agent = make([call('delete', '1')], 'done')
        with capture_run_messages() as messages:
            run = asyncio.create_task(agent.run('go', deferred_tool_handler=waiting))
            await asked.wait()
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run
        return await agent.run(
            message_history=messages[:2],
            deferred_tool_results=DeferredToolResults(approvals={'1': True}),
            deferred_tool_handler=handler,
        )

    result = asyncio.run(main())

    assert returns(result.all_messages()) == {'1': ('deleted', 'success')}


SOON_S = 10
"""On a quiet machine it is some tenths; a machine that is busy with other tests must not fail this one."""

PROGRAM = """
    import asyncio, os, threading, time
    from pydantic_ai_deferred import Agent
    from tests.loop.scripted import call, scripted

    agent = Agent(scripted([call('delete', '1')], 'done'))
    agent.tool_plain(name='delete', requires_approval=True)(lambda: 'deleted')
    asked = threading.Event()

    def from_keyboard(ctx, requests):
        asked.set()
        {read}

    async def cancelled():
        run = asyncio.create_task(agent.run('go', deferred_tool_handler=from_keyboard))
        await asyncio.to_thread(asked.wait)
        run.cancel()
        try:
            await run
        except asyncio.CancelledError:
            pass

    def never_closed():
        def approve(ctx, requests):
            return requests.build_results(approve_all=True)

        globals()['kept'] = agent.run_stream_sync('go', deferred_tool_handler=approve)

    {main}
    print('\\nleft', time.time(), flush=True)
"""


@pytest.mark.parametrize(
    ('main', 'read'), [('asyncio.run(cancelled())', 'os.read(0, 1)'), ('never_closed()', 'raise AssertionError')]
)
def test_the_process_exits_without_waiting_for_an_abandoned_handler(main: str, read: str):
    """Its standard input stays open and silent: the abandoned thread goes on waiting for a key."""
    program = textwrap.dedent(PROGRAM).replace('{main}', main).replace('{read}', read)
    with subprocess.Popen(
        [sys.executable, '-c', program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            exit_code = process.wait(timeout=60)
            exited = time.time()
        finally:
            process.kill()
        output = process.stdout.read()

    assert exit_code == 0, output
    assert exited - float(output.split('left ')[1]) < SOON_S


def test_the_process_exits_soon_after_a_cancel_with_a_question_in_the_terminal():
    pexpect = pytest.importorskip('pexpect')
    program = textwrap.dedent(PROGRAM).replace('{main}', 'asyncio.run(cancelled())')
    terminal = pexpect.spawn(
        sys.executable, ['-c', program.replace('{read}', "input('Allow it? ')")], encoding='utf-8', timeout=60
    )

    terminal.expect(pexpect.EOF)  # not line by line: the prompt comes from a thread, and may follow the last line
    exited = time.time()
    output = terminal.before
    terminal.close()

    assert terminal.exitstatus == 0, output
    left = re.search(r'left ([\d.]+)', output)
    assert left, output
    assert exited - float(left[1]) < SOON_S


def test_base_exception_of_a_sync_handler_reaches_the_run():
    class Leaving(BaseException):
        pass

    def leaving(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        raise Leaving

    with pytest.raises(Leaving):
        asyncio.run(make().run('go', deferred_tool_handler=leaving))


def test_an_answer_of_the_wrong_kind_from_a_thread_is_checked_too():
    with pytest.raises(UserError, match='instead of `DeferredToolResults`'):
        make().run_sync('go', deferred_tool_handler=lambda ctx, requests: 'y')


def handler_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == 'deferred-tool-handler'}


def gone(threads: set[threading.Thread]) -> bool:
    for thread in threads:
        thread.join(30)
    return not any(thread.is_alive() for thread in threads)


def test_context_variables_set_by_one_question_do_not_reach_the_next():
    mark: contextvars.ContextVar[str] = contextvars.ContextVar('mark', default='clean')
    seen: list[str] = []

    def handler(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        seen.append(mark.get())
        mark.set('left behind')
        return approve(requests)

    make([call('delete', '1')], [call('delete', '2')], 'done').run_sync('go', deferred_tool_handler=handler)

    assert seen == ['clean', 'clean']


def test_a_loop_that_takes_no_answers_from_threads_is_an_error_and_the_handler_is_not_asked():
    class Loop(asyncio.SelectorEventLoop):
        call_soon_threadsafe = asyncio.AbstractEventLoop.call_soon_threadsafe  # as the loop of a Temporal workflow

    handler = Recorder()
    with asyncio.Runner(loop_factory=Loop) as runner, pytest.raises(UserError, match='async def handler'):
        # Unlike the scripted model, this one needs no thread either.
        runner.run(make().run('go', model=TestModel(), deferred_tool_handler=handler))

    assert handler.asked == []
