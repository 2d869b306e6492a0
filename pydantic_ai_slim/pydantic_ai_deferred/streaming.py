"""What a streamed response needs so that its deferred calls reach the handler, and its history stays usable.

A streamed run takes the first part that could be an output for the end of the run, and a *declared* deferral (a tool
with `requires_approval=True`, an external tool) counts as one: `DeferredToolRequests` is an output. With a handler it
is not. So while a model request is under way, declared tools look like ordinary ones to the stream; when the
response is there they are what they were declared, and the loop goes its ordinary way.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

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

SKIPPED = 'Not executed: the run had reached its final result.'
"""What the history says of a deferred call that a final output made pointless."""


@dataclass(eq=False)
class DeclaredTools:
    """The declared tools of one run, and whether a model request is under way."""

    is_requesting: bool = False
    """Whether a model request is under way. Tools that execute now do so after a streamed final output."""
    _by_name: dict[str, ToolDefinition] = field(default_factory=dict[str, ToolDefinition])
    _definitions: list[ToolDefinition] = field(default_factory=list[ToolDefinition])

    def own(self, definitions: Sequence[ToolDefinition]) -> list[ToolDefinition]:
        """Replace declared definitions by copies that this run alone holds: toolsets share theirs between runs."""
        owned = [replace(definition) if definition.defer else definition for definition in definitions]
        self._definitions = [definition for definition in owned if definition.defer]
        self._by_name = {definition.name: replace(definition) for definition in self._definitions}
        return owned

    def deferral(self, definition: ToolDefinition) -> ApprovalRequired | CallDeferred | None:
        """What an unapproved execution of the tool has to raise instead, by its declared kind.

        The loop itself never executes a declared tool unapproved. This stops what would: the window in which the
        definition looks ordinary, and hosts before 2.x whose `ToolManager.handle_call` does not look at the kind.
        """
        match self._by_name.get(definition.name, definition).kind:
            case 'unapproved':
                return ApprovalRequired()
            case 'external':
                return CallDeferred()
            case _:
                return None

    @contextmanager
    def disguised(self, request: ModelRequestContext) -> Generator[None]:
        """While the model request is under way: declared tools look like ordinary ones."""
        for definition in self._definitions:
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
        self.is_requesting = True
        try:
            yield
        finally:
            self.is_requesting = False
            self.reveal()

    def reveal(self) -> None:
        """Make the declared tools what they were declared."""
        for definition in self._definitions:
            definition.kind = self._by_name[definition.name].kind


def answer_open_calls(messages: list[ModelMessage], ctx: RunContext[object]) -> None:
    """Answer the calls of the last response that the loop left open when an output tool ended the run.

    A deferral raised beside an output tool that succeeds is dropped without a result, and a history with an open call
    is refused by the next run. `messages` is changed in place.
    """
    position = next((i for i in reversed(range(len(messages))) if isinstance(messages[i], ModelResponse)), None)
    if position is None:
        return
    response = messages[position]
    assert isinstance(response, ModelResponse)
    parts = [part for message in messages[position + 1 :] for part in message.parts]
    # A retry is a part of its own kind on older hosts; both name the call they answer.
    answered = {getattr(part, 'tool_call_id', None) for part in parts}
    open_calls = [call for call in response.tool_calls if call.tool_call_id not in answered]
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
