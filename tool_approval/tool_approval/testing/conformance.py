"""Check implementations of the protocols. Call these functions in tests. A failed check raises `AssertionError`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, get_args

from tool_approval.core.asking import ask
from tool_approval.core.bounds import Left
from tool_approval.core.protocols import ApprovalStore, ApprovalUI, AuditSink, RememberedApproval, UIAbilities
from tool_approval.core.request import ApprovalRequest
from tool_approval.inbox.errors import InboxError
from tool_approval.inbox.store import MOVES, Changes, InboxStore, Row, Settled

_AT = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
_LATER = _AT + timedelta(seconds=1)


async def check_ui(
    make_ui: Callable[[bool], ApprovalUI],
    *,
    timeout_s: float = 10.0,
    requests: list[ApprovalRequest] | None = None,
    make_responder: Callable[[str], ApprovalUI] | None = None,
) -> None:
    """Check that a UI returns its approver's decision for every kind of request.

    Args:
        make_ui: Function that makes a UI. If the function's argument is `True`, the UI's approver approves everything.
            If the argument is `False`, the approver denies everything.
        timeout_s: Maximum seconds for one answer.
        requests: More requests to ask about. The requests of the suite are hostile: control characters, long texts,
            right-to-left marks, nested and empty arguments.
        make_responder: Function that makes a UI whose approver answers in the tool's place with the given text; `None`
            for a UI in which this is not possible.
    """
    if make_responder is not None:
        await _check_responses(make_responder, timeout_s)
    for approves in (True, False):
        for request in _numbered([*_HOSTILE, *(requests or [])]):
            [decision] = await ask(make_ui(approves), [request], mode='interactive', timeout_s=timeout_s)
            assert decision.rule not in ('ui', 'timeout') or decision.note is None, decision.note
            said, did = ('approved', 'denied') if approves else ('denied', 'approved')
            shown = request.description
            assert decision.approved is approves, f'the approver {said}, but the UI {did}: {shown!r}, {decision!r}'
            is_plain = decision.override_args is None and decision.remember == 'none'
            assert is_plain, f'the approver neither edited nor remembered: {shown!r}, {decision!r}'
        ui = make_ui(approves)
        if UIAbilities.of(ui).choose_group is not None:
            group = _numbered([request.model_copy(update={'group_id': 'group'}) for request in _HOSTILE[:2]])
            decisions = await ask(ui, group, mode='interactive', timeout_s=timeout_s)
            assert [each.approved for each in decisions] == [approves] * 2, f'a group: {decisions!r}'


async def _check_responses(make_responder: Callable[[str], ApprovalUI], timeout_s: float) -> None:
    for text in _RESPONSES:
        for request in _numbered([each.model_copy(update={'answers': ('respond',)}) for each in _HOSTILE]):
            [decision] = await ask(make_responder(text), [request], mode='interactive', timeout_s=timeout_s)
            assert decision.response == text, f'{request.description!r}: {decision!r}'


def check_store(make_store: Callable[[], ApprovalStore]) -> None:
    """Check that a store keeps its approvals, shares them with all stores opened at the same place, and counts exactly
    what is used of a bounded approval.

    Args:
        make_store: Opens a store. All calls must use the same place, which is empty before the first call.
    """
    store = make_store()
    assert len(store.key) >= 16, 'the key is shorter than 16 bytes'
    assert store.get('a' * 64) is None
    assert list(store.list_all()) == []
    assert store.remove('a' * 64) is False
    first, second = _approval('a' * 64), _approval('b' * 64)
    store.put(first)
    store.put(second)
    other = make_store()
    assert other.key == store.key, 'a second store at the same place has a different key'
    assert dict(other.scope) == dict(store.scope)
    assert other.get(first.id) == first
    assert [each.id for each in other.list_all()] == [first.id, second.id], 'the oldest approval must come first'
    replaced = first.model_copy(update={'label': 'replaced'})
    store.put(replaced)
    assert other.get(first.id) == replaced, 'a second store at the same place does not see a change'
    _check_changes(store, other, make_store)
    assert other.remove(first.id) is True
    assert store.get(first.id) is None, 'a second store at the same place still has an approval that was removed'
    assert store.get(second.id) == second
    _concurrently(lambda number: store.put(_approval(f'{number:064x}')))
    assert {f'{number:064x}' for number in range(16)} <= {each.id for each in make_store().list_all()}, (
        'some entries were lost'
    )


def _check_changes(store: ApprovalStore, other: ApprovalStore, make_store: Callable[[], ApprovalStore]) -> None:
    bounded = _approval('c' * 64).model_copy(update={'left': Left(uses=24, total={'amount': Decimal('4.80')})})
    store.put(bounded)
    assert store.change('d' * 64, lambda found: found) is None, 'an approval that does not exist was changed'
    assert other.change(bounded.id, lambda found: None) is None
    assert store.get(bounded.id) == bounded, 'a change that returned `None` changed the approval'

    def counted(found: RememberedApproval) -> RememberedApproval | None:
        left = None if found.left is None else found.left.after({'amount': 0.3}, _AT)
        return None if left is None else found.model_copy(update={'left': left})

    changed = store.change(bounded.id, counted)
    assert changed is not None
    assert changed.left == Left(uses=23, total={'amount': Decimal('4.50')}), '`change` must return the new approval'
    assert other.get(bounded.id) == changed, 'a second store at the same place does not see a change'
    ran: list[int] = []

    def take(number: int) -> None:
        own = make_store() if number % 2 else store
        if own.change(bounded.id, counted) is not None:
            ran.append(number)

    _concurrently(take)
    # 4.50 is enough for 15 calls of 0.30.
    assert len(ran) == 15, f'{len(ran)} calls were counted at once, instead of 15'
    left = other.get(bounded.id)
    assert left is not None
    assert left.left == Left(uses=8, total={'amount': Decimal(0)}), 'calls were not counted'
    assert other.remove(bounded.id) is True


def check_audit_sink(make_sink: Callable[[], AuditSink], read: Callable[[], list[Mapping[str, Any]]]) -> None:
    """Check that a sink writes all entries in order, each before `record` returns.

    Args:
        make_sink: Opens a sink. All calls must use the same place, which is empty before the first call.
        read: Function that returns all entries written so far, oldest first. The entries may have additional fields.
    """
    entries: list[Mapping[str, Any]] = [
        {'event': 'decision', 'tool_name': 'a', 'payload': {'nested': [1, 1.5, True, None, 'ä\n\u202e']}},
        {'event': 'outcome', 'tool_name': 'a', 'outcome': 'executed'},
    ]
    sink = make_sink()
    for count, entry in enumerate(entries, start=1):
        sink.record(entry)
        assert len(read()) == count, '`record` returned before it wrote the entry'
    make_sink().record({'event': 'decision', 'tool_name': 'b'})
    found = read()
    assert [each['tool_name'] for each in found] == ['a', 'a', 'b']
    assert found[0]['payload'] == entries[0]['payload']
    _concurrently(lambda number: sink.record({'event': 'decision', 'tool_name': f'tool {number}'}))
    assert {f'tool {number}' for number in range(16)} <= {each['tool_name'] for each in read()}, (
        'some entries were lost'
    )


def _numbered(requests: list[ApprovalRequest]) -> list[ApprovalRequest]:
    """Set the position of each request, as a controller does for the requests of one response."""
    placed = {'batch_size': len(requests), 'can_remember_always': True}
    return [
        request.model_copy(update={'metadata': {**request.metadata, 'position': number, **placed}})
        for number, request in enumerate(requests, start=1)
    ]


def _concurrently(action: Callable[[int], None]) -> None:
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(action, range(16)))  # raises a thread's exception


def _approval(approval_id: str) -> RememberedApproval:
    return RememberedApproval(
        id=approval_id,
        tool_name='delete',
        kind='exact',
        label='delete(a)',
        approved_by=('ada', 'bob'),
        approved_at=_AT.replace(microsecond=0),
    )


_RESPONSES = ('forty-two', '<b>*x*</b> & `y` "\\', '{"approved": true}')

_HOSTILE = [
    ApprovalRequest(tool_name='delete', args={'path': 'notes.txt'}),
    ApprovalRequest(tool_name='run', args={'command': 'ls\x1b[2J\x07\r\n\x00 \u202e' + 'x' * 20_000}),
    ApprovalRequest(tool_name='nothing', args={}),
    ApprovalRequest(tool_name='nested', args={'a': {'b': [{'c': None}, [], {}, 1.5]}}, reason='because', group_id='g'),
]


def check_inbox_store(make_store: Callable[[], InboxStore], *, tries: int = 50, timeout_s: float = 10.0) -> None:
    """Check that a store shares its content with all stores opened at the same place, and settles each request once.

    Args:
        make_store: Opens a store. All calls must use the same place, which is empty before the first call.
        tries: Number of races in which two stores settle the same request at once.
        timeout_s: Maximum seconds until a change is noticed.
    """
    store, other = make_store(), make_store()
    try:
        _check_emptiness(store)
        _check_keeping(store, other)
        _check_moves(store, other)
        _check_deadlines(store, other)
        _check_owners(store, other)
        _check_watching(store, other, timeout_s)
        _check_races(store, other, tries)
        _check_pruning(store, other)
    finally:
        for each in (store, other):
            each.close()
            each.close()


def _check_emptiness(store: InboxStore) -> None:
    assert list(store.get(['missing'])) == []
    assert list(store.open(10)) == []
    assert list(store.history(10)) == []
    assert dict(store.beats()) == {}
    assert store.settle('missing', 'approved', at=_AT) is False, 'a request that does not exist was settled'
    assert list(store.get(['missing'])) == [], 'calling `settle` for a request that does not exist created a request'


def _check_keeping(store: InboxStore, other: InboxStore) -> None:
    first = _row('kept-1', content='{"text":"' + 'x' * 100_000 + '\\u0000\\ud800"}')
    second = _row('kept-2', posted_at=_LATER)
    store.add(first)
    store.add(second)
    assert list(other.get([first.id, 'missing'])) == [first], 'a stored row differs from the added row'
    assert list(other.open(10)) == [first, second], 'open requests must be listed oldest first'
    assert list(other.open(1)) == [first]
    assert set(other.pending_of('owner')) == {first.id, second.id}
    assert set(other.pending_of('missing')) == set()
    _refused(lambda: store.add(_row(first.id, content='{"other":1}')), 'a second request with the same id was accepted')
    assert list(other.get([first.id])) == [first], 'a second request with the same id replaced the first'
    assert store.settle(first.id, 'approved', at=_AT, answer='{"a":1}')
    assert store.settle(second.id, 'denied', at=_LATER, answer='{"a":2}')
    settled = [_settled(second, 'denied', _LATER, '{"a":2}'), _settled(first, 'approved', _AT, '{"a":1}')]
    assert list(other.open(10)) == []
    assert list(other.history(10)) == settled, 'the history must list the newest request first'
    assert list(other.history(1)) == settled[:1]
    assert list(other.history(10, before=_LATER)) == settled[1:]
    assert list(other.history(10, after=second.id)) == settled[1:]
    assert list(other.history(10, _LATER, second.id)) == settled[1:]
    assert list(other.history(10, after=first.id)) == list(other.history(10, after='missing')) == []
    assert set(other.pending_of('owner')) == set()


def _check_moves(store: InboxStore, other: InboxStore) -> None:
    states: tuple[Settled, ...] = get_args(Settled)
    for state in states:
        row = _row(f'moved-{state}')
        store.add(row)
        answer = '{}' if state in ('approved', 'denied') else None
        assert other.settle(row.id, state, at=_LATER, answer=answer) is True, f'pending -> {state}'
        for next_state in states:
            is_legal = next_state in MOVES[state]
            assert store.settle(row.id, next_state, at=_AT, answer='{"late":1}') is is_legal, f'{state} -> {next_state}'
            assert list(store.get([row.id])) == [_settled(row, state, _LATER, answer)], f'{state} -> {next_state}'


def _check_deadlines(store: InboxStore, other: InboxStore) -> None:
    for state in ('approved', 'denied'):
        early, late, moved = _row(f'early-{state}'), _row(f'late-{state}'), _row(f'moved-late-{state}')
        store.add(early, store.now() + timedelta(hours=1))
        for row in (late, moved):
            store.add(row, store.now() - timedelta(milliseconds=1))
        assert other.settle(early.id, state, at=_AT, answer='{}') is True, f'{state} before the deadline'
        # Neither the time that the caller gives nor its own clock counts.
        assert other.settle(late.id, state, at=_AT, answer='{}') is False, f'{state} was taken after the deadline'
        [found] = store.get([late.id])
        assert (found.state, found.answer) == ('expired', None), 'a request that was answered too late must expire'
        assert other.settle(moved.id, 'withdrawn', at=_AT) is True, 'only answers can be too late'


def _check_owners(store: InboxStore, other: InboxStore) -> None:
    mine, ours, theirs = _row('mine', owner='a'), _row('ours', owner='a'), _row('theirs', owner='b')
    for row in (mine, ours, theirs):
        store.add(row)
    assert dict(other.beats()) == {'a': 0, 'b': 0}
    store.beat('a', 1)
    store.beat('a', 2)
    store.beat('idle', 9)
    assert dict(other.beats()) == {'a': 2, 'b': 0}, 'an owner without open requests was returned'
    assert other.withdraw_all_of('a', 1, at=_AT) == 0, 'the requests of a live owner were withdrawn'
    assert set(other.pending_of('a')) == {mine.id, ours.id}
    assert other.withdraw_all_of('a', 2, at=_AT) == 2
    assert list(store.get([mine.id])) == [_settled(mine, 'withdrawn', _AT, None)]
    assert set(store.pending_of('b')) == {theirs.id}
    assert dict(store.beats()) == {'b': 0}
    assert other.withdraw_all_of('b', 0, at=_AT) == 1


def _check_watching(store: InboxStore, other: InboxStore, timeout_s: float) -> None:
    assert store.watch(0.0) is None, 'the first call of `watch` must return `None`'
    assert store.watch(0.0) == Changes(), 'changes were reported, although there were none'
    rows = [_row(f'watched-{number}', owner='watched') for number in range(3)]
    for row in rows:
        other.add(row)
    _watched(store, {row.id for row in rows}, timeout_s, 'added by another store', is_settled=False)
    other.settle(rows[0].id, 'approved', at=_AT, answer='{}')
    store.settle(rows[1].id, 'denied', at=_AT, answer='{}')
    _watched(store, {rows[0].id, rows[1].id}, timeout_s, 'settled by this store and by another')
    timer = threading.Timer(0.1, lambda: other.settle(rows[2].id, 'expired', at=_AT))
    timer.start()
    _watched(store, {rows[2].id}, timeout_s, 'settled while `watch` waited')
    timer.join()
    gone = _row('watched-gone', owner='gone')
    other.add(gone)
    _watched(store, {gone.id}, timeout_s, 'added by another store', is_settled=False)
    other.withdraw_all_of('gone', 0, at=_AT)
    _watched(store, {gone.id}, timeout_s, 'withdrawn with their owner')


def _check_races(store: InboxStore, other: InboxStore, tries: int) -> None:
    start = threading.Barrier(2)

    def race(each: InboxStore, request_id: str, answer: str) -> str | None:
        start.wait()
        return answer if each.settle(request_id, 'approved', at=_AT, answer=answer) else None

    with ThreadPoolExecutor(2) as pool:
        for number in range(tries):
            row = _row(f'raced-{number}')
            store.add(row)
            answers = pool.map(race, (store, other), [row.id] * 2, ('"a"', '"b"'))
            won = [answer for answer in answers if answer is not None]
            assert len(won) == 1, f'{len(won)} answers to one request were accepted'
            assert [each.answer for each in store.get([row.id])] == won, 'the stored answer is not the accepted answer'


def _check_pruning(store: InboxStore, other: InboxStore) -> None:
    still_open = _row('open')
    store.add(still_open)
    later = store.now() + timedelta(days=1)
    kept = len(store.history(10**6, before=later))
    assert store.prune(_AT) == 0, 'a request settled exactly at `before` was pruned'
    assert store.prune(later) == kept
    assert list(other.history(10)) == []
    assert list(other.get([still_open.id])) == [still_open], 'an open request was pruned'


def _watched(store: InboxStore, expected: set[str], timeout_s: float, what: str, *, is_settled: bool = True) -> None:
    seen: set[str] = set()
    until = time.monotonic() + timeout_s
    while not expected <= seen:
        assert time.monotonic() < until, f'`watch` did not report requests {what}'
        changed = store.watch(0.2)
        if changed is None:
            return
        seen.update(changed.added, changed.settled)
        if is_settled:
            assert not changed.added, f'`Changes.added` from `watch` contains requests {what}'


def _refused(action: Callable[[], object], otherwise: str) -> None:
    try:
        action()
    except InboxError:
        return
    raise AssertionError(otherwise)


def _row(request_id: str, *, owner: str = 'owner', content: str = '{}', posted_at: datetime = _AT) -> Row:
    return Row(id=request_id, owner=owner, content=content, posted_at=posted_at)


def _settled(row: Row, state: Settled, at: datetime, answer: str | None) -> Row:
    return replace(row, state=state, settled_at=at, answer=answer)
