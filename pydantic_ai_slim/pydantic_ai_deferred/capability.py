"""Hook into the host's run: ask the run's handler about deferred calls, and enforce its answers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, cast
from weakref import WeakValueDictionary

from pydantic_ai import (
    AgentRunResult,
    DeferredToolRequests,
    DeferredToolResults,
    ModelRequestContext,
    RunContext,
    capabilities,
)
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, CombinedCapability, HandleDeferredToolCalls
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, UnexpectedModelBehavior, UserError
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.output import OutputContext
from pydantic_ai.result import FinalResult
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
from pydantic_graph import End

from .handler import Declined, ExecutionWrapper, run_on_loop, wraps_execution, wraps_resumed
from .plan import RunPlan, delivered_to
from .results import check_results, name_calls
from .run import Run, around_tool
from .streaming import SKIPPED, answer_open_calls

# `RequestInput` exists on newer hosts only.
_ASKED_BEFORE: tuple[type[AbstractCapability[Any]], ...] = (
    HandleDeferredToolCalls,
    *([capabilities.RequestInput] if hasattr(capabilities, 'RequestInput') else ()),
)
_INNERMOST = CapabilityOrdering(position='innermost', wrapped_by=_ASKED_BEFORE)


@dataclass(eq=False)
class DeferredHandlerCapability(AbstractCapability[Any]):
    """Carries a plan to the agent or run that has this capability. Users pass `deferred_tool_handler` instead.

    A durable agent gets this capability when the agent is created, because its workflow accepts no capability later.
    """

    plan: RunPlan = field(default_factory=RunPlan)
    """Plan that was determined when the capability was created."""

    async def for_run(self, ctx: RunContext[Any]) -> AbstractCapability[Any]:
        """Add the capabilities of this run, unless the run got them when it started.

        If this method returned a new capability, the host would select the model twice, and trace an instrumented model
        twice.
        """
        plan = delivered_to(self) or self.plan
        return self if plan.superseded else CombinedCapability(capabilities_for(plan))


def capabilities_for(plan: RunPlan) -> list[RunCapability]:
    """Return the capabilities of a run that starts now, outermost first."""
    run = Run.start(plan)
    if run.handler is None:
        return [RunPlace(run)]
    return [RunArguments(run), RunHandler(run)] if plan.args_may_be_rewritten else [FastPathHandler(run)]


@dataclass(eq=False)
class RunCapability(AbstractCapability[Any]):
    """A capability of one run."""

    run: Run
    """State of the run that the capability belongs to."""

    def run_of(self, ctx: RunContext[Any]) -> Run | None:
        """Return the run in which a hook is called, or `None` if the hook must do nothing."""
        return self.run


@dataclass(eq=False)
class RunPlace(RunCapability):
    """Records the run, so that nested runs find their outer run. A run without a handler needs only this capability."""

    def get_ordering(self) -> CapabilityOrdering:
        """Make this the innermost capability, so that the host's own handlers are asked first."""
        return _INNERMOST

    async def wrap_run(
        self, ctx: RunContext[Any], *, handler: Callable[[], Awaitable[AgentRunResult[Any]]]
    ) -> AgentRunResult[Any]:
        """Call `Run.end` when the run ends."""
        run = self.run_of(ctx)
        try:
            return await handler()
        finally:
            if run is not None:
                run.end()

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: Callable[[dict[str, Any]], Awaitable[Any]],
    ) -> Any:
        """Record this run as the outer run of all runs that the tool starts."""
        return await self.run.inside_tool(ctx, call, handler(args))


@dataclass(eq=False)
class RunArguments(RunCapability):
    """Keeps the arguments that the tools would get, to show them to the handler. This capability is the outermost, so
    its hook runs last and gets the arguments as changed by all other hooks.
    """

    def get_ordering(self) -> CapabilityOrdering:
        """Make this the outermost capability, so that the handler sees the arguments as changed by the others."""
        return CapabilityOrdering(position='outermost')

    # Which of the two hooks runs last depends on the host: since 2.x, `wrap` encloses the others.
    async def wrap_tool_validate(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: str | dict[str, Any],
        handler: Callable[[str | dict[str, Any]], Awaitable[dict[str, Any]]],
    ) -> dict[str, Any]:
        """Keep the validated arguments, to show them to the handler."""
        validated = await handler(args)
        self.run.note_arguments(call, validated, tool_def)
        return validated

    async def after_tool_validate(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any]
    ) -> dict[str, Any]:
        """Keep the validated arguments, to show them to the handler."""
        self.run.note_arguments(call, args, tool_def)
        return args


@dataclass(eq=False)
class RunHandler(RunPlace):
    """Asks the handler of one run, and enforces its answers."""

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        """Ask the handler once, about all calls that are still unanswered."""
        run = self.run_of(ctx)
        if run is None:
            return None
        _refuse_repeated_ids([*requests.approvals, *requests.calls])
        answer = await run.ask(ctx, requests)
        if isinstance(answer, Declined):
            return None
        results = check_results(requests, answer)
        run.asked.update(results.approvals)
        return results

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: Callable[[dict[str, Any]], Awaitable[Any]],
    ) -> Any:
        """Refuse to run a declared tool without approval, and skip a call that is deferred after the final output."""
        run = self.run_of(ctx)
        if run is None:
            return await handler(args)
        try:
            if not ctx.tool_call_approved:
                run.declared.refuse(tool_def)
            elif call.tool_call_id not in run.asked and not (run.is_resuming and wraps_resumed(run.handler)):
                return await run.inside_tool(ctx, call, handler(args))
            run.executing[call.tool_call_id] = call
            try:
                return await run.inside_tool(ctx, call, handler(args))
            finally:
                run.executing.pop(call.tool_call_id, None)
        except (ApprovalRequired, CallDeferred):
            if run.declared.is_final:
                return SKIPPED
            if ctx.tool_call_approved:
                run.deferred_again.append(call)
            raise
        except UserError as error:
            run.tool_errors.append(error)
            raise

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any] | None:
        """Wrap the tools in a `ToolGate` if arguments may be rewritten or the handler wraps executions."""
        needs_gate = self.run.plan.args_may_be_rewritten or wraps_execution(self.run.handler)
        return ToolGate(toolset, run=self.run) if needs_gate else None

    async def prepare_tools(self, ctx: RunContext[Any], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
        """Copy the definitions of declared tools, because `wrap_model_request` may change them."""
        run = self.run_of(ctx)
        return tool_defs if run is None else run.declared.own(tool_defs)

    async def wrap_model_request(
        self,
        ctx: RunContext[Any],
        *,
        request_context: ModelRequestContext,
        handler: Callable[[ModelRequestContext], Awaitable[ModelResponse]],
    ) -> ModelResponse:
        """Make declared tools look ordinary while a response streams."""
        run = self.run_of(ctx)
        if run is not None:
            run.forget_response()
        # Older hosts do not say whether a request streams.
        if run is None or not getattr(request_context, 'streaming', True):
            return await handler(request_context)
        with run.declared.disguised(request_context):
            return await handler(request_context)

    async def after_output_process(self, ctx: RunContext[Any], *, output_context: OutputContext, output: Any) -> Any:
        """Record that a stream has given its final output."""
        run = self.run_of(ctx)
        if run is not None and not ctx.partial_output:
            run.declared.output_is_final()
        return output

    async def after_node_run(self, ctx: RunContext[Any], *, node: Any, result: Any) -> Any:
        """Answer the open calls of the last response, unless the run ends with `DeferredToolRequests`."""
        end: object = result
        if isinstance(end, End) and self.run_of(ctx) is not None:
            _close(cast('End[FinalResult[Any]]', end).data.output, ctx.messages, ctx)
        return result

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Answer the open calls here too, because `async for node in run` calls no node hooks on hosts before 2.x."""
        if self.run_of(ctx) is not None:
            _close(result.output, result.all_messages(), ctx)
        return result

    async def on_run_error(self, ctx: RunContext[Any], *, error: BaseException) -> AgentRunResult[Any]:
        """Explain a repeated deferral. The host's error would suggest adding a handler, but the run already has one."""
        run = self.run_of(ctx)
        if run is None:
            raise error
        # The host has no error class for "calls would leave the run, but the output type does not allow it".
        is_hosts = isinstance(error, UserError) and not any(error is each for each in run.tool_errors)
        if run.deferred_again and not run.plan.output_allows_deferred and is_hosts:
            raise UserError(
                'A tool call was deferred again after the deferred tool handler had approved it: '
                f'{name_calls(run.deferred_again)}. The handler is not called twice, and effects of the approved calls '
                'of this response are not undone. Check `ctx.tool_call_approved` in the tool, or add '
                '`DeferredToolRequests` to the output types so that the run can end with these calls.'
            ) from error
        raise error


@dataclass(eq=False)
class FastPathHandler(RunHandler):
    """A `RunHandler` that needs no `RunArguments`, because no other capability of the run rewrites arguments."""

    async def after_tool_validate(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any]
    ) -> dict[str, Any]:
        """Keep the validated arguments, to show them to the handler."""
        run = self.run_of(ctx)
        if run is not None and not ctx.tool_call_approved:
            run.note_arguments(call, args, tool_def)
        return args


class AgentHandler(FastPathHandler):
    """A `FastPathHandler` that all runs of an agent share. One shared object costs less than an object for each run."""

    def __init__(self) -> None:
        """Start without runs."""
        self._runs: WeakValueDictionary[str | None, Run] = WeakValueDictionary()

    async def for_run(self, ctx: RunContext[Any]) -> AbstractCapability[Any]:
        """Accept a new run if `delivering` provided the run's state. `open_run` keeps the state until the run ends."""
        run = delivered_to(self)
        if run is None:
            return self
        if ctx.run_id in self._runs:  # a caller may give two runs the same id
            return FastPathHandler(run)
        self._runs[ctx.run_id] = run
        return self

    def run_of(self, ctx: RunContext[Any]) -> Run | None:
        """Return the run that `ctx` belongs to, or `None` if this capability has not accepted that run."""
        return self._runs.get(ctx.run_id)

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any] | None:
        """Wrap the tools in a `ToolGate` if a run is being started and its handler wraps executions."""
        run = delivered_to(self)
        return None if run is None else FastPathHandler(run).get_wrapper_toolset(toolset)


@dataclass
class ToolGate(WrapperToolset[Any]):
    """Innermost wrapper of a run's tools.

    A handler must see the final arguments. This class therefore wraps the toolset instead of using the hook
    `wrap_tool_execute`. On newer hosts, other capabilities may still change the arguments inside that hook.
    """

    run: Run
    """The run that the tools belong to."""

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Execute the tool, inside the handler's `around_execute` if the handler was asked about this call."""
        call = self.run.executing.get(ctx.tool_call_id or '')
        handler = self.run.handler
        if call is not None and ctx.tool_call_approved and wraps_execution(handler):
            return await self._inside(handler, call, name, tool_args, ctx, tool)
        try:
            return await self.wrapped.call_tool(name, tool_args, ctx, tool)
        except (ApprovalRequired, CallDeferred):
            if call is not None:
                # After all hooks: the arguments that the tool was called with.
                self.run.note_arguments(call, tool_args, tool.tool_def)
            raise

    async def _inside(
        self,
        handler: ExecutionWrapper,
        call: ToolCallPart,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],
    ) -> Any:
        here = asyncio.get_running_loop()
        with around_tool() as inside_tool:

            async def execute(args: dict[str, Any]) -> Any:
                with inside_tool():
                    return await self.wrapped.call_tool(name, args, ctx, tool)

            async def run(args: dict[str, Any]) -> Any:
                return await run_on_loop(here, lambda: execute(args))

            return await run_on_loop(self.run.loop, lambda: handler.around_execute(ctx, call, tool_args, run))


def _refuse_repeated_ids(calls: list[ToolCallPart]) -> None:
    if len({call.tool_call_id for call in calls}) < len(calls):
        # Answers are given by id: one answer for two calls would approve a call that the handler did not see.
        counts = Counter(call.tool_call_id for call in calls)
        names = name_calls([call for call in calls if counts[call.tool_call_id] > 1])
        raise UnexpectedModelBehavior(f'The model gave the same id to several deferred calls in one response: {names}.')


def _close(output: object, messages: list[ModelMessage], ctx: RunContext[Any]) -> None:
    if not isinstance(output, DeferredToolRequests):
        answer_open_calls(messages, ctx)
