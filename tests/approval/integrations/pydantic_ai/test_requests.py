"""What becomes of what the toolset, the handler and the call say."""

from typing import Any

import pydantic_ai
import pytest
from pydantic_ai import DeferredToolRequests
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai_deferred import Agent
from tool_approval.integrations.pydantic_ai import Approvals, ApprovalToolset, build_approval_requests
from tool_approval.testing import ScriptedUI

from tests.loop.scripted import call, scripted
from tool_approval import ApprovalController


def delete(path: str) -> str:
    return f'deleted {path}'


@pytest.mark.parametrize(
    ('toolset', 'handler', 'session'), [('ada', None, 'ada'), (None, 'ada', 'ada'), ('ada', 'eve', 'eve')]
)
def test_the_session_is_the_handlers_where_it_names_one_and_else_the_toolsets(toolset: Any, handler: Any, session: str):
    ui = ScriptedUI(['s'])
    controller = ApprovalController(ui=ui)
    tools: FunctionToolset[Any] = FunctionToolset([delete])

    for _ in range(2):
        agent = Agent(
            scripted([call('delete', '1', path='a')], 'done'),
            name='janitor',
            toolsets=[ApprovalToolset(tools, controller, session=toolset)],
        )
        agent.run_sync('go', deferred_tool_handler=Approvals(controller, session=handler, default='none'))

    ui.assert_done()
    assert (ui.requests[0].session_id, ui.requests[0].metadata['session_id']) == (session, session)


def test_the_request_of_a_toolset_is_found_in_what_a_run_ended_with():
    toolset = ApprovalToolset(FunctionToolset([delete]), ApprovalController(), session='ada')
    agent = pydantic_ai.Agent(
        scripted([call('delete', '1', path='a')]), toolsets=[toolset], output_type=[str, DeferredToolRequests]
    )

    output = agent.run_sync('go').output
    assert isinstance(output, DeferredToolRequests)
    [request] = build_approval_requests(output)

    assert (request.session_id, request.tool_call_id, dict(request.args)) == ('ada', '1', {'path': 'a'})
    assert request.facts.session_id == 'ada'


@pytest.mark.parametrize('metadata', [None, {}, {'1': None}])
def test_requests_without_metadata_are_answered(metadata: Any):
    requests = DeferredToolRequests(approvals=[call('delete', '1', path='a')])
    requests.metadata = metadata

    [request] = build_approval_requests(requests)
    results = Approvals(ui=ScriptedUI(['y'])).answer_sync(requests)

    assert request.description == "delete(path='a')"
    assert results.approvals == {'1': True}
