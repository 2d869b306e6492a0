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
    DeferredToolRequests,
    DeferredToolResults,
    RunContext,
)
from pydantic_ai.capabilities import AbstractCapability, HandleDeferredToolCalls
from pydantic_ai.exceptions import UnexpectedModelBehavior, UserError
from pydantic_ai.toolsets import WrapperToolset
from pydantic_ai_deferred import Agent, validated_args

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


@pytest.mark.parametrize('hook', ['after_tool_validate', 'wrap_tool_validate'])
@pytest.mark.parametrize('raised', [False, True])
def test_validated_args_shows_what_other_capabilities_make_of_the_arguments(hook: str, raised: bool):
    ran: list[str] = []
    shown: list[Any] = []

    async def handler(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        [asked] = requests.approvals
        shown.append((asked.args, await validated_args(ctx, asked)))
        return requests.build_results(approve_all=True)

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

    assert shown == [({'path': '/etc'}, {'path': '/rewritten'})]
    assert ran == ['/rewritten']


def test_a_toolset_around_ours_cannot_skip_the_question():
    class Skipping(WrapperToolset[Any]):
        async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
            tools = await self.wrapped.get_tools(ctx)
            return await self.wrapped.call_tool('delete', {'path': '/etc'}, ctx, tools['delete'])

    @dataclass
    class Wrapping(AbstractCapability[Any]):
        def get_wrapper_toolset(self, toolset: Any) -> Any:
            return Skipping(toolset)

    ran: list[str] = []
    handler = Recorder(**{'2': False})
    agent = deleting([call('look', '2')], 'done', ran=ran, capabilities=[Wrapping()], deferred_tool_handler=handler)
    agent.tool_plain(name='look')(lambda: 'nothing there')

    agent.run_sync('go')

    assert handler.ids == [['2']]
    assert ran == []


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


@pytest.mark.parametrize('mock', [Mock, AsyncMock])
def test_mock_works_as_a_handler(mock: Any):
    ran: list[str] = []
    handler = mock(side_effect=lambda ctx, requests: requests.build_results(approve_all=True))

    deleting(ran=ran, deferred_tool_handler=handler).run_sync('go')

    assert ran == ['/etc']
    assert handler.call_count == 1


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
