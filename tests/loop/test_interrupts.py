"""An interrupt at a question ends the run and, once nobody needs it any more, the process."""

import asyncio
import contextlib
import signal
import subprocess
import sys
import threading
import time

import pytest
from pydantic_ai import DeferredToolResults
from pydantic_ai_deferred import Agent
from pydantic_ai_deferred.keyword import _ending_tasks

from .scripted import call, scripted

PROGRAM = """
from pydantic_ai.models.test import TestModel
from pydantic_ai_deferred import Agent
from pydantic_ai_deferred.keyword import _ending_tasks

{handler} ask(ctx, requests):
    raise {error}

agent = Agent(TestModel(), deferred_tool_handler=ask)

@agent.tool_plain
def look() -> str:
    return 'a thread of the host did this'

@agent.tool_plain(requires_approval=True)
def delete() -> str:
    return 'gone'

agent.run_sync('Go.')
"""


@pytest.mark.parametrize('handler', ['def', 'async def'])
@pytest.mark.parametrize(('error', 'status'), [('KeyboardInterrupt', -signal.SIGINT), ('SystemExit(3)', 3)])
def test_the_process_ends_though_a_sync_tool_has_run(handler, error, status):
    program = PROGRAM.format(handler=handler, error=error)

    ended = subprocess.run([sys.executable, '-c', program], stderr=subprocess.DEVNULL, timeout=120)

    assert ended.returncode == status


TERMINAL = """
import asyncio
from pydantic_ai.models.test import TestModel
from pydantic_ai_deferred import Agent
from pydantic_ai_deferred.keyword import _ending_tasks

def ask(ctx, requests):
    answer = input('Allow it? ')

agent = Agent(TestModel(), deferred_tool_handler=ask)

@agent.tool_plain
def look() -> str:
    return 'a thread of the host did this'

@agent.tool_plain(requires_approval=True)
def delete() -> str:
    return 'gone'

{run}
"""


@pytest.mark.parametrize(
    'run', ["agent.run_sync('Go.')", "asyncio.run(agent.run('Go.'))", "agent.run_stream_sync('Go.').get_output()"]
)
def test_ctrl_c_at_a_question_in_a_terminal_ends_the_program(run: str):
    pexpect = pytest.importorskip('pexpect')
    terminal = pexpect.spawn(sys.executable, ['-c', TERMINAL.format(run=run)], encoding='utf-8', timeout=60)
    terminal.expect_exact('Allow it? ')

    terminal.sendintr()
    pressed = time.monotonic()
    terminal.expect(pexpect.EOF)
    took_s = time.monotonic() - pressed
    terminal.close()

    assert terminal.signalstatus == signal.SIGINT
    assert took_s < SOON_S


SOON_S = 20.0
"""Far less than a person waits for, far more than a busy machine needs; about 0.3 s on an idle one."""


@pytest.fixture
def loop():
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield loop
    asyncio.set_event_loop(None)
    loop.close()


@pytest.mark.parametrize('error', [KeyboardInterrupt, SystemExit])
def test_interrupt_cancels_the_tasks_of_the_run_and_no_others(loop, error):
    ended = []
    others = loop.create_task(asyncio.Event().wait())
    inner = Agent(scripted([call('delete', '1')], 'done'))

    @inner.tool_plain(requires_approval=True)
    def delete() -> None:
        ended.append('delete')

    outer = Agent(scripted([call('wait', '1'), call('ask', '2')], 'done'))
    is_waiting = asyncio.Event()

    @outer.tool_plain
    async def wait() -> None:
        try:
            is_waiting.set()
            await asyncio.Event().wait()
        finally:
            ended.append('wait')

    @outer.tool_plain
    async def ask() -> None:
        await is_waiting.wait()
        await inner.run('go')

    def handler(ctx, requests):
        raise error

    with pytest.raises(error):
        outer.run_sync('go', deferred_tool_handler=handler)

    assert ended == ['wait']
    assert asyncio.all_tasks(loop) == {others}
    others.cancel()
    loop.run_until_complete(asyncio.wait([others]))


def test_a_task_that_will_not_end_can_be_interrupted_too(loop):
    presses = []
    is_free = asyncio.Event()
    agent = Agent(scripted([call('stubborn', '1'), call('delete', '2')], 'done'))

    def press():
        if not is_free.is_set():
            presses.append('Ctrl-C')
            loop.call_soon(press)
            raise KeyboardInterrupt

    @agent.tool_plain(requires_approval=True)
    async def stubborn() -> None:
        loop.call_soon(press)
        while not is_free.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await is_free.wait()

    agent.tool_plain(requires_approval=True, name='delete')(stubborn)

    async def handler(ctx, requests):
        return DeferredToolResults(approvals={each.tool_call_id: True for each in requests.approvals})

    with pytest.raises(KeyboardInterrupt):
        agent.run_sync('go', deferred_tool_handler=handler)

    left = asyncio.all_tasks(loop)
    assert left
    assert len(presses) > 1
    is_free.set()
    loop.run_until_complete(asyncio.wait(left))


def test_a_thread_without_an_event_loop_is_interrupted_in_the_same_way():
    raised = []
    agent = Agent(scripted([call('delete', '1')], 'done'))

    @agent.tool_plain(requires_approval=True)
    def delete() -> None:
        raised.append('delete')

    def handler(ctx, requests):
        raise KeyboardInterrupt

    def work():
        try:
            agent.run_sync('go', deferred_tool_handler=handler)
        except KeyboardInterrupt as error:
            raised.append(error)
        finally:
            asyncio.get_event_loop_policy().get_event_loop().close()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert [type(error) for error in raised] == [KeyboardInterrupt]


def test_an_event_loop_that_runs_is_left_alone():
    async def main():
        with _ending_tasks():
            raise SystemExit('within')

    with pytest.raises(SystemExit, match='within'):
        asyncio.run(main())
