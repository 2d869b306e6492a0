"""Others are asked too if nobody has answered for a while."""

import asyncio
from datetime import timedelta

import pytest
from tool_approval.testing import RecordingUI, check_composition

from tests.approval.parts import request_for
from tool_approval import ApprovalController, ApprovalDecision, Count, Escalating, FirstOf

pytestmark = pytest.mark.anyio

AFTER = timedelta(minutes=30)


def yes(name):
    return ApprovalDecision(approved=True, decided_by=(name,))


class Waits:
    """Answers when told."""

    def __init__(self):
        self.asked, self.answer, self.is_withdrawn = asyncio.Event(), asyncio.get_running_loop().create_future(), False

    async def choose(self, request, *, mode):
        self.asked.set()
        try:
            return await self.answer
        except asyncio.CancelledError:
            self.is_withdrawn = True
            raise


class Clock:
    """Time passes when told."""

    def __init__(self):
        self.waits, self.passed = [], asyncio.Event()

    async def wait(self, seconds):
        self.waits.append(seconds)
        await self.passed.wait()


async def turns():
    for _ in range(20):
        await asyncio.sleep(0)


def asking(ui, *paths):
    controller = ApprovalController(ui=ui)
    return asyncio.create_task(controller.request_approvals([request_for(path) for path in paths or ('a',)]))


async def test_it_is_a_ui_like_the_uis_that_it_asks():
    async def at_once(seconds):
        return

    async def never(seconds):
        await asyncio.Event().wait()

    class Nobody(RecordingUI):
        def may_approve(self, request, approvers):
            return False

    nobody = Nobody(ApprovalDecision(approved=False, note='There is nobody.', decided_by=('ui',)))
    await check_composition(lambda ui: Escalating(nobody, after=AFTER, to=ui, wait=at_once))
    answers = [ApprovalDecision(approved=True, decided_by=('ada',)), ApprovalDecision(approved=False)]
    for answer in answers:
        first, second = RecordingUI(answer), RecordingUI()
        [decision] = await asking(Escalating(first, after=AFTER, to=second, wait=never))
        assert (decision.approved, len(second.requests)) == (answer.approved, 0)


async def test_others_are_asked_when_the_time_has_passed_and_the_first_question_stays_open():
    for first_answers in (True, False):
        first, second, clock = Waits(), Waits(), Clock()
        decided = asking(Escalating(first, after=AFTER, to=second, wait=clock.wait))
        await first.asked.wait()
        await turns()
        assert not second.asked.is_set()

        clock.passed.set()
        await second.asked.wait()
        assert not first.is_withdrawn
        (first if first_answers else second).answer.set_result(yes('ada' if first_answers else 'eve'))
        [decision] = await decided

        assert decision.decided_by == (('ada',) if first_answers else ('eve',))
        assert (second if first_answers else first).is_withdrawn
        assert clock.waits == [1800.0]


async def test_a_denial_before_the_time_has_passed_asks_nobody_else():
    second, clock = RecordingUI(), Clock()

    [decision] = await asking(Escalating(RecordingUI(False), after=AFTER, to=second, wait=clock.wait))

    assert (decision.approved, second.requests) == (False, [])


async def test_it_keeps_its_time_inside_of_first_of_and_count():
    for compose in (FirstOf, lambda ui: Count(2, ui)):
        first, second, clock = Waits(), RecordingUI(yes('eve')), Clock()
        decided = asking(compose(Escalating(first, after=AFTER, to=second, wait=clock.wait)))
        await first.asked.wait()
        await turns()
        assert second.requests == []
        first.answer.set_result(ApprovalDecision(approved=False))
        await decided


async def test_people_of_both_make_up_a_count():
    clock = Clock()
    clock.passed.set()
    first, second = RecordingUI(yes('ada')), RecordingUI(yes('eve'))

    [decision] = await asking(Count(2, Escalating(first, after=AFTER, to=second, wait=clock.wait)))

    assert (decision.approved, sorted(decision.decided_by)) == (True, ['ada', 'eve'])


async def test_a_group_is_escalated_as_one():
    class Groups(RecordingUI):
        groups_responses = True

        def choose_group(self, requests, *, mode):
            self.requests += requests
            return [yes('eve')] * len(requests)

    clock = Clock()
    clock.passed.set()
    first, groups = Waits(), Groups()
    ui = Escalating(first, after=AFTER, to=groups, wait=clock.wait)

    decisions = await asking(ui, 'a', 'b')

    assert ui.groups_responses
    assert [each.decided_by for each in decisions] == [('eve',)] * 2


@pytest.mark.parametrize(
    ('after', 'error'), [(timedelta(), ValueError), (timedelta(seconds=-1), ValueError), (30, TypeError)]
)
def test_a_time_that_is_none_is_refused(after, error):
    with pytest.raises(error, match='`after` must be'):
        Escalating(RecordingUI(), after=after, to=RecordingUI())
