"""Several UIs are asked at once: the first answer counts, and the others are withdrawn and informed."""

import asyncio
import contextlib
import threading

import pytest
from tool_approval.core.threads import RunCancelled
from tool_approval.testing import RecordingUI, ScriptedUI

from tests.approval.parts import ListSink, logged, request_for
from tool_approval import ApprovalController, ApprovalDecision, FirstOf, answered_elsewhere

pytestmark = pytest.mark.anyio

YES = ApprovalDecision(approved=True, decided_by=('ada',))
NO = ApprovalDecision(approved=False, note='Not now.', decided_by=('bob',))
OF_NOBODY = ApprovalDecision(approved=False, note='There is no terminal.', decided_by=('ui',))


class Waits:
    """A UI that answers when `answer` is called, and notes how its questions ended."""

    def __init__(self):
        self.open, self.ended = {}, []

    async def choose(self, request, *, mode):
        self.open[request.args['path']] = asyncio.get_running_loop().create_future()
        try:
            return await self.open[request.args['path']]
        except asyncio.CancelledError:
            elsewhere = answered_elsewhere(request)
            self.ended.append(None if elsewhere is None else (request.args['path'], elsewhere.decided_by))
            raise

    async def answer(self, path, decision):
        await self.asked(path)
        self.open.pop(path).set_result(decision)

    async def asked(self, path):
        while path not in self.open:
            await asyncio.sleep(0)


class WaitsForGroups(Waits):
    """A UI that asks about a group at once."""

    groups_responses = True

    async def choose_group(self, requests, *, mode):
        name = '+'.join(request.args['path'] for request in requests)
        self.open[name] = asyncio.get_running_loop().create_future()
        try:
            return await self.open[name]
        except asyncio.CancelledError:
            self.ended += [(name, each.decided_by) for each in map(answered_elsewhere, requests) if each is not None]
            raise


class Raises:
    """A UI that fails."""

    def __init__(self, error):
        self._error = error

    async def choose(self, request, *, mode):
        raise self._error


class Returns:
    """A UI whose answer is ready, or is none."""

    def __init__(self, answer):
        self._answer = answer

    def choose(self, request, *, mode):
        return self._answer


def decide(ui, *paths, then=None, timeout=None, audit=None):
    """What is decided about requests for these paths; `then` is awaited meanwhile."""

    async def main():
        controller = ApprovalController(ui=ui, timeout=timeout, audit=audit)
        asking = asyncio.create_task(controller.request_approvals([request_for(path) for path in paths or ('a',)]))
        if then is not None:
            await then
        return await asking

    return asyncio.run(main())


@pytest.mark.parametrize('decision', [YES, NO])
@pytest.mark.parametrize('is_first', [True, False])
def test_first_answer_counts_and_the_other_ui_learns_whose_it_was(decision, is_first):
    quick, slow, log = Waits(), Waits(), ListSink()
    ui = FirstOf(quick, slow) if is_first else FirstOf(slow, quick)

    [decided] = decide(ui, then=quick.answer('a', decision), audit=log)

    assert (decided.approved, decided.note) == (decision.approved, decision.note)
    assert slow.ended == [('a', decision.decided_by)]
    [entry] = log.entries
    assert entry['decided_by'] == list(decision.decided_by)


@pytest.mark.parametrize('decisions', [(YES, NO), (NO, YES)])
def test_denial_wins_over_an_approval_at_the_same_moment(decisions):
    uis = Waits(), Waits()

    async def then():
        for ui in uis:
            await ui.asked('a')
        for ui, decision in zip(uis, decisions, strict=True):
            ui.open['a'].set_result(decision)

    [decided] = decide(FirstOf(*uis), then=then())

    assert decided.decided_by == ('bob',)


def test_a_denial_in_the_name_of_a_rule_is_a_denial():
    denial = ApprovalDecision(approved=False, note='Not now.', decided_by=('policy',))

    [decided] = decide(FirstOf(Returns(denial), Returns(YES)))

    assert (decided.approved, decided.note, decided.decided_by) == (False, 'Not now.', ('other',))


class OnFuture:
    """A UI that answers when `tell` is called, which returns whether the question was still open."""

    def __init__(self):
        self.asked = asyncio.Event()

    async def choose(self, request, *, mode):
        self.future = asyncio.get_running_loop().create_future()
        self.asked.set()
        return self.answer(await self.future)

    @staticmethod
    def answer(answer):
        if isinstance(answer, ApprovalDecision):
            return answer
        raise answer

    def tell(self, answer):
        if self.future.done():
            return False
        self.future.set_result(answer)
        return True


class InTime(OnFuture):
    """A UI with its own time limit."""

    async def choose(self, request, *, mode):
        async with asyncio.timeout(30):
            return await super().choose(request, mode=mode)


class WhenCancelled(OnFuture):
    """A UI that answers only when it is cancelled."""

    async def choose(self, request, *, mode):
        self.answers, self.is_cancelled = [], False
        self.asked.set()
        try:
            return await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.is_cancelled = True
            if self.answers:
                return self.answer(self.answers[0])
            raise

    def tell(self, answer):
        self.answers.append(answer)
        return not self.is_cancelled


class InThread(OnFuture):
    """A UI that blocks, and returns before `tell` does."""

    def choose(self, request, *, mode):
        self.thread, self.told = threading.current_thread(), threading.Event()
        self.loop.call_soon_threadsafe(self.asked.set)
        assert self.told.wait(30)
        return self.answer(self.said)

    def tell(self, answer):
        self.said = answer
        self.told.set()
        self.thread.join(30)
        return not self.is_decided()


class ThenAwaited(OnFuture):
    """A UI whose `choose` is a plain function that returns an awaitable."""

    def choose(self, request, *, mode):
        return super().choose(request, mode=mode)


STEPS = 9
"""After so many turns of the loop, one approval has long been returned."""


async def turns(count):
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize('answer', [NO, RunCancelled(), KeyboardInterrupt()], ids=['denial', 'stop', 'interrupt'])
@pytest.mark.parametrize('kind', [OnFuture, InTime, WhenCancelled, InThread, ThenAwaited])
def test_no_denial_is_dropped_while_a_question_is_withdrawn(kind, answer, caplog):
    """Tried at each turn of the loop after an approval, in either order, and with a third UI that is withdrawn too."""
    outcomes = []

    async def once(turn, is_last, is_inner):
        approver, denier, third = OnFuture(), kind(), OnFuture()
        rest = FirstOf(third, denier) if is_inner else denier
        ui = FirstOf(*((approver, rest, third) if is_last else (rest, approver, third)))
        asking = asyncio.ensure_future(caught(ui.choose(request_for('a'), mode='interactive')))
        denier.loop, denier.is_decided = asyncio.get_running_loop(), asking.done
        for each in (approver, denier):
            await each.asked.wait()
        caplog.clear()
        approver.tell(YES)
        await turns(turn)
        came_in_time = denier.tell(answer)
        decided = await asking
        await turns(3)
        is_denied = decided is answer or (decided.decided_by, decided.approved) == (('bob',), False)
        assert is_denied is came_in_time
        if kind is InThread and not came_in_time:
            assert 'approved' in logged(caplog)[0]
        outcomes.append(is_denied)

    async def caught(asking):
        try:
            return await asking
        except (RunCancelled, KeyboardInterrupt) as stop:
            return stop

    for turn in range(STEPS):
        for is_last in (True, False):
            for is_inner in (True, False):
                asyncio.run(once(turn, is_last, is_inner))

    assert set(outcomes) == {True, False}


class AnswersWhenCancelled:
    """A UI that returns this when it is cancelled."""

    groups_responses = True

    def __init__(self, *answers):
        self._answers = answers
        self.asked = 0

    async def choose(self, request, *, mode):
        [answer] = await self.choose_group([request], mode=mode)
        return answer

    async def choose_group(self, requests, *, mode):
        self.asked += 1
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return list(self._answers)


def test_denials_given_while_a_group_is_withdrawn_count_and_the_rest_is_asked_again():
    inbox, terminal = Waits(), AnswersWhenCancelled(YES, NO, YES)

    async def then():
        await inbox.answer('b', YES)
        while terminal.asked < 2:
            await asyncio.sleep(0)
        await inbox.answer('a', NO)
        await inbox.answer('c', NO)

    decided = decide(FirstOf(inbox, terminal), 'a', 'b', 'c', then=then())

    assert [each.approved for each in decided] == [False, False, False]
    assert inbox.ended == []


def test_denial_by_a_cancelled_ui_itself_does_not_count():
    person = Waits()

    [decided] = decide(FirstOf(AnswersWhenCancelled(OF_NOBODY), person), then=person.answer('a', YES))

    assert decided.approved


@pytest.mark.parametrize(
    'broken', [Raises(ConnectionError('secret')), Raises(EOFError()), RecordingUI(OF_NOBODY), Returns(None)]
)
def test_an_error_of_one_does_not_take_the_question_from_the_other(broken):
    person = Waits()

    [decided] = decide(FirstOf(broken, person), then=person.answer('a', YES))

    assert (decided.approved, decided.decided_by) == (True, ('ada',))


def test_call_is_denied_with_a_reason_if_all_uis_fail():
    [decided] = decide(FirstOf(Raises(ConnectionError('secret')), Raises(ConnectionError('secret'))))

    assert (decided.approved, decided.decided_by) == (False, ('ui',))
    assert decided.note == 'The approval prompt failed (ConnectionError), so the call was denied.'


def test_a_denial_without_a_name_is_that_of_a_person():
    person = Waits()

    [decided] = decide(FirstOf(ScriptedUI(['Keep it.']), person))

    assert decided.note == 'Keep it.'
    assert person.ended == [('a', ())]


def test_cancelling_cancels_both():
    one, other = Waits(), Waits()

    [decided] = decide(FirstOf(one, other), timeout=0.05)

    assert decided.decided_by == ('timeout',)
    assert one.ended == other.ended == [None]


@pytest.mark.parametrize('stop', [KeyboardInterrupt, RunCancelled])
async def test_stopping_the_run_at_one_stops_it(stop):
    other = Waits()

    with pytest.raises(stop):
        await FirstOf(Raises(stop()), other).choose(request_for('a'), mode='interactive')
    assert other.ended in ([None], [])


def test_a_group_is_one_question_for_one_and_several_for_the_other():
    terminal, inbox = WaitsForGroups(), Waits()

    async def then():
        await terminal.asked('a+b+c')
        await inbox.answer('b', NO)
        await terminal.asked('a+c')
        await inbox.answer('a', YES)
        await terminal.answer('c', YES)

    decided = decide(FirstOf(terminal, inbox), 'a', 'b', 'c', then=then())

    assert [each.approved for each in decided] == [True, False, True]
    assert terminal.ended == [('a+b+c', ('bob',)), ('a+c', ('ada',))]
    assert inbox.ended == [('c', ('ada',))]


def test_group_whose_requests_are_all_answered_is_not_asked_again():
    terminal, inbox = WaitsForGroups(), Waits()

    async def then():
        await terminal.asked('a+b')
        await inbox.answer('b', NO)
        await terminal.asked('a')
        await inbox.answer('a', YES)

    decide(FirstOf(terminal, inbox), 'a', 'b', then=then())

    assert terminal.ended == [('a+b', ('bob',)), ('a', ('ada',))]
    assert terminal.open.keys() == {'a+b', 'a'}


def test_an_answer_to_the_whole_group_withdraws_all_the_others():
    terminal, inbox = WaitsForGroups(), Waits()

    async def then():
        await inbox.asked('b')
        await terminal.answer('a+b', [YES, NO])

    decided = decide(FirstOf(terminal, inbox), 'a', 'b', then=then())

    assert [each.approved for each in decided] == [True, False]
    assert sorted(inbox.ended) == [('a', ('ada',)), ('b', ('bob',))]


def test_group_that_one_ui_cannot_ask_is_left_to_the_other():
    inbox = Waits()

    class NoTerminal(WaitsForGroups):
        async def choose_group(self, requests, *, mode):
            return [OF_NOBODY] * len(requests)

    async def then():
        await inbox.answer('a', YES)
        await inbox.answer('b', NO)

    decided = decide(FirstOf(NoTerminal(), inbox), 'a', 'b', then=then())

    assert [each.approved for each in decided] == [True, False]


def test_blocking_ui_is_abandoned_and_asked_one_question_at_a_time():
    goes_on = threading.Event()
    asked = []

    class Blocks:
        def choose(self, request, *, mode):
            asked.append(request.args['path'])
            goes_on.wait(30)
            return YES

    inbox = Waits()

    async def then():
        await inbox.answer('a', NO)
        goes_on.set()

    decided = decide(FirstOf(Blocks(), inbox), 'a', 'b', then=then())

    assert [each.approved for each in decided] == [False, True]
    assert asked == ['a', 'b']


def test_nested_first_of_informs_the_innermost_ui():
    person, other = Waits(), Waits()

    [decided] = decide(FirstOf(FirstOf(other), person), then=person.answer('a', YES))

    assert decided.approved
    assert other.ended == [('a', ('ada',))]


class Lists(Waits):
    """A UI that says who may approve."""

    def __init__(self, *approvers):
        super().__init__()
        self._approvers = approvers

    def may_approve(self, request, approvers):
        return set(approvers) <= set(self._approvers)


@pytest.mark.parametrize(
    ('uis', 'may_approve'),
    [((Lists('bob'), Lists()), False), ((Lists('bob'), Lists('ada')), True), ((Lists('bob'), Waits()), True)],
)
def test_an_approval_holds_as_long_as_its_approver_may_approve_at_one_of_them(uis, may_approve):
    controller = ApprovalController(ui=FirstOf(*uis))

    reason = controller.still_holds(request_for('a'), approvers=('ada',), remembered=None)

    assert (reason is None) is may_approve


def test_first_of_needs_at_least_one_ui():
    with pytest.raises(ValueError, match='needs at least one UI'):
        FirstOf()


def test_answered_elsewhere_is_none_outside_of_first_of():
    assert answered_elsewhere(request_for('a')) is None
