"""Several people must approve a call: each person counts once, and one denial decides."""

import asyncio
from itertools import permutations

import pytest
from tool_approval.core.request import Votes
from tool_approval.testing import RecordingUI, check_composition

from tests.approval.parts import CheckingLedger, ListSink, request_for
from tool_approval import (
    ApprovalController,
    ApprovalDecision,
    ApprovalMemory,
    ApprovalRefused,
    Count,
    FirstOf,
    answered_elsewhere,
    execute_tool,
)

pytestmark = pytest.mark.anyio


def yes(*names, **more):
    return ApprovalDecision(approved=True, decided_by=names, **more)


def no(*names, note='Not now.'):
    return ApprovalDecision(approved=False, note=note, decided_by=names)


class Says:
    """Gives the answers of a list, one for each question, and then none."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    async def choose(self, request, *, mode):
        self.asked.append(request)
        if not self.answers:
            await asyncio.Event().wait()
        return self.answers.pop(0)


async def decide(ui, request=None, **options):
    return await ApprovalController(ui=ui, **options).request_approval(request or request_for('a'))


@pytest.mark.parametrize('count', [2, 3])
async def test_it_is_a_ui_like_the_ui_that_it_asks(count):
    await check_composition(lambda ui: Count(count, ui))


async def test_all_who_agreed_are_named_in_the_decision_and_in_the_log():
    log, ui = ListSink(), Says(yes('ada', note='fine'), yes('bob', note='ok'))

    decision = await decide(Count(2, ui), audit=log)

    assert (decision.approved, decision.decided_by, decision.note) == (True, ('ada', 'bob'), 'fine\nok')
    assert (log.entries[0]['decided_by'], log.entries[0]['how']) == (['ada', 'bob'], 'person')


async def test_each_is_told_who_has_agreed():
    ui = Says(yes('ada'), yes('bob'), yes('eve'))

    await decide(Count(3, ui))

    since = ui.asked[0].votes.since
    assert [each.votes for each in ui.asked] == [
        Votes(needed=3, since=since),
        Votes(needed=3, since=since, agreed=('ada',)),
        Votes(needed=3, since=since, agreed=('ada', 'bob')),
    ]


@pytest.mark.parametrize(
    'second',
    [
        yes('ada'),
        yes(' Ada'),
        yes('ＡＤＡ'),
        yes('ada', 'ADA'),
        yes(),
        yes('ui'),
        yes('policy', 'policy'),
        yes('rex'),
        yes('REX ', 'ada'),
        yes('', ' '),
    ],
)
async def test_a_vote_that_brings_nobody_new_does_not_count(second):
    request = request_for('a', metadata={'requester': 'rex'})

    decision = await decide(Count(2, Says(yes('ada'), second)), request)

    assert not decision.approved
    assert decision.note.startswith('Not enough people could be asked')


async def test_one_denial_decides_also_after_approvals_and_of_who_has_agreed():
    for denier in ('bob', 'ada'):
        decision = await decide(Count(3, Says(yes('ada'), no(denier))))

        assert (decision.approved, decision.note, decision.decided_by) == (False, 'Not now.', (denier,))


@pytest.mark.parametrize('order', [*permutations([yes('ada'), yes('ADA'), no('bob')])])
async def test_a_denial_at_the_same_moment_decides(order):
    decision = await decide(Count(2, *map(RecordingUI, order)))

    assert (decision.approved, decision.decided_by) == (False, ('bob',))


async def test_votes_come_from_all_uis_and_the_others_learn_of_each():
    heard = []

    class Waits(Says):
        async def choose(self, request, *, mode):
            try:
                return await super().choose(request, mode=mode)
            finally:
                if (elsewhere := answered_elsewhere(request)) is not None:
                    heard.append(elsewhere.decided_by)

    decision = await decide(Count(2, Says(yes('ada'), yes('ada')), Waits(), Says(yes('ada'), yes('bob'))))

    assert (decision.approved, decision.decided_by) == (True, ('ada', 'bob'))
    assert heard == [('ada',), ('bob',)]


async def test_a_change_of_the_arguments_starts_over():
    changed = {'path': 'b', 'force': False}
    ui = Says(yes('ada'), yes('bob', override_args=changed), yes('bob'), yes('ada'))

    decision = await decide(Count(2, ui))
    assert not decision.approved  # bob has agreed to his own change already

    ui = Says(yes('ada'), yes('bob', override_args=changed), yes('ada'))
    request = request_for(args={'path': 'a', 'force': False})
    decision = await decide(Count(2, ui), request)

    assert (decision.approved, decision.decided_by) == (True, ('bob', 'ada'))
    assert decision.override_args == changed
    assert [each.votes.agreed for each in ui.asked] == [(), ('ada',), ('bob',)]
    assert [each.args['path'] for each in ui.asked] == ['a', 'a', 'b']
    assert ui.asked[2].description == "delete(path='b', force=False)"
    assert ui.asked[2].presentation is None


async def test_unchanged_arguments_do_not_start_over():
    decision = await decide(Count(2, Says(yes('ada'), yes('bob', override_args={'path': 'a'}))))

    assert (decision.approved, decision.override_args) == (True, None)


async def test_nobody_alone_can_respond_or_have_the_approval_remembered():
    for alone in (
        ApprovalDecision(approved=False, response='done', decided_by=('ada',)),
        yes('ada', remember='session'),
    ):
        memory = ApprovalMemory()
        decision = await decide(Count(2, Says(alone, yes('bob'))), memory=memory)

        assert (decision.approved, decision.response, len(memory)) == (False, None, 0)

    only_response = request_for('a', answers=('respond',))
    ui = Says(yes('ada'))
    decision = await decide(Count(2, ui), only_response)
    assert (decision.approved, ui.asked) == (False, [])
    assert decision.note == 'This call cannot be approved by several people, because its tool allows no approval.'


async def test_an_approval_that_one_person_gave_before_is_not_used():
    memory = ApprovalMemory()
    for names in (('ada',), ()):
        memory.store(request_for('a'), yes(*names, remember='session'))

        decision = await decide(Count(2, Says(no('bob'))), memory=memory)

        assert (decision.approved, decision.decided_by) == (False, ('bob',))


@pytest.mark.parametrize(
    'names', [(), ('ada',), ('ada', 'ada'), ('ada', 'Ada'), ('ada', 'rex'), ('ada', 'bob', 'rex'), ('ada', 'eve')]
)
def test_who_is_too_few_or_removed_may_not_approve_any_more(names):
    class Listed(RecordingUI):
        def may_approve(self, request, approvers):
            return set(approvers) <= {'ada', 'bob', 'rex'}

    request = request_for('a', metadata={'requester': 'rex'})
    ui = Count(2, Listed())

    assert ui.may_approve(request, ('ada', 'bob'))
    assert not ui.may_approve(request, names)


@pytest.mark.parametrize('ledger', [None, CheckingLedger()])
async def test_a_call_whose_approver_was_removed_meanwhile_does_not_run(ledger):
    ran, listed = [], {'ada', 'bob'}

    class Listed(Says):
        def may_approve(self, request, approvers):
            return set(approvers) <= listed

    class Removes(ListSink):
        def record(self, entry):
            super().record(entry)
            if entry['event'] == 'decision':
                listed.discard(removed)

    def pay(to: str) -> None:
        ran.append(to)

    for removed in ('nobody', 'ada', 'bob'):
        controller = ApprovalController(ui=Count(2, Listed(yes('ada'), yes('bob'))), audit=Removes())
        try:
            ids = {'tool_call_id': removed, 'run_id': 'r'}
            await execute_tool(pay, 'pay', {'to': removed}, controller, ids, default='required', ledger=ledger)
        except ApprovalRefused as error:
            assert 'approvers of this call may no longer approve' in str(error)
        listed.update(('ada', 'bob'))

    assert ran == ['nobody']


async def test_a_denial_inside_overrides_an_approval_around_it():
    class AtCancellation(Says):
        async def choose(self, request, *, mode):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                assert answered_elsewhere(request).decided_by == ('eve',)
                return no('bob')

    decision = await decide(FirstOf(Count(2, AtCancellation()), RecordingUI(yes('eve'))))

    assert (decision.approved, decision.decided_by) == (False, ('bob',))


async def test_the_answer_of_another_ui_belongs_to_the_request_and_not_to_its_copy():
    seen = []

    class AtCancellation(Says):
        async def choose(self, request, *, mode):
            try:
                await asyncio.Event().wait()
            finally:
                seen.extend(map(answered_elsewhere, (request, request.model_copy())))

    await decide(FirstOf(Count(2, AtCancellation()), RecordingUI(yes('eve'))))

    assert [each and each.decided_by for each in seen] == [('eve',), None]


async def test_a_count_inside_a_count_adds_its_people():
    decision = await decide(Count(3, Count(2, Says(yes('ada'), yes('bob'), yes('eve'), yes('max')))))

    assert (decision.approved, decision.decided_by) == (True, ('ada', 'bob', 'eve', 'max'))


@pytest.mark.parametrize(
    ('count', 'error', 'text'),
    [
        (1, ValueError, '`count` must be at least 2, not 1'),
        (-3, ValueError, '`count` must be at least 2'),
        ('2', TypeError, "`count` must be a number of people, not '2'"),
        (True, TypeError, 'must be a number of people'),
    ],
)
def test_a_count_that_is_no_number_of_people_is_refused(count, error, text):
    with pytest.raises(error, match=text):
        Count(count, RecordingUI())


def test_a_count_asks_those_whom_its_uis_ask():
    class Asks(RecordingUI):
        def asks(self, request):
            return ['ada', 'bob']

    assert Count(2, Asks()).asks(request_for('a')) == ['ada', 'bob']
    with pytest.raises(ValueError, match='needs at least one UI'):
        Count(2)
