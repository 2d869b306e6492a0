"""Runs that are stopped, resumed and tried again by hand, with a ledger."""

import asyncio
from dataclasses import replace
from typing import Any

import pydantic_ai
import pydantic_ai_deferred
import pytest
from pydantic_ai import DeferredToolRequests, ModelRetry, RunContext
from pydantic_ai.exceptions import ApprovalRequired, UserError
from pydantic_ai.messages import ModelResponse, ToolReturn, ToolReturnPart
from pydantic_ai.toolsets import FunctionToolset
from tool_approval.durable import Done, Ledger, open_store
from tool_approval.inbox import ApproverRule, Inbox, InboxUI
from tool_approval.integrations.pydantic_ai import Approvals, ApprovalToolset, collect_approvals
from tool_approval.storage import FileApprovalStore
from tool_approval.testing import RecordingUI, ScriptedUI

from tests.loop.scripted import call, scripted
from tool_approval import ApprovalController, ApprovalDecision, ApprovalMemory, current_call

from .agents import Log, external

pytestmark = pytest.mark.anyio


@pytest.fixture
def store(tmp_path):
    made = open_store(f'{tmp_path}/state/inbox.sqlite')
    yield made
    made.close()


@pytest.fixture
def ledger(store):
    with Ledger(store, beats=False) as made:
        yield made


def rows(store):
    return [(row.tool_call_id, row.attempt, row.state) for row in store.unknown_executions() or all_of(store)]


def all_of(store):
    with store.inbox_store.reading() as execute:
        found = execute('SELECT DISTINCT run_id FROM executions').fetchall()
    return [row for (run_id,) in found for row in store.executions_of(run_id)]


class Tools:
    """Counts what was really done."""

    def __init__(self, result: Any = 'deleted') -> None:
        self.keys: list[str] = []
        self.result = result

    def delete(self, path: str) -> Any:
        """A plain function: the host runs it in a thread."""
        self.keys.append(current_call().idempotency_key)
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result


def made(controller, tools, ledger, kind):
    """An agent that stops at the call, and runs it when it is resumed."""
    responses = [call('delete', '1', path='a')], 'done'
    if kind == 'toolset':
        toolset = ApprovalToolset(FunctionToolset([tools.delete]), controller, ledger=ledger)
        return pydantic_ai.Agent(scripted(*responses), toolsets=[toolset], output_type=[str, DeferredToolRequests])
    agent = pydantic_ai_deferred.Agent(
        scripted(*responses),
        output_type=[str, DeferredToolRequests],
        deferred_tool_handler=Approvals(controller, ledger=ledger, default='none'),
    )
    agent.tool_plain(requires_approval=True)(tools.delete)
    return agent


async def stopped(controller, kind='toolset'):
    """The run that has stopped, and its answers."""
    bare = pydantic_ai.Agent(scripted([call('delete', '1', path='a')], 'done'), output_type=[str, DeferredToolRequests])
    if kind == 'toolset':
        bare = made(controller, Tools(), None, kind)
    else:
        bare.tool_plain(requires_approval=True)(Tools().delete)
    result = await bare.run('go')
    assert isinstance(result.output, DeferredToolRequests)
    answers = await collect_approvals(result.output, controller=controller)
    return {'message_history': result.all_messages(), 'deferred_tool_results': answers}


def returned(result):
    return [part.content for each in result.new_messages() for part in each.parts if isinstance(part, ToolReturnPart)]


@pytest.mark.parametrize('kind', ['toolset', 'handler'])
async def test_a_run_that_is_resumed_twice_does_its_call_once(store, ledger, kind):
    controller, tools = ApprovalController(ui=RecordingUI(), audit=(log := Log())), Tools({'gone': ['a']})
    resumed = await stopped(controller, kind)

    first = await made(controller, tools, ledger, kind).run(**resumed)
    with Ledger(store, beats=False) as later:
        second = await made(controller, tools, later, kind).run(**resumed)

    assert (first.output, second.output) == ('done', 'done')
    assert returned(first) == returned(second) == [{'gone': ['a']}]
    assert len(tools.keys) == 1
    assert rows(store) == [('1', 1, 'done')]
    assert [each['outcome'] for each in log.entries if each['event'] == 'outcome'] == ['executed']


async def test_a_run_in_one_piece_does_its_calls_and_keeps_them(store, ledger):
    tools = Tools()
    agent = pydantic_ai_deferred.Agent(
        scripted([call('delete', '1', path='a'), call('delete', '2', path='b')], [call('delete', '1', path='a')], 'ok'),
        deferred_tool_handler=Approvals(ApprovalController(ui=RecordingUI()), ledger=ledger, default='none'),
    )
    agent.tool_plain(requires_approval=True)(tools.delete)

    assert (await agent.run('go')).output == 'ok'

    assert sorted(rows(store)) == [('1', 1, 'done'), ('1', 1, 'done'), ('2', 1, 'done')]
    assert len(set(tools.keys)) == 3, 'the model used an id again, for another call'


async def test_content_and_metadata_are_kept_with_the_result(store, ledger):
    tool_return = ToolReturn(return_value={'n': 1}, content=['look', 'here'], metadata={'at': 7})
    controller, tools = ApprovalController(ui=RecordingUI()), Tools(tool_return)
    resumed = await stopped(controller)

    first = await made(controller, tools, ledger, 'toolset').run(**resumed)
    second = await made(controller, tools, ledger, 'toolset').run(**resumed)

    kept = [
        [(part.part_kind, part.content) for each in run.new_messages() for part in each.parts][:3]
        for run in (first, second)
    ]
    assert kept[0] == kept[1]
    assert len(tools.keys) == 1


async def test_the_model_is_told_where_a_result_could_not_be_kept(ledger):
    controller, tools = ApprovalController(ui=RecordingUI()), Tools('x' * 5_000_000)
    resumed = await stopped(controller)
    await made(controller, tools, ledger, 'toolset').run(**resumed)

    again = await made(controller, tools, ledger, 'toolset').run(**resumed)

    assert returned(again) == ['The call was executed, but its result is too large to be stored (5000012 bytes).']
    assert len(tools.keys) == 1


@pytest.mark.parametrize(
    ('error', 'text'),
    [(OSError('secret'), "The call of 'delete' failed (OSError)."), (ModelRetry('Use another.'), 'Use another.')],
)
async def test_a_failure_is_kept_and_the_model_is_told_of_it(store, ledger, error, text):
    controller, tools = ApprovalController(ui=RecordingUI()), Tools(error)
    resumed = await stopped(controller)
    with pytest.raises(OSError) if isinstance(error, OSError) else pytest.MonkeyPatch.context():
        await made(controller, tools, ledger, 'toolset').run(**resumed)

    again = await made(controller, tools, ledger, 'toolset').run(**resumed)

    assert returned(again) == [text]
    assert rows(store) == [('1', 1, 'failed')]
    assert len(tools.keys) == 1


async def test_a_tool_that_defers_again_has_done_nothing(store, ledger):
    controller, tools = ApprovalController(ui=RecordingUI()), Tools(ApprovalRequired())
    resumed = await stopped(controller)

    await made(controller, tools, ledger, 'toolset').run(**resumed)

    assert rows(store) == [('1', 1, 'approved')]


async def refused(store, ledger, controller, resumed, text, kind='toolset'):
    tools = Tools()
    result = await made(controller, tools, ledger, kind).run(**resumed)
    assert returned(result) == [text]
    assert tools.keys == []
    return rows(store)


@pytest.mark.parametrize('kind', ['toolset', 'handler'])
async def test_a_block_that_was_added_meanwhile_holds(store, ledger, kind):
    key, log = b'k' * 32, Log()
    resumed = await stopped(ApprovalController(ui=RecordingUI(), key=key), kind)
    now = ApprovalController(policy={'delete': {'approval': 'blocked'}}, key=key, audit=log)

    state = await refused(store, ledger, now, resumed, "The tool 'delete' is blocked by policy.", kind)

    assert state == [], 'it is refused before the ledger is asked'
    assert 'refused' in [each.get('outcome') for each in log.entries]


@pytest.mark.parametrize('kind', ['toolset', 'handler'])
async def test_approval_by_a_removed_approver_is_refused(store, ledger, kind):
    def answer(request):
        return ApprovalDecision(approved=True, decided_by=('ada',))

    allowed = {'ada'}
    memory = ApprovalMemory(is_allowed=lambda approver: approver in allowed)
    controller = ApprovalController(ui=ScriptedUI([answer]), memory=memory)
    resumed = await stopped(controller, kind)
    allowed.clear()

    state = await refused(
        store,
        ledger,
        controller,
        resumed,
        "The approver of this call may no longer approve 'delete', so the call was not run.",
        kind,
    )

    assert state == [('1', 1, 'refused')]


async def test_lists_of_the_inbox_decide_whether_an_approval_still_holds(store, ledger):
    key = b'k' * 32
    ui = ScriptedUI([lambda request: ApprovalDecision(approved=True, decided_by=('ada',))])
    resumed = await stopped(ApprovalController(ui=ui, key=key))
    for users, groups, is_refused in (('bob', '', True), ('ada', '', False), ('bob', 'ops', False)):
        rule = ApproverRule(users={users}, groups={groups} - {''})
        with Inbox(store.inbox_store) as inbox:
            now = ApprovalController(ui=InboxUI(inbox, approvers={'delete': rule}), key=key)
            binding = resumed['deferred_tool_results'].metadata['1']['tool_approval']
            assert binding['approvers'] == ['ada']
            request = ui.requests[0]
            assert (now.still_holds(request, approvers=('ada',), remembered=None) is not None) is is_refused
            own = InboxUI(inbox, requester='ada', forbid_self_approval=True)
            assert own.may_approve(request, ['ada']) is False
            assert own.may_approve(request, ['bob']) is True
            anybody = InboxUI(inbox, requester=lambda request: None)
            assert anybody.may_approve(request, ['ada']) is True


@pytest.mark.parametrize('remember', ['session', 'always'])
@pytest.mark.parametrize('kind', ['toolset', 'handler'])
async def test_a_remembered_approval_that_was_revoked(store, ledger, tmp_path, kind, remember):
    ui = ScriptedUI([ApprovalDecision(approved=True, remember=remember)])
    memory = ApprovalMemory(FileApprovalStore(tmp_path / 'project', tmp_path / 'state' / 'approvals.json'))
    controller = ApprovalController(ui=ui, memory=memory)
    await stopped(controller, kind)
    resumed = await stopped(controller, kind)
    ui.assert_done()
    [approval] = memory.list_approvals()
    assert resumed['deferred_tool_results'].metadata['1']['tool_approval']['remembered'] == approval.id
    assert memory.revoke(approval.id)

    state = await refused(
        store,
        ledger,
        controller,
        resumed,
        'The remembered approval of this call was revoked, so the call was not run.',
        kind,
    )

    assert state == [('1', 1, 'refused')]


async def test_a_remembered_approval_that_still_holds(ledger):
    controller = ApprovalController(ui=ScriptedUI(['s']))
    await stopped(controller)
    resumed = await stopped(controller)
    tools = Tools()

    await made(controller, tools, ledger, 'toolset').run(**resumed)

    assert len(tools.keys) == 1


async def unknown(store, controller, resumed):
    """The run ends in the middle of the execution."""
    with Ledger(store, beats=False) as dying, pytest.raises(asyncio.CancelledError):
        await made(controller, Interrupted(), dying, 'toolset').run(**resumed)
    assert rows(store) == [('1', 1, 'unknown')]


class Interrupted(Tools):
    async def delete(self, path: str) -> str:
        raise asyncio.CancelledError


ASKED = [
    (True, 'deleted', [('1', 1, 'unknown'), ('1', 2, 'done')]),
    (False, 'The call was not run again.', [('1', 1, 'unknown')]),
    (
        ApprovalDecision(approved=True, override_args={'path': 'b'}),
        'The call may have happened.',
        [('1', 1, 'unknown')],
    ),
    (OSError(), 'The call may have happened.', [('1', 1, 'unknown')]),
]


@pytest.mark.parametrize(('answer', 'told', 'state'), ASKED)
async def test_a_person_is_asked_what_to_do_about_an_unknown_call_whatever_the_mode_says(
    store, ledger, answer, told, state
):
    ui, log, key = ScriptedUI([answer]), Log(), b'k' * 32
    before = ApprovalController('approve_all', key=key)
    resumed = await stopped(before)
    await unknown(store, before, resumed)
    controller, tools = ApprovalController('approve_all', ui=ui, key=key, audit=log), Tools()

    result = await made(controller, tools, ledger, 'toolset').run(**resumed)

    [text] = returned(result)
    assert text.endswith(told)
    assert all_states(store) == state
    assert len(tools.keys) == len(state) - 1
    [request] = ui.requests
    assert 'Approve to run the call again, or deny to give up on the call.' in request.description
    assert dict(request.args) == {'path': 'a'}
    decisions = [each for each in log.entries if each['event'] == 'decision']
    assert len(decisions) == (1 if isinstance(answer, bool) else 0)


def all_states(store):
    return [(row.tool_call_id, row.attempt, row.state) for row in all_of(store)]


@pytest.mark.parametrize(
    ('error', 'told', 'state'),
    [(None, {'sent': 'ada'}, 'done'), (OSError(), "The call of 'send' failed (OSError).", 'failed')],
)
async def test_an_external_call_is_done_once(store, ledger, error, told, state):
    sent = []

    def send(question):
        sent.append((question, current_call().idempotency_key))
        if error is not None:
            raise error
        return {'sent': question}

    def agent():
        return pydantic_ai_deferred.Agent(
            scripted([call('send', '1', question='ada')], 'done'),
            toolsets=[external('send')],
            deferred_tool_handler=Approvals(
                ApprovalController(ui=RecordingUI()), external={'send': send}, ledger=ledger, default='none'
            ),
        )

    results = [await agent().run('go', conversation_id='talk') for _ in range(2)]

    assert [returned(each) for each in results] == [[told]] * 2
    assert [question for question, _ in sent] == ['ada']
    assert all_states(store) == [('1', 1, state)]


async def test_a_run_that_is_answered_twice_does_its_external_call_once(store, ledger):
    sent = []

    def send(question):
        sent.append(question)
        return {'sent': question}

    def approvals():
        return Approvals(ApprovalController(ui=RecordingUI()), external={'send': send}, ledger=ledger, default='none')

    agent = pydantic_ai.Agent(
        scripted([call('send', '1', question='ada')], 'done'),
        toolsets=[external('send')],
        output_type=[str, DeferredToolRequests],
    )
    stop = await agent.run('go')

    answers = [await approvals().answer(stop.output, messages=stop.all_messages()) for _ in range(2)]

    assert [each.calls for each in answers] == [{'1': {'sent': 'ada'}}] * 2
    assert sent == ['ada']
    assert all_states(store) == [('1', 1, 'done')]
    resumed = await agent.run(message_history=stop.all_messages(), deferred_tool_results=answers[1])
    assert resumed.output == 'done'


@pytest.mark.parametrize('messages', [None, []])
async def test_with_a_ledger_an_answer_needs_the_calls(ledger, messages):
    approvals = Approvals(ui=RecordingUI(), external={'send': lambda question: question}, ledger=ledger)

    with pytest.raises(UserError, match=r'messages=result\.all_messages\(\)'):
        await approvals.answer(DeferredToolRequests(), messages=messages)


async def test_an_answer_counts_the_calls_of_the_response_that_made_them(store, ledger):
    sent = []

    def send(question):
        sent.append(question)

    approvals = Approvals(ApprovalController(ui=RecordingUI()), external={'send': send}, ledger=ledger, default='none')
    agent = pydantic_ai.Agent(
        scripted([call('send', '1', question='ada')], 'done', [call('send', '1', question='ada')]),
        toolsets=[external('send')],
        output_type=[str, DeferredToolRequests],
    )
    stop = await agent.run('go')
    answers = await approvals.answer(stop.output, messages=stop.all_messages())
    done = await agent.run(message_history=stop.all_messages(), deferred_tool_results=answers)
    other = await agent.run('again', message_history=done.all_messages())
    unknown = [replace(each, run_id=None, conversation_id=None) for each in stop.all_messages()]

    for messages in (done.new_messages(), unknown):
        with pytest.raises(UserError, match='needs the messages that have the calls'):
            await approvals.answer(stop.output, messages=messages)
    assert sent == ['ada']
    await approvals.answer(other.output, messages=other.all_messages())
    assert sent == ['ada', 'ada'], 'the second response makes a call of its own'


async def test_without_a_conversation_the_run_that_made_the_call_is_its_place(store, ledger, monkeypatch):
    controller, tools = ApprovalController(ui=RecordingUI()), Tools()
    resumed = await stopped(controller)
    [response] = [each for each in resumed['message_history'] if isinstance(each, ModelResponse)]
    monkeypatch.setattr(RunContext, 'conversation_id', property(lambda self: None, lambda self, value: None))

    await made(controller, tools, ledger, 'toolset').run(**resumed)

    assert [row.run_id for row in all_of(store)] == [response.run_id]


async def test_result_given_by_a_person_is_returned_literally(store, ledger):
    key, given = b'k' * 32, {'__tool_return__': {'n': 1}}
    controller, tools = ApprovalController(ui=RecordingUI(), key=key), Tools()
    resumed = await stopped(controller)
    await unknown(store, controller, resumed)
    [row] = all_of(store)

    assert await ledger.settle(row, given, 'ada')
    result = await made(controller, tools, ledger, 'toolset').run(**resumed)

    assert returned(result) == [given]
    assert tools.keys == []


async def test_result_found_by_a_tools_own_check_is_returned(store):
    key = b'k' * 32
    controller, tools = ApprovalController(ui=RecordingUI(), key=key), Tools()
    resumed = await stopped(controller)
    await unknown(store, controller, resumed)

    with Ledger(store, beats=False, reconcile={'delete': lambda call: Done(f'{call.args["path"]} is gone')}) as later:
        result = await made(controller, tools, later, 'toolset').run(**resumed)

    assert returned(result) == ['a is gone']
    assert tools.keys == []
