"""Durable engines: in their workflows a run takes no capabilities but its agent's, and the handler is asked there too."""

from typing import Any

import pytest
from pydantic_ai.capabilities import AbstractCapability, CombinedCapability, WrapperCapability
from pydantic_ai.exceptions import UserError
from pydantic_ai_deferred import Agent

from .scripted import Recorder, call, returns, scripted

pytestmark = pytest.mark.layer_only


class Engine(AbstractCapability[Any]):
    """A durable engine in whose workflow code always runs."""

    in_durable_context = True

    def _validate_runtime_capabilities(self, ctx: Any, capabilities: Any) -> None:
        if capabilities:
            raise UserError('a workflow takes no capabilities of a run')


def nothing(ctx: Any) -> None:
    """A function that makes no capability."""


@pytest.mark.parametrize(
    'capabilities',
    [[Engine()], [nothing, Engine()], [CombinedCapability([Engine()])], [WrapperCapability(Engine())]],
    ids=['alone', 'beside a function', 'in a group', 'wrapped'],
)
def test_the_handler_is_asked_in_a_workflow_by_a_capability_the_agent_was_built_with(capabilities: Any):
    constructor, run = Recorder(), Recorder()
    agent = Agent(scripted([call('delete', '1')], 'done'), deferred_tool_handler=constructor, capabilities=capabilities)
    agent.tool_plain(name='delete', requires_approval=True)(lambda: 'deleted')

    first = agent.run_sync('go')
    agent.run_sync('go', deferred_tool_handler=run)

    assert returns(first.all_messages()) == {'1': ('deleted', 'success')}
    assert (constructor.ids, run.ids) == ([['1']], [['1']])
