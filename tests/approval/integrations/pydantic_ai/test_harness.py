"""What pydantic-ai-harness does to calls under an `ApprovalToolset`. To run it, see `tests/loop/test_harness.py`."""

from typing import Any

import pytest
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai_deferred import Agent
from tool_approval.integrations.pydantic_ai import Approvals, ApprovalToolset
from tool_approval.testing import RecordingUI

from tests.loop.scripted import call, scripted
from tool_approval import ApprovalController

harness: Any = pytest.importorskip(
    'pydantic_ai_harness', reason='pydantic-ai-harness: not in the development environment'
)
DELETE = call('delete', '1', path='a')


def run(answer: bool, capability: Any, *responses: Any, **metadata: Any) -> tuple[int, list[str], str]:
    """How many questions were asked, what was deleted, and all messages as text."""
    ui = RecordingUI(answer)
    controller = ApprovalController(ui=ui)
    deleted: list[str] = []

    async def delete(path: str) -> str:
        deleted.append(path)
        return f'deleted {path}'

    tools = FunctionToolset[Any]()
    tools.add_function(delete, metadata=metadata)
    agent = Agent(scripted(*responses), toolsets=[ApprovalToolset(tools, controller)], capabilities=[capability])
    result = agent.run_sync('go', deferred_tool_handler=Approvals(controller, default='none'))
    return len(ui.requests), deleted, str(result.all_messages())


@pytest.mark.parametrize('answer', [True, False])
def test_code_mode_asks_once(answer: bool):
    code = call('run_code', '1', code="await delete(path='a')")

    asked, deleted, _ = run(answer, harness.CodeMode(), [code], 'done')

    assert (asked, deleted) == (1, ['a'] if answer else [])


@pytest.mark.parametrize('answer', [True, False])
def test_a_background_tool_does_not_run_and_the_model_reads_why(answer: bool):
    asked, deleted, messages = run(
        answer, harness.BackgroundTools(), [DELETE], 'waiting', 'done', 'done', background=True
    )

    assert (asked, deleted) == (0, [])
    assert 'background tools cannot defer a running task' in messages


@pytest.mark.parametrize('answer', [True, False])
def test_call_approved_by_a_reviewing_model_runs_without_a_question(answer: bool):
    approval_reviewer = pytest.importorskip('pydantic_ai_harness.approval_reviewer')
    verdict = call('final_result', 'r', response='no')
    reviewer = approval_reviewer.ApprovalReviewer(scripted([verdict]), question='Is it risky?')

    asked, deleted, _ = run(answer, reviewer, [DELETE], 'done')

    assert (asked, deleted) == (0, ['a'])
