"""Ask in the terminal before a tool runs: `python examples/terminal_prompt.py`.

A plain function is enough. It is called in a thread of its own, so it may wait at `input()` as long as the person
likes while everything else on the event loop goes on.
"""

import asyncio
import json

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext, ToolApproved, ToolDenied, ToolFailed
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_deferred import Agent


def ask_in_terminal(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
    """Answer every call of one model response, one question after the other."""
    results = DeferredToolResults()
    for call in requests.approvals:
        # JSON escapes control characters: arguments come from the model and must not be able to move the cursor and
        # overwrite the question the person reads.
        arguments = json.dumps(call.args_as_dict())
        if is_confirmed(f'Run {call.tool_name} with {arguments}? [y/n] '):
            results.approvals[call.tool_call_id] = ToolApproved()
        else:
            results.approvals[call.tool_call_id] = ToolDenied('The user said no. Do not try this again.')
    for call in requests.calls:
        # A handler answers everything: what it cannot carry out it fails, so that the model can go another way.
        results.calls[call.tool_call_id] = ToolFailed('Nobody can carry this out here.')
    return results


def is_confirmed(question: str) -> bool:
    """Whether a person typed y or yes. Everything else is a no, and so is the end of the input: nobody is there."""
    try:
        return input(question).strip().lower() in ('y', 'yes')
    except EOFError:
        print()
        return False


def plan(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand in for a language model: delete two files at once, then tell what became of them."""
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
    # Not `run_sync`: `asyncio.run` turns Ctrl-C into a cancellation, so that it ends the program at any moment.
    asyncio.run(main())
