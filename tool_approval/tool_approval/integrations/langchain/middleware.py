"""A middleware for LangChain's agents that asks inside the run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import (
    AgentMiddleware,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    ToolCallRequest,
)
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.config import get_config
from langgraph.runtime import Runtime
from langgraph.types import Command

from tool_approval.core.config import Default
from tool_approval.core.controller import ApprovalController

from .blocking import wait_for
from .calls import check_default
from .gate import Gate
from .state import ApprovalState, Offer, find_offer


class ApprovalMiddleware(AgentMiddleware[ApprovalState, Any, Any]):
    """Asks about an agent's tool calls while its run waits: with no checkpointer, and no second invocation.

    After each response of the model all its calls are decided together; only then does any of them run. A call that
    is refused is answered by a message with `status='error'` and the reason.

    Put it last in the list of middleware: then nothing stands between it and the tools, and it knows the tools that
    others add. Whatever another middleware changes after the decision does not run, wherever it stands; only one
    further inside that exchanges the tool itself has to be trusted.
    """

    state_schema = ApprovalState

    def __init__(
        self,
        controller: ApprovalController,
        *,
        default: Default = 'required',
        caller: str | None = None,
        tells_changes: bool = True,
    ) -> None:
        """Put an agent's tools under a controller's policy.

        Args:
            controller: Judges and decides. Give it a lasting `key` where runs are resumed in another process.
            default: What holds for a tool about which neither the policy nor the tool itself says anything: `required`
                or `none`.
            caller: The agent's name, in place of the one given to `create_agent`. An agent that runs in a tool of
                another one needs it here, or nothing is remembered for it beyond its run.
            tells_changes: Whether a call's result tells the model that the approver changed its arguments.

        Raises:
            ValueError: There is no such default.
        """
        super().__init__()
        check_default(default)
        self._gate = Gate(controller=controller, default=default, caller=caller, tells_changes=tells_changes)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ExtendedModelResponse[Any]:
        """Keep what the model can call, for the decision after its response."""
        return ExtendedModelResponse(model_response=handler(request), command=_offering(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ExtendedModelResponse[Any]:
        """The same, on the event loop."""
        return ExtendedModelResponse(model_response=await handler(request), command=_offering(request))

    def after_model(self, state: ApprovalState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Decide all calls of the response. It waits, also where an event loop is running."""
        config = get_config()
        return wait_for(lambda: self._gate.after_response(state, config))

    async def aafter_model(self, state: ApprovalState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """The same, on the event loop."""
        return await self._gate.after_response(state, get_config())

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Run a call if it is one that was allowed."""
        ready = wait_for(lambda: self._gate.before_call(request))
        return ready if isinstance(ready, ToolMessage) else handler(ready)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """The same, on the event loop."""
        ready = await self._gate.before_call(request)
        return ready if isinstance(ready, ToolMessage) else await handler(ready)


def _offering(request: ModelRequest[Any]) -> Command[Any]:
    info = request.runtime.execution_info
    first = find_offer(request.state).run_id
    run_id = first or (None if info is None else info.run_id or info.checkpoint_id)
    tools = {tool.name: tool for tool in request.tools if isinstance(tool, BaseTool)}
    return Command(update={'tool_approval_offer': Offer(run_id=run_id, tools=tools)})
