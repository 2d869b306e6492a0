"""Waiting for a coroutine in code that is not asynchronous."""

import asyncio
import contextvars
import signal
import threading

import pytest
from tool_approval.core.threads import wait_for

variable = contextvars.ContextVar('variable', default='unset')


async def read_variable() -> str:
    return variable.get()


async def fail() -> None:
    raise LookupError('nothing there')


def test_it_returns_what_the_coroutine_returns_and_context_variables_reach_it():
    token = variable.set('set')
    try:
        assert wait_for(read_variable) == 'set'
    finally:
        variable.reset(token)


def test_it_raises_what_the_coroutine_raises():
    with pytest.raises(LookupError, match='nothing there'):
        wait_for(fail)


def test_it_waits_where_a_loop_is_running_and_leaves_that_one_alone():
    async def main():
        before = asyncio.get_running_loop()
        result = wait_for(read_variable)
        return result, asyncio.get_running_loop() is before

    assert asyncio.run(main()) == ('unset', True)


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


def test_where_no_thread_can_be_had_it_says_so_and_does_not_wait(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, 'start', refuse)

    with pytest.raises(RuntimeError, match="can't start new thread"):
        wait_for(read_variable)


def test_where_no_loop_can_be_had_it_says_so_and_does_not_wait(monkeypatch):
    def refuse(coroutine):
        coroutine.close()
        raise OSError('too many open files')

    monkeypatch.setattr(asyncio, 'run', refuse)

    with pytest.raises(OSError, match='too many open files'):
        wait_for(read_variable)
