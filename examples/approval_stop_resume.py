"""Stop for approval, and resume with the answers: `python examples/approval_stop_resume.py`.

The first part does this in one call. In the second part, three processes share a folder: one runs the agent until it
stops, one asks a user, maybe days later, and one resumes the run. An approval is bound to the arguments of its call: if
the history changes in between, the call does not run. To write the file of answers is to approve, so keep it in
a private folder. If the process can wait, prefer a handler, as in the other examples.
"""

import tempfile
from pathlib import Path

from pydantic import TypeAdapter
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import FunctionToolset
from tool_approval.audit import load_key
from tool_approval.integrations.pydantic_ai import ApprovalToolset, collect_approvals_sync, run_with_approval_sync
from tool_approval.testing import ScriptedUI

from tool_approval import ApprovalController

REQUESTS = TypeAdapter(DeferredToolRequests)
RESULTS = TypeAdapter(DeferredToolResults)


def transfer(to: str, euros: int) -> str:
    """Pretend to transfer money."""
    return f'{to} got {euros} euros'


def plan(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand in for a language model: pay two people, then report."""
    returns = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
    if returns:
        return ModelResponse([TextPart('; '.join(str(part.content) for part in returns))])
    return ModelResponse([ToolCallPart('transfer', {'to': person, 'euros': 20}) for person in ('ada', 'eve')])


def make_agent(controller: ApprovalController) -> Agent[None, str]:
    """Make the same agent in every process. Its controllers need the same key."""
    toolset: FunctionToolset[None] = FunctionToolset([transfer])
    return Agent(FunctionModel(plan), name='bank', toolsets=[ApprovalToolset(toolset, controller)])


def in_one_call() -> None:
    controller = ApprovalController(ui=ScriptedUI([True, 'I do not know her.']))
    result = run_with_approval_sync(make_agent(controller), 'Pay them.', controller=controller)
    print(f'in one call: {result.output}')


def first_process(folder: Path) -> None:
    """Run until a call needs approval, and store the history and the question."""
    agent = make_agent(ApprovalController(key=load_key(folder / 'key')))
    stopped = agent.run_sync('Pay them.', output_type=[str, DeferredToolRequests])
    assert isinstance(stopped.output, DeferredToolRequests)
    (folder / 'history.json').write_bytes(stopped.all_messages_json())
    (folder / 'question.json').write_bytes(REQUESTS.dump_json(stopped.output))


def second_process(folder: Path) -> None:
    """Ask the user, and store the answers."""
    person = ScriptedUI([True, 'I do not know her.'])
    controller = ApprovalController(ui=person, key=load_key(folder / 'key'))
    question = REQUESTS.validate_json((folder / 'question.json').read_bytes())
    answers = collect_approvals_sync(question, controller=controller, session='Ada')
    print('asked:', *(request.description for request in person.requests))
    (folder / 'answers.json').write_bytes(RESULTS.dump_json(answers))


def third_process(folder: Path) -> str:
    """Resume the run with the answers."""
    agent = make_agent(ApprovalController(key=load_key(folder / 'key')))
    history = ModelMessagesTypeAdapter.validate_json((folder / 'history.json').read_bytes())
    answers = RESULTS.validate_json((folder / 'answers.json').read_bytes())
    return agent.run_sync(message_history=history, deferred_tool_results=answers).output


def main() -> None:
    in_one_call()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first_process(folder)
        second_process(folder)
        print(f'in three processes: {third_process(folder)}')
        # An attacker raises the amount of the approved call.
        history = folder / 'history.json'
        history.write_text(history.read_text().replace('"euros":20', '"euros":2000'))
        print(f'history changed: {third_process(folder)}')


if __name__ == '__main__':
    main()
