"""A model that follows a script: what it does next depends on what the tools returned so far."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

Step = str | Sequence[ToolCallPart]
"""What the model says at the end, or the calls it makes."""

Plan = Callable[[list[ToolReturnPart]], Step]
"""The next step, after what the tools returned since the prompt, in order."""


def scripted(plan: Plan) -> FunctionModel:
    """The model, for runs that stream and for those that do not."""

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        step = plan(_returns(messages))
        return ModelResponse([TextPart(step)] if isinstance(step, str) else list(step))

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        step = plan(_returns(messages))
        if isinstance(step, str):
            for word in step.split(' '):
                yield f'{word} '
            return
        for index, call in enumerate(step):
            arguments = json.dumps(call.args_as_dict())
            yield {index: DeltaToolCall(name=call.tool_name, json_args=arguments, tool_call_id=call.tool_call_id)}

    return FunctionModel(respond, stream_function=stream, model_name='script')


def denied(result: ToolReturnPart) -> bool:
    """Whether a person, or a rule, refused the call."""
    return result.outcome == 'denied'


def _returns(messages: list[ModelMessage]) -> list[ToolReturnPart]:
    returns: list[ToolReturnPart] = []
    for message in messages:
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                returns.clear()
            elif isinstance(part, ToolReturnPart):
                returns.append(part)
    return returns
