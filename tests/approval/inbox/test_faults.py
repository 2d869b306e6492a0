"""Failing processes, stores and clocks approve nothing that no approver has approved, and the inbox goes on."""

import asyncio
import logging
import signal
import sqlite3
from contextlib import suppress
from datetime import timedelta
from itertools import count

import pytest
from tool_approval.inbox import AlreadySettled, Inbox, InboxUI, InboxUnavailable, Row
from tool_approval.inbox.stores import SQLiteStore

from tests.approval.parts import NOON, finish, logged, request_for, start_python
from tool_approval import ApprovalController

from .parts import BOB, NO, YES, answer, settled, soon

pytestmark = pytest.mark.anyio

AGENT = """
import asyncio, sys
from tool_approval import ApprovalController, ApprovalRequest
from tool_approval.inbox import Inbox, InboxUI

def store():
    kind, *where = sys.argv[1:4]
    if kind == 'sqlite':
        from tool_approval.inbox.stores import SQLiteStore
        return SQLiteStore(where[0])
    from tool_approval.inbox.stores.postgres import PostgresStore
    return PostgresStore(where[0], schema=where[1])

async def main():
    controller = ApprovalController(ui=InboxUI(Inbox(store())))
    requests = [ApprovalRequest(tool_name='delete', args={'number': number}) for number in range(3)]
    print([decision.approved for decision in await controller.request_approvals(requests)])
"""
WAITS = AGENT + '\nasyncio.run(main())\n'
ANSWERS = (
    AGENT
    + """
from tool_approval import ApprovalDecision
from tool_approval.inbox import AlreadySettled, Approver

async def answer():
    me, approves = Approver(id=sys.argv[4]), sys.argv[5] == 'yes'
    with Inbox(store()) as inbox:
        entries = await inbox.open(10_000)
        print(len(entries), flush=True)
        sys.stdin.readline()
        won = 0
        for entry in entries:
            try:
                await inbox.decide(entry.id, ApprovalDecision(approved=approves), by=me, digest=entry.digest)
                won += 1
            except AlreadySettled as error:
                assert error.by is not None and error.by != me.id, error
        print(won)

asyncio.run(answer())
"""
)


@pytest.fixture
def place(request, make_store, tmp_path):
    """How another process opens the same store."""
    store = make_store()
    if isinstance(store, SQLiteStore):
        return ['sqlite', str(tmp_path / 'state' / 'inbox.sqlite'), '']
    return ['postgres', request.getfixturevalue('postgres').dsn, store._listening._schema]


@pytest.fixture
def hurried(monkeypatch):
    """A clock that advances by a second with each reading, and no waiting between two readings."""
    monkeypatch.setattr('tool_approval.inbox.keeper.WATCH_S', 0.01)
    seconds = count()
    return lambda: float(next(seconds))


async def test_the_requests_of_a_killed_agent_become_withdrawn(place, make_inbox, hurried):
    agent = start_python(WAITS, *place)
    page = make_inbox(clock=hurried)

    entries = await soon(page, 3)
    agent.send_signal(signal.SIGKILL)
    agent.communicate()
    withdrawn = await settled(page, 3)
    with pytest.raises(AlreadySettled, match='open: withdrawn'):
        await answer(page, entries[0])

    assert [entry.state for entry in withdrawn] == ['withdrawn'] * 3


class Slower:
    """A store where another process is always the first to withdraw the requests of a dead process."""

    def __init__(self, store):
        self.store = store

    def __getattr__(self, name):
        return getattr(self.store, name)

    def withdraw_all_of(self, owner, number, *, at):
        self.store.withdraw_all_of(owner, number, at=at)
        return 0


async def until_withdrawn(page, request_id):
    await page.open()
    page.store.add(Row(id=request_id, owner='gone', content='{}', posted_at=NOON))
    async with asyncio.timeout(20):
        async for _ in page.changes():
            if 'gone' not in page.store.beats():
                return


async def test_only_the_process_that_withdrew_requests_logs_that(make_store, hurried, caplog):
    with caplog.at_level(logging.WARNING):
        with Inbox(Slower(make_store()), clock=hurried) as page:
            await until_withdrawn(page, 'left')
        assert logged(caplog) == []
        with Inbox(make_store(), clock=hurried) as page:
            await until_withdrawn(page, 'also left')

    assert '1 requests in the inbox were withdrawn: the process that waited for them is gone' in caplog.text


class Looks:
    """A store that counts how often its process has looked at the heartbeats."""

    def __init__(self, store):
        self.store, self.count = store, 0

    def __getattr__(self, name):
        return getattr(self.store, name)

    def beats(self):
        found = self.store.beats()
        self.count += 1
        return found


async def leases_pass(seconds, *inboxes):
    """Let two leases pass, and each process look after every heartbeat."""
    for _ in range(7):
        seen = [inbox.store.count for inbox in inboxes]
        seconds[0] += 10.0
        while any(inbox.store.count == before for inbox, before in zip(inboxes, seen, strict=True)):
            for inbox in inboxes:
                inbox._keeper.nudge()
            await asyncio.sleep(0.01)


@pytest.mark.parametrize('jump', [-1e9, -3600.0, 0.0, 3600.0, 1e9])
async def test_the_requests_of_a_process_that_lives_stay_open_however_the_clock_is_set(make_store, monkeypatch, jump):
    monkeypatch.setattr('tool_approval.inbox.keeper.WATCH_S', 0.01)
    seconds, set_by = [1000.0], [timedelta()]

    times = {'now': lambda: NOON + set_by[0], 'clock': lambda: seconds[0]}

    with Inbox(Looks(make_store()), **times) as agents, Inbox(Looks(make_store()), **times) as page:
        entry = await agents.get(await agents.post(request_for()))
        waiting = asyncio.create_task(agents.wait(entry.id, 600))
        await page.open()
        set_by[0] = timedelta(seconds=jump)
        async with asyncio.timeout(60):
            await leases_pass(seconds, agents, page)

        assert (await page.get(entry.id)).state == 'pending'
        assert not waiting.done()
        await answer(page, entry)
        assert (await waiting).state == 'approved'


async def test_a_process_that_is_killed_in_mid_answer_has_answered_or_not(place, make_inbox):
    agents = make_inbox()

    for number in range(200):
        await agents.post(request_for(str(number)))
    answering = start_python(ANSWERS, *place, 'ada', 'yes')
    assert await asyncio.to_thread(answering.stdout.readline) == b'200\n'
    answering.stdin.write(b'\n')
    answering.stdin.flush()
    await settled(agents, 20)
    answering.send_signal(signal.SIGKILL)
    answering.communicate()
    for entry in await agents.open():
        with suppress(AlreadySettled):  # the server may still carry out the last answer of the killed process
            await answer(agents, entry, NO, by=BOB)

    answered = [(entry.state, entry.answer.by.id) for entry in await agents.history(1000)]
    assert len(answered) == 200
    assert answered.count(('approved', 'ada')) >= 20
    assert set(answered) <= {('approved', 'ada'), ('denied', 'bob')}


async def test_two_processes_race_a_thousand_times_and_exactly_one_wins_each(place, make_inbox):
    agents = make_inbox()

    await asyncio.gather(*(agents.post(request_for(str(number))) for number in range(1000)))
    racing = [start_python(ANSWERS, *place, name, approves) for name, approves in (('ada', 'yes'), ('bob', 'no'))]
    for each in racing:
        assert await asyncio.to_thread(each.stdout.readline) == b'1000\n'
    ended = await asyncio.to_thread(finish, *racing)
    assert [(code, errors) for code, _, errors in ended] == [(0, '')] * 2
    [ada, bob] = [int(output) for _, output, _ in ended]
    history = await agents.history(2000)

    assert ada + bob == len(history) == 1000
    assert await agents.open() == []
    assert sum(entry.state == 'approved' for entry in history) == ada
    assert {(entry.state, entry.answer.by.id) for entry in history} <= {('approved', 'ada'), ('denied', 'bob')}


async def test_runs_in_another_process_are_answered_from_here(place, make_inbox):
    agent = start_python(WAITS, *place)
    page = make_inbox()

    for entry in await soon(page, 3):
        await answer(page, entry, NO if entry.request.args['number'] == 1 else YES)

    assert finish(agent) == [(0, '[True, False, True]\n', '')]


async def test_waiting_callers_are_answered_after_an_outage_of_postgres(postgres, caplog):
    from tool_approval.inbox.stores.postgres import PostgresStore

    controller_of = lambda inbox: ApprovalController(ui=InboxUI(inbox, timeout=60))

    caplog.set_level(logging.WARNING)
    stores = [PostgresStore(postgres.dsn, schema='outage') for _ in range(2)]

    with Inbox(stores[0]) as agents, Inbox(stores[1]) as page:
        asking = asyncio.create_task(controller_of(agents).request_approval(request_for('before')))
        [entry] = await soon(page)
        await asyncio.to_thread(postgres.stop)
        try:
            with pytest.raises(InboxUnavailable):
                await answer(page, entry)
            asking_later = asyncio.create_task(controller_of(agents).request_approval(request_for('while it was away')))
            hasty = await ApprovalController(ui=InboxUI(agents, timeout=0.1)).request_approval(request_for('no time'))
            assert not asking.done()
        finally:
            await asyncio.to_thread(postgres.start)
        for entry in await patiently(soon, page, 2):
            await patiently(answer, page, entry)
        before, late = await asking, await asking_later

    assert (hasty.approved, hasty.note) == (
        False,
        'The inbox could not be reached before the timeout, so the call was denied.',
    )
    assert (before.approved, before.decided_by) == (late.approved, late.decided_by) == (True, ('ada',))
    assert "the inbox in the PostgreSQL database 'postgres' is unavailable" in caplog.text
    assert 'is available again' in caplog.text


async def patiently(act, *arguments):
    async with asyncio.timeout(30):
        while True:
            with suppress(InboxUnavailable):
                return await act(*arguments)
            await asyncio.sleep(0.05)


async def test_full_disk_refuses_posts_and_answers_until_there_is_room(tmp_path, monkeypatch):
    monkeypatch.setattr('tool_approval.inbox.worker.PAUSE_S', 0.0)
    store = SQLiteStore(tmp_path / 'state' / 'inbox.sqlite')

    with Inbox(store) as inbox:
        entry = await inbox.get(await inbox.post(request_for()))
        with store._database.reading() as database:
            [(pages,)] = database.execute('PRAGMA page_count')
            database.execute(f'PRAGMA max_page_count = {pages}')
        decision = await ApprovalController(ui=InboxUI(inbox, timeout=0.2)).request_approval(request_for('x' * 50_000))
        assert decision.note == 'The inbox could not be reached before the timeout, so the call was denied.'
        with store._database.reading() as database:
            database.execute(f'PRAGMA max_page_count = {pages}')
        with pytest.raises(InboxUnavailable, match='database or disk is full'):
            await answer(inbox, entry, NO.model_copy(update={'note': 'x' * 50_000}))
        assert (await inbox.get(entry.id)).state == 'pending'
        assert (await answer(inbox, entry)).state == 'approved'
        assert [each.state for each in await inbox.history()] == ['approved']


async def test_a_file_that_another_program_holds_for_long_is_unavailable_and_then_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr('tool_approval.inbox.worker.PAUSE_S', 0.0)
    monkeypatch.setattr('tool_approval.inbox.stores.sqlite_file.BUSY_S', 0.05)
    path = tmp_path / 'state' / 'inbox.sqlite'

    with Inbox(SQLiteStore(path)) as inbox:
        entry = await inbox.get(await inbox.post(request_for()))
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute('BEGIN IMMEDIATE')
        with pytest.raises(InboxUnavailable, match='database is locked'):
            await answer(inbox, entry)
        holder.close()
        assert (await answer(inbox, entry)).state == 'approved'
