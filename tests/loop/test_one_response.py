"""The deferred calls of one response: how they are answered, and how the handler receives them."""

import asyncio
from dataclasses import replace
from datetime import date
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, Field, SecretStr, ValidationError
from pydantic_ai import (
    ApprovalRequired,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    ModelRetry,
    RunContext,
    ToolApproved,
    ToolDenied,
    ToolOutput,
)
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset
from pydantic_ai_deferred import Agent, validated_args

from .scripted import Recorder, call, returns, scripted

EXTERNAL = ToolDefinition(name='elsewhere', parameters_json_schema={'type': 'object', 'properties': {}})


class Office(Agent[Any, Any]):
    """An agent with every kind of tool; `log` says what ran, in order."""

    log: list[str]


def office(*responses: Any, **keywords: Any) -> Office:
    agent = Office(
        scripted(*responses), toolsets=[ExternalToolset([EXTERNAL])], **{'deferred_tool_handler': None, **keywords}
    )
    agent.log = log = []

    @agent.tool_plain
    def read(path: str) -> str:
        log.append(f'read {path}')
        return f'content of {path}'

    @agent.tool_plain(requires_approval=True)
    def delete(path: str, force: bool = False) -> str:
        log.append(f'delete {path} {force}')
        return f'deleted {path}'

    @agent.tool
    def send(ctx: RunContext[Any], to: str) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={'reason': f'mail to {to}'})
        log.append(f'send {to}')
        return f'sent to {to}'

    @agent.tool_plain
    def ship(item: str) -> str:
        raise CallDeferred(metadata={'item': item})

    return agent


def ask(agent: Office, handler: Any, **keywords: Any) -> Any:
    return agent.run_sync('go', deferred_tool_handler=handler, **keywords)


def test_ordinary_tools_run_before_the_handler_is_asked():
    agent = office([call('delete', '1', path='a'), call('read', '2', path='b')], 'done')

    def handler(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        agent.log.append('asked')
        return requests.build_results(approve_all=True)

    ask(agent, handler)

    assert agent.log == ['read b', 'asked', 'delete a False']


def test_all_kinds_of_deferrals_of_a_response_come_in_one_question():
    handler = Recorder()
    agent = office(
        [
            call('elsewhere', '1'),
            call('delete', '2', path='a'),
            call('ship', '3', item='x'),
            call('send', '4', to='ada'),
        ],
        'done',
    )

    ask(agent, handler)

    [requests] = handler.asked
    assert [part.tool_name for part in requests.approvals] == ['delete', 'send']
    assert [part.tool_name for part in requests.calls] == ['elsewhere', 'ship']
    assert requests.metadata == {'3': {'item': 'x'}, '4': {'reason': 'mail to ada'}}


def test_each_list_is_in_the_order_of_the_response():
    handler = Recorder()
    response = [
        call('delete', '1', path='a'),
        call('send', '2', to='ada'),
        call('delete', '3', path='b'),
        call('elsewhere', '4'),
        call('ship', '5', item='x'),
        call('elsewhere', '6'),
    ]

    ask(office(response, 'done'), handler)

    assert handler.ids == [['1', '2', '3', '4', '5', '6']]


def test_the_handler_is_asked_once_for_each_response():
    handler = Recorder()
    agent = office(
        [call('delete', '1', path='a'), call('send', '2', to='ada')],
        [call('read', '3', path='a')],
        [call('delete', '4', path='b')],
        'done',
    )

    result = ask(agent, handler)

    assert result.output == 'done'
    assert handler.ids == [['1', '2'], ['4']]


def test_nothing_executes_before_the_handler_has_returned():
    agent = office([call('delete', '1', path='a'), call('send', '2', to='ada')], 'done')
    seen: list[str] = []

    async def handler(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        for _ in range(20):
            await asyncio.sleep(0)
        seen.extend(agent.log)
        return requests.build_results(approve_all=True)

    ask(agent, handler)

    assert seen == []
    assert agent.log == ['delete a False', 'send ada'] or agent.log == ['send ada', 'delete a False']


def test_approved_calls_run_concurrently():
    together = asyncio.Barrier(3)
    agent = Agent(scripted([call('wait', str(i)) for i in range(3)], 'done'), deferred_tool_handler=Recorder())

    @agent.tool_plain(requires_approval=True)
    async def wait() -> str:
        await asyncio.wait_for(together.wait(), timeout=5)
        return 'met'

    result = asyncio.run(agent.run('go'))

    assert returns(result.all_messages()) == {str(i): ('met', 'success') for i in range(3)}


def test_a_denied_tool_never_runs_and_the_model_reads_the_message_verbatim():
    message = 'Not on a Friday: "rm" — ask Ada.\n'
    agent = office([call('delete', '1', path='a'), call('delete', '2', path='b')], 'done')

    result = ask(agent, Recorder(**{'1': ToolDenied(message)}))

    assert result.output == 'done'
    assert agent.log == ['delete b False']
    assert returns(result.all_messages())['1'] == (message, 'denied')


@pytest.mark.parametrize(('short', 'long'), [(True, ToolApproved()), (False, ToolDenied())])
def test_true_and_false_are_short_for_approved_and_denied(short: bool, long: Any):
    results = [
        returns(ask(office([call('delete', '1', path='a')], 'done'), Recorder(**{'1': answer})).all_messages())
        for answer in (short, long)
    ]

    assert results[0] == results[1]


def test_override_args_are_what_executes():
    agent = office([call('delete', '1', path='a')], 'done')

    ask(agent, Recorder(**{'1': ToolApproved(override_args={'path': 'b', 'force': True})}))

    assert agent.log == ['delete b True']


def test_invalid_override_args_go_back_to_the_model_and_nothing_runs():
    agent = office([call('delete', '1', path='a')], 'done')

    result = ask(agent, Recorder(**{'1': ToolApproved(override_args={'path': 7})}))

    assert agent.log == []
    assert returns(result.all_messages())['1'][1] == 'retried'


def test_invalid_arguments_go_back_to_the_model_without_a_question():
    handler = Recorder()

    result = ask(office([call('delete', '1', path=7)], 'done'), handler)

    assert handler.asked == []
    assert returns(result.all_messages())['1'][1] == 'retried'


def test_external_results_become_tool_returns():
    agent = office([call('elsewhere', '1'), call('ship', '2', item='x')], 'done')

    result = ask(agent, Recorder(**{'1': {'a': 1}, '2': ModelRetry('out of stock')}))

    found = returns(result.all_messages())
    assert found['1'] == ({'a': 1}, 'success')
    assert found['2'][1] == 'retried'
    assert 'out of stock' in str(found['2'][0])


def test_an_external_failure_is_a_failure():
    exceptions = pytest.importorskip('pydantic_ai.exceptions')
    result = ask(office([call('elsewhere', '1')], 'done'), Recorder(**{'1': exceptions.ToolFailed('no connection')}))

    assert returns(result.all_messages())['1'] == ('no connection', 'failed')


class Item(BaseModel):
    name: str
    due: date = date(2026, 1, 2)


Cents = Annotated[int, AfterValidator(lambda euros: euros * 100)]


def test_the_requests_hold_the_arguments_as_the_model_gave_them():
    handler = Recorder()
    agent = Agent(scripted([call('add', '1', item={'name': 'x'}), call('erase', '2')], 'done'))
    agent.tool_plain(name='add', requires_approval=True)(add)
    agent.tool_plain(name='erase', requires_approval=True)(erase)

    ask(agent, handler)

    assert [part.args for part in handler.asked[0].approvals] == [{'item': {'name': 'x'}}, {}]


def add(item: Item, password: SecretStr | None = None, euros: Cents = 1) -> None: ...
def erase(path: str = 'a') -> None: ...


def test_validated_args_are_what_the_tool_gets_of_a_call_and_of_an_edit():
    executed: list[Any] = []
    shown: list[Any] = []
    agent = Agent(scripted([call('pay', '1', iban='DE1', password='s3cret', euros=10)], 'done'))

    @agent.tool_plain(requires_approval=True)
    def pay(
        password: SecretStr, account: Annotated[str, Field(validation_alias='iban')] = 'DEFAULT', euros: Cents = 1
    ) -> None:
        executed.append({'account': account, 'password': password, 'euros': euros})

    async def handler(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        [part] = requests.approvals
        edited = {**part.args_as_dict(), 'euros': 5}
        shown.append(await validated_args(ctx, part))
        shown.append(await validated_args(ctx, replace(part, args=edited)))
        with pytest.raises(ValidationError):
            await validated_args(ctx, replace(part, args={'euros': 'many'}))
        with pytest.raises(ValueError, match="no tool 'other'"):
            await validated_args(ctx, replace(part, tool_name='other'))
        return requests.build_results(approvals={'1': ToolApproved(override_args=edited)})

    ask(agent, handler)

    assert shown[0] == {'account': 'DE1', 'password': SecretStr('s3cret'), 'euros': 1000}
    assert executed == [shown[1]]
    assert executed[0]['euros'] == 500


def test_nothing_a_handler_does_to_its_snapshot_changes_what_executes():
    agent = office([call('delete', '1', path='a'), call('ship', '2', item='x'), call('send', '3', to='ada')], 'done')

    def handler(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        results = requests.build_results(approve_all=True, calls={'2': 'shipped'})
        for part in (*requests.approvals, *requests.calls):
            assert isinstance(part.args, dict)
            part.args.clear()
            part.args['path'] = part.args['to'] = 'evil'
            part.tool_name = 'read'
        requests.approvals.clear()
        requests.calls.clear()
        requests.metadata.clear()
        return results

    result = ask(agent, handler)

    assert sorted(agent.log) == ['delete a False', 'send ada']
    calls = [part for message in result.all_messages() for part in message.parts if part.part_kind == 'tool-call']
    assert [(part.tool_name, part.args) for part in calls] == [
        ('delete', {'path': 'a'}),
        ('ship', {'item': 'x'}),
        ('send', {'to': 'ada'}),
    ]


def test_nested_arguments_of_an_unvalidated_call_are_copied_too():
    shared = {'list': [{'deep': 'kept'}]}
    tool = ToolDefinition(name='elsewhere', parameters_json_schema={'type': 'object'})
    agent = Agent(scripted([call('elsewhere', '1', **shared)], 'done'), toolsets=[ExternalToolset([tool])])

    def handler(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        requests.calls[0].args_as_dict()['list'][0]['deep'] = 'changed'
        return requests.build_results(calls={'1': 'ok'})

    result = agent.run_sync('go', deferred_tool_handler=handler)

    [part] = result.all_messages()[1].parts
    assert part.part_kind == 'tool-call'
    assert part.args == {'list': [{'deep': 'kept'}]}


def test_results_changed_after_they_were_returned_change_nothing():
    agent = office([call('delete', '1', path='x')], 'done')
    override_args = {'path': 'a'}
    tampered: list[bool] = []

    async def handler(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        results = DeferredToolResults(approvals={'1': ToolApproved(override_args=override_args)})

        def tamper() -> None:
            tampered.append(agent.log == [])
            override_args['path'] = 'evil'
            results.approvals['1'] = ToolApproved(override_args={'path': 'evil'})

        # Runs as soon as the run gives way to the event loop: after the answer was taken, before a tool executes.
        asyncio.get_running_loop().call_soon(tamper)
        return results

    ask(agent, handler)

    assert tampered == [True]
    assert agent.log == ['delete a False']


def test_deferred_call_next_to_a_successful_output_tool_is_skipped_without_a_question():
    handler = Recorder()
    agent = office(
        [call('delete', '1', path='a'), call('send', '2', to='ada'), call('final_result', '3', response=4)],
        output_type=ToolOutput(int),
    )

    result = ask(agent, handler)

    found = returns(result.all_messages())
    assert result.output == 4
    assert handler.asked == []
    assert agent.log == []
    assert found.keys() == {'1', '2', '3'}
    assert all('not executed' in str(found[id][0]).lower() for id in '12')


def test_the_history_of_a_skipped_deferral_can_be_continued():
    agent = office(
        [call('send', '1', to='ada'), call('final_result', '2', response=4)],
        [call('final_result', '3', response=5)],
        output_type=ToolOutput(int),
    )

    first = ask(agent, Recorder())
    second = ask(agent, Recorder(), message_history=first.all_messages())

    assert second.output == 5


def test_external_call_among_ordinary_ones_is_asked_about():
    agent = office([call('elsewhere', '1'), call('read', '2', path='a')], 'done')

    result = ask(agent, Recorder(**{'1': 'a table'}))

    assert returns(result.all_messages()) == {'1': ('a table', 'success'), '2': ('content of a', 'success')}
