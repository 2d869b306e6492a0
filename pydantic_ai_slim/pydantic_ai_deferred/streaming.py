"""What a streamed response needs so that its deferred calls reach the handler, and its history stays usable.

A streamed run takes the first part that could be an output for the end of the run, and a *declared* deferral (a tool
with `requires_approval=True`, an external tool) counts as one: `DeferredToolRequests` is an output. With a handler it
is not. So while a model request is under way, declared tools look like ordinary ones to the stream; when the
response is there they are what they were declared, and the loop goes its ordinary way.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import ToolDefinition

ToolKind: TypeAlias = Literal['function', 'output', 'external', 'unapproved']
"""How a tool was declared: `ToolDefinition.kind`."""

SKIPPED = 'Not executed: the run had reached its final result.'
"""What the history says of a deferred call that a final output made pointless."""


@dataclass(eq=False)
class DeclaredTools:
    """The declared tools of one run, and how far a streamed response has come."""

    is_final: bool = False
    """Whether the response that streams has given its final output. Tools that execute now do so in vain."""
    _is_streaming: bool = False
    _definitions: list[ToolDefinition] = field(default_factory=list[ToolDefinition])
    _disguised: list[tuple[ToolDefinition, ToolKind]] = field(default_factory=list[tuple[ToolDefinition, ToolKind]])

    def own(self, definitions: Sequence[ToolDefinition]) -> list[ToolDefinition]:
        """Replace declared definitions by copies that this run alone holds: toolsets share theirs between runs."""
        self._definitions = []
        owned: list[ToolDefinition] = []
        for definition in definitions:
            if definition.defer:
                definition = copy(definition)
                self._definitions.append(definition)
            owned.append(definition)
        return owned

    def refuse(self, definition: ToolDefinition) -> None:
        """Do not let a declared tool execute unapproved.

        The loop itself never does. This stops what would: the window in which the definition looks ordinary, and
        hosts before 2.x, whose `ToolManager.handle_call` does not look at the kind.

        Raises:
            ApprovalRequired: The tool was declared to require approval.
            CallDeferred: The tool was declared to be executed elsewhere.
        """
        declared = (kind for disguised, kind in self._disguised if disguised is definition)
        match next(declared, definition.kind):
            case 'unapproved':
                raise ApprovalRequired
            case 'external':
                raise CallDeferred
            case _:
                pass

    @contextmanager
    def disguised(self, request: ModelRequestContext) -> Generator[None]:
        """While a response streams: declared tools look like ordinary ones to the stream, and to whoever looks now.

        What was changed is remembered, and never looked up again: the tools may be prepared anew meanwhile.
        """
        self._disguised = [(definition, definition.kind) for definition in self._definitions]
        for definition, _ in self._disguised:
            definition.kind = 'function'
        parameters = request.model_request_parameters
        if any(definition.defer for definition in parameters.function_tools):
            # Another capability has copied the definitions since: change the request's copies, not the capability's.
            request.model_request_parameters = replace(
                parameters,
                function_tools=[
                    replace(definition, kind='function') if definition.defer else definition
                    for definition in parameters.function_tools
                ],
            )
        self._is_streaming = True
        try:
            yield
        finally:
            self._is_streaming = self.is_final = False
            self.reveal()
            self._disguised = []

    def reveal(self) -> None:
        """Make the declared tools what they were declared."""
        for definition, kind in self._disguised:
            definition.kind = kind

    def output_is_final(self) -> None:
        """The stream has handed out its final output: the loop may see the declared tools again, and skip them."""
        if self._is_streaming:
            self.is_final = True
            self.reveal()


def answer_open_calls(messages: list[ModelMessage], ctx: RunContext[object]) -> None:
    """Answer the calls of the last response that the loop left open when an output tool ended the run.

    A deferral raised beside an output tool that succeeds is dropped without a result, and a history with an open call
    is refused by the next run. `messages` is changed in place.
    """
    following: list[object] = []
    for message in reversed(messages):
        if isinstance(message, ModelResponse):
            break
        following.extend(message.parts)
    else:
        return
    # A retry is a part of its own kind on older hosts; both name the call they answer.
    answered = {getattr(part, 'tool_call_id', None) for part in following}
    open_calls = [call for call in message.tool_calls if call.tool_call_id not in answered]
    if not open_calls:
        return
    stubs = [_stub(call) for call in open_calls]
    last = messages[-1]
    if isinstance(last, ModelRequest):
        # A new object: instrumentation keeps the serialized form of a message it has seen.
        messages[-1] = replace(last, parts=[*last.parts, *stubs])
    else:
        messages.append(ModelRequest(parts=stubs, run_id=ctx.run_id))


def _stub(call: ToolCallPart) -> ToolReturnPart:
    return ToolReturnPart(tool_name=call.tool_name, content=SKIPPED, tool_call_id=call.tool_call_id)
