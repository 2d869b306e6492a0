"""If the approver, the UI, the store or the log fails, the call is denied, and the next one works."""

import asyncio
import re
import threading

import pytest
from tool_approval.audit import JsonlAuditSink, verify
from tool_approval.core.threads import RunCancelled
from tool_approval.storage import FileApprovalStore
from tool_approval.testing import RecordingUI, approve_all

from tool_approval import (
    ApprovalController,
    ApprovalDecision,
    ApprovalDenied,
    ApprovalMemory,
    ApprovalPresentation,
    ApprovalRequest,
    RememberOption,
    StoreError,
    execute_tool,
    requires_approval,
)

from .parts import KEY, ListSink, decide_all, logged, request_for

pytestmark = pytest.mark.anyio

YES = ApprovalDecision(approved=True)
NOT_OFFERED = ApprovalDecision(approved=True, remember='session', remember_option='everything')
UNVALIDATED = ApprovalDecision.model_construct(approved='yes')
EMPTY = ApprovalDecision.model_construct()
TAMPERED = ApprovalDecision(approved=False)
TAMPERED.__dict__['approved'] = 1


class Sync:
    """Fails to decide the first time, and approves from then on."""

    def __init__(self, first):
        self.first = first
        self.asked = 0

    def answer(self):
        self.asked += 1
        if self.asked > 1:
            return YES
        if isinstance(self.first, BaseException):
            raise self.first
        return self.first

    def choose(self, request, *, mode):
        return self.answer()


class Async(Sync):
    async def choose(self, request, *, mode):
        return self.answer()


class Awaitable(Sync):
    def choose(self, request, *, mode):
        return self.later()

    async def later(self):
        return self.answer()


class SyncKeyboard(Sync):
    one_at_a_time = True


class AsyncKeyboard(Async):
    one_at_a_time = True


class AwaitableKeyboard(Awaitable):
    one_at_a_time = True


UIS = [Sync, Async, Awaitable, SyncKeyboard, AsyncKeyboard, AwaitableKeyboard]


def deleting():
    """A function that needs approval, and the list of what was deleted."""
    ran = []

    @requires_approval()
    def delete(path):
        ran.append(path)
        return 'deleted'

    return delete, ran


def denied_then_runs(ui, **options):
    """Ask twice about the same call, check that only the second ran, and return why the first was denied."""
    (delete, ran), sink = deleting(), ListSink()
    controller = ApprovalController(ui=ui, audit=sink, **options)

    async def main():
        with pytest.raises(ApprovalDenied) as denied:
            await execute_tool(delete, 'delete', {'path': 'a'}, controller)
        assert ran == []
        assert await execute_tool(delete, 'delete', {'path': 'a'}, controller) == 'deleted'
        return denied.value.reason

    reason = asyncio.run(main())
    assert ran == ['a']
    assert [entry['approved'] for entry in sink.decisions()] == [False, True]
    assert sink.decisions()[0]['note'] == reason
    assert sink.outcomes() == ['executed']
    return reason


@pytest.mark.parametrize('kind', UIS)
@pytest.mark.parametrize(
    ('error', 'problem'),
    [
        (ValueError('hunter22'), 'failed (ValueError)'),
        (OSError('hunter22'), 'failed (OSError)'),
        (TimeoutError(), 'failed (TimeoutError)'),
        (AssertionError(), 'failed (AssertionError)'),
        (asyncio.CancelledError(), 'failed (RuntimeError)'),
        (EOFError(), 'reached the end of its input'),
    ],
)
def test_a_ui_that_raises_or_cancels_itself_denies(kind, error, problem):
    assert denied_then_runs(kind(error)) == f'The approval prompt {problem}, so the call was denied.'


@pytest.mark.parametrize('kind', [Sync, SyncKeyboard])
@pytest.mark.parametrize('error', [SystemExit(0), GeneratorExit(), StopIteration('hunter22')])
def test_a_ui_that_ends_its_thread_denies(kind, error):
    assert denied_then_runs(kind(error)) == 'The approval prompt failed (RuntimeError), so the call was denied.'


@pytest.mark.parametrize('kind', UIS)
@pytest.mark.parametrize(
    ('answer', 'told'),
    [
        (None, 'a value of type NoneType was returned'),
        (True, 'a value of type bool was returned'),
        ('y', 'a value of type str was returned'),
        ([YES], 'a value of type list was returned'),
        ({'approved': True}, 'a value of type dict was returned'),
        (ApprovalDecision, 'a value of type ModelMetaclass was returned'),
        (NOT_OFFERED, 'the request does not offer this option for remembering the approval'),
        (UNVALIDATED, 'the decision is malformed'),
        (EMPTY, 'the decision is malformed'),
        (TAMPERED, 'the decision is malformed'),
    ],
)
def test_a_ui_that_returns_no_decision_denies(kind, answer, told):
    assert (
        denied_then_runs(kind(answer))
        == f'The approval prompt returned no valid decision ({told}), so the call was denied.'
    )


def test_a_ui_without_choose_denies():
    class Nothing:
        pass

    controller = ApprovalController()
    controller.ui = Nothing()  # the constructor refuses such a UI

    [decision] = decide_all(controller, request_for())

    assert decision.note == 'The approval prompt failed (AttributeError), so the call was denied.'


class SyncHang:
    """Does not answer the first question until it is released."""

    one_at_a_time = False

    def __init__(self):
        self.is_asked, self.release = threading.Event(), threading.Event()

    def choose(self, request, *, mode):
        if not self.is_asked.is_set():
            self.is_asked.set()
            self.release.wait(60)
        return YES


class AsyncHang(SyncHang):
    async def choose(self, request, *, mode):
        if not self.is_asked.is_set():
            self.is_asked.set()
            await asyncio.Event().wait()
        return YES


class AsyncHangAnsweringLate(AsyncHang):
    async def choose(self, request, *, mode):
        try:
            return await super().choose(request, mode=mode)
        except asyncio.CancelledError:
            return YES


class AsyncHangFailingLate(AsyncHang):
    async def choose(self, request, *, mode):
        try:
            return await super().choose(request, mode=mode)
        except asyncio.CancelledError:
            raise ValueError from None


@pytest.mark.parametrize('kind', [SyncHang, AsyncHang, AsyncHangAnsweringLate, AsyncHangFailingLate])
async def test_a_ui_that_hangs_past_the_timeout_denies(kind):
    ui = kind()

    first = await ApprovalController(ui=ui, timeout=0.02).request_approval(request_for())
    await asyncio.to_thread(ui.is_asked.wait, 60)
    second = await ApprovalController(ui=ui, timeout=60).request_approval(request_for())
    ui.release.set()

    assert (first.approved, first.decided_by) == (False, ('timeout',))
    assert first.note == 'No approver answered within 0.02 seconds, so the call was denied.'
    assert second.approved


@pytest.mark.parametrize('kind', [SyncHang, AsyncHang, AsyncHangAnsweringLate])
async def test_cancelling_the_run_passes_and_nothing_runs(kind):
    (delete, ran), ui, sink, memory = deleting(), kind(), ListSink(), ApprovalMemory()
    controller = ApprovalController(ui=ui, audit=sink, memory=memory)
    run = asyncio.create_task(execute_tool(delete, 'delete', {'path': 'a'}, controller))
    await asyncio.to_thread(ui.is_asked.wait, 60)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert (ran, sink.entries, len(memory)) == ([], [], 0)
    ui.release.set()
    await execute_tool(delete, 'delete', {'path': 'b'}, controller)

    assert ran == ['b']


async def test_cancelling_the_run_withdraws_all_of_its_questions():
    asked, withdrawn = [], []
    all_asked = threading.Event()

    class Inbox:
        async def choose(self, request, *, mode):
            asked.append(request)
            if len(asked) == 3:
                all_asked.set()
            await asyncio.Event().wait()

        def withdraw(self, request):
            withdrawn.append(request)

    controller, tasks_before = ApprovalController(ui=Inbox()), asyncio.all_tasks()
    run = asyncio.create_task(controller.request_approvals([request_for(number) for number in range(3)]))
    await asyncio.to_thread(all_asked.wait, 60)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run

    assert asyncio.all_tasks() == tasks_before
    assert sorted(request.args['path'] for request in withdrawn) == [0, 1, 2]
    assert all(request in asked for request in withdrawn)


@pytest.mark.parametrize(
    ('kind', 'count'), [(Sync, 1), (Sync, 3), (SyncKeyboard, 1), (SyncKeyboard, 3), (Async, 1), (Awaitable, 1)]
)
def test_an_interrupt_in_the_prompt_ends_the_run_and_nothing_is_approved(kind, count):
    sink, memory = ListSink(), ApprovalMemory()

    class Interrupted(kind):
        def answer(self):
            raise KeyboardInterrupt

    controller = ApprovalController(ui=Interrupted(None), audit=sink, memory=memory)

    with pytest.raises(KeyboardInterrupt):
        decide_all(controller, *(request_for(number) for number in range(count)))

    assert {(entry['approved'], entry['note']) for entry in sink.entries} == {(False, 'The user stopped the run.')}
    assert kind is not SyncKeyboard or [entry['payload'] for entry in sink.entries] == [{'path': 0}]
    assert len(memory) == 0
    controller.ui = RecordingUI()
    [decision] = decide_all(controller, request_for())
    assert decision.approved


@pytest.mark.parametrize('one_at_a_time', [True, False])
@pytest.mark.parametrize('kind', [Sync, Async, Awaitable])
def test_ui_that_stops_the_run_ends_all_of_its_questions(kind, one_at_a_time, caplog):
    class Stops(kind):
        def answer(self):
            raise RunCancelled

    sink = ListSink()
    ui = Stops(None)
    ui.one_at_a_time = one_at_a_time
    controller = ApprovalController(ui=ui, audit=sink)

    with pytest.raises(RunCancelled):
        decide_all(controller, *(request_for(number) for number in range(3)))

    assert 1 <= len(sink.entries) <= (1 if one_at_a_time else 3)
    assert {(entry['approved'], entry['note']) for entry in sink.entries} == {(False, 'The user stopped the run.')}
    assert logged(caplog) == []


def test_question_open_during_a_stop_is_withdrawn_undecided():
    withdrawn = []

    class Inbox:
        async def choose(self, request, *, mode):
            if request.args['path'] == 'stop':
                raise RunCancelled
            await asyncio.Event().wait()

        def withdraw(self, request):
            withdrawn.append(request.args['path'])

    sink = ListSink()

    with pytest.raises(RunCancelled):
        decide_all(ApprovalController(ui=Inbox(), audit=sink), *map(request_for, ('a', 'stop', 'b')))

    assert {'a', 'b'} <= set(withdrawn)
    assert [entry['payload'] for entry in sink.entries] == [{'path': 'stop'}]


@pytest.mark.parametrize(
    ('answer', 'told'),
    [
        ([], '0 answers were given to 2 requests'),
        ([YES], '1 answers were given to 2 requests'),
        ([YES, YES, YES], '3 answers were given to 2 requests'),
        ([YES, True], 'a value of type bool was returned'),
        ([YES, UNVALIDATED], 'the decision is malformed'),
        ([YES, NOT_OFFERED], 'the request does not offer this option for remembering the approval'),
        (YES.model_copy(update={'override_args': {}}), 'changed arguments or a response were given for a whole group'),
        (True, 'a value of type bool was returned'),
        ({YES.approved: YES}, 'a value of type dict was returned'),
    ],
)
def test_group_with_an_invalid_answer_is_denied_as_a_whole(answer, told):
    class Grouping(RecordingUI):
        def choose_group(self, requests, *, mode):
            return answer

    controller = ApprovalController(ui=Grouping())

    decisions = decide_all(controller, request_for('a', group_id='g'), request_for('b', group_id='g'))

    note = f'The approval prompt returned no valid decision ({told}), so the call was denied.'
    assert [(each.approved, each.note) for each in decisions] == [(False, note)] * 2


def test_a_wide_option_is_not_remembered_for_those_of_a_group_that_do_not_offer_it():
    option = RememberOption(kind='folder', label='all', payload={})

    class Grouping(RecordingUI):
        def choose_group(self, requests, *, mode):
            return ApprovalDecision(approved=True, remember='session', remember_option='folder')

    controller = ApprovalController(ui=Grouping())

    decisions = decide_all(
        controller, request_for('a', group_id='g', remember_options=(option,)), request_for('b', group_id='g')
    )

    assert [each.approved for each in decisions] == [False, False]
    assert len(controller.memory) == 0


async def cancels_itself(request):
    raise asyncio.CancelledError


def exits(request):
    raise SystemExit


def fails(request):
    raise ValueError('hunter22')


@pytest.mark.parametrize(
    ('present', 'told'),
    [
        (fails, 'ValueError'),
        (exits, 'RuntimeError'),
        (cancels_itself, 'RuntimeError'),
        (lambda request: 'some text', 'TypeError'),
    ],
)
@pytest.mark.parametrize('count', [1, 2])
def test_request_that_cannot_be_shown_is_denied_without_a_question(present, told, count, caplog):
    ui = RecordingUI()
    controller = ApprovalController(ui=ui, presenters={'delete': present})

    decisions = decide_all(controller, *(request_for(number) for number in range(count)))

    note = f'The request could not be shown to the approver ({told}), so the call was denied.'
    assert [(each.approved, each.note, each.decided_by) for each in decisions] == [(False, note, ('ui',))] * count
    assert ui.requests == []
    lines = logged(caplog)
    assert len(lines) == count
    assert all(re.fullmatch(rf"The presenter of 'delete' failed with {told} at \S+\.py:\d+", line) for line in lines)


def test_group_with_a_request_that_cannot_be_shown_is_denied():
    def present(request):
        if request.args['path'] == 'b':
            raise ValueError
        return ApprovalPresentation(type='text', content='fine')

    class Grouping(RecordingUI):
        def choose_group(self, requests, *, mode):
            raise AssertionError('nobody is to be asked')

    controller = ApprovalController(ui=Grouping(), presenters={'delete': present})

    decisions = decide_all(controller, request_for('a', group_id='g'), request_for('b', group_id='g'))

    assert [each.decided_by for each in decisions] == [('ui',)] * 2
    assert not any(each.approved for each in decisions)


def test_a_store_that_cannot_be_written_is_an_error_and_nothing_runs(monkeypatch, tmp_path):
    store = FileApprovalStore(tmp_path / 'project', tmp_path / 'state' / 'approvals.json')
    delete, ran = deleting()

    def full(path, content):
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr('tool_approval.storage.file_store.replace_private', full)
    controller = ApprovalController(ui=RecordingUI('a'), memory=ApprovalMemory(store))

    with pytest.raises(StoreError, match='No space left on device; nothing was changed'):
        asyncio.run(execute_tool(delete, 'delete', {'path': 'a'}, controller))

    assert ran == []
    assert store.list_all() == []


def test_a_log_that_cannot_be_written_denies_and_the_next_call_works(monkeypatch, tmp_path):
    sink = JsonlAuditSink(tmp_path / 'audit.jsonl', key=KEY)
    delete, ran = deleting()

    def run():
        asyncio.run(execute_tool(delete, 'delete', {'path': 'a'}, ApprovalController(ui=RecordingUI('s'), audit=sink)))

    def half(descriptor, content, *, size, fsync=False):
        raise OSError(28, 'No space left on device')

    with monkeypatch.context() as patch:
        patch.setattr('tool_approval.audit.jsonl.append_whole', half)
        with pytest.raises(ApprovalDenied, match='could not be written to the audit log'):
            run()
    assert ran == []

    run()

    sink.close()
    assert ran == ['a']
    finding = verify(tmp_path / 'audit.jsonl', key=KEY)
    assert (finding.is_intact, finding.head.lines, finding.unfinished) == (True, 3, ())


async def test_a_presenter_that_hangs_past_the_timeout_denies_and_the_next_request_works():
    released = asyncio.Event()

    async def hanging(request):
        await released.wait()
        raise AssertionError

    ui = approve_all()
    controller = ApprovalController(ui=ui, presenters={'slow': hanging}, timeout=1)

    slow = await controller.request_approval(ApprovalRequest(tool_name='slow'))
    quick = await controller.request_approval(ApprovalRequest(tool_name='quick'))

    assert (slow.approved, slow.note) == (
        False,
        'The request could not be shown to the approver (TimeoutError), so the call was denied.',
    )
    assert quick.approved
    assert [request.tool_name for request in ui.requests] == ['quick']
