"""Conditions of rules compare what a tool receives, whichever framework calls it."""

from typing import Any

import pydantic_ai
import pytest
from langchain_core.tools import StructuredTool
from pydantic import BaseModel
from pydantic_ai import Tool
from pydantic_ai.capabilities import HandleDeferredToolCalls
from tool_approval.integrations.langchain import ApprovalToolWrapper
from tool_approval.integrations.pydantic_ai import Approvals
from tool_approval.testing import RecordingUI

from tests.loop.scripted import call, scripted
from tool_approval import ApprovalController, requires_approval


class Transfer(BaseModel):
    amount: float


def transfer_of(ran: list[float]) -> Any:
    def pay(transfer: Transfer, memo: str = '') -> str:
        ran.append(transfer.amount)
        return 'paid'

    return pay


FREE = {'transfer.dry_run': {'is': True}}
SMALL = {'transfer.amount': {'below': 50}}
DROPPED = {'transfer': {'amount': 600, 'dry_run': True, 'transfer.amount': 1}, 'memo': 'x'}
HONEST = {'transfer': {'amount': 20}}


def rules(when: Any) -> Any:
    return {'pay': {'approval': 'required', 'cases': [{'when': when, 'approval': 'none'}]}}


def with_pydantic_ai(function: Any, args: Any, policy: Any, ui: Any) -> None:
    model = scripted([call('pay', '1', **args)], 'done')
    pydantic_ai.Agent(model, tools=[function], capabilities=[Approvals(policy, ui=ui)]).run_sync('go')


def on_the_hosts_hook(function: Any, args: Any, policy: Any, ui: Any) -> None:
    hook = HandleDeferredToolCalls(Approvals(policy, ui=ui))
    model = scripted([call('pay', '1', **args)], 'done')
    pydantic_ai.Agent(model, tools=[Tool(function, requires_approval=True)], capabilities=[hook]).run_sync('go')


def with_langchain(function: Any, args: Any, policy: Any, ui: Any) -> None:
    tool = StructuredTool.from_function(function, name='pay', description='Pay.')
    wrapped = ApprovalToolWrapper(tool, ApprovalController(policy=policy, ui=ui), 'required')
    wrapped.invoke({'name': 'pay', 'args': args, 'id': '1', 'type': 'tool_call'})


@pytest.mark.parametrize('carry_out', [with_pydantic_ai, on_the_hosts_hook, with_langchain])
@pytest.mark.parametrize(
    ('when', 'args', 'asks'), [(FREE, DROPPED, True), (SMALL, DROPPED, True), (SMALL, HONEST, False)]
)
def test_what_validation_drops_satisfies_no_condition(carry_out: Any, when: Any, args: Any, asks: bool):
    ran: list[float] = []
    ui = RecordingUI(False)

    carry_out(transfer_of(ran), args, rules(when), ui)

    assert (len(ui.requests), ran) == ((1, []) if asks else (0, [20]))


@pytest.mark.parametrize('carry_out', [with_pydantic_ai, with_langchain])
def test_what_validation_drops_reaches_no_condition_of_the_decorator(carry_out: Any):
    ran: list[float] = []
    seen: list[Any] = []

    def when(args: Any) -> bool:
        seen.append(args)
        return not args['transfer'].get('dry_run', False)

    ui = RecordingUI(False)

    carry_out(requires_approval(when=when)(transfer_of(ran)), DROPPED, {}, ui)

    assert [sorted(each['transfer']) for each in seen] == [['amount']] * len(seen)
    assert (len(ui.requests), ran) == (1, [])
    assert ui.requests[0].args['transfer']['dry_run'] is True, 'the approver sees what was dropped'


@pytest.mark.parametrize('carry_out', [with_pydantic_ai, on_the_hosts_hook])
def test_a_field_beside_the_fields_of_the_only_argument_satisfies_no_condition(carry_out: Any):
    ran: list[float] = []

    def pay(transfer: Transfer) -> str:
        ran.append(transfer.amount)
        return 'paid'

    for when in ({'dry_run': {'is': True}}, {'transfer.dry_run': {'is': True}}, FREE):
        ui = RecordingUI(False)
        carry_out(pay, {'amount': 600, 'dry_run': True, 'transfer.amount': 1}, rules(when), ui)

        assert (len(ui.requests), ran) == (1, [])
