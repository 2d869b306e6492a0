"""A remembered approval that ends: after a time, a number of calls or a total."""

import asyncio
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tool_approval.answering import answer_options
from tool_approval.core.arguments import HIDDEN
from tool_approval.core.calls import Allowed
from tool_approval.core.gate import Gate
from tool_approval.storage import FileApprovalStore
from tool_approval.testing import RecordingUI, ScriptedUI

from tests.approval.parts import NOON, ListSink, in_threads, request_for
from tool_approval import (
    ApprovalController,
    ApprovalDecision,
    ApprovalDenied,
    ApprovalMemory,
    ApprovalRequest,
    Bounds,
    Left,
    Offer,
    execute_tool,
    requires_approval,
)


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.at = NOON

    def __call__(self) -> datetime:
        return self.at

    def goes_on(self, **by: float) -> None:
        self.at += timedelta(**by)


@pytest.fixture
def clock():
    return Clock()


def bounded(request: ApprovalRequest, *, remember: Any = 'session') -> ApprovalDecision:
    """The answer that takes the last offer."""
    return ApprovalDecision(approved=True, remember=remember, remember_option=request.remember_options[-1].kind)


def refund(customer: str, amount: Any = 0) -> str:
    return f'{amount} to {customer}'


class Desk:
    """Makes refunds under one rule; the approver takes the offer each time that there is one."""

    def __init__(self, *offers: dict[str, Any], answer: Any = None, memory: Any = None, clock: Any = None) -> None:
        self.ui = RecordingUI(answer or (lambda request: bounded(request) if request.remember_options else True))
        self.log = ListSink()
        self.controller = ApprovalController(
            policy={'refund': {'approval': 'required', 'remember': list(offers)}},
            ui=self.ui,
            memory=ApprovalMemory(now=clock or (lambda: NOON)) if memory is None else memory,
            audit=self.log,
            now=clock or (lambda: NOON),
        )

    def pays(self, amount: Any, customer: str = 'ada', function: Any = refund, **metadata: Any) -> bool:
        """Make one refund, and return whether the approver was asked."""
        asked = len(self.ui.requests)
        args = {'customer': customer, 'amount': amount}
        given = {'session_id': 's', 'caller': 'clerk', **metadata}
        asyncio.run(execute_tool(function, 'refund', args, self.controller, given))
        return len(self.ui.requests) > asked


def test_an_approval_ends_after_its_uses():
    desk = Desk({'uses': 3})

    asked = [desk.pays(5) for _ in range(7)]

    assert asked == [True, False, False, True, False, False, True]


def test_an_approval_ends_when_the_amounts_reach_its_total():
    desk = Desk({'total': {'amount': 500}})

    asked = [desk.pays(amount) for amount in (200, 200.5, 99.5, 0, 0.01)]

    assert asked == [True, False, False, False, True]


def test_a_call_that_does_not_fit_into_the_rest_asks_and_leaves_the_rest():
    desk = Desk({'total': {'amount': 500}}, answer=lambda request: True)
    desk.ui._answer = lambda request: bounded(request) if len(desk.ui.requests) == 1 else True

    asked = [desk.pays(amount) for amount in (300, 201, 200, 1)]

    assert asked == [True, True, False, True]


def test_decimal_amounts_are_added_exactly():
    desk = Desk({'total': {'amount': 0.3}})

    # As floating-point numbers, 0.1 + 0.1 + 0.1 is more than 0.3.
    assert [desk.pays(0.1) for _ in range(4)] == [True, False, False, True]


@pytest.mark.parametrize('amount', [-1, -0.01, '5', True, None, [5], {'amount': 5}, 10**40, HIDDEN])
def test_an_amount_that_cannot_be_counted_asks_and_is_offered_nothing(amount):
    desk = Desk({'total': {'amount': 500}})
    desk.pays(100)

    asked = desk.pays(amount)

    assert asked
    assert desk.ui.requests[-1].remember_options == ()
    assert desk.pays(400) is False, 'it has not changed the rest'


def test_a_call_without_the_amount_asks():
    desk = Desk({'total': {'amount': 500}})
    desk.pays(1)

    asyncio.run(execute_tool(refund, 'refund', {'customer': 'ada'}, desk.controller, {'session_id': 's'}))

    assert len(desk.ui.requests) == 2


def test_an_amount_that_the_tool_does_not_receive_does_not_count():
    """Attack: the model adds a field that validation drops, and the tool uses its default."""
    offer = Offer(total={'amount': 500})
    asked = ApprovalRequest(tool_name='refund', args={'to': 'ada', 'amount': 1}, used={'to': 'ada'})

    assert offer.option_for(asked) is None
    assert offer.option_for(asked.changed(used=None)) is not None


@pytest.mark.parametrize(
    ('expires', 'until'),
    [
        ('30m', NOON + timedelta(minutes=30)),
        ('45s', NOON + timedelta(seconds=45)),
        ('2d', NOON + timedelta(days=2)),
        (timedelta(hours=8), NOON + timedelta(hours=8)),
        ('tomorrow', datetime(2026, 3, 5, tzinfo=UTC)),
    ],
)
def test_an_approval_ends_with_its_time(clock, expires, until):
    desk = Desk({'expires': expires}, clock=clock)
    desk.pays(5)

    clock.at = until - timedelta(microseconds=1)
    before = desk.pays(5)
    clock.at = until
    after = desk.pays(5)

    assert (before, after) == (False, True)


def test_an_answer_that_is_dated_in_the_future_does_not_last_longer(clock):
    desk = Desk(
        {'expires': '30m'},
        answer=lambda request: bounded(request).model_copy(update={'decided_at': NOON + timedelta(minutes=4)}),
        clock=clock,
    )
    desk.pays(5)

    clock.goes_on(minutes=30)

    assert desk.pays(5) is True


def test_the_first_bound_that_is_reached_ends_an_approval(clock):
    desk = Desk({'uses': 10, 'total': {'amount': 100}, 'expires': '1h'}, clock=clock)

    assert [desk.pays(40) for _ in range(4)] == [True, False, True, False]
    clock.goes_on(hours=1)
    assert desk.pays(40) is True


@pytest.mark.parametrize(
    ('offer', 'customer', 'amount', 'asks'),
    [
        ({'uses': 9}, 'ada', 5, False),
        ({'uses': 9}, 'ada', 6, True),
        ({'uses': 9, 'total': {'amount': 99}}, 'ada', 6, False),
        ({'uses': 9, 'total': {'amount': 99}}, 'eve', 5, True),
        ({'uses': 9, 'same': ['customer']}, 'ada', 6, False),
        ({'uses': 9, 'same': ['customer']}, 'eve', 5, True),
        ({'uses': 9, 'same': []}, 'eve', 6, False),
    ],
)
def test_an_offer_says_which_arguments_later_calls_have_in_common(offer, customer, amount, asks):
    desk = Desk(offer)
    desk.pays(5)

    assert desk.pays(amount, customer) is asks


def test_a_bounded_approval_is_for_one_agent_and_its_callers():
    desk = Desk({'uses': 9})
    desk.pays(5)

    assert desk.pays(5, caller='another') is True
    assert desk.pays(5, session_id='another') is True


def test_the_calls_of_one_response_share_the_rest():
    desk = Desk({'uses': 3})
    desk.pays(5)
    given = {'session_id': 's', 'caller': 'clerk'}
    requests = [ApprovalRequest(tool_name='refund', args=desk.ui.requests[0].args, metadata=given)] * 5
    # The digest of the function is part of what is remembered.
    requests = [each.changed(desk.ui.requests[0].facts, session_id='s') for each in requests]

    asyncio.run(desk.controller.request_approvals(requests))

    decisions = [entry['how'] for entry in desk.log.decisions()]
    # Two are left. What is approved anew also has to be enough for the calls that have not run yet.
    assert decisions == ['person', 'memory', 'memory', 'person', 'person', 'person']


def test_a_use_that_another_process_took_meanwhile_is_refused(tmp_path):
    def store():
        return FileApprovalStore(tmp_path / 'project', tmp_path / 'state' / 'approvals.json')

    desk = Desk({'uses': 2}, answer=lambda request: bounded(request, remember='always'), memory=ApprovalMemory(store()))
    other = Desk({'uses': 2}, memory=ApprovalMemory(store()))
    desk.pays(5)
    asked: list[bool] = []

    class OtherIsFaster(Gate):
        def confirm(self, prepared, binding, **options):
            settled = super().confirm(prepared, binding, **options)
            if not asked:
                asked.append(True)
                in_threads(lambda: asked.append(other.pays(5)))  # as in another event loop
            return settled

    with pytest.MonkeyPatch.context() as patch, pytest.raises(ApprovalDenied, match='used up'):
        patch.setattr('tool_approval.core.execute.Gate', OtherIsFaster)
        desk.pays(5)

    assert asked == [True, False]
    assert desk.log.outcomes() == ['executed', 'refused']


def test_an_approval_that_was_revoked_before_the_call_does_not_run():
    desk = Desk({'uses': 2})
    desk.pays(5)
    asked = desk.ui.requests[0]
    found = desk.controller.memory.find(asked)
    assert found is not None
    desk.controller.memory.revoke(found.id)

    with pytest.raises(Exception, match='revoked'):
        desk.controller.memory.take(found.id, asked)


def test_a_host_that_drops_the_remembered_approval_runs_nothing():
    """Attack: without the id of the remembered approval, the call would not be counted."""
    desk = Desk({'uses': 2})
    gate = Gate(desk.controller)
    call = _call({'customer': 'ada', 'amount': 5})

    async def settled():
        prepared = await gate.prepare(call)
        [first] = await gate.decide_all([prepared])
        [second] = await gate.decide_all([prepared])
        assert isinstance(first, Allowed)
        assert isinstance(second, Allowed)
        return prepared, second.binding

    prepared, binding = asyncio.run(settled())
    assert binding is not None
    assert binding.remembered is not None

    assert isinstance(gate.confirm(prepared, binding), Allowed)
    assert not isinstance(gate.confirm(prepared, binding._replace(remembered=None)), Allowed)


def test_the_same_approval_lets_no_call_run_twice():
    """Attack: a host resumes the same stopped run again and again."""
    desk = Desk({'uses': 2})
    gate = Gate(desk.controller)

    async def settled():
        prepared = await gate.prepare(_call({'customer': 'ada', 'amount': 5}))
        await gate.decide_all([prepared])
        [second] = await gate.decide_all([prepared])
        return second

    allowed = asyncio.run(settled())
    assert isinstance(allowed, Allowed)

    with gate.execution(allowed):
        pass
    with pytest.raises(Exception, match='used up'), gate.execution(allowed):
        raise AssertionError


def _call(args):
    from tool_approval.core.arguments import read_arguments
    from tool_approval.core.calls import Call

    return Call(tool_name='refund', arguments=read_arguments(args), values=args)


def test_an_offer_of_another_rule_does_not_find_the_approval():
    memory = ApprovalMemory()
    Desk({'uses': 9}, memory=memory).pays(5)

    assert Desk({'uses': 9}, memory=memory).pays(5) is False
    assert Desk({'uses': 10}, memory=memory).pays(5) is True


def test_the_decorator_offers_bounded_approvals():
    asked: list[ApprovalRequest] = []

    @requires_approval(remember=[Offer(uses=2, same=())])
    def pay(to: str) -> str:
        return to

    def answer(request):
        asked.append(request)
        return bounded(request)

    controller = ApprovalController(ui=RecordingUI(answer))
    for to in ('a', 'b', 'c'):
        asyncio.run(execute_tool(pay, 'pay', {'to': to}, controller, {'session_id': 's'}))

    assert [each.args['to'] for each in asked] == ['a', 'c']


def test_the_decorator_offers_them_for_its_own_payload():
    @requires_approval(payload=lambda args: {'iban': args['iban']}, remember=[Offer(total={'amount': 10})])
    def pay(iban: str, amount: int) -> int:
        return amount

    ui = RecordingUI(bounded)
    controller = ApprovalController(ui=ui)
    for iban, amount in (('x', 4), ('x', 6), ('y', 1), ('x', 1)):
        asyncio.run(execute_tool(pay, 'pay', {'iban': iban, 'amount': amount}, controller, {'session_id': 's'}))

    assert [each.args['iban'] for each in ui.requests] == ['x', 'y', 'x']


@pytest.mark.parametrize(
    ('offer', 'label'),
    [
        ({'uses': 10}, 'exactly this call, 10 times, counting this call'),
        ({'uses': 1, 'same': []}, 'every `refund`, whatever the arguments, once, counting this call'),
        (
            {'total': {'amount': 500}, 'expires': '30m'},
            (
                'every `refund` with customer: "ada", `amount` up to 500 in total, counting this call, '
                'for 30 minutes after your answer'
            ),
        ),
        ({'expires': 'tomorrow'}, 'exactly this call, until the next midnight (UTC)'),
        ({'expires': '90s'}, 'exactly this call, for 90 seconds after your answer'),
        ({'expires': '1d'}, 'exactly this call, for 1 day after your answer'),
        ({'expires': '1s'}, 'exactly this call, for 1 second after your answer'),
    ],
)
def test_an_offer_says_exactly_what_it_covers_and_until_when(offer, label):
    desk = Desk(offer)

    desk.pays(5)

    [shown] = answer_options(desk.ui.requests[0]).remember_options[1:]
    assert shown[1] == label


def test_an_offer_that_cannot_be_shown_whole_is_not_made():
    offer, long = Offer(uses=2, total={'amount': 5}), 'x' * 300

    assert offer.option_for(request_for(long, args={'to': long, 'amount': 1})) is None
    assert offer.option_for(request_for(args={'to': float('nan'), 'amount': 1})) is None
    assert Offer(uses=2, same=('to',)).option_for(request_for('a')) is None


def test_no_more_offers_are_made_than_there_are_keys():
    desk = Desk(*({'uses': number} for number in range(2, 20)), {'uses': 2})

    desk.pays(5)

    assert len(desk.ui.requests[0].remember_options) == 8
    assert len(answer_options(desk.ui.requests[0]).remember_options) == 9


def test_an_approval_with_a_single_use_is_not_kept():
    desk = Desk({'uses': 1})

    assert [desk.pays(5), desk.pays(5)] == [True, True]
    assert desk.controller.memory.list_approvals() == []


def test_a_tool_whose_offer_does_not_cover_its_own_call_is_kept_as_nothing():
    option = Offer(total={'amount': 5}).option_for(request_for(args={'amount': 1}))
    assert option is not None
    asked = request_for(args={'amount': 9}, remember_options=(option,))
    memory = ApprovalMemory()

    memory.store(asked, bounded(asked))

    assert memory.list_approvals() == []


@pytest.mark.parametrize(
    ('bounds', 'problem'),
    [
        ({}, 'a bound is missing'),
        ({'uses': 0}, 'at least 1'),
        ({'uses': -3}, 'at least 1'),
        ({'uses': True}, 'not a whole number'),
        ({'uses': 2.5}, 'not a whole number'),
        ({'uses': '2'}, 'not a whole number'),
        ({'expires': '0m'}, 'more than zero'),
        ({'expires': timedelta(0)}, 'more than zero'),
        ({'expires': timedelta(-1)}, 'more than zero'),
        ({'expires': '99999999d'}, 'at most ten years'),
        ({'expires': '-5m'}, 'not a duration'),
        ({'expires': '30'}, 'not a duration'),
        ({'expires': 30}, 'not a duration'),
        ({'expires': 'yesterday'}, 'not a duration'),
        ({'total': {'amount': 0}}, 'more than zero'),
        ({'total': {'amount': -1}}, 'more than zero'),
        ({'total': {'amount': 'many'}}, 'not a number'),
        ({'total': {'amount': True}}, 'not a number'),
        ({'total': {'amount': float('nan')}}, 'not a number'),
        ({'total': {'amount': Decimal('Infinity')}}, 'not a number'),
        ({'total': {'amount': Decimal('1e40')}}, 'too large'),
        ({'total': {'amount': Decimal('1e-40')}}, 'too small'),
        ({'total': {'amount': 5}, 'same': ['amount']}, 'both under `same` and under `total`'),
        ({'use': 3}, 'Extra inputs'),
    ],
)
def test_bounds_that_mean_nothing_are_errors(bounds, problem):
    with pytest.raises(ValidationError, match=problem):
        Offer(**bounds)


def test_bounds_are_read_as_they_were_written():
    bounds = Bounds(expires=timedelta(minutes=30), uses=3, total={'amount': Decimal('0.10'), 'tax': '1.50'})

    assert Bounds.model_validate_json(bounds.model_dump_json()) == bounds
    assert Bounds.model_validate_json('{"expires": "tomorrow"}').expires == 'tomorrow'


amounts = st.floats(min_value=0, allow_nan=False, allow_infinity=False) | st.integers(min_value=0, max_value=10**30)


@given(total=st.integers(min_value=1, max_value=10**6), given=st.lists(amounts, max_size=20))
def test_no_sequence_of_amounts_exceeds_the_total(total, given):
    left: Left | None = Left.of(Bounds(total={'x': total}), NOON)
    let = Decimal()
    for amount in given:
        assert left is not None
        after = left.after({'x': amount}, NOON)
        if after is not None:
            left, let = after, sum((let, Decimal(repr(amount))), Decimal())
            assert after == Left.model_validate_json(after.model_dump_json())

    assert let <= total


def test_an_amount_with_too_many_digits_to_be_added_exactly_is_not_covered():
    left = Left(total={'x': Decimal('1e20') + 1})
    tiny = left.model_copy(update={'total': {'x': Decimal(f'1e-{1990}')}})

    assert left.after({'x': 5e-324}, NOON) is not None
    assert tiny.after({'x': 0}, NOON) is not None
    assert Left(total={'x': Decimal('1e2001')}).after({'x': 0.5}, NOON) is None


@pytest.mark.parametrize(
    ('left', 'text'),
    [
        (Left(uses=2), '2 calls left'),
        (Left(uses=1), '1 call left'),
        (Left(uses=0), 'ended'),
        (Left(until=NOON), 'ended'),
        (Left(until=NOON + timedelta(minutes=5)), 'until 2026-03-04 12:05 UTC'),
        (Left(uses=3, total={'amount': Decimal('120.50')}), '3 calls left, 120.5 of `amount` left'),
    ],
)
def test_what_is_left_is_said_in_words(left, text):
    assert left.text(NOON) == text


def test_an_approval_from_before_its_end_does_not_run_after_it(clock):
    desk = Desk({'expires': '30m'}, clock=clock)
    desk.pays(5)
    gate = Gate(desk.controller)
    asked = desk.ui.requests[0]

    clock.goes_on(minutes=29)
    [decided] = asyncio.run(desk.controller.decide([asked]))

    assert decided.remembered is not None
    assert decided.expires_at == NOON + timedelta(minutes=30)
    assert gate.controller.has_expired(decided) is False
    clock.goes_on(minutes=2)
    assert gate.controller.has_expired(decided) is True


def test_scripted_answers_can_take_an_offer():
    ui = ScriptedUI([bounded])
    controller = ApprovalController(ui=ui, policy={'refund': {'remember': [{'uses': 2}]}})

    given = {'session_id': 's'}
    for _ in range(2):
        asyncio.run(execute_tool(refund, 'refund', {'customer': 'a'}, controller, given, default='required'))

    ui.assert_done()
