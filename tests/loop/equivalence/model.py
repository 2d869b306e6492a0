"""The model of every scenario: it says what the scenario says, streamed or not."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator

from pydantic import BaseModel
from pydantic_ai import DeferredToolRequests, PromptedOutput, ToolOutput
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from .scenario import Output, tool_call_id
from .transcript import view
from .world import World


class Report(BaseModel):
    """The output, where it is no plain text."""

    summary: str


OUTPUT_TYPES = {'text': str, 'tool': ToolOutput(Report, name='report'), 'prompted': PromptedOutput(Report)}


def output_type(output: Output, *, allows_leaving: bool) -> list[object]:
    """The output type of an agent, with `DeferredToolRequests` where calls may leave its run."""
    return [OUTPUT_TYPES[output], *([DeferredToolRequests] if allows_leaving else [])]


def scripted(world: World) -> FunctionModel:
    """A model that plays the scenario of `world` and notes there what it is given."""

    def parts(messages: list[ModelMessage], info: AgentInfo) -> Iterator[TextPart | ToolCallPart]:
        world.views.append(view(messages, info))
        step = sum(isinstance(message, ModelResponse) for message in messages)
        scenario = world.scenario
        if step < len(scenario.rounds):
            round_ = scenario.rounds[step]
            if round_.text:
                yield TextPart(round_.text)
            for index, call in enumerate(round_.calls):
                yield ToolCallPart(call.tool, call.args, tool_call_id=tool_call_id(step, index))
            return
        match scenario.output:
            case 'text':
                yield TextPart('done')
            case 'tool':
                yield ToolCallPart('report', {'summary': 'done'}, tool_call_id='call-end')
            case 'prompted':
                yield TextPart('{"summary": "done"}')

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=list(parts(messages, info)))

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        for index, part in enumerate(parts(messages, info)):
            if isinstance(part, TextPart):
                yield part.content
            else:
                args = part.args if part.args is None or isinstance(part.args, str) else json.dumps(part.args)
                yield {index: DeltaToolCall(part.tool_name, args, tool_call_id=part.tool_call_id)}

    return FunctionModel(respond, stream_function=stream)
