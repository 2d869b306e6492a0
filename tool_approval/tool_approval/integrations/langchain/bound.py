"""A tool that runs a single call: the one that was allowed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from pydantic import PrivateAttr

from tool_approval.core.controller import ApprovalController
from tool_approval.core.entries import Outcome
from tool_approval.core.errors import ApprovalBlocked, ApprovalDenied
from tool_approval.core.own_logic import approving

from .arguments import read_arguments
from .calls import CHANGED, Allowed, Refused
from .results import refusal, with_notice
from .stand_in import StandIn, ToolInput, arguments_of, call_id_of, with_arguments


class BoundTool(StandIn):
    """Runs the call that was allowed, and no other: the last thing between a decision and a tool."""

    _allowed: Allowed = PrivateAttr()
    _controller: ApprovalController = PrivateAttr()
    _tells_changes: bool = PrivateAttr()

    def __init__(self, allowed: Allowed, controller: ApprovalController, *, tells_changes: bool) -> None:
        """Stand for the tool of a call.

        Args:
            allowed: The call, and what it is bound to.
            controller: Who allowed it, and writes down what comes of it.
            tells_changes: Whether the model is told that the approver changed the arguments.
        """
        super().__init__(allowed.call.tool)
        self._allowed = allowed
        self._controller = controller
        self._tells_changes = tells_changes

    def invoke(self, input: ToolInput, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run the tool, if this is the call that was allowed.

        Raises:
            ApprovalDenied: It is not, and the call has no id.
        """
        ready = self._ready(input)
        if ready is None:
            return self._refused(input)
        try:
            with approving(self._approved):
                result = self._inner.invoke(ready, config, **kwargs)
        except BaseException as error:
            self._record('failed', error)
            raise
        return self._finished(result)

    async def ainvoke(self, input: ToolInput, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """The same, on the event loop.

        Raises:
            ApprovalDenied: It is not the call that was allowed, and has no id.
        """
        ready = self._ready(input)
        if ready is None:
            return self._refused(input)
        try:
            with approving(self._approved):
                result = await self._inner.ainvoke(ready, config, **kwargs)
        except BaseException as error:
            self._record('failed', error)
            raise
        return self._finished(result)

    @property
    def _approved(self) -> Mapping[str, Any] | None:
        return None if self._allowed.request is None else self._allowed.call.arguments.values

    def _ready(self, input: ToolInput) -> ToolInput | None:
        """What the tool is called with: what was looked at, not what somebody may still change."""
        # Attack: another middleware, the UI or the tool's own check holds the same nested objects, and changes them
        # after consent was given (test_arguments_that_another_middleware_changes_do_not_run).
        allowed = self._allowed
        try:
            call = replace(
                allowed.call,
                arguments=read_arguments(
                    self._inner, arguments_of(input), judges_injected=allowed.call.arguments.judges_injected
                ),
            )
        except ValueError:
            return None
        is_allowed = self._controller.is_bound(
            allowed.digest,
            call.name,
            call.arguments.values,
            call.bound_to(self._controller, allowed.declared),
        )
        return with_arguments(input, call.arguments) if is_allowed else None

    def _refused(self, input: ToolInput) -> ToolMessage:
        self._record('refused')
        return answer(Refused(reason=CHANGED), name=self._allowed.call.name, call_id=call_id_of(input))

    def _finished(self, result: Any) -> Any:
        has_failed = isinstance(result, ToolMessage) and result.status == 'error'
        self._record('failed' if has_failed else 'executed')
        if not (self._allowed.is_changed and self._tells_changes):
            return result
        return with_notice(result, self._allowed.call.arguments.values, call_id=self._allowed.call.call_id)

    def _record(self, outcome: Outcome, error: BaseException | None = None) -> None:
        if self._allowed.request is not None:
            self._controller.record_outcome(self._allowed.request, outcome, error=error)


def answer(refused: Refused, *, name: str, call_id: str | None) -> ToolMessage:
    """Tell who made a call that it did not run: a model by a message, code by an exception.

    Raises:
        ApprovalBlocked: Policy refused it, and it has no id.
        ApprovalDenied: It was denied, and has no id.
    """
    if call_id is not None:
        return refusal(refused.reason, name=name, call_id=call_id)
    raise (ApprovalBlocked if refused.is_block else ApprovalDenied)(name, refused.reason)
