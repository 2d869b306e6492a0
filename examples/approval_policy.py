"""Combine a policy file, a decorator and a tool's check: `python examples/approval_policy.py [policy.yaml]`.

Without a file, the policy below applies. An error in the policy names its line, and nothing runs. The policy takes
precedence over the tools: with a rule for `refund`, the check of that tool can only block.
"""

import sys
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import CombinedToolset, FunctionToolset, WrapperToolset
from tool_approval.integrations.pydantic_ai import Approvals

from tool_approval import (
    ApprovalConfigError,
    ApprovalDecision,
    ApprovalMode,
    ApprovalPolicy,
    ApprovalRequest,
    ApprovalResult,
    requires_approval,
)

POLICY = """\
tools:
  read_*:
    approval: none
  '*_account':
    approval: blocked
"""


class Clerk:
    """Answers in place of an approver: approves calls for Ada, and nothing else."""

    one_at_a_time = True

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Print the question and the answer."""
        is_for_ada = request.args.get('customer') == 'ada'
        print(f'asked: {request.description} -> {"yes" if is_for_ada else "no"}')
        return ApprovalDecision(approved=is_for_ada, note=None if is_for_ada else 'Only Ada has complained.')


class Refunds(WrapperToolset[int]):
    """Decides by the amount, which a rule by name cannot do."""

    def needs_approval(self, name: str, args: dict[str, Any], ctx: RunContext[int]) -> ApprovalResult:
        """Pre-approve amounts up to `ctx.deps`, and block large ones."""
        if args['euros'] <= ctx.deps:
            return ApprovalResult.pre_approved()
        if args['euros'] > 1000:
            return ApprovalResult.blocked('Sums above 1000 euros are paid by the bank.')
        return ApprovalResult.needs_approval(description=f'Pay {args["euros"]} euros to {args["customer"]}')


def read_orders(customer: str) -> str:
    """Read the orders of a customer. The policy lets this run without approval."""
    return f'{customer} ordered a mug'


def delete_account(customer: str) -> str:
    """Delete an account. The policy blocks this."""
    return f'the account of {customer} is gone'


def refund(customer: str, euros: int) -> str:
    """Refund a customer. The toolset around this tool decides when to ask."""
    return f'{customer} got {euros} euros'


@requires_approval(description=lambda args: f'Write to {args["customer"]}', exclude_keys=['text'])
def write_letter(customer: str, text: str) -> str:
    """Write a letter. The decorator asks for approval, and leaves the text out of the question."""
    return f'a letter to {customer} is on its way'


def note_down(text: str) -> str:
    """Note a text. Neither a rule nor the tool decides, so the default applies."""
    return 'noted'


def plan(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand in for a language model: make all calls at once, then report."""
    returns = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
    if returns:
        return ModelResponse([TextPart('\n'.join(f'{part.tool_name}: {part.content}' for part in returns))])
    return ModelResponse(
        [
            ToolCallPart('read_orders', {'customer': 'ada'}),
            ToolCallPart('delete_account', {'customer': 'ada'}),
            ToolCallPart('refund', {'customer': 'bob', 'euros': 5}),
            ToolCallPart('refund', {'customer': 'ada', 'euros': 90}),
            ToolCallPart('refund', {'customer': 'bob', 'euros': 90}),
            ToolCallPart('refund', {'customer': 'ada', 'euros': 9000}),
            ToolCallPart('write_letter', {'customer': 'ada', 'text': 'We are sorry.'}),
            ToolCallPart('note_down', {'text': 'Ada was nice.'}),
        ]
    )


def run(policy: ApprovalPolicy) -> str:
    """Run the agent under `policy`, and return its output."""
    tools: CombinedToolset[int] = CombinedToolset(
        [Refunds(FunctionToolset([refund])), FunctionToolset([read_orders, delete_account, write_letter, note_down])]
    )
    agent = Agent(
        FunctionModel(plan),
        deps_type=int,
        toolsets=[tools],
        capabilities=[Approvals(policy, ui=Clerk(), default='none')],
    )
    return agent.run_sync('Two mugs came back broken.', deps=10).output


def main(*arguments: str) -> int:
    text, source = (Path(arguments[0]).read_text(), arguments[0]) if arguments else (POLICY, 'the policy above')
    try:
        policy = ApprovalPolicy.from_yaml(text, source=source)
    except ApprovalConfigError as error:
        print(error)
        return 2
    print(run(policy))
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:2]))
