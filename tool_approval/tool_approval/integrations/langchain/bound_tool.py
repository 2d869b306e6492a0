"""Define tools that replace other tools, and build the messages that answer a call."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias, TypeGuard, cast

from langchain_core.messages import ToolCall, ToolMessage, convert_to_messages
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import ArgsSchema, BaseTool, Tool
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command
from pydantic import BaseModel, PrivateAttr

from tool_approval.core.calls import Allowed, Refused, Responded
from tool_approval.core.entries import Outcome
from tool_approval.core.errors import ApprovalBlocked, ApprovalDenied, UsedUp
from tool_approval.core.gate import CHANGED, Gate

from .calls import CallReader

ToolInput: TypeAlias = str | dict[str, Any] | ToolCall
"""Input of a tool: a string, arguments by name, or a model's tool call. A message is returned only for a tool call."""


class StandIn(BaseTool):
    """A tool that looks like another tool to the host and to the model.

    Every way to call the tool leads to `invoke` or `ainvoke`, which a subclass defines.
    """

    _inner: BaseTool = PrivateAttr()

    def __init__(self, inner: BaseTool) -> None:
        super().__init__(
            name=inner.name,
            description=inner.description,
            args_schema=_schema_of(inner),
            return_direct=inner.return_direct,
            tags=inner.tags,
            metadata=inner.metadata,
            response_format=inner.response_format,
            extras=inner.extras,
        )
        self._inner = inner

    @property
    def func(self) -> Callable[..., Any] | None:
        """The tool's function, in which the host finds injected parameters and the policy finds checks."""
        return getattr(self._inner, 'func', None)

    @property
    def coroutine(self) -> Callable[..., Coroutine[Any, Any, Any]] | None:
        """Asynchronous function of the tool."""
        return getattr(self._inner, 'coroutine', None)

    @cached_property
    def _injected_args_keys(self) -> frozenset[str]:
        # The host computes these keys from the function's signature, which this class does not have.
        return getattr(self._inner, '_injected_args_keys', frozenset[str]())

    @property
    def tool_call_schema(self) -> ArgsSchema:
        """Parameters as the model sees them."""
        return super().tool_call_schema if isinstance(self.args_schema, dict) else self._inner.tool_call_schema

    def run(self, tool_input: str | dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Call `invoke`. Older LangChain code calls tools with this method."""
        return self.invoke(*_as_invoked(self.name, tool_input, kwargs))

    async def arun(self, tool_input: str | dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Call `ainvoke`."""
        return await self.ainvoke(*_as_invoked(self.name, tool_input, kwargs))

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        return self.invoke(kwargs)

    async def _arun(self, *args: Any, **kwargs: Any) -> Any:
        return await self.ainvoke(kwargs)


def _schema_of(tool: BaseTool) -> ArgsSchema:
    if isinstance(tool, Tool) and tool.args_schema is None:
        # A tool with one text parameter: the host describes it by its class, which this class does not share.
        return {'type': 'object', 'properties': tool.args, 'required': list(tool.args)}
    return tool.args_schema or cast('type[BaseModel]', tool.get_input_schema())


def arguments_of(input: ToolInput) -> object:
    """Return the arguments of a model's call, or `input` itself if it is not a model's call."""
    return input.get('args') if _is_call(input) else input


def call_id_of(input: ToolInput) -> str | None:
    """Return the id of a model's call, or `None` if `input` is not a model's call."""
    return input.get('id') if _is_call(input) else None


def replace_input(input: ToolInput, given: Mapping[str, Any] | None) -> ToolInput:
    """Return `input` with `given` as its arguments. If `input` is not a model's call, return only `given`."""
    values = dict(given or {})
    return {**input, 'args': values} if _is_call(input) else values


def _is_call(input: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(input, dict) and cast('dict[str, Any]', input).get('type') == 'tool_call'


_CONFIG_KEYS = ('callbacks', 'tags', 'metadata', 'run_name', 'run_id')


def _as_invoked(name: str, tool_input: str | dict[str, Any], options: Mapping[str, Any]) -> tuple[Any, RunnableConfig]:
    given = {key: options[key] for key in _CONFIG_KEYS if options.get(key) is not None}
    config = cast('RunnableConfig', {**(options.get('config') or {}), **given})
    call_id = options.get('tool_call_id')
    if call_id is None:
        return tool_input, config
    return {'type': 'tool_call', 'name': name, 'args': tool_input, 'id': call_id}, config


def refusal(reason: str, *, name: str, call_id: str) -> ToolMessage:
    """Return the message that the model gets for a call that did not run."""
    return ToolMessage(content=reason, name=name, tool_call_id=call_id, status='error')


def with_notice(result: object, notice: str | None, *, call_id: str | None) -> Any:
    """Add a notice for the model to a tool's result.

    Args:
        result: Value that the tool returned: a text, the message that answers the call, a graph command that adds this
            message, or a list of these. Other values are returned unchanged, because the caller expects their type.
        notice: Text of the notice; `None` returns the result unchanged.
        call_id: The id of the call, or `None` if the tool was called by code, not by a model.
    """
    if notice is None:
        return result
    return f'{result}\n\n[{notice}]' if isinstance(result, str) else _noted(result, f'[{notice}]', call_id)


def _noted(result: object, notice: str, call_id: str | None) -> object:
    match result:
        case ToolMessage(tool_call_id=answered) if answered == call_id:
            content: Any = result.content
            noted = (
                f'{content}\n\n{notice}' if isinstance(content, str) else [*content, {'type': 'text', 'text': notice}]
            )
            return result.model_copy(update={'content': noted})
        case Command(update={'messages': messages}):
            update = cast('Mapping[str, Any]', result.update)
            added = [_noted(message, notice, call_id) for message in convert_to_messages(messages)]
            return replace(result, update={**update, 'messages': added})
        case list():
            return [_noted(each, notice, call_id) for each in cast('list[object]', result)]
        case _:
            return result


class BoundTool(StandIn):
    """Checks, just before the wrapped tool runs, that the call is the one that was allowed."""

    _reader: CallReader = PrivateAttr()
    _allowed: Allowed = PrivateAttr()
    _gate: Gate = PrivateAttr()
    _refused: ToolMessage | None = PrivateAttr(default=None)

    def __init__(self, reader: CallReader, allowed: Allowed, gate: Gate) -> None:
        """Replace the tool of a call.

        Args:
            reader: Reads the input that the host passes to `invoke` or `ainvoke`.
            allowed: The allowed call, and its binding.
            gate: Gate that allowed the call and records the call's outcome.
        """
        super().__init__(reader.tool)
        self._reader = reader
        self._allowed = allowed
        self._gate = gate

    @property
    def refused(self) -> ToolMessage | None:
        """Answer to the last call, if that call was refused."""
        return self._refused

    def invoke(self, input: ToolInput, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run the tool, if this is the call that was allowed.

        Raises:
            ApprovalDenied: The call differs from the allowed call, and has no id.
        """
        ready = self._ready(input)
        if isinstance(ready, ToolMessage):
            return ready
        try:
            with self._gate.execution(self._allowed, outcome_of=_outcome_of_error) as execution:
                result = self._inner.invoke(ready, config, **kwargs)
                execution.outcome = _outcome_of(result)
        except UsedUp as over:
            return self._refuse(over.reason, input)
        return with_notice(result, execution.notice, call_id=self._reader.call_id)

    async def ainvoke(self, input: ToolInput, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run the tool on the event loop; see `invoke`."""
        ready = self._ready(input)
        if isinstance(ready, ToolMessage):
            return ready
        try:
            with self._gate.execution(self._allowed, outcome_of=_outcome_of_error) as execution:
                result = await self._inner.ainvoke(ready, config, **kwargs)
                execution.outcome = _outcome_of(result)
        except UsedUp as over:
            return self._refuse(over.reason, input)
        return with_notice(result, execution.notice, call_id=self._reader.call_id)

    def _ready(self, input: ToolInput) -> ToolInput | ToolMessage:
        """Return the answer if the call is refused, or else a copy of the arguments that no other code can change."""
        # Attack: another middleware, the UI or the tool's own check has the same nested objects, and changes them after
        # the approval (test_arguments_that_another_middleware_changes_do_not_run).
        try:
            call = self._reader.read(arguments_of(input))
        except ValueError:
            call = None
        if call is None or self._allowed.binding is None or not self._gate.is_bound(self._allowed.binding, call):
            self._gate.record(self._allowed, 'refused')
            return self._refuse(CHANGED, input)
        if (lapsed := self._gate.lapsed(self._allowed)) is not None:
            return self._refuse(lapsed, input)
        self._refused = None
        return replace_input(input, call.given)

    def _refuse(self, reason: str, input: ToolInput) -> ToolMessage:
        self._refused = answer(Refused(reason=reason), name=self._reader.name, call_id=call_id_of(input))
        return self._refused


def _outcome_of_error(error: BaseException) -> Outcome:
    # The host pauses a graph with an exception.
    return 'deferred' if isinstance(error, GraphBubbleUp) else 'failed'


def _outcome_of(result: object) -> Outcome:
    return 'failed' if isinstance(result, ToolMessage) and result.status == 'error' else 'executed'


def answer_of(settled: Refused | Responded, *, name: str, call_id: str) -> ToolMessage:
    """Return the message that the model gets for a call that did not run: a refusal, or the approver's response."""
    if isinstance(settled, Refused):
        return refusal(settled.told, name=name, call_id=call_id)
    return ToolMessage(content=settled.text, name=name, tool_call_id=call_id)


def answer(refused: Refused, *, name: str, call_id: str | None) -> ToolMessage:
    """Answer a call that was refused: a model gets a message, and code gets an exception.

    Raises:
        ApprovalBlocked: Policy refused a call that has no id.
        ApprovalDenied: A call that has no id was denied.
    """
    if call_id is not None:
        return answer_of(refused, name=name, call_id=call_id)
    raise (ApprovalBlocked if refused.is_block else ApprovalDenied)(name, refused.reason)
