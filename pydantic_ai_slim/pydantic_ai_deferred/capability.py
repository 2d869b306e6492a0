"""Ask the handler of a run about all deferred calls of a response, and let the run go on with its answer."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, cast

from pydantic_ai import (
    AgentRunResult,
    DeferredToolRequests,
    DeferredToolResults,
    FinalResultEvent,
    ModelRequestContext,
    PartStartEvent,
    RunContext,
    capabilities,
)
from pydantic_ai.capabilities import (
    AbstractCapability,
    CapabilityOrdering,
    HandleDeferredToolCalls,
    WrapModelRequestHandler,
    WrapRunHandler,
)
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    AgentStreamEvent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.output import OutputContext
from pydantic_ai.tools import AgentDepsT
from pydantic_ai.toolsets import AbstractToolset, WrapperToolset

from .handler import HandlerFunc, check_handler, check_results, copy_requests
from .nesting import Run, ask_handler
from .toolset import SKIPPED, PlacingToolset, as_function, declared_tools

# `RequestInput` exists on newer hosts only.
_ASKED_BEFORE = (HandleDeferredToolCalls, getattr(capabilities, 'RequestInput', HandleDeferredToolCalls))
HANDLER_ID = 'deferred_tool_handler'
"""Id of the capability that the keyword `deferred_tool_handler` adds. A run has one capability of an id: its own."""


@dataclass
class DeferredToolHandler(AbstractCapability[AgentDepsT]):
    """Capability that resolves deferred tool calls inside the run.

    Give it to any agent of Pydantic AI: `pydantic_ai.Agent(model, capabilities=[DeferredToolHandler(fn)])`. The keyword
    `deferred_tool_handler` of our own `Agent` adds it. Capabilities of the host that answer deferred calls are asked
    first; the handler gets the calls that are left. If a run is given one, the one of its agent is not used.
    """

    handler: HandlerFunc[AgentDepsT]
    """Function that answers all deferred calls of a response."""
    _: KW_ONLY
    id: str | None = HANDLER_ID
    """Id in the agent's capabilities. A run's capability replaces the agent's of the same id."""
    inherit: bool = True
    """Whether the handler also answers for nested runs: agents inside the tools of this run, without a handler of their
    own."""
    is_guard: ClassVar[bool] = False
    """Whether the capability also guards the tools, so that nested runs must not be without it."""
    # The host's own mark for capabilities that need no registration before a durable workflow starts; without it, a
    # workflow takes no handler for a run, and nested runs in it inherit none (test_temporal.py, test_durable.py).
    _safe_at_runtime: ClassVar[bool] = True
    _runs: dict[str | None, Run] = field(default_factory=dict[str | None, Run], init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_handler(self.handler)

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """Return `None`, because a spec cannot contain a function."""
        return None

    @classmethod
    def combine(cls, capabilities: Sequence[AbstractCapability[AgentDepsT]]) -> AbstractCapability[AgentDepsT]:
        """Use the last of several handlers that were given to the same agent or run."""
        return capabilities[-1]

    def get_ordering(self) -> CapabilityOrdering:
        """Make this the innermost capability, so that the host's own handlers are asked first."""
        return CapabilityOrdering(position='innermost', wrapped_by=_ASKED_BEFORE)

    def for_nested_run(self, handler: HandlerFunc[Any]) -> DeferredToolHandler[Any]:
        """Return the capability of a nested run without a handler of its own. `handler` asks this run."""
        return DeferredToolHandler(handler)

    def get_wrapper_toolset(self, toolset: AbstractToolset[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        """Know the place of every tool call, and let no declared tool be called without approval.

        Raises:
            UserError: Another capability of this kind answers the calls of the same run.
        """
        inner: object = toolset
        while isinstance(inner, WrapperToolset):
            if isinstance(inner, PlacingToolset):
                raise UserError(
                    'Two handlers would answer the deferred calls of this run: give it one of them, as a capability or '
                    'as `deferred_tool_handler`.'
                )
            inner = cast('WrapperToolset[Any]', inner).wrapped
        return PlacingToolset(toolset, runs=self._runs)

    async def wrap_run(self, ctx: RunContext[AgentDepsT], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        """Keep the state of the run. A copy of this object for each run would make the host select its model twice.

        Raises:
            UserError: The caller gave one `run_id` to two runs of this agent at the same time.
        """
        if ctx.run_id in self._runs:
            raise UserError(f'Two runs of one agent have the `run_id` {ctx.run_id!r} at the same time.')
        run = self._runs[ctx.run_id] = Run(handler=self.handler, offer=self.for_nested_run if self.inherit else None)
        try:
            return await handler()
        finally:
            del self._runs[ctx.run_id]
            run.ended.set_result(None)

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[AgentDepsT], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        """Ask the handler once, about all calls that are still unanswered.

        Raises:
            UserError: The handler did not answer every call. No deferred call of the response has executed.
        """
        return check_results(requests, await ask_handler(self.handler, ctx, copy_requests(ctx, requests)))

    async def wrap_model_request(
        self,
        ctx: RunContext[AgentDepsT],
        *,
        request_context: ModelRequestContext,
        handler: WrapModelRequestHandler,
    ) -> ModelResponse:
        """Begin a new response. While it streams, declared tools are functions whose validation defers the call.

        A stream ends at the first part that could be an output. The host takes a call of a *declared* tool (one with
        `requires_approval=True`, or an external tool) for an output.
        """
        run, manager = self._runs[ctx.run_id], ctx.tool_manager
        run.is_streaming = request_context.streaming
        if run.is_streaming and manager is not None and manager.tools is not None:
            run.tools, run.declared = manager.tools, declared_tools(manager.tools)
            run.tools.update({name: as_function(tool) for name, tool in run.declared.items()})
            parameters = request_context.model_request_parameters
            functions = [replace(each, kind='function') if each.defer else each for each in parameters.function_tools]
            request_context = replace(
                request_context, model_request_parameters=replace(parameters, function_tools=functions)
            )
        try:
            return await handler(request_context)
        finally:
            run.tools.update(run.declared)
            run.declared, run.is_streaming, run.has_output = {}, False, False

    async def after_output_process(
        self, ctx: RunContext[AgentDepsT], *, output_context: OutputContext, output: Any
    ) -> Any:
        """Note that a stream has given its final output. The host then skips the calls of declared tools."""
        run = self._runs[ctx.run_id]
        if run.is_streaming and not ctx.partial_output:
            run.has_output = True
            run.tools.update(run.declared)
        return output

    @property
    def has_wrap_run_event_stream(self) -> bool:
        """Return `False`: the hook is for streams only, and must not make the host stream every run."""
        return False

    async def wrap_run_event_stream(
        self, ctx: RunContext[AgentDepsT], *, stream: AsyncIterable[AgentStreamEvent]
    ) -> AsyncIterator[AgentStreamEvent]:
        """Let text after a call of a declared tool be no final output, as in runs that do not stream."""
        has_declared_call = False
        async for event in stream:
            if isinstance(event, PartStartEvent) and isinstance(event.part, ToolCallPart):
                has_declared_call = has_declared_call or self.is_declared(ctx, event.part.tool_name)
            if not (has_declared_call and isinstance(event, FinalResultEvent) and event.tool_name is None):
                yield event

    def is_declared(self, ctx: RunContext[AgentDepsT], tool_name: str) -> bool:
        """Return whether a tool, whose calls are functions while the response streams, is declared as deferred."""
        return tool_name in self._runs[ctx.run_id].declared

    async def after_run(self, ctx: RunContext[AgentDepsT], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Answer the calls that the host leaves open when an output tool ends the run."""
        if not isinstance(result.output, DeferredToolRequests):
            _answer_open_calls(result.all_messages())
        return result


async def validated_args(ctx: RunContext[Any], call: ToolCallPart) -> dict[str, Any]:
    """Return the arguments that the tool would get if `call`, a call shown to a handler, were approved unchanged.

    The requests hold the arguments as the model gave them. Use this function to show what they mean: with defaults, in
    the types of the tool, and as changed by other capabilities. Validators run again when the approved call executes.

    Args:
        ctx: The context that the handler was given.
        call: The call, or a copy of it with other `args`, to find out what an edit would execute.

    Returns:
        The tool's own objects by parameter name. Do not change them.

    Raises:
        ValidationError: The arguments do not fit the tool.
        ModelRetry: A validator of the tool rejects the arguments.
        ValueError: The run has no such tool.
    """
    manager = ctx.tool_manager
    if manager is None or call.tool_name not in (manager.tools or {}):
        raise ValueError(f'The run has no tool {call.tool_name!r}.')
    validated = await manager.validate_tool_call(call, approved=True, wrap_validation_errors=False)
    assert validated.validated_args is not None, 'arguments that are not valid raise'
    return validated.validated_args


def _answer_open_calls(messages: list[ModelMessage]) -> None:
    # A call that defers itself beside an output tool that ends the run is dropped by the host without a result, and the
    # next run would refuse the history. The result of the output tool is in the last message.
    match messages:
        case [*_, ModelResponse() as response, ModelRequest() as last]:
            pass
        case _:  # also a run that another capability ended before the model answered
            return
    answered = {getattr(part, 'tool_call_id', None) for part in last.parts}
    stubs = [
        ToolReturnPart(call.tool_name, SKIPPED, tool_call_id=call.tool_call_id)
        for call in response.tool_calls
        if call.tool_call_id not in answered
    ]
    if stubs:
        # A new object, because instrumentation keeps the serialized form of a message it has seen.
        messages[-1] = replace(last, parts=[*last.parts, *stubs])
