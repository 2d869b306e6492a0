"""An invalid answer of a handler is an error, and no call runs."""

import re
from typing import Any

import pytest
from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext, ToolApproved, ToolDenied
from pydantic_ai.exceptions import UserError
from pydantic_ai_deferred import carry_metadata

from .scripted import Recorder, call, scripted
from .test_one_response import office

RESPONSE = [
    call('delete', '1', path='a'),
    call('send', '2', to='ada'),
    call('elsewhere', '3'),
    call('ship', '4', item='x'),
]


def answers(approvals: Any = None, calls: Any = None, **others: Any) -> DeferredToolResults:
    return DeferredToolResults(
        approvals={'1': True, '2': True} if approvals is None else approvals,
        calls={'3': 'ok', '4': 'ok'} if calls is None else calls,
        **others,
    )


WRONG = [
    (None, r"nothing \(`None`\) instead of `DeferredToolResults`. Not executed: .*'delete' \(tool_call_id '1'\)"),
    ({'1': True}, 'a value of type `dict`'),
    (answers(approvals={'1': True}), r"'send' \(tool_call_id '2'\) awaits approval and has no result"),
    (answers(calls={'3': 'ok'}), r"'ship' \(tool_call_id '4'\) is an external call and has no result"),
    (answers(approvals={}, calls={}), "'elsewhere'"),
    (answers(approvals={'1': True, '2': True, '9': True}), r"`results.approvals` names '9', which is not a deferred"),
    (answers(calls={'3': 1, '4': 1, '9': 1}), r"`results.calls` names '9'"),
    (answers(metadata={'9': {}}), r"`results.metadata` names '9'"),
    (answers(approvals={'1': True, '2': True, '3': True}), r"'elsewhere' \(tool_call_id '3'\) is an external call"),
    (answers(calls={'3': 1, '4': 1, '1': 1}), r"'delete' \(tool_call_id '1'\) awaits approval: answer it in"),
    (answers(approvals={'1': 1, '2': True}), r"'delete' \(tool_call_id '1'\) was answered with a value of type `int`"),
    (answers(approvals={'1': 'yes', '2': True}), 'a value of type `str`'),
    (answers(approvals={'1': None, '2': True}), r'nothing \(`None`\)'),
    (answers(approvals={'1': ToolApproved(override_args='{}'), '2': True}), '`override_args` is a value of type `str`'),
    (answers(approvals={'1': ToolDenied(message=None), '2': True}), r'the message is nothing \(`None`\)'),
    (answers(calls={'3': ToolApproved(), '4': 1}), r"'elsewhere' .* cannot be approved or denied"),
    (answers(calls={'3': 1, '4': ToolDenied('no')}), r"'ship' .* cannot be approved or denied"),
    (answers(approvals=[]), '`results.approvals` is a value of type `list`'),
    (answers(metadata={'1': 'note'}), r"`results.metadata\['1'\]` is a value of type `str`"),
    (answers(metadata=None), r'`results.metadata` is nothing'),
]


@pytest.mark.parametrize(('answer', 'problem'), WRONG)
def test_a_wrong_answer_names_the_call_and_nothing_has_run(answer: Any, problem: str):
    agent = office(RESPONSE, 'done')

    with pytest.raises(UserError, match=problem) as raised:
        agent.run_sync('go', deferred_tool_handler=lambda ctx, requests: answer)

    [not_executed] = re.findall('(?m)Not executed: (.*)', str(raised.value))
    assert [f"tool_call_id '{each}'" in not_executed for each in '1234'] == [True] * 4
    assert agent.log == []


@pytest.mark.parametrize('answer', [None, DeferredToolResults()])
def test_an_error_names_the_calls_that_did_not_run_and_not_those_that_did(answer: Any):
    agent = office([call('read', '1', path='a'), call('delete', '2', path='b')], 'done')

    with pytest.raises(UserError, match=r"Not executed: 'delete' \(tool_call_id '2'\)\.") as raised:
        agent.run_sync('go', deferred_tool_handler=lambda ctx, requests: answer)

    assert 'Nothing' not in str(raised.value)
    assert agent.log == ['read a']


def test_every_problem_is_named_at_once():
    agent = office(RESPONSE, 'done')

    with pytest.raises(UserError) as raised:
        agent.run_sync('go', deferred_tool_handler=lambda ctx, requests: answers(approvals={'9': True}, calls={}))

    assert str(raised.value).count('\n- ') == 5


def test_an_unknown_answerer_is_refused():
    if not hasattr(DeferredToolResults(), 'answered_by'):
        pytest.skip('answered_by came with pydantic-ai-slim 2.x')
    agent = office(RESPONSE, 'done')

    with pytest.raises(UserError, match=r"`results.answered_by` names '9'"):
        agent.run_sync('go', deferred_tool_handler=lambda ctx, requests: answers(answered_by={'9': 'ada'}))


def test_an_approval_the_host_handled_first_is_not_ours_to_answer():
    from pydantic_ai.capabilities import HandleDeferredToolCalls

    def first(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        return DeferredToolResults(approvals={'1': ToolDenied('by the host')})

    handler = Recorder()
    agent = office(RESPONSE, 'done', capabilities=[HandleDeferredToolCalls(first)])

    agent.run_sync('go', deferred_tool_handler=handler)

    assert handler.ids == [['2', '3', '4']]
    assert agent.log == ['send ada']


def test_a_tool_sees_only_the_metadata_of_the_results():
    seen: list[Any] = []
    agent = office(RESPONSE[1:2], 'done')
    agent.tool(name='look', requires_approval=True)(lambda ctx: seen.append(ctx.tool_call_metadata))
    model = scripted([call('look', '1'), call('look', '2')], 'done')

    def handler(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        return requests.build_results(approve_all=True, metadata={'1': {'by': 'ada'}})

    agent.run_sync('go', model=model, deferred_tool_handler=handler)

    assert sorted(seen, key=str) == [None, {'by': 'ada'}]


@pytest.mark.layer_only
def test_carry_metadata_copies_what_the_results_do_not_set():
    requests = DeferredToolRequests(
        approvals=RESPONSE[:2], calls=RESPONSE[2:3], metadata={'1': {'a': 1, 'b': 1}, '2': {'c': 1}, '3': {'d': 1}}
    )
    results = DeferredToolResults(approvals={'1': True}, calls={'3': 'ok'}, metadata={'1': {'b': 2}})

    carried = carry_metadata(requests, results)

    assert carried is results
    assert results.metadata == {'1': {'a': 1, 'b': 2}, '3': {'d': 1}}


def test_metadata_that_cannot_be_deep_copied_reaches_the_handler():
    import threading

    from pydantic_ai import ApprovalRequired

    lock = threading.Lock()
    handler = Recorder()
    agent = office([call('locked', '1')], 'done')

    @agent.tool
    def locked(ctx: RunContext[Any]) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={'lock': lock, 'nested': [({'set': {1}}, 2)]})
        return 'ok'

    agent.run_sync('go', deferred_tool_handler=handler)

    assert handler.asked[0].metadata['1'] == {'lock': lock, 'nested': [({'set': {1}}, 2)]}
