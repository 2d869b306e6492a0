"""The tools in an agent: each command is confined as it was allowed, whichever way the approval took."""

import pytest
from tool_approval.os_sandbox import Access

from tool_approval import ApprovalController

from .desk import Backend, Desk

pytest.importorskip('yaml')
pytest.importorskip('tree_sitter_bash')
pytest.importorskip('pydantic_ai_deferred')

from pydantic_ai import DeferredToolRequests, DeferredToolResults
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai_deferred import Agent
from tool_approval.integrations.pydantic_ai import ApprovalToolset, approval_handler
from tool_approval.integrations.pydantic_ai.shell_toolset import ShellToolset
from tool_approval.testing import RecordingUI

SETTINGS = """\
    sandbox: {paths: {priv: {root: ., mode: ro, read_approval: true}}}
    shell: {rules: [{pattern: echo, approval: false}]}
"""
COMMANDS = ('echo free', 'printf asked', 'echo free again')


def respond(messages, info):
    if len(messages) > 1:
        return ModelResponse([TextPart('done')])
    return ModelResponse([ToolCallPart('run_shell', {'command': command}) for command in COMMANDS])


@pytest.fixture
def backend():
    return Backend()


@pytest.fixture
def desk(tmp_path, backend):
    return Desk(tmp_path / 'work', SETTINGS, backend=backend)


def accesses(desk, backend):
    """By command, how far what has to be asked about was open to it."""
    profiles = zip(backend.commands, backend.profiles, strict=True)
    return {command[-1]: profile.access(str(desk.folder / 'file')) for command, profile in profiles}


EXPECTED = {'echo free': Access.NONE, 'printf asked': Access.READ, 'echo free again': Access.NONE}


@pytest.mark.parametrize('is_guarded', [True, False])
def test_with_a_handler(desk, backend, is_guarded):
    controller = ApprovalController(policy=desk.workspace.policy, ui=RecordingUI(True))
    shell = ShellToolset(desk.workspace.shell)
    toolset = ApprovalToolset(shell, controller) if is_guarded else shell
    agent = Agent(FunctionModel(respond), toolsets=[toolset], deferred_tool_handler=approval_handler(controller))

    agent.run_sync('Go.')

    assert accesses(desk, backend) == EXPECTED


def test_when_a_run_is_stopped_and_resumed(desk, backend):
    shell = ShellToolset(desk.workspace.shell)
    agent = Agent(FunctionModel(respond), toolsets=[shell], output_type=[str, DeferredToolRequests])

    first = agent.run_sync('Go.')
    asked = first.output.approvals
    results = DeferredToolResults(approvals={call.tool_call_id: True for call in asked})
    agent.run_sync(message_history=first.all_messages(), deferred_tool_results=results)

    assert [call.args for call in asked] == [{'command': 'printf asked'}]
    assert accesses(desk, backend) == EXPECTED
