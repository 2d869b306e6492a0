"""The inbox posts, answers, withdraws and lists requests, on every store."""

import asyncio
import logging
from dataclasses import replace
from datetime import timedelta

import pytest
from tool_approval.durable import DurableStore
from tool_approval.inbox import (
    AlreadySettled,
    ApproverRule,
    Escalation,
    Inbox,
    InboxError,
    InboxUnavailable,
    InvalidAnswer,
    NotAnApprover,
    OtherContent,
    RequestTooLarge,
    Row,
    UnknownRequest,
)
from tool_approval.inbox.entry import MAX_BYTES

from tests.approval.parts import NOON, noon, request_for
from tool_approval import ApprovalDecision, NotCanonicalError

from .parts import ADA, BOB, NO, YES, answer, soon

pytestmark = pytest.mark.anyio


@pytest.fixture
def agents(make_inbox):
    return make_inbox(now=noon)


@pytest.fixture
def page(make_inbox):
    return make_inbox(now=lambda: NOON + timedelta(minutes=1))


@pytest.mark.parametrize(('decision', 'state'), [(YES, 'approved'), (NO, 'denied')])
async def test_answer_reaches_the_waiting_caller(agents, page, decision, state):
    request_id = await agents.post(request_for('notes.txt'))
    waiting = asyncio.create_task(agents.wait(request_id))
    [entry] = await soon(page)
    returned = await answer(page, entry, decision)
    waited = await waiting

    assert entry.request == request_for('notes.txt')
    assert (entry.state, entry.posted_at, entry.settled_at) == ('pending', NOON, None)
    assert waited == returned
    assert waited.state == state
    assert waited.settled_at == NOON + timedelta(minutes=1)
    assert waited.answer.by == ADA
    assert waited.answer.decision == decision.model_copy(
        update={'decided_by': ('ada',), 'decided_at': waited.settled_at}
    )


async def test_all_of_a_decision_travels(agents, page):
    decision = ApprovalDecision(approved=True, note='<i>', override_args={'path': 'b'}, remember='session')

    request_id = await agents.post(request_for())
    await answer(page, await page.get(request_id), decision)

    taken = (await agents.wait(request_id)).answer.decision

    assert taken == decision.model_copy(update={'decided_by': ('ada',), 'decided_at': taken.decided_at})


async def test_an_answer_that_came_before_the_wait_is_not_missed(agents, page):
    request_id = await agents.post(request_for())
    await answer(page, await page.get(request_id))

    assert (await agents.wait(request_id, 20)).state == 'approved'


async def test_several_callers_wait_for_the_same_request(agents, page):
    request_id = await agents.post(request_for())
    waiting = [asyncio.create_task(each.wait(request_id)) for each in (agents, agents, page)]
    await answer(page, await page.get(request_id))

    assert [entry.state for entry in await asyncio.gather(*waiting)] == ['approved'] * 3


async def test_second_answer_reports_who_was_first_and_when(agents, page):
    entry = await page.get(await agents.post(request_for()))
    await answer(page, entry, NO, by=BOB)
    with pytest.raises(AlreadySettled) as told:
        await answer(agents, entry, YES, by=ADA)
    kept = await page.get(entry.id)

    assert str(told.value) == "the request is no longer open: denied by 'bob' at 2026-03-04T12:01:00+00:00"
    assert (told.value.state, told.value.by, told.value.at) == ('denied', 'bob', NOON + timedelta(minutes=1))
    assert (kept.state, kept.answer.by) == ('denied', BOB)


async def test_one_of_many_simultaneous_answers_wins(make_inbox):
    inboxes = [make_inbox() for _ in range(3)]

    entry = await inboxes[0].get(await inboxes[0].post(request_for()))
    ended = await asyncio.gather(
        *(answer(inbox, entry, decision) for inbox in inboxes for decision in (YES, NO) for _ in range(5)),
        return_exceptions=True,
    )
    waited = await inboxes[0].wait(entry.id)

    assert [type(each) for each in ended].count(AlreadySettled) == 29
    [winner] = [each for each in ended if not isinstance(each, AlreadySettled)]
    assert winner == waited


async def test_an_answer_for_another_digest_is_refused_and_the_request_stays_open(agents, page):
    first = await page.get(await agents.post(request_for('a')))
    second = await page.get(await agents.post(request_for('a')))
    for digest in (second.digest, '', 'ä\ud800', first.digest.upper()):
        with pytest.raises(OtherContent, match='load the request again and decide again'):
            await page.decide(first.id, YES, by=ADA, digest=digest)

    assert [entry.id for entry in await page.open()] == [first.id, second.id]


@pytest.mark.parametrize(
    'request_id', ['', 'x', 'a' * 43, '\x00' * 43, '\ud800' * 43, "' OR 1=1 --" + 'a' * 32, 'ä' * 43]
)
async def test_an_id_that_was_never_given_out_answers_nothing(agents, request_id):
    for act in (
        agents.get(request_id),
        agents.wait(request_id, 20),
        agents.decide(request_id, YES, by=ADA, digest='d'),
        agents.withdraw(request_id),
    ):
        with pytest.raises(UnknownRequest, match=r'^there is no such request in the inbox$'):
            await act


async def test_ids_are_unguessable(agents):
    ids = {await agents.post(request_for()) for _ in range(20)}

    assert {len(each) for each in ids} == {43}
    assert len(ids) == 20


OPS = ApproverRule(groups=frozenset({'ops'}))
NOT_OFFERED = ApprovalDecision(approved=True, remember='session', remember_option='all')


@pytest.mark.parametrize(
    ('content', 'decision', 'error', 'reason'),
    [
        ({'approvers': (OPS,), 'requester': 'bob'}, YES, NotAnApprover, 'only listed approvers may answer'),
        ({'approvers': (OPS,), 'requester': 'bob'}, NO, NotAnApprover, 'only listed approvers may answer'),
        (
            {'requester': 'ada', 'forbid_self_approval': True},
            YES,
            NotAnApprover,
            'requesters may not answer their own requests',
        ),
        (
            {'requester': ' ADA', 'forbid_self_approval': True},
            NO,
            NotAnApprover,
            'requesters may not answer their own requests',
        ),
        ({}, NOT_OFFERED, InvalidAnswer, 'does not offer this option for remembering the approval'),
    ],
    ids=['unlisted approves', 'unlisted denies', 'self-approval', 'self-approval in another case', 'not offered'],
)
async def test_refused_answer_leaves_the_request_open_for_others(agents, page, content, decision, error, reason):
    entry = await page.get(await agents.post(request_for(), **content))

    with pytest.raises(error, match=reason):
        await answer(page, entry, decision, by=ADA)

    assert (await page.get(entry.id)).state == 'pending'
    assert (await answer(page, entry, YES, by=BOB)).state == 'approved'


async def test_expired_request_cannot_be_answered(agents, page):
    entry = await page.get(await agents.post(request_for()))
    waited = await agents.wait(entry.id, 0.01)
    with pytest.raises(AlreadySettled, match='expired at 2026-03-04T12:00:00'):
        await answer(page, entry)
    history = await page.history()

    assert (waited.state, waited.answer) == ('expired', None)
    assert history == [waited]


async def test_an_answer_as_the_time_is_up_holds(agents, page, monkeypatch):
    entry = await page.get(await agents.post(request_for()))
    # The answer lands after the last look and before the request can expire.
    monkeypatch.setattr(agents, '_settled', lambda request_id: asyncio.sleep(20))
    original = agents.store.settle

    def settle(request_id, state, **rest):
        page.store.settle(request_id, 'approved', at=NOON, answer=answered)
        return original(request_id, state, **rest)

    other = await page.get(await agents.post(request_for()))
    answered = (await answer(page, other)).answer.model_copy(update={'digest': entry.digest}).model_dump_json()
    monkeypatch.setattr(agents.store, 'settle', settle)

    assert (await agents.wait(entry.id, 0.01)).state == 'approved'


async def test_a_withdrawn_request_can_not_be_answered(agents, page):
    entry = await page.get(await agents.post(request_for()))
    waiting = asyncio.create_task(agents.wait(entry.id))
    await page.withdraw(entry.id)
    with pytest.raises(AlreadySettled, match='open: withdrawn at'):
        await answer(page, entry)
    with pytest.raises(AlreadySettled):
        await agents.withdraw(entry.id)

    assert (await waiting).state == 'withdrawn'


async def test_an_abandoned_request_is_withdrawn_without_waiting(agents, page):
    entry = await page.get(await agents.post(request_for()))
    waiting = asyncio.create_task(page.wait(entry.id))
    agents.abandon(entry.id)

    assert (await waiting).state == 'withdrawn'


async def test_a_wait_that_is_cancelled_leaves_the_request_to_others(agents, page):
    entry = await page.get(await agents.post(request_for()))
    waiting = asyncio.create_task(agents.wait(entry.id))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await answer(page, entry)

    assert (await agents.wait(entry.id)).state == 'approved'


async def test_a_request_that_is_cancelled_while_it_is_posted_does_not_stay_open(agents, page):
    posting = asyncio.create_task(agents.post(request_for()))
    await asyncio.sleep(0)
    posting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await posting
    await agents.post(request_for('later'))

    assert [entry.request for entry in await page.open()] == [request_for('later')]
    assert [entry.state for entry in await page.history()] == ['withdrawn']


async def test_open_requests_come_oldest_first_and_history_newest_first(make_inbox):
    minutes = iter(range(100))
    inbox = make_inbox(now=lambda: NOON + timedelta(minutes=next(minutes)))

    entries = [await inbox.get(await inbox.post(request_for(name))) for name in 'abc']
    opened = [entry.id for entry in await inbox.open()]
    assert opened == [entry.id for entry in entries]
    assert [entry.id for entry in await inbox.open(limit=2)] == opened[:2]
    for entry in entries:
        await answer(inbox, entry)
    history = await inbox.history()
    assert [entry.id for entry in history] == opened[::-1]
    assert await inbox.history(limit=1) == history[:1]
    assert await inbox.history(before=history[0].settled_at) == history[1:]
    assert await inbox.history(after=history[0].id) == history[1:]
    assert await inbox.history(after=history[2].id) == await inbox.history(after="'; --") == []

    assert await inbox.open() == []


async def test_history_pages_are_complete_for_requests_settled_at_one_moment(make_inbox):
    inbox = make_inbox(now=lambda: NOON)

    entries = [await inbox.get(await inbox.post(request_for(name))) for name in 'abcdefg']
    for entry in entries:
        await answer(inbox, entry)
    page, found = await inbox.history(limit=3), []
    while page:
        found += [entry.id for entry in page]
        page = await inbox.history(limit=3, after=page[-1].id)

    assert found == [entry.id for entry in reversed(entries)]


async def test_history_is_forgotten_in_time_and_open_requests_are_not(make_inbox):
    days = [0]
    agents = make_inbox(now=lambda: NOON + timedelta(days=days[0]))

    entry = await agents.get(await agents.post(request_for()))
    await answer(agents, entry)
    still_open = await agents.post(request_for())
    days[0] = 31
    other = make_inbox(now=lambda: NOON + timedelta(days=31))
    async for _ in other.changes():  # old requests are pruned before the first change is reported
        if not await other.history():
            break
    with pytest.raises(UnknownRequest):
        await agents.get(entry.id)

    assert (await agents.get(still_open)).state == 'pending'


async def test_changes_report_new_and_settled_requests(agents, page):
    changes, seen = page.changes(), set()
    assert await anext(changes) is None

    async def until(request_id):
        while request_id not in seen:
            changed = await anext(changes)
            seen.update(changed if changed is not None else [entry.id for entry in await page.open()])

    async with asyncio.timeout(20):
        request_id = await agents.post(request_for())
        await until(request_id)
        seen.clear()
        await agents.withdraw(request_id)
        await until(request_id)
        await changes.aclose()

    assert seen == {request_id}


def escalating(*after):
    """A rule under which others may answer after each of these times."""
    rule = ApproverRule(users=frozenset({'zoe'}))
    for each in reversed(after):
        rule = ApproverRule(users=frozenset({'ada'}), escalate=Escalation(after=each, to=rule))
    return rule


async def test_changes_report_requests_that_others_may_answer_from_now_on(make_inbox):
    clock = [NOON]
    agents, page = make_inbox(now=lambda: clock[0]), make_inbox(now=lambda: clock[0])
    early = await agents.post(request_for(), approvers=(escalating('30m', '30m'),))
    changes, told = page.changes(), []
    assert await anext(changes) is None

    async def until(*request_ids):
        del told[:]
        while not set(request_ids) <= set(told):
            told.extend(await anext(changes) or ())

    async with asyncio.timeout(20):
        while await agents.post(request_for()) not in (await anext(changes) or ()):
            pass  # the first look at the store reports no ids
        late = await agents.post(request_for(), approvers=(escalating('30m'), escalating('30m', '2h')))
        other = await agents.post(request_for())
        await until(late, other)
        clock[0] += timedelta(minutes=30)
        await until(early, late)
        assert sorted(told) == sorted([early, late])
        clock[0] += timedelta(minutes=30)
        await until(early)
        assert told == [early]
        with pytest.raises(NotAnApprover, match='others may from 2026-03-04 14:30 UTC'):
            await answer(page, await page.get(late), by=BOB)
        await agents.withdraw(early)
        await until(early)
        clock[0] += timedelta(hours=2)
        await until(late)
        assert told == [late]
        await changes.aclose()


async def test_requests_are_read_again_if_it_is_unknown_when_others_may_answer(make_inbox, monkeypatch):
    clock = [NOON]
    agents, page = make_inbox(now=lambda: clock[0]), make_inbox(now=lambda: clock[0])
    changes, get, failed = page.changes(), page.store.get, []
    assert await anext(changes) is None

    def fails_once(request_ids):
        if not failed:
            failed.append(request_ids)
            raise InboxUnavailable('here', 'it is away')
        return get(request_ids)

    monkeypatch.setattr(page.store, 'get', fails_once)
    async with asyncio.timeout(20):
        while not failed:
            request_id = await agents.post(request_for(), approvers=(escalating('30m'),))
            await anext(changes)
        clock[0] += timedelta(minutes=30)
        while request_id not in (await anext(changes) or ()):
            pass
        await changes.aclose()


def test_inbox_serves_several_event_loops(agents, page):
    request_id = asyncio.run(agents.post(request_for()))

    entry = asyncio.run(page.get(request_id))
    asyncio.run(answer(page, entry))

    assert asyncio.run(agents.wait(request_id)).state == 'approved'


async def test_request_that_cannot_be_judged_or_shown_is_not_posted(agents):
    with pytest.raises(NotCanonicalError):
        await agents.post(request_for(float('nan')))
    with pytest.raises(RequestTooLarge):
        await agents.post(request_for('x' * MAX_BYTES, payload={}))

    assert await agents.open() == []


async def test_closing_the_inbox_raises_in_waiting_callers(make_store):
    with Inbox(make_store()) as inbox:
        waiting = asyncio.create_task(inbox.wait(await inbox.post(request_for())))
        await soon(inbox)
    with pytest.raises(InboxError, match='the inbox is closed'):
        await waiting
    with pytest.raises(InboxError, match='the inbox is closed'):
        await inbox.post(request_for())
    inbox.abandon('x')
    inbox.close()


async def test_unreadable_row_hides_no_other_and_cannot_be_answered(agents, page, caplog):
    with caplog.at_level(logging.ERROR):
        posted = await agents.post(request_for())
        page.store.add(Row(id='x' * 43, owner='o', content='{"version":2}', posted_at=NOON))
        assert [entry.id for entry in await page.open()] == [posted]
        with pytest.raises(UnknownRequest):
            await page.decide('x' * 43, YES, by=ADA, digest='d')

    assert 'another program changed it, or a later version wrote it' in caplog.text


DAMAGED = {
    # A time long ago is damaged too, and is pruned.
    'PostgresStore': ['infinity', '20000-01-01 00:00:00+00'],
    'SQLiteStore': ['soon', b'\xff', 2**62, 1e300],
}


@pytest.mark.parametrize('number', range(4))
async def test_a_damaged_time_hides_no_other_request_and_is_reported(number, make_store, make_inbox):
    place = DurableStore(make_store())
    values = DAMAGED[type(place.inbox_store).__name__]
    agents, page = make_inbox(), make_inbox()
    hit, spared, done = [await agents.post(request_for(name)) for name in ('hit', 'spared', 'done')]
    also = await agents.post(request_for('also'))
    for request_id in (done, also):
        await page.decide(request_id, YES, by=ADA, digest=(await page.get(request_id)).digest)

    with place.inbox_store.transaction() as execute:
        value = values[number % len(values)]
        execute('UPDATE requests SET posted_at = ? WHERE id = ?', (value, hit))
        execute('UPDATE requests SET settled_at = ? WHERE id = ?', (value, done))
    place.close()

    found, history = await page.open(), await page.history()
    assert ([entry.id for entry in found], found.damaged) == ([spared], [hit])
    assert ([entry.id for entry in history], history.damaged) == ([also], [done])
    for request_id in (hit, done):
        with pytest.raises(UnknownRequest):
            await page.get(request_id)
    await answer(page, found[0])


async def test_an_answer_to_content_that_was_changed_in_the_store_approves_nothing(agents, page, monkeypatch):
    harmless = page.store.get

    entry = await page.get(await agents.post(request_for('/')))
    # Attack: whoever can write to the store shows another call than the one that waits.
    monkeypatch.setattr(
        page.store,
        'get',
        lambda ids: [replace(row, content=row.content.replace('"/"', '"a"')) for row in harmless(ids)],
    )
    shown = await page.get(entry.id)
    assert shown.request.args == {'path': 'a'}
    await answer(page, shown)
    with pytest.raises(OtherContent):
        await agents.wait(entry.id, digest=entry.digest)
    with pytest.raises(OtherContent):
        await agents.wait(entry.id)
