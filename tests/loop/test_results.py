"""An invalid answer of a handler is an error, and no deferred call runs."""

import re
from typing import Any

import pytest
from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext, ToolApproved, ToolDenied
from pydantic_ai.exceptions import UserError

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


def unnamed() -> DeferredToolResults:
    answer: Any = answers()
    answer.answered_by = None  # not in the constructor of older hosts
    return answer


ALL = ('1', '2', '3', '4')
WRONG = [
    (None, r'nothing \(`None`\) instead of `DeferredToolResults`', ALL),
    ({'1': True}, 'a value of type `dict`', ALL),
    (answers(approvals={'1': True}), 'no result for every call', ('2',)),
    (answers(calls={'3': 'ok'}), 'no result for every call', ('4',)),
    (answers(approvals={}, calls={}), 'no result for every call', ALL),
    (answers(approvals={'1': True}, calls={'2': True, '3': 1, '4': 1}), r'belong in `results\.approvals`', ('2',)),
    (answers(approvals={'1': True, '2': True, '3': True}, calls={'4': 1}), r'calls in `results\.calls`', ('3',)),
    (answers(approvals={'1': 1, '2': True}), 'wrong type', ('1',)),
    (answers(approvals={'1': 'yes', '2': None}), 'wrong type', ('1', '2')),
    (answers(approvals={'1': ToolApproved(override_args='{}'), '2': True}), 'wrong type', ('1',)),
    (answers(calls={'3': ToolApproved(), '4': 1}), 'not an approval', ('3',)),
    (answers(calls={'3': 1, '4': ToolDenied('no')}), 'not an approval', ('4',)),
    (answers(approvals=[]), 'must return dictionaries .* but set approvals to', ALL),
    (answers(metadata=None), 'must return dictionaries .* but set metadata to', ALL),
    (unnamed(), 'must return dictionaries .* but set answered_by to', ALL),
]


@pytest.mark.parametrize(('answer', 'problem', 'named'), WRONG)
def test_a_wrong_answer_names_the_call_and_nothing_has_run(answer: Any, problem: str, named: tuple[str, ...]):
    agent = office(RESPONSE, 'done')

    with pytest.raises(UserError, match=problem) as raised:
        agent.run_sync('go', deferred_tool_handler=lambda ctx, requests: answer)

    assert tuple(sorted(re.findall(r"tool_call_id '(\d)'", str(raised.value)))) == named
    assert str(raised.value).endswith('No deferred call of the response was executed.')
    assert agent.log == []


def test_answers_and_metadata_for_other_calls_are_no_error():
    agent = office(RESPONSE, 'done')
    answer = answers(approvals={'1': True, '2': False, '9': True}, calls={'3': 1, '4': 1, '8': 1}, metadata={'9': {}})

    result = agent.run_sync('go', deferred_tool_handler=lambda ctx, requests: answer)

    assert result.output == 'done'
    assert agent.log == ['delete a False']


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
