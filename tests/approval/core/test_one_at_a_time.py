"""The controller asks a `choose` that may block one question at a time."""

import asyncio
import threading

import pytest
from tool_approval.testing import ScriptedUI

from tests.approval.parts import ListSink, decide, decide_all, in_threads, request_for
from tool_approval import ApprovalController, ApprovalDecision, ApprovalMemory

pytestmark = pytest.mark.anyio

YES = ApprovalDecision(approved=True)
FOR_SESSION = ApprovalDecision(approved=True, remember='session')


class Prompt:
    """Counts the questions that are open at once; a question ends when `go_on` is set, or its time is up."""

    def __init__(self, answer=YES, *, waits_s=0.02):
        self.answer = answer
        self.waits_s = waits_s
        self.open = self.most = 0
        self.asked = []
        self.lock = threading.Lock()
        self.is_asked = threading.Event()
        self.go_on = threading.Event()

    def choose(self, request, *, mode):
        with self.lock:
            self.open += 1
            self.most = max(self.most, self.open)
            self.asked.append(request.args['path'])
        self.is_asked.set()
        self.go_on.wait(self.waits_s)
        with self.lock:
            self.open -= 1
        return self.answer


class UnhashablePrompt(Prompt):
    def __eq__(self, other):
        return True

    __hash__ = None


class GroupPrompt(Prompt):
    """Its `choose` awaits, and its `choose_group` may block."""

    async def choose(self, request, *, mode):
        raise AssertionError('all are in groups')

    def choose_group(self, requests, *, mode):
        return super().choose(requests[0], mode=mode)


@pytest.mark.parametrize('kind', [Prompt, UnhashablePrompt, GroupPrompt])
def test_questions_of_a_response_follow_each_other(kind):
    ui = kind()
    requests = [request_for(path, group_id=path[0]) for path in ('a1', 'a2', 'b1', 'b2', 'c1', 'c2')]

    decisions = decide_all(ApprovalController(ui=ui), *requests)

    assert [decision.approved for decision in decisions] == [True] * 6
    assert ui.most == 1
    assert ui.asked == sorted(ui.asked)


def test_answer_for_the_session_covers_the_identical_call_behind_it():
    ui = Prompt(FOR_SESSION)
    log = ListSink()

    decide_all(ApprovalController(ui=ui, audit=log), *map(request_for, 'aba'))

    assert ui.asked == ['a', 'b']
    assert [entry['how'] == 'memory' for entry in log.decisions()] == [False, False, True]


def test_ui_with_one_at_a_time_false_is_asked_all_at_once():
    class Window(Prompt):
        one_at_a_time = False

    ui = Window(waits_s=60)
    both = threading.Barrier(2, action=ui.go_on.set)
    ui.go_on.wait = lambda timeout: both.wait(timeout)

    decide_all(ApprovalController(ui=ui), *map(request_for, 'ab'))

    assert ui.most == 2


def test_runs_of_two_controllers_in_two_threads_share_the_turns_of_their_ui():
    ui = UnhashablePrompt()
    jobs = [lambda: decide_all(ApprovalController(ui=ui), *map(request_for, 'ab')) for _ in range(2)]

    in_threads(*jobs)

    assert (ui.most, sorted(ui.asked)) == (1, ['a', 'a', 'b', 'b'])


async def test_two_ui_objects_do_not_wait_for_each_other():
    both = threading.Barrier(2)

    class Window:
        def choose(self, request, *, mode):
            both.wait(timeout=60)
            return YES

    controllers = [ApprovalController(ui=Window()) for _ in range(2)]
    decisions = await asyncio.gather(*(each.request_approval(request_for()) for each in controllers))

    assert [decision.approved for decision in decisions] == [True, True]


async def test_answer_for_the_session_covers_waiting_calls_of_other_runs():
    ui = Prompt(FOR_SESSION, waits_s=60)
    log = ListSink()
    controller = ApprovalController(ui=ui, audit=log)
    request = request_for(session_id='s', metadata={'caller': 'helper'})

    runs = [asyncio.create_task(controller.request_approval(request)) for _ in range(3)]
    await asyncio.to_thread(ui.is_asked.wait, 60)
    ui.go_on.set()
    decisions = await asyncio.gather(*runs)

    assert ui.asked == ['a']
    assert [decision.approved for decision in decisions] == [True] * 3
    assert [entry['how'] == 'memory' for entry in log.decisions()] == [False, True, True]


async def test_memory_that_fails_denies_the_waiting_call_and_releases_the_turn(caplog):
    class Failing(ApprovalMemory):
        fails = False

        def find(self, request, promised=()):
            if self.fails:
                raise ValueError
            return super().find(request, promised)

    ui = Prompt()
    memory = Failing()

    def present(request):
        memory.fails = True

    controller = ApprovalController(ui=ui, memory=memory, presenters={'delete': present})
    denied = await controller.request_approval(request_for())

    assert (denied.approved, denied.note) == (
        False,
        'The approval prompt failed (ValueError), so the call was denied.',
    )
    assert ui.asked == []
    assert (await ApprovalController(ui=ui, timeout=60).request_approval(request_for())).approved


async def test_cancelled_question_gives_up_its_turn_when_its_call_returns():
    ui = Prompt(waits_s=60)

    controller = ApprovalController(ui=ui)
    open_one, waiting, last = (asyncio.create_task(controller.request_approval(request_for(path))) for path in 'abc')
    await asyncio.to_thread(ui.is_asked.wait, 60)
    waiting.cancel()
    open_one.cancel()
    await asyncio.wait([open_one, waiting])
    assert ui.asked == ['a']
    ui.go_on.set()

    assert (await asyncio.wait_for(last, 60)).approved
    assert ui.asked == ['a', 'c']


@pytest.mark.parametrize('is_terminal', [True, False])
def test_a_question_may_ask_again_before_it_is_answered(is_terminal):
    class Reviewer(Prompt):
        """Asks about two more calls at once, and for each about another."""

        def choose(self, request, *, mode):
            path = request.args['path']
            if len(path) < 3:
                again = [request_for(path + letter) for letter in 'xy']
                asyncio.run(ask_again(again))
            return super().choose(request, mode=mode)

    async def ask_again(again):
        await asyncio.gather(*map(controller.request_approval, again))

    ui = Reviewer()
    if is_terminal:
        ui.one_at_a_time = True
    controller = ApprovalController(ui=ui, timeout=60)

    assert decide(controller, request_for('a')).approved
    assert ui.asked == ['axx', 'axy', 'ax', 'ayx', 'ayy', 'ay', 'a']


def test_a_presenter_may_ask_before_its_question_is_put():
    ui = ScriptedUI([True, True, True, True])

    async def present(request):
        if request.args['path'] != 'inner':
            await controller.request_approval(request_for('inner'))

    controller = ApprovalController(ui=ui, presenters={'delete': present}, timeout=60)

    decide_all(controller, *map(request_for, 'ab'))

    assert [request.args['path'] for request in ui.requests] == ['inner', 'a', 'inner', 'b']


async def test_task_left_behind_by_a_question_waits_for_its_own_turn():
    left = []

    class Leaves(Prompt):
        one_at_a_time = True

        async def choose(self, request, *, mode):
            if request.args['path'] == 'first':
                left.append(asyncio.create_task(late()))
                return YES
            if request.args['path'] == 'second':
                go_on.set()
                for _ in range(50):
                    await asyncio.sleep(0)
            self.asked.append(request.args['path'])
            return YES

    async def late():
        await go_on.wait()
        return await controller.request_approval(request_for('late'))

    ui = Leaves()
    go_on = asyncio.Event()
    controller = ApprovalController(ui=ui)

    await controller.request_approval(request_for('first'))
    await controller.request_approval(request_for('second'))

    assert (await asyncio.wait_for(left[0], 60)).approved
    assert ui.asked == ['second', 'late']


async def test_a_run_whose_question_was_abandoned_waits_until_its_call_returns():
    ui = Prompt(waits_s=60)

    controller = ApprovalController(ui=ui, timeout=0.2)
    first = await controller.request_approval(request_for('a'))
    second = await controller.request_approval(request_for('b'))
    ui.go_on.set()
    third = await ApprovalController(ui=ui, timeout=60).request_approval(request_for('c'))

    assert (first.decided_by, second.decided_by, third.approved) == (('timeout',), ('timeout',), True)
    assert (ui.asked, ui.most) == (['a', 'c'], 1)
