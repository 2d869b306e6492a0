"""Agents whose calls are asked about, and what became of the calls."""

from collections.abc import Callable
from typing import Any

from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ExternalToolset, FunctionToolset
from pydantic_ai_deferred import Agent
from tool_approval.core.gate import CHANGED
from tool_approval.integrations.pydantic_ai import Approvals, ApprovalToolset

from tests.approval.parts import ListSink
from tests.loop.scripted import call, returns, scripted
from tool_approval import ApprovalController, ApprovalDecision

REFUSED = (CHANGED, 'failed')
"""What the model is told of a call that changed after it was approved."""
DELETE = call('delete', '1', path='a')


class Log(ListSink):
    """An audit sink in memory."""

    @property
    def told(self) -> list[tuple[Any, Any, Any]]:
        """Event, decision or outcome, and call of each entry."""
        return [
            (each['event'], each.get('approved', each.get('outcome')), each['tool_call_id']) for each in self.entries
        ]

    def ended(self) -> list[tuple[Any, Any]]:
        """Outcome and error of each call that has ended."""
        return [(each['outcome'], each['error']) for each in self.entries if each['event'] == 'outcome']


def deleting(*responses: Any, kind: Any = Agent, **agent: Any) -> tuple[Any, list[str]]:
    """An agent with a tool that needs approval, and what the tool has deleted."""
    ran: list[str] = []
    made = kind(scripted(*(responses or ([DELETE], 'done'))), name='janitor', **agent)

    @made.tool_plain(requires_approval=True)
    def delete(path: str, force: bool = False) -> str:
        ran.append(f'{path} {force}')
        return f'deleted {path}'

    return made, ran


def told_in(agent: Any, controller: ApprovalController, **handler: Any) -> dict[str, tuple[Any, str]]:
    """Run the agent with a handler of this controller; what the model was told of each call."""
    result = agent.run_sync('go', deferred_tool_handler=Approvals(controller, **handler, default='none'))
    return returns(result.all_messages())


def told_by(toolset: AbstractToolset[Any], controller: ApprovalController, *responses: Any, **handler: Any):
    """The same, of an agent with this toolset that makes these responses."""
    return told_in(Agent(scripted(*responses, 'done'), name='clerk', toolsets=[toolset]), controller, **handler)


def guarded(function: Callable[..., Any], controller: ApprovalController, **options: Any) -> ApprovalToolset:
    """A toolset of one function, under approval."""
    return ApprovalToolset(FunctionToolset([function]), controller, **options)


def changed(**args: Any) -> ApprovalDecision:
    """An approval of other arguments."""
    return ApprovalDecision(approved=True, override_args=args)


def external(*names: str) -> ExternalToolset[Any]:
    """Tools that are carried out elsewhere, and take a question."""
    schema = {'type': 'object', 'properties': {'question': {'type': 'string'}}, 'required': ['question']}
    return ExternalToolset([ToolDefinition(name=name, parameters_json_schema=schema) for name in names])
