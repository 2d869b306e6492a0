"""The inbox as a UI of the controller: every mode, memory and audit rule applies."""

import asyncio
import logging
import threading
from datetime import timedelta

import pytest
from tool_approval.display import facts
from tool_approval.inbox import (
    AlreadySettled,
    Approver,
    ApproverRule,
    Content,
    Inbox,
    InboxUI,
    InboxUnavailable,
    NotAnApprover,
    refusal_text,
)
from tool_approval.inbox.entry import MAX_BYTES

from tests.approval.parts import ListSink, noon, request_for
from tool_approval import (
    ApprovalController,
    ApprovalDecision,
    ApprovalMemory,
    ApprovalPresentation,
    FirstOf,
    answered_elsewhere,
    execute_tool,
)

from .parts import ADA, BOB, NO, YES, answer, settled, soon

pytestmark = pytest.mark.anyio

OPS = ApproverRule(groups=frozenset({'ops'}))


@pytest.fixture
def inbox(make_inbox):
    return make_inbox()


@pytest.fixture
def page(make_inbox):
    return make_inbox()


async def asking_about(request, controller, page):
    """The task that asks the controller for an approval, and the entry that the page has of it."""
    asking = asyncio.create_task(controller.request_approval(request))
    [entry] = await soon(page)
    return asking, entry


async def asked(controller, page, *decisions, by=ADA):
    """The decisions on one request for each answer, and the entries that the page had, in the same order."""
    asking = asyncio.create_task(
        controller.request_approvals([request_for(str(number)) for number in range(len(decisions))])
    )
    entries = sorted(await soon(page, len(decisions)), key=lambda entry: entry.request.args['path'])
    for entry, decision in zip(entries, decisions, strict=True):
        await answer(page, entry, decision, by=by)
    return await asking, entries


async def test_many_questions_are_open_at_once_and_each_gets_its_answer(inbox, page):
    controller = ApprovalController(ui=InboxUI(inbox))

    decisions, entries = await asked(controller, page, YES, NO, YES)

    assert [each.approved for each in decisions] == [True, False, True]
    assert [each.note for each in decisions] == [None, 'Not now.', None]
    assert [each.decided_by for each in decisions] == [('ada',)] * 3
    assert [entry.request.metadata['position'] for entry in entries] == [1, 2, 3]
    assert all(entry.content.expires_at is not None for entry in entries)


async def test_the_presentation_is_what_the_controller_made(inbox, page):
    shown = ApprovalPresentation(type='diff', content='- a\n+ b')
    controller = ApprovalController(ui=InboxUI(inbox), presenters={'delete': lambda request: shown})

    _, [entry] = await asked(controller, page, YES)

    assert entry.request.presentation == shown


async def test_an_answer_is_remembered_and_written_down_as_any_other(inbox, page):
    sink = ListSink()
    controller = ApprovalController(ui=InboxUI(inbox), memory=ApprovalMemory(), audit=sink)

    request = request_for(session_id='s')
    asking, entry = await asking_about(request, controller, page)
    await answer(page, entry, ApprovalDecision(approved=True, remember='session'))
    first, second = await asking, await controller.request_approval(request)

    assert (first.approved, second.approved, await page.open()) == (True, True, [])
    assert [(entry['decided_by'], entry['how']) for entry in sink.decisions()] == [
        (['ada'], 'person'),
        (['ada'], 'memory'),
    ]


async def test_changed_arguments_are_executed(inbox, page):
    controller = ApprovalController(ui=InboxUI(inbox), policy={'delete': {'approval': 'required'}})

    running = asyncio.create_task(execute_tool(lambda path: path, 'delete', {'path': 'a'}, controller))
    [entry] = await soon(page)
    await answer(page, entry, ApprovalDecision(approved=True, override_args={'path': 'b'}))

    assert await running == 'b'


@pytest.mark.parametrize('mode', ['strict', 'approve_all'])
async def test_mode_that_decides_by_itself_posts_nothing(inbox, page, mode):
    controller = ApprovalController(mode, ui=InboxUI(inbox))

    await controller.request_approval(request_for())

    assert (await page.open(), await page.history()) == ([], [])


async def test_timeout_denies_the_call(inbox, page):
    controller = ApprovalController(ui=InboxUI(inbox, timeout=0.5))

    await inbox.open()
    decision = await controller.request_approval(request_for())
    [entry] = await page.history()

    assert (decision.approved, decision.decided_by) == (False, ('timeout',))
    assert decision.note == 'No approver answered within 0.5 seconds, so the call was denied.'
    assert entry.state == 'expired'


async def test_the_controllers_own_timeout_withdraws(inbox, page):
    controller = ApprovalController(ui=InboxUI(inbox), timeout=0.2)
    await inbox.open()  # a first use takes longer

    decision = await controller.request_approval(request_for())
    [entry] = await settled(page)

    assert (decision.approved, decision.decided_by) == (False, ('timeout',))
    assert entry.state == 'withdrawn'


async def test_cancelling_the_run_withdraws(inbox, page):
    controller = ApprovalController(ui=InboxUI(inbox))

    asking = asyncio.create_task(controller.request_approvals([request_for('a'), request_for('b')]))
    await soon(page, 2)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking

    assert [entry.state for entry in await settled(page, 2)] == ['withdrawn'] * 2


async def test_withdrawn_request_is_denied(inbox, page):
    controller = ApprovalController(ui=InboxUI(inbox))

    asking, entry = await asking_about(request_for(), controller, page)
    await page.withdraw(entry.id)
    decision = await asking

    assert (decision.approved, decision.decided_by) == (False, ('ui',))
    assert decision.note == 'The request was withdrawn from the inbox, so the call was denied.'


async def test_approvers_are_listed_by_tool(inbox, page):
    controller = ApprovalController(ui=InboxUI(inbox, approvers={'del*': OPS}))

    asking, entry = await asking_about(request_for(), controller, page)
    with pytest.raises(NotAnApprover):
        await answer(page, entry, by=ADA)
    await answer(page, entry, by=BOB)

    assert (await asking).decided_by == ('bob',)


@pytest.mark.parametrize('rules', [{}, {'other': OPS}, {'delete': ApproverRule()}])
async def test_request_without_an_approver_is_denied_at_once(inbox, page, rules):
    controller = ApprovalController(ui=InboxUI(inbox, approvers=rules))

    decision = await controller.request_approval(request_for())

    assert (decision.approved, decision.note) == (False, "No approver is listed for 'delete', so the call was denied.")
    assert (await page.history(), await page.open()) == ([], [])


async def test_requester_is_determined_for_each_request_and_may_not_answer(inbox, page):
    requester = lambda request: request.metadata.get('user')
    controller = ApprovalController(ui=InboxUI(inbox, requester=requester, forbid_self_approval=True))

    asking, entry = await asking_about(request_for(metadata={'user': 'ada'}), controller, page)
    with pytest.raises(NotAnApprover, match='requesters may not answer their own requests'):
        await answer(page, entry, by=ADA)
    await answer(page, entry, by=BOB)
    known, unknown = await asking, await controller.request_approval(request_for())

    assert known.decided_by == ('bob',)
    assert not unknown.approved
    assert unknown.note == 'Self-approval is forbidden and the requester is unknown, so the call was denied.'


async def test_requester_may_answer_if_self_approval_is_allowed(inbox, page):
    controller = ApprovalController(ui=InboxUI(inbox, requester='ada'))

    [decision], [entry] = await asked(controller, page, YES)

    assert (decision.decided_by, entry.content.requester) == (('ada',), 'ada')
    assert ('for', 'ada') in facts(entry.request)


async def test_requester_of_the_request_counts_if_the_ui_has_none(inbox, page):
    controller = ApprovalController(ui=InboxUI(inbox))

    asking, entry = await asking_about(request_for(metadata={'requester': 'eve'}), controller, page)
    await answer(page, entry)
    await asking

    assert entry.content.requester == 'eve'


def test_the_log_is_told_who_may_answer(inbox):
    rule = ApproverRule(users=frozenset({'bob', 'ada'}), groups=frozenset({'ops'}))

    assert InboxUI(inbox, approvers={'*': rule}).asks(request_for()) == ['ada', 'bob', 'group ops']
    assert InboxUI(inbox).asks(request_for()) == []


@pytest.mark.parametrize('timeout', [0, -1, float('nan')])
def test_timeout_that_is_not_positive_is_refused(inbox, timeout):
    with pytest.raises(ValueError, match='must be a positive number of seconds'):
        InboxUI(inbox, timeout=timeout)


def test_forbidding_self_approval_without_a_requester_is_refused(inbox):
    with pytest.raises(ValueError, match='requires `requester`'):
        InboxUI(inbox, forbid_self_approval=True)


async def test_request_that_is_too_large_is_denied(inbox, page):
    controller = ApprovalController(ui=InboxUI(inbox))

    decision = await controller.request_approval(request_for('x' * MAX_BYTES))

    assert not decision.approved
    assert 'shorten its arguments or presentation), so the call was denied' in decision.note


async def test_answer_to_other_content_is_denied(inbox, page, monkeypatch):
    controller = ApprovalController(ui=InboxUI(inbox))

    asking, entry = await asking_about(request_for(), controller, page)
    other = entry.model_copy(update={'digest': '0' * 64})
    monkeypatch.setattr(page, 'get', lambda request_id: asyncio.sleep(0, other))
    await answer(page, other)
    decision = await asking

    assert not decision.approved
    assert decision.note == 'The answer did not match the request, so the call was denied.'


class Away:
    """A store that cannot be reached for some calls."""

    def __init__(self, store, method, times=10**9, error=None):
        self.store, self.method, self.times = store, method, times
        self.error = error or InboxUnavailable('here', 'it is away')

    def __getattr__(self, name):
        if name == self.method and self.times > 0:
            self.times -= 1
            return self.fail
        return getattr(self.store, name)

    def fail(self, *arguments, **keywords):
        raise self.error


async def test_unavailable_store_denies_at_the_timeout(make_store, caplog):
    inbox = Inbox(Away(make_store(), 'add'))
    controller = ApprovalController(ui=InboxUI(inbox, timeout=0.05))

    with caplog.at_level(logging.ERROR), inbox:
        decision = await controller.request_approval(request_for())

    assert not decision.approved
    assert decision.note == 'The inbox could not be reached before the timeout, so the call was denied.'
    assert 'A call was denied' in caplog.text


async def test_a_store_that_comes_back_is_asked_again(make_store, page, monkeypatch):
    monkeypatch.setattr('tool_approval.inbox.inbox_ui.RETRY_S', 0.01)
    monkeypatch.setattr('tool_approval.inbox.worker.PAUSE_S', 0.0)
    inbox = Inbox(Away(make_store(), 'add', times=3))
    controller = ApprovalController(ui=InboxUI(inbox))

    with inbox:
        decisions, _ = await asked(controller, page, YES)

    assert decisions[0].approved


async def test_a_store_that_is_away_as_the_wait_begins_is_looked_at_again(make_store, page, monkeypatch):
    monkeypatch.setattr('tool_approval.inbox.worker.PAUSE_S', 0.0)
    inbox = Inbox(Away(make_store(), 'get', times=1))
    controller = ApprovalController(ui=InboxUI(inbox))

    with inbox:
        decisions, _ = await asked(controller, page, YES, NO)

    assert [each.approved for each in decisions] == [True, False]


async def test_store_that_is_away_at_the_timeout_denies_and_expires_the_request_later(make_store, page, monkeypatch):
    monkeypatch.setattr('tool_approval.inbox.keeper.LONGEST_PAUSE_S', 0.0)
    monkeypatch.setattr('tool_approval.inbox.worker.PAUSE_S', 0.0)
    inbox = Inbox(Away(make_store(), 'settle', times=2))
    controller = ApprovalController(ui=InboxUI(inbox, timeout=0.5))

    with inbox:
        await inbox.open()
        decision = await controller.request_approval(request_for())
        [entry] = await settled(page)

    assert decision.note == 'The inbox could not be reached before the timeout, so the call was denied.'
    assert entry.state == 'expired'


async def test_a_store_that_does_not_answer_denies(make_store, monkeypatch):
    monkeypatch.setattr('tool_approval.inbox.inbox.GRACE_S', 0.05)
    may_go_on = threading.Event()
    inbox = Inbox(make_store())
    controller = ApprovalController(ui=InboxUI(inbox, timeout=0.05))

    original = inbox.store.settle
    monkeypatch.setattr(inbox.store, 'settle', lambda *a, **k: (may_go_on.wait(20), original(*a, **k))[1])
    decision = await controller.request_approval(request_for())
    may_go_on.set()
    inbox.close()

    assert decision.note == 'The inbox could not be reached before the timeout, so the call was denied.'


async def test_an_inbox_that_is_closed_denies(make_store):
    inbox = Inbox(make_store())
    inbox.close()

    decision = await ApprovalController(ui=InboxUI(inbox)).request_approval(request_for())

    assert decision.note == 'The inbox failed (InboxError), so the call was denied.'


async def test_approver_cannot_have_the_name_of_a_rule(inbox, page):
    with pytest.raises(ValueError, match='the name of a rule'):
        await asked(ApprovalController(ui=InboxUI(inbox)), page, YES, by=Approver(id='policy'))


async def test_request_shows_when_it_expires(inbox, page):
    # Another clock of the process changes nothing.
    controller = ApprovalController(ui=InboxUI(inbox, timeout=60, now=noon))
    before = await page.now()

    _, [entry] = await asked(controller, page, YES)

    assert before <= entry.content.expires_at - timedelta(seconds=60) <= await page.now()


async def test_an_answer_after_the_deadline_is_refused_though_the_asking_process_has_died(page):
    late = await page.post_entry(Content(request=request_for(), expires_at=await page.now()))

    with pytest.raises(AlreadySettled, match=r'expired .* an answer after the deadline does not count') as refused:
        await answer(page, late)

    assert 'Your answer came too late: the request expired at' in refusal_text(refused.value)
    kept = await page.get(late.id)
    assert (kept.state, kept.answer) == ('expired', None)


class Elsewhere:
    """A UI that answers as soon as the inbox has posted the question, which it learns as a channel."""

    def __init__(self, decision):
        self._decision = decision
        self._posted = asyncio.Event()
        self.told = []

    async def posted(self, entry):
        self._posted.set()

    async def settled(self, entry):
        self.told.append(entry.outcome)

    async def choose(self, request, *, mode):
        await self._posted.wait()
        return self._decision


@pytest.mark.parametrize(
    ('decision', 'outcome'),
    [
        (YES.model_copy(update={'decided_by': ('eve',)}), 'Approved by eve'),
        (NO.model_copy(update={'decided_by': ('eve',)}), 'Denied by eve'),
        (YES.model_copy(update={'decided_by': ('policy',)}), 'Withdrawn: the run no longer waits for an answer'),
        (YES, 'Withdrawn: the run no longer waits for an answer'),
        (
            NO.model_copy(update={'decided_by': ('eve',), 'note': 'x' * MAX_BYTES}),
            'Withdrawn: the run no longer waits for an answer',
        ),
    ],
)
async def test_answer_given_elsewhere_names_its_approver(inbox, page, decision, outcome):
    elsewhere = Elsewhere(decision)
    ui = InboxUI(inbox, channels=[elsewhere])
    [decided] = await ApprovalController(ui=FirstOf(elsewhere, ui)).request_approvals([request_for()])
    await ui.aclose()
    [entry] = await settled(page)

    assert decided.approved is decision.approved
    assert entry.outcome == outcome
    assert elsewhere.told == [outcome]


async def test_an_answer_in_the_inbox_withdraws_the_question_elsewhere(inbox, page):
    seen = []

    class Waits:
        async def choose(self, request, *, mode):
            try:
                await asyncio.Event().wait()
            finally:
                seen.append(answered_elsewhere(request).decided_by)

    controller = ApprovalController(ui=FirstOf(Waits(), InboxUI(inbox)))

    [decided], _ = await asked(controller, page, YES)

    assert decided.approved
    assert seen == [('ada',)]


@pytest.mark.parametrize('first', [YES, NO])
async def test_a_denial_in_the_inbox_before_an_approval_elsewhere_counts(inbox, page, monkeypatch, first):
    """Even if another process wrote it, and the waiting process has not heard of it."""
    told = []

    class Tells:
        async def posted(self, entry):
            monkeypatch.setattr(inbox._waiting, 'wake', lambda ids: None)
            await answer(page, entry, first, by=BOB)
            answered.set()

        async def settled(self, entry):
            told.append(entry.outcome)

    class Elsewhere:
        async def choose(self, request, *, mode):
            await answered.wait()
            return YES.model_copy(update={'decided_by': ('eve',)})

    answered = asyncio.Event()
    ui = InboxUI(inbox, channels=[Tells()])
    [decided] = await ApprovalController(ui=FirstOf(Elsewhere(), ui)).request_approvals([request_for()])
    await ui.aclose()

    assert decided.approved is first.approved
    assert decided.decided_by == (('eve',) if first.approved else ('bob',))
    assert told == ['Approved by eve' if first.approved else 'Denied by bob']


async def test_answer_elsewhere_counts_during_an_outage_of_the_store(inbox, page, monkeypatch, caplog):
    tried = []

    def away(*arguments, **settings):
        tried.append(1)
        raise InboxUnavailable('here', 'it is away')

    elsewhere = Elsewhere(YES.model_copy(update={'decided_by': ('eve',)}))
    ui = FirstOf(elsewhere, InboxUI(inbox, channels=[elsewhere]))
    settle = inbox.store.settle
    monkeypatch.setattr(inbox.store, 'settle', away)
    [decided] = await ApprovalController(ui=ui).request_approvals([request_for()])
    while not tried:
        await asyncio.sleep(0)
    monkeypatch.setattr(inbox.store, 'settle', settle)
    [entry] = await settled(page)

    assert decided.approved
    assert entry.state == 'withdrawn'
    assert 'Could not read the inbox to check for an earlier denial' in caplog.text
