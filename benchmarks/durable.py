"""Measure durable runs: `python -m benchmarks.durable`, `make bench-durable`.

Thousands of runs are parked, and cost a worker nothing; answers come at a steady rate, and workers go on; one approved
call is compared with the same DBOS steps without a question, and with LangGraph's PostgreSQL checkpointer.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import gc
import json
import os
import platform
import random
import secrets
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median, quantiles
from typing import Any, TypeAlias
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_deferred import Agent
from tool_approval.durable import DurableStore, open_store
from tool_approval.durable.engine import DBOSEngine, engine_url
from tool_approval.inbox import Approver, Inbox
from tool_approval.integrations.pydantic_ai import Approvals
from tool_approval.integrations.pydantic_ai.durable import DurableAgent

from maintainers.peers.catalog import Environment
from maintainers.peers.environments import REPOSITORY, InstallError, python_of
from tool_approval import ApprovalDecision

from .durable_faults import OURS, disturb
from .inbox import SPAWN, Place, places
from .spread import Spread, ratios, spread

BYTES_LIMIT = 15 * 1024
P99_LIMIT_S = 1.0
COST_LIMIT = 4.0
POLLING_S = 0.05
RATE = 20
PARKED = 10_000

BEGUN = 'next segment begun'

LANGGRAPH = Environment(
    name='langgraph-postgres',
    installs=(('langgraph==1.2.22', 'langgraph-checkpoint-postgres==3.2.0', 'psycopg[binary]==3.3.9'),),
)

Stamp: TypeAlias = tuple[str, str, float]
"""An event, the id of its run, and its time in seconds."""


class Worker:
    """The parent's end of a worker process."""

    def __init__(self, target: Callable[..., None], *arguments: object) -> None:
        """Start it, and wait until it works."""
        self._pipe, theirs = SPAWN.Pipe()
        self._process = SPAWN.Process(target=target, args=(theirs, *arguments))
        self._process.start()
        self._stamps: list[Stamp] = []
        self._answers: list[Any] = []
        self._came = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()
        self.answer()

    def ask(self, order: str) -> Any:
        """Send an order, and wait for what it sends back."""
        self.send(order)
        return self.answer()

    def send(self, order: object) -> None:
        """Send an order."""
        self._pipe.send(order)

    def answer(self) -> Any:
        """Wait for what it sends."""
        with self._came:
            assert self._came.wait_for(lambda: self._answers, 120), 'the worker does not answer'
            return self._answers.pop(0)

    def stamps(self) -> list[Stamp]:
        """All so far."""
        with self._came:
            return list(self._stamps)

    def stamp(self, kind: str, run_id: str) -> float:
        """Wait for one."""
        found: list[float] = []

        def is_there() -> bool:
            found[:] = [at for what, which, at in self._stamps[-20:] if (what, which) == (kind, run_id)]
            return bool(found)

        with self._came:
            assert self._came.wait_for(is_there, 60), f'{run_id} is not {kind}'
        return found[-1]

    def stop(self) -> None:
        """End it."""
        self._pipe.send('stop')
        self._process.join()

    def _read(self) -> None:
        while True:
            try:
                kind, sent = self._pipe.recv()
            except (EOFError, OSError):
                return
            with self._came:
                if kind == 'stamp':
                    self._stamps.append(sent)
                else:
                    self._answers.append(sent)
                self._came.notify_all()


class Link:
    """A worker's own end."""

    def __init__(self, pipe: Connection[Any, Any]) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()

    def stamp(self, kind: str, run_id: str) -> None:
        """Say that something has happened."""
        at = time.monotonic()
        with self._lock:
            self._pipe.send(('stamp', (kind, run_id, at)))

    def answer(self, sent: object) -> None:
        """Send what was asked for."""
        with self._lock:
            self._pipe.send(('answer', sent))

    async def orders(self) -> None:
        """Do what is ordered, until the end."""
        while (order := await asyncio.to_thread(self._pipe.recv)) != 'stop':
            self.answer(_cost() if order == 'cost' else time.process_time())


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Tasks, threads, open files and memory of a process."""

    tasks: int
    threads: int
    descriptors: int
    resident: int


def _cost() -> Cost:
    gc.collect()
    found: list[asyncio.Task[Any]] = [each for each in gc.get_objects() if isinstance(each, asyncio.Task)]
    return Cost(
        tasks=sum(not each.done() for each in found),
        threads=len(os.listdir('/proc/self/task')),
        descriptors=len(os.listdir('/proc/self/fd')),
        resident=int(Path('/proc/self/statm').read_text().split()[1]) * os.sysconf('SC_PAGE_SIZE'),
    )


def _respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    if isinstance(messages[-1].parts[-1], ToolReturnPart):
        return ModelResponse(parts=[TextPart('done')])
    [prompt] = [part for part in messages[0].parts if isinstance(part, UserPromptPart)]
    number = int(str(prompt.content))
    # 500 characters that no database makes smaller than their information is.
    text = base64.b64encode(random.Random(number).randbytes(375)).decode()
    arguments = {'to': 'bob@example.com', 'text': text, 'number': number}
    return ModelResponse(parts=[ToolCallPart('send_mail', arguments, f'call-{prompt.content}')])


def durable_agent(url: str, link: Link | None, policy: str) -> DurableAgent[object, str]:
    """Make the agent that is measured; `link` receives the events of its runs."""
    agent = Agent(
        FunctionModel(_respond),
        name='mailer',
        capabilities=[DBOSDurability(), Approvals({'send_mail': {'approval': policy}})],
    )

    @agent.tool_plain(requires_approval=True)
    def send_mail(to: str, text: str, number: int) -> str:
        """Send a mail."""
        if link is not None:
            link.stamp('executed', str(number))
        return 'sent'

    durable = DurableAgent(agent, store=url)
    if link is not None:
        _tell(durable.store, link)
    return durable


def _tell(store: DurableStore, link: Link) -> None:
    resume, park, finish = store.resume, store.park, store.finish

    def resume_and_tell(run_id: str, segment: int, **keywords: Any) -> bool:
        link.stamp(f'began {segment}', run_id)
        return resume(run_id, segment, **keywords)

    def park_and_tell(run_id: str, *arguments: Any, **keywords: Any) -> bool:
        done = park(run_id, *arguments, **keywords)
        link.stamp('parked', run_id)
        return done

    def finish_and_tell(run_id: str, *arguments: Any, **keywords: Any) -> bool:
        done = finish(run_id, *arguments, **keywords)
        link.stamp('ended', run_id)
        return done

    store.resume, store.park, store.finish = resume_and_tell, park_and_tell, finish_and_tell


def worker(pipe: Connection[Any, Any], url: str, policy: str) -> None:
    """A process that runs segments."""

    async def serve() -> None:
        link = Link(pipe)
        async with durable_agent(url, link, policy).worker(polling=POLLING_S):
            link.answer('ready')
            await link.orders()

    asyncio.run(serve())


def plain_worker(pipe: Connection[Any, Any], url: str) -> None:
    """A process that runs the same steps as a workflow of DBOS, and knows nothing of approval."""

    async def serve() -> None:
        link = Link(pipe)
        agent = Agent(FunctionModel(_respond), name='plain', capabilities=[DBOSDurability()])

        @agent.tool_plain
        async def send_mail(to: str, text: str, number: int) -> str:
            """Send a mail."""

            async def send() -> str:
                link.stamp('executed', str(number))
                return 'sent'

            return await engine.record('send', send)

        async def run(run_id: str, segment: int) -> None:
            link.stamp('began 0', run_id)
            await agent.run(run_id)
            link.stamp('ended', run_id)

        engine = DBOSEngine(engine_url(url), 'plain', run, worker=secrets.token_urlsafe(16), polling_s=POLLING_S)
        await asyncio.to_thread(engine.start)
        link.answer('ready')
        while (order := await asyncio.to_thread(pipe.recv)) != 'stop':
            if order == 'cpu':
                link.answer(time.process_time())
            else:
                await asyncio.to_thread(engine.begin, [(order, 0)])
        await asyncio.to_thread(engine.close)

    asyncio.run(serve())


def url_of(place: Place) -> str:
    """The URL of a store there."""
    kind, where = place
    if kind == 'SQLite':
        return f'sqlite:///{where}'
    given = conninfo_to_dict(where)
    return f'postgresql://{given["user"]}@/{given["dbname"]}?host={quote(str(given["host"]), safe="")}'


def start_runs(url: str, numbers: Sequence[int]) -> None:
    """Start runs, which workers have to take."""

    async def start() -> None:
        durable = durable_agent(url, None, 'required')
        for number in numbers:
            await durable.start(str(number), run_id=str(number))
        durable.store.close()

    asyncio.run(start())


def await_open(url: str, count: int) -> None:
    """Wait until so many runs are parked."""
    store = open_store(url)
    waiting = 0
    while waiting < count:
        time.sleep(0.5)
        with store.inbox_store.reading() as execute:
            [(waiting,)] = execute("SELECT count(*) FROM runs WHERE status = 'waiting'").fetchall()
    store.close()


@dataclass(frozen=True, kw_only=True)
class Parked:
    """Space and resources that parked runs take."""

    store: str
    """The kind of the store."""
    runs: int
    """How many there are."""
    seconds: float
    """How long it took to park them, in one worker."""
    bytes: dict[str, float]
    """In the store for each, by what it is for."""
    history: float
    """The bytes of these that are the history."""
    worker: dict[str, float]
    """Growth of the worker that parked the runs, for each run after the first tenth."""
    idle: dict[str, float]
    """Growth of a new worker for each run, compared with a worker without runs."""
    load: float
    """The load average at the end."""

    @property
    def overhead(self) -> float:
        """Bytes for each run, beyond its history."""
        return sum(self.bytes.values()) - self.history


def copy_runs(place: Place, copies: int) -> None:
    """Copy each parked run so many times. The copies are never answered, but every sweep reads them."""
    numbers = ' UNION ALL '.join(f'SELECT {number} AS copy' for number in range(copies))
    change = 'change, ' if place[0] == 'SQLite' else ''
    runs = 'agent, status, segment, state, outcome, created_at, changed_at'
    requests = f'state, posted_at, {change}content, deadline'
    store = open_store(url_of(place))
    with store.inbox_store.transaction() as execute:
        execute(
            f"INSERT INTO requests (id, owner, run, {requests}) SELECT id || '+' || copy, owner, run || '+' || copy, "
            f'{requests} FROM requests CROSS JOIN ({numbers}) AS copies'
        )
        execute(
            f"INSERT INTO runs (id, {runs}) SELECT id || '+' || copy, {runs} FROM runs CROSS JOIN ({numbers}) AS copies"
        )
    store.close()


def measure_parked(place: Place, empty: Place, runs: int) -> Parked:
    """Park runs, and see what they take. They stay parked, with copies of them where they are less than `PARKED`."""
    url = url_of(place)
    process = Worker(worker, url, 'required')
    start_runs(url, range(runs // 10))
    await_open(url, runs // 10)
    time.sleep(2.0)
    before = process.ask('cost')
    size_before = sizes(place)
    begin = time.monotonic()
    start_runs(url, range(runs // 10, runs))
    await_open(url, runs)
    seconds = time.monotonic() - begin
    time.sleep(2.0)
    grown = _difference(before, process.ask('cost'), runs - runs // 10)
    process.stop()
    size = sizes(place)
    more = {name: (size[name] - size_before[name]) / (runs - runs // 10) for name in size}
    history = _history(url, runs)
    copies = PARKED // runs - 1
    if copies:
        copy_runs(place, copies)
    return Parked(
        store=place[0],
        load=os.getloadavg()[0],
        runs=runs,
        seconds=seconds,
        bytes=more,
        history=history,
        worker=grown,
        idle=_difference(_idle(url_of(empty)), _idle(url), runs * (copies + 1)),
    )


def _idle(url: str) -> Cost:
    process = Worker(worker, url, 'required')
    time.sleep(5.0)
    cost: Cost = process.ask('cost')
    process.stop()
    return cost


def _difference(before: Cost, after: Cost, runs: int) -> dict[str, float]:
    return {
        name: (getattr(after, name) - getattr(before, name)) / runs
        for name in ('tasks', 'threads', 'descriptors', 'resident')
    }


def _history(url: str, runs: int) -> float:
    store = open_store(url)
    states = [json.loads(row.state)['history'] for row in store.list_runs('waiting', runs)]
    store.close()
    return sum(len(json.dumps(each, separators=(',', ':'))) for each in states) / len(states)


def sizes(place: Place) -> dict[str, int]:
    """Bytes in the store, with indexes and what is not yet cleaned up, by what they are for."""
    kind, where = place
    if kind == 'SQLite':
        store = Path(where)
        for each in store.parent.glob('*.sqlite'):
            with closing(sqlite3.connect(each)) as database:
                database.execute('PRAGMA wal_checkpoint(TRUNCATE)')
        files = [store, store.with_name(f'{store.stem}.dbos{store.suffix}')]
        return {
            name: sum(each.stat().st_size for each in path.parent.glob(f'{path.name}*'))
            for name, path in zip(('runs and requests', 'DBOS'), files, strict=True)
        }
    with psycopg.connect(where) as connection:
        found = connection.execute(
            "SELECT CASE WHEN schemaname = 'tool_approval' THEN tablename ELSE 'DBOS' END, "
            "sum(pg_total_relation_size(format('%I.%I', schemaname, tablename)::regclass)) FROM pg_tables "
            "WHERE schemaname IN ('tool_approval', 'tool_approval_dbos') GROUP BY 1"
        )
        taken = {name: int(size) for name, size in found}
        return {name: taken[name] for name in ('runs', 'requests', 'DBOS')}


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
    names = {'began 1': BEGUN, 'executed': 'call executed', 'ended': 'run ended'}
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


async def _answer(url: str, answers: int) -> dict[str, float]:
    """When each run was answered."""
    answered: dict[str, float] = {}
    with Inbox(open_store(url).inbox_store) as inbox:
        entries = [each for each in await inbox.open(100_000) if '+' not in each.id][:answers]
        begin = time.monotonic() + 1.0
        for number, entry in enumerate(entries):
            await asyncio.sleep(begin + number / RATE - time.monotonic())
            answered[str(entry.request.args['number'])] = time.monotonic()
            await inbox.decide(entry.id, ApprovalDecision(approved=True), by=Approver(id='ada'), digest=entry.digest)
    return answered


@dataclass(kw_only=True)
class Story:
    """One call after the other, one way."""

    whole: list[float] = field(default_factory=list[float])
    """Seconds from the start of a run to its end."""
    begun: list[float] = field(default_factory=list[float])
    """Seconds from the beginning of its first segment to its end."""
    cpu: list[float] = field(default_factory=list[float])
    """Seconds of computing in the worker."""


def story_of_ours(url: str, runs: int, policy: str) -> Story:
    """Runs that ask, and are answered at once; or that need not ask."""
    told = Story()
    process = Worker(worker, url, policy)

    async def run_all() -> None:
        durable = durable_agent(url, None, policy)
        with Inbox(open_store(url).inbox_store) as inbox:
            for number in range(runs):
                run_id, before = str(number), process.ask('cpu')
                begin = time.monotonic()
                await durable.start(run_id, run_id=run_id)
                if policy == 'required':
                    await asyncio.to_thread(process.stamp, 'parked', run_id)
                    [entry] = await inbox.open()
                    yes = ApprovalDecision(approved=True)
                    await inbox.decide(entry.id, yes, by=Approver(id='ada'), digest=entry.digest)
                _note(told, process, run_id, begin, before)
        durable.store.close()

    asyncio.run(run_all())
    process.stop()
    return told


def story_of_dbos(url: str, runs: int) -> Story:
    """The same steps without a question."""
    told = Story()
    process = Worker(plain_worker, url)
    for number in range(runs):
        before, begin = process.ask('cpu'), time.monotonic()
        process.send(str(number))
        _note(told, process, str(number), begin, before)
    process.stop()
    return told


def _note(told: Story, process: Worker, run_id: str, begin: float, cpu: float) -> None:
    ended = process.stamp('ended', run_id)
    if run_id != '0':  # the first one also pays for what is made once
        told.whole.append(ended - begin)
        told.begun.append(ended - process.stamp('began 0', run_id))
        told.cpu.append(process.ask('cpu') - cpu)


def measure_stories(make: Callable[[], Place], runs: int, rounds: int) -> dict[str, list[Story]]:
    """Each way again and again, in turns."""
    told: dict[str, list[Story]] = defaultdict(list)
    for _ in range(rounds):
        told[ASKED].append(story_of_ours(url_of(make()), runs, 'required'))
        told[UNASKED].append(story_of_ours(url_of(make()), runs, 'none'))
        told[PLAIN].append(story_of_dbos(url_of(make()), runs))
    return told


def langgraph(dsn: str, runs: int) -> dict[str, Spread] | str:
    """Seconds of a run on LangGraph's checkpointer, asked and unasked; or why there are none."""
    try:
        python = python_of(LANGGRAPH)
    except InstallError as error:
        return str(error)
    command = [str(python), '-m', 'benchmarks.durable_langgraph', dsn, str(runs)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    return {name: spread(taken[1:]) for name, taken in json.loads(done.stdout).items()}


ASKED, UNASKED, PLAIN = 'durable run, approved at once', 'durable run, no question', 'DBOS workflow'


def milliseconds(of: Spread) -> str:
    """Median and quartiles."""
    return f'{of.median * 1000:.0f} [{of.lower * 1000:.0f}–{of.upper * 1000:.0f}] ms'


def page(
    parked: Sequence[Parked],
    resumed: Sequence[Resumed],
    stories: dict[str, dict[str, list[Story]]],
    other: dict[str, Spread] | str | None,
    minutes: float,
) -> str:
    """The page of the documentation."""
    lines = [
        '# Benchmarks of durable runs',
        '',
        'Written by `python -m benchmarks.durable --write PATH`; `make bench-durable` prints the same figures.',
        (
            f'Measured on CPython {platform.python_version()}, {platform.system()} {platform.machine()}, '
            f'{os.cpu_count()} processors, shared by all processes and the database.'
        ),
        f'The measurements took {minutes:.0f} minutes; parking the runs took most of this time.',
        '"Load" is the load average of the last minute.',
        f'SQLite and PostgreSQL both synced to the disk. DBOS looked for work every {POLLING_S * 1000:.0f} ms.',
        '',
        '## Parked runs',
        '',
        'Each parked run has called a tool with 500 characters of text, and waits for an approver.',
        (
            f'After the sizes were measured, each store with fewer than {PARKED} runs was filled up to {PARKED} with '
            'copies of its runs.'
        ),
        'Sizes are bytes per run, including indexes. The history contains the messages to and from the model.',
        f'A run may take at most {BYTES_LIMIT} bytes in addition to its history.',
        '',
        '| store | runs | time to park | bytes in | total | history | beyond the history | load | verdict |',
        f'|{" --- |" * 9}',
    ]
    for each in parked:
        by = ', '.join(f'{name} {size:.0f}' for name, size in each.bytes.items())
        verdict = 'met' if each.overhead <= BYTES_LIMIT else '**MISSED**'
        total = sum(each.bytes.values())
        taken = f'{each.seconds:.0f} s'
        cells = (each.store, each.runs, taken, by, f'{total:.0f}', f'{each.history:.0f}', f'{each.overhead:.0f}')
        lines.append(f'| {" | ".join(map(str, cells))} | {each.load:.1f} | {verdict} |')
    lines += [
        '',
        'The next table shows how many more tasks, threads, open files and bytes a worker needs for each parked run.',
        'The new worker was started after the runs were parked, and is compared with a new worker on an empty store.',
        'For the worker that parked the runs, growth is counted from the moment when a tenth of the runs was parked.',
        'Open files include connections. The last column shows how much the resident memory of the worker grew.',
        '',
        '| store | worker | tasks | threads | open files | bytes of memory |',
        f'|{" --- |" * 6}',
    ]
    for each in parked:
        for name, cost in (('new', each.idle), ('parked the runs', each.worker)):
            few = ' | '.join(f'{cost[kind]:.3f}' for kind in ('tasks', 'threads', 'descriptors'))
            lines.append(f'| {each.store} | {name} | {few} | {cost["resident"]:.0f} |')
    lines += [
        '',
        '## Answers',
        '',
        f'Approvers answer {RATE} requests per second, and two new worker processes continue the runs.',
        'A delay is the number of seconds from the answer to the event in the column "until".',
        f'On PostgreSQL, 99 of 100 answers must be followed by the next segment within {P99_LIMIT_S:g} s.',
        '',
        '| store | parked | answers | until | median | 99 of 100 | longest | lost | executed twice | load | verdict |',
        f'|{" --- |" * 11}',
    ]
    for each in resumed:
        for kind, delays in each.delays.items():
            p99 = each.percentile(kind, 99)
            is_limited = kind == BEGUN and each.store == 'PostgreSQL'
            verdict = '' if not is_limited else 'met' if p99 <= P99_LIMIT_S else '**MISSED**'
            cells = (each.store, each.parked, each.answers, kind, f'{each.percentile(kind, 50):.3f}', f'{p99:.3f}')
            tail = (f'{delays[-1]:.3f}', each.lost, each.twice, f'{each.load:.1f}', verdict)
            lines.append(f'| {" | ".join(map(str, (*cells, *tail)))} |')
    lines += [
        '',
        '## One approved call',
        '',
        'A run calls one tool and ends.',
        'The run is compared with a DBOS workflow of the same steps (model, tool, model) in the same queue.',
        'Each figure is a median in milliseconds.',
        'The column "from the start" shows the time from when another process starts the run until the run ends.',
        'The column "from the first segment" shows the time from when the first segment begins until the run ends.',
        'For an approved run, each of these two times includes the wait for the answer and a second wait in the queue.',
        'The column "processor" shows the processor time of the worker.',
        'The three programs took turns. Each ratio compares measurements of the same turn.',
        'The table shows the median ratio for each of these three columns, with quartiles in brackets.',
        (
            'The limit applies to the column "from the start": a run that is approved immediately may take at most '
            f'{COST_LIMIT:g} times as long as the DBOS workflow.'
        ),
        '',
        '| store | program | from the start | from the first segment | processor | ratios to DBOS | verdict |',
        f'|{" --- |" * 7}',
    ]
    for store, told in stories.items():
        base = [[median(getattr(each, kind)) for each in told[PLAIN]] for kind in ('whole', 'begun', 'cpu')]
        for name, each_round in told.items():
            taken = [[median(getattr(each, kind)) for each in each_round] for kind in ('whole', 'begun', 'cpu')]
            to_plain = [ratios(zip(ours, plain, strict=True)) for ours, plain in zip(taken, base, strict=True)]
            shown = ' | '.join(f'{median(each) * 1000:.0f}' for each in taken)
            verdict = '' if name != ASKED else 'met' if to_plain[0].median <= COST_LIMIT else '**MISSED**'
            by = ', '.join(f'{each.median:.1f} [{each.lower:.1f}–{each.upper:.1f}]' for each in to_plain)
            lines.append(f'| {store} | {name} | {shown} | {by} | {verdict} |')
    lines.append('')
    if isinstance(other, str):
        lines.append(f'LangGraph was not measured: {other}')
    elif other is not None:
        lines += [
            'The same run was measured in LangGraph with its PostgreSQL checkpointer, in one process without a queue.',
            f'A LangGraph run that is answered at once took {milliseconds(other["asked"])}.',
            f'A LangGraph run without a question took {milliseconds(other["unasked"])}.',
            'If the process of a LangGraph run ends, no worker continues the run.',
            'When your program resumes the run, a call that was being executed may be executed again.',
        ]
    return '\n'.join(lines) + '\n'


def main() -> None:
    """Measure, print the page, and write it where that was asked for. A missed limit is printed, and no failure."""
    parser = argparse.ArgumentParser(prog='python -m benchmarks.durable', description=__doc__)
    parser.add_argument('--quick', action='store_true', help='measure little')
    parser.add_argument('--write', type=Path, metavar='PATH', help='also write the page, as Markdown')
    parser.add_argument('--runs', type=int, metavar='N', default=PARKED, help='runs to park on PostgreSQL')
    parser.add_argument('--sqlite-runs', type=int, metavar='N', default=2_000, help='runs to park on SQLite')
    parser.add_argument('--rounds', type=int, metavar='N', default=5, help='how often a call is compared')
    parser.add_argument('--faults', action='store_true', help='disturb runs and look for an effect too many instead')
    parser.add_argument('--disturbed-runs', type=int, metavar='N', default=50, help='runs to disturb on each store')
    parser.add_argument('--seed', type=int, default=0, help='seed of the disturbances')
    parser.add_argument('--agent', metavar='MODULE:FUNCTION', default=OURS, help='function that makes an agent')
    options = parser.parse_args()
    if options.faults:
        with places() as makers, tempfile.TemporaryDirectory() as folder:
            made = [make() for make in makers]
            count = sum(
                disturb(
                    store,
                    place,
                    url_of((store, place)),
                    options.agent,
                    options.disturbed_runs,
                    options.seed,
                    Path(folder),
                )
                for store, place in made
            )
        raise SystemExit(1 if count else 0)
    parked: list[Parked] = []
    resumed: list[Resumed] = []
    stories: dict[str, dict[str, list[Story]]] = {}
    other: dict[str, Spread] | str | None = None
    begin = time.monotonic()
    with places(syncs=True) as makers:
        for make in reversed(makers):
            place = make()
            store, _ = place
            count = 200 if options.quick else options.sqlite_runs if store == 'SQLite' else options.runs
            stories[store] = measure_stories(make, 10, 1 if options.quick else options.rounds)
            if store == 'PostgreSQL':
                other = langgraph(make()[1], 10 if options.quick else 200)
            print(f'{store}: stories measured', file=sys.stderr)
            parked.append(measure_parked(place, make(), count))
            print(f'{store}: parked', file=sys.stderr)
            resumed.append(measure_resumed(place, PARKED // count * count, min(count, 2000) // 2))
    text = page(parked, resumed, stories, other, (time.monotonic() - begin) / 60)
    print(text, end='')
    if options.write is not None:
        options.write.write_text(text, encoding='utf-8')


if __name__ == '__main__':
    main()
