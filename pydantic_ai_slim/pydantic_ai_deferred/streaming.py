"""Let the deferred calls of a streamed response reach the handler, and keep the history usable.

A streamed run ends at the first response part that could be an output. A *declared* deferral is a call of a tool with
`requires_approval=True`, or of an external tool. The host would treat such a call as an output, and end the run before
the handler is asked. Declared tools are therefore disguised as ordinary tools during a model request. When the response
is complete, the tools get their declared kind back, and the loop continues as usual.
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
"""How a tool was declared, as in `ToolDefinition.kind`."""

SKIPPED = 'Not executed: the run had reached its final result.'
"""Text recorded as the result of a deferred call that did not run because the run had reached its final output."""


@dataclass(eq=False)
class DeclaredTools:
    """Tools of one run that are declared as deferred, and the progress of a streamed response."""

    is_final: bool = False
    """Whether the response being streamed has given its final output. From then on, deferred calls are skipped."""
    _is_streaming: bool = False
    _definitions: list[ToolDefinition] = field(default_factory=list[ToolDefinition])
    _disguised: list[tuple[ToolDefinition, ToolKind]] = field(default_factory=list[tuple[ToolDefinition, ToolKind]])

    def own(self, definitions: Sequence[ToolDefinition]) -> list[ToolDefinition]:
        """Replace the definitions of declared tools with copies, because toolsets share definitions between runs."""
        self._definitions = []
        owned: list[ToolDefinition] = []
        for definition in definitions:
            if definition.defer:
                definition = copy(definition)
                self._definitions.append(definition)
            owned.append(definition)
        return owned

    def refuse(self, definition: ToolDefinition) -> None:
        """Refuse to execute a declared tool without approval.

        The loop itself never executes a declared tool. This method is needed in two cases: while declared tools are
        disguised, and on hosts before 2.x, because their `ToolManager.handle_call` ignores a tool's kind.

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
        """Disguise declared tools as ordinary tools in the `with` block, while a response streams.

        The changed definitions are remembered instead of looked up again, because the tools may be prepared again in
        the meantime.
        """
        self._disguised = [(definition, definition.kind) for definition in self._definitions]
        for definition, _ in self._disguised:
            definition.kind = 'function'
        parameters = request.model_request_parameters
        if any(definition.defer for definition in parameters.function_tools):
            # Another capability copied the definitions: change the request's copies, not the capability's.
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
        """Restore the declared kind of the tools."""
        for definition, kind in self._disguised:
            definition.kind = kind

    def output_is_final(self) -> None:
        """Record that the stream has given its final output. The loop then skips calls of declared tools."""
        if self._is_streaming:
            self.is_final = True
            self.reveal()


def answer_open_calls(messages: list[ModelMessage], ctx: RunContext[object]) -> None:
    """Answer the open calls of the last response: those without a result, because an output tool ended the run.

    If a call is deferred while an output tool succeeds, the host drops the deferred call without a result. The next run
    would refuse a history in which a call has no result. `messages` is changed in place.
    """
    following: list[object] = []
    for message in reversed(messages):
        if isinstance(message, ModelResponse):
            break
        following.extend(message.parts)
    else:
        return
    # On older hosts a retry is a separate kind of part; both kinds name the call they answer.
    answered = {getattr(part, 'tool_call_id', None) for part in following}
    open_calls = [call for call in message.tool_calls if call.tool_call_id not in answered]
    if not open_calls:
        return
    stubs = [_stub(call) for call in open_calls]
    last = messages[-1]
    if isinstance(last, ModelRequest):
        # A new object, because instrumentation keeps the serialized form of a message it has seen.
        messages[-1] = replace(last, parts=[*last.parts, *stubs])
    else:
        messages.append(ModelRequest(parts=stubs, run_id=ctx.run_id))


def _stub(call: ToolCallPart) -> ToolReturnPart:
    return ToolReturnPart(tool_name=call.tool_name, content=SKIPPED, tool_call_id=call.tool_call_id)
