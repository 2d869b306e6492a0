"""The person an agent works for is told to approvers and to the log."""

import pytest
from pydantic_ai import DeferredToolRequests
from pydantic_ai.exceptions import UserError
from tool_approval.integrations.pydantic_ai import Approvals, collect_approvals_sync
from tool_approval.testing import RecordingUI, approve_all

from tool_approval import ApprovalController

from .agents import Log, deleting


@pytest.mark.parametrize('requester', ['ada', lambda ctx: ctx.deps])
def test_the_person_the_agent_works_for_is_told_to_the_approver_and_the_log(requester):
    agent, _ = deleting()
    ui, log = RecordingUI(True), Log()

    agent.run_sync('go', deps='ada', capabilities=[Approvals(None, ui=ui, log=log, requester=requester)])

    assert [request.facts.requester for request in ui.requests] == ['ada']
    assert {entry['requester'] for entry in log.all} == {'ada'}


def test_a_tool_cannot_say_for_whom_the_agent_works():
    agent, _ = deleting()
    ui = RecordingUI(True)
    requests = agent.run_sync('go', output_type=[str, DeferredToolRequests]).output
    requests.metadata['1'] = {'requester': 'the boss'}

    collect_approvals_sync(requests, controller=ApprovalController(ui=ui))

    assert [request.facts.requester for request in ui.requests] == [None]


def test_a_requester_that_is_no_text_is_an_error():
    agent, _ = deleting()

    with pytest.raises(UserError, match='`requester` must be a string'):
        agent.run_sync('go', capabilities=[Approvals(None, ui=approve_all(), requester=lambda ctx: 7)])
