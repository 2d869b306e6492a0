"""A trace made from the log alone, judged by the checker `agentack`, which others wrote."""

import asyncio
import json
from datetime import timedelta

import pytest

pytest.importorskip('agentack', reason='the development environment has the checker')

from agentack.engine import evaluate_events
from agentack.parser import read_jsonl
from agentack.policy import Policy
from pydantic_ai import DeferredToolRequests
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset
from pydantic_ai_deferred import Agent
from tool_approval.audit import JsonlAuditSink, agentack_events, read_entries, verify
from tool_approval.core.jcs import public_digest
from tool_approval.inbox import Inbox
from tool_approval.integrations.pydantic_ai import Approvals
from tool_approval.testing import ScriptedUI, approve_all

from tests.approval.inbox.parts import YES, answer, soon
from tests.approval.parts import KEY, NOON, decide, decide_all, noon, request_for
from tests.loop.scripted import call, scripted
from tool_approval import ApprovalController, ApprovalDecision, ApprovalDenied, execute_tool, requires_approval

EVERYTHING = Policy(require_approval_for=('pay:*', 'delete:*'))
"""The checker is to expect an approval of each of these calls."""


class Log:
    """A log on disk, and what the checker says of it."""

    def __init__(self, folder):
        self.folder = folder
        self.path = folder / 'audit.jsonl'
        self.sink = JsonlAuditSink(self.path, key=KEY)

    def changed(self, change):
        """The log, each of whose entries went through `change`."""
        return [each for entry in read_entries(self.path) for each in [change(dict(entry or {}))] if each is not None]

    def judged(self, entries=None):
        """The checker's verdict and its findings, over a trace in a file."""
        trace = self.folder / 'trace.jsonl'
        events = agentack_events(read_entries(self.path) if entries is None else entries)
        trace.write_text(''.join(f'{json.dumps(event)}\n' for event in events))
        report = evaluate_events(read_jsonl(trace), policy=EVERYTHING)
        return report.status, [(each.rule_id, each.message) for each in report.findings]

    def kinds(self):
        return [event['type'].removeprefix('action_') for event in agentack_events(read_entries(self.path))]


PASS = ('PASS', [])


@pytest.fixture
def log(tmp_path):
    found = Log(tmp_path)
    yield found
    found.sink.close()


def payer(*responses, **agent):
    made = Agent(scripted(*responses, 'done'), name='bot', **agent)

    @made.tool_plain(requires_approval=True)
    def pay(amount: int, memo: str = '') -> str:
        if amount == 0:
            raise ValueError('nothing to pay')
        return f'paid {amount}'

    return made


def approvals_of(log, *answers, **options):
    return Approvals(None, ui=ScriptedUI(list(answers)), log=log.sink, default='none', **options)


PAY, AGAIN = call('pay', '1', amount=10), call('pay', '2', amount=10)
EDIT = ApprovalDecision(approved=True, override_args={'amount': 5, 'memo': 'less'})


@pytest.mark.parametrize(
    ('responses', 'answers', 'kinds'),
    [
        ([[PAY]], [True], 'proposed approval_requested approval_decision executed'),
        ([[PAY]], ['no'], 'proposed approval_requested approval_decision blocked'),
        (
            [[PAY]],
            [EDIT],
            (
                'proposed approval_requested approval_decision blocked '
                'proposed approval_requested approval_decision executed'
            ),
        ),
        (
            [[PAY], [AGAIN]],
            ['s'],
            (
                'proposed approval_requested approval_decision executed '
                'proposed approval_requested approval_decision executed'
            ),
        ),
        (
            [[PAY, call('pay', '2', amount=20), call('pay', '3', amount=30)]],
            [True, 'no', True],
            (
                'proposed approval_requested approval_decision proposed approval_requested approval_decision blocked '
                'proposed approval_requested approval_decision executed executed'
            ),
        ),
    ],
    ids=['approved', 'denied', 'edited', 'remembered', 'batched'],
)
@pytest.mark.parametrize('streams', [False, True])
def test_calls_of_an_agent_pass(log, streams, responses, answers, kinds):
    agent = payer(*responses, capabilities=[approvals_of(log, *answers, session='s')])

    async def run():
        if not streams:
            await agent.run('go')
            return
        async with agent.run_stream('go') as result:
            await result.get_output()

    asyncio.run(run())

    assert log.judged() == PASS
    assert log.kinds() == [*kinds.split(), 'session_end']


def test_a_failed_call_passes(log):
    with pytest.raises(ValueError, match='nothing to pay'):
        payer([call('pay', '1', amount=0)], capabilities=[approvals_of(log, True)]).run_sync('go')

    assert log.judged() == PASS


@pytest.mark.parametrize(('given', 'edited'), [(4111_2222, 5500_6666), (4111_2222, 7), (7, 5500_6666)])
@pytest.mark.parametrize('kind', ['agent', 'function', 'langchain'])
def test_an_edit_of_a_number_that_the_payload_masks_passes_and_is_logged_nowhere(log, kind, given, edited):
    # A short number is not masked, so that one of the two entries may have a public digest.
    @requires_approval(payload=lambda args: {'card': args['card'] if args['card'] < 10 else '****'})
    def pay(card: int) -> str:
        return 'paid'

    answer = ApprovalDecision(approved=True, override_args={'card': edited})
    approvals = Approvals(ui=ScriptedUI([answer]), log=log.sink)
    if kind == 'agent':
        Agent(scripted([call('pay', '1', card=given)], 'done'), tools=[pay], capabilities=[approvals]).run_sync('go')
    elif kind == 'function':
        asyncio.run(approvals.execute(pay, {'card': given}))
    else:
        tools = pytest.importorskip('langchain_core.tools', reason='the development environment has LangChain')
        asyncio.run(approvals.wrap(tools.tool(pay, description='Pay.')).ainvoke({'card': given}))

    assert log.kinds().count('executed') == 1
    assert log.judged() == PASS
    # Only for a number that was masked is it known that its successor is to be masked.
    assert '55006666' not in log.path.read_text() or given == 7


def test_an_edited_external_call_passes(log):
    pay = ToolDefinition(name='pay', parameters_json_schema={'type': 'object'})
    approvals = Approvals(
        {'pay': {'approval': 'required'}},
        ui=ScriptedUI([ApprovalDecision(approved=True, override_args={'amount': 5})]),
        log=log.sink,
        external={'pay': lambda amount: f'paid {amount}'},
    )
    agent = Agent(scripted([PAY], 'done'), toolsets=[ExternalToolset([pay])], capabilities=[approvals])

    agent.run_sync('go')

    outcome = log.changed(dict)[-1]
    assert (outcome['outcome'], outcome['public_digest']) == ('executed', public_digest('pay', {'amount': 5})[0])
    assert log.judged() == PASS


def test_a_nested_call_passes(log):
    inner = payer([PAY])
    outer = Agent(scripted([call('ask', '1')], 'done'), name='outer', capabilities=[approvals_of(log, True)])

    @outer.tool_plain
    async def ask() -> str:
        return (await inner.run('go')).output

    outer.run_sync('go')

    assert log.judged() == PASS
    assert sorted(log.kinds()[:-1]) == sorted(
        ['proposed', 'proposed', 'approval_requested', 'approval_decision', 'executed', 'executed']
    )


def test_a_resumed_call_passes(log):
    agent = payer([PAY], output_type=[str, DeferredToolRequests])
    stopping = Approvals(None, default='none', key=KEY)
    answering = Approvals(None, ui=ScriptedUI([True]), log=log.sink, default='none', key=KEY)
    resuming = Approvals(None, log=log.sink, default='none', key=KEY)

    async def run():
        stopped = await agent.run('go', capabilities=[stopping])
        results = await answering.answer(stopped.output)
        return await agent.run(
            message_history=stopped.all_messages(), deferred_tool_results=results, capabilities=[resuming]
        )

    assert asyncio.run(run()).output == 'done'
    assert log.judged() == PASS
    assert log.kinds() == ['proposed', 'approval_requested', 'approval_decision', 'executed', 'session_end']


def test_an_expired_call_passes_and_did_not_run(log):
    times = [NOON]

    class Late:
        async def execute(self, call, run, *, check, **how):
            times.append(NOON + timedelta(days=2))
            raise ApprovalDenied(call.tool_name, check() or '')

    controller = ApprovalController(
        policy={'pay': {'approval': 'required'}}, ui=approve_all(), audit=log.sink, now=lambda: times[-1]
    )
    with pytest.raises(ApprovalDenied, match='expired'):
        asyncio.run(
            execute_tool(print, 'pay', {'amount': 1}, controller, {'tool_call_id': '1', 'run_id': 'r'}, ledger=Late())
        )

    assert log.judged() == PASS
    assert log.kinds() == ['proposed', 'approval_requested', 'approval_decision', 'blocked', 'session_end']


def test_blocked_unasked_answered_and_unlimited_calls_pass(log):
    controller = ApprovalController(
        policy={
            'delete': {'approval': 'blocked'},
            'read': {'approval': 'none'},
            'pay': {'answers': ['approve', 'respond']},
        },
        ui=ScriptedUI([ApprovalDecision(approved=False, response='done by hand'), True]),
        audit=log.sink,
        valid_for=None,
    )

    def run(name):
        asyncio.run(execute_tool(lambda: name, name, {}, controller, {'run_id': 'r'}, default='required'))

    decide(controller, request_for())
    for name in ('read', 'pay', 'pay'):
        run(name)

    assert log.judged() == PASS
    asked = ['proposed', 'approval_requested', 'approval_decision']
    assert log.kinds() == [
        *asked,
        'blocked',
        'proposed',
        'executed',
        *asked,
        'blocked',
        *asked,
        'executed',
        'session_end',
    ]


def test_a_durable_call_passes(log, tmp_path):
    pytest.importorskip('dbos', reason='the development environment has DBOS')
    from tool_approval.durable import open_store

    from tests.approval.integrations.pydantic_ai.durable.test_agent import Bot, working

    url = f'sqlite:///{tmp_path}/runs.sqlite'
    durable = Bot([PAY]).durable(url, ApprovalController(audit=log.sink))

    async def run():
        with Inbox(open_store(url).inbox_store) as inbox:
            async with working(durable):
                started = await durable.start('go', run_id='run')
                [entry] = await soon(inbox)
                await answer(inbox, entry, YES)
                await started.result()

    asyncio.run(run())

    assert log.judged() == PASS
    assert log.kinds() == ['proposed', 'approval_requested', 'approval_decision', 'executed', 'session_end']


def test_what_did_not_go_as_approved_fails(log):
    payer([PAY], capabilities=[approvals_of(log, True)]).run_sync('go')

    def denied(entry):
        return {**entry, 'approved': False} if entry['event'] == 'decision' else entry

    def another(entry):
        return {**entry, 'public_digest': '0' * 64} if entry['event'] == 'outcome' else entry

    def late(entry):
        return {**entry, 'expires_at': '2020-01-01T00:00:00+00:00'} if entry['event'] == 'decision' else entry

    def silent(entry):
        return None if entry['event'] in ('question', 'decision') else entry

    found = {each.__name__: log.judged(log.changed(each))[1] for each in (denied, another, late, silent)}
    rules = {name: {rule for rule, _ in findings} for name, findings in found.items()}
    assert rules == {
        'denied': {'ACK001', 'ACK009'},
        'another': {'ACK003'},
        'late': {'ACK005'},
        'silent': {'ACK001', 'ACK009'},
    }


def test_a_clock_that_was_set_back_a_little_passes_and_the_log_stays_intact(log):
    times = [NOON + timedelta(minutes=4)]

    class Waiting:
        async def choose(self, request, *, mode):
            times.append(NOON)
            return ApprovalDecision(approved=True)

    controller = ApprovalController(
        policy={'pay': {'approval': 'required'}}, ui=Waiting(), audit=log.sink, now=lambda: times[-1]
    )
    asyncio.run(execute_tool(lambda amount: amount, 'pay', {'amount': 1}, controller, {'run_id': 'r'}))

    assert [entry['at'] for entry in log.changed(dict)] == [
        '2026-03-04T12:04:00+00:00', '2026-03-04T12:00:00+00:00', '2026-03-04T12:00:00+00:00',
    ]  # fmt: skip
    assert verify(log.path, key=KEY).is_intact
    assert log.judged() == PASS


def test_the_same_call_twice_at_once_passes(log):
    controller = ApprovalController(ui=approve_all(), audit=log.sink, now=noon)

    decide_all(controller, request_for('a'), request_for('a'))
    for _ in range(2):
        controller.record_outcome(request_for('a'), 'executed')

    assert log.judged() == PASS


def test_a_question_that_is_asked_again_is_one_question(log):
    controller = ApprovalController(ui=approve_all(), audit=log.sink)
    controller.record_question(request_for())

    decide(controller, request_for())
    controller.record_outcome(request_for(), 'executed')

    assert log.judged() == PASS


def test_lines_that_are_no_entries_of_calls_are_left_out():
    entries = [None, {'event': 'settings', 'at': NOON.isoformat()}, {'event': 'decision'}]

    assert [event['type'] for event in agentack_events(entries)] == ['session_end']


def test_a_refused_call_without_an_approval_is_left_out():
    entry = {'event': 'outcome', 'at': NOON.isoformat(), 'tool_name': 'pay', 'outcome': 'refused'}

    assert [event['type'] for event in agentack_events([entry])] == ['session_end']
