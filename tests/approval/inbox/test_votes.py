"""Several people answer one after another in an inbox, and each sees who has agreed."""

import asyncio

import pytest
from tool_approval.core.request import Votes
from tool_approval.display import facts
from tool_approval.inbox import AlreadySettled, Approver, ApproverRule, InboxUI, NotAnApprover
from tool_approval.testing import RecordingUI

from tests.approval.parts import ListSink, request_for
from tool_approval import ApprovalController, ApprovalDecision, Count, FirstOf

from .parts import ADA, BOB, NO, YES, answer, soon

pytestmark = pytest.mark.anyio

EVE = Approver(id='eve')


@pytest.fixture
def inbox(make_inbox):
    return make_inbox()


@pytest.fixture
def page(make_inbox):
    return make_inbox()


def asking(ui, **fields):
    log = ListSink()
    controller = ApprovalController(ui=ui, audit=log)
    return asyncio.create_task(controller.request_approval(request_for(**fields))), log


async def test_each_vote_is_a_request_that_shows_who_has_agreed(inbox, page):
    decided, log = asking(Count(2, InboxUI(inbox)))

    [first] = await soon(page)
    taken = await answer(page, first, YES, by=ADA)
    [second] = await soon(page)
    last = await answer(page, second, YES, by=BOB)
    decision = await decided

    assert (decision.approved, decision.decided_by) == (True, ('ada', 'bob'))
    assert [dict(facts(each.request))['agreed'] for each in (first, second)] == ['0 of 2 people', '1 of 2 people: ada']
    assert (taken.outcome, last.outcome) == ('Approved by ada (1 of 2)', 'Approved by bob (2 of 2)')
    assert log.entries[0]['decided_by'] == ['ada', 'bob']
    assert first.id != second.id and first.digest != second.digest


async def test_who_has_agreed_may_only_deny_and_an_answer_is_not_taken_twice(inbox, page):
    for last, outcome in ((YES, 'Approved by bob (2 of 2)'), (NO, 'Denied by ada')):
        decided, _ = asking(Count(2, InboxUI(inbox)))
        [first] = await soon(page)
        await answer(page, first, YES, by=ADA)
        [second] = await soon(page)

        with pytest.raises(NotAnApprover, match='another person must agree too'):
            await answer(page, second, YES, by=ADA)
        with pytest.raises(NotAnApprover):
            await answer(page, second, YES, by=Approver(id='ADA'))
        with pytest.raises(AlreadySettled):
            await answer(page, first, YES, by=BOB)
        settled = await answer(page, second, last, by=BOB if last is YES else ADA)

        assert settled.outcome == outcome
        assert (await decided).approved is (last is YES)


async def test_the_requester_has_no_vote_although_self_approval_is_allowed(inbox, page):
    ui = InboxUI(inbox, requester='ada')
    decided, _ = asking(Count(2, ui))
    [first] = await soon(page)

    with pytest.raises(NotAnApprover, match='requesters may not answer their own requests'):
        await answer(page, first, YES, by=ADA)
    await answer(page, first, YES, by=BOB)
    [second] = await soon(page)
    await answer(page, second, YES, by=EVE)

    assert (await decided).decided_by == ('bob', 'eve')
    request = request_for(votes=Votes(needed=2))
    assert ui.may_approve(request, ('bob', 'eve'))
    assert not ui.may_approve(request, ('bob', 'ada'))
    assert not ui.may_approve(request, ('bob', 'ADA'))
    assert ui.may_approve(request_for(), ('bob', 'ada'))


async def test_a_change_starts_over_and_is_shown_to_the_others(inbox, page):
    decided, _ = asking(Count(2, InboxUI(inbox)))
    [first] = await soon(page)
    await answer(page, first, YES, by=ADA)
    [second] = await soon(page)
    changed = ApprovalDecision(approved=True, override_args={'path': 'b'})

    edited = await answer(page, second, changed, by=BOB)
    [third] = await soon(page)
    await answer(page, third, YES, by=ADA)
    decision = await decided

    assert edited.outcome.endswith('by bob (1 of 2)')
    assert third.request.args == {'path': 'b'}
    assert dict(facts(third.request))['agreed'] == '1 of 2 people: bob'
    assert (decision.override_args, decision.decided_by) == ({'path': 'b'}, ('bob', 'ada'))


async def test_only_listed_people_have_a_vote_also_right_before_the_call_runs(inbox, page):
    ui = InboxUI(inbox, approvers={'delete': ApproverRule(users={'ada', 'bob'})})
    decided, _ = asking(Count(2, ui))
    [first] = await soon(page)

    with pytest.raises(NotAnApprover, match='only listed approvers may answer'):
        await answer(page, first, YES, by=EVE)
    await answer(page, first, NO, by=BOB)

    assert not (await decided).approved
    assert Count(2, ui).may_approve(request_for(), ('ada', 'bob'))
    assert not Count(2, ui).may_approve(request_for(), ('ada', 'eve'))


async def test_an_answer_around_the_votes_settles_the_open_request(inbox, page):
    class Later(RecordingUI):
        async def choose(self, request, *, mode):
            await voted.wait()
            return ApprovalDecision(approved=False, decided_by=('eve',))

    voted = asyncio.Event()
    decided, _ = asking(FirstOf(Count(2, InboxUI(inbox)), Later()))
    [first] = await soon(page)
    await answer(page, first, YES, by=ADA)
    await soon(page)
    voted.set()

    assert (await decided).decided_by == ('eve',)
    await asyncio.to_thread(lambda: None)
    newest = (await page.history())[0]
    while newest.answer is None or newest.answer.by.id != 'eve':
        newest = (await page.history())[0]
    assert newest.outcome == 'Denied by eve'
