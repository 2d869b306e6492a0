"""What a policy states, what a function excludes, and whose session it is, also where nobody says so at the call."""

import asyncio
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from pydantic_ai.exceptions import UserError
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, ToolsetTool
from pydantic_ai_deferred import Agent
from tool_approval.core.calls import denied_because
from tool_approval.integrations.pydantic_ai import Approvals, ApprovalToolset, run_with_approval_sync
from tool_approval.integrations.pydantic_ai.arguments import checks_of
from tool_approval.testing import RecordingUI, ScriptedUI

from tests.loop.scripted import call, returns, scripted
from tool_approval import (
    ApprovalController,
    ApprovalDenied,
    ApprovalPolicy,
    ApprovalRequest,
    execute_tool,
    requires_approval,
)

from .agents import Log


def delete(path: str) -> str:
    return f'deleted {path}'


def test_the_default_that_a_policy_states_holds():
    controller = ApprovalController('strict', policy=ApprovalPolicy(default='required'))

    with pytest.raises(ApprovalDenied):
        asyncio.run(execute_tool(delete, 'delete', {'path': 'a'}, controller))


def test_two_conversations_that_share_a_controller_and_name_no_session_share_no_approvals():
    ui = ScriptedUI(['s', 'not for you'])
    controller = ApprovalController(ui=ui)

    for _ in ('ada', 'eve'):
        agent = Agent(scripted([call('delete', '1', path='a')], 'done'), name='janitor')
        agent.tool_plain(requires_approval=True)(delete)
        run_with_approval_sync(agent, 'go', controller=controller)

    ui.assert_done()


def test_remembered_decision_names_memory_as_decider():
    controller = ApprovalController(ui=ScriptedUI(['s']))
    request = ApprovalRequest(tool_name='delete', args={'path': 'a'})
    asyncio.run(controller.request_approval(request))

    decision = asyncio.run(controller.request_approval(request))

    assert decision.decided_by == ('memory',)


class Asking(FunctionToolset[Any]):
    """Asks about every call, and says no more than that."""

    def needs_approval(self, name: str, args: dict[str, Any]) -> bool:
        return True


@pytest.mark.parametrize('is_wrapped', [True, False])
def test_excluded_arguments_stay_excluded_whoever_asks(is_wrapped: bool):
    log = Log()
    controller = ApprovalController(ui=RecordingUI(True), audit=log)
    mail = requires_approval(exclude_keys=['body'])(_mail)
    agent = Agent(
        scripted([call('_mail', '1', to='ada', body='SECRET')], 'done'),
        toolsets=[ApprovalToolset(Asking([mail]), controller)] if is_wrapped else [],
    )
    if not is_wrapped:
        agent.tool_plain(requires_approval=True)(mail)

    agent.run_sync('go', deferred_tool_handler=Approvals(controller, default='none'))

    assert [entry['event'] for entry in log.entries] == ['decision', 'outcome']
    assert 'SECRET' not in str(log.entries)


def _mail(to: str, body: str) -> str:
    return f'mailed {to}'


def test_bare_tool_blocked_by_its_function_is_denied_without_asking():
    ui = RecordingUI(True)
    agent = Agent(scripted([call('_forbidden', '1')], 'done'))
    agent.tool_plain(requires_approval=True)(_forbidden)

    result = agent.run_sync(
        'go', deferred_tool_handler=Approvals(ApprovalController('approve_all', ui=ui), default='none')
    )

    assert ui.requests == []
    assert returns(result.all_messages())['1'] == ('not on Sundays', 'failed')


def test_a_bare_tool_that_is_declared_is_asked_about_though_its_function_needs_nobody():
    def harmless() -> str:
        return 'done'

    harmless.check_approval = lambda ctx: None  # type: ignore[attr-defined]
    ui = RecordingUI('no')
    agent = Agent(scripted([call('harmless', '1')], 'done'))
    agent.tool_plain(requires_approval=True)(harmless)

    result = agent.run_sync('go', deferred_tool_handler=Approvals(ApprovalController(ui=ui), default='none'))

    assert len(ui.requests) == 1
    assert returns(result.all_messages())['1'] == (denied_because('no'), 'denied')


def _forbidden() -> str:
    raise AssertionError


def _never(ctx: Any) -> None:
    raise PermissionError('not on Sundays')


_forbidden.check_approval = _never  # type: ignore[attr-defined]


def test_a_tool_without_a_function_has_no_logic_of_its_own():
    tool: Any = SimpleNamespace()

    assert list(checks_of(None, tool)) == []


@pytest.mark.parametrize('tool', [MagicMock(), MagicMock(spec=ToolsetTool)], ids=['any', 'specified'])
def test_the_attributes_of_a_test_double_are_not_followed(tool: Any):
    toolset = MagicMock(spec=AbstractToolset)

    assert list(checks_of(toolset, tool)) == [toolset]
    assert list(checks_of(None, tool)) == []


class _Endless(FunctionToolset[Any]):
    def __getattr__(self, name: str) -> Any:
        return self


def test_toolsets_that_wrap_each_other_without_end_are_an_error():
    with pytest.raises(UserError, match='wrap each other in a cycle'):
        list(checks_of(_Endless(), MagicMock()))
