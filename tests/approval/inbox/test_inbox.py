"""What the inbox does, on every store."""

import asyncio
import logging
from datetime import timedelta

import pytest
from tool_approval.inbox import (
    AlreadySettled,
    ApproverRule,
    InboxError,
    InvalidAnswer,
    NotAnApprover,
    OtherContent,
    RequestTooLarge,
    UnknownRequest,
)
from tool_approval.inbox.entry import MAX_BYTES

from tests.approval.parts import NOON, noon, request_for
from tool_approval import ApprovalDecision, NotCanonicalError

from .parts import ADA, BOB, NO, YES, answer, soon


@pytest.fixture
def agents(make_inbox):
    return make_inbox(now=noon)


@pytest.fixture
def page(make_inbox):
    return make_inbox(now=lambda: NOON + timedelta(minutes=1))


@pytest.mark.parametrize(('decision', 'state'), [(YES, 'approved'), (NO, 'denied')])
def test_an_answer_reaches_who_waits(agents, page, decision, state):
    async def main():
        request_id = await agents.post(request_for('notes.txt'))
        waiting = asyncio.create_task(agents.wait(request_id))
        [entry] = await soon(page)
        returned = await answer(page, entry, decision)
        return entry, returned, await waiting

    entry, returned, waited = asyncio.run(main())

    assert entry.request == request_for('notes.txt')
    assert (entry.state, entry.posted_at, entry.settled_at) == ('pending', NOON, None)
    assert waited == returned
    assert waited.state == state
    assert waited.settled_at == NOON + timedelta(minutes=1)
    assert waited.answer.by == ADA
    assert waited.answer.decision == decision.model_copy(update={'decided_by': 'ada', 'decided_at': waited.settled_at})


def test_all_of_a_decision_travels(agents, page):
    decision = ApprovalDecision(approved=True, note='<i>', override_args={'path': 'b'}, remember='session')

    async def main():
        request_id = await agents.post(request_for())
        await answer(page, await page.get(request_id), decision)
        return await agents.wait(request_id)

    taken = asyncio.run(main()).answer.decision

    assert taken == decision.model_copy(update={'decided_by': 'ada', 'decided_at': taken.decided_at})


def test_an_answer_that_came_before_the_wait_is_not_missed(agents, page):
    async def main():
        request_id = await agents.post(request_for())
        await answer(page, await page.get(request_id))
        return await agents.wait(request_id, 20)

    assert asyncio.run(main()).state == 'approved'


def test_several_wait_for_the_same_request(agents, page):
    async def main():
        request_id = await agents.post(request_for())
        waiting = [asyncio.create_task(each.wait(request_id)) for each in (agents, agents, page)]
        await answer(page, await page.get(request_id))
        return [entry.state for entry in await asyncio.gather(*waiting)]

    assert asyncio.run(main()) == ['approved'] * 3


def test_second_answer_reports_who_was_first_and_when(agents, page):
    async def main():
        entry = await page.get(await agents.post(request_for()))
        await answer(page, entry, NO, by=BOB)
        with pytest.raises(AlreadySettled) as told:
            await answer(agents, entry, YES, by=ADA)
        return told.value, await page.get(entry.id)

    told, kept = asyncio.run(main())

    assert str(told) == "the request is no longer open: denied by 'bob' at 2026-03-04T12:01:00+00:00"
    assert (told.state, told.by, told.at) == ('denied', 'bob', NOON + timedelta(minutes=1))
    assert (kept.state, kept.answer.by) == ('denied', BOB)


def test_of_many_answers_at_once_one_wins(make_inbox):
    inboxes = [make_inbox() for _ in range(3)]

    async def main():
        entry = await inboxes[0].get(await inboxes[0].post(request_for()))
        ended = await asyncio.gather(
            *(answer(inbox, entry, decision) for inbox in inboxes for decision in (YES, NO) for _ in range(5)),
            return_exceptions=True,
        )
        return ended, await inboxes[0].wait(entry.id)

    ended, waited = asyncio.run(main())

    assert [type(each) for each in ended].count(AlreadySettled) == 29
    [winner] = [each for each in ended if not isinstance(each, AlreadySettled)]
    assert winner == waited


def test_an_answer_for_another_digest_is_refused_and_the_request_stays_open(agents, page):
    async def main():
        first = await page.get(await agents.post(request_for('a')))
        second = await page.get(await agents.post(request_for('a')))
        for digest in (second.digest, '', 'ä\ud800', first.digest.upper()):
            with pytest.raises(OtherContent, match='load the request again and decide anew'):
                await page.decide(first.id, YES, by=ADA, digest=digest)
        return [entry.id for entry in await page.open()] == [first.id, second.id]

    assert asyncio.run(main())


@pytest.mark.parametrize(
    'request_id', ['', 'x', 'a' * 43, '\x00' * 43, '\ud800' * 43, "' OR 1=1 --" + 'a' * 32, 'ä' * 43]
)
def test_an_id_that_was_never_given_out_answers_nothing(agents, request_id):
    async def main():
        for act in (
            agents.get(request_id),
            agents.wait(request_id, 20),
            agents.decide(request_id, YES, by=ADA, digest='d'),
            agents.withdraw(request_id),
        ):
            with pytest.raises(UnknownRequest, match=r'^there is no such request in the inbox$'):
                await act

    asyncio.run(main())


def test_ids_are_unguessable(agents):
    async def main():
        return {await agents.post(request_for()) for _ in range(20)}

    ids = asyncio.run(main())

    assert {len(each) for each in ids} == {43}
    assert len(ids) == 20


def test_who_is_not_listed_may_not_answer_and_the_request_stays_open(agents, page):
    async def main():
        rule = ApproverRule(groups=frozenset({'ops'}))
        entry = await page.get(await agents.post(request_for(), approvers=(rule,), requester='bob'))
        for decision in (YES, NO):
            with pytest.raises(NotAnApprover, match='only listed approvers may answer'):
                await answer(page, entry, decision, by=ADA)
        assert (await page.get(entry.id)).state == 'pending'
        return await answer(page, entry, YES, by=BOB)

    assert asyncio.run(main()).state == 'approved'


def test_the_requester_may_not_answer_where_that_is_barred(agents, page):
    async def main():
        entry = await page.get(await agents.post(request_for(), requester='ada', forbid_self_approval=True))
        with pytest.raises(NotAnApprover, match='requesters may not answer their own requests'):
            await answer(page, entry, YES, by=ADA)
        return await answer(page, entry, YES, by=BOB)

    assert asyncio.run(main()).state == 'approved'


def test_an_answer_that_the_request_does_not_offer_is_refused(agents, page):
    async def main():
        entry = await page.get(await agents.post(request_for()))
        with pytest.raises(InvalidAnswer, match='does not offer this remember option'):
            await answer(page, entry, ApprovalDecision(approved=True, remember='session', remember_option='all'))
        return await page.get(entry.id)

    assert asyncio.run(main()).state == 'pending'


def test_nobody_answers_in_time_and_then_it_is_too_late(agents, page):
    async def main():
        entry = await page.get(await agents.post(request_for()))
        waited = await agents.wait(entry.id, 0.01)
        with pytest.raises(AlreadySettled, match='expired at 2026-03-04T12:00:00'):
            await answer(page, entry)
        return waited, await page.history()

    waited, history = asyncio.run(main())

    assert (waited.state, waited.answer) == ('expired', None)
    assert history == [waited]


def test_an_answer_as_the_time_is_up_holds(agents, page, monkeypatch):
    async def main():
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
        return await agents.wait(entry.id, 0.01)

    assert asyncio.run(main()).state == 'approved'


def test_a_withdrawn_request_can_not_be_answered(agents, page):
    async def main():
        entry = await page.get(await agents.post(request_for()))
        waiting = asyncio.create_task(agents.wait(entry.id))
        await page.withdraw(entry.id)
        with pytest.raises(AlreadySettled, match='open: withdrawn at'):
            await answer(page, entry)
        with pytest.raises(AlreadySettled):
            await agents.withdraw(entry.id)
        return await waiting

    assert asyncio.run(main()).state == 'withdrawn'


def test_an_abandoned_request_is_withdrawn_without_waiting(agents, page):
    async def main():
        entry = await page.get(await agents.post(request_for()))
        waiting = asyncio.create_task(page.wait(entry.id))
        agents.abandon(entry.id)
        return await waiting

    assert asyncio.run(main()).state == 'withdrawn'


def test_a_wait_that_is_cancelled_leaves_the_request_to_others(agents, page):
    async def main():
        entry = await page.get(await agents.post(request_for()))
        waiting = asyncio.create_task(agents.wait(entry.id))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await answer(page, entry)
        return await agents.wait(entry.id)

    assert asyncio.run(main()).state == 'approved'


def test_a_request_that_is_cancelled_while_it_is_posted_does_not_stay_open(agents, page):
    async def main():
        posting = asyncio.create_task(agents.post(request_for()))
        await asyncio.sleep(0)
        posting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await posting
        await agents.post(request_for('later'))
        return [entry.request for entry in await page.open()], [entry.state for entry in await page.history()]

    assert asyncio.run(main()) == ([request_for('later')], ['withdrawn'])


def test_open_requests_come_oldest_first_and_history_newest_first(make_inbox):
    minutes = iter(range(100))
    inbox = make_inbox(now=lambda: NOON + timedelta(minutes=next(minutes)))

    async def main():
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
        return await inbox.open()

    assert asyncio.run(main()) == []


def test_history_is_read_on_where_many_were_settled_at_one_moment(make_inbox):
    inbox = make_inbox(now=lambda: NOON)

    async def main():
        entries = [await inbox.get(await inbox.post(request_for(name))) for name in 'abcdefg']
        for entry in entries:
            await answer(inbox, entry)
        page, found = await inbox.history(limit=3), []
        while page:
            found += [entry.id for entry in page]
            page = await inbox.history(limit=3, after=page[-1].id)
        return found, [entry.id for entry in entries]

    found, answered = asyncio.run(main())

    assert found == answered[::-1]


def test_history_is_forgotten_in_time_and_open_requests_are_not(make_inbox):
    days = [0]
    agents = make_inbox(now=lambda: NOON + timedelta(days=days[0]))

    async def main():
        entry = await agents.get(await agents.post(request_for()))
        await answer(agents, entry)
        still_open = await agents.post(request_for())
        days[0] = 31
        other = make_inbox(now=lambda: NOON + timedelta(days=31))
        async for _ in other.changes():  # it keeps house before it tells of anything
            if not await other.history():
                break
        with pytest.raises(UnknownRequest):
            await agents.get(entry.id)
        return (await agents.get(still_open)).state

    assert asyncio.run(main()) == 'pending'


def test_changes_tell_of_everything_that_happens(agents, page):
    async def main():
        changes = page.changes()
        assert await anext(changes) is None
        seen: set[str] = set()

        async def until(request_id):
            while request_id not in seen:
                changed = await anext(changes)
                seen.update(changed if changed is not None else [entry.id for entry in await page.open()])

        request_id = await agents.post(request_for())
        await until(request_id)
        seen.clear()
        await agents.withdraw(request_id)
        await until(request_id)
        await changes.aclose()
        return seen

    async def limited():
        async with asyncio.timeout(20):
            return await main()

    assert len(asyncio.run(limited())) == 1


def test_an_inbox_serves_several_event_loops(agents, page):
    request_id = asyncio.run(agents.post(request_for()))

    entry = asyncio.run(page.get(request_id))
    asyncio.run(answer(page, entry))

    assert asyncio.run(agents.wait(request_id)).state == 'approved'


def test_request_that_cannot_be_judged_or_shown_is_not_posted(agents):
    async def main():
        with pytest.raises(NotCanonicalError):
            await agents.post(request_for(float('nan')))
        with pytest.raises(RequestTooLarge):
            await agents.post(request_for('x' * MAX_BYTES, payload={}))
        return await agents.open()

    assert asyncio.run(main()) == []


def test_closing_the_inbox_raises_in_waiting_callers(make_store):
    from tool_approval.inbox import Inbox

    async def main():
        with Inbox(make_store()) as inbox:
            waiting = asyncio.create_task(inbox.wait(await inbox.post(request_for())))
            await soon(inbox)
        with pytest.raises(InboxError, match='the inbox is closed'):
            await waiting
        with pytest.raises(InboxError, match='the inbox is closed'):
            await inbox.post(request_for())
        inbox.abandon('x')
        return inbox

    asyncio.run(main()).close()


def test_a_row_that_cannot_be_read_hides_no_other_and_can_not_be_answered(agents, page, caplog):
    from tool_approval.inbox import Row

    async def main():
        posted = await agents.post(request_for())
        page.store.add(Row(id='x' * 43, owner='o', content='{"version":2}', posted_at=NOON))
        assert [entry.id for entry in await page.open()] == [posted]
        with pytest.raises(UnknownRequest):
            await page.decide('x' * 43, YES, by=ADA, digest='d')

    with caplog.at_level(logging.ERROR):
        asyncio.run(main())

    assert 'another program changed it, or a later version wrote it' in caplog.text


def test_an_answer_to_content_that_was_changed_in_the_store_approves_nothing(agents, page, monkeypatch):
    from dataclasses import replace

    harmless = page.store.get

    async def main():
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

    asyncio.run(main())
