"""Runs inside tools: who is asked for them, what lineage says, and when nobody may be asked."""

import asyncio
import contextvars
from contextlib import nullcontext
from typing import Any

import pydantic_ai
import pytest
from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.exceptions import UserError
from pydantic_ai_deferred import Agent, DeferredToolHandler, LineageLevel, install, lineage

from .scripted import Recorder, call, returns, scripted


def child(handler: Any = None, kind: Any = Agent, **keywords: Any) -> Any:
    """An agent that deletes something and is done."""
    if handler is not None:
        keywords['deferred_tool_handler'] = handler
    agent = kind(scripted([call('delete', 'c1')], 'child done'), name='child', **keywords)
    agent.tool_plain(name='delete', requires_approval=True)(lambda: 'deleted')
    return agent


STOCK = child(kind=pydantic_ai.Agent)


def parent(run_child: Any, handler: Any = None, *, calls: int = 1, **keywords: Any) -> Agent[Any, Any]:
    """An agent with a tool `delegate` that runs another one."""
    response = [call('delegate', f'p{i}') for i in range(calls)]
    agent = Agent(scripted(response, 'done'), name='parent', deferred_tool_handler=handler, **keywords)
    agent.tool(name='delegate')(run_child)
    return agent


def delegating(agent: Any, **keywords: Any) -> Any:
    async def delegate(ctx: RunContext[Any]) -> str:
        return str((await agent.run('go', **keywords)).output)

    return delegate


class Watching(Recorder):
    """Keeps the lineage of each question as well."""

    def __init__(self, **results: Any) -> None:
        super().__init__(**results)
        self.lineages: list[tuple[LineageLevel, ...]] = []

    def __call__(self, ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        self.lineages.append(lineage())
        return super().__call__(ctx, requests)


class AsyncWatching(Watching):
    """The same, as a coroutine function; keeps the loop it ran on."""

    loops: list[Any]

    async def __call__(  # type: ignore[override]
        self, ctx: RunContext[Any], requests: DeferredToolRequests
    ) -> DeferredToolResults:
        self.loops = [*getattr(self, 'loops', []), asyncio.get_running_loop()]
        return super().__call__(ctx, requests)


@pytest.mark.parametrize('kind', [Watching, AsyncWatching])
def test_a_childs_calls_reach_the_parents_handler_with_their_lineage(kind: Any):
    handler = kind()

    result = parent(delegating(child()), handler).run_sync('go')

    assert returns(result.all_messages()) == {'p0': ('child done', 'success')}
    [level] = handler.lineages[0]
    assert (level.agent_name, level.tool_name, level.tool_call_id) == ('parent', 'delegate', 'p0')
    assert handler.contexts[0].run_id != level.run_id
    assert handler.contexts[0].agent is not None
    assert handler.contexts[0].agent.name == 'child'


def test_a_denial_reaches_the_child_and_its_run_goes_on():
    handler = Recorder(c1=False)

    result = parent(delegating(child()), handler).run_sync('go')

    assert result.output == 'done'
    assert returns(result.all_messages()) == {'p0': ('child done', 'success')}


@pytest.mark.parametrize(
    ('agent', 'inherit'),
    [
        pytest.param(child(), False, id='the handler is not for nested runs'),
        pytest.param(STOCK, True, id='a stock agent'),
        pytest.param(child(output_type=[str, DeferredToolRequests]), True, id='its caller takes deferred calls'),
    ],
)
def test_a_child_does_not_inherit(agent: Any, inherit: bool):
    above = Recorder()

    async def delegate(ctx: RunContext[Any]) -> str:
        with nullcontext() if agent.output_type is not str else pytest.raises(UserError, match='DeferredToolRequests'):
            result = await agent.run('go')
            assert isinstance(result.output, DeferredToolRequests)
        return 'not run'

    parent(delegate, DeferredToolHandler(above, inherit=inherit)).run_sync('go')

    assert above.asked == []


def test_a_stock_child_inherits_under_install():
    handler = Recorder()

    with install():
        parent(delegating(STOCK), handler).run_sync('go')

    assert handler.ids == [['c1']]


def test_a_grandchilds_calls_reach_the_outermost_handler():
    handler = Watching()
    middle = Agent(scripted([call('delegate', 'm1')], 'middle done'), name='middle')
    middle.tool(name='delegate')(delegating(child()))

    parent(delegating(middle), handler).run_sync('go')

    assert [(level.agent_name, level.tool_call_id) for level in handler.lineages[0]] == [
        ('parent', 'p0'),
        ('middle', 'm1'),
    ]


def test_lineage_is_empty_for_the_outermost_run_and_outside_of_any():
    handler = Watching()

    child(handler).run_sync('go')

    assert handler.lineages == [()]
    assert lineage() == ()


def test_a_tool_sees_the_lineage_that_ends_with_itself():
    seen: list[Any] = []
    agent = Agent(scripted([call('look', 'l1')], 'done'), name='looking', deferred_tool_handler=Recorder())
    agent.tool_plain(name='look')(lambda: seen.append(lineage()))

    agent.run_sync('go')

    assert [(level.agent_name, level.tool_call_id) for level in seen[0]] == [('looking', 'l1')]


def test_a_stock_agent_between_ours_passes_the_handler_on():
    handler = Recorder()
    stock = pydantic_ai.Agent(scripted([call('delegate', 's1')], 'stock done'))
    stock.tool(name='delegate')(delegating(child()))

    parent(delegating(stock), handler).run_sync('go')

    assert handler.ids == [['c1']]


def test_a_child_with_a_handler_of_its_own_uses_it():
    own, above, run = Recorder(), Recorder(), Recorder()

    parent(delegating(child(own)), above).run_sync('go')
    parent(delegating(child(own), deferred_tool_handler=run), above).run_sync('go')

    assert (own.ids, above.ids, run.ids) == ([['c1']], [], [['c1']])


def test_a_child_that_stops_and_resumes_does_not_inherit():
    above = Recorder()
    agent = child(output_type=[str, DeferredToolRequests])

    result = parent(delegating(agent), above).run_sync('go')

    assert above.asked == []
    assert 'DeferredToolRequests' in str(returns(result.all_messages())['p0'][0])


def test_a_child_that_is_run_to_stop_does_not_inherit():
    above = Recorder()

    parent(delegating(child(), output_type=str | DeferredToolRequests), above).run_sync('go')

    assert above.asked == []


def test_a_child_that_stops_uses_a_handler_it_is_given():
    own = Recorder()

    parent(delegating(child(own, output_type=[str, DeferredToolRequests])), Recorder()).run_sync('go')

    assert own.ids == [['c1']]


def test_a_grandchild_below_a_child_that_stops_still_reaches_the_handler():
    handler = Recorder()
    middle = Agent(scripted([call('delegate', 'm1')], 'done'), output_type=[str, DeferredToolRequests])
    middle.tool(name='delegate')(delegating(child()))

    parent(delegating(middle), handler).run_sync('go')

    assert handler.ids == [['c1']]


def test_parallel_children_ask_concurrently():
    together = asyncio.Barrier(3)

    async def handler(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        await asyncio.wait_for(together.wait(), timeout=5)
        return requests.build_results(approve_all=True)

    result = asyncio.run(parent(delegating(child()), handler, calls=3).run('go'))

    assert set(returns(result.all_messages())) == {'p0', 'p1', 'p2'}


def test_children_gathered_in_one_tool_each_reach_the_handler():
    handler = Recorder()

    async def delegate(ctx: RunContext[Any]) -> str:
        return str([run.output for run in await asyncio.gather(*(child().run('go') for _ in range(3)))])

    parent(delegate, handler).run_sync('go')

    assert handler.ids == [['c1']] * 3


@pytest.mark.parametrize('kind', [Watching, AsyncWatching])
def test_a_child_on_a_loop_of_its_own_in_a_sync_tools_thread_reaches_the_handler(kind: Any):
    handler = kind()
    loops: list[Any] = []

    def delegate(ctx: RunContext[Any]) -> str:
        return asyncio.run(child().run('go')).output

    async def main() -> Any:
        loops.append(asyncio.get_running_loop())
        return await parent(delegate, handler).run('go')

    result = asyncio.run(main())

    assert returns(result.all_messages()) == {'p0': ('child done', 'success')}
    assert [level.tool_call_id for level in handler.lineages[0]] == ['p0']
    if kind is AsyncWatching:
        assert handler.loops == loops


def test_an_agent_inside_a_handler_inherits_nothing():
    async def handler(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        await child().run('review')
        return requests.build_results(approve_all=True)

    with pytest.raises(UserError, match='DeferredToolRequests'):
        child(handler).run_sync('go')


def test_an_agent_inside_a_sync_handler_inherits_nothing():
    def handler(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        asyncio.run(child().run('review'))
        return requests.build_results(approve_all=True)

    with pytest.raises(UserError, match='DeferredToolRequests'):
        parent(delegating(child()), handler).run_sync('go')


def test_a_background_task_that_outlives_the_run_gets_a_clear_error():
    async def main() -> None:
        tasks: list[asyncio.Task[Any]] = []
        go = asyncio.Event()

        async def later() -> Any:
            await go.wait()
            return await child().run('go')

        async def delegate(ctx: RunContext[Any]) -> str:
            tasks.append(asyncio.create_task(later()))
            return 'started'

        await parent(delegate, Recorder()).run('go')
        go.set()
        with pytest.raises(UserError, match=r"about 'delete': .*inherited from a run that has ended"):
            await tasks[0]

    asyncio.run(main())


def test_a_child_that_started_before_the_run_ended_is_refused_as_well():
    async def main() -> None:
        tasks: list[asyncio.Task[Any]] = []
        started, go = asyncio.Event(), asyncio.Event()
        agent = Agent(scripted([call('wait', 'w1')], [call('delete', 'c1')], 'done'))
        agent.tool_plain(name='delete', requires_approval=True)(lambda: 'deleted')

        @agent.tool_plain
        async def wait() -> str:
            started.set()
            await go.wait()
            return 'waited'

        async def delegate(ctx: RunContext[Any]) -> str:
            tasks.append(asyncio.create_task(agent.run('go')))
            await started.wait()
            return 'started'

        await parent(delegate, Recorder()).run('go')
        go.set()
        with pytest.raises(UserError, match='inherited from a run that has ended'):
            await tasks[0]

    asyncio.run(main())


def test_a_background_task_may_ask_while_the_run_lives():
    handler = Recorder()

    async def main() -> Any:
        tasks: list[asyncio.Task[Any]] = []
        agent = Agent(scripted([call('start', 's')], [call('join', 'j')], 'done'), deferred_tool_handler=handler)

        @agent.tool_plain
        async def start() -> str:
            tasks.append(asyncio.create_task(child().run('go')))
            return 'started'

        @agent.tool_plain
        async def join() -> str:
            return (await tasks[0]).output

        return await agent.run('go')

    result = asyncio.run(main())

    assert returns(result.all_messages())['j'] == ('child done', 'success')


def test_a_task_that_outlives_the_loop_of_its_run_can_start_runs_of_its_own():
    contexts: list[contextvars.Context] = []
    agent = Agent(scripted([call('keep', 'k')], 'done'))
    agent.tool_plain(name='keep')(lambda: contexts.append(contextvars.copy_context()))
    asyncio.run(agent.run('go'))
    handler = AsyncWatching()

    result = contexts[0].run(lambda: asyncio.run(child(handler).run('go')))

    assert result.output == 'child done'
    assert len(handler.asked) == 1


def test_a_nested_tool_call_of_code_mode_reaches_the_handler():
    handler = Watching()
    agent = child(handler)

    @agent.tool
    async def code(ctx: RunContext[Any]) -> str:
        manager: Any = getattr(ctx, 'tool_manager', None)
        if manager is None:
            pytest.skip('this host gives tools no tool manager')
        return str(await manager.handle_call(call('delete', 'n1')))

    result = agent.run_sync('go', model=scripted([call('code', 'k1')], 'done'))

    assert handler.ids == [['n1']]
    assert [level.tool_call_id for level in handler.lineages[0]] == ['k1']
    assert returns(result.all_messages()) == {'k1': ('deleted', 'success')}


def test_a_thread_that_outlives_its_tool_call_gets_a_clear_error():
    contexts: list[contextvars.Context] = []

    def delegate(ctx: RunContext[Any]) -> str:
        contexts.append(contextvars.copy_context())
        return 'started'

    asyncio.run(parent(delegate, Recorder()).run('go'))

    with pytest.raises(UserError, match='the tool call that started this nested run has ended'):
        contexts[0].run(lambda: asyncio.run(child().run('go')))
