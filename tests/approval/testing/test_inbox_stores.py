"""The suite passes on a correct store, and fails on each store that is wrong in one way."""

import threading
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tool_approval.inbox import InboxStore, InboxUntrusted
from tool_approval.inbox.store import Changes
from tool_approval.testing import check_inbox_store

EVER = datetime.max.replace(tzinfo=UTC)


class Memory:
    """What all stores of one place share."""

    def __init__(self):
        self.lock = threading.RLock()
        self.rows = {}
        self.beats = {}
        self.log = []
        self.deadlines = {}


class DictStore:
    """A correct store in memory."""

    place = 'memory'

    def __init__(self, memory):
        self.memory = memory
        self.seen = None

    def now(self):
        return datetime.now(UTC)

    def add(self, row, deadline=None):
        with self.memory.lock:
            if row.id in self.memory.rows:
                raise InboxUntrusted(self.place, 'a request with this id already exists')
            self.memory.rows[row.id] = row
            self.memory.deadlines[row.id] = deadline or EVER
            self.memory.log.append((row.id, False))

    def settle(self, request_id, state, *, at, answer=None):
        with self.memory.lock:
            row = self.memory.rows.get(request_id)
            if row is None or row.state != 'pending':
                return False
            is_late = answer is not None and self.is_late(request_id)
            if is_late:
                state, at, answer = 'expired', self.now(), None
            self.memory.rows[request_id] = replace(row, state=state, settled_at=at, answer=answer)
            self.memory.log.append((request_id, True))
            return not is_late

    def is_late(self, request_id):
        return self.memory.deadlines[request_id] <= self.now()

    def get(self, request_ids):
        return [self.memory.rows[each] for each in request_ids if each in self.memory.rows]

    def pending_of(self, owner):
        return [row.id for row in self.open(10**9) if row.owner == owner]

    def open(self, limit):
        rows = [row for row in list(self.memory.rows.values()) if row.state == 'pending']
        return sorted(rows, key=lambda row: row.posted_at)[:limit]

    def history(self, limit, before=None, after=None):
        rows = [row for row in self.memory.rows.values() if row.state != 'pending']
        rows.sort(key=lambda row: row.settled_at, reverse=True)
        if after is not None:
            ids = [row.id for row in rows]
            rows = rows[ids.index(after) + 1 :] if after in ids else []
        return [row for row in rows if row.settled_at < (before or EVER)][:limit]

    def beat(self, owner, number):
        self.memory.beats[owner] = number

    def beats(self):
        return {row.owner: self.memory.beats.get(row.owner, 0) for row in self.open(10**9)}

    def withdraw_all_of(self, owner, number, *, at):
        with self.memory.lock:
            if self.memory.beats.get(owner, 0) != number:
                return 0
            return sum(self.settle(each, 'withdrawn', at=at) for each in self.pending_of(owner))

    def watch(self, timeout_s):
        with self.memory.lock:
            first, self.seen = self.seen, len(self.memory.log)
            if first is None:
                return None
            new = dict(self.memory.log[first:])
        return Changes(
            added=frozenset(each for each, is_settled in new.items() if not is_settled),
            settled=frozenset(each for each, is_settled in new.items() if is_settled),
        )

    def prune(self, before):
        old = [row.id for row in self.history(10**9, before)]
        for each in old:
            del self.memory.rows[each]
        return len(old)

    def close(self):
        pass


class Replaces(DictStore):
    def add(self, row, deadline=None):
        self.memory.rows[row.id] = row
        self.memory.deadlines[row.id] = deadline or EVER


class SettlesTwice(DictStore):
    def settle(self, request_id, state, *, at, answer=None):
        row = self.memory.rows.get(request_id)
        if row is not None:
            self.memory.rows[request_id] = replace(row, state=state, settled_at=at, answer=answer)
        return row is not None


class LooksAndThenSettles(DictStore):
    """Settles without a lock; the barrier makes two stores look before either settles."""

    both = threading.Barrier(2)

    def settle(self, request_id, state, *, at, answer=None):
        if not request_id.startswith('raced'):
            return super().settle(request_id, state, at=at, answer=answer)
        row = self.memory.rows.get(request_id)
        if row is None or row.state != 'pending':
            return False
        if threading.current_thread() is not threading.main_thread():
            self.both.wait(20)
        self.memory.rows[request_id] = replace(row, state=state, settled_at=at, answer=answer)
        self.memory.log.append((request_id, True))
        return True


class TakesLateAnswers(DictStore):
    def is_late(self, request_id):
        return False


class NewestFirst(DictStore):
    def open(self, limit):
        return super().open(10**9)[::-1][:limit]


class WithdrawsTheLiving(DictStore):
    def withdraw_all_of(self, owner, number, *, at):
        return sum(self.settle(each, 'withdrawn', at=at) for each in self.pending_of(owner))


class NoticesNothing(DictStore):
    def watch(self, timeout_s):
        return None if super().watch(timeout_s) is None else Changes()


class TellsAllAsAdded(DictStore):
    def watch(self, timeout_s):
        changed = super().watch(timeout_s)
        return changed and Changes(added=changed.added | changed.settled)


class PrunesAll(DictStore):
    def prune(self, before):
        count = len(self.history(10**9, before))
        if count:
            self.memory.rows.clear()
        return count


def test_correct_store_passes():
    memory = Memory()

    def make() -> InboxStore:
        return DictStore(memory)

    assert check_inbox_store(make, tries=3) is None


def test_a_store_that_only_says_that_anything_may_have_changed_passes():
    class Unsure(DictStore):
        def watch(self, timeout_s):
            changed = super().watch(timeout_s)
            return changed if changed == Changes() else None

    memory = Memory()

    assert check_inbox_store(lambda: Unsure(memory), tries=3) is None


@pytest.mark.parametrize(
    ('wrong', 'what'),
    [
        (Replaces, 'a second request with the same id was accepted'),
        (SettlesTwice, 'approved -> approved'),
        (LooksAndThenSettles, '2 answers to one request were accepted'),
        (TakesLateAnswers, 'approved was taken after the deadline'),
        (NewestFirst, 'open requests must be listed oldest first'),
        (WithdrawsTheLiving, 'the requests of a live owner were withdrawn'),
        (NoticesNothing, '`watch` did not report requests added by another store'),
        (TellsAllAsAdded, '`Changes.added` from `watch` contains requests settled by this store and by another'),
        (PrunesAll, 'an open request was pruned'),
    ],
)
def test_wrong_store_fails(wrong, what):
    memory = Memory()

    # Only one of them is found by waiting in vain; on a busy machine the others need their time.
    timeout_s = 0.2 if wrong is NoticesNothing else 30
    with pytest.raises(AssertionError, match=what):
        check_inbox_store(lambda: wrong(memory), tries=3, timeout_s=timeout_s)
