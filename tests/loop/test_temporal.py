"""A handler in a Temporal workflow, which the SDK's own sandboxed runner executes."""

import asyncio
import inspect

import pytest

pytest.importorskip('temporalio', reason='the development environment has Temporal')

from .temporal import agents, unpassed, workflows
from .temporal.server import WorkflowFailedError, execute

pytestmark = pytest.mark.layer_only


@pytest.fixture(autouse=True)
def nothing_happened_yet():
    agents.asked.clear()
    agents.deleted.clear()


@pytest.mark.parametrize(
    ('workflow', 'asked'),
    [(workflows.WithConstructor, 'coroutine function'), (workflows.WithRunKeyword, 'run keyword')],
)
def test_a_coroutine_function_is_asked_in_a_workflow(workflow: type, asked: str):
    output = asyncio.run(execute(workflow, agents.agent))

    assert output == 'done'
    assert agents.asked == [asked]
    assert agents.deleted == ['a']


def test_a_plain_function_ends_a_workflow_with_an_error_that_says_what_to_do():
    with pytest.raises(WorkflowFailedError, match='async def handler'):
        asyncio.run(execute(workflows.WithPlainFunction, agents.agent))

    assert agents.deleted == []


def test_without_a_pass_through_the_sandbox_stops_the_workflow_before_anything_runs():
    with pytest.raises(WorkflowFailedError, match='mark the import as pass through'):
        asyncio.run(execute(unpassed.WithNothingPassed, agents.agent))

    assert (agents.asked, agents.deleted) == ([], [])


def test_a_worker_can_pass_the_package_through_for_all_its_workflows():
    assert asyncio.run(execute(unpassed.WithNothingPassed, agents.agent, 'pydantic_ai_deferred')) == 'done'

    assert agents.deleted == ['a']


@pytest.mark.filterwarnings('ignore::DeprecationWarning')
def test_the_deprecated_wrapper_has_no_keyword_for_a_handler():
    from pydantic_ai.durable_exec.temporal import TemporalAgent

    assert 'deferred_tool_handler' not in inspect.signature(TemporalAgent.run).parameters
