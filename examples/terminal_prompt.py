"""Ask in the terminal before a tool runs: `python examples/terminal_prompt.py`.

A plain function is enough. It runs in a thread, so `input()` may wait for the user while the event loop continues.
"""

import asyncio
import json

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext, ToolApproved, ToolDenied, ToolFailed
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_deferred import Agent


def ask_in_terminal(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
    """Answer every call of a model response, one question after another."""
    results = DeferredToolResults()
    for call in requests.approvals:
        # JSON escapes control characters. Otherwise arguments of the model could move the cursor, and overwrite the
        # question.
        arguments = json.dumps(call.args_as_dict())
        if is_confirmed(f'Run {call.tool_name} with {arguments}? [y/n] '):
            results.approvals[call.tool_call_id] = ToolApproved()
        else:
            results.approvals[call.tool_call_id] = ToolDenied('The user said no. Do not try this again.')
    for call in requests.calls:
        # A handler must answer every call. A failed call lets the model try something else.
        results.calls[call.tool_call_id] = ToolFailed('This program cannot carry this out.')
    return results


def is_confirmed(question: str) -> bool:
    """Return whether the user typed y or yes. Anything else denies, and so does the end of the input."""
    try:
        return input(question).strip().lower() in ('y', 'yes')
    except EOFError:
        print()
        return False


def plan(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand in for a language model: delete two files at once, then report."""
    returns = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
    if not returns:
        paths = ('draft.txt', 'thesis.txt')
        return ModelResponse(parts=[ToolCallPart('delete_file', {'path': path}) for path in paths])
    return ModelResponse(parts=[TextPart('\n'.join(f'- {part.content}' for part in returns))])


agent = Agent(FunctionModel(plan), deps_type=set[str], deferred_tool_handler=ask_in_terminal)


@agent.tool(requires_approval=True)
def delete_file(ctx: RunContext[set[str]], path: str) -> str:
    """Delete a file for good."""
    ctx.deps.remove(path)
    return f'{path} is deleted.'


async def main() -> None:
    files = {'draft.txt', 'notes.txt', 'thesis.txt'}
    result = await agent.run('Tidy up.', deps=files)
    print(result.output)
    print('Left:', ', '.join(sorted(files)))


if __name__ == '__main__':
    # Not `run_sync`: `asyncio.run` turns Ctrl-C into a cancellation, so it ends the program at any moment.
    asyncio.run(main())
