"""Processes that die, stop, lose the store or are cancelled at any point: no attempt has two effects."""

import asyncio
import contextlib
import logging
import threading
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from itertools import count
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tool_approval.core.calls import ExecutedCall, Kept
from tool_approval.durable import DurableStore, ExecutionRow, Ledger, ledger
from tool_approval.inbox import InboxError, InboxUnavailable
from tool_approval.inbox.stores import SQLiteStore

from tests.approval.parts import NOON
from tool_approval import current_call

LEASE_S = 30.0
FAULTS = ('die', 'die', 'die', 'away', 'stop', 'cancel')
PAUSE_S = 0.002
"""In which the threads of the processes get on."""
LAST_POINT = 24
"""An execution without a fault has fewer points."""


class Died(BaseException):
    """The process is gone: whatever it still does reaches nobody."""


class FailedTool(Exception):
    pass


class Process:
    """A ledger in a process of its own, with a fault at some of its points: around each use of the store or effect."""

    def __init__(self, store, faults):
        self.real = store
        self.faults = faults
        self.points = count()
        self.is_dead = False
        self.is_stopped = threading.Event()
        self.may_go_on = threading.Event()
        self.seconds = 0.0
        self.task = None
        self.loop = asyncio.get_running_loop()
        self.ledger = Ledger(self, lease_s=LEASE_S, beats=False, clock=lambda: self.seconds, now=lambda: NOON)
        self.place = store.place

    place = 'here'

    def __getattr__(self, name):
        method = getattr(self.real, name)

        def around(*args, **keywords):
            self.point()
            result = method(*args, **keywords)
            self.point()
            return result

        return around

    def fault(self):
        if self.is_dead:
            raise Died
        fault = self.faults.pop(next(self.points), None)
        if fault == 'die':
            self.is_dead = True
            raise Died
        if fault == 'away':
            raise InboxUnavailable('here', 'away')
        if fault == 'cancel' and self.task is not None:
            self.loop.call_soon_threadsafe(self.task.cancel)
        return fault == 'stop'

    def point(self):
        """In the ledger's thread. Ticks, here in the main thread, take no part in the numbering."""
        if threading.current_thread() is threading.main_thread():
            if self.is_dead:
                raise Died
        elif self.fault():
            self.is_stopped.set()
            self.may_go_on.wait(20)

    async def point_of_tool(self):
        with contextlib.suppress(InboxUnavailable):
            if self.fault():
                self.is_stopped.set()
                while not self.may_go_on.is_set():
                    await asyncio.sleep(PAUSE_S)

    def tick(self):
        """Look at the others, and count only if a coin says so: who does not is taken for dead by the others."""
        self.seconds += LEASE_S / 3
        with contextlib.suppress(InboxError, Died):
            self.ledger.tick()


class World:
    """What really happened, by the idempotency key of the attempt."""

    def __init__(self):
        self.effects = Counter()

    def tool(self, process, fails):
        async def run():
            await process.point_of_tool()
            key = current_call().idempotency_key
            self.effects[key] += 1
            await process.point_of_tool()
            if fails:
                raise FailedTool
            return key

        return run


async def ended(process, heirs):
    """The task of a process has ended, or waits to be taken for dead."""
    while not (process.task.done() or process.is_stopped.is_set()):
        await asyncio.sleep(PAUSE_S)
        if not process.task.done():
            for each in heirs:
                if not each.is_stopped.is_set():  # a stopped process has no heartbeat
                    each.tick()


class Schedule:
    """One random schedule, made from its number."""

    def __init__(self, store, number):
        self.store = store
        self.random = Random(number)
        self.world = World()
        self.call = ExecutedCall('run', 'pay', f'call {number}', {}, [number])
        self.fails = self.random.random() < 0.15
        self.left = self.random.choice([10, 10, 1, 2])
        self.processes = []

    def check(self):
        """The approval is revoked at some time."""
        self.left -= 1
        return 'Revoked.' if self.left < 0 else None

    async def ask(self, question):
        return self.random.choice([True, True, False, None])

    def faults(self, most):
        return {self.random.randrange(LAST_POINT): self.random.choice(FAULTS) for _ in range(most)}

    def begin(self, faults):
        process = Process(self.store, faults)
        self.processes.append(process)
        run = self.world.tool(process, self.fails)
        process.task = asyncio.create_task(process.ledger.execute(self.call, run, check=self.check, ask=self.ask))
        return process

    async def act(self):
        """Two at once, or one after the other."""
        if self.random.random() < 0.4:
            for each in (self.begin(self.faults(2)), self.begin(self.faults(1))):
                await ended(each, self.processes[-2:])
        else:
            await ended(self.begin(self.faults(self.random.randint(0, 3))), self.processes[-1:])
        if self.random.random() < 0.3:
            self.let_go_on()

    def let_go_on(self):
        for each in self.processes:
            each.may_go_on.set()

    async def come_back(self, heir):
        """All that stopped go on, after they were taken for dead; returns what their runs got."""
        results = []
        for _ in range(6):
            heir.tick()
        self.let_go_on()
        for each in self.processes:
            while not each.task.done():
                heir.tick()
                await asyncio.sleep(PAUSE_S)
            for _ in range(5):
                each.tick()
            with contextlib.suppress(Died, FailedTool, InboxError, asyncio.CancelledError):
                results.append(each.task.result())
        for _ in range(6):
            heir.tick()
        return results

    async def play(self):
        for _ in range(self.random.randint(1, 4)):
            await self.act()
        heir = Process(self.store, {})
        results = await self.come_back(heir)
        run = self.world.tool(heir, self.fails)
        with contextlib.suppress(FailedTool):
            await heir.ledger.execute(self.call, run, check=self.check, ask=yes)
        last = await heir.ledger.execute(self.call, run)
        judge(self.store, self.call, self.world, results, last)
        for each in [*self.processes, heir]:
            each.is_dead = True
            with contextlib.suppress(Died):  # a dead process writes nothing when it closes
                each.ledger.close()
            self.store.forget_worker(each.ledger.worker_id)
        return tuple(sorted({row.state for row in rows_of(self.store, self.call)})), sum(self.world.effects.values())


async def yes(question):
    return True


def rows_of(store, call):
    return [row for row in store.executions_of('run') if row.tool_call_id == call.tool_call_id]


def judge(store, call, world, results, last):
    rows = rows_of(store, call)
    keys = {row.idempotency_key: row for row in rows}
    assert max(world.effects.values(), default=0) <= 1, 'one attempt has had two effects'
    assert world.effects.keys() <= keys.keys()
    for row in rows:
        effects = world.effects[row.idempotency_key]
        if row.state in ('done', 'failed'):
            assert effects == 1, row
        elif row.state in ('approved', 'refused'):
            assert effects == 0, row
        else:
            assert row.state == 'unknown', row
    assert [row.attempt for row in rows] == list(range(1, len(rows) + 1))
    assert all(row.state == 'unknown' and row.owner is None for row in rows[:-1]), 'tried again only while unknown'
    assert isinstance(last, Kept)
    assert last.state == rows[-1].state
    if not world.effects:
        assert last.state in ('unknown', 'refused'), 'nothing happened, and nothing says so'
    if last.state == 'done':
        assert keys[last.value] == rows[-1]
    for result in results:
        if isinstance(result, str):
            assert world.effects[result] == 1


@pytest.fixture
def fast(monkeypatch):
    monkeypatch.setattr(ledger, 'POLL_S', PAUSE_S)
    monkeypatch.setattr(ledger, 'RETRY_S', PAUSE_S)
    monkeypatch.setattr('tool_approval.inbox.worker.PAUSE_S', 0.0)
    # Thousands of warnings that nobody reads.
    monkeypatch.setattr(logging.getLogger('tool_approval'), 'disabled', True)


def play_all(stores, numbers):
    """Each store has schedules of its own, one after the other: most of the time of one is spent waiting."""
    seen = Counter()

    async def run(store, numbers):
        seen.update([await Schedule(store, number).play() for number in numbers])
        store.close()

    async def main():
        await asyncio.gather(*(run(store, numbers[index :: len(stores)]) for index, store in enumerate(stores)))

    asyncio.run(main())
    return seen


def in_portions(size, count):
    """Schedules in portions with stores of their own, which stay small; all but the first are slow."""
    portions = [range(size * each, size * (each + 1)) for each in range(count)]
    first, *others = portions
    return pytest.mark.parametrize(
        'numbers',
        [first, *(pytest.param(each, marks=pytest.mark.slow) for each in others)],
        ids=lambda each: each.start,
    )


@pytest.mark.untraced
@pytest.mark.usefixtures('fast')
@in_portions(1000, 21)
def test_no_attempt_has_two_effects_and_each_missing_one_is_visible(tmp_path, numbers):
    seen = play_all([DurableStore(SQLiteStore(tmp_path / str(each) / 'inbox.sqlite')) for each in range(8)], numbers)

    states = Counter()
    for (found, _), times in seen.items():
        states.update(dict.fromkeys(found, times))
    # The schedules reach what they are for.
    assert states.keys() == {'done', 'failed', 'unknown', 'refused'}
    assert min(states.values()) > len(numbers) / 50
    assert sum(times for (_, effects), times in seen.items() if effects > 1) > len(numbers) / 100
    assert seen.total() == len(numbers)


@pytest.mark.untraced
@pytest.mark.usefixtures('fast')
@in_portions(100, 20)
def test_no_attempt_has_two_effects_on_postgres(postgres, numbers):
    from tool_approval.inbox.stores.postgres import PostgresStore

    schemas = [f'crashes_{numbers.start}_{each}' for each in range(4)]
    seen = play_all([DurableStore(PostgresStore(postgres.dsn, schema=each)) for each in schemas], numbers)

    assert seen.total() == len(numbers)


class Executions(RuleBasedStateMachine):
    """Workers that take one step at any time, with what they saw last, however old that is."""

    def __init__(self):
        super().__init__()
        self.key = f'key {next(KEYS)}'
        self.effects = Counter()
        self.settled_by_person = set()
        self.seen = {}
        self.began = set()
        STORE.add_execution(
            ExecutionRow(
                key=self.key,
                attempt=1,
                run_id='run',
                tool_name='pay',
                tool_call_id=self.key,
                idempotency_key=f'{self.key} 1',
                changed_at=NOON,
            )
        )

    workers = st.sampled_from(['w1', 'w2', 'w3'])

    def owner(self, worker):
        return f'{self.key} {worker}'

    def moved(self, worker, to, owner, **keywords):
        row = self.seen.get(worker)
        if row is None or to not in ledger_moves(row.state):
            return None
        is_moved = STORE.move(row, to, owner=owner, at=NOON + timedelta(seconds=1), **keywords)
        self.seen[worker] = replace(row, state=to, owner=owner) if is_moved else None
        return row if is_moved else None

    @rule(worker=workers)
    def look(self, worker):
        if worker not in self.began:
            self.seen[worker] = STORE.latest(self.key)

    @rule(worker=workers)
    def reserve(self, worker):
        row = self.seen.get(worker)
        if row is not None and row.state == 'approved':
            self.moved(worker, 'reserved', self.owner(worker))

    @rule(worker=workers)
    def begin(self, worker):
        row = self.seen.get(worker)
        if row is not None and (row.state, row.owner) == ('reserved', self.owner(worker)):
            self.moved(worker, 'executing', self.owner(worker))

    @rule(worker=workers)
    def give_back(self, worker):
        row = self.seen.get(worker)
        if worker not in self.began and row is not None and row.owner == self.owner(worker):
            self.moved(worker, 'approved', None)

    @rule(worker=workers)
    def have_the_effect(self, worker):
        row = self.seen.get(worker)
        if row is not None and (row.state, row.owner) == ('executing', self.owner(worker)) and worker not in self.began:
            self.began.add(worker)
            self.effects[row.idempotency_key] += 1

    @rule(worker=workers, to=st.sampled_from(['done', 'failed']))
    def end(self, worker, to):
        row = self.seen.get(worker)
        if worker in self.began and row is not None:
            for state in ('executing', 'unknown'):
                STORE.move(replace(row, state=state), to, owner=row.owner, at=NOON, result='1')
            self.began.discard(worker)
            self.seen.pop(worker)

    @rule(worker=workers)
    def die(self, worker):
        self.seen.pop(worker, None)
        self.began.discard(worker)
        STORE.release(self.owner(worker), 0, at=NOON)

    @rule(worker=workers)
    def be_taken_for_dead(self, worker):
        STORE.release(self.owner(worker), 0, at=NOON)

    @rule()
    def try_again(self):
        row = STORE.latest(self.key)
        attempt = row.attempt + 1
        following = replace(
            row, attempt=attempt, idempotency_key=f'{self.key} {attempt}', state='approved', owner=None, started_at=None
        )
        assert STORE.retry(following) is row.is_unsettled

    @rule()
    def settle(self):
        row = STORE.latest(self.key)
        if row.is_unsettled:
            assert STORE.move(row, 'done', owner=row.owner, at=NOON, result='2')
            self.settled_by_person.add(row.idempotency_key)

    @invariant()
    def no_attempt_has_two_effects(self):
        for row in [each for each in STORE.executions_of('run') if each.key == self.key]:
            effects = self.effects[row.idempotency_key]
            assert effects <= 1
            if row.state in ('approved', 'reserved', 'refused'):
                assert effects == 0
            if row.state in ('done', 'failed') and row.idempotency_key not in self.settled_by_person:
                assert effects == 1


KEYS = count()
STORE: DurableStore


def ledger_moves(state):
    from tool_approval.durable import MOVES

    return MOVES[state]


def test_any_order_of_steps(tmp_path):
    global STORE
    STORE = DurableStore(SQLiteStore(tmp_path / 'state' / 'inbox.sqlite'))
    machine = Executions.TestCase
    machine.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
    machine('runTest').runTest()
    STORE.close()
