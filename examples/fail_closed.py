"""Deny whatever is not explicitly allowed: `python examples/fail_closed.py`.

An exception in a handler ends the run. `fail_closed` makes a handler that denies instead if the decision fails or is
unclear. The run continues, and no call runs that was not allowed.
"""

import logging
from collections.abc import Callable

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext, ToolDenied, ToolFailed
from pydantic_ai.exceptions import CallDeferred
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_deferred import Agent, HandlerFunc

logger = logging.getLogger(__name__)


def fail_closed(allows: Callable[[ToolCallPart], bool]) -> HandlerFunc[object]:
    """Return a handler that approves a call if `allows(call)` is `True`, and denies it otherwise.

    Args:
        allows: Decides about one call. Any result except `True` denies, and so does an exception, which is logged.
    """

    def is_allowed(call: ToolCallPart) -> bool:
        try:
            # Not `if allows(call)`: a coroutine that was not awaited and the string 'no' are truthy too.
            return allows(call) is True
        except Exception:
            # Without a decision, the tool does not run.
            logger.exception('no decision about %s', call.tool_name)
            return False

    def handler(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
        results = DeferredToolResults()
        for call in requests.approvals:
            results.approvals[call.tool_call_id] = is_allowed(call) or ToolDenied('Denied by policy.')
        for call in requests.calls:
            # `ToolFailed` is final. `ModelRetry` would invite the model to try the same again.
            results.calls[call.tool_call_id] = ToolFailed('Not available here.')
        return results

    return handler


LIMITS = {'EUR': 50, 'USD': 60}


def allows_small_payments(call: ToolCallPart) -> bool:
    """Allow small payments. This fails for a currency without a limit."""
    args = call.args_as_dict()
    return call.tool_name == 'pay' and args['amount'] <= LIMITS[args['currency']]


def plan(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand in for a language model: try five things at once, then report."""
    returns = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
    if not returns:
        return ModelResponse(
            parts=[
                ToolCallPart('pay', {'amount': 20, 'currency': 'EUR'}),
                ToolCallPart('pay', {'amount': 900, 'currency': 'EUR'}),
                ToolCallPart('pay', {'amount': 1, 'currency': 'XAU'}),
                ToolCallPart('close_account'),
                ToolCallPart('send_fax', {'text': 'hello'}),
            ]
        )
    return ModelResponse(parts=[TextPart('\n'.join(f'{part.tool_name}: {part.content}' for part in returns))])


agent = Agent(FunctionModel(plan), deps_type=list[str], deferred_tool_handler=fail_closed(allows_small_payments))


@agent.tool(requires_approval=True)
def pay(ctx: RunContext[list[str]], amount: int, currency: str) -> str:
    """Pay."""
    ctx.deps.append(f'{amount} {currency}')
    return f'paid {amount} {currency}'


@agent.tool(requires_approval=True)
def close_account(ctx: RunContext[list[str]]) -> str:
    """Close the account."""
    ctx.deps.append('closed')
    return 'closed'


@agent.tool_plain
def send_fax(text: str) -> str:
    """Send a fax, which a human must take to the machine."""
    raise CallDeferred


def main() -> None:
    done: list[str] = []
    print(agent.run_sync('Settle everything.', deps=done).output)
    print('Really done:', ', '.join(done))


if __name__ == '__main__':
    logging.basicConfig(format='log: %(message)s')
    main()
