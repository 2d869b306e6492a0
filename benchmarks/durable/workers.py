"""The processes that execute the runs of a measurement, and the runs."""

from __future__ import annotations

import asyncio
import base64
import gc
import os
import random
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from psycopg.conninfo import conninfo_to_dict
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_deferred import Agent
from tool_approval.durable import DurableStore, RunRow, open_store
from tool_approval.durable.engine import DBOSEngine, engine_url
from tool_approval.integrations.pydantic_ai import Approvals
from tool_approval.integrations.pydantic_ai.durable import DurableAgent

from benchmarks.inbox import SPAWN, Place

Stamp: TypeAlias = tuple[str, str, float]
"""An event, the id of its run, and its time in seconds."""


PLAIN = 'DBOS workflow'


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

    @property
    def cpu_s(self) -> float:
        """Processor time that it has taken, in seconds."""
        fields = Path(f'/proc/{self._process.pid}/stat').read_text(encoding='utf-8').rpartition(')')[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')

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
        while await asyncio.to_thread(self._pipe.recv) != 'stop':
            self.answer(_cost())


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

    def resume_and_tell(run_id: str, segment: int, **keywords: Any) -> RunRow | None:
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
        async with durable_agent(url, link, policy).worker():
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

        engine = DBOSEngine(engine_url(url), 'plain', run, worker=secrets.token_urlsafe(16), polling_s=5.0)
        await asyncio.to_thread(engine.start)
        link.answer('ready')
        while (order := await asyncio.to_thread(pipe.recv)) != 'stop':
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
