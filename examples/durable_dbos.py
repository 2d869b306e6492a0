"""Recover a run that was killed during a question: `python examples/durable_dbos.py FOLDER`, twice.

Answer the first question, kill the process at the second one (`kill -9`), and start it again with the same folder. The
workflow is recovered: only the open question is asked again, and no recorded step runs twice.
DBOS keeps its records in an SQLite file in the folder. The tool writes each execution to `done.txt` there.

This is recorded, and this is not:

- Model requests: `DBOSDurability` makes each one a step of the workflow.
- Tools: only MCP and dynamic toolsets become steps, so a function tool with effects needs `@DBOS.step()`. Without the
  decorator it runs again in every recovery. A step that was killed before it was recorded also runs again: steps run at
  least once, not exactly once.
- The handler: every recovery calls it again, for each response of the run. The question of this handler is a step, so
  its answer is recorded. With `--ask-everything-again` it is not a step: the user is asked again about calls that have
  run, and DBOS fails if an answer differs from the recorded one.
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
from pydantic_ai_deferred import Agent, HandlerFunc

SERVERS = ('alpha', 'beta', 'gamma')


def ask_person(question: str) -> bool:
    """Return whether the user typed y. The end of the input means no."""
    print(question, flush=True)
    try:
        return input().strip().lower() == 'y'
    except EOFError:
        return False


def handler_asking(ask: Callable[[str], bool]) -> HandlerFunc[object]:
    """Return a handler that asks a question for each approval."""

    def handler(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
        # One after another, in the order of the model: recovery returns recorded answers in the order of the steps.
        return requests.build_results(
            approvals={call.tool_call_id: ask(f'Run {call.tool_name}({call.args})?') for call in requests.approvals},
            calls={call.tool_call_id: ToolFailed('This program cannot carry this out.') for call in requests.calls},
        )

    return handler


def plan(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand in for a language model: restart one server after another, then report."""
    returns = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    if len(returns) < len(SERVERS):
        return ModelResponse(parts=[ToolCallPart('restart', {'server': SERVERS[len(returns)]})])
    return ModelResponse(parts=[TextPart(' '.join(str(part.content) for part in returns))])


def main(folder: Path, *, asks_everything_again: bool) -> None:
    """Start the workflow, or continue the one of an earlier process."""
    recorded = DBOS.step(name='ask_person')(ask_person)
    agent = Agent(
        FunctionModel(plan),
        name='operator',  # part of the names of the steps, so it must not change
        capabilities=[DBOSDurability()],
        # Set here and not for the run: inside a workflow, a durable agent accepts no new capability.
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
        # With a fixed id it is one workflow, however often the program starts. `launch` has begun to recover it.
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
