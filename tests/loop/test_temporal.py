"""A handler in a Temporal workflow, which the SDK's own sandboxed runner executes."""

import asyncio
import inspect

import pytest

pytest.importorskip('temporalio', reason='the development environment has Temporal')

from .temporal import agents, unpassed, workflows
from .temporal.server import WorkflowFailedError, execute


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
        asyncio.run(execute(workflows.WithPlainFunction, agents.blocking))

    assert agents.deleted == []


def test_the_sandbox_can_import_the_package_anew():
    assert asyncio.run(execute(unpassed.WithNothingPassed, agents.agent)) == 'done'

    assert agents.deleted == ['a']


def test_a_worker_can_pass_the_package_through_for_all_its_workflows():
    assert asyncio.run(execute(unpassed.WithNothingPassed, agents.agent, 'pydantic_ai_deferred')) == 'done'

    assert agents.deleted == ['a']


@pytest.mark.filterwarnings('ignore::DeprecationWarning')
def test_the_deprecated_wrapper_has_no_keyword_for_a_handler():
    from pydantic_ai.durable_exec.temporal import TemporalAgent

    assert 'deferred_tool_handler' not in inspect.signature(TemporalAgent.run).parameters
