"""Handlers by precedence: override, run keyword, constructor, inherited; exactly one of them is called."""

import asyncio
from typing import Any

import pytest
from pydantic_ai_deferred import Agent

from .scripted import Recorder, call, scripted


def make(handler: Any = None, kind: Any = Agent) -> Any:
    keywords = {'deferred_tool_handler': handler} if handler is not None else {}
    agent = kind(scripted([call('delete', '1')], 'done'), **keywords)
    agent.tool_plain(name='delete', requires_approval=True)(lambda: 'deleted')
    return agent


def asked(*handlers: Recorder) -> list[int]:
    return [len(handler.asked) for handler in handlers]


def test_the_run_keyword_goes_before_the_constructor():
    constructor, run = Recorder(), Recorder()

    make(constructor).run_sync('go', deferred_tool_handler=run)

    assert asked(constructor, run) == [0, 1]


def test_the_override_goes_before_both():
    constructor, run, override = Recorder(), Recorder(), Recorder()
    agent = make(constructor)

    with agent.override(deferred_tool_handler=override):
        agent.run_sync('go', deferred_tool_handler=run)
    agent.run_sync('go')

    assert asked(constructor, run, override) == [1, 0, 1]


def test_the_innermost_override_counts_and_none_overrides_nothing():
    outer, inner = Recorder(), Recorder()
    agent = make()

    with agent.override(deferred_tool_handler=outer):
        with agent.override(deferred_tool_handler=inner), agent.override(deferred_tool_handler=None):
            agent.run_sync('go')
        agent.run_sync('go')

    assert asked(outer, inner) == [1, 1]


def test_an_override_is_for_that_agent_alone():
    own, override = Recorder(), Recorder()
    agent, other = make(), make(own)

    with agent.override(deferred_tool_handler=override):
        other.run_sync('go')

    assert asked(own, override) == [1, 0]


def test_an_override_is_seen_by_its_own_task_alone():
    own, override = Recorder(), Recorder()
    agent = make(own)

    async def main() -> None:
        entered, left = asyncio.Event(), asyncio.Event()

        async def overriding() -> None:
            with agent.override(deferred_tool_handler=override):
                entered.set()
                await left.wait()

        task = asyncio.create_task(overriding())
        await entered.wait()
        await agent.run('go')
        left.set()
        await task

    asyncio.run(main())

    assert asked(own, override) == [1, 0]


def test_an_override_of_the_spec_keeps_the_handler():
    constructor, run = Recorder(), Recorder()
    agent = make(constructor)

    with agent.override(spec={'instructions': 'be brief'}):
        agent.run_sync('go')
        agent.run_sync('go', deferred_tool_handler=run)

    assert asked(constructor, run) == [1, 1]


def test_a_host_capability_that_declines_leaves_everything_to_the_handler():
    from pydantic_ai.capabilities import HandleDeferredToolCalls

    handler = Recorder()
    agent = make()

    agent.run_sync(
        'go', capabilities=[HandleDeferredToolCalls(lambda ctx, requests: None)], deferred_tool_handler=handler
    )

    assert asked(handler) == [1]


def test_handler_is_not_called_if_a_host_capability_answers_everything():
    from pydantic_ai.capabilities import HandleDeferredToolCalls

    handler = Recorder()
    agent = make(handler)
    everything = HandleDeferredToolCalls(lambda ctx, requests: requests.build_results(approve_all=True))

    agent.run_sync('go', capabilities=[everything])

    assert asked(handler) == [0]


def test_a_question_put_elsewhere_by_the_host_goes_first():
    from pydantic_ai import capabilities

    if not hasattr(capabilities, 'RequestInput'):
        pytest.skip('RequestInput came with pydantic-ai-slim 2.x')
    handler = Recorder()
    agent = make(handler)
    elsewhere = capabilities.RequestInput(lambda ctx, requests, token: requests.build_results(approve_all=True))

    result = agent.run_sync('go', capabilities=[elsewhere])

    assert result.output == 'done'
    assert asked(handler) == [0]
