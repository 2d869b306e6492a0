"""A bot pays money back: small amounts at once, most after one approval, and large ones after that of two leads.

The rules are in refund_bot.yaml. A script replaces the model, and another one the people at the page or in Slack.
"""

from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.models import Model
from tool_approval.inbox import Inbox, InboxUI
from tool_approval.integrations.pydantic_ai import Approvals


def refund(order: str, amount: float) -> str:
    """Pay money back for an order."""
    return f'{amount:g} were paid back for {order}.'


def make_bot(model: Model, inbox: Inbox) -> Agent:
    rules = Path(__file__).with_name('refund_bot.yaml')
    return Agent(model, tools=[refund], capabilities=[Approvals(rules, ui=InboxUI(inbox), requester='rex')])


# All that follows stands in for a model and for people.

import asyncio
import tempfile

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from tool_approval.inbox import Approver, NotAnApprover
from tool_approval.inbox.stores import SQLiteStore

from tool_approval import ApprovalDecision

LEADS = frozenset({'leads'})
ADA, BOB, EVE = Approver(id='ada', groups=LEADS), Approver(id='bob', groups=LEADS), Approver(id='eve')
YES, NO = ApprovalDecision(approved=True), ApprovalDecision(approved=False, note='This was paid back already.')


def plan(*amounts: float) -> FunctionModel:
    """Stand in for a language model: pay these amounts back, one after the other."""

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        told = [part.content for each in messages for part in each.parts if isinstance(part, ToolReturnPart)]
        if len(told) == len(amounts):
            return ModelResponse([TextPart('\n'.join(map(str, told)))])
        number = len(told)
        return ModelResponse([ToolCallPart('refund', {'order': f'A-{number + 1}', 'amount': amounts[number]})])

    return FunctionModel(respond)


async def answer(inbox: Inbox, by: Approver, decision: ApprovalDecision = YES, *, bounded: bool = False) -> None:
    """Answer the next request as a person does at the page."""
    changes = inbox.changes()
    while not (entries := await inbox.open()):
        await anext(changes)
    [entry] = entries
    if bounded:
        [option] = entry.request.remember_options
        print(f'  {by.id} approves {option.label}')
        decision = ApprovalDecision(approved=True, remember='session', remember_option=option.kind)
    try:
        answered = await inbox.decide(entry.id, decision, by=by, digest=entry.digest)
    except NotAnApprover as refused:
        print(f'  {by.id} may not: {refused.problem.partition(";")[0]}')
    else:
        print(f'  {entry.request.description}: {answered.outcome}')


async def tell(store: Path) -> None:
    with Inbox(SQLiteStore(store)) as inbox:
        running = asyncio.create_task(make_bot(plan(20, 200, 250, 600, 700), inbox).run('Pay back what is due.'))
        await answer(inbox, EVE, bounded=True)
        await answer(inbox, EVE)
        await answer(inbox, ADA)
        await answer(inbox, ADA)
        await answer(inbox, BOB)
        await answer(inbox, BOB, NO)
        print((await running).output)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(tell(Path(folder) / 'inbox.sqlite'))


if __name__ == '__main__':
    main()
