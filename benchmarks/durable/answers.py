"""Measure how soon runs go on after answers that come at a steady rate, and after many answers at once."""

from __future__ import annotations

import asyncio
import os
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import quantiles

from tool_approval.durable import open_store
from tool_approval.inbox import Approver, Inbox, InboxEntry

from benchmarks.inbox import Place
from tool_approval import ApprovalDecision

from .workers import PLAIN, Worker, plain_worker, url_of, worker

P99_LIMIT_S = 1.0

RATE = 20

BURST = 500

BURST_AIM = 100
"""Runs a second that go on after many answers at once: an aim, no limit."""

BEGUN = 'next segment begun'


@dataclass(frozen=True, kw_only=True)
class Resumed:
    """How soon runs went on."""

    store: str
    """The kind of the store."""
    parked: int
    """How many were parked."""
    answers: int
    """How many were answered, at `RATE`."""
    delays: dict[str, list[float]]
    """Seconds from the answer, by what happened; sorted."""
    lost: int
    """Runs that did not go on."""
    twice: int
    """Calls that were executed again."""
    load: float
    """The load average at the end."""

    def percentile(self, kind: str, percent: int) -> float:
        """Delay that so many of 100 delays are below."""
        return quantiles(self.delays[kind], n=100)[percent - 1]


def measure_resumed(place: Place, parked: int, answers: int) -> Resumed:
    """Answer some of the parked runs at a steady rate, while two new processes work."""
    url = url_of(place)
    processes = [Worker(worker, url, 'required') for _ in range(2)]
    answered = asyncio.run(_answer(url, answers))
    time.sleep(5.0)  # five times the limit: what has not ended by now is lost
    happened: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for process in processes:
        for kind, run_id, at in process.stamps():
            happened[kind][run_id].append(at)
        process.stop()
    names = {'began 1': BEGUN, 'ended': 'run ended'}
    return Resumed(
        store=place[0],
        load=os.getloadavg()[0],
        parked=parked,
        answers=answers,
        delays={
            name: sorted(min(happened[kind][run]) - at for run, at in answered.items() if run in happened[kind])
            for kind, name in names.items()
        },
        lost=len(answered.keys() - happened['ended'].keys()) + answers - len(answered),
        twice=sum(len(times) - 1 for times in happened['executed'].values()),
    )


async def _open(inbox: Inbox, answers: int) -> list[InboxEntry]:
    """Questions to answer, without the copies of runs."""
    return [each for each in await inbox.open(100_000) if '+' not in each.id][:answers]


async def _approve(inbox: Inbox, entry: InboxEntry) -> None:
    await inbox.decide(entry.id, ApprovalDecision(approved=True), by=Approver(id='ada'), digest=entry.digest)


async def _answer(url: str, answers: int) -> dict[str, float]:
    """When each run was answered."""
    answered: dict[str, float] = {}
    with Inbox(open_store(url).inbox_store) as inbox:
        entries = await _open(inbox, answers)
        begin = time.monotonic() + 1.0
        for number, entry in enumerate(entries):
            await asyncio.sleep(begin + number / RATE - time.monotonic())
            answered[str(entry.request.args['number'])] = time.monotonic()
            await _approve(inbox, entry)
    return answered


@dataclass(frozen=True, kw_only=True)
class Burst:
    """How fast runs went on after many answers at once. All times are from the first answer, in seconds."""

    store: str
    """The kind of the store."""
    program: str
    """Durable runs, or workflows of DBOS that start at once."""
    answers: int
    """How many were given at once."""
    answered: float | None
    """Until the last answer was stored."""
    begun: float
    """Until the next segment of the last run had begun."""
    ended: float
    """Until the last run had ended."""
    cpu_s: float
    """Processor time of the two worker processes."""
    load: float
    """The load average at the end."""

    @property
    def rate(self) -> float:
        """Runs that ended, a second."""
        return self.answers / self.ended


def measure_burst(place: Place, answers: int) -> Burst:
    """Answer parked runs all at once, while two new processes work, and wait until these runs have ended."""
    url = url_of(place)
    processes = [Worker(worker, url, 'required') for _ in range(2)]

    async def answer() -> tuple[float, float]:
        with Inbox(open_store(url).inbox_store) as inbox:
            entries = await _open(inbox, answers)
            assert len(entries) == answers, 'so many are parked'
            begin = time.monotonic()
            await asyncio.gather(*(_approve(inbox, entry) for entry in entries))
            return begin, time.monotonic()

    cpu_s = sum(each.cpu_s for each in processes)
    begin, answered = asyncio.run(answer())
    begun, ended, taken_s = _ends(processes, answers, begin, 'began 1')
    return Burst(
        store=place[0],
        program='durable runs',
        answers=answers,
        answered=answered - begin,
        begun=begun,
        ended=ended,
        cpu_s=taken_s - cpu_s,
        load=os.getloadavg()[0],
    )


def measure_plain_burst(place: Place, runs: int) -> Burst:
    """Let two processes start as many workflows of DBOS with the same steps, and wait until these have ended."""
    processes = [Worker(plain_worker, url_of(place)) for _ in range(2)]
    cpu_s, begin = sum(each.cpu_s for each in processes), time.monotonic()
    for number in range(runs):
        processes[number % 2].send(str(number))
    begun, ended, taken_s = _ends(processes, runs, begin, 'began 0')
    return Burst(
        store=place[0],
        program=PLAIN,
        answers=runs,
        answered=None,
        begun=begun,
        ended=ended,
        cpu_s=taken_s - cpu_s,
        load=os.getloadavg()[0],
    )


def _ends(processes: Sequence[Worker], runs: int, begin: float, first: str) -> tuple[float, float, float]:
    """Seconds until the last run began and ended, and the processor time of the processes since they exist."""
    until = begin + 120
    last: dict[str, dict[str, float]] = {}
    while len(last.get('ended', ())) < runs and time.monotonic() < until:
        time.sleep(0.2)
        last = defaultdict(dict)
        for kind, run_id, at in (stamp for process in processes for stamp in process.stamps()):
            last[kind][run_id] = at
    taken_s = sum(each.cpu_s for each in processes)
    for process in processes:
        process.stop()
    assert len(last['ended']) == runs, 'every run ends'
    return max(last[first].values()) - begin, max(last['ended'].values()) - begin, taken_s
