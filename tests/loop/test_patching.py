"""`install` and `uninstall`: the keyword on the host's own classes, in place, and back."""

import asyncio
from typing import Any

import pydantic_ai
import pytest
from pydantic_ai.agent import AbstractAgent, WrapperAgent
from pydantic_ai.exceptions import UserError
from pydantic_ai_deferred import install, uninstall

from .scripted import Recorder, call, scripted

PATCHED = {
    pydantic_ai.Agent: ['__init__', 'from_spec', 'from_file', 'iter', 'override'],
    AbstractAgent: ['run', 'run_sync', 'run_stream', 'run_stream_sync', 'run_stream_events', 'to_cli', 'to_cli_sync'],
    WrapperAgent: ['iter', 'override'],
}


def snapshot() -> list[Any]:
    return [owner.__dict__[name] for owner, names in PATCHED.items() for name in names]


@pytest.fixture(autouse=True)
def back_to_stock():
    before = snapshot()
    yield
    uninstall()
    assert snapshot() == before


def stock(**keywords: Any) -> Any:
    agent: Any = pydantic_ai.Agent(scripted([call('delete', '1')], 'done'), **keywords)
    agent.tool_plain(name='delete', requires_approval=True)(lambda: 'deleted')
    return agent


def test_importing_the_package_patches_nothing():
    with pytest.raises((TypeError, UserError)):
        stock(deferred_tool_handler=Recorder())


def test_install_is_idempotent_and_uninstall_puts_the_originals_back():
    before = snapshot()

    install()
    install()
    after = snapshot()
    uninstall()
    uninstall()

    assert all(new is not old for new, old in zip(after, before, strict=True))
    assert snapshot() == before


def test_a_stock_agent_takes_the_handler_everywhere():
    handler = Recorder()

    async def variants() -> list[Any]:
        outputs = [(await stock(deferred_tool_handler=handler).run('go')).output]
        agent = stock()
        outputs.append((await agent.run('go', deferred_tool_handler=handler)).output)
        async with agent.run_stream('go', deferred_tool_handler=handler) as stream:
            outputs.append(await stream.get_output())
        async with agent.iter('go', deferred_tool_handler=handler) as run:
            async for _ in run:
                pass
        outputs.append(run.result.output)
        with agent.override(deferred_tool_handler=handler):
            outputs.append((await agent.run('go')).output)
        wrapped: Any = WrapperAgent(agent)
        outputs.append((await wrapped.run('go', deferred_tool_handler=handler)).output)
        with wrapped.override(deferred_tool_handler=handler):
            outputs.append((await agent.run('go')).output)
        specified: Any = pydantic_ai.Agent
        from_spec = specified.from_spec({'model': 'test'}, deferred_tool_handler=handler)
        from_spec.tool_plain(name='delete', requires_approval=True)(lambda: 'deleted')
        await from_spec.run('go')
        return outputs

    with install():
        outputs = asyncio.run(variants())
        agent = stock()
        outputs.append(agent.run_sync('go', deferred_tool_handler=handler).output)
        outputs.append(agent.run_stream_sync('go', deferred_tool_handler=handler).get_output())

    assert outputs == ['done'] * 9
    assert len(handler.asked) == 10


def test_agents_built_before_take_the_keyword_on_their_runs():
    handler = Recorder()
    agent = stock()

    with install():
        agent.run_sync('go', deferred_tool_handler=handler)

    assert handler.ids == [['1']]


def test_agents_keep_the_handler_they_were_built_with():
    handler = Recorder()
    with install():
        agent = stock(deferred_tool_handler=handler)

    agent.run_sync('go')

    assert handler.ids == [['1']]


def test_precedence_is_the_same_for_stock_agents():
    constructor, run, override = Recorder(), Recorder(), Recorder()

    with install():
        agent = stock(deferred_tool_handler=constructor)
        agent.run_sync('go', deferred_tool_handler=run)
        with agent.override(deferred_tool_handler=override):
            agent.run_sync('go', deferred_tool_handler=run)
        agent.run_sync('go')

    assert [len(each.asked) for each in (constructor, run, override)] == [1, 1, 1]


def test_stock_agent_without_a_handler_still_needs_the_output_type():
    with install(), pytest.raises(UserError, match='DeferredToolRequests'):
        stock().run_sync('go')


@pytest.mark.parametrize(
    'give',
    [
        lambda agent: stock(deferred_tool_handler='yes'),
        lambda agent: agent.run_sync('go', deferred_tool_handler='yes'),
        lambda agent: agent.iter('go', deferred_tool_handler='yes'),
        lambda agent: agent.override(deferred_tool_handler='yes').__enter__(),
        lambda agent: agent.to_cli_sync(deferred_tool_handler='yes'),
        lambda agent: type(agent).from_spec({'model': 'test'}, deferred_tool_handler='yes'),
    ],
)
def test_handler_that_is_not_callable_is_refused_when_it_is_passed(give: Any):
    with install(), pytest.raises(UserError, match='must be a callable'):
        give(stock())


def test_the_name_is_inferred_from_the_callers_variable():
    with install():
        stocked = stock()
        stocked.run_sync('go', deferred_tool_handler=Recorder())

    assert stocked.name == 'stocked'


def test_uninstall_inside_of_an_install_is_enough():
    handler = Recorder()

    with install(), install():
        uninstall()
        with pytest.raises((TypeError, UserError)):
            stock().run_sync('go', deferred_tool_handler=handler)


def test_a_spec_without_a_handler_makes_the_agent_the_host_makes():
    with install():
        agent = pydantic_ai.Agent.from_spec({'model': 'test'})

    assert type(agent) is pydantic_ai.Agent


def test_a_prompt_given_by_position_reaches_the_run():
    handler = Recorder()

    async def main() -> Any:
        async with stock().iter('go', deferred_tool_handler=handler) as run:
            async for _ in run:
                pass
        return run.result.all_messages()[0].parts[0].content

    with install():
        assert asyncio.run(main()) == 'go'
