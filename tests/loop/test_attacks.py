"""What an attacker, or bad luck, tries with the loop: each case once did something that nobody had approved."""

import asyncio
import contextlib
import contextvars
import threading
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import AsyncMock, Mock

import pydantic_ai
import pytest
from pydantic import BaseModel
from pydantic_ai import (
    ApprovalRequired,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    RunContext,
    ToolApproved,
    ToolDenied,
)
from pydantic_ai.capabilities import AbstractCapability, HandleDeferredToolCalls
from pydantic_ai.exceptions import UnexpectedModelBehavior, UserError
from pydantic_ai.messages import ToolReturn
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import WrapperToolset
from pydantic_ai_deferred import HandlerAgent, capability, install, lineage
from pydantic_ai_deferred.handler import run_on_loop
from pydantic_ai_deferred.run import Lifetime
from pydantic_ai_deferred.streaming import DeclaredTools

from .host import Agent, check_results
from .scripted import Gate, Recorder, call, returns, scripted

DELETE = call('delete', '1', path='/etc')


def deleting(*responses: Any, ran: list[str], **keywords: Any) -> Agent[Any, Any]:
    agent = Agent(scripted(*(responses or ([DELETE], 'done'))), **keywords)

    @agent.tool_plain(requires_approval=True)
    def delete(path: str) -> str:
        ran.append(path)
        return f'deleted {path}'

    return agent


@dataclass
class Looking(AbstractCapability[Any]):
    """Looks at the tools again while a request is under way; a declared one is gone from the second look on."""

    looks: int = 0

    async def prepare_tools(self, ctx: Any, tool_defs: Any) -> Any:
        self.looks += 1
        return tool_defs if self.looks == 1 else [each for each in tool_defs if each.name != 'delete']

    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        manager = getattr(ctx, 'tool_manager', None)
        if manager is None:
            pytest.skip('this host gives capabilities no tool manager')
        await manager.toolset.get_tools(ctx)
        return request_context


@pytest.mark.parametrize('streamed', [True, False])
def test_tools_prepared_anew_during_a_request_do_not_lose_their_declaration(streamed: bool):
    ran: list[str] = []
    handler = Recorder(**{'1': False})
    agent = deleting(ran=ran, capabilities=[Looking()], deferred_tool_handler=handler)

    async def main() -> Any:
        if not streamed:
            return (await agent.run('go')).output
        async with agent.run_stream('go') as stream:
            return await stream.get_output()

    assert asyncio.run(main()) == 'done'
    assert handler.ids == [['1']]
    assert ran == []


def starting(delegate: Any, handler: Any) -> Agent[Any, Any]:
    agent = Agent(scripted([call('delegate', 'p1')], 'done'), deferred_tool_handler=handler)
    agent.tool_plain(name='delegate')(delegate)
    return agent


@pytest.mark.layer_only
@pytest.mark.parametrize('own', [False, True], ids=['inherited', 'own handler'])
@pytest.mark.parametrize('sync', [True, False])
def test_an_answer_after_the_outer_run_was_cancelled_executes_nothing_in_a_sync_tools_thread(sync: bool, own: bool):
    ran: list[str] = []
    gate = Gate(sync=sync)
    outcomes: list[BaseException] = []
    ended = threading.Event()

    def delegate() -> str:
        keywords = {'deferred_tool_handler': gate.handler} if own else {}
        try:
            return asyncio.run(deleting(ran=ran, **keywords).run('go')).output
        except UserError as error:
            outcomes.append(error)
            raise
        finally:
            ended.set()

    async def main() -> None:
        run = asyncio.create_task(starting(delegate, gate.handler).run('go'))
        await asyncio.to_thread(gate.asked.wait, 30)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert await asyncio.to_thread(ended.wait, 30)
        gate.release.set()

    asyncio.run(main())

    assert 'The handler cannot be asked' in str(outcomes[0])
    assert ran == []


@pytest.mark.layer_only
@pytest.mark.parametrize('sync', [True, False])
def test_an_answer_after_the_outer_run_has_ended_executes_nothing_in_a_background_task(sync: bool):
    ran: list[str] = []
    gate = Gate(sync=sync)

    async def main() -> None:
        tasks: list[asyncio.Task[Any]] = []

        async def delegate() -> str:
            tasks.append(asyncio.create_task(deleting(ran=ran).run('go')))
            await asyncio.to_thread(gate.asked.wait, 30)
            return 'started'

        await starting(delegate, gate.handler).run('go')
        with pytest.raises(UserError, match='inherited from a run that has ended'):
            await tasks[0]
        gate.release.set()

    asyncio.run(main())

    assert ran == []


@pytest.mark.layer_only
def test_an_answer_after_the_sync_tool_failed_executes_nothing():
    """The thread the tool left behind asks on, although the run it belongs to has gone on without it."""
    ran: list[str] = []
    gate = Gate(sync=True)
    ended = threading.Event()

    def delegate() -> str:
        context = contextvars.copy_context()

        def run_child() -> None:
            try:
                asyncio.run(deleting(ran=ran).run('go'))
            except UserError:
                ended.set()

        threading.Thread(target=lambda: context.run(run_child)).start()
        gate.asked.wait(30)
        raise pydantic_ai.ModelRetry('too slow')

    async def main() -> None:
        result = await starting(delegate, gate.handler).run('go')
        assert returns(result.all_messages())['p1'][1] == 'retried'
        assert await asyncio.to_thread(ended.wait, 30)
        gate.release.set()

    asyncio.run(main())

    assert ran == []


@pytest.mark.layer_only
def test_cancelling_a_nested_run_cancels_its_question_and_passes():
    gate = Gate(sync=False)
    ran: list[str] = []

    async def delegate() -> str:
        task = asyncio.create_task(deleting(ran=ran).run('go'))
        await asyncio.to_thread(gate.asked.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.release.set()
        return 'gave up'

    result = asyncio.run(starting(delegate, gate.handler).run('go'))

    assert returns(result.all_messages())['p1'] == ('gave up', 'success')
    assert ran == []


def test_call_does_not_take_the_arguments_of_another_call_with_its_id():
    ran: list[str] = []
    handler = Recorder()

    class Out(BaseModel):
        value: int

    response = [
        call('send', 'same', to='/etc'),
        call('final_result', 'f', value='bad'),
        call('look', 'same', to='/tmp'),
    ]
    agent = Agent(
        scripted(response, [call('final_result', 'g', value=1)]),
        output_type=Out,
        end_strategy='graceful',
        deferred_tool_handler=handler,
    )
    agent.tool_plain(name='look')(lambda to: 'ok')

    @agent.tool
    def send(ctx: RunContext[Any], to: str) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired
        ran.append(to)
        return 'ok'

    with contextlib.suppress(UnexpectedModelBehavior):  # some hosts refuse such ids
        agent.run_sync('go')

    shown = [part.args_as_dict()['to'] for requests in handler.asked for part in requests.approvals]
    assert shown == ran


def test_deferred_calls_with_the_same_id_are_refused_before_anybody_is_asked():
    ran: list[str] = []
    handler = Recorder()
    agent = deleting([DELETE, call('delete', '1', path='/tmp')], 'done', ran=ran, deferred_tool_handler=handler)

    with pytest.raises(UnexpectedModelBehavior):
        agent.run_sync('go')

    assert handler.asked == []
    assert ran == []


@dataclass
class Rewriting(AbstractCapability[Any]):
    """Changes the path where `hook` says."""

    hook: str

    async def after_tool_validate(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        return {**args, 'path': '/rewritten'} if self.hook == 'after_tool_validate' else args

    async def wrap_tool_validate(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        validated = await handler(args)
        return {**validated, 'path': '/rewritten'} if self.hook == 'wrap_tool_validate' else validated

    async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        return {**args, 'path': '/rewritten'} if self.hook == 'before_tool_execute' else args


@pytest.mark.parametrize(
    ('hook', 'raised'),
    [
        ('after_tool_validate', False),
        ('after_tool_validate', True),
        ('wrap_tool_validate', False),
        ('wrap_tool_validate', True),
        ('before_tool_execute', True),
    ],
)
def test_handler_sees_arguments_as_changed_by_other_capabilities(hook: str, raised: bool):
    ran: list[str] = []
    handler = Recorder()
    agent = deleting(ran=ran, capabilities=[Rewriting(hook)], deferred_tool_handler=handler)
    if raised:
        agent = Agent(scripted([DELETE], 'done'), capabilities=[Rewriting(hook)], deferred_tool_handler=handler)

        @agent.tool
        def delete(ctx: RunContext[Any], path: str) -> str:
            if not ctx.tool_call_approved:
                raise ApprovalRequired
            ran.append(path)
            return 'deleted'

    agent.run_sync('go')

    assert handler.asked[0].approvals[0].args == {'path': '/rewritten'}
    assert ran == ['/rewritten']


@pytest.mark.layer_only
def test_a_wrapper_goes_before_the_handler_a_stock_agent_was_built_with_under_install():
    approving, refusing = Recorder(), Recorder(**{'1': False})
    with install():
        stock: Any = pydantic_ai.Agent(scripted([DELETE], 'done'), deferred_tool_handler=approving)  # type: ignore
        stock.tool_plain(name='delete', requires_approval=True)(lambda path: path)

    HandlerAgent(stock, deferred_tool_handler=refusing).run_sync('go')

    assert approving.asked == []
    assert refusing.ids == [['1']]


@pytest.mark.layer_only
def test_leaving_an_inner_install_leaves_the_outer_one_in_force():
    handler = Recorder()
    stock: Any = pydantic_ai.Agent(scripted([DELETE], 'done'))
    stock.tool_plain(name='delete', requires_approval=True)(lambda path: path)

    with install():
        with install(nesting=True):
            stock.run_sync('go', deferred_tool_handler=handler)
        stock.run_sync('go', deferred_tool_handler=handler)
    with pytest.raises((TypeError, UserError)):
        stock.run_sync('go', deferred_tool_handler=handler)

    assert len(handler.asked) == 2


def test_handler_cannot_change_results_after_returning_them():
    requests = DeferredToolRequests(
        approvals=[call('a', '1'), call('b', '2')], calls=[call('c', '3'), call('d', '4'), call('e', '5')]
    )
    approved, denied, listed, returned = ToolApproved(), ToolDenied('no'), ['x'], ToolReturn(['y'])
    results = DeferredToolResults(approvals={'1': approved, '2': denied}, calls={'3': listed, '4': returned, '5': 5})

    taken = check_results(requests, results)
    approved.override_args = {'path': 'evil'}
    denied.message = 'evil'
    listed.append('evil')
    returned.return_value.append('evil')

    assert taken.approvals == {'1': ToolApproved(), '2': ToolDenied('no')}
    assert taken.calls == {'3': ['x'], '4': ToolReturn(['y']), '5': 5}


def test_a_tool_called_by_a_capability_before_a_request_is_asked_about():
    handler = Recorder()

    @dataclass
    class Calling(AbstractCapability[Any]):
        results: list[Any]

        async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
            manager = getattr(ctx, 'tool_manager', None)
            if manager is None:
                pytest.skip('this host gives capabilities no tool manager')
            if not self.results:
                self.results.append(await manager.handle_call(call('delete', 'n1', path='/tmp')))
            return request_context

    results: list[Any] = []
    agent = deleting('done', ran=[], capabilities=[Calling(results)], deferred_tool_handler=handler)

    agent.run_sync('go')

    assert handler.ids == [['n1']]
    assert results == ['deleted /tmp']


def test_a_run_that_does_not_stream_shows_other_capabilities_the_declared_kinds():
    kinds: list[str] = []

    @dataclass
    class Looking_(AbstractCapability[Any]):
        async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
            if not hasattr(request_context, 'streaming'):
                pytest.skip('this host does not say whether a request streams')
            kinds.extend(each.kind for each in request_context.model_request_parameters.function_tools)
            return request_context

    deleting('done', ran=[], capabilities=[Looking_()], deferred_tool_handler=Recorder()).run_sync('go')

    assert kinds == ['unapproved']


@pytest.mark.parametrize('mock', [Mock, AsyncMock])
def test_mock_works_as_a_handler(mock: Any):
    ran: list[str] = []
    handler = mock(side_effect=lambda ctx, requests: requests.build_results(approve_all=True))

    deleting(ran=ran, deferred_tool_handler=handler).run_sync('go')

    assert ran == ['/etc']
    assert handler.call_count == 1


@pytest.mark.layer_only
def test_around_execute_that_is_not_a_coroutine_function_is_refused():
    class Sync(Recorder):
        def around_execute(self, ctx: Any, call: Any, args: Any, run: Any) -> Any:
            raise AssertionError

    with pytest.raises(UserError, match=r'Sync\.around_execute.* must be'):
        Agent(scripted('done'), deferred_tool_handler=Sync())


@pytest.mark.layer_only
def test_lineage_is_the_same_in_hooks_wrappers_and_the_tool_inside_around_execute():
    class Around(Recorder):
        async def around_execute(self, ctx: Any, call: Any, args: Any, run: Any) -> Any:
            seen['around_execute'] = lineage()
            return await run(args)

    class Noting(WrapperToolset[Any]):
        async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
            seen['wrapper'] = lineage()
            return await super().call_tool(name, tool_args, ctx, tool)

    @dataclass
    class Wrapping(AbstractCapability[Any]):
        def get_wrapper_toolset(self, toolset: Any) -> Any:
            return Noting(toolset)

    seen: dict[str, Any] = {}
    agent = Agent(scripted([call('tool', '1')], 'done'), capabilities=[Wrapping()], deferred_tool_handler=Around())

    @agent.tool_plain(requires_approval=True)
    def tool() -> str:
        seen['tool'] = lineage()
        return 'ok'

    agent.run_sync('go')

    assert {where: [level.tool_call_id for level in levels] for where, levels in seen.items()} == {
        'wrapper': ['1'],
        'around_execute': ['1'],
        'tool': ['1'],
    }


@pytest.mark.layer_only
def test_around_execute_runs_on_the_outermost_loop_and_the_tool_on_its_own():
    loops: dict[str, Any] = {}

    class Around(Recorder):
        async def around_execute(self, ctx: Any, call: Any, args: Any, run: Any) -> Any:
            loops['around'] = asyncio.get_running_loop()
            return await run(args)

    child = Agent(scripted([call('tool', '1')], 'child done'))

    @child.tool_plain(requires_approval=True)
    async def tool() -> str:
        loops['tool'] = asyncio.get_running_loop()
        return 'ok'

    def delegate() -> str:
        async def run() -> str:
            loops['child'] = asyncio.get_running_loop()
            return (await child.run('go')).output

        return asyncio.run(run())

    async def main() -> None:
        loops['outermost'] = asyncio.get_running_loop()
        await starting(delegate, Around()).run('go')

    asyncio.run(main())

    assert loops['around'] is loops['outermost']
    assert loops['tool'] is loops['child']
    assert loops['child'] is not loops['outermost']


@pytest.mark.layer_only
def test_a_question_to_a_loop_that_does_not_run_is_an_error():
    loop = asyncio.new_event_loop()

    async def main() -> None:
        with pytest.raises(UserError, match='has ended'):
            await run_on_loop(loop, lambda: asyncio.sleep(0))

    asyncio.run(main())
    loop.close()


@pytest.mark.layer_only
def test_a_question_whose_loop_ends_first_is_an_error_and_a_cancelled_one_is_cancelled():
    started = threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []
    stops: list[asyncio.Event] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        stops.append(asyncio.Event())
        started.set()
        await stops[0].wait()

    async def never() -> None:
        asked.set()
        await asyncio.Event().wait()

    asked = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    started.wait(30)

    async def main() -> None:
        cancelled = asyncio.create_task(run_on_loop(loops[0], never))
        await asyncio.to_thread(asked.wait, 30)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        asked.clear()
        waiting = asyncio.create_task(run_on_loop(loops[0], never))
        await asyncio.to_thread(asked.wait, 30)
        loops[0].call_soon_threadsafe(stops[0].set)
        with pytest.raises(UserError, match='was not answered'):
            await waiting

    asyncio.run(main())
    thread.join(30)


@pytest.mark.layer_only
def test_ended_lifetime_cancels_new_watchers():
    async def main() -> bool:
        lifetime = Lifetime()
        lifetime.end()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        lifetime.watch(future)()
        return future.cancelled()

    assert asyncio.run(main())


@pytest.mark.layer_only
def test_a_lifetime_ends_although_the_loop_of_a_watcher_is_closed():
    lifetime = Lifetime()

    async def main() -> None:
        lifetime.watch(asyncio.get_running_loop().create_future())

    asyncio.run(main())
    lifetime.end()

    assert lifetime.is_over


@pytest.mark.layer_only
def test_ids_repeated_in_one_question_are_refused():
    """Newer hosts refuse them before anybody is asked; older ones would let one answer stand for two calls."""
    with pytest.raises(UnexpectedModelBehavior, match=r"calls in one response: 'delete' .*'1'.*, 'send' .*'1'"):
        capability._refuse_repeated_ids([call('delete', '1'), call('other', '2'), call('send', '1')])


@pytest.mark.layer_only
@pytest.mark.parametrize(('kind', 'refusal'), [('unapproved', ApprovalRequired), ('external', CallDeferred)])
def test_a_declared_tool_is_refused_in_and_out_of_its_disguise(kind: Any, refusal: Any):
    declared = DeclaredTools()
    [definition] = declared.own([ToolDefinition(name='tool', kind=kind)])
    request: Any = Mock(model_request_parameters=ModelRequestParameters(function_tools=[definition]))

    with declared.disguised(request):
        assert definition.kind == 'function'
        with pytest.raises(refusal):
            declared.refuse(definition)
    assert definition.kind == kind
    with pytest.raises(refusal):
        declared.refuse(definition)


def test_definitions_copied_by_another_capability_are_disguised_in_the_request_alone():
    class Copying(WrapperToolset[Any]):
        async def get_tools(self, ctx: Any) -> Any:
            tools = await super().get_tools(ctx)
            return {name: replace(tool, tool_def=replace(tool.tool_def)) for name, tool in tools.items()}

    @dataclass
    class Wrapping(AbstractCapability[Any]):
        def get_wrapper_toolset(self, toolset: Any) -> Any:
            return Copying(toolset)

    ran: list[str] = []
    handler = Recorder(**{'1': False})
    agent = deleting(ran=ran, capabilities=[Wrapping()], deferred_tool_handler=handler)

    async def main() -> Any:
        async with agent.run_stream('go') as stream:
            return await stream.get_output()

    assert asyncio.run(main()) == 'done'
    assert handler.ids == [['1']]
    assert ran == []


def test_a_call_that_another_capability_approved_may_defer_again():
    agent = Agent(scripted([call('again', '1')], 'done'), output_type=[str, DeferredToolRequests])
    agent.tool_plain(name='again')(defer)
    approving = HandleDeferredToolCalls(lambda ctx, requests: requests.build_results(approve_all=True))

    result = agent.run_sync('go', capabilities=[approving], deferred_tool_handler=Recorder())

    assert isinstance(result.output, DeferredToolRequests)


def defer() -> str:
    raise ApprovalRequired
