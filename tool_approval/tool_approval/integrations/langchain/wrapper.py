"""Put one tool under a controller's policy, whether a model or other code calls the tool."""

from __future__ import annotations

import asyncio
import dis
import sys
from types import FrameType
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig, ensure_config
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp
from pydantic import PrivateAttr

from tool_approval.core.asking import passing_on
from tool_approval.core.calls import Refused, Responded
from tool_approval.core.config import Default
from tool_approval.core.controller import ApprovalController
from tool_approval.core.gate import Gate
from tool_approval.core.threads import wait_for
from tool_approval.core.tool_checks import judging

from .bound_tool import BoundTool, StandIn, ToolInput, answer, answer_of, arguments_of, call_id_of, replace_input
from .calls import CallReader, decide_alone, find_facts


class ApprovalToolWrapper(StandIn):
    """A tool that judges its calls before they run, and asks for approval if policy requires it.

    The wrapper has the inner tool's name, description and parameters, and can be used like any tool: `invoke(args)`,
    `create_agent(tools=[...])`. The wrapper asks about each call separately; `ApprovalMiddleware` asks about all calls
    of a response together.

    If a model's tool call (a call with an id) does not run, the model gets a message that has `status='error'`. Code
    that calls the tool with plain arguments gets an exception.

    An approval for a session applies to one `thread_id` and one agent. Set the `thread_id`, and give the agent a name
    or set `caller`. Without a name or `caller`, each call in an agent's run is a separate session.
    """

    _gate: Gate = PrivateAttr()
    _caller: str | None = PrivateAttr()

    def __init__(
        self,
        tool: BaseTool,
        controller: ApprovalController,
        default: Default = 'required',
        *,
        caller: str | None = None,
        tells_changes: bool = True,
    ) -> None:
        """Put a tool under a controller's policy.

        Args:
            tool: The tool. Use LangChain's `@tool` to make a tool from a function.
            controller: Controller that judges the calls and decides whether they run.
            default: Verdict if neither the policy nor the tool's own check decides: `required` or `none`.
            caller: Name of the agent that has the tool, instead of the name in LangChain's configuration.
            tells_changes: Whether the model is informed of arguments that an approver changed. The notice is added to
                the result, if the result is a text or a message.

        Raises:
            TypeError: `tool` is not a tool.
            ValueError: `default` is neither `required` nor `none`.
        """
        if not isinstance(tool, BaseTool):  # pyright: ignore[reportUnnecessaryIsInstance] - most pass a function
            raise TypeError(f'`ApprovalToolWrapper` wraps a tool, not {type(tool).__name__}; make a tool with `@tool`')
        super().__init__(tool)
        self._gate = Gate(controller, default=default, tells_changes=tells_changes)
        self._caller = caller

    def invoke(self, input: ToolInput, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Ask if necessary, and run the tool. This call blocks, even if an event loop is running.

        A check that the tool defines with `check_approval(ctx)` gets `config` as `ctx.metadata['config']`.

        Args:
            input: Arguments by name, a string for the first parameter, or a model's tool call.
            config: LangChain's configuration. Approvals are remembered for the session `configurable.thread_id`.
            **kwargs: Arguments that are passed on to the tool.

        Returns:
            The tool's result. A model's tool call is answered with a message.

        Raises:
            ApprovalBlocked: Policy refuses the call. The tool has not run.
            ApprovalDenied: The call was denied, or the arguments do not fit the tool. The tool has not run.
            AuditError: The refusal could not be logged. The tool has not run.
            StoreError: Remembered approvals cannot be trusted. The tool has not run.
            TypeError: The call is awaited; await `ainvoke` instead. The tool has not run.
        """
        if _is_awaited(sys._getframe(1)):  # pyright: ignore[reportPrivateUsage] - the documented way to find callers
            raise TypeError(f'`invoke` cannot be awaited, so {self.name!r} was not run; await `ainvoke` instead')
        settled = wait_for(lambda: self._settle(input, config))
        if isinstance(settled, ToolMessage):
            return settled
        if isinstance(settled, Responded):
            return settled.response
        tool, approved = settled
        return tool.invoke(approved, config, **kwargs)

    async def ainvoke(self, input: ToolInput, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run the tool on the event loop; see `invoke`."""
        with judging():
            settled = await self._settle(input, config)
            if isinstance(settled, ToolMessage):
                return settled
            if isinstance(settled, Responded):
                return settled.response
            tool, approved = settled
            return await tool.ainvoke(approved, config, **kwargs)

    async def _settle(
        self, input: ToolInput, config: RunnableConfig | None
    ) -> ToolMessage | Responded | tuple[BoundTool, ToolInput]:
        config, given = ensure_config(config), arguments_of(input)
        reader = CallReader(
            tool=self._inner,
            name=self.name,
            call_id=call_id_of(input),
            facts=find_facts(config, caller=self._caller),
            config=config,
            judges_injected=given is not input,
        )
        with passing_on(GraphBubbleUp):
            settled = await decide_alone(self._gate, reader, given)
        if isinstance(settled, Refused):
            return answer(settled, name=self.name, call_id=reader.call_id)
        if isinstance(settled, Responded):
            return settled if reader.call_id is None else answer_of(settled, name=self.name, call_id=reader.call_id)
        tool = BoundTool(reader, settled, self._gate)
        return tool, replace_input(input, settled.call.given)


def _is_awaited(frame: FrameType) -> bool:
    """Return whether the call that a frame is executing is the operand of `await`."""
    # Code written for a wrapper with an asynchronous `invoke` would fail only after the tool has run. Reading the
    # bytecode takes long, and only code in an event loop can await.
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    following = (each for each in dis.get_instructions(frame.f_code) if each.offset > frame.f_lasti)
    return next((each.opname for each in following if each.opname != 'CACHE'), '') == 'GET_AWAITABLE'
