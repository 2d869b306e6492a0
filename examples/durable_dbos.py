"""Survive a kill while a person is being asked: `python examples/durable_dbos.py FOLDER`, twice.

Answer the first question, kill the process at the second one (`kill -9`), and start it again with the same folder: the
workflow is recovered, only the open question is asked again, and nothing that was recorded runs twice.
DBOS keeps its records in an SQLite file in the folder; what really ran is written to `done.txt` beside it.

What is recorded, and what is not:

- Model requests: `DBOSDurability` makes each a step of the workflow.
- Tools: it leaves function tools as they are (only MCP and dynamic toolsets become steps), so a tool that acts is
  decorated with `@DBOS.step()` itself. Without it the tool runs again in every recovery. A step that is killed before
  it was recorded runs again too: at least once, not exactly once.
- The handler: it is called again in every recovery, for each response of the run. Here the question is a step of its
  own, so its answer is recorded. With `--ask-everything-again` it is not: the person is asked again for what ran
  already, and DBOS refuses to go on if the answer differs from what the records say was done.
"""

import argparse
import asyncio
from collections.abc import Callable
from pathlib import Path

from dbos import DBOS, SetWorkflowID
from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext, ToolFailed
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_deferred import Agent, DeferredToolHandler

SERVERS = ('alpha', 'beta', 'gamma')


def ask_person(question: str) -> bool:
    """Whether a person typed y; the end of the input is a no."""
    print(question, flush=True)
    try:
        return input().strip().lower() == 'y'
    except EOFError:
        return False


def handler_asking(ask: Callable[[str], bool]) -> DeferredToolHandler[object]:
    """A handler that puts each approval to `ask` as a question."""

    def handler(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
        # One after the other, in the model's order: recovery gives recorded answers out by the order of the steps.
        return requests.build_results(
            approvals={call.tool_call_id: ask(f'Run {call.tool_name}({call.args})?') for call in requests.approvals},
            calls={call.tool_call_id: ToolFailed('Nobody can carry this out.') for call in requests.calls},
        )

    return handler


def plan(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand in for a language model: restart one server after the other, then report."""
    returns = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    if len(returns) < len(SERVERS):
        return ModelResponse(parts=[ToolCallPart('restart', {'server': SERVERS[len(returns)]})])
    return ModelResponse(parts=[TextPart(' '.join(str(part.content) for part in returns))])


def main(folder: Path, *, asks_everything_again: bool) -> None:
    """Start the workflow, or go on with the one that an earlier process left behind."""
    recorded = DBOS.step(name='ask_person')(ask_person)
    agent = Agent(
        FunctionModel(plan),
        name='operator',  # part of the steps' names, so it must stay the same
        capabilities=[DBOSDurability()],
        # Here, not at the run: inside its workflow a durable agent takes no capability it was not built with.
        deferred_tool_handler=handler_asking(ask_person if asks_everything_again else recorded),
    )

    @agent.tool_plain(requires_approval=True)
    @DBOS.step()
    async def restart(server: str) -> str:
        """Restart a server."""
        with (folder / 'done.txt').open('a') as done:
            done.write(f'{server}\n')
        return f'{server} restarted.'

    @DBOS.workflow()
    async def maintain(prompt: str) -> str:
        return (await agent.run(prompt)).output

    async def follow() -> str:
        # The id makes it one workflow, however often the program is started. `launch` has begun to recover it.
        with SetWorkflowID('maintenance'):
            handle = await DBOS.start_workflow_async(maintain, 'Restart the servers.')
        return await handle.get_result(polling_interval_sec=0.1)

    database = f'sqlite:///{folder.resolve() / "dbos.sqlite"}'
    DBOS(config={'name': 'durable-example', 'system_database_url': database, 'log_level': 'CRITICAL'})
    DBOS.launch()
    try:
        print(asyncio.run(follow()))
    finally:
        DBOS.destroy()


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('folder', type=Path, help='an existing folder, for the records')
    parser.add_argument('--ask-everything-again', action='store_true', help='do not record answers')
    arguments = parser.parse_args()
    main(arguments.folder, asks_everything_again=arguments.ask_everything_again)
