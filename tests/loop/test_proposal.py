"""The proposal, statement by statement: `deferred_tool_handler` on `Agent` and on every run variant.

This file uses only the keyword and public names of Pydantic AI, so that it also runs on a host that has the keyword
itself: `make test-patched` runs it on Pydantic AI with the patch of `maintainers/upstream`.
"""

import asyncio
import os
from collections.abc import Callable
from typing import Any

import pydantic_ai
import pytest
from pydantic_ai import (
    ApprovalRequired,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    ModelRetry,
    RunContext,
    ToolApproved,
    ToolDenied,
)
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import RetryPromptPart
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset

from .scripted import Recorder, call, returns, scripted, text

if os.environ.get('DEFERRED_HOST') == 'patched':
    Agent: Any = pydantic_ai.Agent
else:
    from pydantic_ai_deferred import Agent

A, B, SEND, LATER, ELSEWHERE = (
    call('delete', 'a', path='a'),
    call('delete', 'b', path='b'),
    call('send', 's', to='ada'),
    call('later', 'l'),
    call('elsewhere', 'e'),
)


def office(*responses: Any, log: list[Any] | None = None, **keywords: Any) -> Any:
    """An agent with a tool of each kind: ordinary, declared, external, and two that defer themselves."""
    external = ToolDefinition(name='elsewhere', parameters_json_schema={'type': 'object', 'properties': {}})
    agent = Agent(scripted(*responses), toolsets=[ExternalToolset([external])], deps_type=str, **keywords)
    log = [] if log is None else log

    @agent.tool_plain
    def read(path: str) -> str:
        log.append(f'read {path}')
        return f'content of {path}'

    @agent.tool_plain(requires_approval=True)
    def delete(path: str) -> str:
        log.append(f'delete {path}')
        return f'deleted {path}'

    @agent.tool
    def send(ctx: RunContext[str], to: str) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={'approval_description': f'Mail {to}'})
        log.append(f'send {to} {ctx.tool_call_metadata}')
        return f'sent to {to}'

    @agent.tool_plain
    def later() -> str:
        raise CallDeferred

    return agent


def run(agent: Any, **keywords: Any) -> Any:
    return asyncio.run(agent.run('go', **keywords)).output


def run_sync(agent: Any, **keywords: Any) -> Any:
    return agent.run_sync('go', **keywords).output


def run_stream(agent: Any, **keywords: Any) -> Any:
    async def main() -> Any:
        async with agent.run_stream('go', **keywords) as result:
            return await result.get_output()

    return asyncio.run(main())


def run_stream_sync(agent: Any, **keywords: Any) -> Any:
    return agent.run_stream_sync('go', **keywords).get_output()


def iterate(agent: Any, **keywords: Any) -> Any:
    async def main() -> Any:
        async with agent.iter('go', **keywords) as agent_run:
            async for _ in agent_run:
                pass
        return agent_run.result.output

    return asyncio.run(main())


in_every_variant = pytest.mark.parametrize('variant', [run, run_sync, run_stream, run_stream_sync, iterate])


def ask(agent: Any, handler: Any = None, **keywords: Any) -> Any:
    return agent.run_sync('go', deferred_tool_handler=handler, **keywords)


# Summary and API


@in_every_variant
@pytest.mark.parametrize('place', ['constructor', 'run'])
def test_the_agent_and_all_run_variants_take_a_handler(variant: Any, place: str):
    handler = Recorder()
    agent = office([A], 'done', **({'deferred_tool_handler': handler} if place == 'constructor' else {}))

    output = variant(agent, **({'deferred_tool_handler': handler} if place == 'run' else {}))

    assert output == 'done'
    assert handler.ids == [['a']]


@in_every_variant
def test_a_handler_of_the_run_overrides_the_agents_default(variant: Any):
    default, override = Recorder(), Recorder()

    variant(office([A], 'done', deferred_tool_handler=default), deferred_tool_handler=override)

    assert (default.ids, override.ids) == ([], [['a']])


@pytest.mark.parametrize('handler', ['yes', 1, DeferredToolResults()])
def test_a_handler_must_be_a_callable(handler: Any):
    with pytest.raises(UserError):
        office(deferred_tool_handler=handler)
    with pytest.raises(UserError):
        ask(office('done'), handler)


def test_a_handler_may_be_async_also_in_run_sync():
    async def handler(ctx: RunContext[str], requests: DeferredToolRequests) -> DeferredToolResults:
        await asyncio.sleep(0)
        return requests.build_results(approve_all=True)

    assert ask(office([A], 'done'), handler).output == 'done'


def test_the_handler_gets_the_deps():
    handler = Recorder()

    ask(office([A], 'done'), handler, deps='ada')

    assert handler.contexts[0].deps == 'ada'


def test_without_a_handler_deferred_calls_leave_the_run():
    result = ask(office([A, ELSEWHERE], 'done', output_type=[str, DeferredToolRequests]))

    assert isinstance(result.output, DeferredToolRequests)
    assert ([part.tool_call_id for part in result.output.approvals], len(result.output.calls)) == (['a'], 1)


# Core behaviour


def test_ordinary_tools_run_first_and_no_deferred_call_before_the_handler_has_answered():
    log: list[Any] = []

    def handler(ctx: RunContext[str], requests: DeferredToolRequests) -> DeferredToolResults:
        log.append('asked')
        return requests.build_results(approve_all=True)

    ask(office([A, call('read', 'r', path='r'), SEND], 'done', log=log), handler)

    assert log[:2] == ['read r', 'asked']
    assert sorted(log[2:]) == ['delete a', 'send ada None']


def test_the_handler_sees_all_deferred_calls_of_a_response_of_every_kind():
    handler = Recorder()

    ask(office([A, SEND, LATER, ELSEWHERE], 'done'), handler)

    [requests] = handler.asked
    assert sorted(part.tool_call_id for part in requests.approvals) == ['a', 's']
    assert sorted(part.tool_call_id for part in requests.calls) == ['e', 'l']
    assert requests.metadata == {'s': {'approval_description': 'Mail ada'}}


def test_the_handler_is_called_once_for_each_response():
    handler = Recorder()

    ask(office([A, B], [SEND], 'done'), handler)

    assert handler.ids == [['a', 'b'], ['s']]


def test_approved_calls_of_a_response_run_concurrently():
    together = asyncio.Barrier(2)
    agent = Agent(scripted([call('wait', '1'), call('wait', '2')], 'done'))

    @agent.tool_plain(requires_approval=True)
    async def wait() -> str:
        await asyncio.wait_for(together.wait(), 10)
        return 'both here'

    assert ask(agent, Recorder()).output == 'done'


def test_the_requests_hold_the_models_own_arguments():
    handler = Recorder()

    ask(office([A], 'done'), handler)

    assert handler.asked[0].approvals[0].args_as_dict() == {'path': 'a'}


# What the model sees


def test_the_model_sees_the_result_of_an_approved_call_and_the_same_run_goes_on():
    result = ask(office([A], 'done'), Recorder())

    assert result.output == 'done'
    assert returns(result.all_messages())['a'] == ('deleted a', 'success')
    assert len({message.run_id for message in result.all_messages()}) == 1


def test_the_model_sees_the_message_of_a_denial_and_the_tool_is_never_called():
    log: list[Any] = []

    result = ask(office([A], 'done', log=log), Recorder(a=ToolDenied('User denied: too risky')))

    assert returns(result.all_messages())['a'][0] == 'User denied: too risky'
    assert log == []


# Defaults and edge cases


@pytest.mark.parametrize(
    'answer',
    [
        None,
        DeferredToolResults(),
        DeferredToolResults(approvals={'a': True, 's': True}),
        DeferredToolResults(approvals={'a': True}, calls={'e': 'result'}),
        DeferredToolResults(approvals={'a': True, 'e': True}, calls={'s': 'sent'}),
        DeferredToolResults(approvals={'a': True, 's': 'yes'}, calls={'e': 'result'}),  # type: ignore[dict-item]
    ],
    ids=['none', 'empty', 'no result', 'no approval', 'swapped', 'wrong kind'],
)
def test_a_missing_answer_is_an_error_before_anything_runs(answer: Any):
    log: list[Any] = []

    with pytest.raises(UserError):
        ask(office([A, SEND, ELSEWHERE], 'done', log=log), lambda ctx, requests: answer)

    assert log == []


def test_answers_for_unknown_calls_are_no_error():
    answer = DeferredToolResults(approvals={'a': True, 'x': True}, calls={'y': 1}, metadata={'z': {}})

    assert ask(office([A], 'done'), lambda ctx, requests: answer).output == 'done'


@pytest.mark.parametrize(
    ('given', 'seen'),
    [
        (lambda: 'result', ('result', 'success')),
        (lambda: ModelRetry('Try the other one.'), ('Try the other one.', 'retried')),
        (lambda: RetryPromptPart('Try the other one.'), ('Try the other one.', 'retried')),
    ],
    ids=['value', 'ModelRetry', 'RetryPromptPart'],
)
@pytest.mark.filterwarnings('ignore:.*RetryPromptPart')  # newer releases prefer `ModelRetry`
def test_results_of_external_calls_are_sent_to_the_model(given: Callable[[], Any], seen: Any):
    result = ask(office([ELSEWHERE], 'done'), Recorder(e=given()))

    content, outcome = returns(result.all_messages())['e']
    assert str(content).startswith(seen[0])
    assert outcome == seen[1]


@pytest.mark.parametrize(
    ('given', 'seen'),
    [(True, 'deleted a'), (ToolApproved(), 'deleted a'), (False, ToolDenied().message), (ToolDenied('No.'), 'No.')],
)
def test_true_and_false_stand_for_approved_and_denied(given: Any, seen: str):
    result = ask(office([A], 'done'), Recorder(a=given))

    assert returns(result.all_messages())['a'][0] == seen


def test_an_approval_may_change_the_arguments():
    log: list[Any] = []

    ask(office([A], 'done', log=log), Recorder(a=ToolApproved(override_args={'path': 'tmp'})))

    assert log == ['delete tmp']


def again(deferral: type[Exception] = ApprovalRequired, **keywords: Any) -> tuple[Any, list[str]]:
    agent = Agent(scripted([call('again', '1'), call('once', '2')], 'done'), **keywords)
    log: list[str] = []

    @agent.tool_plain(requires_approval=True)
    def again() -> str:
        raise deferral

    @agent.tool_plain(requires_approval=True)
    def once() -> None:
        log.append('once')

    return agent, log


@pytest.mark.parametrize('deferral', [ApprovalRequired, CallDeferred])
def test_an_approved_call_that_defers_again_ends_the_run_and_nothing_is_rolled_back(deferral: type[Exception]):
    handler = Recorder()
    agent, log = again(deferral, output_type=[str, DeferredToolRequests])

    result = ask(agent, handler)

    assert isinstance(result.output, DeferredToolRequests)
    left = result.output.approvals if deferral is ApprovalRequired else result.output.calls
    assert [part.tool_call_id for part in left] == ['1']
    assert (len(handler.asked), log) == (1, ['once'])


@pytest.mark.parametrize('handler', [None, Recorder()], ids=['no handler', 'defers again'])
def test_calls_that_leave_the_run_need_the_output_type(handler: Any):
    with pytest.raises(UserError, match='DeferredToolRequests'):
        ask(again()[0], handler)


def test_a_tool_sees_the_metadata_of_the_results_alone():
    log: list[Any] = []

    def handler(ctx: RunContext[str], requests: DeferredToolRequests) -> DeferredToolResults:
        return requests.build_results(approve_all=True, metadata={'s': {'granted_capabilities': ['net']}})

    ask(office([SEND], [SEND], 'done', log=log), lambda ctx, requests: requests.build_results(approve_all=True))
    ask(office([SEND], 'done', log=log), handler)

    assert log == ['send ada None', 'send ada None', "send ada {'granted_capabilities': ['net']}"]


@pytest.mark.parametrize('kind', ['sync', 'async'])
def test_an_exception_of_the_handler_ends_the_run(kind: str):
    log: list[Any] = []
    error = ConnectionError('no approver')

    def fail(ctx: RunContext[str], requests: DeferredToolRequests) -> DeferredToolResults:
        raise error

    async def fail_later(ctx: RunContext[str], requests: DeferredToolRequests) -> DeferredToolResults:
        raise error

    with pytest.raises(ConnectionError) as raised:
        ask(office([A], 'done', log=log), fail if kind == 'sync' else fail_later)

    assert raised.value is error
    assert log == []


def test_a_cancelled_question_executes_nothing():
    log: list[Any] = []
    asked = asyncio.Event()

    async def hang(ctx: RunContext[str], requests: DeferredToolRequests) -> DeferredToolResults:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def main() -> None:
        task = asyncio.create_task(office([A], 'done', log=log).run('go', deferred_tool_handler=hang))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())

    assert log == []


# Streaming


def test_a_stream_asks_before_any_final_output():
    handler = Recorder()

    assert run_stream(office([A, ELSEWHERE], 'done'), deferred_tool_handler=handler) == 'done'
    assert handler.ids == [['a', 'e']]


def test_after_a_streamed_final_output_the_handler_is_not_asked_and_the_calls_are_skipped():
    log: list[Any] = []
    handler = Recorder()

    async def main() -> Any:
        async with office([text('the answer'), A, ELSEWHERE], log=log).run_stream(
            'go', deferred_tool_handler=handler
        ) as result:
            output = await result.get_output()
        return output, returns(result.all_messages())

    output, told = asyncio.run(main())

    assert output == 'the answer'
    assert (handler.asked, log) == ([], [])
    assert set(told) == {'a', 'e'}, 'the history can be continued'


@pytest.mark.parametrize('variant', [run, iterate])
def test_text_before_a_call_skips_nothing_in_iter_or_with_an_event_stream_handler(variant: Any):
    handler = Recorder()

    async def watch(ctx: RunContext[str], events: Any) -> None:
        async for _ in events:
            pass

    watching = {'event_stream_handler': watch} if variant is run else {}
    output = variant(office([text('I will delete it.'), A], 'done'), deferred_tool_handler=handler, **watching)

    assert (output, handler.ids) == ('done', [['a']])


def test_events_show_the_questions_and_the_answers():
    kinds: list[str] = []

    async def watch(ctx: RunContext[str], events: Any) -> None:
        kinds.extend([event.event_kind async for event in events])

    assert ask(office([A], 'done'), Recorder(), event_stream_handler=watch).output == 'done'
    assert kinds.index('deferred_tool_requests') < kinds.index('deferred_tool_results')


# Examples


def test_the_cli_example_denies_what_the_policy_blocks_without_a_question():
    asked: list[str] = []
    agent = Agent(scripted([call('wipe', 'w'), call('send', 's')], 'done'))

    @agent.tool_plain
    def wipe() -> None:
        raise ApprovalRequired(metadata={'approval_policy': 'blocked'})

    @agent.tool
    def send(ctx: RunContext[object]) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={'approval_description': 'Send a mail'})
        return 'sent'

    def cli(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
        results = DeferredToolResults()
        for each in requests.approvals:
            metadata = requests.metadata[each.tool_call_id]
            if metadata.get('approval_policy') == 'blocked':
                results.approvals[each.tool_call_id] = ToolDenied('Blocked by policy')
            else:
                asked.append(metadata['approval_description'])
                results.approvals[each.tool_call_id] = True
        return results

    result = ask(agent, cli)

    assert asked == ['Send a mail']
    told = returns(result.all_messages())
    assert (told['w'][0], told['s'][0]) == ('Blocked by policy', 'sent')


def test_the_fail_closed_example_denies_what_it_does_not_know():
    def fail_closed(ctx: RunContext[str], requests: DeferredToolRequests) -> DeferredToolResults:
        results = DeferredToolResults()
        for each in requests.approvals:
            results.approvals.setdefault(each.tool_call_id, ToolDenied('Denied by policy'))
        for each in requests.calls:
            results.calls.setdefault(each.tool_call_id, 'External call not handled')
        return results

    log: list[Any] = []

    result = ask(office([A, SEND, ELSEWHERE], 'done', log=log), fail_closed)

    assert {content for content, _ in returns(result.all_messages()).values()} == {
        'Denied by policy',
        'External call not handled',
    }
    assert log == []
