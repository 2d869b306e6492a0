"""One tool under a controller's policy, wherever it is called from."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig, ensure_config
from langchain_core.tools import BaseTool
from pydantic import PrivateAttr

from tool_approval.core.config import Default
from tool_approval.core.controller import ApprovalController
from tool_approval.core.gate import Gate, Refused
from tool_approval.core.threads import wait_for
from tool_approval.core.tool_checks import judging

from .bound_tool import BoundTool, StandIn, ToolInput, answer, arguments_of, call_id_of, with_arguments
from .calls import CallReader, decide_alone, find_facts


class ApprovalToolWrapper(StandIn):
    """A tool whose calls are judged, and asked about where policy says so, before they run.

    It has the inner tool's name, description and parameters, and goes wherever a tool goes: `invoke(args)`,
    `create_agent(tools=[...])`. Each call is a question of its own; `ApprovalMiddleware` asks about all calls of a
    response together.

    A model's call, one with an id, is answered by a message with `status='error'` if it does not run. Code that calls
    the tool with plain arguments gets an exception.

    What is approved for a session holds for one `thread_id` and one agent: give both, the agent by its name or by
    `caller`. In an agent's run without them each call is a session of its own.
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
            tool: The tool; a function becomes one by LangChain's `@tool`.
            controller: Judges and decides.
            default: What holds if neither the policy nor the tool's own check decides: `required` or `none`.
            caller: The name of the agent that has the tool, in place of the one in LangChain's configuration.
            tells_changes: Whether a text result, or a message, also gives the arguments that an approver changed.

        Raises:
            TypeError: `tool` is not a tool.
            ValueError: `default` is neither of the two.
        """
        if not isinstance(tool, BaseTool):  # pyright: ignore[reportUnnecessaryIsInstance] - most pass a function
            raise TypeError(f'`ApprovalToolWrapper` wraps a tool, not {type(tool).__name__}; decorate it with `@tool`')
        super().__init__(tool)
        self._gate = Gate(controller, default=default, tells_changes=tells_changes)
        self._caller = caller

    def invoke(self, input: ToolInput, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Ask if need be, and run the tool. It waits, also where an event loop is running.

        Args:
            input: Arguments by name, a text for the first parameter, or a model's call.
            config: LangChain's. `configurable.thread_id` is the session that approvals are remembered for.
            **kwargs: Passed on to the tool.

        Returns:
            What the tool returns; a message, for a model's call.

        Raises:
            ApprovalBlocked: Policy refuses the call. Nothing has run.
            ApprovalDenied: It was denied, or the arguments do not fit the tool. Nothing has run.
            AuditError: The refusal could not be written down. Nothing has run.
            StoreError: Remembered approvals cannot be trusted. Nothing has run.
        """
        settled = wait_for(lambda: self._settle(input, config))
        if isinstance(settled, ToolMessage):
            return settled
        tool, approved = settled
        return tool.invoke(approved, config, **kwargs)

    async def ainvoke(self, input: ToolInput, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """The same, on the event loop; see `invoke`."""
        with judging():
            settled = await self._settle(input, config)
            if isinstance(settled, ToolMessage):
                return settled
            tool, approved = settled
            return await tool.ainvoke(approved, config, **kwargs)

    async def _settle(
        self, input: ToolInput, config: RunnableConfig | None
    ) -> ToolMessage | tuple[BoundTool, ToolInput]:
        config, given = ensure_config(config), arguments_of(input)
        reader = CallReader(
            tool=self._inner,
            name=self.name,
            call_id=call_id_of(input),
            facts=find_facts(config, caller=self._caller),
            config=config,
            judges_injected=given is not input,
        )
        settled = await decide_alone(self._gate, reader, given)
        if isinstance(settled, Refused):
            return answer(settled, name=self.name, call_id=reader.call_id)
        tool = BoundTool(reader, settled, self._gate)
        return tool, with_arguments(input, settled.call.given)
