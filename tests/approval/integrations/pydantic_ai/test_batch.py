"""What is asked about external calls: what the function says of them, not the bare arguments."""

from typing import Any

import pytest
from pydantic_ai_deferred import Agent
from tool_approval.integrations.pydantic_ai import Approvals
from tool_approval.testing import RecordingUI, ScriptedUI

from tests.loop.scripted import call, scripted
from tool_approval import (
    ApprovalContext,
    ApprovalController,
    ApprovalPresentation,
    ApprovalRequest,
    ApprovalResult,
    RememberOption,
    requires_approval,
)

from .agents import Log, changed, external


def ask_through(function: Any, ui: ScriptedUI, log: Log, policy: Any = None) -> None:
    agent = Agent(scripted([call('ask', '1', question='SECRET question')], 'done'), toolsets=[external('ask')])
    controller = ApprovalController(ui=ui, audit=log, policy=policy)
    agent.run_sync('go', deferred_tool_handler=Approvals(controller, external={'ask': function}, default='none'))


@pytest.mark.parametrize('answer', [True, 'better not'])
def test_excluded_arguments_are_neither_shown_nor_logged(answer: Any):
    ui, log = ScriptedUI([answer]), Log()

    ask_through(requires_approval(exclude_keys=['question'])(lambda question: 'answer'), ui, log)

    ui.assert_done()
    assert (ui.requests[0].description, ui.requests[0].payload) == ('ask()', {})
    assert 'SECRET' not in str(log.entries)


def test_request_of_a_functions_own_check_is_asked():
    class Ask:
        def check_approval(self, ctx: ApprovalContext) -> ApprovalRequest:
            return ApprovalRequest(
                tool_name=ctx.tool_name,
                args=ctx.args,
                description='Ask somebody',
                reason='it leaves the house',
                presentation=ApprovalPresentation(type='text', content='shown'),
                remember_options=(RememberOption(kind='all', label='every question', payload={}),),
                group_id='questions',
            )

        def __call__(self, question: str) -> str:
            return 'answer'

    ui = ScriptedUI([True])

    ask_through(Ask(), ui, Log())

    [request] = ui.requests
    assert (request.description, request.reason, request.group_id) == (
        'Ask somebody',
        'it leaves the house',
        'questions',
    )
    assert request.presentation == ApprovalPresentation(type='text', content='shown')
    assert [option.kind for option in request.remember_options] == ['all']


def test_blocked_external_call_is_logged_without_excluded_arguments():
    ui, log = ScriptedUI([]), Log()

    ask_through(
        requires_approval(exclude_keys=['question'])(lambda question: 'answer'),
        ui,
        log,
        {'ask': {'approval': 'blocked'}},
    )

    assert [entry['payload'] for entry in log.entries] == [{}]


def test_request_describes_the_call_if_the_function_has_no_check():
    ui = ScriptedUI([True])

    ask_through(lambda question: 'answer', ui, Log(), {'ask': {'approval': 'required'}})

    [request] = ui.requests
    assert (request.description, request.payload) == (
        "ask(question='SECRET question')",
        {'question': 'SECRET question'},
    )


def test_an_edit_that_the_functions_own_check_blocks_does_not_run():
    def ask(question: str) -> str:
        raise AssertionError

    def check(ctx: ApprovalContext) -> ApprovalRequest:
        if 'password' in str(ctx.args['question']):
            raise PermissionError('No passwords.')
        return ApprovalRequest(tool_name='ask', args=ctx.args)

    vars(ask)['check_approval'] = check
    ui, log = ScriptedUI([changed(question='What is your password?')]), Log()

    ask_through(ask, ui, log)

    ui.assert_done()
    assert log.told == [('decision', True, '1'), ('outcome', 'refused', '1'), ('blocked', None, '1')]


def test_what_a_function_declares_must_not_change_while_the_approver_is_asked():
    version = ['old']

    def ask(question: str) -> str:
        raise AssertionError

    def declare(name: str, args: Any) -> ApprovalResult:
        return ApprovalResult.needs_approval(bound_to={'version': version[0]})

    def decide(request: ApprovalRequest) -> bool:
        version[0] = 'new'
        return True

    vars(ask)['needs_approval'] = declare
    log, agent = Log(), Agent(scripted([call('ask', '1', question='?')], 'done'), toolsets=[external('ask')])
    controller = ApprovalController(ui=RecordingUI(decide), audit=log)

    agent.run_sync('go', deferred_tool_handler=Approvals(controller, external={'ask': ask}, default='none'))

    assert log.told == [('decision', True, '1'), ('outcome', 'refused', '1')]
