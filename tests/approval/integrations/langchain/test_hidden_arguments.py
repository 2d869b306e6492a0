"""Consent is to what was given, in LangChain: hidden arguments, and those that the host is meant to fill in."""

import asyncio
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.tools import InjectedState
from langchain_core.tools import InjectedToolArg, tool
from pydantic import BaseModel, Field, SecretStr
from tool_approval.integrations.langchain import ApprovalToolWrapper
from tool_approval.testing import RecordingUI, ScriptedUI

from tests.approval.parts import ListSink
from tool_approval import ApprovalController, ApprovalDecision

from .scripted import GO, call, results, scripted


class Spec(BaseModel):
    host: str
    command: str = Field(default='true', exclude=True)


def test_an_excluded_field_is_shown_and_nothing_is_remembered_for_it(run: Any):
    ran: list[str] = []

    @tool
    def act(spec: Spec) -> str:
        """Act."""
        ran.append(spec.command)
        return 'ok'

    ui = ScriptedUI(['s', 's', 'no'])
    specs = [{'host': 'h'}, {'host': 'h', 'command': 'harmless'}, {'host': 'h', 'command': 'EVIL'}, {'host': 'h'}]
    model = scripted(*([call('act', str(number), spec=spec)] for number, spec in enumerate(specs)), 'done')

    run(model, [act], ApprovalController(ui=ui), caller='clerk')

    assert [request.args['spec']['command'] for request in ui.requests] == ['true', 'harmless', 'EVIL']
    assert [request.hides_arguments for request in ui.requests] == [False, True, True]
    assert ran == ['true', 'harmless', 'true']


def test_a_secret_is_neither_shown_nor_logged_and_survives_an_edit(run: Any):
    ran: list[str] = []

    @tool
    def sign_in(user: str, password: SecretStr) -> str:
        """Sign in."""
        ran.append(f'{user} {password.get_secret_value()}')
        return 'ok'

    sink = ListSink()
    edited = ApprovalDecision(approved=True, override_args={'user': 'other', 'password': '[hidden]'})
    ui = RecordingUI(edited)

    run(
        scripted([call('sign_in', '1', user='u', password='hunter2')], 'done'),
        [sign_in],
        ApprovalController(ui=ui, audit=sink),
    )

    assert ui.requests[0].args == {'user': 'u', 'password': '[hidden]'}
    assert 'hunter2' not in repr(ui.requests)
    assert 'hunter2' not in repr(sink.entries)
    assert ran == ['other hunter2']


class Key(BaseModel):
    name: str
    value: SecretStr


class Keys(BaseModel):
    token: SecretStr = Field(default_factory=lambda: SecretStr('hunter2'))
    more: list[Key] = Field(default_factory=lambda: [Key(name='n', value=SecretStr('hunter3'))])
    host: str


def test_secrets_that_are_made_as_defaults_reach_the_tool(run: Any):
    ran: list[str] = []

    @tool(args_schema=Keys)
    def act(token: SecretStr, more: list[Key], host: str) -> str:
        """Act."""
        ran.extend([token.get_secret_value(), more[0].value.get_secret_value(), host])
        return 'ok'

    ui = ScriptedUI(['y'])
    run(scripted([call('act', '1', host='h')], 'done'), [act], ApprovalController(ui=ui))

    assert ui.requests[0].args == {'token': '[hidden]', 'more': [{'name': 'n', 'value': '[hidden]'}], 'host': 'h'}
    assert ran == ['hunter2', 'hunter3', 'h']


def test_a_secret_that_is_made_anew_each_time_is_made_once(run: Any):
    made: list[str] = []
    ran: list[str] = []

    def make() -> SecretStr:
        made.append(f'hunter{len(made)}')
        return SecretStr(made[-1])

    class Ticket(BaseModel):
        token: SecretStr = Field(default_factory=make)
        host: str

    @tool(args_schema=Ticket)
    def act(token: SecretStr, host: str) -> str:
        """Act."""
        ran.append(token.get_secret_value())
        return 'ok'

    ui = ScriptedUI(['y'])
    run(scripted([call('act', '1', host='h')], 'done'), [act], ApprovalController(ui=ui))

    assert ui.requests[0].args == {'token': '[hidden]', 'host': 'h'}
    assert ran == [made[0]]


def transfer_tool(ran: list[Any]) -> Any:
    @tool
    def transfer(amount: int, account: Annotated[str, InjectedToolArg]) -> str:
        """Transfer money."""
        ran.append((amount, account))
        return 'ok'

    return transfer


def invoked(wrapper: ApprovalToolWrapper, given: Any, is_async: bool, config: Any = None) -> Any:
    return asyncio.run(wrapper.ainvoke(given, config)) if is_async else wrapper.invoke(given, config)


@pytest.mark.parametrize('is_async', [False, True])
def test_a_models_call_cannot_inject_arguments_unseen(is_async: bool):
    ran: list[Any] = []
    ui = ScriptedUI(['s', 'no'])
    wrapper = ApprovalToolWrapper(transfer_tool(ran), ApprovalController(ui=ui), caller='clerk')
    config = {'configurable': {'thread_id': 'one'}}

    for number, account in enumerate(['mine', 'EVIL', 'mine']):
        invoked(wrapper, call('transfer', str(number), amount=1, account=account), is_async, config)

    assert [request.args for request in ui.requests] == [
        {'amount': 1, 'account': 'mine'},
        {'amount': 1, 'account': 'EVIL'},
    ]
    assert ran == [(1, 'mine'), (1, 'mine')]


@pytest.mark.parametrize('is_async', [False, True])
def test_an_approver_changes_or_removes_what_a_model_injected(is_async: bool):
    ran: list[Any] = []
    ui = ScriptedUI(
        [
            ApprovalDecision(approved=True, override_args={'amount': 2, 'account': 'other'}),
            ApprovalDecision(approved=True, override_args={'amount': 2}),
        ]
    )
    wrapper = ApprovalToolWrapper(transfer_tool(ran), ApprovalController(ui=ui))

    invoked(wrapper, call('transfer', '1', amount=1, account='EVIL'), is_async)
    with pytest.raises(Exception, match='account'):
        invoked(wrapper, call('transfer', '2', amount=1, account='EVIL'), is_async)

    assert ran == [(2, 'other')]


def test_code_may_inject_arguments():
    ran: list[Any] = []
    ui = RecordingUI(True)
    wrapper = ApprovalToolWrapper(transfer_tool(ran), ApprovalController(ui=ui))

    wrapper.invoke({'amount': 1, 'account': 'mine'})

    assert ui.requests[0].args == {'amount': 1}
    assert ran == [(1, 'mine')]


def test_the_state_that_a_graph_injects_is_not_asked_about():
    seen: list[int] = []

    @tool
    def count(path: str, state: Annotated[dict[str, Any], InjectedState]) -> str:
        """Count."""
        seen.append(len(state['messages']))
        return 'ok'

    ui = RecordingUI(True)
    wrapper = ApprovalToolWrapper(count, ApprovalController(ui=ui))
    model = scripted([call('count', '1', path='a', state={'messages': []})], 'done')
    messages = create_agent(model, [wrapper]).invoke(GO)['messages']

    assert ui.requests[0].args == {'path': 'a'}
    assert results(messages) == [('count', 'ok', 'success')]
    assert seen == [2]
