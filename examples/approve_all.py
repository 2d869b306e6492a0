"""Say yes, or no, to everything in a test: `python -m pytest examples/approve_all.py`, or run it as a program.

The agent under test is not changed: `agent.override(deferred_tool_handler=...)` goes before the handler it was built
with. `approve_all` is for tests. Outside of them it is the same as asking nobody.
"""

from collections.abc import Mapping

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext, ToolDenied
from pydantic_ai.exceptions import CallDeferred
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_deferred import Agent, DeferredToolHandler


def approve_all(external: Mapping[str, object] | None = None) -> DeferredToolHandler[object]:
    """A handler that approves every approval and answers external calls.

    Args:
        external: The result of each external tool, by tool name. A call of one that is not listed raises `KeyError`:
            a test that forgot it should fail, and not go on with an invented result.
    """

    def handler(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
        calls = {call.tool_call_id: (external or {})[call.tool_name] for call in requests.calls}
        return requests.build_results(approve_all=True, calls=calls)

    return handler


def deny_all(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
    """The counterpart: how does the agent take a no?"""
    return requests.build_results(
        approvals={call.tool_call_id: ToolDenied('Not today.') for call in requests.approvals},
        calls={call.tool_call_id: 'unknown' for call in requests.calls},
    )


def plan(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand in for a language model: look into the store and refund at once, then report."""
    returns = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
    if not returns:
        return ModelResponse(parts=[ToolCallPart('count_stock', {'item': 'mug'}), ToolCallPart('refund', {'euros': 9})])
    report = '; '.join(f'{part.tool_name}: {part.content}' for part in returns)
    return ModelResponse(parts=[TextPart(report)])


# In a real application the agent comes from there, with the handler that asks people.
agent = Agent(FunctionModel(plan), deps_type=list[int])


@agent.tool_plain
def count_stock(item: str) -> int:
    """Count an item in the warehouse. People do that: the answer comes from outside of this program."""
    raise CallDeferred


@agent.tool(requires_approval=True)
def refund(ctx: RunContext[list[int]], euros: int) -> str:
    """Pay money back."""
    ctx.deps.append(euros)
    return 'paid'


def test_refund_is_paid_when_approved() -> None:
    paid: list[int] = []

    with agent.override(deferred_tool_handler=approve_all(external={'count_stock': 7})):
        result = agent.run_sync('A mug came back broken.', deps=paid)

    assert paid == [9]
    assert result.output == 'count_stock: 7; refund: paid'


def test_nothing_is_paid_when_denied() -> None:
    paid: list[int] = []

    with agent.override(deferred_tool_handler=deny_all):
        result = agent.run_sync('A mug came back broken.', deps=paid)

    assert paid == []
    assert result.output == 'count_stock: unknown; refund: Not today.'


if __name__ == '__main__':
    test_refund_is_paid_when_approved()
    test_nothing_is_paid_when_denied()
    print('approved: the refund was paid\ndenied: nothing was paid, and the agent said so')
