"""Stop for approval, and resume with the answers: `python examples/approval_stop_resume.py`.

Three processes share a folder: one runs the agent until it stops, one asks a user, maybe days later, and one resumes
the run. An approval is bound to the arguments of its call: if the history changes in between, the call does not run. To
write the file of answers is to approve, so keep it in a private folder. If the process can wait, ask inside the run, as
in the other examples.
"""

import asyncio
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
from tool_approval.audit import load_key
from tool_approval.integrations.pydantic_ai import Approvals
from tool_approval.testing import ScriptedUI

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


def make_agent(folder: Path) -> Agent[None, str | DeferredToolRequests]:
    """Make the same agent in every process, with the same key, and without a UI."""
    return Agent(
        FunctionModel(plan),
        name='bank',
        tools=[transfer],
        output_type=[str, DeferredToolRequests],
        capabilities=[Approvals(key=load_key(folder / 'key'))],
    )


async def first_process(folder: Path) -> None:
    """Run until a call needs approval, and store the history and the question."""
    stopped = await make_agent(folder).run('Pay them.')
    assert isinstance(stopped.output, DeferredToolRequests)
    (folder / 'history.json').write_bytes(stopped.all_messages_json())
    (folder / 'question.json').write_bytes(REQUESTS.dump_json(stopped.output))


async def second_process(folder: Path) -> None:
    """Ask the user, and store the answers."""
    person = ScriptedUI([True, 'I do not know her.'])
    approvals = Approvals(ui=person, key=load_key(folder / 'key'))
    question = REQUESTS.validate_json((folder / 'question.json').read_bytes())
    answers = await approvals.answer(question, session='Ada')
    print('asked:', *(request.description for request in person.requests))
    (folder / 'answers.json').write_bytes(RESULTS.dump_json(answers))


async def third_process(folder: Path) -> object:
    """Resume the run with the answers."""
    history = ModelMessagesTypeAdapter.validate_json((folder / 'history.json').read_bytes())
    answers = RESULTS.validate_json((folder / 'answers.json').read_bytes())
    resumed = await make_agent(folder).run(message_history=history, deferred_tool_results=answers)
    return resumed.output


async def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        await first_process(folder)
        await second_process(folder)
        print(f'in three processes: {await third_process(folder)}')
        # An attacker raises the amount of the approved call.
        history = folder / 'history.json'
        history.write_text(history.read_text().replace('"euros":20', '"euros":2000'))
        print(f'history changed: {await third_process(folder)}')


if __name__ == '__main__':
    asyncio.run(main())
