"""Add approval to a loop of your own: `python examples/approval_no_framework.py`.

This program imports no agent framework. `reply` stands in for a model's API: it takes the messages so far, and returns
tool calls or a text. Replace it by a call of your provider's library.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from tool_approval import (
    ApprovalBlocked,
    ApprovalDecision,
    ApprovalDenied,
    ApprovalMode,
    ApprovalRequest,
    Approvals,
)

Message = dict[str, Any]


class Person:
    """Answers in place of a user: approves deleting `old.log`, and nothing else."""

    one_at_a_time = True

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Answer a question. A plain function is called in a thread, so it may wait for `input`."""
        is_fine = request.args['path'] == 'old.log'
        print(f'asked: {request.description} -> {"yes" if is_fine else "no"}')
        return ApprovalDecision(approved=is_fine, note=None if is_fine else 'Keep that one.')


def list_files() -> str:
    """List the files. A rule says that this needs no approval."""
    return 'notes.txt old.log'


async def delete_file(path: str) -> str:
    """Pretend to delete a file. No rule names it, so it needs approval."""
    return f'{path} is gone'


def format_disk() -> str:
    """Pretend to format the disk. A rule blocks it."""
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


async def carry_out(approvals: Approvals, name: str, arguments: str) -> str:
    """Execute a call, and return its result for the model. A refusal is a result too, so that the model can react."""
    if name not in TOOLS:
        return f'there is no tool {name!r}'
    context = {'session_id': 'this conversation', 'caller': 'janitor'}
    try:
        return await approvals.execute(TOOLS[name], json.loads(arguments), name=name, metadata=context)
    except ApprovalBlocked as block:
        return f'not allowed: {block.reason}'
    except ApprovalDenied as denial:
        return f'denied: {denial.reason}'


async def run(approvals: Approvals, prompt: str) -> str:
    """Let the model call tools until it returns a text."""
    messages: list[Message] = [{'role': 'user', 'content': prompt}]
    while True:
        message = reply(messages)
        messages.append(message)
        if not message['calls']:
            return message['content']
        for call in message['calls']:
            told = await carry_out(approvals, call['name'], call['arguments'])
            messages.append({'role': 'tool', 'content': told})


def main() -> None:
    approvals = Approvals({'list_*': {'approval': 'none'}, 'format_*': {'approval': 'blocked'}}, ui=Person())
    print(asyncio.run(run(approvals, 'Make room.')))


if __name__ == '__main__':
    main()
