"""Define stories, and play them with a model that follows a script."""

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
from tool_approval.integrations.pydantic_ai import Approvals, ApprovalToolset, FileToolset, ShellToolset

Step: TypeAlias = str | Sequence[ToolCallPart]
"""A step of the model: its final text, or a list of calls."""

Plan: TypeAlias = Callable[[list[ToolReturnPart]], Step]
"""Function that takes the tool results since the prompt, in order, and returns the model's next step."""

AddTools: TypeAlias = Callable[[Agent[Any, str], ApprovalToolset], object]
"""Function that adds tools to an agent. The arguments are the agent and its `ApprovalToolset`."""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """The beginning of a story: the processes and files, and the agent with its task."""

    opening: str
    """Description of the scene in one or two sentences."""
    prompt: str
    """Request of the user."""
    agent_name: str
    instructions: str
    """Instructions for the agent if a real model replaces the script."""
    tools: FileToolset | ShellToolset
    """Tools of the agent."""
    add_tools: AddTools = lambda agent, tools: None
    plan: Plan
    """Script of the model. The script depends on the tool results, and respects a denial."""
    facts: Callable[[], list[str]]
    """Function that inspects the processes and files, and returns sentences about them."""


Story: TypeAlias = Callable[[], AbstractContextManager[Scene]]
"""Function that sets up the scene of a story, and cleans up afterwards."""


def scripted(plan: Plan) -> FunctionModel:
    """Return a model that follows the plan, in ordinary and in streamed runs."""

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
    """Whether an approver or a rule denied the call."""
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
    """Set up a scene, run the agent, and show the facts afterwards, even if the user stopped it.

    `model`, such as `openai-chat:gpt-5.2`, replaces the script.

    Raises:
        UserError: The model does not exist, or its API key is missing.
        ModelAPIError: The model cannot be reached.
    """
    memory, view = ApprovalMemory(), TurnView(screen)
    with story() as scene:
        screen.say(scene.opening)
        screen.say(f'You ask: {scene.prompt}')
        presenters = scene.tools.presenters
        ui = ConversationUI(make_ui(memory, presenters), view)
        controller = ApprovalController(ui=ui, memory=memory, presenters=presenters)
        approvals = Approvals(controller, default='none')
        tools = approvals.guard(scene.tools)
        agent: Agent[Any, str] = Agent(name=scene.agent_name, instructions=scene.instructions, toolsets=[tools])
        scene.add_tools(agent, tools)
        conversation = Conversation(
            agent, handler=approvals, view=view, memory=memory, model=model or scripted(scene.plan)
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
            screen.say(f'One run: {requests} model requests; refused calls: {refused}.')
        return end
