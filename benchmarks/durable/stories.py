"""Compare runs with one approved call with the same steps without a question."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable

from tool_approval.durable import open_store
from tool_approval.inbox import Approver, Inbox

from benchmarks.inbox import Place
from tool_approval import ApprovalDecision

from .workers import PLAIN, Worker, durable_agent, plain_worker, url_of, worker

COST_LIMIT = 4.0

ASKED, UNASKED = 'durable run, approved at once', 'durable run, no question'


def story_of_ours(url: str, runs: int, policy: str) -> list[float]:
    """Seconds from the start of each run to its end: runs that ask, and are answered at once; or that need not ask."""
    took: list[float] = []
    process = Worker(worker, url, policy)

    async def run_all() -> None:
        durable = durable_agent(url, None, policy)
        with Inbox(open_store(url).inbox_store) as inbox:
            for number in range(runs):
                run_id, begin = str(number), time.monotonic()
                await durable.start(run_id, run_id=run_id)
                if policy == 'required':
                    await asyncio.to_thread(process.stamp, 'parked', run_id)
                    [entry] = await inbox.open()
                    yes = ApprovalDecision(approved=True)
                    await inbox.decide(entry.id, yes, by=Approver(id='ada'), digest=entry.digest)
                _note(took, process, run_id, begin)
        durable.store.close()

    asyncio.run(run_all())
    process.stop()
    return took


def story_of_dbos(url: str, runs: int) -> list[float]:
    """The same steps without a question."""
    took: list[float] = []
    process = Worker(plain_worker, url)
    for number in range(runs):
        begin = time.monotonic()
        process.send(str(number))
        _note(took, process, str(number), begin)
    process.stop()
    return took


def _note(took: list[float], process: Worker, run_id: str, begin: float) -> None:
    ended = process.stamp('ended', run_id)
    if run_id != '0':  # the first one also pays for what is made once
        took.append(ended - begin)


def measure_stories(make: Callable[[], Place], runs: int, rounds: int) -> dict[str, list[list[float]]]:
    """Each way again and again, in turns."""
    told: dict[str, list[list[float]]] = defaultdict(list)
    for _ in range(rounds):
        told[ASKED].append(story_of_ours(url_of(make()), runs, 'required'))
        told[UNASKED].append(story_of_ours(url_of(make()), runs, 'none'))
        told[PLAIN].append(story_of_dbos(url_of(make()), runs))
    return told
