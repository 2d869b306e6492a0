"""Implement `tool-approval runs`: show durable runs with their questions and calls, cancel runs, and settle calls."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

from tool_approval.core.canonical import canonical_json
from tool_approval.core.errors import NotCanonicalError
from tool_approval.durable import DurableStore, RunRow
from tool_approval.durable.steering import (
    RunDetails,
    RunView,
    Verdict,
    cancel_run,
    executions_of,
    only,
    read_run,
    settle_call,
    summary_of,
    time_text,
)
from tool_approval.inbox.stores import SQLiteStore

from .output import Output, UsageError
from .place import named_store, user

_AT_ONCE = 100
"""Maximum number of runs in memory at once. The limit saves memory, because a run may have a long history."""


def run(options: argparse.Namespace, output: Output) -> int:
    """List or show runs, cancel a run, or settle a call."""
    with closing(_existing(options.store)) as store:
        match options.action:
            case 'list':
                _list(_rows(store, options), options, output)
            case 'show':
                _show(read_run(store, options.run), options, output)
            case 'cancel':
                _cancel(store, options.run, output)
            case _:
                _settle(store, options, output)
    return 0


def _existing(place: str | None) -> DurableStore:
    """Return the store of runs. If the store's file does not exist, raise `UsageError`."""
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
            changed = f'{"damaged":16}' if row.changed_at is None else f'{row.changed_at:%Y-%m-%d %H:%M}'
            output.line(f'{row.status:9}  {changed}  {row.agent}  {row.id}')
    if is_empty and not options.json:
        output.line('there are no runs with this status' if options.status else 'there are no runs')


def _show(details: RunDetails, options: argparse.Namespace, output: Output) -> None:
    view = details.view
    if options.json:
        output.json(view.model_dump(mode='json'))
        return
    output.line(f'run {view.id} of {view.agent}, started {time_text(view.created_at)}')
    if view.parent is not None:
        output.line(f'nested in the run {view.parent}')
    output.line(f'{view.why}.')
    _show_parts(view, output)
    if view.outcome is not None:
        output.line(f'outcome: {view.outcome}')


def _show_parts(view: RunView, output: Output) -> None:
    for asked in view.requests:
        until = '' if asked.expires_at is None else f', until {time_text(asked.expires_at)}'
        what = f'{asked.tool_name} (call {asked.tool_call_id})'
        if asked.state == 'pending':
            output.line(f'open since {time_text(asked.posted_at)}{until}: {what}; {asked.approvers} may answer')
        else:
            output.line(f'asked for {what} at {time_text(asked.posted_at)}: {asked.state}')
    for each in view.executions:
        begun = 'not started' if each.started_at is None else f'started {time_text(each.started_at)}'
        output.line(
            f'call {each.tool_call_id} of {each.tool_name}, attempt {each.attempt}: {each.state}, {begun}, '
            f'changed {time_text(each.changed_at)}'
        )
        if each.is_unsettled:
            output.line(f'  the call may have run: settle it with `tool-approval runs settle`; its key is {each.key}')
    for run in view.nested:
        output.line(f'nested run {run.id} of {run.agent}: {run.status}')


def _cancel(store: DurableStore, run_id: str, output: Output) -> None:
    cancelled = cancel_run(store, run_id, at=datetime.now(UTC))
    output.line(f'cancelled {run_id}')
    for each in cancelled.executions:
        if each.state == 'executing':
            output.note(f'{each.tool_name} is still executing; the cancellation does not stop it')


def _settle(store: DurableStore, options: argparse.Namespace, output: Output) -> None:
    verdict, result = _verdict(options)
    rows = [each for each in executions_of(store, options.run) if options.call in (each.tool_call_id, each.key)]
    if len(found := [f'{each.key} ({each.tool_name})' for each in rows if each.is_unsettled]) > 1:
        raise UsageError(f'several unsettled calls have this id; give one of these keys instead: {", ".join(found)}')
    row = only(rows)
    asyncio.run(settle_call(store, row, verdict, result, by=user()))
    told = {'result': 'done, with your result', 'again': 'to be run again', 'give_up': 'given up'}[verdict]
    output.line(f'settled {row.tool_name}: {told}')


def _verdict(options: argparse.Namespace) -> tuple[Verdict, object]:
    if options.result is None:
        if not (options.again or options.give_up):
            raise UsageError('choose one: --result JSON, --again or --give-up')
        return ('again' if options.again else 'give_up'), None
    try:
        result = json.loads(options.result)
        canonical_json(result)
    except (ValueError, RecursionError, NotCanonicalError):
        raise UsageError('--result must be JSON; text needs double quotes, as in \'"paid"\'') from None
    return 'result', result
