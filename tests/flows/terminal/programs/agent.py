"""An agent on the directory it is started in, with a scripted model: `agent.py SCRIPT`, a JSON object.

`runs`: what the model does in each run: a list of steps, each with the text it says and the calls it makes. Other keys:
`timeout`, in seconds; `nested`: the calls are made by another agent, inside a tool of the first; `store`: the file of
what is remembered always; `wait_for`: a pipe that is opened before the first question; `group`: one of all calls.
"""

import asyncio
import json
import sys
from pathlib import Path

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_deferred import Agent
from tool_approval.audit import JsonlAuditSink
from tool_approval.integrations.pydantic_ai import Approvals, ApprovalToolset, FileToolset, ShellToolset
from tool_approval.storage import FileApprovalStore
from tool_approval.tools.shell import ShellTool
from tool_approval.ui.terminal.terminal_ui import TerminalUI

from tool_approval import ApprovalController, ApprovalMemory

ROOTS = {'paths': {'project': {'root': '.', 'mode': 'rw', 'write_approval': True}}}


def model(steps: list[dict]) -> FunctionModel:
    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        for part in messages[-1].parts if isinstance(messages[-1], ModelRequest) else []:
            if part.part_kind == 'tool-return':
                print(f'  {part.tool_name}: {part.content}')
        number = sum(isinstance(message, ModelResponse) for message in messages)
        if number >= len(steps):
            return ModelResponse(parts=[TextPart('done')])
        print(steps[number].get('say', 'I go on.'))
        if waits := steps[number].get('wait_for'):
            Path(waits).read_text()
        calls = [ToolCallPart(name, args) for name, args in steps[number].get('calls', [])]
        return ModelResponse(parts=[TextPart(steps[number].get('say', '')), *calls])

    return FunctionModel(respond)


def around(worker: Agent) -> Agent:
    boss = Agent(model([{'say': 'I delegate.', 'calls': [['delegate', {'task': 'tidy'}]]}]), name='boss')

    @boss.tool_plain
    async def delegate(task: str) -> str:
        return (await worker.run(task)).output

    return boss


def main(script: dict) -> None:
    memory = ApprovalMemory(FileApprovalStore('.', path=script['store']) if 'store' in script else None)
    files = FileToolset(ROOTS)
    controller = ApprovalController(
        ui=TerminalUI(memory=memory, person='ada'),
        memory=memory,
        audit=JsonlAuditSink(script['log'], key=b'k' * 16),
        presenters=files.presenters,
        timeout=script.get('timeout'),
    )
    handler = Approvals(controller, session=script.get('session'), default='none')
    toolsets = [ApprovalToolset(toolset, controller) for toolset in (files, ShellToolset(ShellTool(cwd='.')))]
    for steps in script['runs']:
        agent = Agent(model(steps), name='clerk', toolsets=toolsets)
        if script.get('nested'):
            agent = around(agent)

        print(asyncio.run(agent.run('Go.', deferred_tool_handler=handler)).output)
    print('The end.')


main(json.loads(sys.argv[1]))
