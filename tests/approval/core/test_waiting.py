"""Waiting for a coroutine in code that is not asynchronous."""

import asyncio
import contextvars
import signal
import threading

import pytest
from tool_approval.core.threads import wait_for

pytestmark = pytest.mark.anyio

variable = contextvars.ContextVar('variable', default='unset')


async def read_variable() -> str:
    return variable.get()


async def fail() -> None:
    raise LookupError('nothing there')


def test_waiting_returns_the_result_of_the_coroutine_and_passes_context_variables():
    token = variable.set('set')
    try:
        assert wait_for(read_variable) == 'set'
    finally:
        variable.reset(token)


def test_waiting_raises_the_error_of_the_coroutine():
    with pytest.raises(LookupError, match='nothing there'):
        wait_for(fail)


async def test_waiting_inside_a_running_loop_leaves_that_loop_alone():
    before = asyncio.get_running_loop()
    result = wait_for(read_variable)

    assert (result, asyncio.get_running_loop() is before) == ('unset', True)


def test_an_interrupted_wait_cancels_the_coroutine():
    cancelled = threading.Event()

    async def interrupt():
        # To that thread itself: a signal to the process need not wake the one that waits.
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(KeyboardInterrupt):
        wait_for(interrupt)

    assert cancelled.wait(10)


def test_waiting_without_an_available_thread_fails_with_the_reason(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, 'start', refuse)

    with pytest.raises(RuntimeError, match="can't start new thread"):
        wait_for(read_variable)


def test_waiting_without_an_available_loop_fails_with_the_reason(monkeypatch):
    def refuse(coroutine):
        coroutine.close()
        raise OSError('too many open files')

    monkeypatch.setattr(asyncio, 'run', refuse)

    with pytest.raises(OSError, match='too many open files'):
        wait_for(read_variable)
