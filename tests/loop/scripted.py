"""A model that says what the test wrote, streamed or not, and what a test asks of the history afterwards."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

Response = Sequence[ModelResponsePart]


def call(tool_name: str, tool_call_id: str, **args: Any) -> ToolCallPart:
    return ToolCallPart(tool_name, args, tool_call_id=tool_call_id)


def text(content: str) -> TextPart:
    return TextPart(content)


def scripted(*responses: Response | str) -> FunctionModel:
    """A model that gives one response after the other, counted by those the history has already."""
    script = [[TextPart(response)] if isinstance(response, str) else response for response in responses]

    def next_response(messages: list[ModelMessage]) -> Response:
        return script[sum(isinstance(message, ModelResponse) for message in messages)]

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=list(next_response(messages)))

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        for index, part in enumerate(next_response(messages)):
            match part:
                case TextPart():
                    yield part.content
                case ToolCallPart():
                    args = part.args_as_json_str()
                    yield {index: DeltaToolCall(part.tool_name, args, tool_call_id=part.tool_call_id)}
                case _:
                    raise AssertionError(f'cannot stream {part}')

    return FunctionModel(respond, stream_function=stream)


def returns(messages: Sequence[ModelMessage]) -> dict[str, tuple[Any, str]]:
    """What the model was given for each call, by id: the content, and how it came about."""
    found: dict[str, tuple[Any, str]] = {}
    for message in messages:
        for part in message.parts:
            if part.part_kind == 'tool-return':
                assert part.tool_call_id not in found, f'{part.tool_call_id} was answered twice'
                found[part.tool_call_id] = (part.content, part.outcome)
            elif part.part_kind == 'retry-prompt' and part.tool_call_id:
                found[part.tool_call_id] = (part.content, 'retried')
    return found


class Recorder:
    """A handler that approves everything, answers external calls, and keeps what it was shown."""

    def __init__(self, **results: Any) -> None:
        """Give `results` of single calls instead, by tool call id."""
        self.results = results
        self.asked: list[DeferredToolRequests] = []
        self.contexts: list[RunContext[Any]] = []

    def __call__(self, ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        self.asked.append(requests)
        self.contexts.append(ctx)
        return DeferredToolResults(
            approvals={part.tool_call_id: self.results.get(part.tool_call_id, True) for part in requests.approvals},
            calls={part.tool_call_id: self.results.get(part.tool_call_id, 'elsewhere') for part in requests.calls},
        )

    @property
    def ids(self) -> list[list[str]]:
        """The ids of each question: first the approvals, then the calls."""
        return [[part.tool_call_id for part in (*each.approvals, *each.calls)] for each in self.asked]


class Gate:
    """A handler that waits for `release`, on the event loop or in its thread, and then approves."""

    def __init__(self, *, sync: bool) -> None:
        self.asked = threading.Event()
        self.release = threading.Event()
        self.has_answered = threading.Event()
        self.threads: list[threading.Thread] = []
        self.handler: Any = self.block if sync else self.wait

    def block(self, ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        self.threads.append(threading.current_thread())
        self.asked.set()
        self.release.wait(30)
        self.has_answered.set()
        return requests.build_results(approve_all=True)

    async def wait(self, ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        self.asked.set()
        while not self.release.is_set():  # no thread of the loop, whose end would wait for it
            await asyncio.sleep(0.005)
        return requests.build_results(approve_all=True)
