"""What is shown is what LangChain passes to the function, and an edit changes exactly the edited leaves of it."""

from __future__ import annotations

import functools
import itertools
from typing import Annotated, Any

import pytest
from langchain.tools import InjectedState
from langchain_core.tools import InjectedToolArg, StructuredTool, tool
from pydantic import AliasPath, BaseModel, Field, create_model, model_serializer, model_validator
from tool_approval.core.arguments import HIDDEN
from tool_approval.integrations.langchain import ApprovalToolWrapper
from tool_approval.integrations.langchain.calls import edited_arguments, read_arguments
from tool_approval.testing import RecordingUI, ScriptedUI

from tests.approval.argument_kinds import ALIASES, VALUES, cents, model_of
from tests.approval.parts import ListSink
from tests.tables import table
from tool_approval import ApprovalController

from .scripted import call, change, scripted

INJECTED: dict[str, dict[str, Any]] = {
    'nothing injected': {},
    'optional field injected': {'trace': (Annotated[str, InjectedToolArg], '')},
    'required field injected': {'trace': (Annotated[str, InjectedToolArg], ...)},
}
CASES = [
    *itertools.product(['nothing injected'], ALIASES, VALUES),
    *itertools.product(INJECTED, ['alias', 'AliasPath into a list'], VALUES),
]


class Recorder:
    """A tool that keeps what LangChain passes to its function."""

    def __init__(self, model: type[BaseModel]):
        self.received: dict[str, Any] = {}
        self.tool = StructuredTool(name='act', description='Act.', args_schema=model, func=self._act)

    def _act(self, **received: Any) -> str:
        self.received = received
        return 'ok'

    def run(self, given: dict[str, Any]) -> dict[str, Any]:
        """Run the tool as the host does, and return what its function got."""
        self.tool.invoke({**given, 'trace': 't'} if 'trace' in self.tool.args_schema.model_fields else given)
        return {name: value for name, value in self.received.items() if name != 'trace'}


@functools.cache
def recorder_for(injected: str, alias: str, value: str) -> Recorder:
    model = model_of(ALIASES[alias], VALUES[value])
    return Recorder(create_model('Arguments', __base__=model, **INJECTED[injected]) if INJECTED[injected] else model)


def given_for(alias: str, value: str) -> dict[str, Any]:
    memo = 'MEMO' if alias == 'AliasGenerator' else 'memo'
    return {**ALIASES[alias].given(VALUES[value].given), memo: 'old'}


@table(('injected', 'alias', 'value'), CASES)
def test_what_is_shown_is_what_the_function_gets(injected: str, alias: str, value: str):
    recorder = recorder_for(injected, alias, value)

    arguments = read_arguments(recorder.tool, given_for(alias, value))

    assert arguments.read.shown['value'] == VALUES[value].shown
    assert arguments.read.shown['memo'] == 'old'
    assert recorder.run(arguments.given) == arguments.values


@table(('injected', 'alias', 'value'), CASES)
def test_an_edit_of_another_argument_leaves_the_value_as_it_is(injected: str, alias: str, value: str):
    recorder = recorder_for(injected, alias, value)
    before = read_arguments(recorder.tool, given_for(alias, value))

    given = edited_arguments(recorder.tool, {**before.read.shown, 'memo': 'new'}, before)

    received = recorder.run(given)
    assert received == {**before.values, 'memo': 'new'}
    assert type(received['value']) is type(before.values['value'])


@table(('injected', 'alias', 'value'), CASES)
def test_an_edited_value_is_what_the_function_gets_or_the_edit_is_refused(injected: str, alias: str, value: str):
    recorder, kind = recorder_for(injected, alias, value), VALUES[value]
    before = read_arguments(recorder.tool, given_for(alias, value))
    changed = {**before.read.shown, 'value': kind.new}

    if not kind.takes_effect:
        with pytest.raises(ValueError):
            edited_arguments(recorder.tool, changed, before)
        return
    given = edited_arguments(recorder.tool, changed, before)

    after = read_arguments(recorder.tool, given)
    assert recorder.run(given) == after.values
    assert after.read.shown['memo'] == 'old'
    assert after.read.shown['value'] == (HIDDEN if kind.shown == HIDDEN else kind.after)


class Transfer(BaseModel):
    account: str = Field(validation_alias='iban')


class Mail(BaseModel):
    sender: str = Field('me', alias='from')
    text: str = Field(alias='body')
    trace: Annotated[str, InjectedToolArg] = ''


class Payment(BaseModel):
    t: Transfer
    memo: str = ''
    euros: cents = 0
    state: Annotated[Any, InjectedState] = None


def payment(ran: list[Any]) -> Any:
    @tool(args_schema=Payment)
    def pay(t: Transfer, memo: str, euros: int, state: Any) -> str:
        """Pay."""
        ran.append((t.account, memo, euros))
        return 'paid'

    return pay


PAY = [call('pay', '1', t={'iban': 'EVIL'}, memo='old', euros=10)]
SHOWN = {'t': {'account': 'EVIL'}, 'memo': 'old', 'euros': 1000}


@pytest.mark.parametrize('arrangement', ['middleware', 'wrapper'])
@pytest.mark.parametrize(
    ('edit', 'runs'),
    [
        pytest.param(SHOWN, ('EVIL', 'old', 1000), id='nothing'),
        pytest.param({**SHOWN, 'memo': 'new'}, ('EVIL', 'new', 1000), id='beside a validator that is not idempotent'),
        pytest.param({**SHOWN, 't': {'account': 'SAFE'}}, ('SAFE', 'old', 1000), id='behind an alias'),
        pytest.param({**SHOWN, 'euros': 2000}, None, id='of a value that validation changes'),
        pytest.param({**SHOWN, 't': {'account': 'EVIL', 'iban': 'SAFE'}}, None, id='of a name that is not shown'),
    ],
)
def test_an_edit_runs_as_the_approver_wrote_it_or_not_at_all(run: Any, arrangement: str, edit: Any, runs: Any):
    ran: list[Any] = []
    ui, audit = RecordingUI(change(**edit)), ListSink()
    controller = ApprovalController(ui=ui, audit=audit)
    model = scripted(PAY, 'done')
    if arrangement == 'middleware':
        told = run(model, [payment(ran)], controller)
    else:
        wrapper = ApprovalToolWrapper(payment(ran), controller)
        told = run(model, [wrapper], ApprovalController('approve_all'))

    assert ui.requests[0].args == SHOWN
    assert ran == ([] if runs is None else [runs])
    assert audit.outcomes() == ['refused' if runs is None else 'executed']
    assert told[0][1].startswith('paid' if runs else "The approver's arguments are invalid (the edit ")


def test_the_notice_names_the_new_value_once(run: Any):
    ui = RecordingUI(change(**{**SHOWN, 't': {'account': 'SAFE'}}))

    [(_, content, _)] = run(scripted(PAY, 'done'), [payment([])], ApprovalController(ui=ui))

    assert 'EVIL' not in content
    assert content.count('SAFE') == 1


@pytest.mark.parametrize('arrangement', ['middleware', 'wrapper'])
def test_aliases_are_read_beside_an_injected_field(run: Any, arrangement: str):
    ran: list[Any] = []

    @tool(args_schema=Mail)
    def send(sender: str, text: str, trace: str) -> str:
        """Send."""
        ran.append((sender, text, trace))
        return 'sent'

    ui = ScriptedUI([change(sender='EVIL', text='new')])
    controller = ApprovalController(ui=ui)
    made = scripted([call('send', '1', **{'from': 'EVIL', 'body': 'old'})], 'done')
    if arrangement == 'middleware':
        told = run(made, [send], controller)
    else:
        told = run(made, [ApprovalToolWrapper(send, controller)], ApprovalController('approve_all'))

    assert ui.requests[0].args == {'sender': 'EVIL', 'text': 'old'}
    assert ran == [('EVIL', 'new', '')]
    assert told[0][2] == 'success'


class Traced(BaseModel):
    path: str
    trace: Annotated[str, InjectedToolArg] = Field('mine', alias='t')


def traced(ran: list[Any]) -> Any:
    @tool(args_schema=Traced)
    def read(path: str, trace: str) -> str:
        """Read."""
        ran.append((path, trace))
        return 'ok'

    return read


def test_an_injected_parameter_cannot_be_sent_by_its_alias(run: Any):
    ran: list[Any] = []
    ui = RecordingUI(True)

    run(scripted([call('read', '1', path='a', t='EVIL')], 'done'), [traced(ran)], ApprovalController(ui=ui))

    assert [request.args for request in ui.requests] == [{'path': 'a'}]
    assert ran == [('a', 'mine')]


def test_an_injected_parameter_that_is_sent_by_its_alias_to_a_wrapped_tool_is_shown():
    ran: list[Any] = []
    ui = RecordingUI(True)

    ApprovalToolWrapper(traced(ran), ApprovalController(ui=ui)).invoke(call('read', '1', path='a', t='EVIL'))

    assert [request.args for request in ui.requests] == [{'path': 'a', 't': 'EVIL'}]
    assert ran == [('a', 'EVIL')]


def test_validators_of_the_whole_model_run_beside_an_injected_field():
    class Range(BaseModel):
        begin: int
        end: int
        runtime: Annotated[Any, InjectedToolArg]

        @model_validator(mode='after')
        def _is_ordered(self) -> Range:
            if self.begin > self.end:
                raise ValueError('begin is after end')
            return self

    @tool(args_schema=Range)
    def act(begin: int, end: int, runtime: Any) -> str:
        """Act."""
        return 'ok'

    assert read_arguments(act, {'begin': 1, 'end': 2}).read.shown == {'begin': 1, 'end': 2}
    with pytest.raises(ValueError, match='begin is after end'):
        read_arguments(act, {'begin': 2, 'end': 1})


def test_a_field_that_the_host_does_not_pass_on_is_not_shown():
    class Excluding(BaseModel):
        host: str
        command: str = Field('true', exclude=True)

    recorder = Recorder(Excluding)
    arguments = read_arguments(recorder.tool, {'host': 'h', 'command': 'EVIL'})

    assert arguments.read.shown == {'host': 'h'} == recorder.run(arguments.given)


def test_a_schema_whose_own_serialiser_fails_is_refused():
    class Broken(BaseModel):
        path: str

        @model_serializer
        def _dump(self) -> dict[str, Any]:
            raise RuntimeError('secret')

    with pytest.raises(ValueError, match=r'could not be passed on \(PydanticSerializationError\)'):
        read_arguments(Recorder(Broken).tool, {'path': 'a'})


def test_a_default_that_is_made_anew_is_shown_as_it_runs_or_refused():
    numbers = itertools.count()

    class Fresh(BaseModel):
        n: int = Field(default_factory=lambda: next(numbers), alias='no')

    class Changing(BaseModel):
        n: int = Field(default_factory=lambda: next(numbers), validation_alias=AliasPath('data', 0))

    class Steady(BaseModel):
        n: cents = Field(default_factory=lambda: 5)

    fresh, steady = Recorder(Fresh), Recorder(Steady)
    arguments = read_arguments(fresh.tool, {})
    assert fresh.run(arguments.given) == arguments.values
    assert read_arguments(steady.tool, {}).values == {'n': 5} == steady.run({})
    with pytest.raises(ValueError, match='a default is different each time'):
        read_arguments(Recorder(Changing).tool, {})
