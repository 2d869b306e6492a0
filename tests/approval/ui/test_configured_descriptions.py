"""A description that a configuration gives is shown as the configuration's, wherever a description is shown."""

import asyncio
from datetime import UTC, datetime

import pytest
from tool_approval.answering import with_arguments
from tool_approval.display import facts
from tool_approval.inbox import Approver, Content, InboxEntry
from tool_approval.inbox.entry import write_content
from tool_approval.settings import Settings
from tool_approval.testing import ScriptedUI
from tool_approval.tools.shell import ShellTool
from tool_approval.ui.slack.blocks import message_of
from tool_approval.ui.terminal.render import outcome_text, render_group, render_request
from tool_approval.ui.web.view import view_of

from tool_approval import (
    ApprovalContext,
    ApprovalController,
    ApprovalDecision,
    ApprovalMemory,
    ApprovalPolicy,
    ApprovalRequest,
    ApprovalResult,
)

LIE = 'Read the README (changes nothing)'
TOOLS = {'write_file': {'description': LIE}}
SAID = f'described by the configuration as: {LIE}'


def asked_with(policy, request=None):
    ui = ScriptedUI([True])
    controller = ApprovalController(ui=ui, policy=policy)
    request = request or ApprovalRequest(tool_name='write_file', args={'path': 'a'})
    asyncio.run(controller.request_approval(request))
    return ui.requests[0]


@pytest.fixture
def request_():
    return asked_with(ApprovalPolicy(TOOLS))


@pytest.mark.parametrize(
    ('policy', 'source'),
    [
        (ApprovalPolicy(TOOLS), 'the configuration'),
        (ApprovalPolicy.from_yaml(f'tools: {{write_file: {{description: {LIE}}}}}', source='a.yaml'), 'a.yaml'),
        (Settings.model_validate({'tools': TOOLS}).policy, 'the settings file'),
    ],
)
def test_a_request_names_the_configuration_that_describes_it(policy, source):
    context = ApprovalContext(tool_name='write_file', args={'path': 'a'})

    request, verdict = asked_with(policy), asyncio.run(policy.judge(context))

    assert (request.description, request.described_by) == (verdict.description, verdict.described_by) == (LIE, source)
    assert request.attributed_description == f'described by {source} as: {LIE}'


def test_a_description_of_the_tool_has_no_source():
    request = ApprovalRequest(tool_name='write_file', args={}, description='Write a file')

    assert request.described_by is None
    assert request.attributed_description == 'Write a file'
    assert asked_with(ApprovalPolicy({'other': {'description': LIE}}), request).described_by is None


def test_a_shell_rule_describes_in_its_own_name():
    tool = ShellTool({'rules': [{'pattern': 'rm', 'description': LIE}]}, cwd='/')

    request = tool.check_approval(ApprovalContext(tool_name='run', args={'command': 'rm a'}))
    verdict = asyncio.run(
        ApprovalPolicy().judge(ApprovalContext(tool_name='run', args={'command': 'rm a'}), logic=[tool])
    )

    assert request.described_by == verdict.described_by == 'the shell rules'
    assert tool.check_approval(ApprovalContext(tool_name='run', args={'command': 'ls'})).described_by is None


def test_terminal_names_the_configuration_as_the_source(request_):
    drawn = render_request(request_, width=100, height=40, color=False, ascii_only=True, keys=())
    group = render_group([request_, request_], width=120, height=7, color=False, ascii_only=True)
    answer = outcome_text(request_, ApprovalDecision(approved=True), ascii_only=True)

    assert SAID in drawn
    assert 'write_file' in drawn and 'path' in drawn
    assert f'1  write_file: {SAID}' in group
    assert answer == f'approved write_file: {SAID}'


def test_page_and_slack_name_the_configuration_as_the_source(request_):
    noon = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
    entry = InboxEntry(
        id='i' * 43, digest='d' * 64, state='pending', content=Content(request=request_), posted_at=noon
    )  # fmt: skip

    view = view_of(entry, Approver(id='ada'))

    assert ('about', SAID) in facts(request_)
    assert view.description == SAID
    assert [fact.text for fact in view.facts if fact.label == 'about'] == [SAID]
    assert SAID in str(message_of(entry).blocks)
    assert Content.model_validate_json(write_content(entry.content)).request.attributed_description == SAID


def test_list_of_approvals_marks_configured_descriptions(request_):
    memory = ApprovalMemory()

    memory.store(request_, ApprovalDecision(approved=True, remember='session'))

    assert [approval.label for approval in memory.list_approvals()] == [SAID]


def test_other_arguments_are_described_by_the_tool(request_):
    request = with_arguments(request_, {'path': 'b'})

    assert request.attributed_description == "write_file(path='b')"


def test_a_function_that_describes_its_call_wins_over_no_configuration():
    def tool(path):
        """Asks for itself."""

    tool.check_approval = lambda context: ApprovalRequest(tool_name='t', args=context.args, description='of its own')
    verdict = asyncio.run(ApprovalPolicy().judge(ApprovalContext(tool_name='t', args={}), logic=[tool]))

    assert (verdict.description, verdict.described_by) == ('of its own', None)
    assert verdict.status == ApprovalResult.needs_approval().status
