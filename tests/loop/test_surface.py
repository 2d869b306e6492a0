"""`deferred_tool_handler` is accepted by `Agent` and all run variants, and nothing changes without it."""

import asyncio
import inspect
from collections.abc import AsyncIterator
from types import FunctionType
from typing import Any

import pydantic_ai
import pydantic_ai_deferred
import pytest
from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import UserError
from pydantic_ai.models.function import FunctionModel
from pydantic_ai_deferred import Agent, DeferredToolHandler

from .scripted import Recorder, call, scripted, text


def make(handler: Any = None, **keywords: Any) -> Agent[Any, Any]:
    agent = Agent(scripted([call('delete', '1', path='a')], 'done'), deferred_tool_handler=handler, **keywords)

    @agent.tool_plain(requires_approval=True)
    def delete(path: str) -> str:
        return f'deleted {path}'

    return agent


async def approve(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
    return requests.build_results(approve_all=True)


@pytest.mark.parametrize('handler', [Recorder(), approve], ids=['sync', 'async'])
def test_constructor_and_every_run_variant_take_the_handler(handler: Any):
    async def variants() -> list[Any]:
        agent = make()
        outputs = [(await agent.run('go', deferred_tool_handler=handler)).output]
        async with agent.run_stream('go', deferred_tool_handler=handler) as stream:
            outputs.append(await stream.get_output())
        async with agent.iter('go', deferred_tool_handler=handler) as run:
            async for _ in run:
                pass
        assert run.result is not None
        outputs.append(run.result.output)
        events = agent.run_stream_events('go', deferred_tool_handler=handler)
        if hasattr(events, '__aenter__'):
            async with events as entered:
                outputs.append([event async for event in entered][-1].result.output)
        else:  # an iterator, on hosts before 2.x
            outputs.append([event async for event in events][-1].result.output)
        with agent.override(deferred_tool_handler=handler):
            outputs.append((await agent.run('go')).output)
        return outputs

    asynchronous = asyncio.run(variants())
    sync = make().run_sync('go', deferred_tool_handler=handler).output
    stream_sync = make().run_stream_sync('go', deferred_tool_handler=handler).get_output()
    constructor = make(handler).run_sync('go').output

    assert [*asynchronous, sync, stream_sync, constructor] == ['done'] * 8


@pytest.mark.parametrize('handler', ['yes', 1, DeferredToolResults()])
def test_handler_that_is_not_callable_is_refused_when_it_is_passed(handler: Any):
    agent = make()
    given = [
        lambda: Agent(scripted('done'), deferred_tool_handler=handler),
        lambda: Agent.from_spec({'model': 'test'}, deferred_tool_handler=handler),
        lambda: agent.override(deferred_tool_handler=handler).__enter__(),
        lambda: asyncio.run(agent.run('go', deferred_tool_handler=handler)),
        lambda: asyncio.run(agent.to_cli(deferred_tool_handler=handler)),
        lambda: agent.run_sync('go', deferred_tool_handler=handler),
        lambda: agent.to_cli_sync(deferred_tool_handler=handler),
    ]

    for give in given:
        with pytest.raises(UserError, match='must be a callable'):
            give()


@pytest.mark.parametrize('variant', ['run_stream', 'iter', 'run_stream_events'])
def test_handler_that_is_not_callable_is_refused_before_the_first_request(variant: str):
    asked: list[Any] = []

    async def stream(messages: Any, info: Any) -> AsyncIterator[str]:
        asked.append(messages)
        yield 'done'

    async def main() -> None:
        run = getattr(make(), variant)('go', model=FunctionModel(stream_function=stream), deferred_tool_handler='yes')
        async with run as entered:
            async for _ in entered:
                pass

    with pytest.raises(UserError, match='must be a callable'):
        asyncio.run(main())

    assert asked == []


def test_without_a_handler_the_calls_leave_the_run():
    result = make().run_sync('go', output_type=[str, DeferredToolRequests])

    assert isinstance(result.output, DeferredToolRequests)
    assert [part.tool_name for part in result.output.approvals] == ['delete']


def test_without_a_handler_and_without_the_output_type_the_run_fails_as_before():
    with pytest.raises(UserError, match='DeferredToolRequests'):
        make().run_sync('go')


def test_handler_none_leaves_the_choice_of_handler_unchanged():
    handler = Recorder()

    make(handler).run_sync('go', deferred_tool_handler=None)

    assert handler.ids == [['1']]


def test_the_handler_sees_the_deps():
    handler = Recorder()

    make(handler, deps_type=str).run_sync('go', deps='ada')

    assert handler.contexts[0].deps == 'ada'


def test_a_run_on_a_model_that_cannot_stream_keeps_working():
    from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
    from pydantic_ai.models.function import AgentInfo

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse([text('done')] if len(messages) > 1 else [ToolCallPart('delete', {'path': 'a'})])

    result = make(Recorder()).run_sync('go', model=FunctionModel(respond))

    assert result.output == 'done'


def test_an_agent_is_a_pydantic_ai_agent_subscriptable_and_subclassable():
    class Assistant(Agent[str, int]):
        pass

    assert issubclass(Assistant, pydantic_ai.Agent)
    assert isinstance(make(), pydantic_ai.Agent)


def test_an_agent_from_a_spec_asks_the_handler_it_was_given(tmp_path: Any):
    handler = Recorder()
    file = tmp_path / 'agent.json'
    file.write_text('{"model": "test"}')

    for agent in (
        Agent.from_spec({'model': 'test'}, deferred_tool_handler=handler),
        Agent.from_file(file, deferred_tool_handler=handler),
    ):
        agent.tool_plain(requires_approval=True)(named_delete())
        agent.run_sync('go')

    assert len(handler.asked) == 2


def named_delete() -> Any:
    def delete(path: str) -> str:
        return path

    return delete


def test_a_run_names_its_agent_after_the_callers_variable():
    async def variants() -> list[str | None]:
        first = make()
        await first.run('go', deferred_tool_handler=approve)
        second = make()
        async with second.run_stream('go', deferred_tool_handler=approve):
            pass
        unnamed = make()
        await unnamed.run('go', deferred_tool_handler=approve, infer_name=False)
        return [first.name, second.name, unnamed.name]

    asynchronous = asyncio.run(variants())
    third = make()
    third.run_sync('go', deferred_tool_handler=approve)

    assert asynchronous == ['first', 'second', None]
    assert third.name == 'third'
    assert module_agent_name() == 'module_agent'


def test_iter_names_its_agent_after_the_callers_variable_too():
    async def main() -> str | None:
        stepped = make()
        async with stepped.iter('go', deferred_tool_handler=approve):
            pass
        return stepped.name

    assert asyncio.run(main()) == 'stepped'


def test_no_name_is_taken_from_the_hosts_own_code():
    """The host's chat calls every agent `agent`, which would be the name in lineage and questions."""

    async def chat(agent: Any) -> str | None:
        async with agent.iter('go', deferred_tool_handler=approve):
            return agent.name

    in_the_hosts_module = FunctionType(chat.__code__, {'__name__': 'pydantic_ai._cli', 'approve': approve})

    assert asyncio.run(in_the_hosts_module(make())) is None


module_agent = make()


def module_agent_name() -> str | None:
    module_agent.run_sync('go', deferred_tool_handler=approve)
    return module_agent.name


def test_a_subclass_with_its_own_signature_still_runs():
    class Greeter(Agent[Any, Any]):
        async def run(self, name: str) -> Any:  # type: ignore[override]
            return await super().run(f'hello {name}', deferred_tool_handler=approve)

    agent = Greeter(scripted('hi'))

    assert asyncio.run(agent.run('ada')).output == 'hi'
    assert inspect.iscoroutinefunction(Agent.run)


def test_keywords_are_passed_on_to_the_host():
    keywords: Any = {'new_keyword': 'of a later host'}

    with pytest.raises(TypeError, match='new_keyword'):
        make().run_sync('go', deferred_tool_handler=approve, **keywords)


@pytest.mark.parametrize('sync', [True, False])
def test_a_chat_asks_the_handler_it_was_given(sync: bool, monkeypatch: pytest.MonkeyPatch):
    """What the host's chat does with the agent it is given, without a terminal; test_chat.py has one."""
    pytest.importorskip('argcomplete', reason='the chat needs the extra `cli`')
    handler = Recorder()

    async def chat(*, agent: Any, **keywords: Any) -> None:
        await agent.run('go')

    monkeypatch.setattr('pydantic_ai._cli.run_chat', chat)
    agent = make()
    if sync:
        agent.to_cli_sync(deferred_tool_handler=handler)
    else:
        asyncio.run(agent.to_cli(deferred_tool_handler=handler))

    assert handler.ids == [['1']]


def test_a_capability_given_as_the_handler_is_added_as_it_is():
    class Answering(AbstractCapability[Any]):
        id = 'deferred_tool_handler'

        async def handle_deferred_tool_calls(self, ctx: Any, *, requests: DeferredToolRequests) -> DeferredToolResults:
            asked.append(requests)
            return requests.build_results(approve_all=True)

    asked: list[DeferredToolRequests] = []
    handler = Recorder()
    agent = make(Answering())

    agent.run_sync('go')
    try:
        agent.run_sync('go', deferred_tool_handler=handler)
    except (
        UserError
    ) as error:  # newer hosts refuse two classes under one id; older ones let the run's replace the agent's
        assert 'different types' in str(error)
    else:
        assert len(handler.asked) == 1

    assert len(asked) == 1


def test_the_capability_works_on_a_stock_agent_and_in_a_run_of_it():
    own, given = Recorder(), Recorder()
    agent = pydantic_ai.Agent(scripted([call('delete', '1')], 'done'), capabilities=[DeferredToolHandler(own)])
    agent.tool_plain(name='delete', requires_approval=True)(lambda: 'deleted')

    agent.run_sync('go')
    agent.run_sync('go', capabilities=[DeferredToolHandler(given)])

    assert (own.ids, given.ids) == ([['1']], [['1']])


def test_public_names_are_frozen():
    assert pydantic_ai_deferred.__all__ == (
        'Agent',
        'DeferredToolHandler',
        'HandlerFunc',
        'LineageLevel',
        'install',
        'lineage',
        'uninstall',
        'validated_args',
    )


def test_specs_make_agents_of_the_class_they_are_called_on(tmp_path: Any):
    class Assistant(Agent[Any, Any]):
        pass

    handler = Recorder()
    file = tmp_path / 'agent.json'
    file.write_text('{"model": "test", "name": "filed"}')
    from_spec = Assistant.from_spec({'model': 'test', 'name': 'specified'}, deferred_tool_handler=handler)
    from_file = Assistant.from_file(file, deferred_tool_handler=handler)

    for agent in (from_spec, from_file):
        agent.tool_plain(name='delete', requires_approval=True)(lambda: 'deleted')
        agent.run_sync('go')

    assert [type(from_spec), type(from_file)] == [Assistant, Assistant]
    assert len(handler.asked) == 2


def test_the_last_of_several_handlers_of_an_agent_is_asked_and_none_is_for_a_spec():
    first, last = Recorder(), Recorder()
    agent = make(last)
    both = pydantic_ai.Agent(
        scripted([call('delete', '1')], 'done'), capabilities=[DeferredToolHandler(first), DeferredToolHandler(last)]
    )
    both.tool_plain(name='delete', requires_approval=True)(lambda: 'deleted')

    agent.run_sync('go', capabilities=[DeferredToolHandler(first)], deferred_tool_handler=last)
    both.run_sync('go')

    assert (len(first.asked), len(last.asked)) == (0, 2)
    assert DeferredToolHandler.get_serialization_name() is None
