"""The handler in a run: who decides, what runs, what the model is told, what is written down."""

import asyncio
import threading
from dataclasses import dataclass
from datetime import date
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pydantic_ai
import pytest
from pydantic import BaseModel
from pydantic_ai import DeferredToolRequests, ModelRetry, RunContext, Tool, ToolReturn, exceptions
from pydantic_ai.capabilities import AbstractCapability, HandleDeferredToolCalls
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, UserError
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai_deferred import Agent
from tool_approval.audit import JsonlAuditSink, verify
from tool_approval.core.calls import denied_because
from tool_approval.core.gate import DENIED
from tool_approval.display import facts
from tool_approval.integrations.pydantic_ai import Approvals, ApprovalToolset, run_with_approval
from tool_approval.testing import RecordingUI, ScriptedUI, approve_all

from tests.loop.scripted import call, returns, scripted
from tool_approval import ApprovalController, ApprovalDecision, ApprovalMemory, ApprovalRequest, RememberOption

from .agents import CHANGED, REFUSED, Log, changed, deleting, external, guarded, told_by, told_in

NOTICE = '[The approver changed the arguments of this call, which ran with: {"force":false,"path":"a"}]'
MISFIT = 'are invalid (the values do not match the schema of the tool: path, force), so the call was not run.'
BLOCKS, FREES = {'del*': {'approval': 'blocked'}}, {'delete': {'approval': 'none'}}
BLOCKED = ("The tool 'delete' is blocked by policy.", 'failed')
DELETED = ('deleted /', 'success')

DECISIONS: dict[str, Any] = {
    'denied without a note': ({}, [False], [], (DENIED, 'denied')),
    'denied with a note': ({}, ['closed'], [], (denied_because('closed'), 'denied')),
    'no approver': ({'ui': None}, [], [], ('There is no approver to ask, so the call was denied.', 'denied')),
    'blocked': ({'policy': BLOCKS}, [], [], BLOCKED),
    'blocked, all approved': ({'mode': 'approve_all', 'policy': BLOCKS}, [], [], BLOCKED),
    'blocked, strict': ({'mode': 'strict', 'policy': BLOCKS}, [], [], BLOCKED),
    'no approval needed, strict': ({'mode': 'strict', 'policy': FREES}, [], ['/ False'], DELETED),
    'all approved': ({'mode': 'approve_all'}, [], ['/ False'], DELETED),
    'changed': ({}, [changed(path='a')], ['a False'], (f'deleted a\n\n{NOTICE}', 'success')),
    'changed and unfit': ({}, [changed(path=['x'], force='?')], [], (f"The approver's arguments {MISFIT}", 'denied')),
}


@pytest.mark.parametrize(('controller', 'answers', 'ran', 'told'), DECISIONS.values(), ids=DECISIONS)
def test_the_decision_is_what_runs_and_what_the_model_is_told(
    controller: dict[str, Any], answers: list[Any], ran: list[str], told: tuple[str, str]
):
    agent, executed = deleting([call('delete', '1', path='/')], 'done')
    ui = ScriptedUI(answers)

    given = told_in(agent, ApprovalController(**{'ui': ui, **controller}))

    ui.assert_done()
    assert executed == ran
    assert given == {'1': told}


def test_strict_mode_denies_with_its_reason():
    agent, ran = deleting([call('delete', '1', path='/')], 'done')

    [reason, outcome] = told_in(agent, ApprovalController('strict'))['1']

    assert (ran, outcome) == ([], 'denied')
    assert reason.startswith('Strict mode: calls that need approval')


def test_handler_is_refused_without_a_controller():
    with pytest.raises(TypeError, match=r'`rules` must be the path of a settings file, .* not ScriptedUI'):
        Approvals(ScriptedUI([True]))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize('session', [7, lambda ctx: 7])
def test_a_session_that_is_no_text_is_an_error_and_nothing_runs(session: Any):
    agent, ran = deleting()
    handler = Approvals(ApprovalController(ui=approve_all()), session=session, default='none')

    with pytest.raises(UserError, match='`session` must be a string, not int'):
        agent.run_sync('go', deferred_tool_handler=handler)

    assert ran == []


@pytest.mark.parametrize('makes_toolset', [True, False])
def test_a_session_of_the_deps_that_is_no_text_is_an_error_and_nothing_runs(makes_toolset: bool):
    ran: list[str] = []
    ui = approve_all()
    controller = ApprovalController(ui=ui)
    tools: FunctionToolset[Any] = FunctionToolset()
    tools.add_function(lambda: ran.append('ran'), name='act', requires_approval=True)
    agent = Agent(
        scripted([call('act', '1')], 'done'),
        toolsets=[ApprovalToolset(tools, controller) if makes_toolset else tools],
        deps_type=SimpleNamespace,
    )

    with pytest.raises(UserError, match=r'`deps\.session_id` must be a string, not UUID'):
        agent.run_sync(
            'go', deps=SimpleNamespace(session_id=uuid4()), deferred_tool_handler=Approvals(controller, default='none')
        )

    assert (ran, ui.requests) == ([], [])


@pytest.mark.parametrize(
    ('session', 'deps', 'session_id'),
    [
        pytest.param(None, SimpleNamespace(session_id=None), None, id='the deps name none'),
        pytest.param(None, SimpleNamespace(session_id=''), None, id='the deps name an empty one'),
        pytest.param(None, SimpleNamespace(session_id='ada'), 'ada', id='the deps name one'),
        pytest.param('ada', SimpleNamespace(session_id=7), 'ada', id='a given one wins'),
        pytest.param(lambda ctx: f'of {ctx.deps}', 'ada', 'of ada', id='a function of the run'),
    ],
)
def test_session_is_given_or_named_by_the_deps(session: Any, deps: Any, session_id: str | None):
    agent, ran = deleting()
    ui = approve_all()

    agent.run_sync(
        'go', deps=deps, deferred_tool_handler=Approvals(ApprovalController(ui=ui), session=session, default='none')
    )

    assert (ran, ui.requests[0].session_id) == (['a False'], session_id)


def test_decision_and_outcome_name_the_agent():
    agent, _ = deleting()
    log = Log()

    agent.run_sync(
        'go', deferred_tool_handler=Approvals(ApprovalController(ui=approve_all(), audit=log), default='none')
    )

    assert [(entry['event'], entry['caller']) for entry in log.entries] == [
        ('decision', 'janitor'),
        ('outcome', 'janitor'),
    ]


def test_an_approved_call_runs_in_the_same_run_and_a_denied_one_tells_the_model_why():
    agent, ran = deleting([call('delete', '1', path='a'), call('delete', '2', path='b')], 'done')
    ui = ScriptedUI([True, 'not that one'])

    told = told_in(agent, ApprovalController(ui=ui))

    ui.assert_done()
    assert ran == ['a False']
    assert told == {
        '1': ('deleted a', 'success'),
        '2': (denied_because('not that one'), 'denied'),
    }


def test_the_person_sees_every_argument_with_defaults_and_which_request_of_how_many():
    agent, _ = deleting([call('delete', '1', path='a'), call('delete', '2', path='b')], 'done')
    ui = approve_all()

    agent.run_sync('go', deferred_tool_handler=Approvals(ApprovalController(ui=ui), default='none'))

    assert [dict(request.args) for request in ui.requests] == [
        {'path': 'a', 'force': False},
        {'path': 'b', 'force': False},
    ]
    assert [(each.metadata['position'], each.metadata['batch_size']) for each in ui.requests] == [(1, 2), (2, 2)]
    assert ui.requests[0].description == "delete(path='a', force=False)"


def test_requests_say_which_run_agent_and_call_they_are_of():
    agent, _ = deleting()
    ui = approve_all()

    result = agent.run_sync('go', deferred_tool_handler=Approvals(ApprovalController(ui=ui), default='none'))

    [request] = ui.requests
    assert request.run_id == result.run_id
    assert request.tool_call_id == '1'
    assert request.metadata['caller'] == 'janitor'
    assert request.lineage == ()


def test_every_decision_is_written_before_its_call_runs_and_every_outcome_after():
    log = Log()
    agent = Agent(scripted([call('delete', '1'), call('fail', '2')], 'done'), name='janitor')
    seen: list[Any] = []
    agent.tool_plain(name='delete', requires_approval=True)(lambda: seen.append(list(log.told)))

    @agent.tool_plain(requires_approval=True)
    def fail() -> str:
        raise ModelRetry('try again')

    handler = Approvals(ApprovalController(ui=approve_all(), audit=log), default='none')
    agent.run_sync('go', deferred_tool_handler=handler)

    [told_before] = seen
    # The calls run side by side: the other's outcome may be there already.
    assert told_before[:2] == [('decision', True, '1'), ('decision', True, '2')]
    assert told_before[2:] in ([], [('outcome', 'failed', '2')])
    assert sorted(log.told[2:]) == [('outcome', 'executed', '1'), ('outcome', 'failed', '2')]
    assert {each['error'] for each in log.entries if each['tool_call_id'] == '2' and each['event'] == 'outcome'} == {
        'ModelRetry'
    }
    assert log.entries[0]['digest'] == next(
        each['digest'] for each in log.entries if each['event'] == 'outcome' and each['tool_call_id'] == '1'
    )


def test_remembered_for_the_session_the_same_call_is_not_asked_again_and_another_is():
    agent, ran = deleting(
        [call('delete', '1', path='a')], [call('delete', '2', path='a')], [call('delete', '3', path='b')], 'done'
    )
    ui = ScriptedUI(['s', 'n'])

    agent.run_sync('go', deferred_tool_handler=Approvals(ApprovalController(ui=ui), default='none'))

    ui.assert_done()
    assert ran == ['a False', 'a False']


def test_an_answer_remembered_for_the_session_answers_the_rest_of_its_batch_where_questions_follow_each_other():
    agent, ran = deleting([call('delete', '1', path='a'), call('delete', '2', path='a')], 'done')

    class OneAtATime(ScriptedUI):
        one_at_a_time = True

    ui = OneAtATime(['s'])
    agent.run_sync('go', deferred_tool_handler=Approvals(ApprovalController(ui=ui), default='none'))

    ui.assert_done()
    assert len(ran) == 2


def test_agents_that_run_at_once_ask_a_blocking_ui_one_question_at_a_time():
    class Prompt:
        def __init__(self):
            self.open, self.most, self.asked = 0, 0, []

        def choose(self, request: ApprovalRequest, *, mode: str) -> ApprovalDecision:
            self.open += 1
            self.most = max(self.most, self.open)
            threading.Event().wait(0.02)
            self.open -= 1
            self.asked.append(request.args['path'])
            return ApprovalDecision(approved=True, remember='session')

    ui = Prompt()
    boss = Agent(scripted([call('delegate', '1', path='a'), call('delegate', '2', path='a')], 'done'), name='boss')

    @boss.tool_plain
    async def delegate(path: str) -> str:
        child, _ = deleting([call('delete', '3', path=path), call('delete', '4', path='b')], 'done')
        return (await child.run('go')).output

    boss.run_sync('go', deferred_tool_handler=Approvals(ApprovalController(ui=ui), default='none'))

    assert (ui.most, ui.asked) == (1, ['a', 'b'])


def test_approvals_of_a_session_do_not_outlive_the_run_unless_a_session_is_named():
    ui = ScriptedUI(['s', 's', 's'])
    controller = ApprovalController(ui=ui)
    for session in (None, None, 'ada', 'ada'):
        agent, _ = deleting()
        agent.run_sync('go', deferred_tool_handler=Approvals(controller, session=session, default='none'))

    ui.assert_done()


@dataclass
class Deps:
    session_id: str


def test_one_persons_conversation_does_not_use_anothers_approvals():
    ui = ScriptedUI(['s', 'n'])
    handler = Approvals(ApprovalController(ui=ui), default='none')
    ran: list[str] = []
    for person in ('ada', 'ada', 'mallory'):
        agent, executed = deleting(deps_type=Deps)
        agent.run_sync('go', deps=Deps(person), deferred_tool_handler=handler)
        ran += [person] * len(executed)

    ui.assert_done()
    assert ran == ['ada', 'ada']


def test_the_notice_of_changed_arguments_can_be_switched_off():
    agent, _ = deleting([call('delete', '1', path='/')], 'done')
    controller = ApprovalController(ui=RecordingUI(changed(path='a')))

    assert told_in(agent, controller, tells_changes=False)['1'] == ('deleted a', 'success')


@pytest.mark.parametrize(
    ('given', 'told'),
    [
        ({'n': 1}, {'n': 1, 'approval_notice': 'The approver'}),
        ([1, 2], {'result': [1, 2], 'approval_notice': 'The approver'}),
        (None, {'result': None, 'approval_notice': 'The approver'}),
        (ToolReturn('text', content='more'), 'text\n\n[The approver'),
    ],
)
def test_notice_is_added_to_results_of_every_kind(given: Any, told: Any):
    agent = Agent(scripted([call('read', '1', path='/')], 'done'))

    @agent.tool_plain(requires_approval=True)
    def read(path: str) -> Any:
        return given

    [content, outcome] = told_in(agent, ApprovalController(ui=RecordingUI(changed(path='a'))))['1']

    assert outcome == 'success'
    if isinstance(told, dict):
        assert content.pop('approval_notice').startswith(told.pop('approval_notice'))
        assert content == told
    else:
        assert content.startswith(told)


def test_an_approval_with_changed_arguments_is_not_remembered():
    agent, ran = deleting([call('delete', '1', path='/')], [call('delete', '2', path='/')], 'done')
    ui = ScriptedUI([ApprovalDecision(approved=True, override_args={'path': 'a'}, remember='session'), 'n'])

    agent.run_sync('go', deferred_tool_handler=Approvals(ApprovalController(ui=ui), default='none'))

    ui.assert_done()
    assert ran == ['a False']


def test_arguments_are_shown_as_json_and_bound_as_what_the_tool_gets():
    class Order(BaseModel):
        item: str
        on: date

    agent = Agent(scripted([call('buy', '1', item='tea', on='2026-01-02'), call('book', '2', on='2026-01-02')], 'done'))
    got: list[Any] = []

    @agent.tool_plain(requires_approval=True)
    def buy(order: Order) -> str:
        got.append(order)
        return 'bought'

    @agent.tool_plain(requires_approval=True)
    def book(on: date) -> str:
        got.append(on)
        return 'booked'

    ui = approve_all()
    agent.run_sync('go', deferred_tool_handler=Approvals(ApprovalController(ui=ui), default='none'))

    assert sorted((dict(request.args) for request in ui.requests), key=len) == [
        {'on': '2026-01-02'},
        {'item': 'tea', 'on': '2026-01-02'},
    ]
    assert sorted(got, key=str) == [date(2026, 1, 2), Order(item='tea', on=date(2026, 1, 2))]


def test_the_outcome_has_the_digest_of_its_decision_also_where_a_model_was_unpacked_or_arguments_changed():
    class Order(BaseModel):
        item: str

    agent = Agent(scripted([call('buy', '1', item='tea'), call('buy', '2', item='rum')], 'done'))

    @agent.tool_plain(requires_approval=True)
    def buy(order: Order) -> str:
        return 'bought'

    log, ui = Log(), ScriptedUI([True, changed(item='milk')])
    told_in(agent, ApprovalController(ui=ui, audit=log))

    digests = {
        event: {each['tool_call_id']: each['digest'] for each in log.entries if each['event'] == event}
        for event in ('decision', 'outcome')
    }
    assert digests['decision'] == digests['outcome']
    assert all(digests['outcome'].values())


class PaymentError(Exception):
    """An error that says of itself how a payment ended."""

    def __init__(self, outcome: Any):
        super().__init__('SECRET')
        self.outcome = outcome


@pytest.mark.parametrize('outcome', ['executed', 'refused', None, {'code': 5}])
@pytest.mark.parametrize('is_bare', [True, False])
def test_outcome_attribute_of_a_tools_error_does_not_reach_the_log(outcome: Any, is_bare: bool):
    def pay() -> str:
        raise PaymentError(outcome)

    log = Log()
    controller = ApprovalController(ui=approve_all(), audit=log)
    tools: FunctionToolset[Any] = FunctionToolset()
    tools.add_function(pay, requires_approval=is_bare)
    agent = Agent(
        scripted([call('pay', '1')], 'done'), toolsets=[tools if is_bare else ApprovalToolset(tools, controller)]
    )

    with pytest.raises(PaymentError):
        agent.run_sync('go', deferred_tool_handler=Approvals(controller, default='none'))

    assert log.told == [('decision', True, '1'), ('outcome', 'failed', '1')]
    assert log.entries[-1]['error'] == 'PaymentError'


def test_a_failure_that_the_tool_tells_itself_is_no_refusal():
    class Sulking(exceptions.ToolFailed):
        outcome = _tool_approval_outcome = 'refused'

    log = Log()
    agent = Agent(scripted([call('sulk', '1'), call('fail', '2')], 'done'))

    @agent.tool_plain(requires_approval=True)
    def sulk() -> str:
        raise Sulking('no')

    @agent.tool_plain(requires_approval=True)
    def fail() -> str:
        raise exceptions.ToolFailed('no')

    agent.run_sync(
        'go', deferred_tool_handler=Approvals(ApprovalController(ui=approve_all(), audit=log), default='none')
    )

    outcomes = {each['tool_call_id']: (each['outcome'], each['error']) for each in log.entries[2:]}
    assert outcomes == {'1': ('failed', 'Sulking'), '2': ('failed', 'ToolFailed')}


class Meddling(AbstractCapability[Any]):
    """Changes arguments after the question."""

    async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: dict[str, Any]) -> dict[str, Any]:
        return {**args, 'path': '/'} if ctx.tool_call_approved else args


def test_a_call_whose_arguments_change_between_question_and_execution_does_not_run():
    agent, ran = deleting(capabilities=[Meddling()])
    log = Log()
    handler = Approvals(ApprovalController(ui=approve_all(), audit=log), default='none')

    result = agent.run_sync('go', deferred_tool_handler=handler)

    assert ran == []
    assert returns(result.all_messages())['1'] == REFUSED
    assert log.told == [('decision', True, '1'), ('outcome', 'refused', '1')]


def test_a_ui_that_changes_what_it_is_shown_changes_nothing_that_runs():
    agent, ran = deleting()

    def meddle(request: ApprovalRequest):
        request.args['path'] = '/'  # type: ignore[index]
        return True

    agent.run_sync('go', deferred_tool_handler=Approvals(ApprovalController(ui=RecordingUI(meddle)), default='none'))

    assert ran == ['a False']


def test_a_tool_that_raises_by_itself_tells_what_is_asked_by_the_conventional_metadata():
    agent = Agent(scripted([call('send', '1'), call('move', '2')], 'done'))

    @agent.tool
    def send(ctx: RunContext[Any]) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(
                metadata={'summary': 'Send the report', 'reason': 'it leaves the house', 'path': 'x'}
            )
        return 'sent'

    @agent.tool
    def move(ctx: RunContext[Any]) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={'path': 'notes/a.txt', 'approval_policy': 'needs_approval'})
        return 'moved'

    ui = approve_all()
    agent.run_sync('go', deferred_tool_handler=Approvals(ApprovalController(ui=ui), default='none'))

    assert [(each.description, each.reason) for each in ui.requests] == [
        ('Send the report', 'it leaves the house'),
        ('notes/a.txt', None),
    ]


def test_a_tool_that_says_blocked_is_denied_with_its_reason_and_nobody_is_asked():
    agent = Agent(scripted([call('send', '1')], 'done'))

    @agent.tool
    def send(ctx: RunContext[Any]) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={'approval_policy': 'blocked', 'approval_reason': 'not on Sundays'})
        raise AssertionError

    ui = approve_all()
    told = told_in(agent, ApprovalController(ui=ui))

    assert ui.requests == []
    assert told['1'] == ('not on Sundays', 'denied')


def test_remember_options_that_come_from_metadata_or_arguments_are_not_offered():
    agent = Agent(scripted([call('send', '1', remember_options=['everything'])], 'done'))
    option = RememberOption(kind='all', label='everything', payload={})

    @agent.tool
    def send(ctx: RunContext[Any], remember_options: list[str]) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(
                metadata={'remember_options': [option], 'tool_approval_request': {'remember_options': [option]}}
            )
        return 'sent'

    ui = approve_all()
    agent.run_sync('go', deferred_tool_handler=Approvals(ApprovalController(ui=ui), default='none'))

    assert ui.requests[0].remember_options == ()


def test_a_tool_is_told_which_missing_capabilities_it_was_granted():
    agent = fetching([call('fetch', '1', lacks=['net.external'])], isolation_profile='jail')

    assert told_in(agent, ApprovalController(ui=approve_all())) == {'1': ('net.external', 'success')}


def fetching(*responses: Any, name: str | None = 'fetcher', **metadata: Any):
    """An agent whose tool lacks what its argument lists, and gives back what it was granted."""
    agent = Agent(scripted(*responses, 'done'), name=name)

    @agent.tool
    def fetch(ctx: RunContext[Any], lacks: list[str], url: str = 'a') -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={'missing_capabilities': lacks, **metadata})
        return ' '.join(ctx.tool_call_metadata.get('granted_capabilities', ['nothing']))

    return agent


def test_an_approval_grants_what_it_shows_until_the_run_ends():
    calls = [
        call('fetch', '1', lacks=['net', 'gpu']),
        call('fetch', '2', lacks=['net'], url='b'),
        call('fetch', '3', lacks=['net', 'disk']),
        call('fetch', '4', lacks=['disk']),
    ]
    ui = ScriptedUI([True, False, False, True])
    controller = ApprovalController(ui=ui)

    first = fetching(*([each] for each in calls)).run_sync(
        'go', deferred_tool_handler=Approvals(controller, default='none')
    )
    second = fetching([calls[1]]).run_sync('go', deferred_tool_handler=Approvals(controller, default='none'))

    ui.assert_done()
    told = [dict(facts(request))['grants'] for request in ui.requests]
    assert told == [
        'net, gpu, for calls of this tool until the run ends',
        'net, disk, for calls of this tool until the run ends',
        'disk, for calls of this tool until the run ends',
        'net, for calls of this tool until the run ends',
    ]
    results = returns(first.all_messages())
    assert (results['1'], results['2']) == (('net gpu', 'success'), ('net', 'success'))
    assert (results['3'][1], results['4'][1]) == ('denied', 'denied')
    assert returns(second.all_messages())['2'] == ('net', 'success')


def test_required_capabilities_are_granted_if_none_are_named_as_missing():
    metadata = {
        'required_capabilities': ['net', 'disk'],
        'granted_capabilities': ['disk'],
        'missing_capabilities': None,
    }
    ui = ScriptedUI([True])

    told = told_in(fetching([call('fetch', '1', lacks=[])], **metadata), ApprovalController(ui=ui))

    assert ui.requests[0].missing_capabilities == ('net',)
    assert told['1'] == ('net', 'success')


@pytest.mark.parametrize('lacks', [[1, 'net'], ['n' * 101], [''], [f'c{n}' for n in range(21)]], ids=repr)
def test_capabilities_that_cannot_be_shown_whole_are_not_granted(lacks: list[Any]):
    ui = ScriptedUI([True])

    told = told_in(fetching([call('fetch', '1', lacks=[])], missing_capabilities=lacks), ApprovalController(ui=ui))

    assert 'grants' not in dict(facts(ui.requests[0]))
    assert told['1'] == ('nothing', 'success')


@pytest.mark.parametrize('is_shared', [False, True])
def test_a_grant_reaches_agents_below_only_where_memory_says_so(is_shared: bool):
    ui = ScriptedUI([True] if is_shared else [True, False])
    boss = fetching([call('fetch', '1', lacks=['net'])], [call('delegate', '2')])

    @boss.tool_plain
    async def delegate() -> str:
        child = fetching([call('fetch', '3', lacks=['net'], url='b')])
        return returns((await child.run('go')).all_messages())['3'][1]

    controller = ApprovalController(ui=ui, memory=ApprovalMemory(shares_with_nested=is_shared))
    result = boss.run_sync('go', deferred_tool_handler=Approvals(controller, default='none'))

    ui.assert_done()
    assert returns(result.all_messages())['2'] == ('success' if is_shared else 'denied', 'success')


def test_an_approval_for_the_session_covers_no_other_capabilities():
    def approved(lacks: list[str], answers: list[Any]) -> None:
        ui = ScriptedUI(answers)
        controller = ApprovalController(ui=ui, memory=memory)
        agent = fetching([call('fetch', '1', lacks=[])], missing_capabilities=lacks)
        agent.run_sync('go', deferred_tool_handler=Approvals(controller, session='s', default='none'))
        ui.assert_done()

    memory = ApprovalMemory()

    approved(['net'], ['s'])
    approved(['net'], [])
    approved(['net', 'disk'], [False])
    approved([], [False])


@pytest.mark.parametrize('is_wrapped', [False, True])
@pytest.mark.parametrize('granted', [['net', 'disk'], [], None, 'net'])
def test_capabilities_that_were_changed_after_the_approval_are_refused(granted: Any, is_wrapped: bool):
    controller = ApprovalController(ui=approve_all())

    class Changing(Approvals):
        async def __call__(self, ctx: RunContext[Any], requests: DeferredToolRequests):
            results = await super().__call__(ctx, requests)
            results.metadata['1']['granted_capabilities'] = granted
            return results

    inner = FunctionToolset[Any](id='net')

    def fetch(ctx: RunContext[Any]) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={'missing_capabilities': ['net']})
        raise AssertionError

    inner.add_function(fetch)
    toolset = ApprovalToolset(inner, controller, 'none') if is_wrapped else inner
    agent = Agent(scripted([call('fetch', '1')], 'done'), toolsets=[toolset])

    result = agent.run_sync('go', deferred_tool_handler=Changing(controller, default='none'))

    assert returns(result.all_messages())['1'][0] == CHANGED


def test_a_tool_of_an_approval_toolset_is_granted_what_it_lacks():
    def fetch(ctx: RunContext[Any]) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={'missing_capabilities': ['net'], 'worker': 'crawler'})
        return ' '.join(ctx.tool_call_metadata['granted_capabilities'])

    ui = ScriptedUI([True])
    controller = ApprovalController(ui=ui)

    told = told_by(guarded(fetch, controller, default='none'), controller, [call('fetch', '1')])

    assert dict(facts(ui.requests[0]))['worker'] == 'crawler'
    assert told['1'] == ('net', 'success')


def test_policy_may_grant_capabilities_to_an_isolation_profile_without_asking():
    from tool_approval import ApprovalPolicy

    agent = Agent(scripted([call('fetch', '1', profile='jail'), call('fetch', '2', profile='none')], 'done'))

    @agent.tool
    def fetch(ctx: RunContext[Any], profile: str) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={'missing_capabilities': ['net'], 'isolation_profile': profile})
        return 'fetched'

    ui = ScriptedUI(['n'])
    controller = ApprovalController(ui=ui, policy=ApprovalPolicy(auto_grant={'jail': ['net']}))
    told = told_in(agent, controller)

    ui.assert_done()
    assert [outcome for _, outcome in told.values()] == ['success', 'denied']


def test_a_nested_agent_asks_with_its_lineage_and_does_not_use_its_parents_approvals():
    helper, ran = deleting([call('delete', 'h1', path='a')], 'helped')
    boss = Agent(scripted([call('delete', '1', path='a')], [call('delegate', '2')], 'done'), name='boss')
    boss.tool_plain(name='delete', requires_approval=True)(lambda path, force=False: 'deleted')

    @boss.tool_plain
    async def delegate() -> str:
        return (await helper.run('help')).output

    ui = ScriptedUI(['s', 'n'])
    boss.run_sync('go', deferred_tool_handler=Approvals(ApprovalController(ui=ui), default='none'))

    ui.assert_done()
    assert ran == []
    [level] = ui.requests[1].lineage
    assert (level.agent_name, level.tool_name, level.tool_call_id) == ('boss', 'delegate', '2')
    assert ui.requests[1].metadata['caller'] == 'janitor'


def test_a_nested_agent_uses_its_parents_approvals_where_it_was_told_to():
    helper, ran = deleting([call('delete', 'h1', path='a')], 'helped')
    boss, _ = deleting([call('delete', '1', path='a')], [call('delegate', '2')], 'done')

    @boss.tool_plain
    async def delegate() -> str:
        return (await helper.run('help')).output

    ui = ScriptedUI(['s'])
    controller = ApprovalController(ui=ui, memory=ApprovalMemory(shares_with_nested=True))
    boss.run_sync('go', deferred_tool_handler=Approvals(controller, default='none'))

    ui.assert_done()
    assert ran == ['a False']


@pytest.mark.parametrize('way', ['stop and resume', "the host's capability"])
def test_a_nested_call_with_the_id_of_its_parent_has_its_own_outcome_and_notice(way: str):
    log = Log()
    controller = ApprovalController(ui=ScriptedUI([True, changed(path='b')]), audit=log)
    tools: FunctionToolset[Any] = FunctionToolset()
    tools.add_function(lambda path: f'deleted {path}', name='delete')
    capabilities = [HandleDeferredToolCalls(Approvals(controller, default='none'))] if way != 'stop and resume' else []
    helper = pydantic_ai.Agent(
        scripted([call('delete', '1', path='a')], 'helped'),
        toolsets=[ApprovalToolset(tools, controller)],
        capabilities=capabilities,
    )
    boss = Agent(scripted([call('delegate', '1')], 'done'))

    @boss.tool_plain(requires_approval=True)
    async def delegate() -> str:
        if capabilities:
            result = await helper.run('help')
        else:
            result = await run_with_approval(helper, 'help', controller=controller)
        return str(returns(result.all_messages())['1'])

    result = boss.run_sync('go', deferred_tool_handler=Approvals(controller, default='none'))

    assert 'which ran with: {"path":"b"}' in returns(result.all_messages())['1'][0]
    assert [(each['event'], each['tool_name']) for each in log.entries] == [
        ('decision', 'delegate'),
        ('decision', 'delete'),
        ('outcome', 'delete'),
        ('outcome', 'delegate'),
    ]


def asking(question: Any = '?') -> Agent[Any, Any]:
    """An agent that makes an external call."""
    return Agent(scripted([call('ask', '1', question=question)], 'done'), toolsets=[external('ask')])


def fail(question: str) -> str:
    raise RuntimeError('SECRET')


def never(question: str) -> str:
    raise AssertionError


ASK_REQUIRED, ASK_BLOCKED = {'ask': {'approval': 'required'}}, {'ask': {'approval': 'blocked'}}
OUTSIDE = 'are invalid (the values do not match the schema of the tool: question (type)), so the call was not run.'


EXTERNAL_CALLS: dict[str, Any] = {
    'unasked': ('age?', str.upper, {}, [], ('AGE?', 'success')),
    'fails': ('?', fail, {}, [], ("The call of 'ask' failed (RuntimeError).", 'failed')),
    'no function': ('?', None, {}, [], ("No function is configured for external calls of 'ask'.", 'failed')),
    'outside of its schema': (['SECRET'], never, {}, [], (f"The arguments of 'ask' {OUTSIDE}", 'failed')),
    'blocked': ('?', never, ASK_BLOCKED, [], ("The tool 'ask' is blocked by policy.", 'failed')),
    'approved': ('age?', str.upper, ASK_REQUIRED, [True], ('AGE?', 'success')),
    'denied': ('?', never, ASK_REQUIRED, ['better not'], (denied_because('better not'), 'failed')),
    'changed': ('?', str.upper, ASK_REQUIRED, [changed(question='age?')], ('AGE?', 'success')),
    'changed and unfit': (
        '?',
        never,
        ASK_REQUIRED,
        [changed(question=1)],
        (f"The approver's arguments {OUTSIDE}", 'failed'),
    ),
}


@pytest.mark.parametrize(
    ('question', 'function', 'policy', 'answers', 'told'), EXTERNAL_CALLS.values(), ids=EXTERNAL_CALLS
)
def test_an_external_call_is_decided_and_carried_out(
    question: Any, function: Any, policy: Any, answers: list[Any], told: tuple[str, str]
):
    ui = ScriptedUI(answers)
    functions = {'ask': lambda question: function(question)} if function else {}

    given = told_in(asking(question), ApprovalController(ui=ui, policy=policy), external=functions)

    ui.assert_done()
    assert given == {'1': told}


def test_an_external_call_that_fails_is_written_down_as_failed():
    log = Log()

    told_in(asking(), ApprovalController(audit=log), external={'ask': fail})

    assert [(each['event'], each.get('outcome')) for each in log.unasked] == [('unasked', None), ('outcome', 'failed')]
    assert 'SECRET' not in str(log.entries)


def test_external_calls_are_carried_out_by_their_functions_sync_and_async():
    agent = Agent(
        scripted([call('ask', '1', question='age?'), call('look', '2', question='name?')], 'done'),
        toolsets=[external('ask', 'look')],
    )

    async def ask(question: str):
        return f'{question} 42'

    def look(ctx: RunContext[Any], question: str):
        return f'{question} {ctx.deps}'

    handler = Approvals(ApprovalController(), external={'ask': ask, 'look': look}, default='none')
    result = agent.run_sync('go', deps='ada', deferred_tool_handler=handler)

    assert returns(result.all_messages()) == {'1': ('age? 42', 'success'), '2': ('name? ada', 'success')}


def test_external_calls_start_only_after_every_decision_of_the_batch():
    agent, ran = deleting(
        [call('ask', '1', question='?'), call('delete', '2', path='a')], 'done', toolsets=[external('ask')]
    )
    order: list[str] = []

    def ask(question: str):
        order.append('asked')
        return 'answer'

    def decide(request: ApprovalRequest):
        order.append('decided')
        return True

    handler = Approvals(ApprovalController(ui=RecordingUI(decide)), external={'ask': ask}, default='none')
    agent.run_sync('go', deferred_tool_handler=handler)

    assert order == ['decided', 'asked']
    assert ran == ['a False']


def test_a_tool_that_defers_to_elsewhere_by_raising_is_carried_out_too():
    agent = Agent(scripted([call('slow', '1', question='?')], 'done'))

    @agent.tool_plain
    def slow(question: str) -> str:
        raise CallDeferred

    result = agent.run_sync(
        'go',
        deferred_tool_handler=Approvals(
            ApprovalController(), external={'slow': lambda question: 'fast'}, default='none'
        ),
    )

    assert returns(result.all_messages())['1'] == ('fast', 'success')


def test_handler_decides_through_the_capability_of_the_host():
    import pydantic_ai

    ui = ScriptedUI([True, 'no'])
    handler = Approvals(ApprovalController(ui=ui), default='none')
    agent = pydantic_ai.Agent(
        scripted([call('delete', '1'), call('delete', '2')], 'done'), capabilities=[HandleDeferredToolCalls(handler)]
    )
    agent.tool_plain(name='delete', requires_approval=True)(lambda: 'deleted')

    result = agent.run_sync('go')

    ui.assert_done()
    assert returns(result.all_messages()) == {'1': ('deleted', 'success'), '2': (denied_because('no'), 'denied')}


def test_handler_decides_while_a_run_streams():
    agent, ran = deleting()
    handler = Approvals(ApprovalController(ui=approve_all()), default='none')

    async def main():
        async with agent.run_stream('go', deferred_tool_handler=handler) as stream:
            return await stream.get_output()

    assert asyncio.run(main()) == 'done'
    assert ran == ['a False']


def test_cancelling_the_run_cancels_the_question_and_runs_nothing():
    agent, ran = deleting()

    async def main():
        asked, gone = asyncio.Event(), asyncio.Event()

        class Waiting:
            async def choose(self, request: Any, *, mode: Any):
                asked.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    gone.set()
                raise AssertionError

        handler = Approvals(ApprovalController(ui=Waiting()), default='none')
        run = asyncio.create_task(agent.run('go', deferred_tool_handler=handler))
        await asked.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert gone.is_set()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())

    assert ran == []


def test_arguments_that_cannot_be_read_deny_the_call():
    from tool_approval.integrations.pydantic_ai import build_approval_requests

    requests = DeferredToolRequests(
        approvals=[
            ToolCallPart('delete', '{"path": "a", "path": "b"}', tool_call_id='1'),
            ToolCallPart('delete', 'no json', tool_call_id='2'),
            ToolCallPart('delete', '[1]', tool_call_id='3'),
            ToolCallPart('delete', '{"n": NaN}', tool_call_id='4'),
            ToolCallPart('delete', None, tool_call_id='5'),
        ]
    )

    async def main():
        controller = ApprovalController('approve_all')
        return await controller.request_approvals(build_approval_requests(requests))

    decisions = asyncio.run(main())

    assert [decision.approved for decision in decisions] == [False, False, False, False, True]
    assert decisions[0].note == (
        "The arguments of 'delete' are invalid (an object has a duplicate key), so the call was denied."
    )


@pytest.mark.parametrize('question', ['age?', 1])
def test_external_call_with_changed_arguments_has_an_outcome_in_the_log(tmp_path: Any, question: Any):
    log = tmp_path / 'audit.jsonl'
    ui, sink = RecordingUI(changed(question=question)), JsonlAuditSink(log, key=b'k' * 32)

    told_in(
        asking(),
        ApprovalController(ui=ui, policy=ASK_REQUIRED, audit=sink),
        external={'ask': lambda question: question},
    )

    found = verify(log, key=b'k' * 32)
    assert found.is_intact
    assert (found.head.lines, found.unfinished) == (3, ())


def test_arguments_that_a_validator_rejects_after_the_question_are_judged_as_given():
    """The model gives text, as providers do."""
    seen: list[Any] = []

    class Rejecting(AbstractCapability[Any]):
        async def after_tool_validate(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
            if ctx.tool_call_approved:
                raise ModelRetry('Not this one.')
            return args

    def delete(path: str) -> None:
        seen.append(path)

    ui = RecordingUI(True)
    model = scripted([ToolCallPart('delete', '{"path": "a"}', tool_call_id='1')], 'done')
    agent = Agent(model, tools=[Tool(delete, requires_approval=True)], capabilities=[Rejecting()])

    agent.run_sync('go', deferred_tool_handler=Approvals(ApprovalController(ui=ui), default='none'))

    assert [dict(request.args) for request in ui.requests] == [{'path': 'a'}]
    assert seen == []
