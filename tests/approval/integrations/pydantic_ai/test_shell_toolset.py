import asyncio
import os

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai_deferred import Agent as DeferredAgent
from tool_approval.integrations.pydantic_ai import ApprovalToolset, approval_handler
from tool_approval.integrations.pydantic_ai.shell_toolset import ShellToolset
from tool_approval.tools.shell import ShellTool

from tool_approval import ApprovalController, ApprovalDecision

RULES = {'rules': [{'pattern': 'echo', 'approval': False}, {'pattern': 'rm', 'allowed': False}]}


class Person:
    """Answers every question the same, and keeps them."""

    def __init__(self, approved):
        self.approved = approved
        self.asked = []

    async def choose(self, request, *, mode):
        self.asked.append(request)
        return ApprovalDecision(approved=self.approved, note=None if self.approved else 'not now')


def told(tmp_path, command, person):
    """What the model is told of its one command."""

    def respond(messages, info):
        returned = [part for part in messages[-1].parts if part.part_kind in ('tool-return', 'retry-prompt')]
        if returned:
            return ModelResponse(parts=[TextPart(str(returned[0].content))])
        return ModelResponse(parts=[ToolCallPart('run_shell', {'command': command})])

    controller = ApprovalController(ui=person)
    toolset = ApprovalToolset(ShellToolset(ShellTool(RULES, cwd=tmp_path)), controller)
    agent = DeferredAgent(
        FunctionModel(respond), toolsets=[toolset], deferred_tool_handler=approval_handler(controller, session='s')
    )
    return asyncio.run(agent.run('go')).output


def test_an_allowed_command_runs_unasked(tmp_path):
    person = Person(approved=False)

    assert told(tmp_path, 'echo hello', person) == 'hello'
    assert person.asked == []


@pytest.mark.parametrize('approved', [True, False])
def test_any_other_runs_only_if_approved(tmp_path, approved):
    person = Person(approved)

    told(tmp_path, 'touch made', person)

    assert os.listdir(tmp_path) == (['made'] if approved else [])
    [request] = person.asked
    assert request.presentation.content == 'touch made'


def test_a_blocked_command_is_refused_and_nobody_is_asked(tmp_path):
    person = Person(approved=True)
    (tmp_path / 'kept').touch()

    output = told(tmp_path, 'echo a; rm kept', person)

    assert 'blocked' in output
    assert person.asked == []
    assert os.listdir(tmp_path) == ['kept']


def test_without_approval_a_blocked_command_is_still_refused(tmp_path):
    toolset = ShellToolset(ShellTool(RULES, cwd=tmp_path))
    (tmp_path / 'kept').touch()

    with pytest.raises(PermissionError, match='the rule `rm` blocks it'):
        asyncio.run(toolset.run_shell('rm kept'))


def test_the_tool_is_described_for_a_model(tmp_path):
    seen = []

    def respond(messages, info):
        seen.extend(info.function_tools)
        return ModelResponse(parts=[TextPart('done')])

    Agent(FunctionModel(respond), toolsets=[ShellToolset(ShellTool(cwd=tmp_path), id='shell')]).run_sync('go')

    [tool] = seen
    assert tool.name == 'run_shell'
    assert tool.parameters_json_schema['required'] == ['command']
    assert 'bash' in tool.description
