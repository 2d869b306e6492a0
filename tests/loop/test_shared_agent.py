"""Several runs of one agent at once: each asks its own handler, and only while it lasts."""

import asyncio
import gc
import weakref
from typing import Any

import pytest
from pydantic_ai import DeferredToolRequests, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import UserError
from pydantic_ai_deferred import Agent

from .scripted import Recorder, call, scripted


def make(handler: Any) -> Any:
    agent = Agent(scripted([call('delete', '1')], 'done'), deferred_tool_handler=handler)
    agent.tool_plain(name='delete', requires_approval=True)(lambda: 'deleted')
    return agent


def test_runs_that_overlap_ask_their_own_handlers():
    both_ask = asyncio.Barrier(2)
    asked: dict[int, list[object]] = {1: [], 2: []}

    def handler(number: int) -> Any:
        async def ask(ctx: RunContext[int], requests: DeferredToolRequests) -> Any:
            asked[number].append(ctx.deps)
            await both_ask.wait()
            return requests.build_results(approve_all=True)

        return ask

    async def main() -> None:
        agent = make(handler(1))
        await asyncio.gather(agent.run('go', deps=1), agent.run('go', deps=2, deferred_tool_handler=handler(2)))

    asyncio.run(main())

    assert asked == {1: [1], 2: [2]}


def test_two_runs_of_one_id_at_the_same_time_are_refused():
    async def ask(ctx: RunContext[Any], requests: DeferredToolRequests) -> Any:
        with pytest.raises(UserError, match="the `run_id` 'same' at the same time"):
            await agent.run('go', run_id='same')
        return requests.build_results(approve_all=True)

    agent = make(ask)

    assert asyncio.run(agent.run('go', run_id='same')).output == 'done'


def test_an_id_can_be_used_again_for_the_next_run():
    handler = Recorder()
    agent = make(handler)

    for _ in range(2):
        agent.run_sync('go', run_id='same')

    assert len(handler.asked) == 2


def test_nothing_keeps_the_handler_of_a_run_that_is_over():
    class Approves:
        async def __call__(self, ctx: object, requests: DeferredToolRequests) -> Any:
            return requests.build_results(approve_all=True)

    agent, handler = make(Recorder()), Approves()
    assert asyncio.run(agent.run('go', deferred_tool_handler=handler)).output == 'done'

    gone = weakref.ref(handler)
    del handler
    gc.collect()
    assert gone() is None


class Rewrites(AbstractCapability[Any]):
    """May rewrite arguments, so that a run that is given it cannot leave everything to the agent's own capability."""

    async def after_tool_validate(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        return args


@pytest.mark.parametrize('is_streamed', [True, False])
def test_a_run_with_a_capability_of_its_own_asks_once(is_streamed: bool):
    handler = Recorder()
    agent = make(handler)

    async def main() -> str:
        if not is_streamed:
            return (await agent.run('go', capabilities=[Rewrites()])).output
        async with agent.run_stream('go', capabilities=[Rewrites()]) as result:
            return await result.get_output()

    assert asyncio.run(main()) == 'done'
    assert len(handler.asked) == 1


def test_error_of_a_run_with_its_own_capability_is_raised_unchanged():
    error = UserError('of the handler')

    def fail(ctx: object, requests: object) -> Any:
        raise error

    with pytest.raises(UserError) as raised:
        make(fail).run_sync('go', capabilities=[Rewrites()])

    assert raised.value is error
