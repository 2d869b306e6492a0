"""What every implementation of a protocol must do. Call these from tests of your own; they raise `AssertionError`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from tool_approval.core.asking import ask
from tool_approval.core.protocols import ApprovalStore, ApprovalUI, AuditSink, RememberedApproval
from tool_approval.core.request import ApprovalRequest

_AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


async def check_ui(
    make_ui: Callable[[bool], ApprovalUI], *, timeout_s: float = 10.0, requests: list[ApprovalRequest] | None = None
) -> None:
    """A UI decides what its person decides, for every kind of request.

    Args:
        make_ui: Makes a UI whose person approves everything, or denies everything if it is given `False`.
        timeout_s: How long one answer may take.
        requests: What to ask about besides the suite's own, which are hostile: control characters, long texts,
            right-to-left marks, nested and empty arguments.
    """
    for approves in (True, False):
        for request in _numbered([*_HOSTILE, *(requests or [])]):
            [decision] = await ask(make_ui(approves), [request], mode='interactive', timeout_s=timeout_s)
            assert decision.decided_by not in ('ui', 'timeout') or decision.note is None, decision.note
            assert decision.approved is approves, f'{request.description!r}: {decision!r}'
        ui = make_ui(approves)
        if callable(getattr(ui, 'choose_group', None)):
            group = _numbered([request.model_copy(update={'group_id': 'group'}) for request in _HOSTILE[:2]])
            decisions = await ask(ui, group, mode='interactive', timeout_s=timeout_s)
            assert [each.approved for each in decisions] == [approves] * 2, f'a group: {decisions!r}'


def check_store(make_store: Callable[[], ApprovalStore]) -> None:
    """A store keeps what it is given, for every other store of the same place.

    Args:
        make_store: Opens a store on one place that is empty at first; called several times.
    """
    store = make_store()
    assert len(store.key) >= 16, 'the key is too short'
    assert store.get('a' * 64) is None
    assert list(store.list_all()) == []
    assert store.remove('a' * 64) is False
    first, second = _approval('a' * 64), _approval('b' * 64)
    store.put(first)
    store.put(second)
    other = make_store()
    assert other.key == store.key, 'another store of the same place has another key'
    assert dict(other.scope) == dict(store.scope)
    assert other.get(first.id) == first
    assert [each.id for each in other.list_all()] == [first.id, second.id], 'oldest first'
    replaced = first.model_copy(update={'label': 'replaced'})
    store.put(replaced)
    assert other.get(first.id) == replaced, 'a change does not reach another store of the same place'
    assert other.remove(first.id) is True
    assert store.get(first.id) is None, 'what was removed is still there for another store'
    assert store.get(second.id) == second
    _concurrently(lambda number: store.put(_approval(f'{number:064x}')))
    assert {f'{number:064x}' for number in range(16)} <= {each.id for each in make_store().list_all()}, 'some were lost'


def check_audit_sink(make_sink: Callable[[], AuditSink], read: Callable[[], list[Mapping[str, Any]]]) -> None:
    """A sink has written an entry when `record` returns, in order, and loses none.

    Args:
        make_sink: Opens a sink on one place that is empty at first; called several times.
        read: All entries written there so far, oldest first. They may have fields besides.
    """
    entries: list[Mapping[str, Any]] = [
        {'event': 'decision', 'tool_name': 'a', 'payload': {'nested': [1, 1.5, True, None, 'ä\n\u202e']}},
        {'event': 'outcome', 'tool_name': 'a', 'outcome': 'executed'},
    ]
    sink = make_sink()
    for count, entry in enumerate(entries, start=1):
        sink.record(entry)
        assert len(read()) == count, 'an entry was not written when `record` returned'
    make_sink().record({'event': 'decision', 'tool_name': 'b'})
    found = read()
    assert [each['tool_name'] for each in found] == ['a', 'a', 'b']
    assert found[0]['payload'] == entries[0]['payload']
    _concurrently(lambda number: sink.record({'event': 'decision', 'tool_name': f'tool {number}'}))
    assert {f'tool {number}' for number in range(16)} <= {each['tool_name'] for each in read()}, 'some were lost'


def _numbered(requests: list[ApprovalRequest]) -> list[ApprovalRequest]:
    """As a controller numbers the requests of one response."""
    placed = {'batch_size': len(requests), 'can_remember_always': True}
    return [
        request.model_copy(update={'metadata': {**request.metadata, 'position': number, **placed}})
        for number, request in enumerate(requests, start=1)
    ]


def _concurrently(action: Callable[[int], None]) -> None:
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(action, range(16)))  # raises what a thread raised


def _approval(approval_id: str) -> RememberedApproval:
    return RememberedApproval(
        id=approval_id, tool_name='delete', kind='exact', label='delete(a)', approved_by='ada', approved_at=_AT
    )


_HOSTILE = [
    ApprovalRequest(tool_name='delete', args={'path': 'notes.txt'}),
    ApprovalRequest(tool_name='run', args={'command': 'ls\x1b[2J\x07\r\n\x00 \u202e' + 'x' * 20_000}),
    ApprovalRequest(tool_name='nothing', args={}),
    ApprovalRequest(tool_name='nested', args={'a': {'b': [{'c': None}, [], {}, 1.5]}}, reason='because', group_id='g'),
]
