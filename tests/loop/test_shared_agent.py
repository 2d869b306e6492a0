"""Several runs of one agent at once: each asks its own handler, and only while it lasts."""

import asyncio
import gc
import inspect
import weakref
from typing import Any

import pydantic_ai
import pytest
from pydantic_ai import DeferredToolRequests, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import UserError

from .host import Agent
from .scripted import Recorder, call, scripted


def make(handler: Any) -> Any:
    agent = Agent(scripted([call('delete', '1')], 'done'), deferred_tool_handler=handler)
    agent.tool_plain(name='delete', requires_approval=True)(lambda: 'deleted')
    return agent


takes_run_id = pytest.mark.skipif(
    'run_id' not in inspect.signature(pydantic_ai.Agent.run).parameters, reason='this host takes no `run_id`'
)


@pytest.mark.parametrize('ids', [{}, pytest.param({'run_id': 'same'}, marks=takes_run_id)])
def test_runs_that_overlap_ask_their_own_handlers(ids: dict[str, str]):
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
        await asyncio.gather(
            agent.run('go', deps=1, **ids), agent.run('go', deps=2, deferred_tool_handler=handler(2), **ids)
        )

    asyncio.run(main())

    assert asked == {1: [1], 2: [2]}


@takes_run_id
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


@pytest.mark.layer_only
def test_run_started_by_the_host_alone_calls_no_handler():
    handler = Recorder()
    agent = make(handler)

    @agent.tool_plain(name='start')
    async def _() -> str:
        # As a realtime session does, which the host starts without `iter`.
        model = scripted([call('delete', '1')], 'done')
        async with pydantic_ai.Agent.iter(agent, 'go', model=model) as run:
            async for _ in run:
                pass
        return 'never'

    with pytest.raises(UserError, match='DeferredToolRequests'):
        agent.run_sync('go', model=scripted([call('start', '1')], 'done'))

    assert handler.asked == []
