import asyncio
import logging
import threading
from datetime import UTC, datetime, timedelta

import pytest
from tool_approval.core.request import Votes
from tool_approval.inbox import (
    AlreadySettled,
    Approver,
    ApproverRule,
    Escalation,
    Inbox,
    InboxUI,
    InboxUnavailable,
    UnknownRequest,
    notify_channel,
)
from tool_approval.inbox.stores import SQLiteStore

from tests.approval.parts import request_for
from tool_approval import ApprovalController

from .parts import YES, answer, soon

pytestmark = pytest.mark.anyio


@pytest.fixture
def inbox(tmp_path):
    with Inbox(SQLiteStore(tmp_path / 'state' / 'inbox.sqlite')) as made:
        yield made


class Recording:
    def __init__(self):
        self.told = []

    async def posted(self, entry):
        self.told.append(('posted', entry.state))

    async def settled(self, entry):
        self.told.append(('settled', entry.state, entry.answer and entry.answer.by.id))


class Blocking(Recording):
    def posted(self, entry):
        assert threading.current_thread() is not threading.main_thread()
        self.told.append(('posted', entry.state))

    def settled(self, entry):
        self.told.append(('settled', entry.state, entry.answer and entry.answer.by.id))


class Answers(Recording):
    """A chat in which an approver answers as soon as the request is there."""

    def __init__(self, inbox, name):
        super().__init__()
        self.inbox, self.name = inbox, name

    async def posted(self, entry):
        await super().posted(entry)
        try:
            await answer(self.inbox, entry, by=Approver(id=self.name))
        except AlreadySettled as error:
            self.told.append(('too late', error.by))


class Raises(Recording):
    async def posted(self, entry):
        await super().posted(entry)
        raise OSError('secret')

    def settled(self, entry):
        raise SystemExit


class Hangs(Recording):
    async def posted(self, entry):
        await asyncio.get_running_loop().create_future()


async def ask(ui):
    decision = await ApprovalController(ui=ui).request_approval(request_for())
    await ui.aclose()
    return decision


async def test_first_answer_wins_and_the_other_channels_learn_who_gave_the_answer(inbox):
    channels = [Answers(inbox, 'ada'), Answers(inbox, 'bob'), Recording(), Blocking()]

    decision = await ask(InboxUI(inbox, channels=channels))

    [winner] = decision.decided_by
    [loser] = {'ada', 'bob'} - {winner}
    told = {each.name: each.told for each in channels[:2]}
    assert told[winner] == [('posted', 'pending'), ('settled', 'approved', winner)]
    assert told[loser] == [('posted', 'pending'), ('too late', winner), ('settled', 'approved', winner)]
    assert [each.told for each in channels[2:]] == [[('posted', 'pending'), ('settled', 'approved', winner)]] * 2


async def test_a_channel_that_raises_stops_neither_the_others_nor_the_run(inbox, caplog):
    broken, chat = Raises(), Answers(inbox, 'ada')

    with caplog.at_level(logging.ERROR):
        decision = await ask(InboxUI(inbox, channels=[broken, chat]))

    assert decision.approved
    assert chat.told == [('posted', 'pending'), ('settled', 'approved', 'ada')]
    assert 'Raises.posted failed with OSError' in caplog.text
    assert 'Raises.settled failed with RuntimeError' in caplog.text
    assert 'secret' not in caplog.text


async def test_channel_that_hangs_still_learns_the_outcome(inbox, monkeypatch, caplog):
    monkeypatch.setattr('tool_approval.inbox.inbox_ui.CHANNEL_S', 0.05)
    hanging = Hangs()

    with caplog.at_level(logging.ERROR):
        await ask(InboxUI(inbox, channels=[hanging, Answers(inbox, 'ada')]))

    assert hanging.told == [('settled', 'approved', 'ada')]
    assert 'Hangs.posted failed with TimeoutError' in caplog.text


async def test_channels_learn_that_an_unanswered_request_expired(inbox):
    channel = Recording()

    await inbox.open()  # the store is created, however slow that is here
    await ask(InboxUI(inbox, channels=[channel], timeout=0.5))

    assert channel.told == [('posted', 'pending'), ('settled', 'expired', None)]


async def test_channels_learn_that_the_request_of_a_cancelled_run_was_withdrawn(inbox):
    channel = Recording()
    ui = InboxUI(inbox, channels=[channel])

    asking = asyncio.create_task(ApprovalController(ui=ui).request_approval(request_for()))
    await soon(inbox)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await ui.aclose()

    assert channel.told == [('posted', 'pending'), ('settled', 'withdrawn', None)]


async def test_channels_are_notified_again_when_others_may_answer(inbox):
    class Later(Recording):
        async def posted(self, entry):
            await super().posted(entry)
            if self.told.count(('posted', 'pending')) == 2:
                await answer(inbox, entry, by=Approver(id='zoe'))

    shortly = Escalation(after=timedelta(seconds=0.1), to=ApproverRule(users={'zoe'}))
    channels = [Recording(), Later()]
    ui = InboxUI(inbox, channels=channels, approvers={'*': ApproverRule(users={'ada'}, escalate=shortly)})

    decision = await ask(ui)

    assert decision.decided_by == ('zoe',)
    told = [('posted', 'pending'), ('posted', 'pending'), ('settled', 'approved', 'zoe')]
    assert [each.told for each in channels] == [told, told]


async def test_channels_are_notified_when_others_may_answer_although_the_clock_was_set_back(inbox):
    back = [timedelta()]
    clock = lambda: datetime.now(UTC) - sum(back, timedelta())

    class Watching(Recording):
        async def posted(self, entry):
            [at] = entry.others_at
            self.told.append(clock() >= at)
            if len(self.told) == 2:
                await answer(inbox, entry)
            asyncio.get_running_loop().call_later(0.05, back.append, timedelta(seconds=0.1))

    shortly = Escalation(after=timedelta(seconds=0.1), to=ApproverRule(users={'zoe'}))
    channel = Watching()
    rules = {'*': ApproverRule(users={'ada'}, escalate=shortly)}

    await ask(InboxUI(inbox, channels=[channel], approvers=rules, now=clock))

    assert channel.told[:2] == [False, True]


async def test_channels_are_notified_once_if_others_could_answer_from_the_start(inbox):
    class Votes(Recording):
        async def posted(self, entry):
            await super().posted(entry)
            await answer(inbox, entry, by=Approver(id=next(people)))

    people = iter(['ada', 'zoe'])
    channel = Votes()
    earlier = Escalation(after='1h', to=ApproverRule(users={'zoe'}))
    rule = ApproverRule(users={'ada'}, count=2, escalate=earlier)

    asked_long_ago = InboxUI(
        inbox, channels=[channel], approvers={'*': rule}, now=lambda: datetime.now(UTC) - timedelta(hours=2)
    )
    decision = await ask(asked_long_ago)

    assert decision.decided_by == ('ada', 'zoe')
    assert [each[0] for each in channel.told] == ['posted', 'settled', 'posted', 'settled']


async def test_channels_learn_of_the_expiry_even_if_the_store_is_unavailable(inbox, monkeypatch):
    channel = Recording()
    ui = InboxUI(inbox, channels=[channel], timeout=0.5)

    def fail(*arguments, **keywords):
        raise InboxUnavailable('here', 'it is away')

    monkeypatch.setattr(inbox.store, 'settle', fail)

    await inbox.open()
    decision = await ask(ui)

    assert not decision.approved
    assert channel.told == [('posted', 'pending'), ('settled', 'expired', None)]


async def test_a_page_answers_while_channels_wait(inbox, tmp_path):
    channel = Recording()
    ui = InboxUI(inbox, channels=[channel])

    with Inbox(SQLiteStore(tmp_path / 'state' / 'inbox.sqlite')) as page:
        asking = asyncio.create_task(ask(ui))
        [entry] = await soon(page)
        await answer(page, entry, YES, by=Approver(id='carol'))
        decision = await asking

    assert decision.decided_by == ('carol',)
    assert channel.told == [('posted', 'pending'), ('settled', 'approved', 'carol')]


class Reports(Recording):
    """A channel in a process without the runs. It says when it has been told so many things."""

    def __init__(self):
        super().__init__()
        self.reports, self.fails = [], False
        self._changed = asyncio.Event()

    async def posted(self, entry):
        await super().posted(entry)
        if self.fails:
            raise RuntimeError

    def report(self, is_notified):
        self.reports.append(is_notified)
        self._changed.set()

    async def has(self, count):
        async with asyncio.timeout(20):
            while len(self.reports) < count:
                self._changed.clear()
                await self._changed.wait()


@pytest.fixture
async def reports(inbox):
    """A channel that follows the inbox from its own inbox, as in another process."""
    with Inbox(SQLiteStore(inbox.store.path)) as other:
        channel = Reports()
        channel.inbox = other
        following = asyncio.create_task(notify_channel(other, channel, report=channel.report))
        yield channel
        following.cancel()
        await asyncio.wait([following])


async def test_a_channel_of_another_process_learns_of_all_requests_once(inbox, reports):
    ids = [await inbox.post(request_for('a'))]
    await reports.has(1)
    ids.append(await inbox.post(request_for('b')))
    await reports.has(2)
    await answer(inbox, await inbox.get(ids[0]), YES, by=Approver(id='ada'))
    await reports.has(3)
    await inbox.withdraw(ids[1])
    await reports.has(4)

    assert reports.told == [
        ('posted', 'pending'),
        ('posted', 'pending'),
        ('settled', 'approved', 'ada'),
        ('settled', 'withdrawn', None),
    ]
    assert reports.reports == [True] * 4


async def test_a_channel_of_another_process_learns_of_requests_that_were_open_before(inbox, reports):
    request_id = await inbox.post(request_for())
    settled = await inbox.post(request_for())
    await inbox.withdraw(settled)
    again = Reports()

    following = asyncio.create_task(notify_channel(reports.inbox, again, report=again.report))
    await again.has(1)
    await inbox.withdraw(request_id)
    await again.has(2)
    following.cancel()

    assert again.told == [('posted', 'pending'), ('settled', 'withdrawn', None)]


async def test_a_channel_of_another_process_is_told_again_when_others_may_answer(inbox, reports):
    rule = ApproverRule(users=('ada',), escalate=Escalation(after=timedelta(milliseconds=300), to=ApproverRule()))

    request_id = await inbox.post(request_for('a'), approvers=(rule,))
    await reports.has(2)
    await inbox.withdraw(request_id)
    await reports.has(3)

    assert reports.told == [('posted', 'pending'), ('posted', 'pending'), ('settled', 'withdrawn', None)]


async def test_a_channel_of_another_process_is_told_once_if_others_could_answer_from_the_start(inbox, reports):
    rule = ApproverRule(users={'ada'}, count=2, escalate=Escalation(after='1h', to=ApproverRule(users={'zoe'})))
    since = datetime.now(UTC) - timedelta(hours=2)

    request_id = await inbox.post(request_for('a').changed(votes=Votes(needed=2, since=since)), approvers=(rule,))
    await reports.has(1)
    await inbox.withdraw(request_id)
    await reports.has(2)

    assert reports.told == [('posted', 'pending'), ('settled', 'withdrawn', None)]


async def test_a_failed_notification_is_reported_and_the_next_one_is_sent(inbox, reports, caplog):
    reports.fails = True
    await inbox.post(request_for('a'))
    await reports.has(1)
    reports.fails = False
    await inbox.post(request_for('b'))
    await reports.has(2)

    assert reports.reports == [False, True]
    assert 'Reports.posted failed with RuntimeError' in caplog.text


async def test_notifications_go_on_after_an_outage_of_the_store(inbox, reports, monkeypatch, caplog):
    monkeypatch.setattr('tool_approval.inbox.inbox_ui.RETRY_S', 0.0)
    await inbox.post(request_for('a'))
    await reports.has(1)
    whole, away = reports.inbox.get, []

    async def fail_twice(request_id):
        if len(away) < 2:
            away.append(request_id)
            raise InboxUnavailable('here', 'it is away')
        return await whole(request_id)

    monkeypatch.setattr(reports.inbox, 'get', fail_twice)
    await inbox.post(request_for('b'))
    await reports.has(2)

    assert reports.told == [('posted', 'pending')] * 2
    assert 'notifications go on in' in caplog.text


async def test_a_request_that_cannot_be_read_is_left_out(inbox, reports, monkeypatch):
    first = await inbox.post(request_for('a'))
    await reports.has(1)
    whole = reports.inbox.get

    async def unknown(request_id):
        if request_id == first:
            raise UnknownRequest
        return await whole(request_id)

    monkeypatch.setattr(reports.inbox, 'get', unknown)
    await inbox.withdraw(first)
    await inbox.post(request_for('b'))
    await reports.has(2)

    assert reports.told == [('posted', 'pending')] * 2
