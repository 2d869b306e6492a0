"""The tools in an agent: each command is confined as it was allowed, whichever way the approval took."""

from dataclasses import replace

import pytest
from tool_approval.os_sandbox import Access

from tool_approval import ApprovalController

from .desk import Desk

pytest.importorskip('pydantic_ai_deferred')

import pydantic_ai
from pydantic_ai import DeferredToolRequests
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset, FunctionToolset
from pydantic_ai_deferred import Agent
from tool_approval.compat import blocking_approval as compat
from tool_approval.integrations.pydantic_ai import Approvals, ApprovalToolset, collect_approvals_sync
from tool_approval.integrations.pydantic_ai.guard import UNBOUND
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
    [tool] = info.function_tools
    return ModelResponse([ToolCallPart(tool.name, {'command': command}) for command in COMMANDS])


@pytest.fixture
def desk(tmp_path, backend):
    return Desk(tmp_path / 'work', SETTINGS, backend=backend)


def accesses(desk, backend):
    """By command, how far what has to be asked about was open to it."""
    profiles = zip(backend.commands, backend.profiles, strict=True)
    return {command[-1]: profile.access(str(desk.folder / 'file')) for command, profile in profiles}


EXPECTED = {'echo free': Access.NONE, 'printf asked': Access.READ, 'echo free again': Access.NONE}


@pytest.mark.parametrize('host', ['ours', 'stock'])
@pytest.mark.parametrize('arrangement', ['guarded', 'renamed and guarded', 'alone'])
@pytest.mark.parametrize('is_asked', [True, False])
def test_command_run_through_a_handler_has_the_access_of_its_decision(desk, backend, host, arrangement, is_asked):
    """The decision about the call counts: no name of a tool, and no policy of the settings."""
    policy = desk.workspace.policy if is_asked else {'*': {'approval': 'none'}}
    controller = ApprovalController(policy=policy, ui=RecordingUI(True))
    toolset = ShellToolset(desk.workspace.shell)
    if arrangement != 'alone':
        toolset = ApprovalToolset(toolset.prefixed('x') if 'renamed' in arrangement else toolset, controller)
    handler = Approvals(controller, default='none')
    if host == 'ours':
        agent = Agent(FunctionModel(respond), toolsets=[toolset], deferred_tool_handler=handler)
    else:
        # The host's own capability asks, and guards nothing.
        capabilities = [handler if arrangement == 'alone' else HandleDeferredToolCalls(handler)]
        agent = pydantic_ai.Agent(FunctionModel(respond), toolsets=[toolset], capabilities=capabilities)

    agent.run_sync('Go.')

    assert accesses(desk, backend) == (EXPECTED if is_asked else dict.fromkeys(COMMANDS, Access.NONE))


@pytest.mark.parametrize('is_asked', [True, False])
def test_command_run_by_a_function_for_external_calls_has_the_access_of_its_decision(desk, backend, is_asked):
    policy = {} if is_asked else {'run_shell': {'approval': 'none'}}
    controller = ApprovalController(policy=policy, ui=RecordingUI(True))
    toolset = ExternalToolset([ToolDefinition(name='run_shell', parameters_json_schema={'type': 'object'})])
    handler = Approvals(controller, external={'run_shell': desk.workspace.shell}, default='none')
    agent = Agent(FunctionModel(respond), toolsets=[toolset], deferred_tool_handler=handler)

    agent.run_sync('Go.')

    assert accesses(desk, backend) == (EXPECTED if is_asked else dict.fromkeys(COMMANDS, Access.NONE))


def test_function_for_external_calls_gets_the_approved_extra_access(desk, backend):
    def curl(messages, info):
        call = ToolCallPart('run_shell', {'command': 'true || curl a'})
        return ModelResponse([call if len(messages) == 1 else TextPart('done')])

    ui = RecordingUI(True)
    toolset = ExternalToolset([ToolDefinition(name='run_shell', parameters_json_schema={'type': 'object'})])
    handler = Approvals(ApprovalController(ui=ui), external={'run_shell': desk.workspace.shell}, default='none')

    Agent(FunctionModel(curl), toolsets=[toolset], deferred_tool_handler=handler).run_sync('Go.')

    assert ui.requests[0].presentation.metadata['extra_access'][0].startswith('network')
    assert [profile.network for profile in backend.profiles] == [True]


@pytest.mark.parametrize('is_asked', [True, False])
def test_command_approved_by_a_callback_that_was_shown_no_access_has_none(desk, backend, is_asked):
    async def run_shell(command: str) -> str:
        return await desk.workspace.shell(command)

    approved = []
    toolset = compat.ApprovalToolset(
        FunctionToolset([run_shell]),
        lambda request: approved.append(request) or compat.ApprovalDecision(approved=True),
        config={} if is_asked else {'run_shell': {'pre_approved': True}},
    )

    Agent(FunctionModel(respond), toolsets=[toolset]).run_sync('Go.')

    assert len(approved) == (3 if is_asked else 0)
    assert set(accesses(desk, backend).values()) == {Access.NONE}


def resumed(desk, forge):
    """Return what the model gets if its call was approved in one run, changed by `forge`, and resumed in another."""

    def respond(messages, info):
        answers = [part.content for part in messages[-1].parts if part.part_kind == 'tool-return']
        parts = [TextPart(str(answers[0]))] if answers else [ToolCallPart('run_shell', {'command': 'true || curl a'})]
        return ModelResponse(parts)

    controller = ApprovalController(ui=RecordingUI(True))
    toolset = ApprovalToolset(ShellToolset(desk.workspace.shell), controller)
    agent = pydantic_ai.Agent(FunctionModel(respond), toolsets=[toolset], output_type=[str, DeferredToolRequests])
    first = agent.run_sync('Go.')
    results = collect_approvals_sync(first.output, controller=controller)
    history = first.all_messages()
    forge(history, results)
    return agent.run_sync(message_history=history, deferred_tool_results=results).output


def test_a_resumed_call_has_the_access_that_was_approved(desk, backend):
    resumed(desk, lambda history, results: None)

    assert [profile.network for profile in backend.profiles] == [True]


def test_access_that_is_forged_into_a_resumed_call_fails(desk, backend):
    def forge(history, results):
        [call] = history[-1].parts
        history[-1].parts = [replace(call, args={**call.args, 'access': ['environment']})]

    assert resumed(desk, forge) == 'The call changed after it was approved, so it was not run.'
    assert backend.commands == []


def test_access_forged_into_carried_metadata_is_not_given(desk, backend):
    def forge(history, results):
        [carried] = results.metadata.values()
        [binding] = [each for each in carried.values() if isinstance(each, dict) and 'bound_to' in each]
        binding['bound_to']['extra_access'] = {'network': True, 'writes': [str(desk.folder)]}

    resumed(desk, forge)

    [profile] = backend.profiles
    assert profile.network
    assert profile.access(str(desk.folder / 'a')) is Access.READ


def test_an_approval_that_is_bound_to_nothing_runs_nothing(desk, backend):
    def forge(history, results):
        results.metadata.clear()

    assert resumed(desk, forge) == UNBOUND
    assert backend.commands == []
