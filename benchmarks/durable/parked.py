"""Measure what parked runs take: space in the store, and resources of a worker."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psycopg
from tool_approval.durable import open_store

from benchmarks.inbox import Place

from .workers import Cost, Worker, await_open, start_runs, url_of, worker

BYTES_LIMIT = 15 * 1024

PARKED = 10_000


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
    size_before = sizes(place)
    begin = time.monotonic()
    start_runs(url, range(runs // 10, runs))
    await_open(url, runs)
    seconds = time.monotonic() - begin
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
