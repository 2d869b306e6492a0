"""Define and play a story, with a model that follows its script."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai_deferred import Agent

from tool_approval.assistant.asking import ConversationUI, MakeAsked
from tool_approval.assistant.conversation import Conversation, End
from tool_approval.assistant.events import TurnView
from tool_approval.assistant.screen import Screen
from tool_approval.core.controller import ApprovalController
from tool_approval.core.memory import ApprovalMemory
from tool_approval.integrations.pydantic_ai import ApprovalToolset, FileToolset, ShellToolset, approval_handler

Step: TypeAlias = str | Sequence[ToolCallPart]
"""The last words of the model, or the calls it makes."""

Plan: TypeAlias = Callable[[list[ToolReturnPart]], Step]
"""The next step, after what the tools returned since the prompt, in order."""

AddTools: TypeAlias = Callable[[Agent[Any, str], ApprovalToolset], object]
"""Gives the agent more tools, which may use the guarded ones."""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A world that was set up: real processes and files, and what an agent is to do with them."""

    opening: str
    """The things there are, in a sentence or two."""
    prompt: str
    """The request of the person."""
    agent_name: str
    instructions: str
    """For the agent, where a real model takes the place of the script."""
    tools: FileToolset | ShellToolset
    """The agent's tools."""
    add_tools: AddTools = lambda agent, tools: None
    plan: Plan
    """Plays the model's part: it goes by what the tools return, and respects a refusal."""
    facts: Callable[[], list[str]]
    """The state of the world afterwards, looked at and not remembered."""


Story: TypeAlias = Callable[[], AbstractContextManager[Scene]]
"""Sets the world of a story up, and leaves nothing of it behind."""


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
    for part in (part for message in messages for part in message.parts):
        if isinstance(part, UserPromptPart):
            returns.clear()
        elif isinstance(part, ToolReturnPart):
            returns.append(part)
    return returns


async def play(story: Story, *, make_ui: MakeAsked, screen: Screen, model: str | None = None) -> End:
    """Set the world up, let the agent go, and show what is true afterwards, also when the person stopped it.

    With `model`, such as `openai-chat:gpt-5.2`, in place of the script.

    Raises:
        UserError: There is no such model, or its key is missing.
        ModelAPIError: The model cannot be reached.
    """
    memory, view = ApprovalMemory(), TurnView(screen)
    with story() as scene:
        screen.say(scene.opening)
        screen.say(f'You ask: {scene.prompt}')
        presenters = scene.tools.presenters
        ui = ConversationUI(make_ui(memory, presenters), view)
        controller = ApprovalController(ui=ui, memory=memory, presenters=presenters)
        tools = ApprovalToolset(scene.tools, controller)
        agent: Agent[Any, str] = Agent(name=scene.agent_name, instructions=scene.instructions, toolsets=[tools])
        scene.add_tools(agent, tools)
        conversation = Conversation(
            agent, handler=approval_handler(controller), view=view, memory=memory, model=model or scripted(scene.plan)
        )
        end = await conversation.take_turn(scene.prompt)
        if end == 'stopped':
            screen.say('Stopped.')
        messages = conversation.messages
        requests = sum(isinstance(message, ModelRequest) for message in messages)
        parts = (part for message in messages for part in message.parts)
        refused = sum(isinstance(part, ToolReturnPart) and part.outcome == 'denied' for part in parts)
        screen.write('\n')
        screen.say(f'In fact: {", ".join(scene.facts())}.')
        if end == 'done':
            screen.say(f'One run: {requests} model requests, {refused} refused.')
        return end
