"""Calls that leave the run, and handlers that fail."""

from typing import Any

import pytest
from pydantic_ai import (
    AgentRunResult,
    ApprovalRequired,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    RunContext,
)
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import UserError
from pydantic_ai_deferred import Agent

from .scripted import Recorder, call, returns, scripted


def stubborn(*, runs: list[str]) -> Agent[Any, Any]:
    """An agent with a tool that defers however often it is approved, and one that does not."""
    agent = Agent(scripted([call('again', '1'), call('once', '2'), call('external', '3')], 'done'))

    @agent.tool_plain
    def again() -> str:
        raise ApprovalRequired(metadata={'still': 'no'})

    @agent.tool_plain(requires_approval=True)
    def once() -> str:
        runs.append('once')
        return 'did'

    @agent.tool(requires_approval=True)
    def external(ctx: RunContext[Any]) -> str:
        raise CallDeferred

    return agent


def test_an_approved_call_that_defers_again_ends_the_run_with_just_those_calls():
    runs: list[str] = []
    handler = Recorder()

    result = stubborn(runs=runs).run_sync('go', deferred_tool_handler=handler, output_type=[str, DeferredToolRequests])

    assert isinstance(result.output, DeferredToolRequests)
    assert [part.tool_call_id for part in result.output.approvals] == ['1']
    assert [part.tool_call_id for part in result.output.calls] == ['3']
    assert result.output.metadata == {'1': {'still': 'no'}}
    assert len(handler.asked) == 1


def test_calls_that_ran_next_to_one_that_defers_again_are_kept():
    runs: list[str] = []

    result = stubborn(runs=runs).run_sync(
        'go', deferred_tool_handler=Recorder(), output_type=[str, DeferredToolRequests]
    )

    assert runs == ['once']
    assert returns(result.all_messages()) == {'2': ('did', 'success')}


def test_calls_that_deferred_again_can_be_resumed_from():
    agent = stubborn(runs=[])
    first = agent.run_sync('go', deferred_tool_handler=Recorder(), output_type=[str, DeferredToolRequests])

    second = agent.run_sync(
        message_history=first.all_messages(),
        deferred_tool_results=DeferredToolResults(approvals={'1': False}, calls={'3': 'ok'}),
    )

    assert second.output == 'done'


def test_deferring_again_without_the_output_type_says_so():
    runs: list[str] = []

    with pytest.raises(UserError, match='`DeferredToolRequests` is not among output types'):
        stubborn(runs=runs).run_sync('go', deferred_tool_handler=Recorder())

    assert runs == ['once']


@pytest.mark.parametrize(
    'message', ['broken configuration', 'an inner run lacks `DeferredToolRequests` among its output types']
)
def test_error_next_to_a_call_that_defers_again_is_raised_unchanged(message: str):
    """Also one that is worded like the host's."""
    agent = Agent(scripted([call('again', '1'), call('broken', '2')], 'done'))

    @agent.tool_plain(sequential=True)
    def again() -> str:
        raise ApprovalRequired

    @agent.tool_plain(requires_approval=True, sequential=True)
    def broken() -> str:
        raise UserError(message)

    with pytest.raises(UserError, match=f'^{message}$'):
        agent.run_sync('go', deferred_tool_handler=Recorder())


def test_exception_of_a_sync_handler_ends_the_run_unchanged():
    class Unreachable(Exception):
        pass

    error = Unreachable('nobody there')
    runs: list[str] = []

    def failing(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        raise error

    with pytest.raises(Unreachable) as raised:
        stubborn(runs=runs).run_sync('go', deferred_tool_handler=failing)

    assert raised.value is error
    assert runs == []


def test_exception_of_an_async_handler_ends_the_run_unchanged():
    error = ValueError('no answer')

    async def failing(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        raise error

    with pytest.raises(ValueError, match='no answer') as raised:
        stubborn(runs=[]).run_sync('go', deferred_tool_handler=failing)

    assert raised.value is error


def test_a_sync_handler_that_raises_stop_iteration_does_not_hang_the_run():
    def exhausted(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        return next(iter([]))

    with pytest.raises(RuntimeError, match='StopIteration'):
        stubborn(runs=[]).run_sync('go', deferred_tool_handler=exhausted)


class Recovers(AbstractCapability[Any]):
    """Gives the run an output although it failed at one of its hooks."""

    def __init__(self, at: str) -> None:
        self.at = at

    async def before_node_run(self, ctx: RunContext[Any], *, node: Any) -> Any:
        if self.at == 'node':
            raise ConnectionError
        return node

    async def before_model_request(self, ctx: RunContext[Any], request_context: Any) -> Any:
        raise ConnectionError

    async def on_run_error(self, ctx: RunContext[Any], *, error: BaseException) -> AgentRunResult[Any]:
        assert isinstance(error, ConnectionError)
        return AgentRunResult(output='recovered')


@pytest.mark.parametrize('at', ['node', 'request'])
def test_another_capability_may_recover_a_run_before_the_model_answers(at: str):
    agent = Agent(scripted('done'), deferred_tool_handler=Recorder(), capabilities=[Recovers(at)])

    assert agent.run_sync('go').output == 'recovered'
