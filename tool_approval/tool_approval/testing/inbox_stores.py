"""What every store of the inbox must do. Call it from a test of your own; it raises `AssertionError`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import get_args

from tool_approval.inbox.errors import InboxError
from tool_approval.inbox.store import MOVES, Changes, InboxStore, Row, Settled

_AT = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
_LATER = _AT + timedelta(seconds=1)


def check_inbox_store(make_store: Callable[[], InboxStore], *, tries: int = 50, timeout_s: float = 10.0) -> None:
    """A store keeps what it is given for every other one of the same place, and settles each request once.

    Args:
        make_store: Opens a store on one place that is empty at first; called several times.
        tries: How often two of them race to settle the same request.
        timeout_s: How long a change may take to be noticed.
    """
    store, other = make_store(), make_store()
    try:
        _check_emptiness(store)
        _check_keeping(store, other)
        _check_moves(store, other)
        _check_owners(store, other)
        _check_watching(store, other, timeout_s)
        _check_races(store, other, tries)
        _check_pruning(store, other)
    finally:
        for each in (store, other):
            each.close()
            each.close()


def _check_emptiness(store: InboxStore) -> None:
    assert list(store.get(['nobody'])) == []
    assert list(store.open(10)) == []
    assert list(store.history(10)) == []
    assert dict(store.beats()) == {}
    assert store.settle('nobody', 'approved', at=_AT) is False, 'what is not there was settled'
    assert list(store.get(['nobody'])) == [], 'settling made a request'


def _check_keeping(store: InboxStore, other: InboxStore) -> None:
    first = _row('kept-1', content='{"text":"' + 'x' * 100_000 + '\\u0000\\ud800"}')
    second = _row('kept-2', posted_at=_LATER)
    store.add(first)
    store.add(second)
    assert list(other.get([first.id, 'nobody'])) == [first], 'a row is not as it was added'
    assert list(other.open(10)) == [first, second], 'open requests come oldest first'
    assert list(other.open(1)) == [first]
    assert set(other.pending_of('owner')) == {first.id, second.id}
    assert set(other.pending_of('nobody')) == set()
    _refused(lambda: store.add(_row(first.id, content='{"other":1}')), 'a second request of the same id was taken')
    assert list(other.get([first.id])) == [first], 'the second request of an id replaced the first'
    assert store.settle(first.id, 'approved', at=_AT, answer='{"a":1}')
    assert store.settle(second.id, 'denied', at=_LATER, answer='{"a":2}')
    settled = [_settled(second, 'denied', _LATER, '{"a":2}'), _settled(first, 'approved', _AT, '{"a":1}')]
    assert list(other.open(10)) == []
    assert list(other.history(10)) == settled, 'history comes newest first'
    assert list(other.history(1)) == settled[:1]
    assert list(other.history(10, before=_LATER)) == settled[1:]
    assert list(other.history(10, after=second.id)) == settled[1:]
    assert list(other.history(10, _LATER, second.id)) == settled[1:]
    assert list(other.history(10, after=first.id)) == list(other.history(10, after='nobody')) == []
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


def _check_owners(store: InboxStore, other: InboxStore) -> None:
    mine, ours, theirs = _row('mine', owner='a'), _row('ours', owner='a'), _row('theirs', owner='b')
    for row in (mine, ours, theirs):
        store.add(row)
    assert dict(other.beats()) == {'a': 0, 'b': 0}
    store.beat('a', 1)
    store.beat('a', 2)
    store.beat('idle', 9)
    assert dict(other.beats()) == {'a': 2, 'b': 0}, 'only of owners with open requests'
    assert other.withdraw_all_of('a', 1, at=_AT) == 0, 'an owner that is alive lost its requests'
    assert set(other.pending_of('a')) == {mine.id, ours.id}
    assert other.withdraw_all_of('a', 2, at=_AT) == 2
    assert list(store.get([mine.id])) == [_settled(mine, 'withdrawn', _AT, None)]
    assert set(store.pending_of('b')) == {theirs.id}
    assert dict(store.beats()) == {'b': 0}
    assert other.withdraw_all_of('b', 0, at=_AT) == 1


def _check_watching(store: InboxStore, other: InboxStore, timeout_s: float) -> None:
    assert store.watch(0.0) is None, 'the first call cannot know what was before it'
    assert store.watch(0.0) == Changes(), 'nothing has happened'
    rows = [_row(f'watched-{number}', owner='watched') for number in range(3)]
    for row in rows:
        other.add(row)
    _watched(store, {row.id for row in rows}, timeout_s, 'added by another', is_settled=False)
    other.settle(rows[0].id, 'approved', at=_AT, answer='{}')
    store.settle(rows[1].id, 'denied', at=_AT, answer='{}')
    _watched(store, {rows[0].id, rows[1].id}, timeout_s, 'settled by another, and by itself')
    timer = threading.Timer(0.1, lambda: other.settle(rows[2].id, 'expired', at=_AT))
    timer.start()
    _watched(store, {rows[2].id}, timeout_s, 'settled while it was watching')
    timer.join()
    gone = _row('watched-gone', owner='gone')
    other.add(gone)
    _watched(store, {gone.id}, timeout_s, 'added by another', is_settled=False)
    other.withdraw_all_of('gone', 0, at=_AT)
    _watched(store, {gone.id}, timeout_s, 'withdrawn with its owner')


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
            assert len(won) == 1, f'{len(won)} answers were taken to one request'
            assert [each.answer for each in store.get([row.id])] == won, 'the answer is not the one that won'


def _check_pruning(store: InboxStore, other: InboxStore) -> None:
    still_open = _row('open')
    store.add(still_open)
    kept = len(store.history(10**6, before=_LATER + timedelta(days=1)))
    assert store.prune(_AT) == 0, 'what was settled at that moment is not before it'
    assert store.prune(_LATER + timedelta(days=1)) == kept
    assert list(other.history(10)) == []
    assert list(other.get([still_open.id])) == [still_open], 'an open request was pruned'


def _watched(store: InboxStore, expected: set[str], timeout_s: float, what: str, *, is_settled: bool = True) -> None:
    seen: set[str] = set()
    until = time.monotonic() + timeout_s
    while not expected <= seen:
        assert time.monotonic() < until, f'{what}, and not noticed'
        changed = store.watch(0.2)
        if changed is None:
            return
        seen.update(changed.added, changed.settled)
        if is_settled:
            assert not changed.added, f'{what}, and told as added'


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
