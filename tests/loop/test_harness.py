"""Capabilities of pydantic-ai-harness: the handler is asked once, and a denied call does not run.

The harness pins the host to a release of its own, so these run where it is installed:

    pip install 'pydantic-ai-harness[acp,code-mode]' pytest hypothesis inline-snapshot
    pip install -e pydantic_ai_slim -e tool_approval
    pytest tests/loop/test_harness.py tests/approval/integrations/pydantic_ai/test_harness.py
"""

import asyncio
from typing import Any

import pytest
from pydantic_ai import ToolDenied
from pydantic_ai.models.function import FunctionModel
from pydantic_ai_deferred import Agent

from .scripted import Recorder, call, returns, scripted

MISSING = 'pydantic-ai-harness: not in the development environment'
harness: Any = pytest.importorskip('pydantic_ai_harness', reason=MISSING)

DENIED = ToolDenied('not this one')
DECISIONS = pytest.mark.parametrize('approved', [True, False], ids=['approved', 'denied'])
DELETE = call('delete', '1', path='a')


def deleting(model: FunctionModel, handler: Recorder | None, *capabilities: Any, **metadata: Any) -> Any:
    """An agent that deletes a file where its handler approves, and what was deleted."""
    agent = Agent(model, deferred_tool_handler=handler, capabilities=capabilities, name='deleting')
    deleted: list[str] = []

    @agent.tool_plain(requires_approval=True, metadata=metadata)
    async def delete(path: str) -> str:
        deleted.append(path)
        return f'deleted {path}'

    return agent, deleted


@DECISIONS
def test_code_mode_asks_about_a_call_in_the_code(approved: bool):
    handler = Recorder(**{'1__1': True if approved else DENIED})
    code = call('run_code', '1', code="await delete(path='a')")
    agent, deleted = deleting(scripted([code], 'done'), handler, harness.CodeMode())

    told = returns(agent.run_sync('go').all_messages())['1']

    assert [part.tool_name for each in handler.asked for part in each.approvals] == ['delete']
    assert deleted == (['a'] if approved else [])
    assert told[0] == 'deleted a' if approved else "'delete' call denied: not this one" in told[0]


@DECISIONS
@pytest.mark.parametrize('is_the_parents', [False, True], ids=['of the sub-agent', 'of the parent'])
def test_a_sub_agent_asks_its_handler_or_the_parents(approved: bool, is_the_parents: bool):
    handler = Recorder(**{'1': True if approved else DENIED})
    child, deleted = deleting(scripted([DELETE], 'child done'), None if is_the_parents else handler)
    delegates = harness.SubAgents(agents=[harness.SubAgent(child)], agent_folders=None)
    delegate = call('delegate_task', 'd', agent_name='deleting', task='go')
    parent = Agent(
        scripted([delegate], 'done'),
        deferred_tool_handler=handler if is_the_parents else None,
        capabilities=[delegates],
    )

    told = returns(parent.run_sync('go').all_messages())

    assert handler.ids == [['1']]
    assert deleted == (['a'] if approved else [])
    assert told == {'d': ('child done', 'success')}


@DECISIONS
def test_a_background_tool_starts_after_the_handler_was_asked(approved: bool):
    handler = Recorder(**{'1': True if approved else DENIED})
    model = scripted([DELETE], 'waiting', 'done')
    agent, deleted = deleting(model, handler, harness.BackgroundTools(), background=True)

    told = returns(agent.run_sync('go').all_messages())['1']

    assert handler.ids == [['1']]
    assert deleted == (['a'] if approved else [])
    assert 'running in background' in told[0] if approved else told == ('not this one', 'denied')


@DECISIONS
@pytest.mark.parametrize('is_risky', [True, False], ids=['risky', 'harmless'])
def test_handler_is_asked_about_calls_that_the_reviewing_model_does_not_approve(approved: bool, is_risky: bool):
    approval_reviewer = pytest.importorskip('pydantic_ai_harness.approval_reviewer')
    answer = call('final_result', 'r', response='yes' if is_risky else 'no')
    reviewer = approval_reviewer.ApprovalReviewer(scripted([answer]), question='Is it risky?')
    handler = Recorder(**{'1': True if approved else DENIED})
    agent, deleted = deleting(scripted([DELETE], 'done'), handler, reviewer)

    agent.run_sync('go')

    assert handler.ids == ([['1']] if is_risky else [])
    assert deleted == (['a'] if approved or not is_risky else [])


class Client:
    """A client of the Agent Client Protocol that refuses what it is asked about."""

    def __init__(self, schema: Any) -> None:
        self.schema = schema
        self.asked: list[str] = []

    async def session_update(self, **kwargs: Any) -> None:
        """Take a message of the agent, and show it to no one."""

    async def request_permission(self, *, tool_call: Any, options: Any, **kwargs: Any) -> Any:
        self.asked.append(tool_call.tool_call_id)
        refusal = next(option.option_id for option in options if option.kind == 'reject_once')
        outcome = self.schema.AllowedOutcome(outcome='selected', option_id=refusal)
        return self.schema.RequestPermissionResponse(outcome=outcome)


@pytest.mark.filterwarnings('ignore::pydantic_ai_harness.experimental.HarnessExperimentalWarning')
@pytest.mark.parametrize('handled', ['approved', 'denied', 'without a handler'])
def test_a_handler_is_asked_in_place_of_the_client_of_an_editor(handled: str):
    acp = pytest.importorskip('acp', reason=MISSING)
    adapter = pytest.importorskip('pydantic_ai_harness.experimental.acp')
    handler = Recorder(**{'1': True if handled == 'approved' else DENIED})
    agent, deleted = deleting(scripted([DELETE], 'done'), None if handled == 'without a handler' else handler)
    client = Client(acp.schema)

    async def chat() -> None:
        served = adapter.PydanticAIACPAgent(agent)
        served.on_connect(client)
        await served.initialize(protocol_version=1)
        session = await served.new_session(cwd='/', mcp_servers=[])
        await served.prompt(session_id=session.session_id, prompt=[acp.text_block('go')])

    asyncio.run(chat())

    assert (handler.ids, client.asked) == (([], ['1']) if handled == 'without a handler' else ([['1']], []))
    assert deleted == (['a'] if handled == 'approved' else [])
