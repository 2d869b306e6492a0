"""Define and play a story, with a model that follows its script."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai_deferred import Agent

from tool_approval.assistant.asking import ConversationUI, MakeAsked
from tool_approval.assistant.conversation import Conversation, End, take_turn
from tool_approval.assistant.events import Calls
from tool_approval.assistant.screen import Screen
from tool_approval.core.controller import ApprovalController
from tool_approval.core.memory import ApprovalMemory
from tool_approval.core.protocols import Presenter
from tool_approval.integrations.pydantic_ai import approval_handler

MakeController = Callable[[Mapping[str, Presenter]], ApprovalController]
"""Makes the controller that a scene's tools ask, given who makes what is shown of their calls."""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A world that was set up: real processes and files, and an agent with tools for them."""

    opening: str
    """What there is, in a sentence or two."""
    prompt: str
    """What the person asks for."""
    agent: Agent[Any, str]
    """Its tools ask the controller; it has neither model nor handler."""
    controller: ApprovalController
    """Whom the tools ask."""
    script: Model
    """Plays the model's part: it goes by what the tools return, and respects a refusal."""
    facts: Callable[[], list[str]]
    """What is true of the world afterwards, looked at and not remembered."""


@dataclass(frozen=True, kw_only=True)
class Story:
    """One story."""

    title: str
    """A line."""
    open_scene: Callable[[MakeController], AbstractContextManager[Scene]]
    """Sets the world up, and leaves nothing of it behind."""


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


async def play(
    story: Story,
    *,
    make_ui: MakeAsked,
    screen: Screen,
    model: str | None = None,
) -> End:
    """Set the world up, let the agent go, answer for nobody.

    Args:
        story: The story.
        make_ui: Whom the agent asks.
        screen: Where what happens is shown.
        model: A model in place of the script, such as `openai-chat:gpt-5.2`.

    Returns:
        Whether it came to its end, or was stopped. What is true of the world is shown either way.

    Raises:
        UserError: There is no such model, or its key is missing.
        ModelAPIError: The model cannot be reached.
    """
    memory = ApprovalMemory()
    calls = Calls()
    uis: list[ConversationUI] = []

    def make_controller(presenters: Mapping[str, Presenter]) -> ApprovalController:
        uis.append(ConversationUI(make_ui(memory, presenters), screen=screen, calls=calls))
        return ApprovalController(ui=uis[0], memory=memory, presenters=presenters)

    with story.open_scene(make_controller) as scene:
        screen.say(scene.opening)
        screen.say(f'You ask: {scene.prompt}')
        conversation = Conversation(
            scene.agent,
            handler=approval_handler(scene.controller),
            screen=screen,
            calls=calls,
            model=model or scene.script,
        )
        uis[0].stop = conversation.stop
        end = await take_turn(conversation, scene.prompt)
        if end == 'stopped':
            screen.say('Stopped.')
        messages = conversation.messages
        requests = sum(isinstance(message, ModelRequest) for message in messages)
        refused = sum(
            isinstance(part, ToolReturnPart) and part.outcome == 'denied'
            for message in messages
            for part in message.parts
        )
        screen.write('\n')
        screen.say(f'In fact: {", ".join(scene.facts())}.')
        if end == 'done':
            screen.say(f'One run: {requests} model requests, {refused} refused.')
        return end
