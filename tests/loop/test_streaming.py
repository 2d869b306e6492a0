"""Declared and raised deferrals while a run streams."""

import asyncio
from collections.abc import AsyncIterable
from typing import Any

import pytest
from pydantic_ai import ApprovalRequired, RunContext, RunUsage, ToolOutput
from pydantic_ai import messages as messages_module
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset
from pydantic_ai_deferred import Agent

from .scripted import Recorder, call, returns, scripted, text

DECLARED, RAISED, EXTERNAL = call('delete', 'd', path='a'), call('send', 'r', to='ada'), call('elsewhere', 'e')
OUTPUT = call('final_result', 'o', response=4)
KINDS = {'declared': DECLARED, 'raised': RAISED, 'external': EXTERNAL}


def make(*responses: Any, log: list[str] | None = None, **keywords: Any) -> Agent[Any, Any]:
    ran = log if log is not None else []
    tool = ToolDefinition(name='elsewhere', parameters_json_schema={'type': 'object', 'properties': {}})
    agent = Agent(scripted(*responses), toolsets=[ExternalToolset([tool])], **keywords)

    @agent.tool_plain(requires_approval=True)
    def delete(path: str) -> str:
        ran.append('delete')
        return 'deleted'

    @agent.tool
    def send(ctx: RunContext[Any], to: str) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired
        ran.append('send')
        return 'sent'

    return agent


async def stream(agent: Agent[Any, Any], handler: Any, **keywords: Any) -> tuple[Any, Any]:
    async with agent.run_stream('go', deferred_tool_handler=handler, **keywords) as streamed:
        output = await streamed.get_output()
    return output, streamed


@pytest.mark.parametrize('kind', KINDS)
def test_run_stream_asks_about_a_response_without_text(kind: str):
    handler = Recorder()

    output, streamed = asyncio.run(stream(make([KINDS[kind]], 'done'), handler))

    assert output == 'done'
    assert handler.ids == [[KINDS[kind].tool_call_id]]
    assert returns(streamed.all_messages())[KINDS[kind].tool_call_id][1] == 'success'


@pytest.mark.parametrize('kind', KINDS)
def test_run_stream_asks_about_a_response_with_text_that_is_not_output(kind: str):
    handler = Recorder()
    agent = make([text('let me see'), KINDS[kind]], [OUTPUT], output_type=ToolOutput(int))

    output, _ = asyncio.run(stream(agent, handler))

    assert output == 4
    assert handler.ids == [[KINDS[kind].tool_call_id]]


ANSWER = text('the answer')
ENDS = [
    pytest.param([ANSWER, None], 'the answer', {}, id='text'),
    pytest.param([OUTPUT, None], 4, {'output_type': ToolOutput(int)}, id='output tool first'),
    pytest.param([None, OUTPUT], 4, {'output_type': ToolOutput(int)}, id='output tool last'),
]
"""Responses with an output and, in place of `None`, a deferred call."""


@pytest.mark.parametrize('end_strategy', ['early', 'graceful', 'exhaustive'])
@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize(('response', 'output', 'options'), ENDS)
def test_an_output_ends_the_stream_and_skips_the_calls(
    response: Any, output: Any, options: Any, kind: str, end_strategy: Any
):
    ran: list[str] = []
    handler, usage = Recorder(), RunUsage()
    following = 'next' if response[0] is ANSWER else [call('final_result', 'o2', response=5)]
    calls = [KINDS[kind] if part is None else part for part in response]
    agent = make(calls, following, log=ran, end_strategy=end_strategy, **options)

    streamed_output, streamed = asyncio.run(stream(agent, handler, usage=usage))
    next_output = agent.run_sync('more', message_history=streamed.all_messages()).output

    assert streamed_output == output
    assert next_output == ('next' if response[0] is ANSWER else 5)
    assert handler.asked == []
    assert ran == []
    assert 'not executed' in str(returns(streamed.all_messages())[KINDS[kind].tool_call_id][0]).lower()
    assert usage.tool_calls == 0


def test_iter_with_stream_output_asks_about_a_declared_deferral():
    handler = Recorder()

    async def main() -> Any:
        outputs: list[Any] = []
        agent = make([text('let me see'), DECLARED], [OUTPUT], output_type=ToolOutput(int))
        async with agent.iter('go', deferred_tool_handler=handler) as run:
            async for node in run:
                if Agent.is_model_request_node(node):
                    async with node.stream(run.ctx) as streamed:
                        outputs.extend([output async for output in streamed.stream_output(debounce_by=None)])
        assert run.result is not None
        return outputs[-1], run.result.output

    assert asyncio.run(main()) == (4, 4)
    assert handler.ids == [['d']]


def test_a_stream_sync_asks_too():
    handler = Recorder()

    result = make([DECLARED], 'done').run_stream_sync('go', deferred_tool_handler=handler)

    assert result.get_output() == 'done'
    assert handler.ids == [['d']]


def test_a_run_is_asked_while_another_run_of_the_agent_streams():
    """The definitions a toolset shares between runs are never disguised, only the copies of the run that streams."""
    ran: list[str] = []
    refusing = Recorder(d=False)
    agent = make([DECLARED], 'done', log=ran)

    async def main() -> None:
        streaming, finish = asyncio.Event(), asyncio.Event()

        async def hold_the_stream(messages: Any, info: Any) -> Any:
            yield 'text'
            streaming.set()
            await finish.wait()
            yield ' and more'

        async def hold() -> None:
            model = FunctionModel(stream_function=hold_the_stream)
            async with agent.run_stream('go', model=model, deferred_tool_handler=Recorder()) as held:
                await held.get_output()

        holding = asyncio.create_task(hold())
        await streaming.wait()
        await agent.run('go', deferred_tool_handler=refusing)
        finish.set()
        await holding

    asyncio.run(main())

    assert refusing.ids == [['d']]
    assert ran == []


@pytest.mark.parametrize('variant', ['run', 'run_stream_events', 'iter'])
def test_events_come_once_each_and_in_order(variant: str):
    if not hasattr(messages_module, 'DeferredToolRequestsEvent'):
        pytest.skip('the events of deferred calls came with pydantic-ai-slim 2.x')
    agent = make([DECLARED, RAISED], 'done')
    seen: list[Any] = []

    async def keep(ctx: Any, events: AsyncIterable[Any]) -> None:
        seen.extend([event async for event in events])

    async def main() -> None:
        if variant == 'run':
            await agent.run('go', event_stream_handler=keep, deferred_tool_handler=Recorder())
        elif variant == 'run_stream_events':
            async with agent.run_stream_events('go', deferred_tool_handler=Recorder()) as events:
                seen.extend([event async for event in events])
        else:
            async with agent.iter('go', deferred_tool_handler=Recorder()) as run:
                async for node in run:
                    if Agent.is_call_tools_node(node):
                        async with node.stream(run.ctx) as events:
                            seen.extend([event async for event in events])

    asyncio.run(main())

    kinds = ('function_tool_call', 'deferred_tool_requests', 'deferred_tool_results', 'function_tool_result')
    order = [event.event_kind for event in seen if getattr(event, 'event_kind', None) in kinds]
    assert order == [
        'function_tool_call',
        'function_tool_call',
        'deferred_tool_requests',
        'deferred_tool_results',
        'function_tool_result',
        'function_tool_result',
    ]


def test_text_after_a_declared_call_is_no_final_output():
    handler = Recorder()
    agent = make([DECLARED, text('I will.')], 'done')

    output, _ = asyncio.run(stream(agent, handler))

    assert output == 'done'
    assert handler.ids == [['d']]


@pytest.mark.parametrize('name', ['delete', 'elsewhere'])
def test_a_declared_tool_that_is_called_while_a_response_streams_is_asked_about(name: str):
    """The host sees a function then."""
    ran: list[str] = []
    handler = Recorder(x=False)
    agent = make([text('The answer.')], log=ran)
    results: list[Any] = []

    async def watch(ctx: RunContext[Any], events: AsyncIterable[Any]) -> None:
        async for event in events:
            if event.event_kind == 'part_start':
                assert ctx.tool_manager is not None
                results.append(await ctx.tool_manager.handle_call(call(name, 'x', path='a')))

    agent.run_sync('go', deferred_tool_handler=handler, event_stream_handler=watch)

    assert handler.ids == [['x']]
    assert ran == []
