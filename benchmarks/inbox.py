"""Measure the inbox under load: `python -m benchmarks.inbox`, `make bench-inbox`.

Thousands of calls wait. Other processes answer them at a steady rate, however fast the store is. A delay is the time
from the moment when an answer is due until the call continues.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import multiprocessing
import os
import platform
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from statistics import quantiles
from typing import Any, TypeAlias

from tool_approval.inbox import AlreadySettled, Approver, Inbox, InboxEntry, InboxStore, InboxUI, Row
from tool_approval.inbox.stores import SQLiteStore
from tool_approval.inbox.stores.postgres import PostgresStore

from tests.postgres_server import ABSENT, PostgresServer, find_programs
from tool_approval import ApprovalController, ApprovalDecision, ApprovalRequest, execute_tool

P99_LIMIT_MS = 100.0
MEMORY_LIMIT_KB = 20.0

BARE = 'for a bare future'
POLICY = {'send_mail': {'approval': 'required'}}
SPAWN = multiprocessing.get_context('spawn')

Pipe: TypeAlias = 'Connection[Any, Any]'

Place: TypeAlias = tuple[str, str]
"""Kind of the store, and its path or DSN."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """Size of one measurement."""

    waiting: int
    """Calls that wait at the same time, in all processes together."""
    agents: int
    """Number of processes in which calls wait."""
    answerers: int
    """Number of processes that answer."""
    rate: int
    """Answers per second, of all processes together."""
    answers: int
    """Number of answers."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """Result of one measurement."""

    store: str
    """Kind of the store."""
    load: Load
    """Size of the measurement."""
    delays_ms: list[float]
    """Delays from answer to continued call in milliseconds, sorted."""
    lost: int
    """Accepted answers after which no call continued."""
    twice: int
    """Requests with two accepted answers, and calls that continued without one."""
    refused: int
    """Second answers, which were refused."""

    @property
    def p50_ms(self) -> float:
        """Median delay."""
        return quantiles(self.delays_ms, n=100)[49]

    @property
    def p99_ms(self) -> float:
        """Delay that 99 of 100 answers do not exceed."""
        return quantiles(self.delays_ms, n=100)[98]

    @property
    def holds(self) -> bool:
        """Whether the limits are kept."""
        return self.p99_ms < P99_LIMIT_MS and not self.lost and not self.twice


def open_store(place: Place) -> InboxStore:
    """Open the store of this kind and place."""
    kind, where = place
    return SQLiteStore(where) if kind == 'SQLite' else PostgresStore(where)


def send_mail(to: str, number: int) -> float:
    """Return the time at which this tool ran."""
    return time.monotonic()


def agent(parent: Pipe, place: Place, calls: int) -> None:
    """Let `calls` calls wait in this process. When asked, send the number and time of each call that continued."""
    asyncio.run(_agent(parent, place, calls))


async def _agent(parent: Pipe, place: Place, calls: int) -> None:
    went_on: list[tuple[int, float]] = []
    with Inbox(open_store(place)) as inbox:
        controller = ApprovalController(policy=POLICY, ui=InboxUI(inbox))

        async def call(number: int) -> None:
            arguments = {'to': 'bob@example.com', 'number': number}
            went_on.append((number, await execute_tool(send_mail, 'send_mail', arguments, controller)))

        tasks = [asyncio.create_task(call(os.getpid() * 100_000 + number)) for number in range(calls)]
        await asyncio.to_thread(parent.recv)
        parent.send(went_on)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def answerer(parent: Pipe, place: Place, load: Load, index: int) -> None:
    """Give a share of the answers in this process. Send which were accepted, and how many were refused."""
    asyncio.run(_answerer(parent, place, load, index))


async def _answerer(parent: Pipe, place: Place, load: Load, index: int) -> None:
    taken: list[tuple[int, float]] = []
    refused = 0
    with Inbox(open_store(place)) as inbox:
        entries = sorted(await inbox.open(load.waiting), key=lambda entry: entry.id)[: load.answers]
        parent.send(len(entries))
        start: float = await asyncio.to_thread(parent.recv)

        async def answer(entry: InboxEntry, due: float) -> None:
            nonlocal refused
            await asyncio.sleep(due - time.monotonic())
            by = Approver(id=f'person {index}')
            try:
                await inbox.decide(entry.id, ApprovalDecision(approved=True), by=by, digest=entry.digest)
            except AlreadySettled:
                refused += 1
            else:
                taken.append((entry.request.args['number'], due))

        async with asyncio.TaskGroup() as group:
            for number, entry in enumerate(entries):
                # One process answers each request. Every tenth is answered by all at once, and one must win.
                if number % load.answerers == index or number % 10 == 0:
                    group.create_task(answer(entry, start + number / load.rate))
        parent.send((taken, refused))


def measure(place: Place, load: Load) -> Found:
    """Let calls wait, answer them, and return the result."""
    processes: list[SpawnProcess] = []

    def start(target: Callable[..., None], *arguments: object) -> Pipe:
        ours, theirs = SPAWN.Pipe()
        process = SPAWN.Process(target=target, args=(theirs, *arguments))
        process.start()
        processes.append(process)
        return ours

    agents = [start(agent, place, load.waiting // load.agents) for _ in range(load.agents)]
    store = open_store(place)
    while len(store.open(load.waiting)) < load.waiting:
        time.sleep(0.5)
    store.close()
    answerers = [start(answerer, place, load, index) for index in range(load.answerers)]
    assert [each.recv() for each in answerers] == [load.answers] * load.answerers
    begin = time.monotonic() + 1.0
    for each in answerers:
        each.send(begin)
    taken: dict[int, float] = {}
    twice = refused = 0
    for each in answerers:
        theirs, second = each.recv()
        twice += len(taken.keys() & dict(theirs).keys())
        taken.update(theirs)
        refused += second
    time.sleep(1.0)  # ten times the limit: a call that has not continued by now is lost
    went_on: dict[int, float] = {}
    for each in agents:
        each.send('stop')
        went_on.update(each.recv())
    for process in processes:
        process.join()
    return Found(
        store=place[0],
        load=load,
        delays_ms=sorted((went_on[number] - due) * 1000 for number, due in taken.items() if number in went_on),
        lost=len(taken.keys() - went_on.keys()) + load.answers - len(taken),
        twice=twice + len(went_on.keys() - taken.keys()),
        refused=refused,
    )


class Nobody:
    """A UI that only waits for a future, as a host does."""

    async def choose(self, request: ApprovalRequest, *, mode: str) -> ApprovalDecision:
        """Wait forever."""
        return await asyncio.get_running_loop().create_future()


def memory(parent: Pipe, place: Place | None, calls: int, how: str) -> None:
    """Send the bytes that each of `calls` waiting calls takes in this process; a `place` of `None` means no inbox."""
    parent.send(asyncio.run(_memory(place, calls, how)))


async def _memory(place: Place | None, calls: int, how: str) -> float:
    inbox = None if place is None else Inbox(open_store(place))
    posted = 0
    if inbox is not None:
        add = inbox.store.add

        def add_and_count(row: Row, deadline: datetime | None = None) -> None:
            nonlocal posted
            add(row, deadline)
            posted += 1

        inbox.store.add = add_and_count
    controller = ApprovalController(policy=POLICY, ui=Nobody() if inbox is None else InboxUI(inbox))

    async def wait(count: int) -> list[asyncio.Task[object]]:
        arguments = [{'to': 'bob@example.com', 'number': number} for number in range(count)]
        tasks = [asyncio.create_task(execute_tool(send_mail, 'send_mail', each, controller)) for each in arguments]
        until = posted + count
        await asyncio.sleep(2.0)  # until all calls wait, and temporary memory is freed
        while inbox is not None and posted < until:
            await asyncio.sleep(0.5)
        return tasks

    async def stop(tasks: Sequence[asyncio.Task[object]]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        while inbox is not None and await inbox.open(1):
            await asyncio.sleep(0.1)

    # The first calls fill caches, whose memory is not that of waiting.
    await stop(await wait(calls // 10))
    if how == 'traced':
        tracemalloc.start()
    gc.collect()
    before = _bytes_taken(how)
    tasks = await wait(calls)
    gc.collect()
    after = _bytes_taken(how)
    await stop(tasks)
    if inbox is not None:
        inbox.close()
    return (after - before) / calls


def _bytes_taken(how: str) -> int:
    if how == 'traced':
        return tracemalloc.get_traced_memory()[0]
    return int(Path('/proc/self/statm').read_text().split()[1]) * os.sysconf('SC_PAGE_SIZE')


def memory_kb(place: Place | None, calls: int, how: str) -> float:
    """Return the memory of a waiting call in kB, measured in a separate process."""
    ours, theirs = SPAWN.Pipe()
    process = SPAWN.Process(target=memory, args=(theirs, place, calls, how))
    process.start()
    taken: float = ours.recv()
    process.join()
    return taken / 1000


@contextmanager
def places(*, syncs: bool = False) -> Generator[list[Callable[[], Place]]]:
    """Yield functions that make a new and empty store, one for each available kind."""
    with tempfile.TemporaryDirectory() as folder:
        numbers = iter(range(1000))
        makers: list[Callable[[], Place]] = [
            lambda: ('SQLite', str(Path(folder) / str(next(numbers)) / 'inbox.sqlite'))
        ]
        programs = find_programs()
        if programs is None:
            print(ABSENT)
            yield makers
            return
        server = PostgresServer(programs)
        server.start(syncs=syncs)
        try:
            makers.append(lambda: ('PostgreSQL', server.new_database()))
            yield makers
        finally:
            server.stop()
            server.remove()


def page(found: Sequence[Found], taken: Sequence[tuple[str, float, float]], loads: tuple[float, float]) -> str:
    """Return the page for the documentation."""
    lines = [
        '# Benchmarks of the inbox',
        '',
        'Written by `python -m benchmarks.inbox --write PATH`; `make bench-inbox` prints the same figures.',
        (
            f'Measured on CPython {platform.python_version()}, {platform.system()} {platform.machine()}, '
            f'{os.cpu_count()} processors, shared by all processes and the database.'
        ),
        f'The load average was {loads[0]:.1f} before and {loads[1]:.1f} after the measurements.',
        '',
        '## Answers',
        '',
        'Calls wait in agent processes, and other processes answer them at a steady rate.',
        'A delay is the time, in milliseconds, from when an answer is due until its call continues.',
        'To test that only one answer is accepted, all answering processes answer every tenth request simultaneously.',
        f'At least 99 of 100 delays must be {P99_LIMIT_MS:g} ms or less, and no answer may be lost or accepted twice.',
        '',
        (
            '| store | waiting calls | agent processes | answering processes | answers per second | answers | median '
            '| 99 of 100 | longest | lost | accepted twice | second answers refused | verdict |'
        ),
        f'|{" --- |" * 13}',
    ]
    for each in found:
        load = each.load
        cells = (
            each.store,
            load.waiting,
            load.agents,
            load.answerers,
            load.rate,
            load.answers,
            f'{each.p50_ms:.1f}',
            f'{each.p99_ms:.1f}',
            f'{each.delays_ms[-1]:.1f}',
            each.lost,
            each.twice,
            each.refused,
            'met' if each.holds else '**MISSED**',
        )
        lines.append(f'| {" | ".join(map(str, cells))} |')
    lines += [
        '',
        '## Memory',
        '',
        'The table shows the memory of one waiting call, in a fresh process, in kB.',
        '"Traced" is the memory that Python has allocated; "resident" is the growth of the process.',
        'The difference is the memory of a call in the inbox minus the memory of a call that waits for a bare future.',
        f'The difference may be at most {MEMORY_LIMIT_KB:g} kB per call.',
        '',
        '| the call waits | traced | resident | resident, difference | verdict |',
        '| --- | --- | --- | --- | --- |',
    ]
    _, _, bare = taken[0]
    for name, traced, resident in taken:
        difference = resident - bare
        verdict = '' if name == BARE else 'met' if difference < MEMORY_LIMIT_KB else '**MISSED**'
        shown = '' if name == BARE else f'{difference:.1f}'
        lines.append(f'| {name} | {traced:.1f} | {resident:.1f} | {shown} | {verdict} |')
    return '\n'.join(lines) + '\n'


def main() -> None:
    """Measure, print the page, and write it if asked to. A missed limit is printed, but is not a failure."""
    parser = argparse.ArgumentParser(prog='python -m benchmarks.inbox', description=__doc__)
    parser.add_argument('--quick', action='store_true', help='measure little')
    parser.add_argument('--write', type=Path, metavar='PATH', help='also write the page, as Markdown')
    options = parser.parse_args()
    before = os.getloadavg()[0]
    waiting, answers = (500, 400) if options.quick else (5000, 4000)
    loads = [
        Load(waiting=waiting, agents=agents, answerers=answerers, rate=200, answers=answers)
        for agents, answerers in ((1, 1), (4, 2))
    ]
    with places() as makers:
        found = [measure(make(), load) for load in loads for make in makers]
        waits: list[tuple[str, Place | None]] = [(BARE, None)]
        for make in makers:
            kind, _ = place = make()
            waits.append((f'in the inbox, {kind}', place))
        taken = [
            (name, memory_kb(place, waiting, 'traced'), memory_kb(place, waiting, 'resident')) for name, place in waits
        ]
    text = page(found, taken, (before, os.getloadavg()[0]))
    print(text, end='')
    if options.write is not None:
        options.write.write_text(text, encoding='utf-8')


if __name__ == '__main__':
    main()
