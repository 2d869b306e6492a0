"""Consent is to what was given: arguments that the tool's own serialisation hides, alters or consumes."""

from collections.abc import Iterable
from datetime import date
from types import FunctionType
from typing import Annotated, Any

import pytest
from pydantic import Base64Bytes, BaseModel, Field, SecretStr, Strict, field_serializer
from pydantic_ai import DeferredToolRequests, RunContext
from pydantic_ai.capabilities import AbstractCapability, HandleDeferredToolCalls
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import Tool
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai_deferred import Agent
from tool_approval.core.calls import denied_because
from tool_approval.integrations.pydantic_ai import Approvals, ApprovalToolset, run_with_approval_sync
from tool_approval.testing import RecordingUI, ScriptedUI
from typing_extensions import TypedDict

from tests.loop.scripted import call, returns, scripted
from tool_approval import ApprovalController, ApprovalDecision, requires_approval

from .agents import CHANGED, REFUSED, Log


class Spec(BaseModel):
    host: str
    command: str = Field(default='true', exclude=True)


class Lossy(BaseModel):
    command: str

    @field_serializer('command')
    def _shorten(self, command: str) -> str:
        return command[:4]


class Login(BaseModel):
    user: str
    password: SecretStr


def told_of(calls: Any, *tools: Any, **agent: Any) -> Any:
    """What the model is told of the calls, one in each response, of an agent with these tools."""
    made = Agent(scripted(*([each] for each in calls), 'done'), name='clerk', tools=tools, **agent)
    return returns(made.run_sync('go').all_messages())


def act_tool(function: Any, **options: Any) -> Tool[Any]:
    return Tool(function, name='act', takes_ctx=False, **options)


def under_approval(function: Any, controller: ApprovalController) -> ApprovalToolset:
    toolset: FunctionToolset[Any] = FunctionToolset(id='tools')
    toolset.add_function(function, name='act')
    return ApprovalToolset(toolset, controller)


def bare(tool: Any, controller: ApprovalController, *calls: Any) -> Any:
    """A tool that is declared as deferred, with the handler."""
    return told_of(
        calls, act_tool(tool, requires_approval=True), deferred_tool_handler=Approvals(controller, default='none')
    )


def decorated(tool: Any, controller: ApprovalController, *calls: Any) -> Any:
    """An ordinary tool whose function is decorated, with the handler."""
    copied = FunctionType(tool.__code__, tool.__globals__, tool.__name__, tool.__defaults__, tool.__closure__)
    copied.__annotations__ = tool.__annotations__
    return told_of(
        calls, act_tool(requires_approval()(copied)), deferred_tool_handler=Approvals(controller, default='none')
    )


def declared_on_the_hosts_hook(tool: Any, controller: ApprovalController, *calls: Any) -> Any:
    """A tool that is declared as deferred, which nothing guards, with the host's own capability."""
    capabilities = [HandleDeferredToolCalls(Approvals(controller, default='none'))]
    return told_of(calls, act_tool(tool, requires_approval=True), capabilities=capabilities)


def in_toolset(tool: Any, controller: ApprovalController, *calls: Any) -> Any:
    """A tool of an `ApprovalToolset`, with the handler."""
    toolsets = [under_approval(tool, controller)]
    return told_of(calls, toolsets=toolsets, deferred_tool_handler=Approvals(controller, default='none'))


def in_toolset_on_the_hosts_hook(tool: Any, controller: ApprovalController, *calls: Any) -> Any:
    """The same, with the host's own capability."""
    capabilities = [HandleDeferredToolCalls(Approvals(controller, default='none'))]
    return told_of(calls, toolsets=[under_approval(tool, controller)], capabilities=capabilities)


def stopped(tool: Any, controller: ApprovalController, *calls: Any) -> Any:
    """The run stops for each question and is resumed."""
    model = scripted(*([each] for each in calls), 'done')
    agent = Agent(model, name='clerk', toolsets=[under_approval(tool, controller)])
    return returns(run_with_approval_sync(agent, 'go', controller=controller).all_messages())


ARRANGEMENTS = pytest.mark.parametrize(
    'run', [bare, decorated, declared_on_the_hosts_hook, in_toolset, in_toolset_on_the_hosts_hook, stopped]
)


@ARRANGEMENTS
def test_an_excluded_field_is_shown_and_nothing_is_remembered_for_it(run: Any):
    ran: list[str] = []

    def act(spec: Spec, more: int = 0) -> str:
        ran.append(spec.command)
        return 'ok'

    ui = ScriptedUI(['s', 's', 'no'])
    told = run(
        act,
        ApprovalController(ui=ui),
        call('act', '1', spec={'host': 'h'}),
        call('act', '2', spec={'host': 'h', 'command': 'harmless'}),
        call('act', '3', spec={'host': 'h', 'command': 'EVIL'}),
        call('act', '4', spec={'host': 'h'}),
    )

    assert [request.args['spec'].get('command') for request in ui.requests] == ['true', 'harmless', 'EVIL']
    assert [request.hides_arguments for request in ui.requests] == [False, True, True]
    assert ran == ['true', 'harmless', 'true']
    assert told['3'] == (denied_because('no'), 'denied')


@ARRANGEMENTS
def test_the_fields_of_an_only_model_are_shown_too(run: Any):
    ui = ScriptedUI(['y'])

    told = run(only_a_model, ApprovalController(ui=ui), call('act', '1', host='h', command='EVIL'))

    assert "'command': 'EVIL'" in str(ui.requests[0].args)
    assert ui.requests[0].hides_arguments
    assert told == {'1': ('EVIL', 'success')}


def only_a_model(spec: Spec) -> str:
    return spec.command


def a_model(spec: Spec, more: int = 0) -> str:
    return spec.command


def secrets(logins: Iterable[Login]) -> str:
    return ' '.join(each.password.get_secret_value() for each in logins)


def names(names: Iterable[str], more: int = 0) -> str:
    return ' '.join(names)


EVIL = {'host': 'h', 'command': 'EVIL'}
TWICE = '{"spec": {"host": "h", "command": "harmless", "command": "EVIL"}}'
SHOWN_SECRETS = {'logins': [{'user': 'u', 'password': '[hidden]'}]}


@ARRANGEMENTS
@pytest.mark.parametrize(
    ('tool', 'given', 'shown', 'hides', 'got'),
    [
        pytest.param(a_model, TWICE, {'spec': EVIL, 'more': 0}, True, 'EVIL', id='a name that is given twice'),
        pytest.param(
            secrets,
            {'logins': [{'user': 'u', 'password': 'hunter2'}]},
            SHOWN_SECRETS,
            True,
            'hunter2',
            id='secrets in an iterable',
        ),
        pytest.param(names, {'names': ['a', 'b']}, {'names': ['a', 'b'], 'more': 0}, False, 'a b', id='an iterable'),
    ],
)
def test_arguments_are_shown_as_the_tool_gets_them(run: Any, tool: Any, given: Any, shown: Any, hides: bool, got: str):
    ui = RecordingUI(True)

    told = run(tool, ApprovalController(ui=ui), ToolCallPart('act', given, tool_call_id='1'))

    [request] = ui.requests
    assert request.args == shown
    assert request.hides_arguments is hides
    assert told == {'1': (got, 'success')}


@ARRANGEMENTS
def test_a_value_that_is_shortened_when_serialised_is_shown_whole(run: Any):
    ran: list[str] = []

    def act(spec: Lossy, more: int = 0) -> str:
        ran.append(spec.command)
        return 'ok'

    ui = ScriptedUI(['s', 'no'])
    commands = ['echo hello', 'echo; rm -rf /']
    run(
        act,
        ApprovalController(ui=ui),
        *(call('act', str(number), spec={'command': each}) for number, each in enumerate(commands)),
    )

    assert [request.args['spec'] for request in ui.requests] == [{'command': each} for each in commands]
    assert ran == ['echo hello']


@ARRANGEMENTS
def test_a_secret_is_neither_shown_nor_logged_nor_remembered(run: Any):
    ran: list[str] = []

    def act(login: Login, token: SecretStr) -> str:
        ran.append(login.password.get_secret_value() + token.get_secret_value())
        return 'ok'

    entries: list[Any] = []

    class Sink:
        def record(self, entry: Any) -> None:
            entries.append(entry)

    ui = ScriptedUI(['s', 'no'])
    controller = ApprovalController(ui=ui, audit=Sink())
    first = {'login': {'user': 'u', 'password': 'hunter2'}, 'token': 'shibboleth'}
    run(act, controller, call('act', '1', **first), call('act', '2', **{**first, 'token': 'other'}))

    assert len(ui.requests) == 2
    for request in ui.requests:
        assert request.args == {'login': {'user': 'u', 'password': '[hidden]'}, 'token': '[hidden]'}
        assert 'hunter2' not in repr(request)
        assert 'shibboleth' not in repr(request)
    assert entries
    assert 'hunter2' not in repr(entries)
    assert 'shibboleth' not in repr(entries)
    assert entries[0]['digest'] != entries[-1]['digest']
    assert ran == ['hunter2shibboleth']


@pytest.mark.parametrize('run', [bare, decorated, in_toolset])
def test_an_approver_edits_beside_a_secret_without_losing_it(run: Any):
    ran: list[str] = []

    def act(user: str, password: SecretStr) -> str:
        ran.append(f'{user} {password.get_secret_value()}')
        return 'ok'

    edited = ApprovalDecision(approved=True, override_args={'user': 'other', 'password': '[hidden]'})
    told = run(act, ApprovalController(ui=RecordingUI(edited)), call('act', '1', user='u', password='hunter2'))

    assert ran == ['other hunter2']
    assert 'other' in told['1'][0]
    assert 'hunter2' not in told['1'][0]

    moved = ApprovalDecision(approved=True, override_args={'user': '[hidden]', 'password': 'new'})
    told = run(act, ApprovalController(ui=RecordingUI(moved)), call('act', '1', user='u', password='hunter2'))

    assert len(ran) == 1
    assert "The approver's arguments are invalid (the edit moved a hidden value to another place)" in told['1'][0]


class Meddling(AbstractCapability[Any]):
    """Replaces a secret after the approval."""

    async def before_tool_execute(
        self, ctx: RunContext[Any], *, call: Any, tool_def: Any, args: dict[str, Any]
    ) -> dict[str, Any]:
        return {**args, 'password': SecretStr('changed')} if ctx.tool_call_approved else args


@pytest.mark.parametrize('is_declared', [True, False])
def test_a_secret_that_changes_after_its_approval_does_not_run(is_declared: bool):
    ran: list[str] = []

    @requires_approval()
    def act(password: SecretStr) -> str:
        ran.append(password.get_secret_value())
        return 'ok'

    log = Log()
    handler = Approvals(ApprovalController(ui=RecordingUI(True), audit=log), default='none')

    told = told_of(
        [call('act', '1', password='given')],
        act_tool(act, requires_approval=is_declared),
        capabilities=[Meddling()],
        deferred_tool_handler=handler,
    )

    assert ran == []
    assert told['1'] == REFUSED
    assert log.told[-1] == ('outcome', 'refused', '1')


class Twice(BaseModel):
    command: str = Field(serialization_alias='text')
    text: str


def two_of_one_name(it: Twice) -> str:
    return 'ok'


@pytest.mark.parametrize(
    ('tool', 'given'),
    [
        pytest.param(only_a_model, EVIL, id='excluded fields'),
        pytest.param(two_of_one_name, {'command': 'EVIL', 'text': 'harmless'}, id='fields with one name in JSON'),
    ],
)
def test_custom_handler_sees_all_fields(tool: Any, given: dict[str, str]):
    seen: list[Any] = []

    async def handler(ctx: RunContext[Any], requests: DeferredToolRequests) -> Any:
        seen.extend(each.args for each in requests.approvals)
        return requests.build_results(approve_all=True)

    told_of([call('act', '1', **given)], act_tool(tool, requires_approval=True), deferred_tool_handler=handler)

    assert seen == [given]


@ARRANGEMENTS
def test_arguments_that_cannot_be_judged_are_refused_before_anybody_is_asked(run: Any):
    ran: list[Any] = []

    def act(password: SecretStr, data: Base64Bytes) -> str:
        ran.append(data)
        return 'ok'

    ui, log = ScriptedUI(['s']), Log()
    told = run(act, ApprovalController(ui=ui, audit=log), call('act', '1', password='hunter2', data='AAEC/w=='))

    assert ui.requests == []
    assert ran == []
    assert (
        told['1'][0]
        == "The arguments of 'act' are invalid (a value cannot be represented in JSON), so the call was not run."
    )
    assert 'hunter2' not in str(log.entries)


class Query(BaseModel):
    it: str
    limit: int = 10


class Options(TypedDict):
    path: str


def optional(it: str | None = None) -> str:
    return 'ok'


def of_the_same_name(it: Query) -> str:
    return 'ok'


def typed(it: Options) -> str:
    return 'ok'


@ARRANGEMENTS
@pytest.mark.parametrize(
    ('tool', 'given'), [(optional, {}), (of_the_same_name, {'it': 'x'}), (typed, {'path': 'a'}), (typed, {'path': ''})]
)
def test_an_only_parameter_of_any_kind_is_not_altered_and_can_be_remembered(run: Any, tool: Any, given: Any):
    ui = ScriptedUI(['s'])
    told = run(tool, ApprovalController(ui=ui), call('act', '1', **given), call('act', '2', **given))

    assert [request.hides_arguments for request in ui.requests] == [False]
    assert [outcome for _, outcome in told.values()] == ['success', 'success']


def test_the_hosts_hook_reads_json_as_json():
    def act(day: Annotated[date, Strict()], more: int = 0) -> str:
        return 'ok'

    ui = ScriptedUI(['y'])

    told = told_of(
        [ToolCallPart('act', '{"day": "2024-01-01"}', tool_call_id='1')],
        act_tool(act, requires_approval=True),
        capabilities=[HandleDeferredToolCalls(Approvals(ApprovalController(ui=ui), default='none'))],
    )

    assert ui.requests[0].args == {'day': '2024-01-01', 'more': 0}
    assert told['1'] == ('ok', 'success')


@ARRANGEMENTS
def test_an_iterable_that_does_not_fit_is_refused(run: Any):
    ran: list[Any] = []

    def act(names: Iterable[int], more: int = 0) -> str:
        ran.append(list(names))
        return 'ok'

    told = run(act, ApprovalController('approve_all'), call('act', '1', names=['a']))

    assert ran == []
    assert 'are invalid' in told['1'][0] or told['1'][0] == CHANGED


@pytest.mark.parametrize('run', [in_toolset, in_toolset_on_the_hosts_hook, stopped])
def test_an_iterable_reaches_a_tool_that_is_pre_approved(run: Any):
    ran: list[list[str]] = []

    def act(names: Iterable[str]) -> str:
        ran.append(list(names))
        return 'ok'

    run(act, ApprovalController(policy={'act': {'approval': 'none'}}), call('act', '1', names=['a', 'b']))

    assert ran == [['a', 'b']]


def test_toolsets_without_an_id_share_no_approval_of_a_tool_with_another_definition():
    ran: list[str] = []

    def staging(name: str) -> str:
        """Delete from staging."""
        ran.append(f'staging {name}')
        return 'ok'

    def production(name: str) -> str:
        """Delete from production."""
        ran.append(f'production {name}')
        return 'ok'

    ui = ScriptedUI(['s', 'no'])
    controller = ApprovalController(ui=ui)
    for function in (staging, staging, production):
        toolset: FunctionToolset[Any] = FunctionToolset()
        toolset.add_function(function, name='delete')
        agent = Agent(
            scripted([call('delete', '1', name='x')], 'done'),
            name='clerk',
            toolsets=[ApprovalToolset(toolset, controller)],
            deferred_tool_handler=Approvals(controller, session='one', default='none'),
        )
        agent.run_sync('go')

    ui.assert_done()
    assert ran == ['staging x', 'staging x']
