"""Approve or deny everything in a test: `python -m pytest examples/approve_all.py`, or run it as a program.

The test does not change the agent: `agent.override(deferred_tool_handler=...)` replaces the agent's own handler.
`approve_all` is for tests only, because it asks no one.
"""

from collections.abc import Mapping

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext, ToolDenied
from pydantic_ai.exceptions import CallDeferred
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_deferred import Agent, HandlerFunc


def approve_all(external: Mapping[str, object] | None = None) -> HandlerFunc[object]:
    """Return a handler that approves every request and answers external calls.

    Args:
        external: The results of external tools, by tool name. A call of any other tool raises `KeyError`, so that a
            test fails rather than continue with an invented result.
    """

    def handler(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
        calls = {call.tool_call_id: (external or {})[call.tool_name] for call in requests.calls}
        return requests.build_results(approve_all=True, calls=calls)

    return handler


def deny_all(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
    """Deny every request, to test how the agent reacts."""
    return requests.build_results(
        approvals={call.tool_call_id: ToolDenied('Not today.') for call in requests.approvals},
        calls={call.tool_call_id: 'unknown' for call in requests.calls},
    )


def plan(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand in for a language model: count the stock and make a refund at once, then report."""
    returns = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
    if not returns:
        return ModelResponse(parts=[ToolCallPart('count_stock', {'item': 'mug'}), ToolCallPart('refund', {'euros': 9})])
    report = '; '.join(f'{part.tool_name}: {part.content}' for part in returns)
    return ModelResponse(parts=[TextPart(report)])


# A real test imports the agent from the application, with the handler that asks users.
agent = Agent(FunctionModel(plan), deps_type=list[int])


@agent.tool_plain
def count_stock(item: str) -> int:
    """Count an item in the warehouse. A human counts, so the result comes from outside of this program."""
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
