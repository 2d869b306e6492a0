"""Durable runs as their worker leaves them in the store."""

import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from tool_approval.durable import DurableStore, ExecutionRow, RunRow
from tool_approval.durable.store import about_unknown, derived_id
from tool_approval.inbox import Content, Row
from tool_approval.inbox.entry import write_content

from tests.approval.parts import NOON
from tool_approval import ApprovalRequest

SOON = NOON + timedelta(seconds=1)
CALL = ExecutionRow(
    key='key', attempt=1, run_id='order-17', tool_name='pay', tool_call_id='c1', idempotency_key='once', changed_at=NOON
)


def asked(tool_name='pay', call='c1', **content) -> Row:
    """A request of the run, as it is posted."""
    request = ApprovalRequest(tool_name=tool_name, args={'to': 'bob'}, tool_call_id=call, run_id='order-17')
    return Row(
        id=secrets.token_urlsafe(32),
        owner='worker',
        content=write_content(Content(request=request, **content)),
        posted_at=NOON,
    )


def asked_again(store: DurableStore) -> Row:
    """The question whether to run `CALL`, whose outcome is unknown, again."""
    return replace(asked(), id=derived_id(store.secret(), 'order-17', about_unknown(CALL.key, CALL.attempt)))


def waiting(store: DurableStore, *requests: Row, run_id='order-17', agent='shop') -> None:
    """A run that is parked with these requests."""
    assert store.add_run(RunRow(id=run_id, agent=agent, state='{}', created_at=NOON, changed_at=NOON))
    assert store.park(run_id, 0, '{}', requests, at=SOON)


def below(store: DurableStore, *requests: Row, run_id='lookup') -> None:
    """A run that is nested in the run `order-17`, and is parked with these requests."""
    made = RunRow(id=run_id, agent='shop/clerk', state='{}', created_at=NOON, changed_at=NOON, parent='order-17')
    assert store.add_run(made)
    assert store.park(run_id, 0, '{}', requests, at=SOON)


def executing(store: DurableStore, row: ExecutionRow = CALL) -> ExecutionRow:
    """A call that its worker is executing."""
    assert store.add_execution(row)
    for state in ('reserved', 'executing'):
        assert store.move(row, state, owner='worker', at=SOON)
        row = replace(row, state=state, owner='worker', changed_at=SOON)
    return replace(row, started_at=SOON)


def unknown(store: DurableStore, row: ExecutionRow = CALL) -> ExecutionRow:
    """A call whose worker has died in the middle."""
    row = executing(store, row)
    assert store.release('worker', 0, at=SOON) == 1
    return replace(row, state='unknown')


def change(store: DurableStore, statement: str, *values: object) -> None:
    """Change the store as another program would."""
    with store.inbox_store.transaction() as execute:
        execute(statement, values)


def eventually(condition: Callable[[], object]) -> None:
    """Wait until something is so."""
    ends_at = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < ends_at
        time.sleep(0.02)
