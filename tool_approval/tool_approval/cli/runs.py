"""`tool-approval runs`: durable runs, what they wait for, and what was executed for them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

from tool_approval.durable import DurableStore, RunRow
from tool_approval.durable.steering import RunDetails, RunView, cancel_run, read_run, summary_of
from tool_approval.inbox.stores import SQLiteStore

from .output import Output, UsageError
from .place import named_store

_AT_ONCE = 100
"""Chosen: runs in memory at a time; each may have a long history."""


def run(options: argparse.Namespace, output: Output) -> int:
    """List, show or cancel runs."""
    with closing(_existing(options.store)) as store:
        match options.action:
            case 'list':
                _list(_rows(store, options), options, output)
            case 'show':
                _show(read_run(store, options.run), options, output)
            case _:
                _cancel(store, options.run, output)
    return 0


def _existing(place: str | None) -> DurableStore:
    """The store; looking does not make one."""
    store = named_store(place)
    if isinstance(store.inbox_store, SQLiteStore) and not os.path.lexists(store.inbox_store.path):
        raise UsageError(f'there is no inbox in {store.place}; name another place with `--store`')
    return store


def _rows(store: DurableStore, options: argparse.Namespace) -> Iterator[RunRow]:
    found = store.list_runs(options.status, _AT_ONCE)
    while found:
        yield from found
        found = store.list_runs(options.status, _AT_ONCE, after=found[-1].id) if len(found) == _AT_ONCE else ()


def _list(rows: Iterator[RunRow], options: argparse.Namespace, output: Output) -> None:
    is_empty = True
    for row in rows:
        is_empty = False
        if options.json:
            output.json(summary_of(row).model_dump(mode='json'))
        else:
            output.line(f'{row.status:9}  {row.changed_at:%Y-%m-%d %H:%M}  {row.agent}  {row.id}')
    if is_empty and not options.json:
        output.line('there are no such runs' if options.status else 'there are no runs')


def _show(details: RunDetails, options: argparse.Namespace, output: Output) -> None:
    view = details.view
    if options.json:
        output.json(view.model_dump(mode='json'))
        return
    output.line(f'run {view.id} of {view.agent}, started {_time(view.created_at)}')
    output.line(f'{view.why}.')
    _show_parts(view, output)
    if view.outcome is not None:
        output.line(f'outcome: {view.outcome}')


def _show_parts(view: RunView, output: Output) -> None:
    for asked in view.requests:
        until = '' if asked.expires_at is None else f', until {_time(asked.expires_at)}'
        what = f'{asked.tool_name} (call {asked.tool_call_id})'
        if asked.state == 'pending':
            output.line(f'asks for {what} since {_time(asked.posted_at)}{until}: {asked.approvers} may answer')
        else:
            output.line(f'asked for {what} at {_time(asked.posted_at)}: {asked.state}')
    for each in view.executions:
        begun = 'not started' if each.started_at is None else f'started {_time(each.started_at)}'
        output.line(
            f'call {each.tool_call_id} of {each.tool_name}, attempt {each.attempt}: {each.state}, {begun}, '
            f'changed {_time(each.changed_at)}'
        )


def _cancel(store: DurableStore, run_id: str, output: Output) -> None:
    cancelled = cancel_run(store, run_id, at=datetime.now(UTC))
    output.line(f'cancelled {run_id}')
    for each in cancelled.executions:
        if each.state == 'executing':
            output.note(f'{each.tool_name} is executed at this moment, and this does not stop it')


def _time(moment: datetime) -> str:
    return f'{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC'
