import asyncio
import contextlib
import threading
import time

import pytest
from tool_approval.core.asking import PromptLock, ask, passing_on
from tool_approval.core.decision import RULES
from tool_approval.testing import RecordingUI, ScriptedUI

from tests.approval.parts import ListSink, decide, in_threads, logged, request_for
from tool_approval import ApprovalController, ApprovalDecision, RememberOption

pytestmark = pytest.mark.anyio

YES = ApprovalDecision(approved=True)
REQUESTS = [request_for('a', group_id='g'), request_for('b', group_id='g')]


async def ask_about(ui, *requests, timeout_s=None, lock=None):
    return await ask(ui, requests, mode='interactive', timeout_s=timeout_s, lock=lock or PromptLock())


def asked(ui, *requests, **options):
    return asyncio.run(ask_about(ui, *(requests or (request_for(),)), **options))


class Grouped:
    """Answers a group with what it was given."""

    def __init__(self, answer):
        self.answer = answer
        self.groups = []

    def choose(self, request, *, mode):
        raise AssertionError('a group is one question')

    def choose_group(self, requests, *, mode):
        self.groups.append((requests, mode))
        return self.answer


class Plain:
    """A UI whose `choose` is a function."""

    def __init__(self, choose, *, one_at_a_time=False):
        self.choose = choose
        self.one_at_a_time = one_at_a_time
        self.withdrawn = []

    def withdraw(self, request):
        self.withdrawn.append(request)


class AnnouncedLock(PromptLock):
    """Counts the callers that are about to wait for the turn."""

    def __init__(self):
        super().__init__()
        self.asked_for = threading.Semaphore(0)

    def _ask(self):
        turn = super()._ask()
        self.asked_for.release()
        return turn


def test_any_object_with_choose_is_a_ui():
    class Mine:
        def choose(self, request, *, mode):
            return ApprovalDecision(approved=mode == 'interactive', note=request.description)

    assert asked(Mine()) == [ApprovalDecision(approved=True, note="delete(path='a')")]


def test_choose_may_be_a_coroutine_function():
    class Mine:
        async def choose(self, request, *, mode):
            return ApprovalDecision(approved=True, note=threading.current_thread().name)

    assert asked(Mine())[0].note == threading.current_thread().name


async def test_a_plain_choose_blocks_its_own_thread_alone():
    release = threading.Event()

    def choose(request, *, mode):
        release.wait(60)
        return YES

    waiting = asyncio.create_task(ask_about(Plain(choose), request_for()))
    await asyncio.sleep(0)
    release.set()

    assert await waiting == [YES]


def test_call_without_a_ui_is_denied():
    [decision] = asked(None)

    assert decision == ApprovalDecision(
        approved=False, note='There is no approver to ask, so the call was denied.', decided_by=('ui',)
    )


@pytest.mark.parametrize('approved', [True, False])
@pytest.mark.parametrize('name', [*sorted(RULES), 'Policy', 'memory '])
def test_a_ui_cannot_decide_in_the_name_of_a_rule(name, approved):
    log = ListSink()
    answer = ApprovalDecision(approved=approved, note='yes', decided_by=(name,))
    controller = ApprovalController(ui=RecordingUI(answer), audit=log)

    decision = decide(controller, request_for())

    # A UI may say that it, or the time, denied, and that a reviewer approved.
    is_so = name == 'ui' or (name == 'timeout' and not approved) or (name == 'reviewer' and approved)
    expected = name if is_so else 'other'
    assert (decision.approved, decision.decided_by) == (approved, (expected,))
    assert [(entry['event'], entry.get('decided_by')) for entry in log.all] == [
        ('question', None),
        ('decision', [expected]),
    ]
    assert log.all[1]['how'] == expected


def test_a_group_is_one_question_with_one_answer_for_all():
    ui = Grouped(ApprovalDecision(approved=True, remember='session'))

    decisions = asked(ui, *REQUESTS)

    assert decisions == [ui.answer, ui.answer]
    assert ui.groups == [(REQUESTS, 'interactive')]


@pytest.mark.parametrize('shape', [list, tuple])
def test_a_group_may_be_answered_one_by_one(shape):
    no = ApprovalDecision(approved=False, note='not b')

    assert asked(Grouped(shape([YES, no])), *REQUESTS) == [YES, no]


def test_an_option_that_was_offered_may_be_remembered():
    option = RememberOption(kind='folder', label='all', payload={})
    decision = ApprovalDecision(approved=True, remember='session', remember_option='folder')

    assert asked(RecordingUI(decision), request_for(remember_options=(option,))) == [decision]


def test_decision_shares_no_arguments_with_the_ui():
    theirs = {'path': {'name': 'a'}}
    [decision] = asked(RecordingUI(ApprovalDecision(approved=True, override_args=theirs)))

    theirs['path']['name'] = 'b'

    assert decision.override_args == {'path': {'name': 'a'}}


def test_half_characters_in_what_was_typed_are_replaced():
    [decision] = asked(RecordingUI(ApprovalDecision(approved=False, note='n\udce9', decided_by=('ad\ud800a',))))

    assert (decision.note, decision.decided_by) == ('n?', ('ad?a',))


def test_question_is_withdrawn_after_its_timeout():
    async def choose(request, *, mode):
        await asyncio.Event().wait()

    ui = Plain(choose)
    request = request_for()

    [decision] = asked(ui, request, timeout_s=0.01)

    assert decision.decided_by == ('timeout',)
    assert ui.withdrawn == [request]


def test_a_ui_that_cannot_withdraw_does_not_keep_the_denial(caplog):
    class Stubborn:
        async def choose(self, request, *, mode):
            await asyncio.Event().wait()

        def withdraw(self, request):
            raise ValueError('hunter22')

    [decision] = asked(Stubborn(), timeout_s=0.01)

    assert decision.note == 'No approver answered within 0.01 seconds, so the call was denied.'
    line = Stubborn.withdraw.__code__.co_firstlineno + 1
    assert logged(caplog) == [f'The approval UI could not withdraw a question: ValueError at {__file__}:{line}']


async def test_a_question_that_still_waits_for_its_turn_is_not_withdrawn():
    ui, lock = Plain(lambda request, mode: YES, one_at_a_time=True), PromptLock()
    await lock.acquire()

    [decision] = await ask_about(ui, request_for(), timeout_s=0.01, lock=lock)

    assert decision.decided_by == ('timeout',)
    assert ui.withdrawn == []


async def test_questions_are_open_at_the_same_time_unless_the_ui_says_otherwise():
    both_open = threading.Barrier(2)

    def choose(request, *, mode):
        both_open.wait(timeout=60)
        return YES

    assert await asyncio.gather(*(ask_about(Plain(choose), request_for()) for _ in range(2))) == [[YES], [YES]]


async def test_async_questions_are_open_at_the_same_time_unless_the_ui_says_otherwise():
    both_open = asyncio.Barrier(2)

    async def choose(request, *, mode):
        await both_open.wait()
        return YES

    async with asyncio.timeout(60):
        answers = await asyncio.gather(*(ask_about(Plain(choose), request_for()) for _ in range(2)))

    assert answers == [[YES], [YES]]


class Counting:
    """One keyboard: counts how many questions are open at once."""

    one_at_a_time = True

    def __init__(self, shape):
        self.open = self.most = self.asked = 0
        self.lock = threading.Lock()
        self.choose = getattr(self, shape)

    @contextlib.contextmanager
    def question(self):
        with self.lock:
            self.open += 1
            self.asked += 1
            self.most = max(self.most, self.open)
        yield
        with self.lock:
            self.open -= 1

    def plain(self, request, *, mode):
        with self.question():
            for _ in range(20):
                time.sleep(0)  # lets the other threads run, if they may
        return YES

    async def coroutine(self, request, *, mode):
        with self.question():
            for _ in range(20):
                await asyncio.sleep(0)
        return YES

    def returns_an_awaitable(self, request, *, mode):
        return self.coroutine(request, mode=mode)


# There is one terminal for all event loops.
@pytest.mark.parametrize('shape', ['plain', 'coroutine', 'returns_an_awaitable'])
def test_two_loops_in_two_threads_never_have_two_questions_open(shape):
    ui, lock = Counting(shape), PromptLock()
    begin = threading.Barrier(2)
    decisions = []

    async def main():
        decisions.extend(await asyncio.gather(*(ask_about(ui, request_for(), lock=lock) for _ in range(10))))

    def work():
        begin.wait(timeout=60)
        asyncio.run(main())

    in_threads(work, work)

    assert decisions == [[YES]] * 20
    assert (ui.most, ui.asked) == (1, 20)


async def test_an_abandoned_prompt_keeps_its_turn_until_its_call_returns():
    release, opened = threading.Event(), threading.Event()
    order = []

    def first(request, *, mode):
        opened.set()
        release.wait(60)
        order.append('the abandoned call returns')
        return YES

    def second(request, *, mode):
        order.append('the next question')
        return YES

    lock = AnnouncedLock()
    [abandoned] = await ask_about(Plain(first, one_at_a_time=True), request_for(), timeout_s=0.01, lock=lock)
    lock.asked_for.acquire(timeout=60)
    waiting = asyncio.create_task(ask_about(Plain(second, one_at_a_time=True), request_for(), lock=lock))
    await asyncio.to_thread(lock.asked_for.acquire, timeout=60)
    assert order == []
    release.set()
    next_one = await waiting

    assert opened.is_set()
    assert abandoned.decided_by == ('timeout',)
    assert next_one == [YES]
    assert order == ['the abandoned call returns', 'the next question']


async def test_a_cancelled_waiter_does_not_swallow_the_turn():
    release = threading.Event()

    def first(request, *, mode):
        release.wait(60)
        return YES

    lock = PromptLock()
    holds = asyncio.create_task(ask_about(Plain(first, one_at_a_time=True), request_for(), lock=lock))
    await asyncio.sleep(0)
    ui = Plain(lambda request, mode: YES, one_at_a_time=True)
    cancelled, waiting = (asyncio.create_task(ask_about(ui, request_for(), lock=lock)) for _ in range(2))
    await asyncio.sleep(0)
    cancelled.cancel()
    release.set()
    answers = await asyncio.wait_for(asyncio.gather(holds, waiting), 60)
    assert cancelled.cancelled()

    assert answers == [[YES], [YES]]


@pytest.mark.parametrize('shape', ['plain', 'coroutine'])
async def test_a_ui_that_fails_gives_the_turn_back(shape):
    def plain(request, *, mode):
        raise ValueError

    async def coroutine(request, *, mode):
        raise ValueError

    lock = PromptLock()
    failing = Plain({'plain': plain, 'coroutine': coroutine}[shape], one_at_a_time=True)
    [denied] = await ask_about(failing, request_for(), lock=lock)
    works = Plain(lambda request, mode: YES, one_at_a_time=True)

    assert not denied.approved
    assert await asyncio.wait_for(ask_about(works, request_for(), lock=lock), 60) == [YES]


async def test_turn_is_released_if_no_thread_can_start(monkeypatch):
    lock = PromptLock()
    ui = Plain(lambda request, mode: YES, one_at_a_time=True)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, 'start', _refuse)
        [denied] = await ask_about(ui, request_for(), lock=lock)

    assert denied.note == 'The approval prompt failed (RuntimeError), so the call was denied.'
    assert await asyncio.wait_for(ask_about(ui, request_for(), lock=lock), 60) == [YES]


def _refuse(thread):
    raise RuntimeError("can't start new thread")


def test_a_question_is_asked_once():
    ui = ScriptedUI([True])

    asked(ui)

    ui.assert_done()


class Pause(Exception):
    """Ends the step of a host, which goes on later."""


@pytest.mark.parametrize('is_blocking', [False, True])
async def test_an_exception_of_the_host_passes_through_and_others_deny(is_blocking):
    lock = PromptLock()
    uis = [RecordingUI(Pause()), RecordingUI(OSError())]
    if is_blocking:
        uis = [Blocking(Pause()), Blocking(OSError())]

    with passing_on(Pause):
        with pytest.raises(Pause):
            await ask_about(uis[0], request_for(), lock=lock)
        [denied] = await ask_about(uis[1], request_for(), lock=lock)
    [outside] = await ask_about(uis[0], request_for(), lock=lock)

    assert 'OSError' in denied.note
    assert 'Pause' in outside.note


class Blocking:
    def __init__(self, error):
        self.error = error

    def choose(self, request, *, mode):
        raise self.error
