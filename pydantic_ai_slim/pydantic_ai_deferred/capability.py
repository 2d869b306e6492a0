"""The hook into the host's call-tools step: one capability per agent, bound anew to each run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pydantic_ai import (
    AgentRunResult,
    DeferredToolRequests,
    DeferredToolResults,
    ModelRequestContext,
    RunContext,
    capabilities,
)
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, HandleDeferredToolCalls
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, UserError
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.output import OutputContext
from pydantic_ai.result import FinalResult
from pydantic_ai.tools import ToolDefinition
from pydantic_graph import End

from . import precedence
from .handler import AnyHandler, Declined, bubble_up, call_handler, wraps_execution
from .nesting import RunScope, open_scope
from .results import check_results
from .snapshot import ValidatedArgs, take_snapshot
from .streaming import SKIPPED, DeclaredTools, answer_open_calls

# `RequestInput` exists on newer hosts only.
_ASKED_BEFORE: tuple[type[AbstractCapability[Any]], ...] = (
    HandleDeferredToolCalls,
    *([capabilities.RequestInput] if hasattr(capabilities, 'RequestInput') else ()),
)


@dataclass(eq=False)
class BoundRun:
    """What the capability keeps while one run lasts."""

    scope: RunScope
    """Whom the run asks, and what it offers to nested runs."""
    stops: bool
    """Whether deferred calls may leave the run as its output."""
    declared: DeclaredTools = field(default_factory=DeclaredTools)
    """The declared tools of the current step."""
    validated: dict[str, ValidatedArgs] = field(default_factory=dict[str, ValidatedArgs])
    """The validated arguments of the current response's calls, by `tool_call_id`."""
    asked: set[str] = field(default_factory=set[str])
    """The approvals the handler was asked for in the current response, by `tool_call_id`."""
    deferred_again: list[ToolCallPart] = field(default_factory=list[ToolCallPart])
    """The calls that deferred again after they were approved."""


@dataclass(eq=False)
class DeferredHandlerCapability(AbstractCapability[Any]):
    """Brings one handler into the agent loop.

    `Agent` adds one at construction, because a durable agent accepts none later; `HandlerAgent`, and agents that were
    built without one, add one to a run. It is not public: the keyword `deferred_tool_handler` is.
    """

    handler: AnyHandler | None = None
    """The handler given where the capability was made."""
    inherits: bool = True
    """Whether a nested run of the agent may inherit the handler of the run above it."""
    stops: bool = False
    """Whether the run's output type allows `DeferredToolRequests`."""
    run: BoundRun | None = None
    """The run this instance is bound to; `None` on the agent's own."""

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """Keep it out of agent specs: a callable cannot be written down."""
        return None

    def get_ordering(self) -> CapabilityOrdering:
        """Innermost, and after the host's own handlers: they are asked first, ours gets what they left."""
        return CapabilityOrdering(position='innermost', wrapped_by=_ASKED_BEFORE)

    async def for_run(self, ctx: RunContext[Any]) -> DeferredHandlerCapability:
        """Settle whom this run asks."""
        choice = precedence.delivered_to(self) or precedence.Choice(
            handler=self.handler, inherits=self.inherits, stops=self.stops
        )
        scope = open_scope(
            given=choice.handler,
            declines=choice.handler is bubble_up,
            inherits=choice.inherits,
            stops=choice.stops,
        )
        return replace(self, run=BoundRun(scope=scope, stops=choice.stops))

    async def wrap_run(
        self, ctx: RunContext[Any], *, handler: Callable[[], Awaitable[AgentRunResult[Any]]]
    ) -> AgentRunResult[Any]:
        """Note when the run ends: what outlives it may not ask its handler."""
        try:
            return await handler()
        finally:
            if self.run is not None:
                self.run.scope.is_live = False

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        """Ask the handler, once, for everything that is still unanswered."""
        run = self.run
        if run is None or (handler := run.scope.handler) is None:
            return None
        scope = run.scope
        if not scope.can_ask:
            names = ', '.join(f'{call.tool_name!r}' for call in (*requests.approvals, *requests.calls))
            raise UserError(
                f'Nobody can be asked about the deferred calls of {names}: the handler was inherited from a run that '
                'has ended. Wait for nested runs inside the tool that starts them, or give them a '
                '`deferred_tool_handler` of their own.'
            )
        snapshot = take_snapshot(requests, messages=ctx.messages, validated=run.validated)
        with scope.inside_handler():
            answer = await call_handler(handler, ctx, snapshot, loop=scope.loop)
        if isinstance(answer, Declined):
            return None
        results = check_results(requests, answer)
        run.asked.update(results.approvals)
        return results

    async def after_tool_validate(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any]
    ) -> dict[str, Any]:
        """Keep the validated arguments, for the snapshot."""
        if self.run is not None and self.run.scope.handler is not None:
            self.run.validated[call.tool_call_id] = ValidatedArgs(args, tool_def.parameters_json_schema)
        return args

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: Callable[[dict[str, Any]], Awaitable[Any]],
    ) -> Any:
        """Mark the place for nested runs, stop what is not approved, and let the handler stand around the rest."""
        run = self.run
        if run is None:
            return await handler(args)
        scope = run.scope

        async def execute(args: dict[str, Any]) -> Any:
            with scope.inside_tool(ctx, call):
                return await handler(args)

        if scope.handler is None:
            return await execute(args)
        try:
            if not ctx.tool_call_approved and (deferral := run.declared.deferral(tool_def)):
                raise deferral
            if ctx.tool_call_approved and call.tool_call_id in run.asked and wraps_execution(scope.handler):
                with scope.inside_handler():
                    return await scope.handler.around_execute(ctx, call, args, execute)
            return await execute(args)
        except (ApprovalRequired, CallDeferred):
            if run.declared.is_requesting:
                # Raised while the response still streams: its final output has been handed out already.
                return SKIPPED
            if ctx.tool_call_approved:
                run.deferred_again.append(call)
            raise

    async def prepare_tools(self, ctx: RunContext[Any], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
        """Take copies of the declared tools' definitions, which `wrap_model_request` may change."""
        if self.run is None or self.run.scope.handler is None:
            return tool_defs
        return self.run.declared.own(tool_defs)

    async def wrap_model_request(
        self,
        ctx: RunContext[Any],
        *,
        request_context: ModelRequestContext,
        handler: Callable[[ModelRequestContext], Awaitable[ModelResponse]],
    ) -> ModelResponse:
        """Let declared deferrals pass the stream as ordinary calls."""
        run = self.run
        if run is None or run.scope.handler is None:
            return await handler(request_context)
        run.asked.clear()
        run.validated.clear()
        with run.declared.disguised(request_context):
            return await handler(request_context)

    async def after_output_process(self, ctx: RunContext[Any], *, output_context: OutputContext, output: Any) -> Any:
        """A streamed output is final now: the loop may see the declared tools again, and skip them in its own way."""
        if self.run is not None and self.run.declared.is_requesting and not ctx.partial_output:
            self.run.declared.reveal()
        return output

    async def after_node_run(self, ctx: RunContext[Any], *, node: Any, result: Any) -> Any:
        """Leave no call of the last response open, unless it was meant to be answered later."""
        end: object = result
        if isinstance(end, End):
            self._close(cast('End[FinalResult[Any]]', end).data.output, ctx.messages, ctx)
        return result

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """The same, on hosts before 2.x, where `async for node in run` calls no node hooks."""
        self._close(result.output, result.all_messages(), ctx)
        return result

    def _close(self, output: object, messages: list[ModelMessage], ctx: RunContext[Any]) -> None:
        if self.run is not None and self.run.scope.handler is not None and not isinstance(output, DeferredToolRequests):
            answer_open_calls(messages, ctx)

    async def on_run_error(self, ctx: RunContext[Any], *, error: BaseException) -> AgentRunResult[Any]:
        """Say what happened where the host would suggest the handler that is there already."""
        run = self.run
        if run is not None and run.deferred_again and not run.stops and _is_about_output_type(error):
            names = ', '.join(f'{call.tool_name!r} (tool_call_id {call.tool_call_id!r})' for call in run.deferred_again)
            raise UserError(
                f'A tool call deferred again after the deferred tool handler had approved it: {names}. The handler is '
                'not asked twice, and what the approved calls of this response did is not undone. Let the tool look '
                'at `ctx.tool_call_approved`, or add `DeferredToolRequests` to the output types so that the run can '
                'end with these calls.'
            ) from error
        raise error


def _is_about_output_type(error: BaseException) -> bool:
    return isinstance(error, UserError) and DeferredToolRequests.__name__ in str(error)
