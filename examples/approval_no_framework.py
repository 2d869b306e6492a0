"""Approval in a loop of your own: `python examples/approval_no_framework.py`.

No agent framework is imported. `reply` stands in for a model's API: it is given the messages so far, and wants tools
called or says something. Put the call of your provider's library in its place.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from tool_approval import (
    ApprovalBlocked,
    ApprovalController,
    ApprovalDecision,
    ApprovalDenied,
    ApprovalMode,
    ApprovalRequest,
    execute_tool,
    requires_approval,
)

Message = dict[str, Any]


class Person:
    """Stands in for somebody at a terminal: lets `old.log` go, and nothing else."""

    one_at_a_time = True

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """A plain function is called in a thread of its own, so it may block on `input`."""
        is_fine = request.args['path'] == 'old.log'
        print(f'asked: {request.description} -> {"yes" if is_fine else "no"}')
        return ApprovalDecision(approved=is_fine, note=None if is_fine else 'Keep that one.')


def list_files() -> str:
    """Nothing is said about this one: it runs unasked."""
    return 'notes.txt old.log'


@requires_approval()
async def delete_file(path: str) -> str:
    """Delete a file; this example only says so."""
    return f'{path} is gone'


def format_disk() -> str:
    """The policy blocks it."""
    return 'the disk is empty'


TOOLS: dict[str, Callable[..., Any]] = {
    'list_files': list_files,
    'delete_file': delete_file,
    'format_disk': format_disk,
}


def reply(messages: list[Message]) -> Message:
    """Stand in for a model: look, delete, format, then report."""
    calls: list[tuple[str, dict[str, str]]]
    match sum(message['role'] == 'assistant' for message in messages):
        case 0:
            calls = [('list_files', {})]
        case 1:
            calls = [('delete_file', {'path': 'old.log'}), ('delete_file', {'path': 'notes.txt'})]
        case 2:
            calls = [('format_disk', {})]
        case _:
            results = [message['content'] for message in messages if message['role'] == 'tool']
            return {'role': 'assistant', 'content': '\n'.join(results), 'calls': []}
    made = [{'name': name, 'arguments': json.dumps(args)} for name, args in calls]
    return {'role': 'assistant', 'content': '', 'calls': made}


async def carry_out(controller: ApprovalController, name: str, arguments: str) -> str:
    """What the model is told of one call. A refusal is a result like any other: the model can act on it."""
    if name not in TOOLS:
        return f'there is no tool {name!r}'
    context = {'session_id': 'this conversation', 'caller': 'janitor'}
    try:
        return await execute_tool(TOOLS[name], name, json.loads(arguments), controller, context)
    except ApprovalBlocked as block:
        return f'not allowed: {block.reason}'
    except ApprovalDenied as denial:
        return f'denied: {denial.reason}'


async def run(controller: ApprovalController, prompt: str) -> str:
    """Let the model call tools until it has nothing more to do."""
    messages: list[Message] = [{'role': 'user', 'content': prompt}]
    while True:
        message = reply(messages)
        messages.append(message)
        if not message['calls']:
            return message['content']
        for call in message['calls']:
            told = await carry_out(controller, call['name'], call['arguments'])
            messages.append({'role': 'tool', 'content': told})


def main() -> None:
    controller = ApprovalController(ui=Person(), policy={'format_*': {'approval': 'blocked'}})
    print(asyncio.run(run(controller, 'Make room.')))


if __name__ == '__main__':
    main()
