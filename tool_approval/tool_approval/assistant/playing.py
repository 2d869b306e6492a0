"""Plays a story, and says afterwards what is true."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic_ai.messages import ModelRequest, ToolReturnPart

from tool_approval.core.controller import ApprovalController
from tool_approval.core.memory import ApprovalMemory
from tool_approval.core.protocols import Presenter
from tool_approval.integrations.pydantic_ai import approval_handler

from .asking import ConversationUI, MakeAsked
from .calls import Calls
from .conversation import Conversation, End
from .screen import Screen
from .signals import take_turn
from .stories import Story


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
