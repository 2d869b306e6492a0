"""Ask one question about several calls: `python examples/approval_groups.py`.

A model deletes files and sends mail in one response. The files of a folder are one group: a single question asks about
all of them, and the approver may approve only some. There is one question for each mail.
"""

from collections.abc import Sequence
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import FunctionToolset, WrapperToolset
from tool_approval.integrations.pydantic_ai import Approvals

from tool_approval import ApprovalDecision, ApprovalMode, ApprovalRequest, ApprovalResult

YES = ApprovalDecision(approved=True)
NO = ApprovalDecision(approved=False, note='Not this one.')


class Terminal:
    """Answers in place of an approver: approves deleting logs and writing to Ada, and nothing else."""

    one_at_a_time = True

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Answer a question about one request."""
        decision = YES if request.args.get('to') == 'ada' else NO
        place = f'{request.metadata["position"]} of {request.metadata["batch_size"]}'
        print(f'{place}: {request.description} -> {"yes" if decision.approved else "no"}')
        return decision

    def choose_group(self, requests: Sequence[ApprovalRequest], *, mode: ApprovalMode) -> list[ApprovalDecision]:
        """Answer a question about a group, with a decision for each request, in order."""
        print('together:')
        decisions = [YES if request.args['path'].endswith('.log') else NO for request in requests]
        for request, decision in zip(requests, decisions, strict=True):
            print(f'  {request.metadata["position"]}. {request.args["path"]} -> {"yes" if decision.approved else "no"}')
        return decisions


class ByFolder(WrapperToolset[object]):
    """Groups calls on files of the same folder."""

    def needs_approval(self, name: str, args: dict[str, Any]) -> ApprovalResult:
        """Ask about every call. Mail has no folder, and so no group."""
        folder = args['path'].rpartition('/')[0] if 'path' in args else None
        return ApprovalResult.needs_approval(group_id=folder)


def delete_file(path: str) -> str:
    """Pretend to delete a file."""
    return f'{path} is gone'


def send_mail(to: str) -> str:
    """Pretend to send a mail."""
    return f'sent to {to}'


def plan(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand in for a language model: make all calls at once, then report."""
    returns = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
    if returns:
        return ModelResponse([TextPart('\n'.join(str(part.content) for part in returns))])
    paths = ('var/a.log', 'var/data.db', 'home/b.log', 'home/c.log')
    mails = (ToolCallPart('send_mail', {'to': person}) for person in ('ada', 'eve'))
    return ModelResponse([*(ToolCallPart('delete_file', {'path': path}) for path in paths), *mails])


def main() -> None:
    tools: ByFolder = ByFolder(FunctionToolset([delete_file, send_mail]))
    agent = Agent(FunctionModel(plan), toolsets=[tools], capabilities=[Approvals(ui=Terminal())])
    print(agent.run_sync('Make room, and tell them.').output)


if __name__ == '__main__':
    main()
