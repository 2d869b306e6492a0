"""`around_execute`: handlers that wrap the execution of approved calls."""

import asyncio
from functools import partial
from typing import Any

import pytest
from pydantic_ai import DeferredToolRequests, DeferredToolResults, ModelRetry, RunContext, ToolApproved, ToolDenied
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.exceptions import UserError
from pydantic_ai_deferred import Agent, lineage

from .scripted import Recorder, call, returns, scripted

pytestmark = pytest.mark.layer_only


class Around(Recorder):
    """Notes what executes; `change` replaces the arguments, `refuse` the execution."""

    def __init__(self, change: Any = None, refuse: Any = None, **results: Any) -> None:
        super().__init__(**results)
        self.change = change
        self.refuse = refuse
        self.executed: list[tuple[str, Any, dict[str, Any]]] = []

    async def around_execute(self, ctx: RunContext[Any], call: Any, args: dict[str, Any], run: Any) -> Any:
        self.executed.append((call.tool_call_id, call.args, dict(args)))
        if self.refuse is not None:
            raise self.refuse
        return f'<{await run(self.change or args)}>'


def make(*responses: Any, **keywords: Any) -> Agent[Any, Any]:
    agent = Agent(scripted(*responses), **keywords)

    @agent.tool_plain(requires_approval=True)
    def delete(path: str, force: bool = False) -> str:
        return f'{path} {force}'

    @agent.tool_plain
    def read() -> str:
        return 'content'

    return agent


A = call('delete', '1', path='a')
OVERRIDDEN = {'1': ToolApproved(override_args={'path': 'b'})}


EXECUTIONS: dict[str, Any] = {
    'defaults': (Around, [[A]], [('1', {'path': 'a'}, {'path': 'a', 'force': False})], '<a False>'),
    'overridden arguments': (
        partial(Around, **OVERRIDDEN),
        [[A]],
        [('1', {'path': 'b'}, {'path': 'b', 'force': False})],
        '<b False>',
    ),
    'arguments changed while executing': (
        partial(Around, change={'path': 'z', 'force': True}),
        [[A]],
        [('1', {'path': 'a'}, {'path': 'a', 'force': False})],
        '<z True>',
    ),
    'not for denied or undeferred calls': (
        partial(Around, **{'1': ToolDenied('no')}),
        [[A, call('read', '2')]],
        [],
        'no',
    ),
}


@pytest.mark.parametrize(('make_handler', 'responses', 'executed', 'told'), EXECUTIONS.values(), ids=EXECUTIONS)
def test_around_execute_gets_the_arguments_and_gives_the_result(
    make_handler: Any, responses: Any, executed: Any, told: str
):
    handler = make_handler()

    result = make(*responses, 'done').run_sync('go', deferred_tool_handler=handler)

    assert handler.executed == executed
    assert returns(result.all_messages())['1'] == (told, 'success' if executed else 'denied')


class AroundResumed(Around):
    wraps_resumed = True


@pytest.mark.parametrize(('kind', 'executed'), [(Around, []), (AroundResumed, ['1'])])
def test_around_execute_wraps_calls_approved_before_the_run_if_its_class_asks_for_it(kind: Any, executed: list[str]):
    agent = make([call('delete', '1', path='a'), call('delete', '2', path='b')], 'done')
    first = agent.run_sync('go', output_type=[str, DeferredToolRequests])
    assert isinstance(first.output, DeferredToolRequests)
    handler = kind()

    result = agent.run_sync(
        message_history=first.all_messages(),
        deferred_tool_results=DeferredToolResults(approvals={'1': True, '2': ToolDenied('no')}),
        deferred_tool_handler=handler,
    )

    assert [each[0] for each in handler.executed] == executed
    assert returns(result.all_messages()) == {
        '1': ('<a False>' if executed else 'a False', 'success'),
        '2': ('no', 'denied'),
    }


@pytest.mark.parametrize('kind', [Around, AroundResumed])
def test_around_execute_is_not_called_for_approvals_of_another_capability(kind: Any):
    handler = kind()
    approving = HandleDeferredToolCalls(lambda ctx, requests: requests.build_results(approve_all=True))

    make([A], 'done', capabilities=[approving]).run_sync('go', deferred_tool_handler=handler)

    assert handler.executed == []


def test_an_id_that_a_later_response_repeats_is_not_taken_for_the_approved_call():
    handler = Around()
    agent = make([A], [call('read', '1')], 'done')

    agent.run_sync('go', deferred_tool_handler=handler)

    assert [executed[0] for executed in handler.executed] == ['1']


def test_around_execute_can_refuse_with_a_retry():
    handler = Around(refuse=ModelRetry('the file has changed since'))

    result = make([A], 'done').run_sync('go', deferred_tool_handler=handler)

    content, outcome = returns(result.all_messages())['1']
    assert outcome == 'retried'
    assert 'the file has changed since' in str(content)


def test_around_execute_is_the_innermost_hook():
    from dataclasses import dataclass

    from pydantic_ai.capabilities import AbstractCapability

    @dataclass
    class Changing(AbstractCapability[Any]):
        async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
            return {**args, 'path': 'changed by a hook'}

    handler = Around()

    make([A], 'done', capabilities=[Changing()]).run_sync('go', deferred_tool_handler=handler)

    assert handler.executed[0][2]['path'] == 'changed by a hook'


def test_around_execute_of_an_inherited_handler_wraps_the_childs_tools():
    handler = Around()
    child = make([call('delete', 'c1', path='a')], 'child done')
    parent = Agent(scripted([call('delegate', 'p1')], 'done'))

    @parent.tool_plain
    async def delegate() -> str:
        return (await child.run('go')).output

    parent.run_sync('go', deferred_tool_handler=handler)

    assert [executed[0] for executed in handler.executed] == ['c1']


def test_a_run_inside_the_tool_is_nested_in_it_and_one_inside_around_execute_inherits_nothing():
    levels: list[Any] = []
    handler = Around()
    outer = Agent(scripted([call('work', '1')], 'done'))

    @outer.tool_plain(requires_approval=True)
    async def work() -> str:
        levels.append([level.tool_call_id for level in lineage()])
        return (await make([call('delete', 'c1', path='a')], 'child done').run('go')).output

    outer.run_sync('go', deferred_tool_handler=handler)

    class Reviewing(Recorder):
        async def around_execute(self, ctx: Any, call_: Any, args: Any, run: Any) -> Any:
            return await make([call('delete', 'r1', path='a')], 'reviewed').run('review')

    with pytest.raises(UserError, match='DeferredToolRequests'):
        outer.run_sync('go', deferred_tool_handler=Reviewing())
    assert levels == [['1']]
    assert [executed[0] for executed in handler.executed] == ['1', 'c1']


def test_parallel_executions_are_wrapped_concurrently():
    together = asyncio.Barrier(2)

    class Meeting(Recorder):
        async def around_execute(self, ctx: Any, call: Any, args: Any, run: Any) -> Any:
            await asyncio.wait_for(together.wait(), timeout=5)
            return await run(args)

    agent = make([call('delete', '1', path='a'), call('delete', '2', path='b')], 'done')

    assert asyncio.run(agent.run('go', deferred_tool_handler=Meeting())).output == 'done'
