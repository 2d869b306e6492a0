"""A story in which the process of two agents is killed while a question is open. Another process resumes the runs."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import tempfile
from collections.abc import Coroutine, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from tool_approval.assistant.asking import MakeAsked
from tool_approval.assistant.conversation import End, stops_at_signals
from tool_approval.assistant.screen import Screen, StreamWrapper
from tool_approval.core.memory import ApprovalMemory
from tool_approval.inbox import Approver, Inbox, InboxEntry

from .restart_worker import INVOICE, PAYMENTS, make_bookkeeper

T = TypeVar('T')

_WITHIN_S = 60.0
"""Seconds to wait for a process to start, to ask or to end."""


async def play_restart(*, make_ui: MakeAsked, screen: Screen) -> End:
    """Play the story. Then show the facts, even if the user stopped the story.

    Raises:
        RuntimeError: The process of the agent did not respond in time.
    """
    task = asyncio.current_task()
    assert task is not None, 'the story runs in a task'
    with tempfile.TemporaryDirectory(prefix='tool-approval-demo-') as temporary:
        folder = Path(temporary)
        end: End = 'done'
        with stops_at_signals(task.cancel):
            try:
                await _play(folder, make_ui, screen)
            except (asyncio.CancelledError, KeyboardInterrupt):
                end = 'stopped'
                screen.say('Stopped.')
        path = folder / PAYMENTS
        payments = len(path.read_text().splitlines()) if path.exists() else 0
        screen.write('\n')
        screen.say(f'In fact: payments of invoice {INVOICE}: {payments}.')
        return end


async def _play(folder: Path, make_ui: MakeAsked, screen: Screen) -> None:
    screen.say(
        'A bookkeeper lets a cashier pay invoices. Both are agents, and each call of the cashier is a run of its own. '
        'A separate process executes the runs, and a file stores them.'
    )
    screen.say(f'You ask: Pay invoice {INVOICE}.')
    bookkeeper = make_bookkeeper(folder)
    inbox = bookkeeper.ui.inbox
    with closing(bookkeeper.store), inbox:
        run = await bookkeeper.start(f'Pay invoice {INVOICE}.')
        with _worker(folder) as process:
            entry = await _soon(_question(inbox))
            process.kill()
            process.wait()
        screen.say(
            'The cashier waits for your answer, and the bookkeeper for the cashier. '
            f'Now `kill -9 {process.pid}` ends the only process of the agents.'
        )
        asked: Any = make_ui(ApprovalMemory(), {}).choose(entry.request, mode='interactive')
        decision = await asked if inspect.isawaitable(asked) else asked
        await inbox.decide(entry.id, decision, by=Approver(id='you'), digest=entry.digest)
        screen.say('Your answer is in the file. Another process starts, and resumes both runs.')
        with _worker(folder):
            output = await _soon(run.result())
    words = StreamWrapper(screen)
    words.add(output)
    words.end()


async def _question(inbox: Inbox) -> InboxEntry:
    async for _ in inbox.changes():
        for entry in await inbox.open(1):
            return entry
    raise AssertionError('`changes` has no end')  # pragma: no cover - the loop above never ends


async def _soon(wait: Coroutine[Any, Any, T]) -> T:
    try:
        return await asyncio.wait_for(wait, _WITHIN_S)
    except TimeoutError:
        raise RuntimeError('the process of the agent did not respond in time') from None


@contextmanager
def _worker(folder: Path) -> Generator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, '-P', str(Path(__file__).with_name('restart_worker.py')), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin is not None, 'it is a pipe'
    with process.stdin:
        try:
            yield process
        finally:
            process.kill()
            process.wait()
