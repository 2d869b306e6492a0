"""The gate, as an adapter of a framework uses it."""

import asyncio
from typing import Any

import pytest
from tool_approval.core.arguments import read_arguments
from tool_approval.core.calls import NO_ARGUMENTS, Allowed, Call, GateResult, Refused
from tool_approval.core.gate import CHANGED, DENIED, OTHER_ACCESS, Binding, Gate
from tool_approval.core.request import CallFacts
from tool_approval.core.tool_checks import CallBlocked, take_approval
from tool_approval.testing import RecordingUI, approve_all

from tests.approval.parts import ListSink, request_for
from tool_approval import ApprovalController, ApprovalDecision, ApprovalPolicy, ApprovalRequest, ApprovalResult

pytestmark = pytest.mark.anyio


def call_of(path: str = 'a', **fields: Any) -> Call:
    values = {'path': path}
    given: dict[str, Any] = {'tool_name': 'delete', 'arguments': read_arguments(values), 'values': values, **fields}
    return Call(**given)


async def decided(gate: Gate, *calls: Call) -> list[GateResult]:
    return await gate.decide_all([await gate.prepare(call) for call in calls])


class Checked:
    """A tool that returns the verdicts of a list, and then the last one again."""

    def __init__(self, *verdicts: ApprovalResult) -> None:
        self._verdicts = list(verdicts)

    def needs_approval(self, name: str, args: Any) -> ApprovalResult:
        return self._verdicts.pop(0) if len(self._verdicts) > 1 else self._verdicts[0]


ASKS, RUNS = ApprovalResult.needs_approval(), ApprovalResult.pre_approved()
BLOCKS = ApprovalResult.blocked('Not on Sundays.')


class Secretive:
    """A tool that blocks calls, and says what the log shows of them."""

    def check_approval(self, ctx):
        raise CallBlocked('Not on Sundays.', payload={'path': 'a', 'note': 'token=abc123'})


@pytest.mark.parametrize(
    ('checks', 'policy', 'payload'),
    [
        ([Secretive()], {}, {'path': 'a', 'note': '[redacted]'}),
        ([], {'delete': {'approval': 'blocked'}}, {'path': 'a'}),
        ([Checked(ASKS)], {'delete': {'approval': 'blocked'}}, {}),
        ([Checked(BLOCKS)], {}, {}),
    ],
)
def test_a_blocked_call_is_logged_with_what_is_known_to_be_no_secret(checks, policy, payload):
    sink = ListSink()
    gate = Gate(ApprovalController(policy=policy, audit=sink))

    [settled] = asyncio.run(decided(gate, call_of(checks=checks)))

    assert isinstance(settled, Refused)
    assert [(entry['event'], entry['payload']) for entry in sink.all] == [('blocked', payload)]


def test_the_calls_of_a_response_are_decided_together_and_each_by_itself():
    ui = RecordingUI(lambda request: request.args['path'] == 'yes')
    sink = ListSink()
    gate = Gate(ApprovalController(ui=ui, audit=sink))
    calls = [
        call_of('blocked', checks=[Checked(BLOCKS)]),
        call_of('yes', checks=[Checked(ASKS)]),
        call_of('free', checks=[Checked(RUNS)]),
        call_of('no', checks=[Checked(ASKS)]),
    ]

    blocked, approved, free, denied = asyncio.run(decided(gate, *calls))

    assert isinstance(blocked, Refused)
    assert (blocked.reason, blocked.is_block, blocked.decision) == ('Not on Sundays.', True, None)
    assert isinstance(approved, Allowed)
    assert (approved.call, approved.was_asked) == (calls[1], True)
    assert isinstance(free, Allowed)
    assert (free.call, free.was_asked, free.request) == (calls[2], False, None)
    assert isinstance(denied, Refused)
    assert (denied.reason, denied.is_block) == (DENIED, False)
    assert [(request.metadata['position'], request.metadata['batch_size']) for request in ui.requests] == [
        (1, 2),
        (2, 2),
    ]
    assert [entry['approved'] for entry in sink.decisions()] == [True, False]
    assert [entry['event'] for entry in sink.entries] == ['blocked', 'decision', 'decision']


def test_a_call_runs_as_it_was_approved_and_as_nothing_else():
    sink = ListSink()
    gate = Gate(ApprovalController(ui=approve_all(), audit=sink))

    async def main(changed: Call) -> GateResult:
        [settled] = await decided(gate, call_of(checks=[Checked(ASKS)]))
        assert isinstance(settled, Allowed)
        assert settled.binding is not None
        # As a host stores it.
        binding = Binding.of(settled.binding.as_json())
        return gate.confirm(await gate.prepare(changed), binding)

    assert isinstance(asyncio.run(main(call_of())), Allowed)
    for other in (
        call_of('b'),
        call_of(tool_name='remove'),
        call_of(bound_to={'definition': 'other'}),
        call_of(checks=[Checked(ApprovalResult.needs_approval(bound_to={'seen': 1}))]),
        call_of(arguments=read_arguments({'path': 'a'})._replace(has_secrets=True, bound={'received': 'x'})),
    ):
        refused = asyncio.run(main(other))

        assert isinstance(refused, Refused)
        assert 'changed after it was approved' in refused.reason
        assert (sink.outcomes()[-1], sink.entries[-1]['digest']) == ('refused', sink.entries[-2]['digest'])


async def test_a_call_that_is_blocked_after_it_was_approved_leaves_no_approval_open():
    sink = ListSink()
    gate = Gate(ApprovalController(ui=approve_all(), audit=sink))

    call = call_of(checks=[Checked(ASKS, BLOCKS)])
    [settled] = await decided(gate, call)
    assert isinstance(settled, Allowed)

    confirmed = gate.confirm(await gate.prepare(call), settled.binding)

    assert confirmed == Refused(reason='Not on Sundays.', is_block=True)
    assert [entry.get('outcome', entry['event']) for entry in sink.entries] == ['decision', 'refused', 'blocked']


@pytest.mark.parametrize(('now', 'is_allowed'), [({'network': True}, True), ({'git': ['/w']}, False), (None, False)])
async def test_changed_arguments_get_no_access_that_was_not_shown(now: Any, is_allowed: bool):
    sink = ListSink()
    shown, after = (
        ApprovalResult.needs_approval(bound_to={} if each is None else {'extra_access': each})
        for each in ({'network': True}, now)
    )
    change = ApprovalDecision(approved=True, override_args={'path': 'b'})
    gate = Gate(ApprovalController(ui=RecordingUI(change), audit=sink))

    call = call_of(checks=[Checked(shown, shown)], reread=lambda changed: call_of('b', checks=[Checked(after)]))
    [settled] = await decided(gate, call)

    assert isinstance(settled, Allowed) is is_allowed
    assert is_allowed or settled.reason == OTHER_ACCESS
    assert sink.outcomes() == ([] if is_allowed else ['refused'])


@pytest.mark.parametrize(
    ('verdicts', 'events'),
    [([RUNS, RUNS], ['unasked', 'executed']), ([RUNS, ASKS], ['blocked']), ([RUNS, BLOCKS], ['refused', 'blocked'])],
)
async def test_an_adapter_that_confirms_every_call_runs_none_unlogged_or_past_a_newer_verdict(verdicts, events):
    sink = ListSink()
    gate = Gate(ApprovalController(audit=sink))
    call = call_of(checks=[Checked(*verdicts)])
    [settled] = await decided(gate, call)
    assert isinstance(settled, Allowed)

    confirmed = gate.confirm(await gate.prepare(call), settled.binding)

    if isinstance(confirmed, Allowed):
        with gate.execution(confirmed):
            pass
    assert [entry.get('outcome', entry['event']) for entry in sink.all] == events


async def test_a_single_call_is_read_anew_after_the_decision():
    gate = Gate(ApprovalController(ui=approve_all()))

    async def again(call: Call) -> Call:
        return call_of('b')

    asked = await gate.settle(await gate.prepare(call_of(checks=[Checked(ASKS)])), again)
    unasked = await gate.settle(await gate.prepare(call_of(checks=[Checked(RUNS)])), again)

    assert asked == unasked == Refused(reason=CHANGED)


def test_an_approval_can_be_taken_inside_of_the_execution_once_and_the_outcome_is_recorded():
    sink = ListSink()
    gate = Gate(ApprovalController(ui=approve_all(), audit=sink))

    [allowed] = asyncio.run(decided(gate, call_of()))
    assert isinstance(allowed, Allowed)

    with gate.execution(allowed) as execution:
        assert [take_approval({'path': 'b'}), take_approval({'path': 'a'})] == [None, None]
    with gate.execution(allowed) as execution:
        assert [take_approval({'path': 'a'}), take_approval({'path': 'a'})] == [allowed.request.bound_to, None]
        execution.outcome = 'failed'
    with pytest.raises(ValueError, match='no'), gate.execution(allowed):
        raise ValueError('no')

    assert take_approval({'path': 'a'}) is None
    assert [(entry['outcome'], entry['error']) for entry in sink.entries[1:]] == [
        ('executed', None),
        ('failed', None),
        ('failed', 'ValueError'),
    ]
    assert len({entry['digest'] for entry in sink.entries}) == 1


def test_call_allowed_by_a_rule_cannot_be_taken_as_approved():
    gate = Gate(ApprovalController(policy={'delete': {'approval': 'none'}}, ui=approve_all()))

    [allowed] = asyncio.run(decided(gate, call_of()))

    assert isinstance(allowed, Allowed)
    with gate.execution(allowed):
        assert take_approval({'path': 'a'}) is None


def test_call_that_runs_unasked_needs_no_digest():
    gate = Gate(ApprovalController(), default='none')

    [allowed] = asyncio.run(decided(gate, call_of(arguments=NO_ARGUMENTS._replace(shown={'path': float('nan')}))))

    assert isinstance(allowed, Allowed)
    assert allowed.binding is not None
    assert (allowed.binding.digest, allowed.binding.decided) == ('', None)


def test_changed_arguments_are_refused_if_the_adapter_cannot_read_them():
    sink = ListSink()
    ui = RecordingUI(ApprovalDecision(approved=True, override_args={'path': 'b'}))

    [refused] = asyncio.run(decided(Gate(ApprovalController(ui=ui, audit=sink)), call_of()))

    assert isinstance(refused, Refused)
    assert refused.reason == (
        "The approver's arguments are invalid (the arguments of this call cannot be changed), so the call was not run."
    )
    assert sink.entries[0]['digest'] == sink.entries[1]['digest']


def test_facts_of_a_call_reach_its_request_as_fields_and_as_metadata():
    facts = CallFacts(run_id='r', session_id='s', caller='agent', toolset_id='files')

    prepared = asyncio.run(Gate(ApprovalController()).prepare(call_of(facts=facts, tool_call_id='1')))

    request = prepared.request
    assert (request.run_id, request.session_id, request.tool_call_id, request.facts) == ('r', 's', '1', facts)
    assert (request.metadata['caller'], request.metadata['toolset_id']) == ('agent', 'files')


def test_remembered_approval_is_found_however_the_request_was_made():
    memory = ApprovalController().memory
    facts = CallFacts(run_id='r', session_id='s', caller='agent')
    made = ApprovalRequest.of_call('delete', {'path': 'a'}, facts, description='Delete a')

    memory.store(made, ApprovalDecision(approved=True, remember='session'))

    assert memory.lookup(request_for(session_id='s', metadata={'caller': 'agent'})) is not None
    assert memory.lookup(request_for(session_id='s', metadata={'caller': 'other'})) is None


async def test_what_only_a_rule_let_run_does_not_count_as_approved_after_the_host_stored_it():
    """Attack: the host stores the binding of a call that a rule allows, and says that somebody approved the call."""
    gate = Gate(ApprovalController(ui=approve_all(), policy={'delete': {'approval': 'none'}}))
    [settled] = await decided(gate, call_of())
    assert isinstance(settled, Allowed)
    assert settled.binding is not None
    forged = Binding.of({**settled.binding.as_json(), 'by_policy': False})
    gate.controller.policy = ApprovalPolicy({'delete': {'approval': 'required'}})

    confirmed = gate.confirm(await gate.prepare(call_of()), forged)

    assert confirmed == Refused(reason=CHANGED)


async def test_an_edit_does_not_count_as_an_approval_after_the_host_stored_it():
    edit = ApprovalDecision(approved=True, override_args={'path': 'b'})
    gate = Gate(ApprovalController(ui=RecordingUI(edit)))
    [settled] = await decided(gate, call_of(reread=lambda args: call_of(**args)))
    assert isinstance(settled, Allowed)
    assert settled.binding is not None
    carried = settled.binding.as_json()
    only_approve = [Checked(ApprovalResult.needs_approval(answers=['approve']))]

    for name, value in (('has_changed_arguments', False), ('decided', 'of another decision')):
        forged = Binding.of({**carried, name: value})
        assert gate.confirm(await gate.prepare(call_of('b', checks=only_approve)), forged) == Refused(reason=CHANGED)
    assert isinstance(gate.confirm(await gate.prepare(call_of('b')), Binding.of(carried)), Allowed)


@pytest.mark.parametrize('is_same', [True, False])
async def test_a_renamed_call_needs_the_approvers_that_the_rule_for_its_own_name_gives(is_same):
    rule = {'approval': 'required', 'approvers': 'lead'}
    policy = ApprovalPolicy(
        {'delete': rule, **({'x_delete': rule} if is_same else {})}, approvers={'lead': {'users': ['ada']}}
    )
    gate = Gate(ApprovalController(ui=approve_all(), policy=policy))

    prepared = await gate.prepare(call_of()._replace(tool_name='x_delete', judged_as='delete'))

    assert prepared.verdict.is_blocked is not is_same
    if not is_same:
        assert "Give the rule for 'x_delete' the same `approvers`." in str(prepared.verdict.reason)


async def test_a_call_that_a_rule_lets_run_is_logged_although_the_host_says_that_it_was_approved():
    sink = ListSink()
    gate = Gate(ApprovalController(policy={'delete': {'approval': 'none'}}, audit=sink))

    confirmed = gate.confirm(await gate.prepare(call_of()), None)

    assert isinstance(confirmed, Allowed)
    assert [entry['event'] for entry in sink.all] == ['unasked']
