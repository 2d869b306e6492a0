"""For how long an approval lets its call run."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from tool_approval.core.arguments import read_arguments
from tool_approval.core.binding import Binding
from tool_approval.core.calls import Allowed, Call, Refused
from tool_approval.core.controller import CLOCK_SKEW
from tool_approval.core.gate import CHANGED, EXPIRED, FROM_THE_FUTURE, Gate
from tool_approval.testing import RecordingUI, ScriptedUI, approve_all

from tests.approval.parts import KEY, NOON, ListSink, decide_all, request_for
from tool_approval import ApprovalController, ApprovalDecision, ApprovalDenied, ApprovalMemory, execute_tool

HOUR = timedelta(hours=1)


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self):
        self.time = NOON

    def __call__(self):
        return self.time


def call_of(path='a'):
    values = {'path': path}
    return Call(tool_name='delete', arguments=read_arguments(values), values=values)


def gate_of(clock, sink=None, *, ui=None, **options):
    return Gate(ApprovalController(ui=ui or approve_all(), audit=sink, now=clock, key=KEY, **options))


async def approved(gate):
    [settled] = await gate.decide_all([await gate.prepare(call_of())])
    assert isinstance(settled, Allowed)
    return settled.binding


async def confirmed(gate, binding):
    return gate.confirm(await gate.prepare(call_of()), Binding.of(binding.as_json()))


def confirm_after(later, **options):
    """Approve a call at noon, and confirm it later: the reason for refusing it, and what became of it in the log."""
    clock, sink = Clock(), ListSink()
    gate = gate_of(clock, sink, **options)
    binding = asyncio.run(approved(gate))
    clock.time += later
    settled = asyncio.run(confirmed(gate, binding))
    return settled.reason if isinstance(settled, Refused) else None, sink.outcomes()


@pytest.mark.parametrize(
    ('later', 'options', 'expected'),
    [
        (24 * HOUR, {}, (None, [])),
        (24 * HOUR + timedelta(seconds=1), {}, (EXPIRED, ['expired'])),
        (HOUR, {'valid_for': HOUR}, (None, [])),
        (2 * HOUR, {'valid_for': HOUR}, (EXPIRED, ['expired'])),
        (10000 * HOUR, {'valid_for': None}, (None, [])),
        (-CLOCK_SKEW, {}, (None, [])),
        (-HOUR, {}, (FROM_THE_FUTURE, ['refused'])),
    ],
)
def test_an_approval_lets_its_call_run_for_a_time(later, options, expected):
    assert confirm_after(later, **options) == expected


def test_the_log_says_until_when_a_call_may_run():
    sink = ListSink()

    asyncio.run(approved(gate_of(lambda: NOON, sink, valid_for=HOUR)))
    asyncio.run(approved(gate_of(lambda: NOON, sink, valid_for=None)))

    assert [entry['expires_at'] for entry in sink.decisions()] == ['2026-03-04T13:00:00+00:00', None]


def test_an_approval_without_a_limit_gets_that_of_the_process_that_runs_the_call():
    clock, sink = Clock(), ListSink()
    binding = asyncio.run(approved(gate_of(clock, valid_for=None)))
    clock.time += 2 * HOUR

    settled = asyncio.run(confirmed(gate_of(clock, sink, valid_for=HOUR), binding))

    assert isinstance(settled, Refused)
    assert (settled.reason, sink.outcomes()) == (EXPIRED, ['expired'])


def test_a_shorter_time_of_the_process_that_runs_the_call_counts():
    clock = Clock()
    binding = asyncio.run(approved(gate_of(clock)))
    clock.time += 2 * HOUR

    assert isinstance(asyncio.run(confirmed(gate_of(clock), binding)), Allowed)
    assert asyncio.run(confirmed(gate_of(clock, valid_for=HOUR), binding)).reason == EXPIRED


@pytest.mark.parametrize(
    'changes',
    [
        {'expires_at': '2036-03-04T12:00:00+00:00'},
        {'expires_at': None},
        {'decided_at': '2026-03-05T12:00:00+00:00'},
        {'decided_at': None},
        {'seal': ''},
        {'seal': '\ud800'},
        {'decided_at': '\ud800'},
        {'approvers': ['ada']},
        {'approvers': ['\ud800']},
        {'remembered': 'x'},
    ],
)
def test_values_that_were_changed_where_the_approval_was_stored_let_nothing_run(changes):
    clock = Clock()
    gate = gate_of(clock)
    binding = asyncio.run(approved(gate))

    settled = asyncio.run(confirmed(gate, Binding.of({**binding.as_json(), **changes})))

    assert isinstance(settled, Refused)
    assert settled.reason == CHANGED


@pytest.mark.parametrize('approvers', [[], ['ada'], ['bob', 'ada'], ['ada', 7], 'ada', None, {'ada': 1, 'bob': 2}])
def test_an_approval_cannot_lose_an_approver_where_it_is_stored(approvers):
    gate = gate_of(Clock(), ui=RecordingUI(ApprovalDecision(approved=True, decided_by=('ada', 'bob'))))
    binding = asyncio.run(approved(gate)).as_json()
    assert binding['approvers'] == ['ada', 'bob']
    prepared = asyncio.run(gate.prepare(call_of()))
    assert isinstance(gate.confirm(prepared, Binding.of(binding)), Allowed)

    settled = gate.confirm(prepared, Binding.of({**binding, 'approvers': approvers}))

    assert isinstance(settled, Refused)
    assert settled.reason == CHANGED


def test_a_call_does_not_run_if_one_of_its_approvers_was_removed_meanwhile():
    allowed, sink = {'ada', 'bob'}, ListSink()
    memory = ApprovalMemory(is_allowed=lambda approver: approver in allowed)
    ui = RecordingUI(ApprovalDecision(approved=True, decided_by=('ada', 'bob')))
    gate = gate_of(Clock(), sink, ui=ui, memory=memory)
    binding = asyncio.run(approved(gate))
    allowed.remove('bob')

    settled = asyncio.run(confirmed(gate, binding))

    assert isinstance(settled, Refused)
    assert settled.reason == "The approvers of this call may no longer approve 'delete', so the call was not run."
    assert sink.outcomes() == ['refused']


def test_an_approval_from_memory_is_decided_when_it_is_found():
    clock, sink = Clock(), ListSink()
    ui = ScriptedUI(['s'])
    controller = ApprovalController(ui=ui, audit=sink, now=clock, memory=ApprovalMemory(), valid_for=HOUR)
    decide_all(controller, request_for(session_id='s'))
    clock.time += 5 * HOUR

    [decision] = decide_all(controller, request_for(session_id='s'))

    assert (decision.approved, decision.decided_at) == (True, clock.time)
    assert [(each['how'], each['expires_at'][11:16], each['remembered_at']) for each in sink.decisions()] == [
        ('person', '13:00', None),
        ('memory', '18:00', '2026-03-04T12:00:00+00:00'),
    ]


class Slow:
    """An approver who takes two hours to answer about the path `slow`."""

    one_at_a_time = False

    def __init__(self, clock, decided_at=None):
        self.clock, self.decided_at, self.asked = clock, decided_at, []

    async def choose(self, request, *, mode):
        path = request.args['path']
        self.asked.append(path)
        if path == 'slow':
            await asyncio.sleep(0)
            self.clock.time += 2 * HOUR
        return ApprovalDecision(approved=True, decided_by=('ada',), decided_at=self.decided_at)


def test_what_expired_while_another_call_of_the_response_was_open_is_asked_again():
    clock, sink = Clock(), ListSink()
    ui = Slow(clock)
    controller = ApprovalController(ui=ui, audit=sink, now=clock, valid_for=HOUR)

    decisions = decide_all(controller, request_for('fast'), request_for('slow'))

    assert ui.asked == ['fast', 'slow', 'fast']
    assert [each.decided_at for each in decisions] == [NOON + 2 * HOUR, NOON + 2 * HOUR]
    assert [each.get('outcome', each['event']) for each in sink.all] == [
        'question', 'decision', 'question', 'decision', 'expired', 'question', 'decision',
    ]  # fmt: skip


def test_a_ui_that_gives_its_old_answer_again_is_not_asked_for_ever():
    clock = Clock()
    ui = Slow(clock, decided_at=datetime(2026, 1, 1, tzinfo=UTC))
    controller = ApprovalController(ui=ui, now=clock)

    [decision] = decide_all(controller, request_for('fast'))

    assert decision.approved
    assert ui.asked == ['fast', 'fast']


def test_a_call_does_not_run_if_it_waited_too_long_for_its_ledger():
    clock, ran = Clock(), []

    class Late:
        async def execute(self, call, run, *, check, **how):
            clock.time += 48 * HOUR
            reason = check()
            assert reason is not None
            raise ApprovalDenied(call.tool_name, reason)

    async def attempt():
        controller = ApprovalController(policy={'delete': {'approval': 'required'}}, ui=approve_all(), now=clock)
        await execute_tool(
            ran.append, 'delete', {'object': 1}, controller, {'tool_call_id': '1', 'run_id': 'r'}, ledger=Late()
        )

    with pytest.raises(ApprovalDenied, match='has expired'):
        asyncio.run(attempt())
    assert ran == []


@pytest.mark.parametrize('valid_for', [timedelta(), -HOUR])
def test_a_time_that_is_not_positive_is_refused(valid_for):
    with pytest.raises(ValueError, match='`valid_for` must be positive'):
        ApprovalController(valid_for=valid_for)


def test_a_time_that_is_no_timedelta_is_refused():
    with pytest.raises(TypeError, match='a `timedelta`'):
        ApprovalController(valid_for=60)
