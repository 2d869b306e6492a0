"""Calls that are counted against the bounds of a remembered approval, in runs of agents."""

from typing import Any

import pydantic_ai
import pytest
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset, FunctionToolset
from tool_approval.durable import Ledger, open_store
from tool_approval.integrations.pydantic_ai import Approvals
from tool_approval.testing import RecordingUI

from tests.approval.parts import ListSink
from tests.loop.scripted import call, scripted
from tool_approval import ApprovalConfigError, ApprovalController, ApprovalDecision, ApprovalMemory, ApprovalPolicy

pytestmark = pytest.mark.anyio

SCHEMA = {'type': 'object', 'properties': {'amount': {'type': 'number'}}, 'required': ['amount']}


class OthersAreFaster(ApprovalMemory):
    """Another process takes a use right before each call of this one."""

    def take(self, approval_id, request):
        super().take(approval_id, request)
        super().take(approval_id, request)


def bounded(request):
    kinds = [option.kind for option in request.remember_options]
    return ApprovalDecision(approved=True, remember='session', remember_option=kinds[0])


class Desk:
    def __init__(self, memory: Any = None, **offer: Any) -> None:
        self.paid: list[float] = []
        self.ui = RecordingUI(bounded)
        self.log = ListSink()
        self.controller = ApprovalController(
            ui=self.ui,
            policy=ApprovalPolicy({'refund': {'approval': 'required', 'remember': [offer]}}),
            audit=self.log,
            memory=memory,
        )

    def refund(self, amount: float) -> str:
        self.paid.append(amount)
        return 'paid'

    async def run(self, *amounts: float, ledger: Any = None, **options: Any) -> list[str]:
        """Let an agent make one refund after the other, and return what the model reads."""
        responses = [[call('refund', str(number), amount=amount)] for number, amount in enumerate(amounts)]
        approvals = Approvals(self.controller, ledger=ledger)
        agent = pydantic_ai.Agent(
            scripted(*responses, 'done'),
            name='clerk',
            toolsets=[options.get('toolset', lambda: FunctionToolset([self.refund]))()],
            capabilities=[approvals],
        )
        result = await agent.run('Go.')
        parts = [part for message in result.all_messages() for part in message.parts]
        return [str(part.content) for part in parts if isinstance(part, ToolReturnPart)]


async def test_uses_are_counted():
    desk = Desk(uses=3)

    await desk.run(1.0, 1.0, 1.0, 1.0)

    assert len(desk.paid) == 4
    assert len(desk.ui.requests) == 2


async def test_amounts_are_added():
    desk = Desk(total={'amount': 500})

    await desk.run(200, 300, 1)

    assert [each.args['amount'] for each in desk.ui.requests] == [200, 1]


@pytest.mark.parametrize('has_ledger', [False, True])
async def test_a_call_for_which_nothing_is_left_does_not_run(has_ledger, tmp_path):
    desk = Desk(OthersAreFaster(), uses=2)
    store = open_store(f'{tmp_path}/state/inbox.sqlite')

    with Ledger(store, beats=False) as ledger:
        told = await desk.run(1.0, 1.0, 1.0, ledger=ledger if has_ledger else None)
    with store.inbox_store.reading() as execute:
        rows = execute('SELECT state FROM executions ORDER BY state').fetchall()
    store.close()

    assert len(desk.paid) == 2, 'the second call took what was left, so the third was asked about'
    assert 'is used up' in told[1]
    assert [each.args for each in desk.ui.requests] == [{'amount': 1.0}] * 2
    assert desk.log.outcomes() == ['executed', 'refused', 'executed']
    assert [state for (state,) in rows] == (['approved', 'done', 'done'] if has_ledger else [])


@pytest.mark.parametrize('has_ledger', [False, True])
async def test_an_external_call_for_which_nothing_is_left_does_not_run(has_ledger, tmp_path):
    desk = Desk(OthersAreFaster(), uses=2)
    store = open_store(f'{tmp_path}/state/inbox.sqlite')

    with Ledger(store, beats=False) as ledger:
        approvals = Approvals(desk.controller, external={'refund': desk.refund}, ledger=ledger if has_ledger else None)
        agent = pydantic_ai.Agent(
            scripted([call('refund', '1', amount=1)], [call('refund', '2', amount=1)], 'done'),
            name='clerk',
            toolsets=[ExternalToolset([ToolDefinition(name='refund', parameters_json_schema=SCHEMA)])],
            capabilities=[approvals],
        )
        await agent.run('Go.')
    store.close()

    assert len(desk.paid) == 1
    assert desk.log.outcomes() == ['executed', 'refused']


async def test_guards_that_surround_each_other_count_a_call_once():
    desk = Desk(uses=3)

    def guarded():
        return Approvals(desk.controller).guard(FunctionToolset([desk.refund]))

    await desk.run(1.0, 1.0, 1.0, toolset=guarded)

    assert len(desk.ui.requests) == 1


async def test_a_total_of_an_argument_that_the_tool_does_not_have_is_an_error():
    pytest.importorskip('yaml')
    desk = Desk(total={'sum': 500})
    text = 'tools:\n  refund:\n    remember:\n      - total:\n          sum: 500\n'
    desk.controller.policy = ApprovalPolicy.from_yaml(text, source='approvals.yaml')

    with pytest.raises(ApprovalConfigError, match='`refund` has no argument `sum`') as caught:
        await desk.run(1.0)

    assert (caught.value.key, caught.value.line) == ('tools.refund.remember.0.total.sum', 5)
    assert desk.paid == []
