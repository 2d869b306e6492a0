"""Calls of one response, of which some wait for an approval."""

import asyncio

import pytest
from pydantic_ai.messages import ToolCallPart, ToolReturnPart
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai_deferred import Agent
from tool_approval.assistant.ordering import NEEDS_APPROVAL_NOW, CallOrder
from tool_approval.assistant.stories.scene import scripted
from tool_approval.integrations.pydantic_ai import Approvals
from tool_approval.testing import RecordingUI

from tests.approval.parts import ListSink
from tool_approval import ApprovalController, ApprovalDecision, simple_approval_request


class Notes(FunctionToolset):
    """Writing needs approval, reading needs none until there is a secret."""

    def __init__(self):
        super().__init__(sequential=True)
        self.text = 'old'
        for function in (self.write, self.read):
            self.add_function(function, takes_ctx=False)

    def write(self, text: str) -> str:
        self.text = text
        return 'written'

    def read(self) -> str:
        return self.text

    def check_approval(self, ctx):
        needs = ctx.tool_name == 'write' or self.text == 'secret'
        return simple_approval_request(ctx.tool_name, ctx.args) if needs else None


def results_of(*responses, approves=True):
    """Return the results of these responses' calls, the tools that were asked about, and the log."""
    person, log = RecordingUI(ApprovalDecision(approved=approves, note=None if approves else 'No.')), ListSink()
    controller = ApprovalController(ui=person, audit=log)
    order = CallOrder(Approvals(controller))
    steps = iter([*([ToolCallPart(*call) for call in calls] for calls in responses), 'done'])
    agent = Agent(
        scripted(lambda results: next(steps)),
        toolsets=[order.guarded(Notes())],
        deferred_tool_handler=order,
    )
    messages = asyncio.run(agent.run('Go.')).all_messages()
    parts = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    assert not order.waiting
    assert not order.let_through
    return [str(part.content) for part in parts], [each.tool_name for each in person.requests], log.entries


READ = ('read', {})


def write(text):
    return ('write', {'text': text})


@pytest.mark.parametrize(('approves', 'last'), [(True, 'new'), (False, 'old')])
def test_a_call_after_one_that_waits_runs_after_it_and_is_not_asked_about(approves, last):
    results, asked, entries = results_of([READ, write('new'), READ], approves=approves)

    assert [results[0], results[2]] == ['old', last]
    assert asked == ['write']
    assert {entry['tool_name'] for entry in entries} == {'write'}


def test_calls_of_the_next_response_do_not_wait():
    results, asked, _ = results_of([write('new'), READ], [READ])

    assert results == ['written', 'new', 'new']
    assert asked == ['write']


def test_call_that_needs_approval_by_its_turn_does_not_run_without():
    results, asked, _ = results_of([write('secret'), READ])

    assert results == ['written', NEEDS_APPROVAL_NOW]
    assert asked == ['write']
